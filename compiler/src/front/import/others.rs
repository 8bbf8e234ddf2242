//! Published classes that nobody imports, and why: what a refusal says of them.

use kernmill_os::text::shortened;

/// The document that says which architectures run, and which do not.
const DOCUMENT: &str = "docs/user/architectures.md";

const EXPERT_NAMES: &str = "names of tensors with the number of an expert";
const LAYER_NORM: &str = "layer norms, which take the mean off";
const PARTIAL_ROPE: &str = "a rotation of a part of each head";
const NEIGHBOUR_ROPE: &str = "a rotation of neighbouring elements";
const PARTS_OF_TENSORS: &str = "one tensor that holds several matrices, one below the other";
const NO_ROPE_LAYERS: &str = "layers without RoPE among others with it";
const TWO_KINDS_OF_LAYERS: &str = "two kinds of layers in one model";
const SHARED_EXPERT_GATE: &str = "the gate of a shared expert, a column times a row";
const ONE_PLUS: &str = "norms whose weight is 1 + w";
const LATENT: &str = "latent attention";
const RECURRENT: &str = "layers with a state in place of attention";
const POSITIONS: &str = "learned or linear positions";
const IMAGES: &str = "images as input";
const ENCODER: &str = "an encoder, which reads a text and writes none by itself";

/// Classes with what they lack an operation for. A row's names are its classes, values of `model_type`, and
/// architectures in GGUF files.
const MISSING: &[(&[&str], &[&str])] = &[
    (&["Qwen3MoeForCausalLM", "qwen3_moe", "qwen3moe"], &[EXPERT_NAMES]),
    (&["Qwen3NextForCausalLM", "qwen3_next", "qwen3next"], &[RECURRENT, ONE_PLUS]),
    (&["Qwen2MoeForCausalLM", "qwen2_moe", "qwen2moe"], &[EXPERT_NAMES, SHARED_EXPERT_GATE]),
    (&["GemmaForCausalLM", "gemma"], &[ONE_PLUS]),
    (&["Gemma2ForCausalLM", "gemma2"], &[ONE_PLUS, "a cap on the logits of attention"]),
    (
        &["Gemma3ForCausalLM", "Gemma3ForConditionalGeneration", "gemma3", "gemma3_text"],
        &[ONE_PLUS, "two RoPEs by layer"],
    ),
    (&["PhiForCausalLM", "phi", "phi2"], &[LAYER_NORM, PARTIAL_ROPE]),
    (&["Phi3ForCausalLM", "phi3"], &[PARTS_OF_TENSORS]),
    (&["MixtralForCausalLM", "mixtral"], &[EXPERT_NAMES]),
    (&["DeepseekV2ForCausalLM", "deepseek_v2", "deepseek2"], &[LATENT, EXPERT_NAMES, TWO_KINDS_OF_LAYERS]),
    (&["DeepseekV3ForCausalLM", "deepseek_v3"], &[LATENT, EXPERT_NAMES, TWO_KINDS_OF_LAYERS]),
    (&["OlmoForCausalLM", "olmo"], &[LAYER_NORM]),
    (&["OlmoeForCausalLM", "olmoe"], &[EXPERT_NAMES, "experts whose weights do not sum to 1"]),
    (&["CohereForCausalLM", "cohere", "command-r"], &[LAYER_NORM, NEIGHBOUR_ROPE]),
    (&["Cohere2ForCausalLM", "cohere2"], &[LAYER_NORM, NEIGHBOUR_ROPE, NO_ROPE_LAYERS]),
    (&["SmolLM3ForCausalLM", "smollm3"], &[NO_ROPE_LAYERS]),
    (
        &["Llama4ForCausalLM", "Llama4ForConditionalGeneration", "llama4", "llama4_text"],
        &[NO_ROPE_LAYERS, "norms without a weight", "experts chosen by sigmoid"],
    ),
    (&["GraniteMoeForCausalLM", "granitemoe"], &[PARTS_OF_TENSORS]),
    (&["StableLmForCausalLM", "stablelm"], &[LAYER_NORM, PARTIAL_ROPE]),
    (&["GlmForCausalLM", "glm", "chatglm"], &[PARTS_OF_TENSORS, PARTIAL_ROPE, NEIGHBOUR_ROPE]),
    (&["Glm4ForCausalLM", "glm4"], &[PARTS_OF_TENSORS, PARTIAL_ROPE, NEIGHBOUR_ROPE]),
    (&["Glm4MoeForCausalLM", "glm4_moe", "glm4moe"], &[PARTIAL_ROPE, EXPERT_NAMES, TWO_KINDS_OF_LAYERS]),
    (&["Starcoder2ForCausalLM", "starcoder2"], &[LAYER_NORM]),
    (&["GPTNeoXForCausalLM", "gpt_neox", "gptneox"], &[LAYER_NORM, PARTIAL_ROPE, PARTS_OF_TENSORS]),
    (&["GPTJForCausalLM", "gptj"], &[LAYER_NORM, NEIGHBOUR_ROPE]),
    (&["GPT2LMHeadModel", "gpt2"], &[LAYER_NORM, POSITIONS]),
    (&["OPTForCausalLM", "opt"], &[LAYER_NORM, POSITIONS]),
    (&["BloomForCausalLM", "bloom"], &[LAYER_NORM, POSITIONS, PARTS_OF_TENSORS]),
    (&["MptForCausalLM", "mpt"], &[LAYER_NORM, POSITIONS, PARTS_OF_TENSORS]),
    (&["FalconForCausalLM", "falcon"], &[LAYER_NORM, PARTS_OF_TENSORS]),
    (&["MambaForCausalLM", "mamba", "Mamba2ForCausalLM", "mamba2"], &[RECURRENT]),
    (&["JambaForCausalLM", "jamba", "FalconH1ForCausalLM", "falcon_h1", "falcon-h1"], &[RECURRENT]),
    (&["LlavaForConditionalGeneration", "llava", "Mistral3ForConditionalGeneration", "mistral3"], &[IMAGES]),
    (
        &[
            "Qwen2VLForConditionalGeneration",
            "qwen2_vl",
            "qwen2vl",
            "Qwen2_5_VLForConditionalGeneration",
            "qwen2_5_vl",
            "MllamaForConditionalGeneration",
            "mllama",
        ],
        &[IMAGES],
    ),
    (&["BertModel", "BertForMaskedLM", "bert", "XLMRobertaModel", "xlm-roberta"], &[ENCODER]),
    (&["T5ForConditionalGeneration", "t5", "WhisperForConditionalGeneration", "whisper"], &[ENCODER]),
];

/// Classes whose operations are all there, with their other names: a spec can describe them.
const BY_HAND: &[&[&str]] = &[&["Olmo2ForCausalLM", "olmo2"], &["GraniteForCausalLM", "granite"]];

/// The refusal of the architecture `stated`. `supported` lists those that are imported.
pub fn refusal(stated: &str, supported: &str) -> String {
    let name = shortened(stated);
    let why = match MISSING.iter().find(|(names, _)| names.contains(&stated)) {
        Some((_, [ENCODER])) => format!("architecture `{name}` is {ENCODER}"),
        Some((_, missing)) => {
            format!("architecture `{name}` needs {}, for which there is no operation yet", list(missing))
        }
        None if BY_HAND.iter().any(|names| names.contains(&stated)) => {
            format!("architecture `{name}` is not imported, but a spec that you write can describe it")
        }
        None => format!("architecture `{name}` is not known"),
    };
    format!("{why}; supported are: {supported}; {DOCUMENT} has the others")
}

/// Some things as the part of a sentence.
fn list(things: &[&str]) -> String {
    match things {
        [] => String::new(),
        [one] => (*one).to_owned(),
        [others @ .., last] => format!("{} and {last}", others.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_class_is_refused_for_its_own_reason_and_no_way_is_promised_that_is_none() {
        for (names, missing) in MISSING {
            for name in *names {
                let says = refusal(name, "a, b");
                missing.iter().for_each(|what| assert!(says.contains(what), "{says}"));
                assert!(says.ends_with("supported are: a, b; docs/user/architectures.md has the others"));
                assert!(!says.contains("spec"), "{says}");
            }
        }
        assert!(refusal("granite", "").contains("a spec that you write can describe it"));
        assert!(refusal("NewForCausalLM", "").starts_with("architecture `NewForCausalLM` is not known; "));
    }

    #[test]
    fn a_name_stands_for_one_class() {
        let mut names: Vec<&str> = MISSING
            .iter()
            .map(|(names, _)| *names)
            .chain(BY_HAND.iter().copied())
            .flatten()
            .copied()
            .collect();
        let all = names.len();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), all);
    }
}
