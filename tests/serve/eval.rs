//! `kernmill eval choice` says what lm-eval gets from the server.

use super::client::post;
use super::{Served, tokenizer};
use crate::harness::program;
use kernmill_server::ServerConfig;
use serde_json::{Value, json};
use std::fs;

/// The likelihood of a sample's answer, as lm-eval's `local-completions` asks for it, and whether each token
/// is the likeliest.
fn of_server(served: &Served, arguments: &Value) -> (f64, bool) {
    let tokenizer = tokenizer().get().unwrap();
    let [context, tail] = ["arg_0", "arg_1"].map(|name| arguments[name].as_str().unwrap());
    let bare = context.trim_end();
    let (known, all) = (tokenizer.encode(bare, false).unwrap().len(), format!("{context}{tail}"));
    let ids = tokenizer.encode(&all, false).unwrap();
    let body = json!({ "prompt": ids, "max_tokens": 1, "temperature": 0, "echo": true, "logprobs": 1, "seed": 1234 });
    let reply = post(served.address, "/v1/completions", &body).json();
    let listed = &reply["choices"][0]["logprobs"];
    let part = |name: &str| listed[name].as_array().unwrap()[known..ids.len()].to_vec();
    let logs: Vec<f64> = part("token_logprobs").iter().map(|log| log.as_f64().unwrap()).collect();
    let tops = part("top_logprobs");
    let is_greedy = logs.iter().zip(&tops).all(|(log, top)| {
        top.as_object().unwrap().values().all(|likeliest| likeliest.as_f64().unwrap() == *log)
    });
    (logs.iter().sum(), is_greedy)
}

#[test]
fn likelihoods_are_those_of_completions_to_the_bit() {
    let dir = tempfile::tempdir().unwrap();
    let served = Served::new(ServerConfig::default());
    for (task, file) in [
        ("hellaswag", "hellaswag.jsonl"),
        ("winogrande", "winogrande.jsonl"),
        ("openbookqa", "openbookqa.jsonl"),
        ("mmlu", "high_school_biology_test.csv"),
    ] {
        let out = dir.path().join(task);
        let mut kernmill = program();
        let file = format!("eval/fixtures/{file}");
        kernmill.args(["eval", "choice", "--task", task, "-f", &file, "--out"]).arg(&out);
        let ran = kernmill.current_dir(env!("CARGO_MANIFEST_DIR")).output().unwrap();
        assert!(ran.status.success(), "{}", String::from_utf8_lossy(&ran.stderr));
        let files = fs::read_dir(&out).unwrap().map(|entry| entry.unwrap().path());
        let is_samples = |path: &std::path::PathBuf| path.extension().is_some_and(|end| end == "jsonl");
        let samples = fs::read_to_string(files.into_iter().find(is_samples).unwrap()).unwrap();
        assert_eq!(samples.lines().count(), 6);
        for sample in samples.lines().map(|line| serde_json::from_str::<Value>(line).unwrap()) {
            let found = sample["filtered_resps"].as_array().unwrap();
            assert_eq!(found.len(), sample["arguments"].as_object().unwrap().len());
            for (at, found) in found.iter().enumerate() {
                let (log, is_greedy) = of_server(&served, &sample["arguments"][format!("gen_args_{at}")]);
                let text: f64 = found[0].as_str().unwrap().parse().unwrap();
                assert_eq!(text.to_bits(), log.to_bits(), "{task}: {sample}");
                assert_eq!(found[1], if is_greedy { "True" } else { "False" });
            }
        }
    }
}
