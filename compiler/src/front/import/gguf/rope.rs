//! RoPE's scaling by a GGUF file's metadata, or by the factors that llama files hold.

use super::file::GgufImport;
use crate::ir::rope::inv_freq;
use crate::ir::{RopeParameters, RopeScaling};
use kernmill_checkpoint::Result;
use kernmill_os::text::shortened;
use serde_json::{Value, json};

/// Factors of the RoPE frequencies, as llama files state Llama 3's scaling.
const ROPE_FACTORS: &str = "rope_freqs.weight";
/// Divisors of the RoPE frequencies, as phi3 files state LongRoPE.
pub(super) const LONG_FACTORS: &str = "rope_factors_long.weight";
const SHORT_FACTORS: &str = "rope_factors_short.weight";
/// Constants of Llama 3's scaling in every published model that has it.
const LLAMA3_LOW: f64 = 1.0;
const LLAMA3_HIGH: f64 = 4.0;
const LLAMA3_CONTEXT: f64 = 8192.0;
/// Factors that differ by this share or less are the same but for rounding.
const ROPE_TOLERANCE: f64 = 1e-4;

impl GgufImport<'_> {
    /// `rope_scaling` of a `config.json` for a llama file: by the metadata, or Llama 3's by the factors in
    /// the file.
    pub(super) fn rope_scaling_or_factors(&self) -> Result<Value> {
        let (scaling, scaled) = self.rope_scaling(true)?;
        match self.gguf.info(ROPE_FACTORS) {
            Some(_) if scaled => self.gguf.unsupported(format!("`{ROPE_FACTORS}` beside a RoPE scaling")),
            Some(_) => self.llama3_scaling(),
            None => Ok(scaling),
        }
    }

    /// Refuses factors of the RoPE frequencies, which an architecture does not have.
    pub(super) fn refuse_rope_factors(&self) -> Result<()> {
        match self.gguf.info(ROPE_FACTORS) {
            Some(_) => self.gguf.unsupported(format!("tensor `{ROPE_FACTORS}` in a {} model", self.arch)),
            None => Ok(()),
        }
    }

    /// `rope_scaling` of a `config.json` for a phi3 file: LongRoPE by two tensors of divisors, or none.
    pub(super) fn long_rope(&self) -> Result<Value> {
        let [long, short] = [LONG_FACTORS, SHORT_FACTORS].map(|name| {
            let info = self.gguf.info(name).filter(|info| info.kind.name == "F32")?;
            let values = self.gguf.data(info).as_chunks().0.iter();
            Some(values.map(|&bytes| f32::from_le_bytes(bytes)).collect::<Vec<f32>>())
        });
        let (Some(long), Some(short)) = (long, short) else { return Ok(Value::Null) };
        Ok(json!({
            "rope_type": "longrope",
            "long_factor": long,
            "short_factor": short,
            "original_max_position_embeddings": self.require("rope.scaling.original_context_length")?,
            "attention_factor": self.gguf.positive(&self.key("rope.scaling.attn_factor"))?,
        }))
    }

    /// `rope_scaling` of a `config.json`, and whether there is one. Files that state a factor and no kind
    /// mean `linear`.
    pub(super) fn rope_scaling(&self, truncate: bool) -> Result<(Value, bool)> {
        for key in ["rope.scaling.attn_factor", "rope.scaling.yarn_ext_factor"] {
            let key = self.key(key);
            if let Some(factor) = self.gguf.positive(&key)?.filter(|&f| f != 1.0) {
                return self.gguf.unsupported(format!("key `{key}` is {factor}; supported is: 1"));
            }
        }
        let key = self.key("rope.scaling.type");
        match self.gguf.text(&key)? {
            Some("none") => Ok((Value::Null, false)),
            None | Some("linear") => match self.linear_factor()? {
                None | Some(1.0) => Ok((Value::Null, false)),
                Some(factor) => Ok((json!({"rope_type": "linear", "factor": factor}), true)),
            },
            Some("yarn") => Ok((self.yarn(truncate)?, true)),
            Some(other) => self.gguf.unsupported(format!(
                "key `{key}` is `{}`; supported are: none, linear, yarn",
                shortened(other)
            )),
        }
    }

    /// The factor under its name, or the one that it had before.
    fn linear_factor(&self) -> Result<Option<f64>> {
        for key in ["rope.scaling.factor", "rope.scale_linear"].map(|key| self.key(key)) {
            // 0 stands for none.
            if self.gguf.number(&key) != Some(0.0)
                && let Some(factor) = self.gguf.positive(&key)?
            {
                return Ok(Some(factor));
            }
        }
        Ok(None)
    }

    fn yarn(&self, truncate: bool) -> Result<Value> {
        let number = |key: &str| self.gguf.positive(&self.key(key));
        Ok(json!({
            "rope_type": "yarn",
            "factor": self.gguf.require_positive(&self.key("rope.scaling.factor"))?,
            "original_max_position_embeddings": self.require("rope.scaling.original_context_length")?,
            "beta_fast": number("rope.scaling.yarn_beta_fast")?.unwrap_or(32.0),
            "beta_slow": number("rope.scaling.yarn_beta_slow")?.unwrap_or(1.0),
            "truncate": truncate,
            // 1 stands for none.
            "attention_factor": number("rope.scaling.yarn_attn_factor")?.filter(|&factor| factor != 1.0),
        }))
    }

    /// Llama 3's scaling, of which the file states only the resulting factors.
    fn llama3_scaling(&self) -> Result<Value> {
        let (gguf, head_dim) = (self.gguf, self.gguf.head_dim()?);
        let info = gguf.info(ROPE_FACTORS).filter(|t| t.kind.name == "F32" && t.shape == [head_dim / 2]);
        let Some(info) = info else {
            return gguf.bad(format!("tensor `{ROPE_FACTORS}` is not F32 of shape [{}]", head_dim / 2));
        };
        let stored: Vec<f64> =
            gguf.data(info).as_chunks().0.iter().map(|&b| f64::from(f32::from_le_bytes(b))).collect();
        let factor = stored.iter().copied().fold(1.0, f64::max);
        let theta = gguf.positive(&self.key("rope.freq_base"))?.unwrap_or(10000.0);
        let frequencies = |scaling| inv_freq(&RopeParameters::new(head_dim, theta, scaling)).0;
        let plain = frequencies(RopeScaling::Plain);
        let scaled = frequencies(RopeScaling::Llama3 {
            factor,
            low_freq_factor: LLAMA3_LOW,
            high_freq_factor: LLAMA3_HIGH,
            original_context: LLAMA3_CONTEXT,
        });
        let expected =
            plain.iter().zip(&scaled).map(|(&plain, &scaled)| f64::from(plain) / f64::from(scaled));
        if !stored.iter().zip(expected).all(|(s, e)| (s - e).abs() <= ROPE_TOLERANCE * e) {
            return gguf.unsupported(format!("`{ROPE_FACTORS}` that is not Llama 3's scaling"));
        }
        Ok(json!({
            "rope_type": "llama3",
            "factor": factor,
            "low_freq_factor": LLAMA3_LOW,
            "high_freq_factor": LLAMA3_HIGH,
            "original_max_position_embeddings": LLAMA3_CONTEXT as u64,
        }))
    }
}
