//! Speeds by numbers of workers.

use super::kinds::BatchShape;
use crate::compiler::machine::Description;
use kernmill_compiler::pipeline::Compiled;
use kernmill_compiler::simulate::{SimulatedMachine, StepTimes};
use serde_json::{Value, json};
use std::fmt::Write;

/// Numbers of workers that are shown.
const SHOWN: usize = 4;

/// Decoding at the start and a prompt of a chunk, with a number of workers.
pub struct CrowdSpeeds {
    workers: usize,
    /// Bytes per ns that they read together.
    rate: f64,
    decode: StepTimes,
    /// Tokens of the prompt.
    chunk: usize,
    prompt: StepTimes,
}

impl CrowdSpeeds {
    /// The speeds of the numbers of threads that were measured, up to `most`, and of `most`.
    pub fn all(compiled: &Compiled, machine: &Description, most: usize, chunk: usize) -> Vec<CrowdSpeeds> {
        let measured = machine.measured.iter().map(|one| one.threads).filter(|threads| *threads < most);
        let one = |workers: usize| {
            let machine = SimulatedMachine::described(machine, workers);
            let times = |tokens| BatchShape::new(compiled, &machine, tokens, 0).times();
            let (decode, prompt) = (times(1), times(chunk));
            CrowdSpeeds { workers, rate: machine.rates.attainable(workers), decode, chunk, prompt }
        };
        measured.chain([most]).map(one).collect()
    }

    /// Tokens per second of decoding and of the prompt.
    fn speeds(&self) -> [f64; 2] {
        [1e9 / self.decode.ns, self.chunk as f64 * 1e9 / self.prompt.ns]
    }

    /// The most of them as lines of text.
    pub fn text(all: &[CrowdSpeeds]) -> String {
        let mut text = String::new();
        // Writing to a String cannot fail.
        let _ = writeln!(
            text,
            "{:7} {:>7} {:>18} {:>8} {:>6} {:>18} {:>10} {:>6}",
            "workers",
            "GB/s",
            "decode, tokens/s",
            "reads %",
            "wait %",
            "prompts, tokens/s",
            "arith. %",
            "wait %"
        );
        for one in &all[all.len().saturating_sub(SHOWN)..] {
            let [decode, prompt] = one.speeds();
            let _ = writeln!(
                text,
                "{:7} {:>7.1} {decode:>18.1} {:>8.1} {:>6.1} {prompt:>18.1} {:>10.1} {:>6.1}",
                one.workers,
                one.rate,
                one.decode.reads / one.decode.ns * 100.0,
                one.decode.waits / one.decode.ns * 100.0,
                one.prompt.arithmetic / one.prompt.ns * 100.0,
                one.prompt.waits / one.prompt.ns * 100.0
            );
        }
        text
    }

    /// The speeds as JSON.
    pub fn json(&self) -> Value {
        let [decode, prompt] = self.speeds();
        let percent = |part: f64, times: &StepTimes| part / times.ns * 100.0;
        json!({
            "workers": self.workers,
            "gb_per_s": self.rate,
            "decode_tokens_per_second": decode,
            "decode_reads_percent": percent(self.decode.reads, &self.decode),
            "decode_waiting_percent": percent(self.decode.waits, &self.decode),
            "prompt_tokens_per_second": prompt,
            "prompt_arithmetic_percent": percent(self.prompt.arithmetic, &self.prompt),
            "prompt_waiting_percent": percent(self.prompt.waits, &self.prompt),
        })
    }
}
