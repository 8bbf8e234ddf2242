//! Encodes texts by a model's tokenizer: a JSON list of texts on standard input, a JSON list with the ids of
//! each on standard output, and what decoding them gives. `compare.py` holds them against other
//! implementations.

use kernmill_checkpoint::tokenizer_files::TokenizerFiles;
use kernmill_runtime::Tokenizer;
use serde_json::json;
use std::error::Error;
use std::io::Write;
use std::path::PathBuf;

fn main() -> Result<(), Box<dyn Error>> {
    let usage = "usage: encode DIR|FILE.gguf < texts.json";
    let model = PathBuf::from(std::env::args_os().nth(1).ok_or(usage)?);
    let tokenizer = TokenizerFiles::of(&model)?.read()?.ok_or("the model has no tokenizer")?;
    let tokenizer = Tokenizer::from_json(&tokenizer, u32::MAX)?;
    let texts: Vec<String> = serde_json::from_reader(std::io::stdin())?;
    let mut encoded = Vec::with_capacity(texts.len());
    for text in texts {
        let ids = tokenizer.encode(&text, false)?;
        let decoded = tokenizer.decode(&ids)?;
        encoded.push(json!({ "ids": ids, "text": decoded }));
    }
    Ok(std::io::stdout().write_all(json!(encoded).to_string().as_bytes())?)
}
