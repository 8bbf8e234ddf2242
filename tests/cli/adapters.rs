//! `--lora`, `--merge-lora` and synthetic adapters.

use super::safetensors_file::{Entry, SafetensorsFile};
use super::{Ran, Sandbox, kernmill};
use crate::gguf::convert::convert;
use crate::gguf::writer::BF16;
use crate::harness::{adapter, read};
use safetensors::SafeTensors;
use serde_json::Value;
use std::fs;
use std::path::Path;
use tempfile::TempDir;

/// The argument for a fixture adapter, by its own name.
fn lora(name: &str) -> String {
    format!("{name}={}", adapter(name).display())
}

/// A fixture checkpoint and the tokens of an adapter's oracle.
fn sandbox(base: &str, name: &str) -> Sandbox {
    let sandbox = Sandbox::of(base);
    let oracle = fs::read(adapter(name).join("expected.safetensors")).unwrap();
    let tokens = read(&oracle, "tokens", u32::from_le_bytes);
    sandbox.write("ids.json", serde_json::to_string(&tokens).unwrap());
    sandbox.write("expected.safetensors", oracle);
    sandbox
}

impl Sandbox {
    fn exact(&self, more: &[&str]) -> Ran {
        self.logits(&[&["--preset", "exact"], more].concat())
    }
}

#[test]
fn logits_with_adapters_come_from_spec_and_plan_alike() {
    let sandbox = sandbox("gptoss-base", "qv");
    let qv = lora("qv");
    sandbox.exact(&["--lora", &qv]).text();
    assert!(sandbox.difference("out.safetensors", "expected.safetensors") <= 1e-3);
    sandbox.run(&["compile", "spec.toml", "--weights", ".", "--preset", "exact", "-o", "a.plan"]).text();
    let plan = ["logits", "a.plan", "--tokens", "ids.json", "--out", "plan.safetensors", "--lora", &qv];
    sandbox.run(&plan).text();
    assert_eq!(sandbox.difference("plan.safetensors", "out.safetensors"), 0.0);
    sandbox.run(&[&plan[..], &["--regenerate", "--threads", "2"]].concat()).text();
    assert_eq!(sandbox.difference("plan.safetensors", "out.safetensors"), 0.0);

    // Several are added up; a scale is a weight.
    let (half, other) = (format!("{qv}:0.7"), format!("{}:0.4", lora("attention-rslora")));
    sandbox.exact(&["--lora", &half, "--lora", &other]).text();
    sandbox.write("mix.safetensors", fs::read(adapter("two.mix.safetensors")).unwrap());
    assert!(sandbox.difference("out.safetensors", "mix.safetensors") <= 1e-3);
}

#[test]
fn adapters_that_cannot_be_used_are_refused() {
    let sandbox = Sandbox::of("gptoss-base");
    sandbox.refuses(&["--lora", "poet"], &["--lora <NAME=DIR[:SCALE]>", "expected NAME=DIR"]);
    sandbox.refuses(
        &["--lora", "a=nowhere"],
        &["nowhere: there is no such file or directory", "save_pretrained"],
    );
    for (found, says) in [
        ("adapter_model.bin", "a pickled adapter; expected adapter_model.safetensors"),
        ("adapters.safetensors", "an MLX adapter"),
        ("poet-f16.gguf", "an adapter as a GGUF file"),
        ("config.json", "a model, and no adapter"),
        ("README.md", "there is no adapter_config.json in it"),
    ] {
        let dir = sandbox.path(&format!("dir-{found}"));
        fs::create_dir(&dir).unwrap();
        fs::write(dir.join(found), "x").unwrap();
        if found == "adapter_model.bin" {
            fs::write(dir.join("adapter_config.json"), "{}").unwrap();
        }
        sandbox.refuses(&["--lora", &format!("a=dir-{found}")], &[&format!("dir-{found}"), says]);
    }
    for (file, text, says) in [
        ("a.gguf", "GGUF\x03\0\0\0", "an adapter as a GGUF file"),
        ("a.bin", "PK\x03\x04", "a pickled adapter"),
        ("adapter_model.safetensors", "version https://git-lfs.github.com/spec/v1\n", "git-lfs pointer"),
        ("notes.txt", "some text", "it is text; expected adapter_model.safetensors"),
    ] {
        sandbox.write(file, text);
        sandbox.refuses(&["--lora", &format!("a={file}")], &[file, says]);
    }
    let qv = lora("qv");
    sandbox.refuses(&["--lora", &qv, "--lora", &qv], &["--lora qv=... is given twice"]);
    sandbox.logits(&["--lora", &qv, "--no-adapters"]).misused("--no-adapters");
    let experts = lora("experts");
    sandbox.refuses(&["--lora", &experts], &["adapter_model.safetensors", "expected ["]);
    let llama = lora("all-linear");
    sandbox.refuses(&["--lora", &llama], &["mlp.down_proj", "made for llama-plain"]);
    let both = ["--lora", &lora("dora"), "--lora", &qv];
    sandbox.refuses(&both, &["DoRA"]);
    let compile = ["compile", "spec.toml", "--weights", ".", "-o", "both.plan"];
    let merged = ["--merge-lora", &lora("dora"), "--merge-lora", &qv];
    sandbox.run(&[&compile[..], &merged].concat()).refused(&["one of the adapters is a DoRA at", "q"]);
    assert!(!sandbox.path("both.plan").exists());

    sandbox.run(&["compile", "spec.toml", "--weights", ".", "-o", "a.plan", "--no-adapters"]).text();
    let run = ["run", "a.plan", "--tokens", "ids.json", "-n", "2", "--lora", &qv];
    sandbox.run(&run).refused(&["takes no adapters", "--no-adapters"]);
}

/// A copy of PEFT's directory `directory`, for tests that change it.
fn copied(sandbox: &Sandbox, name: &str, to: &str) {
    let (_, from) = lora(name).split_once('=').map(|(a, b)| (a.to_owned(), b.to_owned())).unwrap();
    fs::create_dir(sandbox.path(to)).unwrap();
    for file in ["adapter_config.json", "adapter_model.safetensors"] {
        fs::copy(Path::new(&from).join(file), sandbox.path(to).join(file)).unwrap();
    }
}

#[test]
fn an_adapter_is_found_by_its_files_and_by_a_directory_named_after_the_time() {
    let sandbox = sandbox("gptoss-base", "qv");
    copied(&sandbox, "qv", "run-T10:30");
    for path in ["run-T10:30", "run-T10:30/adapter_model.safetensors", "run-T10:30/adapter_config.json"] {
        sandbox.exact(&["--lora", &format!("a={path}")]).text();
        assert!(sandbox.difference("out.safetensors", "expected.safetensors") <= 1e-3, "{path}");
    }
}

/// Whatever the reason, a directory that cannot be used is bad input, and is opened without waiting.
#[test]
fn adapters_of_other_kinds_and_with_pipes_are_bad_input() {
    let sandbox = sandbox("gptoss-base", "qv");
    for (key, value, says) in [
        ("modules_to_save", r#"["lm_head"]"#, "modules_to_save"),
        ("bias", r#""all""#, "`bias` is all"),
        ("init_lora_weights", r#""olora""#, "`init_lora_weights` is olora"),
        ("peft_type", r#""IA3""#, "`peft_type` is IA3"),
    ] {
        let dir = format!("of-{key}");
        copied(&sandbox, "qv", &dir);
        let path = sandbox.path(&dir).join("adapter_config.json");
        let mut config: Value = serde_json::from_str(&fs::read_to_string(&path).unwrap()).unwrap();
        config[key] = serde_json::from_str(value).unwrap();
        fs::write(&path, config.to_string()).unwrap();
        sandbox.refuses(&["--lora", &format!("a={dir}")], &[&dir, says]);
    }
    for (file, link) in [("adapter_config.json", None), ("adapter_model.safetensors", Some("/dev/zero"))] {
        let dir = format!("pipe-{file}");
        copied(&sandbox, "qv", &dir);
        let path = sandbox.path(&dir).join(file);
        fs::remove_file(&path).unwrap();
        match link {
            Some(to) => std::os::unix::fs::symlink(to, &path).unwrap(),
            None => assert!(std::process::Command::new("mkfifo").arg(&path).status().unwrap().success()),
        }
        sandbox.refuses(
            &["--lora", &format!("a={dir}")],
            &[file, "a pipe or a device, expected a regular file"],
        );
    }
}

/// Tensors that are no factors of LoRA, or are not named as PEFT names them: none is passed over.
#[test]
fn adapters_with_tensors_of_other_kinds_are_bad_input() {
    let sandbox = sandbox("gptoss-base", "qv");
    let own = "base_model.model.model";
    let rename = |from: &'static str, to: &'static str| {
        move |file: &mut SafetensorsFile| {
            file.entries.iter_mut().for_each(|entry| entry.name = entry.name.replace(from, to));
        }
    };
    let add = |name: String, shape: &'static [usize]| {
        move |file: &mut SafetensorsFile| {
            let bytes = vec![0; 4 * shape.iter().product::<usize>()];
            file.entries.push(Entry {
                name: name.clone(),
                dtype: "F32".into(),
                shape: shape.to_vec(),
                bytes,
            });
        }
    };
    type Change = Box<dyn Fn(&mut SafetensorsFile)>;
    let cases: [(&str, Change, &str); 7] = [
        ("another-name", Box::new(rename(".weight", ".poet.weight")), ".lora_A.poet.weight"),
        ("only-b", Box::new(rename("lora_B.weight", "lora_B.0.weight")), ".lora_B.0.weight"),
        ("compiled", Box::new(rename("base_model.model.", "base_model.model._orig_mod.")), "_orig_mod.model"),
        (
            "table",
            Box::new(add(format!("{own}.embed_tokens.weight"), &[96, 64])),
            "`model.embed_tokens.weight`",
        ),
        ("norm", Box::new(add(format!("{own}.norm.weight"), &[64])), "`model.norm.weight`"),
        ("bias", Box::new(add(format!("{own}.layers.0.self_attn.q_proj.bias"), &[128])), "q_proj.bias`"),
        (
            "rows",
            Box::new(add(format!("{own}.embed_tokens.lora_embedding_A"), &[2, 96])),
            "an embedding table",
        ),
    ];
    for (dir, change, says) in cases {
        copied(&sandbox, "qv", dir);
        let mut file = SafetensorsFile::read(&sandbox.path(dir).join("adapter_model.safetensors"));
        change(&mut file);
        file.write();
        let place = format!("{dir}/adapter_model.safetensors");
        sandbox.refuses(&["--lora", &format!("a={dir}")], &[&place, says]);
    }
}

#[test]
fn synthetic_adapters_fit_the_model_they_are_made_for() {
    let dir = TempDir::new().unwrap();
    let spec = "model-specs/nano/nano.toml";
    let all = dir.path().join("all").display().to_string();
    kernmill(&["synth", spec, "-o", &all, "--lora", "4", "--targets", "q,k,v,o,router,experts", "-q"]).text();
    let dora = dir.path().join("dora").display().to_string();
    kernmill(&["synth", spec, "-o", &dora, "--lora", "3", "--dora", "-q"]).text();
    let report = |more: &[&str]| -> Value {
        let run = ["run", "-n", "4", "--temp", "0", "--json", "-q", "--prompt", "A slice is"];
        serde_json::from_str(&kernmill(&[&run[..], more].concat()).text()).unwrap()
    };
    let adapter = format!("all={all}");
    let with = report(&["--lora", &adapter]);
    assert_eq!(with["adapters"][0]["name"], "all");
    assert!(with["adapters"][0]["bytes"].as_u64().unwrap() > 100_000, "{with}");
    let scaled = format!("d={dora}:0.5");
    assert_eq!(report(&["--lora", &scaled])["adapters"].as_array().unwrap().len(), 1);
    assert_eq!(report(&[])["adapters"], serde_json::json!([]));

    let bench = ["bench", "--pp", "20", "--tg", "4", "--batch", "3", "--repeat", "1", "--read", "4M", "-q"];
    let text = kernmill(&[&bench[..], &["--lora", &adapter, "--lora", &scaled]].concat()).text();
    assert!(text.contains("adapter all: ") && text.contains("decode 4, 3 sequences"), "{text}");

    let more = dir.path().join("more").display().to_string();
    kernmill(&["synth", spec, "-o", &more, "--lora", "4", "--targets", "q,w"]).refused(&["`w`", "q_proj"]);
    kernmill(&["synth", spec, "-o", &more, "--lora", "4", "--targets", "experts", "--dora"])
        .refused(&["DoRA"]);
    kernmill(&["synth", spec, "-o", &all, "--lora", "4"]).refused(&["already there"]);
    kernmill(&["synth", spec, "-o", &more, "--targets", "q"]).misused("--lora");
}

#[test]
fn synthetic_adapters_of_a_gguf_file_are_those_of_the_checkpoint_that_it_was_made_from() {
    for (name, targets, dora) in [
        ("gptoss-base", "q,k,v,o,router,experts", false),
        ("llama-plain", "q,v,gate,up,down", true),
        ("gptoss-base", "gate_up", false),
    ] {
        let sandbox = Sandbox::of(name);
        sandbox.write("file.gguf", convert(name, BF16).bytes());
        sandbox.run(&["import", "file.gguf", "-o", "gguf.toml"]).text();
        let make = |model: &str, out: &str| {
            let mut synth = vec!["synth", model, "-o", out, "--lora", "4", "--targets", targets, "-q"];
            synth.extend(dora.then_some("--dora"));
            sandbox.run(&synth).text();
            let read = |file: &str| fs::read(sandbox.path(out).join(file)).unwrap();
            let weights = read("adapter_model.safetensors");
            let tensors = SafeTensors::deserialize(&weights).unwrap();
            let mut shapes: Vec<(String, Vec<usize>)> =
                tensors.iter().map(|(name, tensor)| (name.to_owned(), tensor.shape().to_vec())).collect();
            shapes.sort();
            let config: Value = serde_json::from_slice(&read("adapter_config.json")).unwrap();
            (shapes, config["target_modules"].clone(), config["target_parameters"].clone())
        };
        let published = make("spec.toml", "a");
        assert_eq!(make("file.gguf", "b"), published, "{name}");
        assert_eq!(make("gguf.toml", "c"), published, "{name}");
        for (model, adapter) in [(".", "b"), ("file.gguf", "a"), ("file.gguf", "b")] {
            let lora = format!("x={adapter}");
            sandbox.run(&["run", model, "--tokens", "ids.json", "-n", "2", "-q", "--lora", &lora]).text();
        }
    }
    let examples = "model-specs/examples/fused";
    let tiny = ["synth", "model-specs/examples/tiny.toml", "--fused", examples, "-o", "none", "--lora", "2"];
    kernmill(&tiny).refused(&["no matrix of the model has a name that PEFT knows", "blk.0.attn_q.weight"]);
}

#[test]
fn merged_adapters_are_those_that_run_beside() {
    for adapter in ["everything", "dora"] {
        let sandbox = sandbox("gptoss-base", adapter);
        let merge =
            ["compile", "spec.toml", "--weights", ".", "-o", "a.plan", "--merge-lora", &lora(adapter)];
        let exact = [&merge[..], &["--preset", "exact"]].concat();
        let report = sandbox.run(&exact);
        assert!(report.stderr.contains(&format!("merged {adapter}: ")), "{}", report.stderr);
        let experts = report.stderr.contains("6 of them not in the file's blocks any more");
        assert_eq!(experts, adapter == "everything", "{}", report.stderr);
        report.text();
        let logits = ["logits", "a.plan", "--tokens", "ids.json", "--out", "plan.safetensors"];
        sandbox.run(&logits).text();
        assert!(sandbox.difference("plan.safetensors", "expected.safetensors") <= 1e-3, "{adapter}");
        sandbox.run(&[&logits[..], &["--regenerate"]].concat()).text();
        assert!(sandbox.difference("plan.safetensors", "expected.safetensors") <= 1e-3, "{adapter} anew");

        // Every preset takes it, and what is generated anew fits what was packed.
        for preset in ["faithful", "bf16", "fast"] {
            sandbox.run(&[&merge[..], &["--preset", preset]].concat()).text();
            sandbox.run(&logits).text();
            fs::rename(sandbox.path("plan.safetensors"), sandbox.path("first.safetensors")).unwrap();
            sandbox.run(&[&logits[..], &["--regenerate"]].concat()).text();
            assert_eq!(sandbox.difference("plan.safetensors", "first.safetensors"), 0.0, "{preset}");
        }
        let listing = sandbox.run(&["inspect", "a.plan"]).text();
        assert_eq!(listing.contains(" mxfp4 "), adapter == "dora", "{listing}");
    }
}
