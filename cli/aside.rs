//! The lines beside a command's result: notes, progress bars and closing lines, on standard error.
//!
//! Nothing else in the command line writes there, but for what is traced (`-v`). Text from elsewhere is shown
//! without control characters, which could clear a terminal, colour it, or hide what else is said.

use crate::failure::Result;
use crate::output;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use kernmill::observe::{Observer, Progress, Unit};
use kernmill_tools::{message, size, terminal, visible};
use std::fmt::Display;
use std::io::{self, Write};
use std::ops::Deref;
use std::path::Path;
use std::thread::{Builder, sleep};
use std::time::Duration;

/// The sink of all that a command says beside its result.
#[derive(Clone, Copy, Debug, Default, clap::Args)]
pub struct Aside {
    /// Neither progress bars nor notes nor closing lines on standard error
    #[arg(long, short)]
    pub quiet: bool,
}

/// A bar that goes when its work ends. Invisible when standard error is not a terminal.
pub struct Bar(ProgressBar);

impl Aside {
    /// Says what a user may not have meant: a sentence without its full stop.
    pub fn note(self, text: impl Display) {
        self.line(format_args!("note: {text}"));
    }

    /// Says how the work stands, or how it ended, in a line.
    pub fn line(self, text: impl Display) {
        if !self.quiet {
            styled(format!("{}\n", message(&text.to_string())));
        }
    }

    /// Says that an output was written, and what it is or what to do with it.
    pub fn wrote(self, path: &Path, what: impl Display) {
        let file = path.metadata().ok().filter(|file| file.is_file());
        let size = file.map_or_else(String::new, |file| format!(" ({})", size(file.len())));
        if !output::is_stdout(path) {
            self.line(format_args!("wrote {}{size}: {what}", path.display()));
        }
    }

    /// Writes a whole output, and says so.
    #[cfg(feature = "compiler")]
    pub fn deliver(self, path: &Path, contents: impl AsRef<[u8]>, what: &str) -> Result<()> {
        output::write_file(path, contents)?;
        self.wrote(path, what);
        Ok(())
    }

    /// Ends what made texts: prints its figures as JSON, or says them in a line; and says `more` of them.
    pub fn end(self, json: Option<String>, figures: String, more: Option<String>) -> Result<()> {
        match json {
            Some(report) => output::print(report)?,
            None => self.line(figures),
        }
        more.iter().for_each(styled);
        Ok(())
    }

    /// A bar over `total` units of work; `work` says what is done.
    pub fn bar(self, work: &str, unit: Unit, total: u64) -> Bar {
        if self.quiet || !terminal::can_redraw() {
            return Bar(ProgressBar::hidden());
        }
        let bar = ProgressBar::with_draw_target(Some(total), ProgressDrawTarget::stderr());
        let style = ProgressStyle::with_template(match unit {
            Unit::Bytes => {
                "{msg} {wide_bar} {decimal_bytes}/{decimal_total_bytes} {decimal_bytes_per_sec} {eta}"
            }
            Unit::Count => "{msg} {wide_bar} {pos}/{len} {elapsed}, {eta} left",
            Unit::Unknown => "{msg} {spinner} {elapsed}",
        });
        if let Ok(style) = style {
            let ascii = !terminal::has_unicode();
            bar.set_style(if ascii { style.progress_chars("#>-").tick_chars("|/-\\ ") } else { style });
        }
        bar.set_message(visible(work).into_owned());
        let shown = bar.downgrade();
        // Without a thread that redraws it, the bar moves only when work is done.
        let _ = Builder::new().spawn(move || {
            while let Some(bar) = shown.upgrade().filter(|bar| !bar.is_finished()) {
                bar.tick();
                sleep(Duration::from_millis(200));
            }
        });
        Bar(bar)
    }
}

impl Observer for Aside {
    fn note(&self, text: &str) {
        Aside::note(*self, text);
    }

    fn asks(&self, question: &str) -> bool {
        terminal::asks(question)
    }

    fn begin(&self, work: &str, unit: Unit, total: u64) -> Box<dyn Progress + '_> {
        Box::new(self.bar(work, unit, total))
    }
}

impl Progress for Bar {
    fn advance(&self, amount: u64) {
        self.inc(amount);
    }
}

impl Deref for Bar {
    type Target = ProgressBar;

    fn deref(&self) -> &ProgressBar {
        &self.0
    }
}

impl Drop for Bar {
    fn drop(&mut self) {
        self.finish_and_clear();
    }
}

/// Writes to standard error what may have colours. That it cannot be written changes nothing.
pub fn styled(text: impl AsRef<str>) {
    // At once, so that lines of several processes stay whole.
    let _ = io::stderr().lock().write_all(text.as_ref().as_bytes());
}
