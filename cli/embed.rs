//! `kernmill embed`: vectors of texts, and how well texts answer a question.

use crate::emit::Emit;
use crate::explicit::Explicit;
use crate::failure::Result;
use crate::model::{self, ModelArgs};
use crate::options::ContextArgs;
use crate::output;
use kernmill::{Model, ModelMakes};
use kernmill_tools::vectors::{AT_ONCE, VectorFormat, embedded, scheduling, scored, texts};
use std::path::PathBuf;

/// Makes vectors of texts, for searching by meaning
///
/// Texts that mean the like have vectors of the like directions. A vector depends on its text alone, to the
/// bit. Models for vectors are known by their files; of any other model, the last token's row is taken. With
/// --query, rerankers and models for vectors tell how well each text answers a question.
#[derive(Debug, clap::Args)]
#[command(after_help = include_str!("help/embed.txt"))]
pub struct EmbedTexts {
    /// Texts; without one, each line of --file, or of what is piped to standard input
    #[arg(value_name = "TEXT", index = 2, help_heading = None::<&'static str>)]
    texts: Vec<String>,
    /// File with a text on every line; - is standard input
    #[arg(short, long, value_name = "FILE", conflicts_with = "texts")]
    file: Option<PathBuf>,
    /// Elements of a vector: its first ones, before it is divided by its length; by default all
    #[arg(long, value_name = "N")]
    dimensions: Option<u32>,
    /// lines: each vector is a JSON list on a line. json: one object. f32: bare numbers, little-endian
    #[arg(long, value_name = "lines|json|f32", default_value = "lines")]
    format: VectorFormat,
    /// Purpose of the texts, such as query: what the model has before such texts comes first
    #[arg(long, value_name = "NAME", conflicts_with = "query")]
    prompt: Option<String>,
    /// Print how well each text answers this question instead, and the text; the best comes first
    #[arg(long, value_name = "TEXT", conflicts_with_all = ["dimensions", "format"])]
    query: Option<String>,
    #[command(flatten)]
    length: ContextArgs,
    #[command(flatten)]
    model: ModelArgs,
}

impl EmbedTexts {
    /// Runs the command.
    pub fn execute(mut self, explicit: &Explicit) -> Result<()> {
        let first = self.model.given.take_named(explicit).map(|text| text.to_string_lossy().into_owned());
        let texts = texts(first.into_iter().chain(self.texts).collect(), self.file.as_deref())?;
        self.model.makes = self.query.as_ref().map_or(ModelMakes::Vectors(None), |_| ModelMakes::AsFiles);
        let (mut model, mut options) = model::open(&self.model, &Emit::NONE, explicit)?;
        options.prompt = self.prompt.take();
        model.tokenizer();
        let context = model.context(self.length.context, 0)?;
        let (loaded, adapters) = model::load(model, &options, &Emit::NONE, context, AT_ONCE)?;
        let model = Model::of(loaded, scheduling(), Vec::new(), adapters)?;
        match &self.query {
            Some(query) => output::print(scored(&model, query, &texts)?)?,
            None => output::print(embedded(&model, &texts, self.dimensions, self.format)?)?,
        }
        model.thread().end();
        Ok(())
    }
}
