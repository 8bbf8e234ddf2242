//! Writes a spec from a GGUF file's metadata and tensors.
//!
//! The metadata is put into the words of a `config.json`, so that both ways share what is known of an
//! architecture; the tensors are the file's own.

mod architectures;
mod encoder;
mod file;
mod keys;
mod modern_bert;
mod rope;

use super::classes::{DescribedModel, ModelClass, classes};
use super::config::ModelConfig;
use super::decoder::DecoderModel;
use super::tensors::{FileNames, ModelTensors, Part};
use super::writer::{TIED, tensor};
use super::{ImportError, others};
use crate::front::spec::{self, Spec};
use architectures::{ARCHITECTURES, Architecture};
use file::{EMBEDDINGS, GgufImport, extend};
use kernmill_checkpoint::Result;
use kernmill_checkpoint::gguf::Gguf;
use rope::LONG_FACTORS;
use serde_json::{Value, json};

/// Missing where the embeddings serve as the unembedding too.
const UNEMBEDDING: &str = "output.weight";

/// The spec, as TOML text, of the model called `name` that `gguf` holds.
///
/// # Errors
/// If the architecture is not supported, or the metadata lacks something or contradicts itself.
pub fn from_gguf(name: &str, gguf: &Gguf) -> Result<String> {
    let stated = gguf.architecture()?;
    let text = match ARCHITECTURES.iter().find(|arch| arch.name == stated) {
        Some(arch) => GgufImport { gguf, arch: arch.name, layers: 0, names: arch.names }.spec(arch, name)?,
        None if stated == encoder::NAME => {
            GgufImport { gguf, arch: encoder::NAME, layers: 0, names: &[] }.encoder_spec(name)?
        }
        None if stated == modern_bert::NAME => {
            GgufImport { gguf, arch: modern_bert::NAME, layers: 0, names: &[] }.modern_bert_spec(name)?
        }
        None => return gguf.unsupported(others::refusal(stated)),
    };
    match Spec::parse("spec", &text).and_then(|spec| spec::lower(&spec)) {
        Ok(_) => Ok(text),
        Err(error) => gguf.bad(format!("its metadata describes a model that does not fit together: {error}")),
    }
}

impl GgufImport<'_> {
    fn spec(mut self, arch: &Architecture, name: &str) -> Result<String> {
        keys::check(self.gguf, arch.name, |key| {
            keys::READ.contains(&key)
                || arch.keys.iter().any(|(own, _)| *own == key)
                || arch.others.contains(&key)
        })?;
        let mut config = self.common()?;
        let class = self.class(arch)?;
        for (key, stated) in arch.keys {
            let key = self.key(key);
            let number = match self.gguf.number(&key) {
                Some(number) => Some(number),
                // An array of equal numbers is one.
                None => self.gguf.whole(&key)?.map(|number| number as f64),
            };
            if let Some(number) = number.filter(|&number| number > 0.0) {
                extend(&mut config, json!({ *stated: number }));
            }
        }
        extend(&mut config, (arch.own)(&self)?);
        let Value::Object(map) = config else { unreachable!("a config is an object") };
        let config = ModelConfig::from_map(map);
        let spec = || {
            let described = DescribedModel { class: class.name, config: &config, stored: None };
            let decoder = self.as_stored((class.decoder)(&described)?);
            decoder.spec(name, &config, &self)
        };
        self.told(spec(), arch.keys)
    }

    /// A spec. An error about one of `keys`, which have another name in a `config.json`, names it as the file
    /// does.
    fn told(&self, spec: super::Result<String>, keys: &[(&str, &str)]) -> Result<String> {
        let own = |what: String| {
            keys.iter().fold(what, |what, (key, stated)| {
                what.replace(&format!("`{stated}`"), &format!("`{}`", self.key(key)))
            })
        };
        match spec {
            Ok(text) => Ok(text),
            Err(ImportError::Unsupported { what }) => self.gguf.unsupported(own(what)),
            Err(ImportError::Bad { what }) => self.gguf.bad(own(what)),
            Err(error) => self.gguf.bad(error.to_string()),
        }
    }

    /// The published class: llama files hold Mixtral's experts as well, and those of Olmo 2 Olmo 3.
    fn class(&self, arch: &Architecture) -> Result<&'static ModelClass> {
        let name = match arch.name {
            "llama" if self.whole("expert_count")?.is_some_and(|experts| experts > 0) => "MixtralForCausalLM",
            "olmo2" if self.whole("attention.sliding_window")?.is_some_and(|window| window > 0) => {
                "Olmo3ForCausalLM"
            }
            _ => arch.class,
        };
        Ok(classes().find(|class| class.name == name).expect("a class of the table"))
    }

    /// The decoder with what the file's tensors say: which biases there are, and which matrices are joined.
    fn as_stored(&self, decoder: DecoderModel) -> DecoderModel {
        let has = |module: &str| self.gguf.info(&format!("blk.0.{module}")).is_some();
        let joined = has("attn_qkv.weight");
        DecoderModel {
            qkv_bias: has(if joined { "attn_qkv.bias" } else { "attn_q.bias" }),
            o_bias: has("attn_output.bias"),
            mlp_bias: has("ffn_up.bias"),
            joined_qkv: joined,
            joined_gate_up: has("ffn_up.weight") && !has("ffn_gate.weight"),
            ..decoder
        }
    }

    /// The tensor of the unembedding.
    fn unembedding(&self) -> &'static str {
        if self.gguf.info(UNEMBEDDING).is_some() { UNEMBEDDING } else { EMBEDDINGS }
    }

    /// A tensor of every layer, as the spec writes it.
    fn layer(&self, part: &Part) -> String {
        self.of_layers(&FileNames::Gguf.of(&part.module, self.names), &part.shape, &part.keys)
    }

    /// A tensor of every layer by its name there.
    fn of_layers(&self, name: &str, shape: &str, keys: &str) -> String {
        let names = (0..self.layers).map(|layer| format!("blk.{layer}.{name}"));
        self.stored(&format!("blk.{{layer}}.{name}"), names.collect(), shape, keys)
    }

    /// A tensor outside of the layers.
    fn tensor(&self, name: &str, shape: &str) -> String {
        self.stored(name, vec![name.to_owned()], shape, "")
    }

    /// `from` in the format that all of `names` have, or in a list of theirs. Binding tells of those that are
    /// missing, and of vectors in blocks.
    fn stored(&self, from: &str, names: Vec<String>, shape: &str, keys: &str) -> String {
        let is_matrix = from.ends_with(".weight") && shape.contains(' ');
        let format = |name: &String| {
            let kind = self.gguf.tensor_type(name)?;
            Some(match (kind.encoding.format().filter(|_| is_matrix), kind.name) {
                (Some(format), _) => format.name(),
                (None, "BF16") => "bf16",
                (None, "F16") => "f16",
                (None, _) => "f32",
            })
        };
        let found: Vec<Option<&str>> = names.iter().map(format).collect();
        let first = found.iter().flatten().next().copied().unwrap_or("f32");
        let formats: Vec<&str> = found.into_iter().map(|format| format.unwrap_or(first)).collect();
        match formats.iter().all(|format| *format == first) {
            true => tensor(from, shape, keys, &[first]),
            false if is_matrix => tensor(from, shape, keys, &formats),
            false => tensor(from, shape, keys, &["f32"]),
        }
    }
}

impl ModelTensors for GgufImport<'_> {
    fn global(&self, _: &DecoderModel) -> super::Result<(&'static str, Vec<(&'static str, String)>)> {
        let head = self.unembedding();
        let comment = if head == EMBEDDINGS { TIED } else { "" };
        let tensors = vec![
            ("embed", self.tensor(EMBEDDINGS, "vocab hidden")),
            ("final_norm", self.tensor("output_norm.weight", "hidden")),
            ("lm_head", self.tensor(head, "vocab hidden")),
        ];
        Ok((comment, tensors))
    }

    fn left_out(&self, _: &DecoderModel) -> Vec<String> {
        let all = self.whole("block_count").ok().flatten().unwrap_or(self.layers);
        let further = (self.layers..all).map(|layer| format!("blk.{layer}."));
        let factors = self.gguf.info(LONG_FACTORS).map(|_| "rope_factors_".to_owned());
        factors.into_iter().chain(further).collect()
    }

    fn layer_comment(&self, _: &DecoderModel) -> &'static str {
        "Tensors of the GGUF file, in the formats that they have there."
    }

    fn texts(&self, parts: &[Part]) -> Vec<(&'static str, String)> {
        parts.iter().map(|part| (part.name, self.layer(part))).collect()
    }

    fn is_in_blocks(&self, module: &str) -> bool {
        let name = match module {
            "logits" => self.unembedding().to_owned(),
            module => format!("blk.{}.{}", self.layers - 1, FileNames::Gguf.of(module, self.names)),
        };
        self.gguf.info(&name).is_some_and(|info| info.kind.encoding.format().is_some())
    }
}
