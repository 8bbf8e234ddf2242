//! How long choosing a token takes, on one thread: `cargo bench --package kernmill-runtime --bench sampler`.

#![allow(clippy::print_stdout)]

use kernmill_runtime::{Sampler, SamplerParams};
use std::hint::black_box;
use std::time::Instant;

/// The vocabulary of GPT-OSS.
const VOCAB: usize = 201_088;
const ROWS: usize = 8;
const ROUNDS: u64 = 40;

/// Rows with roughly normal logits: `spread` is their standard deviation.
fn rows(spread: f32) -> Vec<Vec<f32>> {
    let mut rng = fastrand::Rng::with_seed(1);
    let mut normal = || (0..12).map(|_| rng.f32()).sum::<f32>() - 6.0;
    (0..ROWS).map(|_| (0..VOCAB).map(|_| normal() * spread).collect()).collect()
}

fn main() {
    let base = SamplerParams { temperature: 0.8, seed: Some(1), ..SamplerParams::default() };
    let ways = [
        ("greedy", SamplerParams { temperature: 0.0, ..base.clone() }),
        ("temperature", base.clone()),
        ("top-k 40", SamplerParams { top_k: Some(40), ..base.clone() }),
        ("top-p 0.9", SamplerParams { top_p: 0.9, ..base.clone() }),
        ("top-p 0.5", SamplerParams { top_p: 0.5, ..base.clone() }),
        ("min-p 0.05", SamplerParams { min_p: 0.05, ..base }),
    ];
    println!("median microseconds per token of {VOCAB}, by the spread of the logits");
    for spread in [0.5, 2.0, 4.0] {
        let rows = rows(spread);
        for (name, params) in &ways {
            let mut sampler = Sampler::new(params.clone(), VOCAB).expect("good parameters");
            let mut times: Vec<f64> = (0..ROUNDS)
                .map(|round| {
                    let row = &rows[round as usize % ROWS];
                    let start = Instant::now();
                    black_box(sampler.sample(row, round).expect("finite logits"));
                    start.elapsed().as_secs_f64() * 1e6
                })
                .collect();
            times.sort_by(f64::total_cmp);
            println!("spread {spread}  {name:12} {:8.1}", times[times.len() / 2]);
        }
    }
}
