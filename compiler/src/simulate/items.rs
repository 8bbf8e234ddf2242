//! The steps of a compiled program as items that workers share.

use super::machine::SimulatedMachine;
use super::schedule::{ItemGroup, SharedStep};
use crate::passes::select::binomial::binomial;
use crate::passes::select::cost::ItemWork;
use crate::pipeline::Compiled;
use kernmill_kernels_gen::hand_out::hand_out;
use kernmill_kernels_gen::kernel::{AttentionBody, Body, Domain, MatrixPart};
use kernmill_kernels_gen::ukernel::MicroKernel;
use kernmill_plan::abi::LOGIT_SLAB;
use kernmill_plan::format::{TILE_ROWS, WeightFormat};
use kernmill_plan::hand_out::{FETCHED_AHEAD, FEW_ROUTES, HandOut};
use kernmill_plan::numeric::ATTENTION_SEGMENT;
use kernmill_plan::program::Step;

/// Items of attention for each worker below which it takes tokens one by one, and runs for each worker in
/// small batches (`kernels-gen/src/body/attention.rs`, `attention_items.rs`).
const ITEMS_PER_WORKER: usize = 8;
const RUNS_PER_WORKER: usize = 2;

/// The rows that a step runs over: tokens of one sequence.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct StepRows {
    /// Tokens.
    pub tokens: usize,
    /// Tokens of the sequence before them.
    pub depth: usize,
}

impl StepRows {
    fn of(self, domain: Domain) -> usize {
        match domain {
            Domain::Tokens => self.tokens,
            Domain::Slots(top_k) => self.tokens * top_k,
            Domain::LogitRows => self.tokens.min(LOGIT_SLAB),
        }
    }
}

/// A step of a compiled program as items, for the workers of `machine`. Experts are as likely as each other.
pub fn shared_step(
    compiled: &Compiled,
    step: &Step,
    rows: StepRows,
    machine: &SimulatedMachine,
) -> SharedStep {
    let shared = items_of_step(compiled, step, rows, machine);
    let bytes = shared.groups.iter().map(|group| group.items as f64 * group.bytes).sum::<f64>();
    let in_shares = shared.hand_out.shared() as f64 / shared.hand_out.total().max(1) as f64;
    let share = bytes * in_shares / machine.workers as f64;
    let ahead = match &compiled.kernels.kernel(step.kernel).body {
        Body::Matmul { .. } => Some(share),
        // Which expert a worker begins with is known when the step has begun.
        Body::Experts { .. } => Some(0.0),
        // A worker begins with its columns of the first expert.
        Body::ExpertDown { top_k, .. } if rows.tokens * top_k <= FEW_ROUTES => {
            Some(share / (rows.tokens * top_k) as f64)
        }
        Body::ExpertDown { .. } => Some(0.0),
        Body::Rows { .. } | Body::Panels { .. } | Body::Attention(_) | Body::Shrink { .. } => None,
    };
    SharedStep { ahead: ahead.map(|bytes| (bytes as u64).min(FETCHED_AHEAD)), ..shared }
}

fn items_of_step(compiled: &Compiled, step: &Step, rows: StepRows, machine: &SimulatedMachine) -> SharedStep {
    let kernel = compiled.kernels.kernel(step.kernel);
    let model = &compiled.model;
    let bytes = |part: usize| {
        let reads = step.weight_reads.parts.get(part).map_or(&[][..], |part| &part.operands);
        reads.iter().map(|reads| f64::from(reads.pieces) * reads.bytes as f64).sum::<f64>()
    };
    let exposed = model.machine().exposed;
    let item = |part: &MatrixPart, input: usize, rows: usize, bytes: f64| -> ItemGroup {
        let ItemWork { arithmetic, besides, hides, .. } =
            model.item_work(part, kernel.vals[input].row, kernel.tiling, rows);
        let (stalls, exposed) = match hides {
            true if rows > MicroKernel::dot_tokens(true)[0] => (machine.dot_stalls, machine.exposed_passes),
            true => (machine.dot_stalls, exposed),
            false => (0.0, model.machine().exposed_panels),
        };
        let decodes = !hides && part.mats.iter().any(|mat| mat.format == WeightFormat::Mxfp4);
        let arithmetic = arithmetic * if decodes { machine.decoded_panels } else { 1.0 };
        // Tiles go through the panel in pairs.
        let passes = (part.mats.len() * part.rows_per_item / TILE_ROWS).div_ceil(2);
        let panel = rows * kernel.vals[input].row.stride();
        let is_outside = !hides && machine.core_cache > 0 && panel as u64 > machine.core_cache;
        let besides = besides + if is_outside { (passes * panel) as f64 / machine.outer_bytes } else { 0.0 };
        ItemGroup { items: part.items() as u64, bytes, stalls, arithmetic, exposed, besides }
    };
    // Panels that a step before has filled cost nothing here.
    let gather = |k: usize, rows: usize| match kernel.panels.is_empty() {
        true => model.gather(kernel.tiling, k, rows),
        false => 0.0,
    };
    let prologue = |rows: usize| rows as f64 * machine.own_rows * model.row_ops(kernel, &kernel.prologue);
    match &kernel.body {
        Body::Rows { domain, row_ops } => {
            let (items, besides) = (rows.of(*domain) as u64, model.row_ops(kernel, row_ops));
            SharedStep {
                hand_out: hand_out(kernel, items as usize, &[]),
                groups: vec![ItemGroup { items, besides, ..ItemGroup::default() }],
                before: 0.0,
                range: 0.0,
                ahead: None,
            }
        }
        Body::Panels { domain, input, routed, panels } => {
            let k = kernel.vals[*input].row.len();
            let filled = panels.iter().map(|(.., terms)| *terms).sum::<usize>();
            let group = |rows: usize| {
                let besides = filled as f64 * model.gather(kernel.tiling, k, rows) / rows as f64;
                ItemGroup { items: rows as u64, besides, ..ItemGroup::default() }
            };
            let slots = |top_k: usize| machine.slot * (rows.tokens * top_k) as f64;
            let (groups, before): (Vec<ItemGroup>, f64) = match routed {
                Some((_, experts, top_k)) => {
                    let chosen = rows_of_experts(rows.tokens, *top_k, *experts);
                    (chosen.into_iter().map(group).collect(), slots(*top_k))
                }
                None => (vec![group(rows.of(*domain))], 0.0),
            };
            let items = groups.iter().map(|group| group.items).sum::<u64>();
            SharedStep {
                hand_out: hand_out(kernel, items as usize, &[]),
                groups,
                before,
                range: 0.0,
                ahead: None,
            }
        }
        Body::Matmul { domain, input, parts } => {
            let rows = rows.of(*domain);
            SharedStep {
                hand_out: hand_out(kernel, rows, &[]),
                groups: parts
                    .iter()
                    .enumerate()
                    .map(|(at, part)| item(part, *input, rows, bytes(at)))
                    .collect(),
                before: prologue(rows)
                    + kernel.panel_runs().len() as f64 * gather(kernel.vals[*input].row.len(), rows),
                range: 0.0,
                ahead: None,
            }
        }
        Body::Experts { input, experts, top_k, part, .. } => {
            let chosen = rows_of_experts(rows.tokens, *top_k, *experts);
            SharedStep {
                hand_out: hand_out(kernel, rows.tokens, &chosen),
                groups: chosen.iter().map(|rows| item(part, *input, *rows, bytes(0))).collect(),
                before: prologue(rows.tokens)
                    + machine.slot * (rows.tokens * top_k) as f64
                    + chosen.iter().map(|rows| gather(part.mats[0].k, *rows)).sum::<f64>(),
                range: 0.0,
                ahead: None,
            }
        }
        Body::ExpertDown { input, experts, top_k, mat, rows_per_item, .. } => {
            let part = MatrixPart::down(mat, *rows_per_item);
            let chosen = rows_of_experts(rows.tokens, *top_k, *experts);
            // A worker goes through its columns expert by expert.
            let all = chosen.iter().map(|rows| item(&part, *input, *rows, bytes(0)));
            let sum = |sum: ItemGroup, one: ItemGroup| ItemGroup {
                bytes: sum.bytes + one.bytes,
                stalls: (sum.stalls * sum.bytes + one.stalls * one.bytes) / (sum.bytes + one.bytes).max(1.0),
                exposed: sum.exposed.max(one.exposed),
                arithmetic: sum.arithmetic + one.arithmetic,
                besides: sum.besides + one.besides,
                ..one
            };
            let places = chosen.len().saturating_sub(1) as f64;
            SharedStep {
                hand_out: hand_out(kernel, rows.tokens, &chosen),
                groups: vec![all.fold(ItemGroup::default(), sum)],
                before: prologue(rows.tokens)
                    + machine.slot * (rows.tokens * top_k) as f64
                    + chosen.iter().map(|rows| gather(mat.k, *rows)).sum::<f64>(),
                range: places * machine.jump,
                ahead: None,
            }
        }
        Body::Attention(body) => attention(compiled, body, rows, machine),
        // Only for adapters.
        Body::Shrink { .. } => SharedStep {
            hand_out: HandOut::even(0),
            groups: Vec::new(),
            before: 0.0,
            range: 0.0,
            ahead: None,
        },
    }
}

/// Attention: tiles of tokens head by head, later ones first; segments of a lone token.
fn attention(
    compiled: &Compiled,
    body: &AttentionBody,
    rows: StepRows,
    machine: &SimulatedMachine,
) -> SharedStep {
    let workers = machine.workers;
    let heads = body.geometry.kv_heads;
    let tile = match body.tile_tokens {
        most if body.by_runs => (rows.tokens * heads / (workers * RUNS_PER_WORKER)).clamp(1, most),
        most if rows.tokens * heads >= workers * ITEMS_PER_WORKER * most => most,
        _ => 1,
    };
    // Where tokens see what follows, about twice the window, or the whole text.
    let (at_least, sides) = if body.causal { (0, 1) } else { (rows.depth + rows.tokens, 2) };
    let seen = |at: usize| {
        let at = at.max(at_least);
        body.window.map_or(at, |window| at.min(window as usize * sides))
    };
    let last = seen(rows.depth + rows.tokens);
    let segments = match (rows.tokens, body.max_segments, body.window) {
        (1, 2.., None) => last.div_ceil(ATTENTION_SEGMENT),
        _ => 1,
    };
    let tiles = rows.tokens.div_ceil(tile);
    let bytes = (last * body.geometry.token_bytes()) as f64 / (heads * tiles * segments) as f64;
    let each = compiled.model.attention_mac()
        * (body.heads / heads * (body.geometry.head_dim + body.geometry.v_head_dim)) as f64;
    let of_tile = |number: usize| {
        let pairs = (number * tile..rows.tokens.min((number + 1) * tile))
            .map(|token| seen(rows.depth + token + 1))
            .sum::<usize>();
        ItemGroup {
            items: segments as u64,
            bytes,
            arithmetic: pairs as f64 * each / segments as f64,
            exposed: compiled.model.machine().exposed,
            besides: machine.attention_item,
            ..ItemGroup::default()
        }
    };
    let groups: Vec<ItemGroup> = (0..heads).flat_map(|_| (0..tiles).rev()).map(of_tile).collect();
    let total = groups.iter().map(|group| group.items).sum();
    SharedStep { hand_out: HandOut::one_by_one(total), groups, before: 0.0, range: 0.0, ahead: None }
}

/// How many tokens choose each expert that any chooses, when experts are as likely as each other: numbers
/// that are as often as chance has them, in an order without a rule.
pub fn rows_of_experts(tokens: usize, top_k: usize, experts: usize) -> Vec<usize> {
    let likely = (top_k as f64 / experts as f64).min(1.0);
    let shares = if likely < 1.0 { binomial(tokens, likely) } else { Vec::new() };
    let quantile = |number: usize| {
        let at = (number as f64 + 0.5) / experts as f64;
        let mut sum = 0.0;
        shares.iter().position(|share| {
            sum += share;
            sum > at
        })
    };
    let mut rows: Vec<usize> = (0..experts).map(|number| quantile(number).unwrap_or(tokens)).collect();
    // Every token has its experts: what rounding adds or takes is spread from the middle outwards.
    let slots = tokens * top_k.min(experts);
    for turn in 0.. {
        let sum: usize = rows.iter().sum();
        let place = (experts / 2 + turn) % experts;
        match sum.cmp(&slots) {
            std::cmp::Ordering::Equal => break,
            std::cmp::Ordering::Less if rows[place] < tokens => rows[place] += 1,
            std::cmp::Ordering::Greater if rows[place] > 0 => rows[place] -= 1,
            _ => {}
        }
    }
    let step =
        (1..experts).rev().find(|step| *step * 8 < experts * 5 && coprime(*step, experts)).unwrap_or(1);
    let mixed = (0..experts).map(|number| rows[number * step % experts]);
    mixed.filter(|rows| *rows > 0).collect()
}

fn coprime(a: usize, b: usize) -> bool {
    if b == 0 { a == 1 } else { coprime(b, a % b) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_token_has_its_experts() {
        assert_eq!(rows_of_experts(1, 4, 32), [1; 4]);
        assert_eq!(rows_of_experts(3, 2, 2), [3, 3]);
        for tokens in [2, 8, 64, 512] {
            let rows = rows_of_experts(tokens, 4, 32);
            assert_eq!(rows.iter().sum::<usize>(), 4 * tokens, "{rows:?}");
            assert!(rows.iter().all(|rows| (1..=tokens).contains(rows)), "{rows:?}");
        }
        let rows = rows_of_experts(512, 4, 32);
        let mean = |far: fn(f64) -> f64| rows.iter().map(|rows| far(*rows as f64 - 64.0)).sum::<f64>() / 32.0;
        // The standard deviation is 7.5.
        assert!((6.5..8.0).contains(&mean(|far| far * far).sqrt()), "{rows:?}");
    }
}
