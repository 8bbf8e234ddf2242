//! GGUF files: the same weights give the same logits, and damaged files are refused.

mod blocks;
mod command;
pub mod convert;
mod damage;
pub mod decode;
mod dense;
mod families;
mod keys;
mod random;
mod split;
mod synth;
pub mod tokenizer;
pub mod writer;

use crate::harness::{Model, oracle, read};
use convert::{convert, q8_0};
use kernmill_checkpoint::Checkpoint;
use kernmill_checkpoint::gguf::Gguf;
use kernmill_compiler::front::import::from_gguf;
use kernmill_compiler::ir::{Activations, Factor, Graph, Node};
use kernmill_compiler::passes::quant::Preset;
use kernmill_plan::format::{WeightFormat, int8, pack_stored_tile};
use kernmill_runtime::{EngineConfig, SequenceTokens, Steps};
use std::fs;
use std::path::Path;
use writer::{BF16, F16, F32, MXFP4, Q4_0, Q8_0, Writer};

/// Logits of every one of `tokens`, as bits.
fn logits(model: &Model, preset: Preset, tokens: &[u32]) -> Vec<u32> {
    let mut engine = model.engine(preset, EngineConfig::default());
    let id = engine.create().unwrap();
    let mut logits = Vec::new();
    engine
        .extend_in_order(&[SequenceTokens::all(id, tokens)], &mut |row| {
            logits.extend(row.logits.iter().map(|x| x.to_bits()))
        })
        .unwrap();
    logits
}

fn tokens(name: &str) -> Vec<u32> {
    tokens_in(&oracle(name))
}

/// The tokens of a fixture's expected logits.
fn tokens_in(directory: &Path) -> Vec<u32> {
    read(&fs::read(directory.join("oracle.safetensors")).unwrap(), "tokens", u32::from_le_bytes)
}

/// The graph of a file whose tensors are those of `graph`, all of them in f32.
fn in_f32(graph: &Graph) -> Graph {
    let mut graph = graph.clone();
    for tensor in &mut graph.tensors {
        (tensor.stored, tensor.format) = (WeightFormat::F32, WeightFormat::F32);
    }
    graph
}

fn model(writer: &Writer) -> Model {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("model.gguf");
    fs::write(&path, writer.bytes()).unwrap();
    Model::open(&path)
}

pub fn gguf(bytes: Vec<u8>) -> Gguf {
    Gguf::from_bytes("model.gguf", bytes).unwrap()
}

#[test]
fn logits_are_those_of_the_safetensors() {
    for name in ["gptoss-base", "llama-plain"] {
        let tokens = tokens(name);
        let (expected, actual) = (Model::open(&oracle(name)), model(&convert(name, BF16)));
        for preset in Preset::ALL {
            let (expected, actual) = (logits(&expected, preset, &tokens), logits(&actual, preset, &tokens));
            assert!(expected == actual, "{name}, {}: logits differ", preset.name());
        }
    }
}

#[test]
fn quantised_matrices_are_those_that_they_stand_for() {
    let tokens = tokens("llama-plain");
    let mut dequantised = convert("llama-plain", F32);
    for tensor in dequantised.tensors.iter_mut().filter(|tensor| tensor.dims.len() == 2) {
        let floats: Vec<f32> = tensor.data.as_chunks().0.iter().map(|&b| f32::from_le_bytes(b)).collect();
        let rounded = floats.chunks(32).flat_map(|block| q8_0(block).1);
        tensor.data = rounded.flat_map(|x| x.to_le_bytes()).collect();
    }
    let (mut expected, actual) = (model(&dequantised), model(&convert("llama-plain", Q8_0)));
    // The spec of a file in blocks leaves some inputs in f32.
    expected.graph = in_f32(&actual.graph);
    // In `fast`, f32 may become int4.
    for preset in [Preset::Exact, Preset::Faithful, Preset::Bf16] {
        assert!(logits(&expected, preset, &tokens) == logits(&actual, preset, &tokens), "{}", preset.name());
    }
}

#[test]
fn rounding_a_q8_0_block_that_reaches_127_gives_it_again() {
    let mut rng = fastrand::Rng::with_seed(7);
    let mut tiles = [(); 2].map(|()| vec![0; WeightFormat::Int8.tile(32).bytes()]);
    for _ in 0..2000 {
        let factor = 2f32.powi(rng.i32(-12..8));
        let block: Vec<f32> = (0..32).map(|_| (rng.f32() - 0.5) * factor).collect();
        let (bytes, values) = q8_0(&block);
        int8::pack_tile(32, &values, &mut tiles[0]).unwrap();
        pack_stored_tile(WeightFormat::Int8, 32, &bytes, &mut tiles[1]).unwrap();
        assert_eq!(tiles[0], tiles[1]);
    }
}

/// Elements of the older versions and of another alignment than the usual one.
#[test]
fn blocks_are_read_in_their_order() {
    let scale = half::f16::from_f32(0.5).to_le_bytes();
    let nibbles: Vec<u8> = (0..16u8).map(|i| i | (15 - i) << 4).collect();
    let bytes: Vec<u8> = (0..32).map(|i| (i * 7 - 100i32) as u8).collect();
    let mut writer = Writer { version: Some(2), alignment: Some(64), ..Writer::default() };
    writer.set("general.architecture", "other");
    writer.add("q4", &[32, 1], Q4_0, [&scale[..], &nibbles].concat());
    writer.add("q8", &[32, 1], Q8_0, [&scale[..], &bytes].concat());
    writer.add("mx", &[32, 1, 1], MXFP4, [&[128][..], &nibbles].concat());
    writer.add(
        "half",
        &[2],
        F16,
        [half::f16::from_f32(1.5), half::f16::from_f32(-2.0)].map(|x| x.to_le_bytes()).concat(),
    );
    let checkpoint = gguf(writer.bytes()).into_checkpoint().unwrap();
    assert!(checkpoint.is_gguf());
    let rows = |name: &str| {
        let view = checkpoint.tensor(name).unwrap();
        let mut out = Vec::new();
        view.encoding.decode(view.dtype, view.data, &mut out);
        (format!("{:?}", view.encoding), out)
    };
    let fp4 = [0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0, 0.0, -0.5, -1.0, -1.5, -2.0, -3.0, -4.0, -6.0f32];
    let codes = || (0..16).chain((0..16).rev());
    assert_eq!(rows("q4"), ("Q4_0".into(), codes().map(|q| (q as f32 - 8.0) * 0.5).collect()));
    assert_eq!(rows("q8"), ("Q8_0".into(), (0..32).map(|i| (i * 7 - 100) as f32 * 0.5).collect()));
    assert_eq!(rows("mx"), ("MXFP4".into(), codes().map(|code| fp4[code] * 2.0).collect()));
    assert_eq!(rows("half"), ("plain".into(), vec![1.5, -2.0]));
    assert_eq!(checkpoint.tensor("mx").unwrap().shape, [1, 1, 32]);
}

#[test]
fn the_spec_names_the_files_tensors() {
    let text = from_gguf("m", &gguf(convert("gptoss-base", BF16).bytes())).unwrap();
    for line in [
        "norm_eps       = 1e-5",
        "window = { list = [\"sliding_window\", \"full\"] }",
        "lm_head    = { from = \"output.weight\", shape = [\"vocab\", \"hidden\"], format = \"bf16\" }",
        "from = \"blk.{layer}.ffn_up_exps.weight\", shape = [\"experts\", \"expert_hidden\", \"hidden\"], \
         format = \"mxfp4\"",
        "beta_fast = 32.0, beta_slow = 1.0, original_context = 64, truncate = false",
    ] {
        assert!(text.contains(line), "{line} is not in:\n{text}");
    }
    let mut tied = convert("llama-plain", BF16);
    tied.tensors.retain(|tensor| tensor.name != "output.weight");
    let text = from_gguf("m", &gguf(tied.bytes())).unwrap();
    assert!(text.contains("lm_head    = { from = \"token_embd.weight\""), "{text}");
}

/// The products whose inputs a file's spec asks other roundings for than the preset's, and these.
fn kept_inputs(writer: &Writer) -> Vec<String> {
    let graph = model(writer).graph;
    let asked = |node: &Node| match node.op.matmul()?.x {
        Factor::F32(Activations::AsPreset) => None,
        Factor::F32(asked) => Some(format!("{} {}", graph.value(node.output).name, asked.name())),
        _ => None,
    };
    graph.nodes.iter().filter_map(asked).collect()
}

#[test]
fn inputs_keep_more_than_8_bits_where_the_matrix_is_in_blocks() {
    let (plain, blocks) = (convert("llama-plain", BF16), convert("llama-plain", Q8_0));
    let with_blocks = |names: &[&str]| {
        let mut mixed = plain.clone();
        for tensor in mixed.tensors.iter_mut().filter(|tensor| names.contains(&tensor.name.as_str())) {
            *tensor = blocks.tensors.iter().find(|other| other.name == tensor.name).unwrap().clone();
        }
        mixed
    };
    let all = [
        "layers.0.v q8x2",
        "layers.1.v q8x2",
        "layers.1.gate q8x2",
        "layers.1.up q8x2",
        "layers.1.down q8x2",
        "logits f32",
    ];
    assert_eq!(kept_inputs(&blocks), all);
    assert_eq!(kept_inputs(&plain), Vec::<String>::new());
    assert_eq!(kept_inputs(&with_blocks(&["blk.1.ffn_down.weight"])), ["layers.1.down q8x2"]);
    assert_eq!(kept_inputs(&with_blocks(&["output.weight"])), ["logits f32"]);
    assert_eq!(
        kept_inputs(&with_blocks(&["blk.0.ffn_down.weight", "token_embd.weight"])),
        Vec::<String>::new()
    );
    let mut tied = with_blocks(&["token_embd.weight"]);
    tied.tensors.retain(|tensor| tensor.name != "output.weight");
    assert_eq!(kept_inputs(&tied), ["logits f32"]);
    assert_eq!(kept_inputs(&convert("gptoss-base", Q8_0)), Vec::<String>::new());
}

#[test]
fn llama_3s_frequency_factors_are_recognised() {
    let mut writer = convert("llama-plain", BF16);
    writer.set("llama.rope.freq_base", 500_000f32);
    // Wavelengths under 2048 tokens are kept, those over 8192 stretched by 8; between them the frequency is
    // interpolated.
    let factors = (0..16).map(|i| {
        let wavelength = std::f64::consts::TAU * 500_000f64.powf(f64::from(i) / 16.0);
        let smooth = ((8192.0 / wavelength - 1.0) / 3.0).clamp(0.0, 1.0);
        (1.0 / ((1.0 - smooth) / 8.0 + smooth)) as f32
    });
    writer.add("rope_freqs.weight", &[16], F32, factors.flat_map(f32::to_le_bytes).collect());
    let text = from_gguf("m", &gguf(writer.bytes())).unwrap();
    let scaling = "kind = \"llama3\", factor = 8.0, low_freq_factor = 1.0, high_freq_factor = 4.0, \
        original_context = 8192";
    assert!(text.contains(scaling), "{text}");
    let graph = kernmill_compiler::front::spec::lower(
        &kernmill_compiler::front::spec::Spec::parse("m", &text).unwrap(),
    )
    .unwrap();
    let checkpoint: Checkpoint = gguf(writer.bytes()).into_checkpoint().unwrap();
    kernmill_compiler::weights::bind(&graph, &checkpoint).unwrap();

    writer.tensor("rope_freqs.weight").data[60..].copy_from_slice(&3f32.to_le_bytes());
    let error = from_gguf("m", &gguf(writer.bytes())).unwrap_err().to_string();
    assert!(error.contains("`rope_freqs.weight` that is not Llama 3's scaling"), "{error}");
}
