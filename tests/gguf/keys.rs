//! The meaning of metadata: keys that change the result are understood or refused, and files that hold
//! something else are told apart.

use super::convert::convert;
use super::random;
use super::writer::{BF16, F32, Value, Writer};
use crate::harness::ggufs;
use kernmill_checkpoint::gguf::Gguf;
use kernmill_compiler::front::import::from_gguf;

fn import(bytes: Vec<u8>) -> Result<String, String> {
    let gguf = Gguf::from_bytes("model.gguf", bytes).map_err(|error| error.to_string())?;
    from_gguf("m", &gguf).map_err(|error| error.to_string())
}

#[track_caller]
fn refused(bytes: Vec<u8>, expected: &str) {
    match import(bytes) {
        Ok(_) => panic!("accepted, instead of: {expected}"),
        Err(error) => assert!(error.contains(expected) && !error.contains("corrupt"), "{expected}: {error}"),
    }
}

#[track_caller]
fn with(name: &str, key: &str, value: impl Into<Value>, expected: &str) {
    let mut writer = convert(name, BF16);
    writer.set(key, value);
    refused(writer.bytes(), expected);
}

#[test]
fn keys_that_may_change_the_result_are_refused() {
    let (gpt, llama) = ("gptoss-base", "llama-plain");
    let unknown = "is not known here and may change the result";
    with(llama, "llama.attention.layer_norm_epsilon", 1e-5, unknown);
    with(llama, "llama.attention.temperature_length", 8192, unknown);
    with(llama, "llama.rope.dimension_sections", &[1, 2][..], unknown);
    with(gpt, "gpt-oss.swiglu_clamp_exp", 7.0, "key `gpt-oss.swiglu_clamp_exp` (7.0) is not known here");
    with(gpt, "gpt-oss.expert_weights_scale", 2.5, unknown);
    with(gpt, "gpt-oss.rope.freq_base_swa", 10000.0, "gguf-new-metadata --remove-metadata gpt-oss.rope.fre");
    with(llama, "llama.attention.sliding_window", 4096, "is 4096; supported is: 0");
    with(llama, "llama.attention.scale", 0.5, "key `llama.attention.scale` is 0.5; supported is: 0");
    with(llama, "llama.logit_scale", 0.0625, "key `llama.logit_scale` is 0.0625; supported is: 1");
    with(gpt, "gpt-oss.final_logit_softcapping", 30.0, "is 30.0; supported is: 0");
    with(llama, "llama.attention.causal", false, "is false; supported is: true");
    with(llama, "llama.rope.scaling.attn_factor", 1.2, "is 1.2; supported is: 1");
    with(llama, "llama.vocab_size", 12, "key `llama.vocab_size` is 12, and `token_embd.weight` has");
    with(llama, "general.quantization_version", 1, "is 1; supported is: 2");
    let mut factors = convert(gpt, BF16);
    factors.add("rope_freqs.weight", &[16], 0, vec![0; 64]);
    refused(factors.bytes(), "tensor `rope_freqs.weight` in a gpt-oss model");
}

/// The file of a ModernBERT, with a key changed.
fn modern_bert(key: &str, value: impl Into<Value>) -> Result<String, String> {
    let gguf = Gguf::open(&ggufs().join("modernbert.gguf")).unwrap();
    let mut writer = Writer { keys: gguf.stored_keys().unwrap(), ..Writer::default() };
    for tensor in gguf.tensors() {
        let dims: Vec<u64> = tensor.shape.iter().rev().map(|&dim| dim as u64).collect();
        writer.add(&tensor.name, &dims, F32, gguf.data(tensor).to_vec());
    }
    writer.set(&format!("modern-bert.{key}"), value);
    import(writer.bytes())
}

#[test]
fn keys_of_a_modernbert_say_what_its_layers_see() {
    let windows = |list: &str| format!("window    = {{ {list} }}");
    for (pattern, list) in [
        (Value::from(2), "cycle = [\"full\", \"sliding_window\"]"),
        (3.into(), "list = [\"full\", \"sliding_window\", \"sliding_window\", \"full\"]"),
        ((&[1, 1, 0, 0][..]).into(), "list = [\"sliding_window\", \"sliding_window\", \"full\", \"full\"]"),
    ] {
        let spec = modern_bert("attention.sliding_window_pattern", pattern).unwrap();
        assert!(spec.contains(&windows(list)), "{spec}");
    }
    let without = modern_bert("attention.sliding_window", 0).unwrap();
    assert!(!without.contains("window") && !without.contains("rope.local"), "{without}");
    assert!(modern_bert("hidden_activation", "silu").unwrap().contains("silu(gate) * up"));
    for (key, value, expected) in [
        (
            "attention.causal",
            Value::from(true),
            "`modern-bert.attention.causal` is true; supported is: false",
        ),
        ("attention.head_count_kv", 2.into(), "is 2; supported is: 4, as heads"),
        ("attention.sliding_window_pattern", (&[1, 0][..]).into(), "has 2 entries for 4 layers"),
        ("hidden_activation", "relu".into(), "activation `relu`"),
        ("pooling_type", 4.into(), "for scores by a head of their own"),
        ("rope.scaling.type", "yarn".into(), "`modern-bert.rope.scaling.type` is yarn; supported is: none"),
        ("rope.scaling.factor", 2.0.into(), "is not known here and may change the result"),
        ("rope.freq_base_swa", (-1.0).into(), "`modern-bert.rope.freq_base_swa` is -1.0"),
    ] {
        let error = modern_bert(key, value).unwrap_err();
        assert!(error.contains(expected), "{expected}: {error}");
    }
}

#[test]
fn keys_without_effect_are_passed_over() {
    let mut writer = convert("llama-plain", BF16);
    let plain = import(writer.bytes()).unwrap();
    for (key, value) in [
        ("llama.expert_count", Value::from(0)),
        ("llama.attention.causal", true.into()),
        ("llama.attention.sliding_window", 0.into()),
        ("llama.logit_scale", 1f32.into()),
        ("llama.rope.scaling.finetuned", true.into()),
        ("llama.tensor_data_layout", "Meta AI original pth".into()),
        ("llama.rope.scaling.type", "none".into()),
        ("general.type", "model".into()),
        ("general.quantization_version", 2.into()),
        ("general.tags", (&["a", "b"][..]).into()),
        ("quantize.imatrix.entries_count", 7.into()),
        ("mistral3.attention.temperature_scale", 0.5.into()),
    ] {
        writer.set(key, value);
    }
    assert_eq!(import(writer.bytes()).unwrap(), plain);
}

/// Some writers give a number per layer, and whole numbers where others write floats.
#[test]
fn arrays_of_equal_numbers_are_one_number() {
    let mut writer = convert("llama-plain", BF16);
    let plain = import(writer.bytes()).unwrap();
    let kv_heads = number(&writer, "llama.attention.head_count_kv");
    let heads = number(&writer, "llama.attention.head_count");
    let inner = number(&writer, "llama.feed_forward_length");
    writer.set("llama.attention.head_count_kv", &[kv_heads, kv_heads][..]);
    writer.set("llama.attention.head_count", &[heads, heads][..]);
    writer.set("llama.feed_forward_length", &[inner, inner][..]);
    writer.set("llama.rope.freq_base", 10000);
    assert_eq!(import(writer.bytes()).unwrap(), plain);

    writer.set("llama.attention.head_count_kv", &[kv_heads, kv_heads + 1][..]);
    refused(writer.bytes(), "for some layers and");
    writer.set("llama.attention.head_count_kv", &[][..] as &[i32]);
    refused(writer.bytes(), "key `llama.attention.head_count_kv` is an array of 0: expected a whole number");
    writer.set("llama.attention.head_count_kv", &["2"][..]);
    refused(writer.bytes(), "is an array of 1: expected an array of whole numbers");
}

fn number(writer: &Writer, key: &str) -> i32 {
    let (_, value) = writer.keys.iter().find(|(name, _)| name == key).unwrap();
    i32::from_le_bytes(value.1[..4].try_into().unwrap())
}

#[test]
fn files_that_hold_no_model_say_what_they_are() {
    let llama = "llama-plain";
    let adapter = "it is a LoRA adapter in GGUF form, not a model: give the model's own file";
    with(llama, "general.type", "adapter", adapter);
    with(llama, "adapter.type", "lora", adapter);
    let mut lora = convert(llama, BF16);
    lora.tensors[0].name.push_str(".lora_a");
    refused(lora.bytes(), adapter);
    with(llama, "general.type", "mmproj", "it is a model's encoder for images or sounds (mmproj)");
    with(llama, "general.architecture", "clip", "it is a model's encoder for images or sounds (mmproj)");
    with(llama, "general.type", "imatrix", "it is an importance matrix");
    with(llama, "general.type", "vocab", "key `general.type` is `vocab`; supported is: model");
    let mut vocabulary = convert(llama, BF16);
    vocabulary.set("tokenizer.ggml.tokens", &["a", "b"][..]);
    vocabulary.tensors.clear();
    refused(vocabulary.bytes(), "it holds a vocabulary and no weights");
    let mut short = convert(llama, BF16);
    short.set("llama.block_count", 1000);
    refused(
        short.bytes(),
        "tensor `blk.999.attn_output.weight` is missing, and key `llama.block_count` is 1000",
    );
}

#[test]
fn files_of_other_kinds_say_what_they_are() {
    for (bytes, expected) in [
        (&b"version https://git-lfs.github.com/spec/v1\noid sha256:1"[..], "it is a git-lfs pointer"),
        (b"<!DOCTYPE html><html>", "it is a web page"),
        (b"\x20\0\0\0\0\0\0\0{\"a\": 1}", "it is a safetensors file"),
        (b"PK\x03\x04", "it is a zip archive"),
        (b"tjgg\x03\0\0\0", "it is of a format before GGUF (GGML)"),
        (b"{}", "it is JSON text"),
    ] {
        refused(bytes.to_vec(), expected);
    }
}

/// Names and values from a file are cut in messages.
#[test]
fn long_names_do_not_fill_the_message() {
    let long = "x".repeat(1 << 20);
    let mut writer = random::model(0, &|_| random::named("Q8_0"), &[0; 32]);
    writer.set(&format!("llama.{long}"), 1);
    let error = import(writer.bytes()).unwrap_err();
    assert!(error.len() < 2000, "{} bytes", error.len());
    let mut writer = convert("llama-plain", BF16);
    let tensor = &mut writer.tensors[0];
    tensor.name = long;
    tensor.kind = 19;
    let error = import(writer.bytes()).unwrap_err();
    assert!(error.len() < 2000 && error.contains("is IQ1_S"), "{} bytes", error.len());
}
