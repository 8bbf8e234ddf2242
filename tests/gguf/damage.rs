//! Files that are not what they should be.

use super::convert::convert;
use super::writer::{BF16, F32, MXFP4, Tensor, Value, Writer};
use kernmill_checkpoint::CheckpointError;
use kernmill_checkpoint::gguf::Gguf;
use kernmill_compiler::front::import::from_gguf;
use kernmill_compiler::front::spec::{Spec, lower};
use kernmill_compiler::weights::bind;

/// All that is done with a file before its weights are read.
fn open(bytes: Vec<u8>) -> Result<(), String> {
    let message = |error: CheckpointError| error.to_string();
    let gguf = Gguf::from_bytes("model.gguf", bytes).map_err(message)?;
    let text = from_gguf("m", &gguf).map_err(message)?;
    gguf.tokenizer_json().map_err(message)?;
    if let Some(fault) = gguf.chat_templates().fault {
        return Err(fault);
    }
    let graph = lower(&Spec::parse("spec", &text).unwrap()).unwrap();
    bind(&graph, &gguf.into_checkpoint().map_err(message)?).map_err(message)
}

#[track_caller]
fn refused(bytes: Vec<u8>, expected: &str) {
    match open(bytes) {
        Ok(()) => panic!("accepted, instead of: {expected}"),
        Err(error) => assert!(error.contains(expected), "{expected}: {error}"),
    }
}

#[track_caller]
fn changed(name: &str, change: impl Fn(&mut Writer), expected: &str) {
    let mut writer = convert(name, BF16);
    change(&mut writer);
    refused(writer.bytes(), expected);
}

#[test]
fn the_header_and_the_metadata_are_checked() {
    let whole = convert("gptoss-base", BF16).bytes();
    open(whole.clone()).unwrap();
    let with = |at: usize, bytes: &[u8]| {
        let mut file = whole.clone();
        file[at..at + bytes.len()].copy_from_slice(bytes);
        file
    };
    refused(Vec::new(), "expected a GGUF file, but it is empty");
    refused(whole[..6].to_vec(), "the version at byte 4 is 4 bytes long and runs past the end (6 bytes");
    refused(with(0, b"GGML"), "expected a GGUF file, but it is of no kind that kernmill knows");
    refused(with(4, &1u32.to_le_bytes()), "GGUF version 1; supported are: 2, 3");
    refused(with(4, &3u32.to_be_bytes()), "it is big endian");
    refused(with(8, &u64::MAX.to_le_bytes()), "dimensions, expected 1 to 4");
    refused(with(16, &u64::MAX.to_le_bytes()), "key 20 at byte");
    refused(with(24, &u64::MAX.to_le_bytes()), "key 0 at byte 32 is 18446744073709551615 bytes long");
    let base = "gptoss-base";
    changed(base, |w| w.set("x", Value(13, vec![])), "key `x` has the unknown type 13");
    changed(base, |w| w.set("x", Value(7, vec![2])), "is neither true nor false");
    changed(base, |w| w.keys.push(w.keys[0].clone()), "key `general.architecture` is there twice");
    changed(base, |w| w.alignment = Some(24), "`general.alignment` is not a power of two");
    let array = |kind: u32, count: u64| Value(9, [&kind.to_le_bytes()[..], &count.to_le_bytes()].concat());
    changed(base, |w| w.set("x", array(8, u64::MAX)), "runs past the end");
    changed(base, |w| w.set("x", array(12, u64::MAX)), "the value of key `x`");
    let nested = || array(9, 1).1.repeat(100_000);
    let skip = |bytes: Vec<u8>| Value(9, bytes);
    changed(base, |w| w.set("x", skip(nested())), "nested more than 4 deep");
}

#[test]
fn tensors_must_be_whole_and_apart() {
    let norm = "output_norm.weight";
    let base =
        |change: fn(&mut Tensor), expected| changed("gptoss-base", |w| change(w.tensor(norm)), expected);
    base(|t| t.offset = Some(1 << 40), "does not fit into the file (truncated?)");
    base(|t| t.offset = Some(u64::MAX - 31), "does not fit into the file");
    base(|t| t.offset = Some(4), "at offset 4 is not aligned to 32");
    base(|t| t.offset = Some(0), "overlaps");
    base(|t| t.dims = vec![u64::MAX], "tensor `output_norm.weight`");
    base(|t| t.dims = vec![1 << 32, 1 << 32], "does not fit into the file");
    base(|t| t.dims = vec![0], "has rows of 0 elements");
    base(|t| t.dims = vec![64, 0], "does not fit into the file");
    base(|t| t.dims = vec![], "has 0 dimensions, expected 1 to 4");
    base(|t| t.dims = vec![1; 5], "has 5 dimensions, expected 1 to 4");
    base(|t| t.kind = 19, "is IQ1_S: take a file of the model in Q4_K_M or another type that is read");
    base(|t| t.kind = 15, "is Q8_K: runtimes use it for activations");
    base(|t| t.kind = 31, "is Q4_0_4_4: it is an older layout for one kind of CPU");
    base(|t| t.kind = 99, "has the unknown type 99; supported are: F32, F16, Q4_0, Q4_1");
    base(|t| (t.kind, t.dims) = (MXFP4, vec![33]), "rows of 33 elements of MXFP4, whose blocks have 32");
    base(|t| (t.kind, t.dims) = (12, vec![64]), "rows of 64 elements of Q4_K, whose blocks have 256");
    base(|t| t.kind = MXFP4, "tensor `output_norm.weight` is MXFP4, expected");
    base(|t| t.dims = vec![32], "has shape [32], expected [64]");
    base(|t| t.name = "output_nrom.weight".into(), "is missing (the model's `final_norm`), did you mean");
    base(|t| t.name = "output.weight".into(), "tensor `output.weight` is there twice");
    let extra = |w: &mut Writer| w.add("blk.0.spare", &[1], F32, vec![0; 4]);
    changed("gptoss-base", extra, "1 tensor that the model does not use: blk.0.spare");
    let whole = convert("gptoss-base", BF16).bytes();
    refused(whole[..whole.len() - 200].to_vec(), "(truncated?)");
}

#[test]
fn models_that_are_not_supported_say_why() {
    let (gpt, llama) = ("gptoss-base", "llama-plain");
    changed(
        gpt,
        |w| w.set("general.architecture", "bloom"),
        "architecture `bloom` needs positions that enter scores, for which there is no operation yet; \
         docs/user/architectures.md lists the architectures that run",
    );
    changed(gpt, |w| w.remove("general.architecture"), "key `general.architecture` is missing");
    changed(gpt, |w| w.remove("gpt-oss.block_count"), "key `gpt-oss.block_count` is missing");
    changed(gpt, |w| w.set("gpt-oss.block_count", 0), "key `gpt-oss.block_count` is 0");
    changed(gpt, |w| w.set("gpt-oss.block_count", u32::MAX), "expected a whole number up to");
    changed(gpt, |w| w.set("gpt-oss.block_count", 3), "tensor `blk.2.");
    changed(gpt, |w| w.set("gpt-oss.block_count", "two"), "is a string: expected a whole number");
    changed(gpt, |w| w.set("gpt-oss.rope.scaling.factor", f32::NAN), "expected a number above 0");
    changed(
        gpt,
        |w| w.set("gpt-oss.rope.scaling.type", "longrope"),
        "is `longrope`; supported are: none, linear, yarn",
    );
    changed(gpt, |w| w.set("gpt-oss.attention.head_count", 3), "does not fit together");
    changed(llama, |w| w.set("llama.attention.head_count", 3), "does not divide among");
    changed(llama, |w| w.set("llama.expert_count", 8), "`llama.expert_used_count` is missing");
    changed(llama, |w| w.set("llama.rope.dimension_count", 64), "is 64: expected 1 to the head's 32");
}

/// Whatever a file says, it is read or refused.
#[test]
fn cut_and_changed_files_do_no_harm() {
    let mut writer = convert("gptoss-base", BF16);
    writer.set("tokenizer.ggml.model", "gpt2");
    writer.set("tokenizer.ggml.pre", "gpt-4o");
    writer.set("tokenizer.ggml.tokens", &["a", "b", "ab"][..]);
    writer.set("tokenizer.ggml.token_type", &[1, 1, 3][..]);
    writer.set("tokenizer.ggml.merges", &["a b"][..]);
    let whole = writer.bytes();
    open(whole.clone()).unwrap();
    let data: usize = writer.tensors.iter().map(|t| t.data.len().next_multiple_of(32)).sum();
    let head = whole.len() - data;
    for length in (0..head).step_by(3) {
        assert!(open(whole[..length].to_vec()).is_err(), "{length} bytes are accepted");
    }
    let mut rng = fastrand::Rng::with_seed(1);
    for _ in 0..3000 {
        let mut file = whole.clone();
        for _ in 0..rng.usize(1..4) {
            let at = rng.usize(..head);
            file[at] = if rng.bool() { rng.u8(..) } else { file[at] ^ 1 << rng.u8(..8) };
        }
        let _ = open(file);
    }
}
