//! `-v`, `--log-file` and `RUST_LOG`: what the libraries say about their work.

use crate::failure::{Failure, Result};
use std::fs::File;
use std::path::PathBuf;
use std::sync::Mutex;
use tracing::level_filters::LevelFilter;
use tracing_subscriber::filter::Targets;
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;
use tracing_subscriber::{Layer, fmt, registry};

/// The variable that many programs know, such as `debug` or `kernmill_compiler=trace,info`. It goes before
/// -v.
const VARIABLE: &str = "RUST_LOG";

/// What is said beside the results.
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Logging")]
pub struct LogArgs {
    /// Say what is done, on standard error; -vv in detail. RUST_LOG=debug does the same, and can name modules
    #[arg(long, short, global = true, action = clap::ArgAction::Count)]
    verbose: u8,
    /// Append what is done to this file instead of saying it
    #[arg(long, global = true, value_name = "FILE")]
    log_file: Option<PathBuf>,
}

impl LogArgs {
    /// From now on what is traced is shown: what was asked for, and warnings in any case.
    ///
    /// # Errors
    /// When the file cannot be opened, or the variable is of no sense.
    pub fn start(&self) -> Result<()> {
        // A line that cannot be written changes nothing.
        let lines = || fmt::layer().with_ansi(false).log_internal_errors(false);
        let Some(filter) = self.filter()? else {
            let warnings = lines().without_time().with_target(false).with_writer(std::io::stderr);
            registry().with(warnings.with_filter(LevelFilter::WARN)).init();
            return Ok(());
        };
        match &self.log_file {
            None => registry().with(lines().with_writer(std::io::stderr).with_filter(filter)).init(),
            Some(path) => {
                let file = File::options().create(true).append(true).open(path);
                let file = Mutex::new(file.map_err(|error| Failure::input(path, error))?);
                registry().with(lines().with_writer(file).with_filter(filter)).init();
            }
        }
        Ok(())
    }

    fn filter(&self) -> Result<Option<Targets>> {
        match std::env::var(VARIABLE) {
            Ok(text) if !text.is_empty() => {
                let filter: std::result::Result<Targets, _> = text.parse();
                return filter.map(Some).map_err(|error| {
                    Failure::BadInput(format!(
                        "{VARIABLE}={text}: {error}; expected a level (error, warn, info, debug, trace, off), or MODULE=LEVEL,.."
                    ))
                });
            }
            _ => {}
        }
        let level = match (self.verbose, &self.log_file) {
            (0, None) => return Ok(None),
            (0 | 1, _) => LevelFilter::INFO,
            (2, _) => LevelFilter::DEBUG,
            _ => LevelFilter::TRACE,
        };
        Ok(Some(Targets::new().with_default(level)))
    }
}
