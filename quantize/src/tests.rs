use super::QuantizeArgs;
use clap::Parser;
use fastrand::Rng;
use kernmill::Result;
use kernmill::observe::{Observer, Silent};
use kernmill_checkpoint::gguf::{Gguf, Imatrix, ImatrixEntry, NewGguf};
use kernmill_plan::format::{WeightFormat, read_stored};
use serde_json::Value;
use std::fs;
use std::path::Path;
use std::sync::Mutex;
use tempfile::TempDir;

#[derive(Parser)]
struct Command {
    #[command(flatten)]
    args: QuantizeArgs,
}

/// Notes that were made.
#[derive(Default)]
struct Notes(Mutex<Vec<String>>);

impl Observer for Notes {
    fn note(&self, text: &str) {
        self.0.lock().unwrap().push(text.to_owned());
    }
}

/// Rows and columns of the matrices, each with their name; two experts have one.
const MATRICES: [(&str, [u64; 3]); 6] = [
    ("token_embd.weight", [256, 40, 1]),
    ("output.weight", [256, 40, 1]),
    ("blk.0.attn_q.weight", [256, 16, 1]),
    ("blk.0.attn_v.weight", [96, 8, 1]),
    ("blk.0.ffn_gate_inp.weight", [256, 2, 1]),
    ("blk.0.ffn_up_exps.weight", [256, 24, 2]),
];

/// A directory with `model.gguf`, a file in F32 with a norm.
fn model() -> TempDir {
    let mut file = NewGguf::default();
    file.set("general.architecture", "gpt-oss");
    file.set("general.file_type", 0u32);
    file.set("tokenizer.ggml.tokens", &["a", "b"][..]);
    let mut rng = Rng::with_seed(1);
    let mut data = Vec::new();
    let mut add = |name: &str, dims: &[u64]| {
        let count: u64 = dims.iter().product();
        file.add(name, dims, 0, 4 * count);
        data.extend((0..count).flat_map(|_| ((rng.f32() + rng.f32() - 1.0) * 0.1).to_le_bytes()));
        data.resize(data.len().next_multiple_of(64), 0);
    };
    for (name, [cols, rows, experts]) in MATRICES {
        let dims = [cols, rows, experts];
        add(name, if experts == 1 { &dims[..2] } else { &dims });
    }
    add("blk.0.attn_norm.weight", &[256]);
    file.alignment = Some(64);
    let dir = TempDir::new().unwrap();
    fs::write(dir.path().join("model.gguf"), [file.head(&file.offsets()), data].concat()).unwrap();
    dir
}

/// Runs the command on `model.gguf` in a directory with this many threads.
pub(crate) fn quantize(dir: &Path, threads: usize, args: &str, observer: &dyn Observer) -> Result<String> {
    let path = |name: &str| dir.join(name).display().to_string();
    let words = args.split(' ').map(|word| match word.contains('.') && !word.contains('=') {
        true if word.parse::<f64>().is_err() => path(word),
        _ => word.to_owned(),
    });
    let all = ["quantize".to_owned(), path("model.gguf")].into_iter().chain(words);
    let command = Command::try_parse_from(all).unwrap_or_else(|error| panic!("{error}"));
    command.args.run_with(threads, observer).map(|written| written.about)
}

fn types(dir: &Path, name: &str) -> Vec<(String, &'static str)> {
    let gguf = Gguf::open(&dir.join(name)).unwrap();
    gguf.tensors().iter().map(|info| (info.name.clone(), info.kind.name)).collect()
}

#[test]
fn files_are_the_same_from_any_number_of_threads() {
    let dir = model();
    let about = quantize(dir.path(), 1, "-o a.gguf --type q4_k_m --report a.json", &Silent).unwrap();
    assert!(about.contains(" bits a weight, made of "), "{about}");
    let file = fs::read(dir.path().join("a.gguf")).unwrap();
    for threads in [2, 5] {
        quantize(dir.path(), threads, "-o b.gguf --type q4_k_m --report b.json", &Silent).unwrap();
        assert!(fs::read(dir.path().join("b.gguf")).unwrap() == file, "{threads}");
    }
    let report = |name: &str| fs::read_to_string(dir.path().join(name)).unwrap();
    assert_eq!(report("a.json"), report("b.json"));
    let report: Value = serde_json::from_str(&report("a.json")).unwrap();
    assert_eq!(report["bytes"], file.len());
    let errors = |tensor: &Value| tensor["relative_error"].as_f64().unwrap();
    let errors: Vec<f64> = report["tensors"].as_array().unwrap().iter().map(errors).collect();
    assert!(errors.iter().filter(|error| **error > 0.004 && **error < 0.1).count() == 5, "{errors:?}");
}

#[test]
fn types_are_those_of_the_recipe_and_all_else_is_kept() {
    let dir = model();
    quantize(dir.path(), 2, "-o a.gguf --type q4_k_m --keep attn_q=q8_0", &Silent).unwrap();
    let expected = [
        ("blk.0.attn_norm.weight", "F32"),
        ("blk.0.attn_q.weight", "Q8_0"),
        // Rows of 96 are not whole blocks of 256.
        ("blk.0.attn_v.weight", "Q8_0"),
        ("blk.0.ffn_gate_inp.weight", "F32"),
        ("blk.0.ffn_up_exps.weight", "Q4_K"),
        ("output.weight", "Q6_K"),
        ("token_embd.weight", "Q4_K"),
    ];
    assert_eq!(types(dir.path(), "a.gguf"), expected.map(|(name, kind)| (name.to_owned(), kind)));
    let (before, after) =
        ["model.gguf", "a.gguf"].map(|name| Gguf::open(&dir.path().join(name)).unwrap()).into();
    assert_eq!(after.texts("tokenizer.ggml.tokens").unwrap(), Some(vec!["a", "b"]));
    assert_eq!(after.whole("general.file_type").unwrap(), Some(15));
    let norm = |gguf: &Gguf| gguf.data(gguf.info("blk.0.attn_norm.weight").unwrap()).to_vec();
    assert_eq!(norm(&after), norm(&before));
    // The rows are where they were.
    let (mut back, info) = (Vec::new(), "blk.0.ffn_up_exps.weight");
    read_stored(WeightFormat::Q4K, after.data(after.info(info).unwrap()), &mut back);
    let original = before.data(before.info(info).unwrap()).as_chunks().0.iter();
    for (back, x) in back.iter().zip(original.map(|bytes| f32::from_le_bytes(*bytes))) {
        assert!((back - x).abs() < 0.02, "{back} {x}");
    }
    // Blocks of few bits are rounded again only if that is asked for, and never to more.
    fs::rename(dir.path().join("a.gguf"), dir.path().join("model.gguf")).unwrap();
    let error = quantize(dir.path(), 1, "-o b.gguf --type all:q4_0 --keep attn_v=q5_0", &Silent).unwrap_err();
    assert!(error.to_string().contains("or --requantize to do it anyway"), "{error}");
    assert!(!dir.path().join("b.gguf").exists());
    quantize(dir.path(), 1, "-o b.gguf --type all:q5_0 --requantize", &Silent).unwrap();
    let kinds: Vec<&str> = types(dir.path(), "b.gguf").into_iter().map(|(_, kind)| kind).collect();
    assert_eq!(kinds, ["F32", "Q5_0", "Q5_0", "F32", "Q4_K", "Q5_0", "Q4_K"]);
}

#[test]
fn a_size_is_kept_and_more_of_it_leaves_smaller_errors() {
    let dir = model();
    let mut last = f64::INFINITY;
    for bits in [5.2, 5.7, 6.5, 8.0] {
        let args = format!("-o a.gguf --bits {bits} --report a.json");
        quantize(dir.path(), 2, &args, &Silent).unwrap();
        let report = fs::read_to_string(dir.path().join("a.json")).unwrap();
        let report: Value = serde_json::from_str(&report).unwrap();
        let used = report["bits_per_weight"].as_f64().unwrap();
        assert!(used <= bits && used > bits - 0.6, "{used} of {bits}");
        let error = |tensor: &Value| tensor["relative_error"].as_f64().unwrap().powi(2);
        let error: f64 = report["tensors"].as_array().unwrap().iter().map(error).sum();
        assert!(error < last, "{bits}: {error} {last}");
        last = error;
    }
    let error = quantize(dir.path(), 2, "-o a.gguf --bits 4.0", &Silent).unwrap_err().to_string();
    assert!(error.starts_with("--bits 4: the smallest types make 5.050 bits"), "{error}");
}

#[test]
fn importance_moves_errors_and_is_noted_where_it_is_missing() {
    let dir = model();
    let mut rng = Rng::with_seed(2);
    let mut entry = |experts: usize, cols: usize, counts: &[f64]| ImatrixEntry {
        sums: (0..experts * cols).map(|_| f64::from(rng.f32() * 8.0).exp()).collect(),
        counts: counts.to_vec(),
    };
    let mut imatrix = Imatrix { datasets: vec!["text".to_owned()], chunks: 2, ..Imatrix::default() };
    imatrix.entries.insert("blk.0.attn_q.weight".to_owned(), entry(1, 256, &[8.0]));
    imatrix.entries.insert("blk.0.ffn_up_exps.weight".to_owned(), entry(2, 256, &[8.0, 0.0]));
    fs::write(dir.path().join("i.gguf"), imatrix.to_gguf()).unwrap();
    let notes = Notes::default();
    let args = "-o a.gguf --type all:q4_k --keep attn_v=q8_0 --report a.json";
    quantize(dir.path(), 2, &format!("{args} --imatrix i.gguf"), &notes).unwrap();
    let notes = notes.0.into_inner().unwrap().join("\n");
    assert!(notes.contains("no entry for 3 matrices, such as `blk.0.attn_v.weight`"), "{notes}");
    assert!(notes.contains("no token of the importance matrix reached 1 of the experts'"), "{notes}");
    let gguf = Gguf::open(&dir.path().join("a.gguf")).unwrap();
    assert_eq!(gguf.text("quantize.imatrix.dataset").unwrap(), Some("text"));
    assert_eq!(gguf.whole("quantize.imatrix.chunks_count").unwrap(), Some(2));
    let report = |name: &str| -> Value {
        serde_json::from_str(&fs::read_to_string(dir.path().join(name)).unwrap()).unwrap()
    };
    let weighted = report("a.json")["tensors"][1]["relative_error"].as_f64().unwrap();
    assert_eq!(report("a.json")["tensors"][4]["unreached_experts"], serde_json::json!([1]));
    quantize(dir.path(), 2, args, &Silent).unwrap();
    let plain = report("a.json")["tensors"][1]["relative_error"].as_f64().unwrap();
    assert!(weighted < 0.9 * plain, "{weighted} {plain}");
    // An importance matrix of another model is refused.
    let other = Imatrix { entries: [("x".to_owned(), entry(1, 8, &[1.0]))].into(), ..Imatrix::default() };
    fs::write(dir.path().join("i.gguf"), other.to_gguf()).unwrap();
    let error = quantize(dir.path(), 2, "-o b.gguf --type q8_0 --imatrix i.gguf", &Silent).unwrap_err();
    assert!(error.to_string().contains("is it of another model?"), "{error}");
}

#[test]
fn wrong_inputs_are_named_and_leave_nothing() {
    let dir = model();
    let cases = [
        ("-o model.gguf --type q8_0", "it is a file of the model: give the output another name"),
        ("-o a.gguf --type q8_0 --report model.gguf", "it is a file of the model"),
        ("-o a.gguf --type q8_0 --report a.gguf", "--report: --output has that name too"),
        ("-o none/a.gguf --type q8_0", "none"),
        ("-o a.gguf --type all:q4_k", "tensor `blk.0.attn_v.weight`"),
        ("-o a.gguf --type q8_0 --keep attn_v=q6_k", "rows of 96, which are not whole blocks of 256"),
        ("-o a.gguf --type q8_0 --keep norm=f16", "--keep norm=f16: no matrix of the model is called so"),
        ("-o a.gguf --type q8_0 --imatrix none.gguf", "No such file"),
        ("-o a.gguf --type q8_0 --imatrix model.gguf", "it is no importance matrix"),
    ];
    for (args, expected) in cases {
        let error = quantize(dir.path(), 1, args, &Silent).unwrap_err().to_string();
        assert!(error.contains(expected) && !error.contains('\n'), "{args}: {error}");
    }
    let at = |words: &str| Command::try_parse_from(words.split(' ')).unwrap().args.run_with(1, &Silent);
    let error = at("quantize /tmp -o a.gguf --type q8_0").unwrap_err().to_string();
    assert!(error.starts_with("/tmp: expected a GGUF file"), "{error}");
    let parse = |words: &str| Command::try_parse_from(words.split(' ')).map(drop).unwrap_err().to_string();
    assert!(parse("quantize a -o b").contains("--type <NAME>"));
    assert!(parse("quantize a -o b --bits 4.8 --type q8_0").contains("cannot be used with"));
    assert!(parse("quantize a -o b --bits 99").contains("expected a number from 1 to 32"));
    // A weight that no block can hold.
    let mut file = fs::read(dir.path().join("model.gguf")).unwrap();
    let data = file.len() - 4 * 256 - 4 * 256 * 48;
    file[data..data + 4].copy_from_slice(&f32::INFINITY.to_le_bytes());
    fs::write(dir.path().join("model.gguf"), file).unwrap();
    let error = quantize(dir.path(), 2, "-o a.gguf --type q8_0", &Silent).unwrap_err().to_string();
    let expected = "tensor `blk.0.ffn_up_exps.weight`, row 0, column 0: inf does not fit Q8_0";
    assert!(error.contains(expected), "{error}");
    assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1);
}
