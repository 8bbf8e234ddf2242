//! Processor time and memory of random schemas, expressions and grammars, over the vocabulary of GPT-OSS: how
//! long the slowest takes until it is refused or its text has begun, and what the largest needs.
//!
//! `KERNMILL_FORMS` is their number, `KERNMILL_SEED` the number of the first.

#[path = "../tests/constrain/forms.rs"]
mod forms;
#[path = "../tests/constrain/o200k.rs"]
mod o200k;

use fastrand::Rng;
use kernmill_constrain::{Constraint, Error, Lexicon};
use std::fs;
use std::io::{self, Write};
use std::sync::Arc;

const WIDTH: u32 = 201_088;

/// Tokens of a text.
const TOKENS: usize = 30;

/// Heaviest forms that are shown.
const SHOWN: usize = 10;

fn given(name: &str, otherwise: u64) -> u64 {
    std::env::var(name).ok().map_or(otherwise, |text| text.parse().expect("a number"))
}

/// Bytes of memory that the process had at most since the last call.
fn peak() -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let kilobytes = line.and_then(|line| line.trim().trim_end_matches(" kB").parse::<u64>().ok());
    // The kernel starts again from what there is now.
    let _ = fs::write("/proc/self/clear_refs", "5");
    kilobytes.unwrap_or(0) << 10
}

/// Milliseconds of processor time that all threads have had, to a hundredth of a second.
fn processor() -> f64 {
    let stat = fs::read_to_string("/proc/self/stat").unwrap_or_default();
    let fields = stat.rsplit_once(") ").map_or("", |(_, fields)| fields).split(' ');
    fields.skip(11).take(2).filter_map(|ticks| ticks.parse::<f64>().ok()).sum::<f64>() * 10.0
}

/// The cost of one form.
struct Cost {
    seed: u64,
    made: f64,
    step: f64,
    bytes: u64,
    text: String,
}

fn main() -> io::Result<()> {
    let mut out = io::stdout().lock();
    let vocabulary = Arc::new(o200k::O200k::new());
    let lexicon =
        Lexicon::new(vocabulary.clone(), WIDTH as usize, &[200_002, 199_999]).expect("a vocabulary");
    let (first, count) = (given("KERNMILL_SEED", 0), given("KERNMILL_FORMS", 10_000));
    let (mut taken, mut stuck) = (0, 0);
    let mut costs = Vec::new();
    for seed in first..first + count {
        let mut rng = Rng::with_seed(seed);
        let rule = forms::form(&mut rng);
        peak();
        let before = peak();
        let start = processor();
        let constraint = Constraint::new(&lexicon, &rule);
        let made = processor() - start;
        let mut step = 0f64;
        if let Ok(mut constraint) = constraint {
            taken += 1;
            for _ in 0..TOKENS {
                let start = processor();
                let outcome = follow(&mut constraint, &mut rng);
                step = step.max(processor() - start);
                stuck += usize::from(outcome.is_err());
                if !outcome.unwrap_or(false) {
                    break;
                }
            }
        }
        let text: String = format!("{rule:?}").chars().take(400).collect();
        costs.push(Cost { seed, made, step, bytes: peak().saturating_sub(before), text });
    }
    writeln!(out, "{count} forms: {taken} taken, {stuck} of them stuck within {TOKENS} tokens")?;
    show(&mut out, "to make, ms", &mut costs, |cost| cost.made)?;
    show(&mut out, "for a token, ms", &mut costs, |cost| cost.step)?;
    show(&mut out, "of memory, MB", &mut costs, |cost| cost.bytes as f64 / 1e6)
}

/// Follows a text by what must come, or a token; whether it goes on.
fn follow(constraint: &mut Constraint, rng: &mut Rng) -> Result<bool, Error> {
    for id in constraint.forced() {
        constraint.accept(id)?;
    }
    if constraint.is_done() {
        return Ok(false);
    }
    let ids: Vec<u32> = constraint.mask()?.ids().collect();
    let Some(id) = rng.choice(ids) else { return Ok(false) };
    constraint.accept(id)?;
    Ok(!constraint.is_done())
}

fn show(out: &mut impl Write, what: &str, costs: &mut [Cost], of: fn(&Cost) -> f64) -> io::Result<()> {
    costs.sort_unstable_by(|a, b| of(b).total_cmp(&of(a)));
    let sum: f64 = costs.iter().map(of).sum();
    let at = |part: usize| of(&costs[costs.len() / part]);
    writeln!(
        out,
        "{what}: mean {:.2}, median {:.2}, p99 {:.2}, p99.9 {:.2}, most {:.2}",
        sum / costs.len() as f64,
        at(2),
        at(100),
        at(1000),
        of(&costs[0])
    )?;
    for cost in costs.iter().take(SHOWN) {
        writeln!(out, "  {:9.1}  seed {:5}  {}", of(cost), cost.seed, cost.text)?;
    }
    Ok(())
}
