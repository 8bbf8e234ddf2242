//! Models with tokenizers: which texts they take, by which tokens they end, and what works without a
//! tokenizer.

use super::{Ran, Sandbox, kernmill};
use crate::gguf::convert::convert;
use crate::gguf::writer::BF16;
use serde_json::{Value, json};

const RUN: [&str; 6] = ["-q", "--threads", "1", "--temp", "0", "--json"];
/// Makes token 70 the likeliest.
const SAYS_70: [&str; 2] = ["--logit-bias", "70=1000"];

impl Sandbox {
    /// Runs the model of this directory.
    fn says(&self, args: &[&str]) -> Ran {
        self.run(&[&["run", "--weights", "."], &RUN[..], &SAYS_70, args].concat())
    }
}

/// A tokenizer of few letters; 70 is special, and 96 is no token of the model.
fn letters() -> String {
    letters_and(&[("[PAD]", 96)]).to_string()
}

/// A tokenizer of few letters and the special tokens `more`.
fn letters_and(more: &[(&str, u32)]) -> Value {
    let special = |id: u32, content: &str| {
        json!({"id": id, "content": content, "single_word": false, "lstrip": false, "rstrip": false,
               "normalized": false, "special": true})
    };
    let vocab: serde_json::Map<String, Value> =
        ('A'..='z').zip(0u32..).map(|(c, id)| (c.to_string(), id.into())).collect();
    let mut vocab = vocab;
    vocab.insert("<|part|>".to_owned(), 70.into());
    vocab.extend(more.iter().map(|(token, id)| ((*token).to_owned(), Value::from(*id))));
    let mut added = vec![special(70, "<|part|>")];
    added.extend(more.iter().map(|(token, id)| special(*id, token)));
    let level =
        json!({"type": "ByteLevel", "add_prefix_space": false, "trim_offsets": true, "use_regex": false});
    json!({
        "version": "1.0", "truncation": null, "padding": null, "normalizer": null, "post_processor": null,
        "added_tokens": added,
        "pre_tokenizer": level, "decoder": level,
        "model": {"type": "BPE", "dropout": null, "unk_token": null, "continuing_subword_prefix": null,
                  "end_of_word_suffix": null, "fuse_unk": false, "byte_fallback": false, "vocab": vocab, "merges": []}
    })
}

fn report(ran: Ran) -> Value {
    serde_json::from_str(&ran.text()).expect("JSON")
}

/// How a run ended, and its tokens.
fn ended(ran: Ran) -> (String, usize) {
    let report = report(ran);
    (report["stop"].as_str().unwrap().to_owned(), report["tokens"].as_array().unwrap().len())
}

#[test]
fn tokens_past_the_vocabulary_are_refused_in_texts_only() {
    let sandbox = Sandbox::of("gptoss-base");
    let far = letters_and(&[("<mask>", 97), ("<image>", 131), ("<video>", 70_000)]);
    // A token of the vocabulary itself, that two letters make.
    let mut joined = letters_and(&[]);
    joined["model"]["vocab"]["xy"] = 99.into();
    joined["model"]["merges"] = json!([["x", "y"]]);
    for (tokenizer, token, id) in [
        (letters_and(&[("[PAD]", 96)]), "[PAD]", 96),
        (letters_and(&[("<pad>", 96), ("<unk>", 98)]), "<unk>", 98),
        (far.clone(), "<image>", 131),
        (far, "<video>", 70_000),
        (joined, "xy", 99),
    ] {
        sandbox.write("tokenizer.json", tokenizer.to_string());
        assert_eq!(report(sandbox.says(&["--prompt", "ABC", "-n", "2"]))["prompt_tokens"], 3);
        let past = format!("token `{token}` (id {id})");
        let past = [&past[..], "the model's vocabulary has 96 tokens"];
        sandbox.says(&["--prompt", &format!("A{token}B")]).refused(&past);
        // A plan has the same tokenizer.
        sandbox.run(&["compile", ".", "-o", "a.plan", "-q"]).text();
        let run = ["run", "a.plan", "-q", "--json", "-n", "2", "--prompt"];
        assert_eq!(report(sandbox.run(&[&run[..], &["ABC"]].concat()))["prompt_tokens"], 3);
        sandbox.run(&[&run[..], &[token]].concat()).refused(&past);
    }
    sandbox.write("tokenizer.json", include_bytes!("../../model-specs/nano/tokenizer.json"));
    sandbox.says(&["--prompt", "A"]).refused(&["(id 3071)"]);
    sandbox.write("tokenizer.json", "{}");
    sandbox.says(&["--prompt", "A"]).refused(&["tokenizer.json"]);
}

#[test]
fn commands_on_ids_need_no_tokenizer() {
    for broken in ["{}", "version https://git-lfs.github.com/spec/v1\n", ""] {
        let sandbox = Sandbox::of("gptoss-base");
        sandbox.write("tokenizer.json", broken);
        sandbox.logits(&[]).text();
        let report = report(sandbox.says(&["--tokens", "ids.json", "-n", "2"]));
        assert_eq!((&report["text"], &report["tokens"]), (&Value::Null, &json!([70, 70])));
        sandbox.run(&["inspect", "--weights", "."]).text();
        sandbox
            .run(&["bench", "--weights", ".", "--pp", "4", "--tg", "2", "--repeat", "1", "--read", "1M"])
            .text();
        sandbox.says(&["--tokens", "ids.json", "--stop", "x"]).refused(&["--stop needs a tokenizer.json"]);
    }
    // A GGUF file whose tokenizer is of a kind that is not supported.
    let sandbox = Sandbox::of("gptoss-base");
    let mut file = convert("gptoss-base", BF16);
    file.set("tokenizer.ggml.model", "rwkv");
    sandbox.write("model.gguf", file.bytes());
    let run = [&["run", "--weights", "model.gguf"], &RUN[..]].concat();
    sandbox.run(&[&run[..], &["--tokens", "ids.json", "-n", "2"]].concat()).text();
    sandbox.run(&[&run[..], &["--prompt", "A"]].concat()).refused(&["tokenizer `rwkv`", "beside the file"]);
}

#[test]
fn texts_end_by_the_tokens_that_the_models_files_state() {
    let cases = [
        ("config.json", json!(70)),
        ("config.json", json!([1, 70])),
        ("generation_config.json", json!(70)),
        ("generation_config.json", json!([70, 69])),
    ];
    for (file, value) in cases {
        let sandbox = Sandbox::of("gptoss-base");
        let ids = ["--tokens", "ids.json", "-n", "3"];
        assert_eq!(ended(sandbox.says(&ids)), ("max_tokens".to_owned(), 3));
        sandbox.set(file, "eos_token_id", value.clone());
        assert_eq!(ended(sandbox.says(&ids)), ("end_token".to_owned(), 0), "{file} {value}");
        sandbox.says(&[&ids[..], &["--ignore-end"]].concat()).text();
        // With a tokenizer that knows no end token, and in a plan.
        sandbox.write("tokenizer.json", letters());
        assert_eq!(ended(sandbox.says(&["--prompt", "A", "-n", "3"])), ("end_token".to_owned(), 0));
        sandbox.run(&["compile", "--weights", ".", "-o", "a.plan", "-q"]).text();
        let plan = [&["run", "a.plan"], &RUN[..], &SAYS_70, &ids].concat();
        assert_eq!(ended(sandbox.run(&plan)), ("end_token".to_owned(), 0));
    }
    let sandbox = Sandbox::of("gptoss-base");
    sandbox.set("generation_config.json", "eos_token_id", json!("</s>"));
    sandbox.says(&["--tokens", "ids.json"]).refused(&["generation_config.json", "eos_token_id is \"</s>\""]);
}

#[test]
fn texts_end_by_the_tokens_that_a_gguf_file_names() {
    for key in ["tokenizer.ggml.eos_token_id", "tokenizer.ggml.eot_token_id", "tokenizer.ggml.eom_token_id"] {
        let sandbox = Sandbox::of("gptoss-base");
        let mut file = convert("gptoss-base", BF16);
        file.set(key, 70u32);
        sandbox.write("model.gguf", file.bytes());
        let run =
            [&["run", "--weights", "model.gguf", "--tokens", "ids.json", "-n", "3"], &RUN[..], &SAYS_70]
                .concat();
        assert_eq!(ended(sandbox.run(&run)), ("end_token".to_owned(), 0), "{key}");
    }
}

#[test]
fn special_tokens_are_shown_and_stopped_at_when_asked_for() {
    let sandbox = Sandbox::of("gptoss-base");
    sandbox.write("tokenizer.json", letters());
    let run = |more: &[&str]| report(sandbox.says(&[&["--prompt", "A", "-n", "2"], more].concat()));
    assert_eq!(run(&[])["text"], "");
    assert_eq!(run(&["--special"])["text"], "<|part|><|part|>");
    for more in [&["--stop", "<|part|>"][..], &["--special", "--stop", "<|part|>"]] {
        let report = run(more);
        assert_eq!(
            (&report["stop"], &report["text"], &report["tokens"]),
            (&json!("stop_string"), &json!(""), &json!([]))
        );
    }
    assert_eq!(run(&["--special", "--stop", "|><|"])["text"], "<|part");
    sandbox
        .says(&["--prompt", "A", "--stop", "<|part|>\n"])
        .refused(&["special token <|part|>", "--special"]);
}

#[test]
fn a_start_token_in_the_prompt_is_noted() {
    let ran = |prompt: &str| kernmill(&["run", "--prompt", prompt, "-n", "1", "--threads", "1"]);
    let twice = ran("<|endoftext|>A slice is");
    assert!(
        twice.stderr.contains("begins with <|endoftext|>, and the tokenizer puts another one"),
        "{}",
        twice.stderr
    );
    twice.text();
    let once = ran("A slice is");
    assert!(!once.stderr.contains("another one"), "{}", once.stderr);
}

#[test]
fn prompts_that_cannot_fit_are_refused_before_they_are_encoded() {
    let sandbox = Sandbox::of("gptoss-base");
    sandbox.write("prompt.txt", "A".repeat(1 << 20));
    let nano = ["run", "--prompt-file", "prompt.txt", "--context", "64", "--threads", "1"];
    sandbox.run(&nano).refused(&["the text has 1048576 bytes", "64 tokens of"]);
}

#[test]
fn the_embedded_model_its_directory_and_its_plan_say_the_same() {
    let sandbox = Sandbox::of("gptoss-base");
    sandbox.run(&["compile", "-o", "nano.plan", "-q"]).text();
    let nano = concat!(env!("CARGO_MANIFEST_DIR"), "/model-specs/nano");
    for prompt in ["A slice is", "# Ownership\n\nThe"] {
        let texts: Vec<(Value, Value)> = [&[][..], &["--weights", nano], &["nano.plan"]]
            .into_iter()
            .map(|model| {
                let args = [&["run"], model, &["--prompt", prompt, "-n", "20"], &RUN[..]].concat();
                let report = report(sandbox.run(&args));
                (report["text"].clone(), report["prompt_tokens"].clone())
            })
            .collect();
        assert!(texts.iter().all(|text| *text == texts[0]), "{texts:?}");
    }
    // Without a prompt, the plan continues what the embedded model does.
    let example = |model: &[&str]| sandbox.run(&[&["run"], model, &["-n", "8"], &RUN[..]].concat());
    assert_eq!(report(example(&["nano.plan"]))["text"], report(example(&[]))["text"]);
}
