//! Texts from the command line, and their vectors and scores as text.

use kernmill::locate::Located;
use kernmill::{Error, Model, ModelMakes, Result};
use kernmill_os::files::{read_all_text, read_named_text};
use kernmill_plan::limit;
use kernmill_plan::program::ModelInfo;
use kernmill_plan::vectors::Pooling;
use kernmill_serve::SchedulerConfig;
use serde_json::json;
use std::io::IsTerminal;
use std::path::Path;
use std::str::FromStr;

/// Texts that run at once.
pub const AT_ONCE: u32 = 16;

/// The model, to make that. A plan makes what it was compiled for.
pub fn making(mut located: Located, makes: ModelMakes) -> Located {
    if let Located::Source(files) = &mut located {
        files.makes = makes;
    }
    located
}

/// Reads the name of a pooling, or `none` for texts.
///
/// # Errors
/// When it is another word.
pub fn makes(text: &str) -> std::result::Result<ModelMakes, String> {
    match Pooling::from_name(text) {
        Some(pooling) => Ok(ModelMakes::Vectors(Some(pooling))),
        None if text == "none" => Ok(ModelMakes::Texts),
        None => Err(format!("expected {}, or none for texts", Pooling::NAMES.join(", "))),
    }
}

/// Refuses a model that makes vectors, where logits are needed.
///
/// # Errors
/// When it does.
pub(crate) fn need_logits(model: &ModelInfo) -> Result<()> {
    match model.vectors() {
        None => Ok(()),
        Some(_) => Err(Error::bad_input(
            "the model makes vectors of texts, and no logits: `kernmill embed` prints them",
        )),
    }
}

/// How texts for vectors are scheduled: any number of them waits.
pub fn scheduling() -> SchedulerConfig {
    let patient =
        SchedulerConfig { max_wait: [None; 3], max_queue: u32::MAX / 4, ..SchedulerConfig::default() };
    patient.with_sequences(AT_ONCE)
}

/// How vectors are printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum VectorFormat {
    /// Each as a list of JSON on a line.
    Lines,
    /// All in one object of JSON.
    Json,
    /// Numbers of 4 bytes, little-endian, one vector behind the other.
    F32,
}

impl FromStr for VectorFormat {
    type Err = String;

    fn from_str(text: &str) -> std::result::Result<VectorFormat, String> {
        match text {
            "lines" => Ok(VectorFormat::Lines),
            "json" => Ok(VectorFormat::Json),
            "f32" => Ok(VectorFormat::F32),
            _ => Err("expected lines, json or f32".to_owned()),
        }
    }
}

/// The given texts, or else the lines of a file or of standard input, without empty ones.
///
/// # Errors
/// When no text is given, or a file cannot be read.
pub fn texts(given: Vec<String>, file: Option<&Path>) -> Result<Vec<String>> {
    if !given.is_empty() {
        return Ok(given);
    }
    let most = limit::PROMPT_BYTES as u64;
    let text = match file.filter(|path| *path != Path::new("-")) {
        Some(path) => read_named_text(path, most).map_err(Error::read(path))?,
        None if file.is_none() && std::io::stdin().is_terminal() => String::new(),
        None => read_all_text(std::io::stdin(), most)
            .map_err(|error| Error::bad_input(format!("standard input: {error}")))?,
    };
    let lines: Vec<String> = text.lines().filter(|line| !line.is_empty()).map(str::to_owned).collect();
    match lines.is_empty() {
        true => Err(Error::bad_input("there is no text: give TEXT behind MODEL, --file, or pipe lines in")),
        false => Ok(lines),
    }
}

/// The vectors of texts, in a format.
///
/// # Errors
/// As [`Model::embed`].
pub fn embedded(
    model: &Model,
    texts: &[String],
    dimensions: Option<u32>,
    format: VectorFormat,
) -> Result<Vec<u8>> {
    let vectors = model.embed(texts, dimensions)?;
    Ok(match format {
        VectorFormat::Lines => {
            vectors.iter().map(|vector| format!("{}\n", json!(vector))).collect::<String>().into_bytes()
        }
        VectorFormat::Json => {
            let name = &model.image().program().model.name;
            format!("{}\n", json!({ "model": name, "embeddings": vectors })).into_bytes()
        }
        VectorFormat::F32 => vectors.iter().flatten().flat_map(|x| x.to_le_bytes()).collect(),
    })
}

/// Texts with how well they answer a question, the best first.
///
/// # Errors
/// As [`Model::score`].
pub fn scored(model: &Model, query: &str, texts: &[String]) -> Result<String> {
    let mut scored: Vec<(f32, &String)> = model.score(query, texts)?.into_iter().zip(texts).collect();
    scored.sort_by(|a, b| b.0.total_cmp(&a.0));
    Ok(scored.iter().map(|(score, text)| format!("{score:.4}  {text}\n")).collect())
}
