//! Where conversations get their form: templates in a model's files and plans, tokens that they name, and a
//! template that the user gives.

use super::chat::without_format;
use super::{Ran, kernmill_in};
use kernmill::chat::format_of;
use kernmill::locate::locate;
use kernmill::{Opened, Options};
use kernmill_chat::{Conversation, Item, Tool};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use tempfile::TempDir;

/// A template that shows what it was given.
const SHOWS: &str =
    "{{ bos_token }}{% for m in messages %}[{{ m.role }}]{{ m.content }}{{ eos_token }}{% endfor %}";
/// The result of `SHOWS` for the message "Hi", between the tokens.
const SHOWN: &str = "[user]Hi";

/// A model's files in a directory: those of a model without a format, and `files`.
fn model(files: &[(&str, &str)]) -> TempDir {
    let dir = TempDir::new().unwrap();
    without_format(dir.path());
    for (name, text) in files {
        let path = dir.path().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
    dir
}

/// The prompt that the message "Hi" becomes, with its special tokens; or why it becomes none.
fn prompt(model: &Path, given: Option<&Path>, has_tools: bool) -> Result<String, String> {
    let options = Options::default().with(|it| {
        it.threads = Some(1);
        it.chat_template = given.map(Path::to_owned);
    });
    let mut opened = Opened::open(locate(model).unwrap(), &options).unwrap();
    let tokenizer = opened.tokenizer().unwrap();
    let ends = opened.end_tokens().unwrap();
    let loaded = opened.prepare(&options).map_err(|error| error.to_string())?.load(&options, 64, 1).unwrap();
    let tokenizer = tokenizer.get().unwrap();
    let format = format_of(tokenizer, loaded.image.chat_templates(), &ends).unwrap();
    let tool = Tool { name: "f".into(), description: String::new(), parameters: None, strict: false };
    let conversation = Conversation {
        items: vec![Item::User { name: None, text: "Hi".into() }],
        tools: has_tools.then_some(tool).into_iter().collect(),
        ..Conversation::default()
    };
    let ids = format.prompt(tokenizer, &conversation, &BTreeMap::new()).map_err(|error| error.to_string())?;
    Ok(String::from_utf8(ids.iter().flat_map(|id| tokenizer.token_bytes(*id).unwrap()).collect()).unwrap())
}

/// The prompts of a directory and of its plan, without and with functions.
fn prompts(dir: &Path) -> [String; 2] {
    let of = |path: &Path| [false, true].map(|has_tools| prompt(path, None, has_tools).unwrap());
    kernmill_in(dir, &["compile", ".", "-o", "a.plan", "-q"]).text();
    let prompts = of(dir);
    assert_eq!(of(&dir.join("a.plan")), prompts, "a plan has the templates of its model");
    prompts
}

#[test]
fn a_directory_has_its_template_in_one_of_several_places() {
    let named = |name: &str, text: &str| json!({"name": name, "template": text});
    let text = json!({"chat_template": "text"}).to_string();
    let list = json!({"chat_template": [named("tool_use", "with"), named("rag", "rag"), named("default", "without")]});
    let list = list.to_string();
    let alone = json!({"chat_template": [named("rag", "rag"), named("other", "other")]}).to_string();
    let (text, list, alone) = (text.as_str(), list.as_str(), alone.as_str());
    let config = ("tokenizer_config.json", text);
    let with = ("additional_chat_templates/tool_use.jinja", "with");
    for (files, expected) in [
        (vec![config], ["text", "text"]),
        (vec![("tokenizer_config.json", list)], ["without", "with"]),
        (vec![("tokenizer_config.json", alone)], ["rag", "rag"]),
        (vec![config, ("chat_template.jinja", "file")], ["file", "file"]),
        (vec![config, ("chat_template.jinja", "file"), with], ["file", "with"]),
        (vec![("tokenizer_config.json", list), ("chat_template.jinja", "file")], ["file", "file"]),
        (vec![("chat_template.json", text)], ["text", "text"]),
        (vec![("chat_template.json", list), ("tokenizer_config.json", "{}")], ["without", "with"]),
    ] {
        assert_eq!(prompts(model(&files).path()), expected.map(str::to_owned), "{files:?}");
    }
}

/// Nano's spare tokens are `<|spare_3064|>` and the following ones; 3071 is `<|endoftext|>`.
#[test]
fn templates_write_the_tokens_that_the_files_name() {
    let template = ("chat_template.jinja", SHOWS);
    let tokens = |value: Value| value.to_string();
    let texts = tokens(json!({"bos_token": "<|spare_3064|>", "eos_token": {"content": "<|spare_3065|>"}}));
    let none = tokens(json!({"bos_token": null, "eos_token": "<|spare_3065|>"}));
    let end = tokens(json!({"eos_token": "<|spare_3066|>"}));
    let ids = tokens(json!({"bos_token_id": 3066, "eos_token_id": [3067, 3071]}));
    for (files, before, behind) in [
        (vec![("tokenizer_config.json", &texts)], "<|spare_3064|>", "<|spare_3065|>"),
        (vec![("tokenizer_config.json", &none)], "", "<|spare_3065|>"),
        (vec![("special_tokens_map.json", &texts)], "<|spare_3064|>", "<|spare_3065|>"),
        (
            vec![("tokenizer_config.json", &end), ("special_tokens_map.json", &texts)],
            "<|spare_3064|>",
            "<|spare_3066|>",
        ),
        (vec![("generation_config.json", &ids)], "<|spare_3066|>", "<|spare_3067|>"),
        (
            vec![("tokenizer_config.json", &end), ("generation_config.json", &ids)],
            "<|spare_3066|>",
            "<|spare_3066|>",
        ),
    ] {
        let files: Vec<(&str, &str)> =
            files.iter().map(|(name, text)| (*name, text.as_str())).chain([template]).collect();
        let dir = model(&files);
        // The tokens of nano's own config would go before generation_config.json.
        let config = fs::read_to_string(dir.path().join("config.json")).unwrap();
        let mut config: Value = serde_json::from_str(&config).unwrap();
        for key in ["bos_token_id", "eos_token_id"] {
            config.as_object_mut().unwrap().remove(key);
        }
        fs::write(dir.path().join("config.json"), config.to_string()).unwrap();
        assert_eq!(prompts(dir.path())[0], format!("{before}{SHOWN}{behind}"), "{files:?}");
    }
    // Other tokens by their names, and those that no file names.
    let more = tokens(
        json!({"pad_token": "<|spare_3066|>", "extra_special_tokens": {"image_token": "<|spare_3067|>"}}),
    );
    let shows = "{{ pad_token }}{{ image_token }}{{ unk_token }}.";
    let dir = model(&[("tokenizer_config.json", &more), ("chat_template.jinja", shows)]);
    assert_eq!(prompts(dir.path())[0], "<|spare_3066|><|spare_3067|>.");
}

#[test]
fn a_given_template_goes_before_the_models_own_format() {
    let given = TempDir::new().unwrap();
    let given = given.path().join("mine.jinja");
    fs::create_dir_all(given.parent().unwrap()).unwrap();
    fs::write(&given, SHOWS).unwrap();
    let config = json!({"chat_template": "own", "bos_token": "<|spare_3064|>", "eos_token": "."}).to_string();
    let broken =
        json!({"chat_template": "{% if", "bos_token": "<|spare_3064|>", "eos_token": "."}).to_string();
    for config in [&config, &broken] {
        let dir = model(&[("tokenizer_config.json", config)]);
        let expected = Ok(format!("<|spare_3064|>{SHOWN}."));
        assert_eq!(prompt(dir.path(), Some(&given), false), expected);
        let given = given.to_str().unwrap();
        kernmill_in(dir.path(), &["compile", ".", "-o", "a.plan", "-q", "--chat-template", given]).text();
        assert_eq!(prompt(&dir.path().join("a.plan"), None, false), expected);
    }
    // Harmony is found by the vocabulary alone.
    let nano = Path::new(env!("CARGO_MANIFEST_DIR")).join("model-specs/nano");
    assert!(prompt(&nano, None, false).unwrap().contains("<|start|>"));
    assert!(prompt(&nano, Some(&given), false).unwrap().contains(SHOWN));
    let plan = given.with_extension("plan");
    let args = ["compile", "-o", plan.to_str().unwrap(), "-q", "--chat-template", given.to_str().unwrap()];
    kernmill_in(&nano, &args).text();
    assert!(prompt(&plan, None, false).unwrap().contains(SHOWN));
    let long = "x".repeat((1 << 20) + 1);
    for (text, says) in
        [("{% if", "mine.jinja: the chat template: "), (&long, "mine.jinja: it has more than 1048576 bytes")]
    {
        fs::write(&given, text).unwrap();
        let error = prompt(&nano, Some(&given), false).unwrap_err();
        assert!(error.contains(says), "{error}");
    }
}

impl Ran {
    /// The messages of a run beside its output, whatever its status.
    fn said(&self) -> &str {
        &self.stderr
    }
}

#[test]
fn a_template_of_no_use_is_named_and_texts_are_made_without_it() {
    let requests = [
        json!({"id": "text", "prompt": "A slice is", "max_tokens": 2}),
        json!({"id": "chat", "messages": [{"role": "user", "content": "Hi"}], "max_tokens": 2}),
    ];
    let requests = requests.map(|request| request.to_string()).join("\n");
    let jinja = json!({"chat_template": "{% if %}"}).to_string();
    for (file, text, place) in [
        ("chat_template.jinja", "{{ 1", "chat_template.jinja: the chat template: "),
        ("tokenizer_config.json", jinja.as_str(), "tokenizer_config.json: the chat template: "),
        ("tokenizer_config.json", "{", "tokenizer_config.json: corrupt: "),
        ("tokenizer_config.json", r#"{"chat_template": 3}"#, "tokenizer_config.json: corrupt: "),
        ("special_tokens_map.json", "[]", "special_tokens_map.json: corrupt: "),
    ] {
        let dir = model(&[(file, text), ("requests.jsonl", &requests)]);
        let run = |args: &[&str]| kernmill_in(dir.path(), args);
        let compiled = run(&["compile", ".", "-o", "a.plan"]);
        assert!(compiled.said().contains(&format!("note: ./{place}")), "{file}: {}", compiled.said());
        compiled.text();
        for model in [".", "a.plan"] {
            run(&["run", model, "--prompt", "A slice is", "-n", "2", "-q"]).text();
            let parts: &[&str] = match (model, place.split_once(": corrupt")) {
                (".", _) | (_, Some(_)) => &[place, "--chat-template"],
                _ => &["a.plan: chat template `default`: the chat template: ", "--chat-template"],
            };
            run(&["chat", model, "-q"]).refused(parts);
            let batch = run(&["batch", model, "requests.jsonl", "-o", "answers.jsonl", "-n", "2"]);
            assert!(batch.said().contains("note: conversations are refused: "), "{}", batch.said());
            let answers = fs::read_to_string(dir.path().join("answers.jsonl")).unwrap();
            let answer = |id: &str| -> Value {
                let is_its = |line: &&str| line.contains(&format!("\"custom_id\":\"{id}\""));
                serde_json::from_str(answers.lines().find(is_its).unwrap()).unwrap()
            };
            assert_eq!(answer("text")["response"]["status_code"], 200, "{answers}");
            let error = answer("chat")["error"]["message"].as_str().unwrap().to_owned();
            assert!(parts.iter().all(|part| error.contains(part)), "{error}");
            fs::remove_file(dir.path().join("answers.jsonl")).unwrap();
        }
    }
}

#[test]
fn a_model_without_a_format_is_noted_where_conversations_are_formed() {
    let chat =
        json!({"id": "chat", "messages": [{"role": "user", "content": "Hi"}], "max_tokens": 2}).to_string();
    let text = json!({"id": "text", "prompt": "Hi", "max_tokens": 2}).to_string();
    let dir = model(&[("chat.jsonl", &chat), ("text.jsonl", &text), ("own.jinja", SHOWS)]);
    let batch = |requests: &str, more: &[&str]| {
        let answers = dir.path().join("answers");
        let _ = fs::remove_file(&answers);
        let ran = kernmill_in(dir.path(), &[&["batch", ".", requests, "-o", "answers"], more].concat());
        let is_noted = ran.said().contains("note: this model has neither Harmony nor a chat template");
        ran.text();
        is_noted
    };
    assert!(batch("chat.jsonl", &[]) && !batch("text.jsonl", &[]));
    assert!(!batch("chat.jsonl", &["-q"]) && !batch("chat.jsonl", &["--chat-template", "own.jinja"]));
}
