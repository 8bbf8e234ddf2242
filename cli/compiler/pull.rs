//! `kernmill pull`: a model from a hub.

use crate::aside::Aside;
use crate::explicit::Explicit;
use crate::failure::Result;
use crate::output;

/// Fetches a model from a hub into the cache that Hugging Face's tools share
///
/// Its name is then a MODEL for every command. What was cut goes on where it was; sums are compared. HF_TOKEN
/// is for gated models, HF_ENDPOINT another hub, HF_HUB_CACHE or HF_HOME another place.
#[derive(Debug, clap::Args)]
#[command(after_help = include_str!("../help/pull.txt"))]
pub struct Pull {
    /// Model: ORG/NAME, and behind a colon the type or the name of a GGUF file
    #[arg(value_name = "ORG/NAME[:TYPE]")]
    name: String,
    #[command(flatten)]
    aside: Aside,
}

impl Pull {
    /// Runs the command. The path of the model goes to standard output.
    pub fn execute(self, _explicit: &Explicit) -> Result<()> {
        let (path, closing) = kernmill::pull::pull(&self.name, &self.aside)?;
        self.aside.line(&closing);
        output::show(format!("{}\n", path.display()))
    }
}
