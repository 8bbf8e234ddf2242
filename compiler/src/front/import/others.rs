//! Published classes that nobody imports, and why: what a refusal says of them.

use kernmill_os::text::shortened;

/// The document that says which architectures run, and which do not.
const DOCUMENT: &str = "docs/user/architectures.md";

const LATENT: &str = "latent attention";
const RECURRENT: &str = "layers with a state in place of attention";
const POSITIONS: &str = "positions that enter scores";
const IMAGES: &str = "images as input";
const ENCODER: &str = "an encoder, which reads a text and writes none by itself";

/// Classes with what they lack an operation for. A row's names are its classes, values of `model_type`, and
/// architectures in GGUF files.
const MISSING: &[(&[&str], &[&str])] = &[
    (&["Qwen3NextForCausalLM", "qwen3_next", "qwen3next"], &[RECURRENT]),
    (&["Gemma3nForConditionalGeneration", "gemma3n"], &["several residual streams"]),
    (
        &["Gemma4ForCausalLM", "Gemma4ForConditionalGeneration", "gemma4", "gemma4_text"],
        &["heads that differ by layer"],
    ),
    (&["DeepseekV2ForCausalLM", "deepseek_v2", "deepseek2"], &[LATENT]),
    (&["DeepseekV3ForCausalLM", "deepseek_v3"], &[LATENT]),
    (
        &["Llama4ForCausalLM", "Llama4ForConditionalGeneration", "llama4", "llama4_text"],
        &["experts whose inputs are weighted"],
    ),
    (&["BloomForCausalLM", "bloom"], &[POSITIONS]),
    (&["MptForCausalLM", "mpt"], &[POSITIONS]),
    (&["MambaForCausalLM", "mamba", "Mamba2ForCausalLM", "mamba2"], &[RECURRENT]),
    (&["JambaForCausalLM", "jamba", "FalconH1ForCausalLM", "falcon_h1", "falcon-h1"], &[RECURRENT]),
    (&["Lfm2ForCausalLM", "lfm2", "Lfm2MoeForCausalLM", "lfm2_moe", "lfm2moe"], &[RECURRENT]),
    (&["LlavaForConditionalGeneration", "llava"], &[IMAGES]),
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
    (&["T5ForConditionalGeneration", "t5", "WhisperForConditionalGeneration", "whisper"], &[ENCODER]),
];

/// Classes whose operations are all there, with their other names: a spec can describe them.
const BY_HAND: &[&[&str]] = &[
    &["GPT2LMHeadModel", "gpt2"],
    &["OPTForCausalLM", "opt"],
    &["CohereForCausalLM", "cohere", "command-r"],
    &["Cohere2ForCausalLM", "cohere2"],
    &["OlmoForCausalLM", "olmo"],
    &["PhiForCausalLM", "phi", "phi2"],
    &["StableLmForCausalLM", "stablelm"],
    &["GlmForCausalLM", "glm", "chatglm"],
    &["Starcoder2ForCausalLM", "starcoder2"],
    &["GPTNeoXForCausalLM", "gpt_neox", "gptneox"],
    &["GPTJForCausalLM", "gptj"],
    &["GemmaForCausalLM", "gemma"],
];

/// The refusal of the architecture `stated`.
pub fn refusal(stated: &str) -> String {
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
    format!("{why}; {DOCUMENT} lists the architectures that run")
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
                let says = refusal(name);
                missing.iter().for_each(|what| assert!(says.contains(what), "{says}"));
                assert!(says.ends_with("; docs/user/architectures.md lists the architectures that run"));
                assert!(!says.contains("spec"), "{says}");
            }
        }
        assert!(refusal("cohere").contains("a spec that you write can describe it"));
        assert!(refusal("NewForCausalLM").starts_with("architecture `NewForCausalLM` is not known; "));
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
