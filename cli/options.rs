//! Options that several commands have.

pub use crate::compiler::CompileArgs;
use clap::builder::{PossibleValuesParser, RangedI64ValueParser, TypedValueParser};
use kernmill::Target;
pub use kernmill_tools::values::size;
use kernmill_tools::{Level, MAX_THREADS, default_threads, server::Today};
use std::path::PathBuf;

/// Tokens that a text may have where a server or a chat is not told, as far as the model can.
pub const CONTEXT: usize = 8192;

/// How long a text may get.
#[derive(Debug, clap::Args)]
pub struct ContextArgs {
    /// Longest text with its prompt, in tokens; by default the model's longest, up to 8192 (batch: up to
    /// 4096; run: what is asked for, at least 4096 if the model can; with -n -1 the model's longest)
    #[arg(long, short_alias = 'c', alias = "ctx-size", alias = "max-model-len", value_name = "N")]
    pub context: Option<u32>,
}

/// The format of conversations.
#[derive(Debug, clap::Args)]
pub struct TemplateArgs {
    /// Chat template (Jinja) that conversations take in place of the model's own format
    #[arg(long, value_name = "FILE")]
    pub chat_template: Option<PathBuf>,
}

/// Options of conversations that requests do not set.
#[derive(Debug, clap::Args)]
pub struct ConversationArgs {
    /// Day that conversations are told: today, none, or YYYY-MM-DD
    #[arg(long, value_name = "DAY", default_value = "today")]
    pub date: Today,
    #[command(flatten)]
    pub template: TemplateArgs,
}

/// Takes as many threads as a pool may have.
pub fn thread_count() -> RangedI64ValueParser<u16> {
    RangedI64ValueParser::new().range(1..=MAX_THREADS as i64)
}

/// Threads that work.
#[derive(Debug, clap::Args)]
pub struct ThreadsArgs {
    /// Worker threads; by default one for each physical core that this process may use
    #[arg(long, short_alias = 't', value_name = "N", value_parser = thread_count())]
    threads: Option<u16>,
}

impl ThreadsArgs {
    /// As many as were asked for.
    pub fn given(&self) -> Option<usize> {
        self.threads.map(usize::from)
    }

    /// How many work.
    pub fn number(&self) -> usize {
        self.given().unwrap_or_else(default_threads)
    }
}

/// The form of a report.
#[derive(Debug, clap::Args)]
pub struct FormArgs {
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

const NATIVE: &str = "native";

/// `--target`.
pub fn target_parser() -> impl TypedValueParser<Value = Target> {
    let names = std::iter::once(NATIVE).chain(Level::ALL.map(Level::name));
    PossibleValuesParser::new(names.collect::<Vec<_>>())
        .map(|name| Level::from_name(&name).map_or(Target::Native, Target::Level))
}
