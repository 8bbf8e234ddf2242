//! Candidates: the ways to compute a group, and which one was picked.

use super::cost::{CostModel, TIE, cheapest};
use super::{KernelUse, SelectError, Selector};
use kernmill_kernels_gen::kernel::{Body, PROLOGUE_TOKENS, Tiling};
use kernmill_plan::format::TILE_ROWS;
use std::fmt;

/// One way to compute a group. All of a group's give the same bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KernelCandidate {
    /// Where the prologue is computed.
    pub prologue: Prologue,
    /// How matrices are multiplied; where their formats differ or their input is f32, always [`Tiling::Dot`],
    /// and by panels where it is bf16.
    pub tiling: Tiling,
    /// Output rows per work item: those asked for if a part has them, else the least of what heads and blocks
    /// need.
    pub rows_per_item: usize,
}

/// Where the stages before a group's matrices are computed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Prologue {
    /// By every worker, for itself.
    Workers,
    /// In a separate step, the rows shared out, with a barrier behind it.
    Step,
}

/// The kind of products, where there is a choice.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Products {
    /// Dot micro-kernels.
    Dots,
    /// Panels of six rows, in vectors.
    Panels,
    /// Panels of 16 rows, on tiles. Where tiles cannot multiply, as `Panels`.
    Tiles,
}

/// A group's candidates, and the one that was picked.
#[derive(Clone, Debug, PartialEq)]
pub struct KernelChoice {
    /// The group's label.
    pub label: String,
    /// Each candidate with its ns for a full batch of the class.
    pub candidates: Vec<(KernelCandidate, f64)>,
    /// Index of the pick.
    pub pick: usize,
}

/// Which of several candidates is taken. All give the same bits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Pick {
    /// The cheapest.
    #[default]
    Cheapest,
    /// The one of that number, counted round and round: for tests and benches, which want to see every one of
    /// them.
    Nth(usize),
    /// The first on tiles, from one row on, even where the level has none and 128-bit code does their work;
    /// and the cheapest where nothing can be on tiles. For tests, which want to see tiles on every host.
    Tiles,
}

impl Pick {
    /// The place picked among these costs.
    pub fn of(self, costs: &[f64]) -> usize {
        match self {
            Pick::Cheapest | Pick::Tiles => cheapest(costs).unwrap_or(0),
            Pick::Nth(n) => n % costs.len().max(1),
        }
    }
}

impl KernelCandidate {
    /// Every candidate that a class of `max_tokens` can have, the simplest first; `tiles` says whether the
    /// level has any.
    fn all(max_tokens: usize, tiles: bool) -> Vec<(Prologue, Products, usize)> {
        let prologues: &[Prologue] = match max_tokens <= PROLOGUE_TOKENS {
            true => &[Prologue::Workers, Prologue::Step],
            false => &[Prologue::Step],
        };
        let mut all = Vec::new();
        for prologue in prologues {
            let products = [Products::Dots, Products::Panels, Products::Tiles];
            for products in products.into_iter().take(if tiles { 3 } else { 2 }) {
                all.extend([1, 2].map(|tiles| (*prologue, products, tiles * TILE_ROWS)));
            }
        }
        all
    }
}

impl Selector<'_> {
    /// The candidates of group `index` that agree with its rule's hints; all of them if none does.
    fn hinted(&self, index: usize, tiles: bool) -> Vec<(Prologue, Products, usize)> {
        let (hints, all) = (self.fused.groups[index].hints, KernelCandidate::all(self.max_tokens, tiles));
        let agrees = |(prologue, products, rows_per_item): &(Prologue, Products, usize)| {
            hints.prologue_by_workers.is_none_or(|by| by == (*prologue == Prologue::Workers))
                && hints.panels.is_none_or(|wanted| wanted == (*products != Products::Dots))
                && hints.rows_per_item.is_none_or(|rows| rows == *rows_per_item)
        };
        let agreeing: Vec<_> = all.iter().copied().filter(agrees).collect();
        if agreeing.is_empty() { all } else { agreeing }
    }

    /// Kernel uses of group `index`: those of the picked candidate; and the choice, where there was one.
    pub(super) fn choose(
        &self,
        index: usize,
        model: &CostModel,
        pick: Pick,
    ) -> Result<(Vec<KernelUse>, Option<KernelChoice>), SelectError> {
        let mut found: Vec<(KernelCandidate, Vec<KernelUse>)> = Vec::new();
        let tiles = pick == Pick::Tiles || model.level().has_tiles();
        for (prologue, products, rows_per_item) in self.hinted(index, tiles) {
            let trial = Selector {
                trial: super::CandidateTrial { prologue, products, rows_per_item, model },
                ..*self
            };
            let mut uses = trial.group(index)?;
            for least in uses.iter_mut().filter_map(|one| least_rows_of_tiles(&mut one.kernel.tiling)) {
                *least = if pick == Pick::Tiles { 1 } else { *least };
            }
            // Where an axis decides nothing, the same kernels come out.
            if found.iter().any(|(_, other)| *other == uses) {
                continue;
            }
            let tiling = uses.last().map_or(Tiling::Dot, |last| last.kernel.tiling);
            let fixed = uses.iter().all(|one| {
                matches!(one.kernel.body, Body::Rows { .. } | Body::Attention(_) | Body::Shrink { .. })
            });
            let rows_per_item =
                uses.last().map_or(rows_per_item, |last| rows_per_item_of(&last.kernel.body, rows_per_item));
            found.push((KernelCandidate { prologue, tiling, rows_per_item }, uses));
            if fixed {
                break;
            }
        }
        let cost = |uses: &[KernelUse]| -> f64 {
            uses.iter().map(|one| model.kernel(&one.kernel, self.max_tokens)).sum()
        };
        let costs: Vec<f64> = found.iter().map(|(_, uses)| cost(uses)).collect();
        let on_tiles =
            |(candidate, _): &(KernelCandidate, _)| matches!(candidate.tiling, Tiling::Tiles { .. });
        let wanted = found.iter().position(on_tiles).filter(|_| pick == Pick::Tiles);
        let picked = wanted.unwrap_or_else(|| pick.of(&costs));
        let candidates = found.iter().zip(&costs).map(|((candidate, _), cost)| (*candidate, *cost)).collect();
        let uses = found.swap_remove(picked).1;
        let label = uses.last().map_or_else(String::new, |last| last.label.clone());
        let choice = KernelChoice { label, candidates, pick: picked };
        Ok((uses, (costs.len() > 1).then_some(choice)))
    }
}

/// Where a tiling says from how many rows on tiles are used.
fn least_rows_of_tiles(tiling: &mut Tiling) -> Option<&mut usize> {
    match tiling {
        Tiling::Tiles { least_rows } => Some(least_rows),
        Tiling::Dot | Tiling::Gemm { .. } => None,
    }
}

/// Rows per work item of a body for which `asked` were asked.
fn rows_per_item_of(body: &Body, asked: usize) -> usize {
    let units: Vec<usize> = match body {
        Body::Matmul { parts, .. } => parts.iter().map(|part| part.rows_per_item).collect(),
        Body::Experts { part, .. } => vec![part.rows_per_item],
        Body::ExpertDown { rows_per_item, .. } => vec![*rows_per_item],
        _ => Vec::new(),
    };
    if units.contains(&asked) { asked } else { units.into_iter().min().unwrap_or(asked) }
}

impl KernelChoice {
    /// The label without its layer.
    pub fn kind(&self) -> &str {
        let numbered = self.label.strip_prefix("layers.").and_then(|rest| rest.split_once('.'));
        numbered.map_or(self.label.as_str(), |(_, kind)| kind)
    }

    /// Why the pick is the pick.
    pub fn reason(&self) -> String {
        let costs = || self.candidates.iter().map(|(_, cost)| *cost);
        let least = costs().fold(f64::INFINITY, f64::min);
        let picked = self.candidates[self.pick].1;
        let others = costs().enumerate().filter(|(i, _)| *i != self.pick).map(|(_, cost)| cost);
        let next = others.fold(f64::INFINITY, f64::min);
        if picked > least * TIE {
            "as asked for".to_owned()
        } else if next <= least * TIE {
            format!("the first of those within {:.0} % of the cheapest", (TIE - 1.0) * 100.0)
        } else {
            format!("the cheapest; the next costs {:.1} % more", (next / picked - 1.0) * 100.0)
        }
    }
}

impl fmt::Display for KernelCandidate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let prologue = match self.prologue {
            Prologue::Workers => "prologue by every worker",
            Prologue::Step => "prologue as a step",
        };
        write!(f, "{}, {prologue}, units of {}", tiling_text(self.tiling), self.rows_per_item)
    }
}

/// `dots`, `panels from 8 rows on`, or `tiles from 8 rows on`.
pub(super) fn tiling_text(tiling: Tiling) -> String {
    match tiling {
        Tiling::Dot => "dots".to_owned(),
        Tiling::Gemm { least_rows, .. } => format!("panels from {least_rows} rows on"),
        Tiling::Tiles { least_rows } => format!("tiles from {least_rows} rows on"),
    }
}
