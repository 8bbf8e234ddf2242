//! The purpose of a GGUF file: most hold a language model, others something that goes with one.

use super::Gguf;
use crate::error::Result;
use kernmill_os::text::shortened;

/// Architectures of encoders that turn images or sounds into embeddings.
const ENCODERS: [&str; 1] = ["clip"];
/// Version of the arithmetic of blocks; files from before there were versions have none.
const QUANTIZATION_VERSION: u64 = 2;

impl Gguf {
    /// Refuses files that hold no language model.
    pub(super) fn check_purpose(&self) -> Result<()> {
        let purpose = self.text("general.type")?;
        let lora = self.has("adapter.type") || self.tensors.iter().any(|t| t.name.ends_with(".lora_a"));
        match purpose {
            Some("adapter") => return self.refuse_adapter(),
            _ if lora => return self.refuse_adapter(),
            Some("mmproj") => return self.refuse_encoder(),
            _ if self.text("general.architecture")?.is_some_and(|arch| ENCODERS.contains(&arch)) => {
                return self.refuse_encoder();
            }
            None | Some("model") => {}
            Some("imatrix") => {
                return self.bad(
                    "it is an importance matrix, which quantisers use, not a model: expected a model's GGUF file",
                );
            }
            Some(other) => {
                return self.unsupported(format!(
                    "key `general.type` is `{}`; supported is: model",
                    shortened(other)
                ));
            }
        }
        match self.whole("general.quantization_version")? {
            Some(version) if version != QUANTIZATION_VERSION => self.unsupported(format!(
                "key `general.quantization_version` is {version}; supported is: {QUANTIZATION_VERSION}"
            )),
            _ => Ok(()),
        }
    }

    fn refuse_adapter(&self) -> Result<()> {
        self.bad(
            "it is a LoRA adapter in GGUF form, not a model: give the model's own file, and the adapter with --lora as the \
             directory that PEFT wrote (adapter_config.json and adapter_model.safetensors)",
        )
    }

    fn refuse_encoder(&self) -> Result<()> {
        self.bad(
            "it is a model's encoder for images or sounds (mmproj), not a language model: give the GGUF file of the language model",
        )
    }
}
