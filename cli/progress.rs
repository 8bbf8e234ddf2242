//! Progress bars: on a terminal only, and never with `--quiet`.

use crate::output;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use kernmill::observe::{Observer, Progress, Unit};
use kernmill_tools::{terminal, visible};
use std::sync::Arc;
use std::thread::Builder;
use std::time::Duration;

/// Notes and progress bars on standard error.
pub struct Terminal {
    quiet: bool,
}

/// A bar that goes when its work ends.
struct Bar(ProgressBar);

impl Terminal {
    /// One that is silent if `quiet`.
    pub fn observer(quiet: bool) -> Arc<dyn Observer> {
        Arc::new(Terminal { quiet })
    }
}

impl Observer for Terminal {
    fn note(&self, text: &str) {
        output::note_if(!self.quiet, format_args!("note: {text}"));
    }

    fn asks(&self, question: &str) -> bool {
        terminal::asks(question)
    }

    fn begin(&self, work: &str, unit: Unit, total: u64) -> Box<dyn Progress + '_> {
        Box::new(Bar(match unit {
            Unit::Bytes => bytes(work, total, self.quiet),
            Unit::Count => count(work, total, self.quiet),
            Unit::Unknown => bar(work, 0, "{msg} {spinner} {elapsed}", self.quiet),
        }))
    }
}

impl Progress for Bar {
    fn advance(&self, amount: u64) {
        self.0.inc(amount);
    }
}

impl Drop for Bar {
    fn drop(&mut self) {
        self.0.finish_and_clear();
    }
}

/// A bar over `bytes` bytes of work. Invisible when standard error is not a terminal.
pub fn bytes(what: &str, bytes: u64, quiet: bool) -> ProgressBar {
    let done = "{decimal_bytes}/{decimal_total_bytes} {decimal_bytes_per_sec}";
    bar(what, bytes, &format!("{{msg}} {{wide_bar}} {done} {{eta}}"), quiet)
}

/// A bar over `count` pieces of work.
pub fn count(what: &str, count: u64, quiet: bool) -> ProgressBar {
    bar(what, count, "{msg} {wide_bar} {pos}/{len} {elapsed}", quiet)
}

fn bar(what: &str, length: u64, template: &str, quiet: bool) -> ProgressBar {
    if quiet || !terminal::can_redraw() {
        return ProgressBar::hidden();
    }
    let bar = ProgressBar::with_draw_target(Some(length), ProgressDrawTarget::stderr());
    if let Ok(style) = ProgressStyle::with_template(template) {
        bar.set_style(if terminal::has_unicode() {
            style
        } else {
            style.progress_chars("#>-").tick_chars("|/-\\ ")
        });
    }
    bar.set_message(visible(what).into_owned());
    keep_ticking(&bar);
    bar
}

/// Redraws a bar that is seen, as long as there is one. Without a thread to do it, the bar moves only when
/// work is done.
fn keep_ticking(bar: &ProgressBar) {
    if bar.is_hidden() {
        return;
    }
    let bar = bar.downgrade();
    let tick = move || {
        while let Some(bar) = bar.upgrade().filter(|bar| !bar.is_finished()) {
            bar.tick();
            std::thread::sleep(Duration::from_millis(200));
        }
    };
    let _ = Builder::new().spawn(tick);
}
