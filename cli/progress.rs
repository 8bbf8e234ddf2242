//! Progress bars: on a terminal only, and never with `--quiet`.

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use kernmill_os::text::visible;
use std::thread::Builder;
use std::time::Duration;

/// A bar over `bytes` bytes of work. Invisible when standard error is not a terminal.
pub fn bytes(what: &str, bytes: u64, quiet: bool) -> ProgressBar {
    bar(what, bytes, "{msg} {wide_bar} {bytes}/{total_bytes} {bytes_per_sec} {eta}", quiet)
}

/// A bar over `count` pieces of work.
#[cfg(feature = "compiler")]
pub fn count(what: &str, count: u64, quiet: bool) -> ProgressBar {
    bar(what, count, "{msg} {wide_bar} {pos}/{len} {elapsed}", quiet)
}

/// A wait of unknown length.
#[cfg(feature = "compiler")]
pub fn waiting(what: &str, quiet: bool) -> ProgressBar {
    bar(what, 0, "{msg} {spinner} {elapsed}", quiet)
}

fn bar(what: &str, length: u64, template: &str, quiet: bool) -> ProgressBar {
    if quiet {
        return ProgressBar::hidden();
    }
    let bar = ProgressBar::with_draw_target(Some(length), ProgressDrawTarget::stderr());
    if let Ok(style) = ProgressStyle::with_template(template) {
        bar.set_style(style);
    }
    bar.set_message(visible(what).into_owned());
    keep_ticking(&bar);
    bar
}

/// Redraws a bar that is seen, as long as there is one. Without a thread to do it, the bar moves only when work is done.
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
