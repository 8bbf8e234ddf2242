//! Layouts that are not read here, told apart by file names or tensor names, so that an error can say what
//! helps.

use crate::error::CheckpointError;
use std::collections::BTreeSet;
use std::path::Path;

/// Entries of a directory that are looked at.
const MAX_ENTRIES: usize = 4096;

/// A directory without a checkpoint may hold something else: a test of its file names, and advice.
type Instead = (fn(&str) -> bool, &'static str);

/// In order: the first that applies is named.
const INSTEAD: [Instead; 8] = [
    (
        |name| name == "adapter_config.json" || name == "adapter_model.safetensors",
        "it is an adapter: give it as --lora, with its base model",
    ),
    (
        is_shard_name,
        "it has shards but not their index: download model.safetensors.index.json of the same model",
    ),
    (|name| name.ends_with(".gguf"), "it has GGUF files: give one of them"),
    (
        |name| name == "consolidated.safetensors" || name.starts_with("consolidated-0"),
        "consolidated.safetensors is Mistral's own layout: download the files named model... of the same model",
    ),
    (
        |name| name.starts_with("pytorch_model") && name.ends_with(".bin"),
        "pytorch_model.bin is pickled: load it in transformers and save it with save_pretrained, which \
         writes safetensors",
    ),
    (
        |name| name.starts_with("consolidated.") && name.ends_with(".pth"),
        "consolidated.00.pth is Meta's own layout: download the same model as transformers has it",
    ),
    (
        |name| name == "weights.npz" || name.starts_with("weights.") && name.ends_with(".safetensors"),
        "it is an MLX model: download the model that it was made from",
    ),
    (|name| name.ends_with(".safetensors"), "it has safetensors files of other names: give one of them"),
];

/// The error for a directory without a checkpoint.
pub(super) fn no_checkpoint(dir: &Path) -> CheckpointError {
    let entries = std::fs::read_dir(dir).into_iter().flatten().take(MAX_ENTRIES).flatten();
    let names: BTreeSet<String> =
        entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
    let instead = INSTEAD.iter().find_map(|(applies, what)| {
        let name = names.iter().find(|name| applies(name))?;
        Some(format!(", found {name}: {what}"))
    });
    CheckpointError::NoCheckpoint { path: dir.to_owned(), found: instead.unwrap_or_default() }
}

/// Whether a file is one of several shards, by its name.
pub(super) fn is_shard(path: &Path) -> bool {
    path.file_name().and_then(|name| name.to_str()).is_some_and(is_shard_name)
}

/// `...-00001-of-00002.safetensors`.
fn is_shard_name(name: &str) -> bool {
    let Some(stem) = name.strip_suffix(".safetensors") else { return false };
    let mut parts = stem.rsplit('-');
    let number =
        |part: Option<&str>| part.is_some_and(|p| !p.is_empty() && p.bytes().all(|b| b.is_ascii_digit()));
    number(parts.next()) && parts.next() == Some("of") && number(parts.next()) && parts.next().is_some()
}

/// The marks of a layout: start and end of a tensor's name, and advice.
const MARKS: &[(&str, &str, &str)] = &[
    (
        "block.",
        ".attn.qkv.weight",
        "the tensors are in OpenAI's `original` layout: download the files beside that directory",
    ),
    (
        "layers.",
        ".attention.wq.weight",
        "the tensors are in the layout of Meta and Mistral: download the same model as transformers has it",
    ),
    (
        "base_model.model.",
        "",
        "the tensors are an adapter's: give its directory as --lora, with its base model",
    ),
    ("", ".lora_A.weight", "the tensors are an adapter's: give its directory as --lora, with its base model"),
    ("model.language_model.", "", "the model is one part of several: kernmill reads models of text only"),
    ("language_model.", "", "the model is one part of several: kernmill reads models of text only"),
    (
        "",
        ".qweight",
        "the matrices are quantised (GPTQ or AWQ), and the config.json beside them does not say how",
    ),
    ("", ".weight_scale", "the matrices are quantised, and the config.json beside them does not say how"),
    (
        "",
        ".weight_scale_inv",
        "the matrices are quantised (FP8), and the config.json beside them does not say how",
    ),
    (
        "",
        ".weight.absmax",
        "the matrices are quantised (bitsandbytes): use the model that they were made from, or a GGUF file",
    ),
    ("", ".biases", "the matrices are quantised (MLX), and the config.json beside them does not say how"),
    (
        "layers.",
        ".self_attn.q_proj.weight",
        "the names lack `model.`: the file holds the model without its head, save it as a ...ForCausalLM",
    ),
    ("_orig_mod.", "", "the names have the prefix of a compiled module: save the model inside it"),
];

/// The other layout that tensors of these names have, and what helps; `None` if it is not known here.
pub fn other_layout<'n>(names: impl Iterator<Item = &'n str> + Clone) -> Option<&'static str> {
    let has =
        |start: &str, end: &str| names.clone().any(|name| name.starts_with(start) && name.ends_with(end));
    MARKS.iter().find(|(start, end, _)| has(start, end)).map(|(_, _, what)| *what)
}

/// Ends of the names of buffers that some exporters write and that the graph computes itself.
const BUFFER_SUFFIXES: [&str; 8] = [
    ".rotary_emb.inv_freq",
    ".rotary_emb.original_inv_freq",
    ".rotary_emb.cos_cached",
    ".rotary_emb.sin_cached",
    ".masked_bias",
    ".attn.causal_mask",
    "embeddings.position_ids",
    "rope_freqs.weight",
];

/// Whether a tensor of this name is a buffer that the graph computes itself.
pub fn is_buffer(name: &str) -> bool {
    BUFFER_SUFFIXES.iter().any(|suffix| name.ends_with(suffix)) || BUFFER_SUFFIXES.contains(&name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shards_are_known_by_their_numbers() {
        for name in ["model-00001-of-00002.safetensors", "x-model-1-of-9.safetensors"] {
            assert!(is_shard_name(name), "{name}");
        }
        for name in [
            "model.safetensors",
            "model-of-00002.safetensors",
            "00001-of-00002.safetensors",
            "model-1-of-2.bin",
        ] {
            assert!(!is_shard_name(name), "{name}");
        }
    }

    #[test]
    fn directories_without_a_checkpoint_say_what_they_hold() {
        for (name, says) in [
            ("adapter_config.json", "--lora"),
            ("model-00001-of-00003.safetensors", "not their index"),
            ("q4.gguf", "found q4.gguf: it has GGUF files"),
            ("consolidated.safetensors", "Mistral's own layout"),
            ("pytorch_model-00001-of-00002.bin", "save_pretrained"),
            ("consolidated.00.pth", "Meta's own layout"),
            ("weights.00.safetensors", "MLX"),
            ("pruned.safetensors", "found pruned.safetensors"),
        ] {
            let dir = tempfile::tempdir().unwrap();
            std::fs::write(dir.path().join(name), "").unwrap();
            let error = no_checkpoint(dir.path()).to_string();
            assert!(
                error.contains("no checkpoint found: expected model.safetensors") && error.contains(says),
                "{error}"
            );
        }
        let dir = tempfile::tempdir().unwrap();
        let error = no_checkpoint(dir.path()).to_string();
        assert!(error.ends_with("and its shards"), "{error}");
    }

    #[test]
    fn layouts_are_known_by_their_names() {
        for (names, says) in [
            (&["embedding.weight", "block.0.attn.qkv.weight"][..], "`original` layout"),
            (&["layers.0.attention.wq.weight", "tok_embeddings.weight"], "Meta and Mistral"),
            (&["base_model.model.model.layers.0.self_attn.q_proj.lora_A.weight"], "--lora"),
            (&["layers.0.self_attn.q_proj.weight", "norm.weight"], "the names lack `model.`"),
            (&["model.layers.0.self_attn.q_proj.qweight"], "GPTQ"),
            (&["model.layers.0.self_attn.q_proj.weight_scale_inv"], "FP8"),
            (&["model.layers.0.self_attn.q_proj.biases", "model.layers.0.self_attn.q_proj.scales"], "MLX"),
        ] {
            let found = other_layout(names.iter().copied()).unwrap();
            assert!(found.contains(says), "{names:?}: {found}");
        }
        let ordinary = [
            "model.layers.0.self_attn.q_proj.weight",
            "model.layers.0.self_attn.q_proj.bias",
            "lm_head.weight",
        ];
        assert_eq!(other_layout(ordinary.into_iter()), None);
    }
}
