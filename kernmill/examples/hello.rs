//! Text from a model in three lines: `cargo run --package kernmill --example hello [MODEL] [PROMPT]`.
//!
//! MODEL is a plan, a checkpoint's directory or a GGUF file; without it, the embedded nano model runs.

use kernmill::{Model, Result, Sampling};
use std::io::Write;

fn main() -> Result<()> {
    let mut arguments = std::env::args().skip(1);
    let model = arguments.next().map_or_else(Model::nano, Model::open)?;
    let prompt =
        arguments.next().unwrap_or_else(|| "# References and Borrowing\n\nA reference is".to_owned());
    let mut out = std::io::stdout().lock();
    for piece in model.generate(&prompt, &Sampling::default().max_tokens(60))? {
        // A reader that has gone wants no more.
        if write!(out, "{}", piece?).and_then(|()| out.flush()).is_err() {
            break;
        }
    }
    Ok(())
}
