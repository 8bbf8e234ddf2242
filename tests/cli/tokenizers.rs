//! Models with tokenizers: which texts they take, and what is refused.

use super::Sandbox;

const RUN: [&str; 10] = ["run", "--weights", ".", "-q", "--threads", "1", "-n", "1", "--temp", "0"];

impl Sandbox {
    /// Runs the model of this directory on a prompt.
    fn continues(&self, prompt: &str, more: &[&str]) -> super::Ran {
        self.run(&[&RUN[..], &["--prompt", prompt], more].concat())
    }
}

#[test]
fn tokens_past_the_vocabulary_are_refused_in_texts_only() {
    let sandbox = Sandbox::of("gptoss-base");
    sandbox.write("tokenizer.json", include_bytes!("../../model-specs/nano/tokenizer.json"));
    // The first letters are tokens 32 and on; the model has 96 tokens.
    sandbox.continues("ABC", &[]).text();
    let past = ["token `<|endoftext|>` (id 3071)", "the model's vocabulary has 96 tokens"];
    sandbox.continues("<|endoftext|>", &[]).refused(&past);
    sandbox.write("tokenizer.json", "{}");
    sandbox.continues("ABC", &[]).refused(&["tokenizer.json"]);
}
