//! Prompts: the text behind MODEL, or an option that says where it is.

use crate::explicit::Explicit;
use crate::failure::{Failure, Result};
use crate::given::GivenArgs;
use kernmill_tools::prompt::PromptSource;
use std::path::PathBuf;

/// The text to continue.
#[derive(Debug, clap::Args)]
#[group(multiple = false)]
pub struct PromptArgs {
    /// Text to continue, as --prompt
    #[arg(value_name = "PROMPT", index = 2, help_heading = None::<&'static str>)]
    text: Option<String>,
    /// Text to continue. Without a text and the next two, what is piped to standard input, without its last
    /// line end
    #[arg(long, short_alias = 'p', value_name = "TEXT", allow_hyphen_values = true)]
    prompt: Option<String>,
    /// File with the text to continue; - is standard input
    #[arg(long, value_name = "FILE")]
    prompt_file: Option<PathBuf>,
    /// File with token ids to continue: a JSON list
    #[arg(long, value_name = "IDS.json")]
    tokens: Option<PathBuf>,
}

impl PromptArgs {
    /// Takes the first word of the command line as the text, where --model says what the model is.
    pub fn follow(&mut self, given: &mut GivenArgs, explicit: &Explicit) -> Result<()> {
        let Some(first) = given.take_named(explicit) else { return Ok(()) };
        if !matches!(self.source(), PromptSource::Piped) {
            let what = "MODEL is given twice: by --model, and as the first word";
            return Err(Failure::BadInput(what.to_owned()));
        }
        self.text = Some(first.to_string_lossy().into_owned());
        Ok(())
    }

    /// Where it comes from.
    pub fn source(&self) -> PromptSource {
        let text = || self.text.clone().or_else(|| self.prompt.clone()).map(PromptSource::Text);
        let file = || self.prompt_file.clone().map(PromptSource::File);
        self.tokens.clone().map(PromptSource::Ids).or_else(text).or_else(file).unwrap_or(PromptSource::Piped)
    }

    /// Whether it is token ids.
    pub fn is_ids(&self) -> bool {
        self.tokens.is_some()
    }

    /// Whether it is a text of the command line.
    pub fn is_text(&self) -> bool {
        self.text.is_some() || self.prompt.is_some()
    }

    /// A failure to find the model, with what helps who meant a text for the embedded one.
    pub fn explained(&self, failure: Failure, given: &GivenArgs) -> Failure {
        match (failure, &given.model) {
            (Failure::BadInput(what), Some(path)) if path.symlink_metadata().is_err() => Failure::BadInput(
                format!("{what}. Without MODEL, --prompt TEXT goes to the embedded nano model"),
            ),
            (other, _) => other,
        }
    }
}
