//! A model inside of a program: one opened model answers several questions, shows its speed, and says what is
//! wrong with bad input.
//!
//! `cargo run --package kernmill --example embed_in_app`

#![allow(clippy::print_stdout)]

use kernmill::observe::Observer;
use kernmill::{Model, Options, Result, Sampling};
use std::sync::Arc;

/// Where an application shows what a user should know.
struct Notes;

impl Observer for Notes {
    fn note(&self, text: &str) {
        println!("[note] {text}");
    }
}

fn main() -> Result<()> {
    // An error is one line that names the file.
    let options = Options::default().with(|it| {
        it.observer = Arc::new(Notes);
        it.max_memory = Some(2_000_000_000);
    });
    if let Err(error) = Model::open_with("no-such-model", &options, None) {
        println!("{error}");
    }

    let model = Model::nano()?;
    let sampling = Sampling::greedy().max_tokens(24).stop("\n\n");
    for prompt in ["A slice is", "The borrow checker"] {
        let answer = model.generate(prompt, &sampling)?.whole()?;
        println!("{prompt}{}", answer.text);
        println!(
            "[{} tokens, {:.0} per second, ended by {:?}]",
            answer.tokens.len(),
            answer.decode_rate(),
            answer.finish
        );
    }
    Ok(())
}
