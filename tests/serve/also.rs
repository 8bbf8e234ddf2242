//! Several models in one server: each request goes to the one that it names, and gets what it gets alone.

use super::client::{get, get_with, post, post_with};
use super::killed::start;
use super::{Served, nano_with, patient};
use crate::harness::program;
use kernmill::{ModelMakes, Options};
use kernmill_serve::StepTurns;
use kernmill_server::{Backend, EngineBackend, Keys, ServerConfig};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::path::Path;
use std::process::Command;
use std::sync::Arc;

const TEXTS: [&str; 3] = ["A slice is a view into an array.", "Threads may panic.", "A slice is a view."];

/// Nano under these names: those that begin with `embed` make vectors.
fn served(names: &[&str], config: ServerConfig) -> Served {
    let turns = StepTurns::default();
    let backend = |name: &&str| {
        let makes = if name.starts_with("embed") { ModelMakes::Vectors(None) } else { ModelMakes::AsFiles };
        let (loaded, ends) = nano_with(Options::default().with(|it| it.makes = makes), 512, 4);
        let backend = EngineBackend::of(loaded, name, &ends, patient(), turns.clone()).unwrap();
        Arc::new(backend) as Arc<dyn Backend>
    };
    Served::over(names.iter().map(backend).collect(), config)
}

fn both() -> Served {
    served(&["nano", "embed"], ServerConfig::default())
}

/// A conversation that is for a model.
fn chat(model: &str, text: &str) -> Value {
    let messages = json!([{ "role": "user", "content": text }]);
    json!({ "model": model, "messages": messages, "max_tokens": 48, "temperature": 0 })
}

#[test]
fn each_model_gives_beside_the_other_what_it_gives_alone() {
    let stream = |text: &str| {
        let mut body = chat("nano", text);
        body["stream"] = json!(true);
        body
    };
    let vectors = json!({ "model": "embed", "input": TEXTS });
    let said = |served: &Served, text: &str| -> String {
        let events = post(served.address, "/v1/chat/completions", &stream(text)).events();
        events.iter().filter_map(|event| event["choices"][0]["delta"]["content"].as_str()).collect()
    };
    let alone = served(&["nano"], ServerConfig::default());
    let expected = TEXTS.map(|text| said(&alone, text));
    let alone = served(&["embed"], ServerConfig::default());
    let expected_vectors = post(alone.address, "/v1/embeddings", &vectors).json()["data"].clone();
    assert!(expected.iter().all(|text| !text.is_empty()) && expected_vectors[2]["embedding"].is_array());
    let served = both();
    std::thread::scope(|scope| {
        for (text, expected) in TEXTS.iter().zip(&expected) {
            scope.spawn(|| (0..3).for_each(|_| assert_eq!(said(&served, text), *expected)));
        }
        for _ in 0..2 {
            scope.spawn(|| {
                for _ in 0..10 {
                    let reply = post(served.address, "/v1/embeddings", &vectors).json();
                    assert_eq!((&reply["model"], &reply["data"]), (&json!("embed"), &expected_vectors));
                }
            });
        }
    });
}

#[test]
fn every_api_finds_the_model_by_its_name() {
    let aliases = [("gpt-4o", "nano"), ("text-embedding-3-small", "embed")];
    let aliases = aliases.map(|(name, meant)| (name.to_owned(), meant.to_owned())).into_iter().collect();
    let served = served(&["nano", "embed"], ServerConfig { aliases, ..ServerConfig::default() });
    let ask = |path: &str, model: Value, body: &Value| {
        let mut body = body.clone();
        body["model"] = model;
        post(served.address, path, &body)
    };
    let turn = json!([{ "role": "user", "content": "Hi" }]);
    let of_texts = [
        ("/v1/chat/completions", json!({ "messages": turn, "max_tokens": 2 })),
        ("/v1/completions", json!({ "prompt": "Hi", "max_tokens": 2 })),
        ("/v1/responses", json!({ "input": "Hi", "max_output_tokens": 2 })),
        ("/v1/messages", json!({ "messages": turn, "max_tokens": 2 })),
        ("/api/chat", json!({ "messages": turn, "stream": false, "options": { "num_predict": 2 } })),
        ("/api/generate", json!({ "prompt": "Hi", "stream": false, "options": { "num_predict": 2 } })),
    ];
    let of_vectors = [
        ("/v1/embeddings", json!({ "input": TEXTS })),
        ("/api/embed", json!({ "input": TEXTS })),
        ("/api/embeddings", json!({ "prompt": TEXTS[0] })),
        ("/v1/rerank", json!({ "query": TEXTS[2], "documents": TEXTS })),
        ("/score", json!({ "text_1": TEXTS[2], "text_2": TEXTS })),
    ];
    for (path, body) in &of_texts {
        for name in ["nano", "gpt-4o"] {
            let reply = ask(path, json!(name), body);
            assert_eq!(reply.status, 200, "{path}: {}", reply.body);
            assert_eq!(reply.json()["model"], name, "{path}");
        }
        let wrong = ask(path, json!("embed"), body);
        assert!(
            wrong.status == 400 && wrong.body.contains("makes vectors of texts"),
            "{path}: {}",
            wrong.body
        );
    }
    for (path, body) in &of_vectors {
        for name in ["embed", "text-embedding-3-small"] {
            let reply = ask(path, json!(name), body);
            assert_eq!(reply.status, 200, "{path}: {}", reply.body);
        }
        let wrong = ask(path, json!("nano"), body);
        let says = if path.contains("embed") { "--also" } else { "nano gives no scores" };
        assert!(wrong.status == 404 && wrong.body.contains(says), "{path}: {}", wrong.body);
    }
    for (path, body) in of_texts.iter().chain(&of_vectors) {
        let unknown = ask(path, json!("nobody"), body);
        assert_eq!(unknown.status, 404, "{path}: {}", unknown.body);
        let named = "nano, gpt-4o, text-embedding-3-small, embed";
        assert!(unknown.body.contains(named), "{path}: {}", unknown.body);
        // A name that is missing is said to be, before anything else.
        let missing = ask(path, json!(""), body);
        assert!(missing.status == 400 && missing.body.contains(named), "{path}: {}", missing.body);
    }
    // Ollama's clients write a tag behind the name.
    assert_eq!(ask("/api/embed", json!("embed:latest"), &of_vectors[1].1).json()["model"], "embed:latest");
    let ids = |model: &str| ask("/tokenize", json!(model), &json!({ "prompt": "A slice" })).json();
    assert_eq!(ids("embed"), ids("nano"));
}

#[test]
fn lists_and_figures_have_all_models() {
    let aliases = [("ada".to_owned(), "embed".to_owned())].into_iter().collect();
    let served = served(&["nano", "embed"], ServerConfig { aliases, ..ServerConfig::default() });
    let models = get(served.address, "/v1/models").json();
    let shown = |field: &str| {
        models["data"].as_array().unwrap().iter().map(|model| model[field].clone()).collect::<Vec<_>>()
    };
    assert_eq!(
        (shown("id"), shown("root")),
        (vec![json!("nano"), json!("embed"), json!("ada")], {
            vec![json!("nano"), json!("embed"), json!("embed")]
        })
    );
    assert_eq!(shown("capabilities")[1], json!(["embedding", "rerank"]), "{models}");
    assert_eq!(get(served.address, "/v1/models/ada").json(), models["data"][2]);
    assert!(get(served.address, "/v1/models/bob").body.contains("nano, ada, embed"));
    let by_anthropic = get_with(served.address, "/v1/models", &["anthropic-version: 2023-06-01"]).json();
    assert_eq!(by_anthropic["last_id"], "ada");
    for path in ["/api/tags", "/api/ps"] {
        let list = get(served.address, path).json();
        let names: Vec<&Value> = list["models"].as_array().unwrap().iter().map(|it| &it["model"]).collect();
        assert_eq!(names, ["nano:latest", "embed:latest", "ada:latest"], "{path}");
    }
    let shown = post(served.address, "/api/show", &json!({ "name": "embed:latest" })).json();
    assert_eq!(shown["capabilities"], json!(["embedding", "rerank"]), "{shown}");

    let body = json!({ "model": "embed", "input": TEXTS });
    assert_eq!(post(served.address, "/v1/embeddings", &body).status, 200);
    assert_eq!(post(served.address, "/v1/chat/completions", &chat("nano", "Hi")).status, 200);
    let loads = get(served.address, "/v1/loads").json();
    assert_eq!(loads["steps"], loads["models"]["nano"]["steps"]);
    assert!(loads["models"]["embed"]["steps"].as_u64() > Some(0), "{loads}");
    let text = get(served.address, "/metrics").body;
    let starts: Vec<&str> = text.lines().filter(|line| line.starts_with("# ")).collect();
    assert_eq!(starts.len(), starts.iter().collect::<BTreeSet<_>>().len(), "{text}");
    assert!(starts.ends_with(&["# EOF"]) && starts.iter().filter(|line| **line == "# EOF").count() == 1);
    let of = |name: &str| {
        let at = |model: &str| text.find(&format!("\n{name}{{model_name=\"{model}\","));
        (at("nano"), at("embed"))
    };
    for name in ["kernmill_steps_total", "vllm:prompt_tokens_total", "kernmill_kv_bytes"] {
        let (Some(first), Some(other)) = of(name) else { panic!("{name} in {text}") };
        assert!(!text[first.min(other)..first.max(other)].contains("\n#"), "{name} stands in two places");
    }
    for (route, model) in [("/v1/embeddings", "embed"), ("/v1/chat/completions", "nano")] {
        let labels = format!("model_name=\"{model}\",engine=\"0\",route=\"{route}\",status=\"200\"");
        let line = format!("kernmill_http_responses_total{{{labels}}} 1");
        assert!(text.lines().any(|found| found == line), "{line} in {text}");
    }
}

#[test]
fn a_key_has_one_quota_for_all_models() {
    let keys = Keys::read("ann secret-key-of-ann tokens-per-minute=10").unwrap();
    let served = served(&["nano", "embed"], ServerConfig { keys, ..ServerConfig::default() });
    let key = &["x-api-key: secret-key-of-ann"];
    let body = json!({ "model": "embed", "input": TEXTS });
    assert_eq!(post_with(served.address, "/v1/embeddings", key, &body).status, 200);
    let refused = post_with(served.address, "/v1/chat/completions", key, &chat("nano", "Hi"));
    assert_eq!(refused.status, 429, "{}", refused.body);
}

#[test]
fn a_drained_server_takes_up_nothing_at_any_model() {
    let served = both();
    assert_eq!(get(served.address, "/ready").status, 200);
    assert_eq!(post(served.address, "/drain", &json!({ "model": "embed" })).status, 200);
    assert_eq!(get(served.address, "/ready").status, 503);
    assert_eq!(get(served.address, "/health").status, 200);
    let body = json!({ "model": "embed", "input": TEXTS });
    assert_eq!(post(served.address, "/v1/embeddings", &body).status, 503);
    assert_eq!(post(served.address, "/v1/chat/completions", &chat("nano", "Hi")).status, 503);
}

#[test]
fn what_is_kept_belongs_to_the_model_that_made_it() {
    let dir = tempfile::tempdir().unwrap();
    let sessions = Some(dir.path().to_owned());
    let served = served(&["nano", "second"], ServerConfig { sessions, ..ServerConfig::default() });
    let text = "A slice is a view into a block of memory. ".repeat(8);
    let session = json!({ "name": "slices", "model": "second", "prompt": text });
    assert_eq!(post(served.address, "/v1/sessions", &session).json()["model"], "second");
    let restored = post(served.address, "/v1/sessions/slices/restore", &json!({})).json();
    assert!(restored["restored_tokens"].as_u64() > Some(0), "{restored}");
    let cached = |model: &str| {
        let body = json!({ "model": model, "prompt": text, "max_tokens": 1 });
        let usage = &post(served.address, "/v1/completions", &body).json()["usage"];
        usage["prompt_tokens_details"]["cached_tokens"].as_u64().unwrap()
    };
    assert!(cached("second") > 0 && cached("nano") == 0);
    // A conversation goes on with another model.
    let first = json!({ "model": "nano", "input": "Hi", "max_output_tokens": 4 });
    let first = post(served.address, "/v1/responses", &first).json();
    let next = json!({
        "model": "second", "input": "And?", "max_output_tokens": 4, "previous_response_id": first["id"],
    });
    let next = post(served.address, "/v1/responses", &next);
    assert_eq!((next.status, &next.json()["model"]), (200, &json!("second")), "{}", next.body);
    let path = format!("/v1/responses/{}", next.json()["id"].as_str().unwrap());
    assert_eq!(get(served.address, &path).json()["model"], "second");
}

#[test]
fn names_of_models_are_theirs_alone() {
    let check = |models: &[&str], adapters: &[&str], alias: &str| {
        let aliases = [(alias.to_owned(), "nano".to_owned())].into_iter().collect();
        ServerConfig { aliases, ..ServerConfig::default() }.check_names(models, adapters)
    };
    assert_eq!(check(&["nano", "embed"], &["poet"], "small"), Ok(()));
    for (models, adapters, alias) in [
        (&["nano", "nano"][..], &[][..], "small"),
        (&["nano", "embed", "embed"], &[], "small"),
        (&["nano", "embed"], &["embed"], "small"),
        (&["nano", "embed"], &[], "embed"),
    ] {
        let error = check(models, adapters, alias).unwrap_err();
        assert!(error.contains("is a model already"), "{error}");
    }
    // An adapter that is loaded later cannot take a model's name either.
    let config = ServerConfig { adapters: Some(std::env::temp_dir()), ..ServerConfig::default() };
    let served = served(&["nano", "embed"], config);
    let body = json!({ "lora_name": "embed", "lora_path": "embed" });
    let refused = post(served.address, "/v1/load_lora_adapter", &body);
    assert!(refused.status == 400 && refused.body.contains("is a model already"), "{}", refused.body);
}

/// The error of the program.
fn refusal(args: &[&str]) -> String {
    let output = program().args(["serve", "--port", "0"]).args(args).output().unwrap();
    let message = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(2), "{args:?}: {message}");
    message
}

#[test]
fn the_program_serves_several_models_until_it_is_told_to_end() {
    let dir = tempfile::tempdir().unwrap();
    let plan = dir.path().join("embed.plan");
    let nano = Path::new(env!("CARGO_MANIFEST_DIR")).join("model-specs/nano");
    let mut compile = program();
    compile.arg("compile").arg(&nano).args(["--vectors", "mean", "-q", "-o"]).arg(&plan);
    assert!(compile.status().unwrap().success());
    let also = format!("embed={}", plan.display());
    let of_source = format!("second={}", nano.display());
    let (mut child, address) = start(0, &["--also", &also, "--also", &of_source, "--parallel", "2"]);
    let body = json!({ "model": "embed", "input": TEXTS });
    assert_eq!(post(address, "/v1/embeddings", &body).json()["data"][2]["index"], 2);
    let [first, second] = ["nano", "second"]
        .map(|model| post(address, "/v1/chat/completions", &chat(model, "Hi")).json()["choices"].clone());
    assert!(first == second && first.is_array(), "{first}");
    assert!(Command::new("kill").arg(child.id().to_string()).status().unwrap().success());
    assert!(child.wait().unwrap().success());

    // Memory of all is counted before any is taken.
    let message = refusal(&["--also", &also, "--max-memory", "10M"]);
    let (nano, embed) =
        (message.find(" by nano (weights ").unwrap(), message.find(" by embed (weights ").unwrap());
    assert!(nano < embed && message.contains("10.0 MB allowed") && message.lines().count() == 1, "{message}");
    let twice = refusal(&["--also", &also, "--also", &also]);
    assert!(twice.contains("--also embed=...: `embed` is a model already"), "{twice}");
    let main = refusal(&["--also", &also.replace("embed=", "nano=")]);
    assert!(main.contains("`nano` is a model already"), "{main}");
    assert!(refusal(&["--also", "embed"]).contains("expected NAME=MODEL"));
    assert!(refusal(&["--also", "=a"]).contains("expected NAME=MODEL"));
    assert!(refusal(&["--also", "embed=/nowhere"]).contains("/nowhere"));
    assert!(refusal(&["--also", &also, "--script", "a.json"]).contains("cannot be used with"));
}
