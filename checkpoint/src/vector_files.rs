//! Facts about vectors in a model's files: sentence-transformers' `modules.json` and what it names, and
//! GGUF's `pooling_type`.

use crate::error::{CheckpointError, Result};
use crate::gguf::Gguf;
use crate::prompt_files::{self, json};
use crate::tokenizer_files::TokenizerFiles;
use kernmill_plan::vectors::{Pooling, VectorForm};
use serde_json::Value;
use std::path::Path;

/// The file that lists the parts of a model of sentence-transformers.
const MODULES: &str = "modules.json";

/// Poolings by their flags in a `Pooling` part, and by their names in one of newer versions.
const MODES: [(&str, &str, Pooling); 3] = [
    ("pooling_mode_lasttoken", "lasttoken", Pooling::Last),
    ("pooling_mode_mean_tokens", "mean", Pooling::Mean),
    ("pooling_mode_cls_token", "cls", Pooling::First),
];

impl TokenizerFiles {
    /// How vectors are made of the model's rows, if its files say that it is for vectors.
    ///
    /// # Errors
    /// When a file is wrong, or says what is not supported.
    pub fn vector_form(&self) -> Result<Option<VectorForm>> {
        match self {
            TokenizerFiles::Embedded(_) => Ok(None),
            TokenizerFiles::Directory(dir) => of_directory(dir),
            TokenizerFiles::Gguf(gguf) => of_gguf(gguf),
        }
    }
}

fn of_gguf(gguf: &Gguf) -> Result<Option<VectorForm>> {
    let pooling = match gguf.whole(&format!("{}.pooling_type", gguf.architecture()?))? {
        // Without pooling, and for ranks, which are the logits of two tokens.
        None | Some(0 | 4) => return Ok(None),
        Some(1) => Pooling::Mean,
        Some(2) => Pooling::First,
        Some(3) => Pooling::Last,
        Some(other) => return gguf.unsupported(format!("pooling_type {other}: expected 0 to 4")),
    };
    Ok(Some(VectorForm { pooling, normalise: true }))
}

fn of_directory(dir: &Path) -> Result<Option<VectorForm>> {
    let path = dir.join(MODULES);
    if !path.exists() {
        return Ok(None);
    }
    // Prompts are read with the templates, where a fault is no error; here is the place to say it.
    prompt_files::in_directory(dir)?;
    let modules = json(&path)?;
    let corrupt =
        |path: &Path, what: &str| CheckpointError::Corrupt { path: path.to_owned(), what: what.to_owned() };
    let unsupported =
        |path: &Path, what: String| CheckpointError::Unsupported { path: path.to_owned(), what };
    let modules = modules.as_array().ok_or_else(|| corrupt(&path, "expected a list of modules"))?;
    let (mut pooling, mut normalise) = (None, false);
    for module in modules {
        let text = |key: &str| module.get(key).and_then(Value::as_str);
        let kind = text("type").ok_or_else(|| corrupt(&path, "expected a `type` of every module"))?;
        match kind.rsplit('.').next().unwrap_or(kind) {
            "Transformer" => {}
            "Pooling" => {
                let place = text("path").unwrap_or_default();
                if place.is_empty() || place.contains(['/', '\\']) || place == ".." {
                    return Err(corrupt(
                        &path,
                        "expected the name of a directory as `path` of the Pooling module",
                    ));
                }
                let path = dir.join(place).join("config.json");
                let config = json(&path)?;
                let is = |key: &str| config.get(key).and_then(Value::as_bool);
                let flags = config.as_object().into_iter().flatten();
                let mut given: Vec<&str> = flags
                    .filter(|(key, value)| key.starts_with("pooling_mode_") && **value == Value::Bool(true))
                    .map(|(key, _)| key.as_str())
                    .collect();
                match config.get("pooling_mode") {
                    None => {}
                    Some(Value::String(name)) => given.push(name),
                    Some(_) => given.push("several modes"),
                }
                pooling = match given[..] {
                    [found] => {
                        let modes = MODES.iter().find(|(flag, name, _)| [*flag, *name].contains(&found));
                        modes.map(|(_, _, pooling)| *pooling)
                    }
                    _ => None,
                };
                if pooling.is_none() {
                    let what = format!(
                        "pooling by {}; supported is one of: {}",
                        given.join(" and "),
                        MODES.map(|it| it.1).join(", ")
                    );
                    return Err(unsupported(&path, what));
                }
                if is("include_prompt") == Some(false) {
                    let what = "`include_prompt: false`: prompts are pooled with their texts".to_owned();
                    return Err(unsupported(&path, what));
                }
            }
            "Normalize" => normalise = true,
            other => {
                let what = format!("module `{other}`; supported are Transformer, Pooling and Normalize");
                return Err(unsupported(&path, what));
            }
        }
    }
    Ok(pooling.map(|pooling| VectorForm { pooling, normalise }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::{create_dir, write};

    const MODULES_OF_QWEN3: &str = r#"[
        {"idx": 0, "name": "0", "path": "", "type": "sentence_transformers.models.Transformer"},
        {"idx": 1, "name": "1", "path": "1_Pooling", "type": "sentence_transformers.models.Pooling"},
        {"idx": 2, "name": "2", "path": "2_Normalize", "type": "sentence_transformers.models.Normalize"}
    ]"#;
    const POOLING: &str = r#"{"word_embedding_dimension": 1024, "pooling_mode_cls_token": false,
        "pooling_mode_mean_tokens": false, "pooling_mode_lasttoken": true, "include_prompt": true}"#;

    fn form(modules: &str, pooling: &str) -> std::result::Result<Option<VectorForm>, String> {
        let dir = tempfile::tempdir().unwrap();
        create_dir(dir.path().join("1_Pooling")).unwrap();
        write(dir.path().join(MODULES), modules).unwrap();
        write(dir.path().join("1_Pooling/config.json"), pooling).unwrap();
        let form = TokenizerFiles::Directory(dir.path().to_owned()).vector_form();
        form.map_err(|error| error.to_string().replace(&dir.path().display().to_string(), "DIR"))
    }

    #[test]
    fn modules_say_how_vectors_are_made() {
        let last = VectorForm { pooling: Pooling::Last, normalise: true };
        assert_eq!(form(MODULES_OF_QWEN3, POOLING), Ok(Some(last)));
        let mean = POOLING
            .replace("tokens\": false", "tokens\": true")
            .replace("lasttoken\": true", "lasttoken\": false");
        assert_eq!(form(MODULES_OF_QWEN3, &mean), Ok(Some(VectorForm { pooling: Pooling::Mean, ..last })));
        for (mode, pooling) in
            [("cls", Pooling::First), ("mean", Pooling::Mean), ("lasttoken", Pooling::Last)]
        {
            let newer =
                format!(r#"{{"embedding_dimension": 64, "pooling_mode": "{mode}", "include_prompt": true}}"#);
            assert_eq!(form(MODULES_OF_QWEN3, &newer), Ok(Some(VectorForm { pooling, ..last })));
        }
        let raw = MODULES_OF_QWEN3.replace("models.Normalize", "models.Transformer");
        assert_eq!(form(&raw, POOLING), Ok(Some(VectorForm { normalise: false, ..last })));
        let none = tempfile::tempdir().unwrap();
        assert_eq!(TokenizerFiles::Directory(none.path().to_owned()).vector_form().unwrap(), None);
    }

    #[test]
    fn a_gguf_file_says_it_by_a_number() {
        let form = |pooling: Option<u32>| {
            let mut file = crate::gguf::NewGguf::default();
            file.set("general.architecture", "qwen3");
            pooling.into_iter().for_each(|pooling| file.set("qwen3.pooling_type", pooling));
            let gguf = Gguf::from_bytes("a test", file.head(&[])).unwrap();
            of_gguf(&gguf).map_err(|error| error.to_string())
        };
        for (number, pooling) in [(1, Pooling::Mean), (2, Pooling::First), (3, Pooling::Last)] {
            assert_eq!(form(Some(number)), Ok(Some(VectorForm { pooling, normalise: true })));
        }
        for none in [None, Some(0), Some(4)] {
            assert_eq!(form(none), Ok(None));
        }
        assert!(form(Some(7)).unwrap_err().contains("pooling_type 7"));
    }

    #[test]
    fn what_is_not_supported_is_refused() {
        for (modules, pooling, what) in [
            (MODULES_OF_QWEN3.replace("Normalize\"", "Dense\""), POOLING.to_owned(), "module `Dense`"),
            (
                MODULES_OF_QWEN3.to_owned(),
                POOLING.replace("false", "true"),
                "pooling by pooling_mode_cls_token and",
            ),
            (MODULES_OF_QWEN3.to_owned(), r#"{"pooling_mode": "max"}"#.to_owned(), "pooling by max"),
            (
                MODULES_OF_QWEN3.to_owned(),
                r#"{"pooling_mode": ["mean", "max"]}"#.to_owned(),
                "pooling by several modes",
            ),
            (
                MODULES_OF_QWEN3.to_owned(),
                POOLING.replace("prompt\": true", "prompt\": false"),
                "`include_prompt: false`",
            ),
            (
                MODULES_OF_QWEN3.replace("1_Pooling", "../elsewhere"),
                POOLING.to_owned(),
                "the name of a directory",
            ),
            ("{}".to_owned(), POOLING.to_owned(), "expected a list of modules"),
            (MODULES_OF_QWEN3.to_owned(), "[".to_owned(), "DIR/1_Pooling/config.json: corrupt: no JSON"),
        ] {
            let error = form(&modules, &pooling).unwrap_err();
            assert!(error.contains(what), "{error}");
        }
    }
}
