//! `-v`, `--log-file` and `RUST_LOG`: what the libraries say about their work.

use crate::failure::{Failure, Result};
use std::path::PathBuf;
use std::sync::Mutex;
use tracing::level_filters::LevelFilter;
use tracing_subscriber::filter::Targets;
use tracing_subscriber::fmt::MakeWriter;
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;
use tracing_subscriber::{Layer, Registry, fmt, registry};

/// The variable that many programs know, such as `debug` or `kernmill_compiler=trace,info`. It goes before
/// -v.
const VARIABLE: &str = "RUST_LOG";

/// Messages beside the results.
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Logging")]
pub struct LogArgs {
    /// Say what is done, on standard error; -vv in detail. RUST_LOG=debug does the same, and can name modules
    #[arg(long, short, global = true, action = clap::ArgAction::Count)]
    verbose: u8,
    /// Append what is done to this file instead of saying it
    #[arg(long, global = true, value_name = "FILE")]
    log_file: Option<PathBuf>,
    /// Form of these lines: text, or an object of JSON each. With json, a server says what it was asked for
    /// without -v
    #[arg(long, global = true, value_name = "FORMAT", default_value = "text")]
    log_format: Form,
}

/// `--log-format`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum Form {
    Text,
    Json,
}

impl LogArgs {
    /// From now on what is traced is shown: what was asked for, and warnings in any case.
    pub fn start(&self) -> Result<()> {
        let Some(filter) = self.filter()? else {
            let warnings = fmt::layer().with_ansi(false).log_internal_errors(false);
            let warnings = warnings.without_time().with_target(false).with_writer(std::io::stderr);
            registry().with(warnings.with_filter(LevelFilter::WARN)).init();
            return Ok(());
        };
        let lines = match &self.log_file {
            None => self.lines(std::io::stderr),
            Some(path) => {
                let file = kernmill_tools::open_log(path).map_err(Failure::read(path))?;
                self.lines(Mutex::new(file))
            }
        };
        registry().with(lines.with_filter(filter)).init();
        Ok(())
    }

    /// Lines in the form that is asked for. One that cannot be written changes nothing.
    fn lines<W>(&self, writer: W) -> Box<dyn Layer<Registry> + Send + Sync>
    where
        W: for<'a> MakeWriter<'a> + Send + Sync + 'static,
    {
        let lines = fmt::layer().with_ansi(false).log_internal_errors(false).with_writer(writer);
        match self.log_format {
            Form::Text => lines.boxed(),
            Form::Json => lines.json().flatten_event(true).with_current_span(false).boxed(),
        }
    }

    fn filter(&self) -> Result<Option<Targets>> {
        if let Some(text) = std::env::var(VARIABLE).ok().filter(|text| !text.is_empty()) {
            let filter: std::result::Result<Targets, _> = text.parse();
            return filter.map(Some).map_err(|error| {
                Failure::BadInput(format!(
                    "{VARIABLE}={text}: {error}; expected a level (error, warn, info, debug, trace, off), or \
                     MODULE=LEVEL,.."
                ))
            });
        }
        let level = match (self.verbose, &self.log_file) {
            (0, None) if self.log_format == Form::Json => {
                let server = [("kernmill_server", LevelFilter::INFO)];
                return Ok(Some(Targets::new().with_default(LevelFilter::WARN).with_targets(server)));
            }
            (0, None) => return Ok(None),
            (0 | 1, _) => LevelFilter::INFO,
            (2, _) => LevelFilter::DEBUG,
            _ => LevelFilter::TRACE,
        };
        Ok(Some(Targets::new().with_default(level)))
    }
}
