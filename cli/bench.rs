//! `kernmill bench`: tokens per second of prefill and decode.

use crate::emit::Emit;
use crate::failure::{Failure, Result};
use crate::model::{Loaded, Model, ModelArgs, peak_memory};
use crate::output;
use serde_json::json;
use std::time::Instant;

/// Measures prefill and decode speed on random token ids; a tokenizer is not needed
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  kernmill bench                                         the embedded nano model
  kernmill bench --spec my.toml --weights DIR --pp 512 --tg 128 --repeat 5
  kernmill bench --json")]
pub struct Bench {
    /// Prompt tokens
    #[arg(long, value_name = "N", default_value_t = 512)]
    pp: usize,
    /// Tokens run one by one after the prompt
    #[arg(long, value_name = "N", default_value_t = 128)]
    tg: usize,
    /// Measurements; a warm-up goes before them
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = clap::value_parser!(u16).range(1..))]
    repeat: u16,
    /// As JSON
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    model: ModelArgs,
}

/// Tokens per second of one measurement.
struct Rates {
    prefill: f64,
    decode: f64,
}

impl Bench {
    /// Runs the command.
    pub fn execute(self) -> Result<()> {
        let model = Model::open(&self.model)?;
        let longest = model.graph.max_context;
        let total = self.pp.saturating_add(self.tg);
        if self.pp == 0 || self.tg == 0 || total > longest {
            return Err(Failure::BadInput(format!(
                "--pp {} and --tg {}: expected at least 1 each, together at most {longest}, the model's longest context",
                self.pp, self.tg
            )));
        }
        let ids = random_ids(total, model.graph.vocab as u32);
        let mut loaded = model.load(&self.model, &Emit::default(), total as u32)?;
        self.measure(&mut loaded, &ids)?;
        let rates =
            (0..self.repeat).map(|_| self.measure(&mut loaded, &ids)).collect::<Result<Vec<Rates>>>()?;
        output::print(&if self.json { self.json(&loaded, &rates) } else { self.text(&loaded, &rates) })
    }

    fn measure(&self, loaded: &mut Loaded, ids: &[u32]) -> Result<Rates> {
        let engine = &mut loaded.engine;
        let (prompt, rest) = ids.split_at(self.pp);
        let id = engine.create()?;
        let mut logits = Vec::new();
        let start = Instant::now();
        engine.append(id, prompt, &mut logits)?;
        let prefill = self.pp as f64 / start.elapsed().as_secs_f64();
        let start = Instant::now();
        for token in rest {
            engine.append(id, &[*token], &mut logits)?;
        }
        let decode = self.tg as f64 / start.elapsed().as_secs_f64();
        engine.drop_sequence(id);
        Ok(Rates { prefill, decode })
    }

    fn text(&self, loaded: &Loaded, rates: &[Rates]) -> String {
        let model = loaded.engine.model();
        let line = |name: &str, tokens: usize, values: Vec<f64>| {
            let (mean, deviation) = spread(&values);
            format!("{name} {tokens:5} tokens  {mean:10.2} +- {deviation:.2} tokens/s\n")
        };
        format!(
            "{} {} {} {} threads\n{}{}",
            model.name,
            model.preset,
            loaded.level.name(),
            loaded.engine.threads(),
            line("prefill", self.pp, rates.iter().map(|r| r.prefill).collect()),
            line("decode ", self.tg, rates.iter().map(|r| r.decode).collect())
        )
    }

    fn json(&self, loaded: &Loaded, rates: &[Rates]) -> String {
        let model = loaded.engine.model();
        let figures = |tokens: usize, values: Vec<f64>| {
            let (mean, deviation) = spread(&values);
            json!({ "tokens": tokens, "tokens_per_second": mean, "deviation": deviation, "measured": values })
        };
        let report = json!({
            "model": model.name,
            "preset": model.preset,
            "target": loaded.level.name(),
            "threads": loaded.engine.threads(),
            "chunk": loaded.engine.chunk(),
            "prefill": figures(self.pp, rates.iter().map(|r| r.prefill).collect()),
            "decode": figures(self.tg, rates.iter().map(|r| r.decode).collect()),
            "seconds": { "compile": loaded.compile_seconds, "pack": loaded.pack_seconds },
            "weight_bytes": loaded.weight_bytes,
            "decode_bytes": model.decode_bytes,
            "peak_resident": peak_memory(),
            "experts": experts(&loaded.engine.chosen_experts()),
        });
        format!("{report:#}\n")
    }
}

/// By layer with experts: how many were used, and the heaviest one's load over the mean load.
fn experts(layers: &[Vec<u64>]) -> Vec<serde_json::Value> {
    let layer = |counts: &Vec<u64>| {
        let mean = counts.iter().sum::<u64>() as f64 / counts.len() as f64;
        let most = counts.iter().copied().max().unwrap_or(0) as f64;
        json!({ "used": counts.iter().filter(|count| **count > 0).count(), "of": counts.len(), "max_load": most / mean })
    };
    layers.iter().map(layer).collect()
}

/// Mean and standard deviation.
fn spread(values: &[f64]) -> (f64, f64) {
    let n = values.len() as f64;
    let mean = values.iter().sum::<f64>() / n;
    let variance = values.iter().map(|value| (value - mean).powi(2)).sum::<f64>() / n;
    (mean, variance.sqrt())
}

/// Token ids that are the same every time: a linear congruential generator's high bits.
fn random_ids(count: usize, vocab: u32) -> Vec<u32> {
    let mut state = 0x2545_f491_4f6c_dd1d_u64;
    let mut next = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) as u32 % vocab
    };
    (0..count).map(|_| next()).collect()
}
