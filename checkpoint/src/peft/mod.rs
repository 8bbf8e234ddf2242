//! Reading LoRA and DoRA adapters as PEFT saves them: `adapter_config.json` beside
//! `adapter_model.safetensors`.

mod config;
mod error;
mod file;
mod files;
mod names;
mod pattern;
mod read;

pub use config::CONFIG_FILE;
pub use error::PeftError;
pub use file::{TENSOR_FILE, TensorFile};
pub use files::check_files;
pub use names::{PeftTarget, targets};
pub use read::{PeftAdapter, PeftPart};
