//! Chat templates applied to conversations: `compare_templates.py` holds them to Python's Jinja.
//!
//! A line is an object with `template`, `tokenizer`, a `tokenizer.json`, and `named`, the texts of tokens by the
//! names that templates have for them; or a conversation for these. The answer to a conversation is an object
//! with `text`, its `ids`, `tells_tools` and `tells_calls`, or with `error`.
//!
//! With the name of a GGUF file, its tokenizer is written as a `tokenizer.json`, and nothing is read.

use kernmill_chat::{Conversation, Template, TemplateError};
use kernmill_checkpoint::tokenizer_files::TokenizerFiles;
use kernmill_runtime::Tokenizer;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::error::Error;
use std::io::{BufRead, Write, stdin, stdout};
use std::path::PathBuf;

/// A template with its tokenizer.
struct Model {
    tokenizer: Tokenizer,
    template: Result<Template, TemplateError>,
}

impl Model {
    fn new(given: &Value) -> Result<Model, Box<dyn Error>> {
        let text = |name: &str| given[name].as_str().unwrap_or_default();
        let tokenizer = Tokenizer::from_json(&std::fs::read(text("tokenizer"))?, u32::MAX)?;
        let named: BTreeMap<String, String> = serde_json::from_value(given["named"].clone())?;
        let template = Template::new(text("template"), &tokenizer, &named);
        Ok(Model { tokenizer, template })
    }

    fn answer(&self, conversation: &Conversation) -> Result<Value, TemplateError> {
        let template = self.template.as_ref().map_err(TemplateError::clone)?;
        let ids = template.prompt(&self.tokenizer, conversation)?.ids;
        let text = template.text(conversation)?;
        let (tells_tools, tells_calls) = (template.tells_tools(), template.tells_calls());
        Ok(json!({ "text": text, "ids": ids, "tells_tools": tells_tools, "tells_calls": tells_calls }))
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    let mut out = stdout().lock();
    if let Some(file) = std::env::args_os().nth(1) {
        let tokenizer = TokenizerFiles::of(&PathBuf::from(file))?.read()?;
        return Ok(out.write_all(&tokenizer.ok_or("the model has no tokenizer")?)?);
    }
    let mut model = None;
    for line in stdin().lock().lines() {
        let given: Value = serde_json::from_str(&line?)?;
        if given.get("template").is_some() {
            model = Some(Model::new(&given)?);
            continue;
        }
        let conversation: Conversation = serde_json::from_value(given)?;
        let model = model.as_ref().ok_or("the first line has no template")?;
        let answer =
            model.answer(&conversation).unwrap_or_else(|error| json!({ "error": error.to_string() }));
        writeln!(out, "{answer}")?;
    }
    Ok(())
}
