//! Makes files of few bits a weight from models of many: `kernmill quantize`.
//!
//! [`fit`] rounds weights to blocks of GGUF's types so that the weighted error is small. [`QuantizeArgs`] has
//! the command's arguments and its work: which type each matrix gets, by a recipe or by the size that is
//! asked for, and the file.

#![cfg(feature = "compiler")]
#![warn(clippy::missing_errors_doc, clippy::missing_panics_doc)]

mod aim;
mod allocate;
mod calibrate;
mod command;
mod file;
pub mod fit;
mod forward;
mod gptq;
mod recipe;
mod report;
mod rows;
mod sensitivity;
mod sizing;
mod state;
#[cfg(test)]
mod state_tests;

pub use command::QuantizeArgs;
pub use report::QuantizedModel;
#[cfg(test)]
pub(crate) mod tests;
