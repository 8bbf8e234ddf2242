//! `kernmill tokens`: the ids of a text, and the text of ids.

use crate::explicit::Explicit;
use crate::failure::Result;
use crate::given::GivenArgs;
use crate::output;
use crate::prompt::PromptArgs;
use kernmill::{Opened, Options};
use kernmill_tools::prompt::listed;
use std::sync::Arc;

/// Shows the token ids of a text, or the text of ids
///
/// The ids are those that `run` begins with, start tokens included. They are printed as a JSON list, which
/// --tokens of `run` and `logits` reads. With --tokens it is the other way round: the text of the ids, with
/// special tokens by their names.
#[derive(Debug, clap::Args)]
#[command(after_help = include_str!("help/tokens.txt"))]
pub struct Tokens {
    #[command(flatten)]
    prompt: PromptArgs,
    #[command(flatten)]
    given: GivenArgs,
    /// Show each id on a line, with its own text
    #[arg(long)]
    each: bool,
}

impl Tokens {
    /// Runs the command.
    pub fn execute(mut self, explicit: &Explicit) -> Result<()> {
        self.prompt.follow(&mut self.given, explicit)?;
        let located = self.given.resolve(explicit);
        let located = located.map_err(|failure| self.prompt.explained(failure, &self.given))?;
        let options = Options::default().with(|options| options.observer = Arc::new(explicit.aside()));
        let mut model = Opened::open(located, &options)?;
        let tokenizer = model.tokenizer();
        let ids = self.prompt.source().read(&model, tokenizer.as_ref(), &[], model.longest_context())?.ids;
        output::print(listed(&ids, tokenizer.as_ref(), self.each, self.prompt.is_ids())?)
    }
}
