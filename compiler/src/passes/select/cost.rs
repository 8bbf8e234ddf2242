//! The cost model: what a kernel is assumed to take, in ns, for so many tokens.
//!
//! Nothing is measured while compiling: a level's numbers, for one tuning and one description of a machine,
//! are the same on every host, so that the same input gives the same bytes. Micro-kernels' numbers are in
//! `compiler/tables/`. The rest of the machine is [`MACHINE`] for all levels, unless a description
//! (`compiler/src/machine.rs`) says otherwise. All candidates give the same bits, so a wrong number costs
//! only speed.

use super::binomial::expert_rows;
use super::costs_of_machine::{MACHINE, Machine};
use super::table::{Table, version_name};
use kernmill_kernels_gen::asm::{self, AsmKernel};
use kernmill_kernels_gen::isa;
use kernmill_kernels_gen::kernel::{Body, Domain, Kernel, MatrixPart, RowOp, RowType, Tiling, ValId};
use kernmill_kernels_gen::row_op::RowWork;
use kernmill_kernels_gen::ukernel::block::{data_lines, scale_bytes};
use kernmill_kernels_gen::ukernel::gemm_q8::{CHUNK_BLOCKS, DotStep, GROUP};
use kernmill_kernels_gen::ukernel::gemm_tiles::{self, TileElement};
use kernmill_kernels_gen::ukernel::{MicroKernel, gemm_bf16};
use kernmill_plan::abi::LOGIT_SLAB;
use kernmill_plan::format::{BLOCK, LINE, TILE_ROWS, WeightFormat};
use kernmill_plan::target::{Features, Level, Tuning};

/// Costs up to this factor above the least are as good: the model does not tell such candidates apart, and
/// the simplest, which come first, have merits that it does not know (dots hand out a tail of their work, so
/// that workers finish together).
pub const TIE: f64 = 1.02;

/// Place of the first of these costs that is as good as the least. `None` without costs.
pub fn cheapest(costs: &[f64]) -> Option<usize> {
    let least = costs.iter().copied().reduce(f64::min)?;
    costs.iter().position(|cost| *cost <= least * TIE)
}

/// The versions of a micro-kernel at a level and what a block costs in each (`None`: no number); the 128-bit
/// version is last.
fn versions_of(
    table: &Table,
    ukernel: &MicroKernel,
    level: Level,
) -> Vec<(Option<&'static AsmKernel>, Option<f64>)> {
    let all = asm::candidates(ukernel, level).map(Some).chain([None]);
    let name = |version| version_name(version, isa::has_vnni(level));
    all.map(|version| (version, table.ns_per_block(ukernel, name(version)))).collect()
}

/// Place of the cheapest version where all have numbers, of the first otherwise.
pub(super) fn cheapest_version(versions: &[(Option<&'static AsmKernel>, Option<f64>)]) -> usize {
    let costs: Option<Vec<f64>> = versions.iter().map(|(_, ns)| *ns).collect();
    costs.and_then(|costs| cheapest(&costs)).unwrap_or(0)
}

/// The cost model for a level, and for a family of CPUs.
#[derive(Clone, Debug)]
pub struct CostModel {
    level: Level,
    table: Table,
    machine: Machine,
    products: DotStep,
    /// Costs of every format with blocks, which micro-kernels multiply with q8 rows.
    formats: Vec<(WeightFormat, FormatCosts)>,
}

/// The work of an item.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct ItemWork {
    /// Bytes of weights.
    pub bytes: f64,
    /// ns of products, decoding included.
    pub arithmetic: f64,
    /// ns of what follows on their results.
    pub besides: f64,
    /// Whether most of the smaller of the two, waiting for memory and arithmetic, hides in the larger.
    pub hides: bool,
}

/// ns per block of the picked versions of a format's micro-kernels.
#[derive(Clone, Debug, Default)]
struct FormatCosts {
    /// Reading a block from memory.
    memory: f64,
    /// Dots by token count, in the order of [`MicroKernel::dot_tokens`].
    dots: Vec<f64>,
    decode: f64,
    /// Products by tiles less 1 and tokens less 1.
    gemms: [[f64; GROUP]; 2],
    least_rows: usize,
}

impl CostModel {
    /// The model for the built-in machine.
    pub fn new(level: Level, tuning: Tuning) -> CostModel {
        CostModel::on(level, tuning, MACHINE)
    }

    /// The model for a machine.
    pub fn on(level: Level, tuning: Tuning, machine: Machine) -> CostModel {
        let table = Table::of(tuning);
        let block = |ukernel: MicroKernel| {
            let versions = versions_of(&table, &ukernel, level);
            versions[cheapest_version(&versions)].1.unwrap_or(0.0)
        };
        let products = DotStep::at(level);
        let formats = WeightFormat::blocked().map(|format| {
            let dots = MicroKernel::dot_tokens(true).iter().map(|t| MicroKernel::DotQ8 {
                format,
                k: BLOCK,
                tokens: *t,
            });
            let weights = products.decoded(format);
            let gemm = |tiles, tokens| block(MicroKernel::GemmQ8 { weights, tiles, tokens });
            let costs = FormatCosts {
                memory: (data_lines(format) * LINE + scale_bytes(format)) as f64 / machine.bytes(),
                dots: dots.map(block).collect(),
                decode: block(MicroKernel::decoding(weights, format)),
                gemms: [1, 2].map(|tiles| std::array::from_fn(|i| gemm(tiles, i + 1))),
                least_rows: 0,
            };
            let least_rows = costs.least_rows(&machine, |rows| costs.by_panels(2, rows).0 / 2.0);
            (format, FormatCosts { least_rows, ..costs })
        });
        let formats = formats.collect();
        CostModel { level, table, machine, products, formats }
    }

    /// The level that the model is for.
    pub fn level(&self) -> Level {
        self.level
    }

    /// The machine that it is for.
    pub fn machine(&self) -> &Machine {
        &self.machine
    }

    /// The versions of a micro-kernel and what a block costs in each (`None`: no number); the 128-bit version
    /// is last.
    pub fn versions(&self, ukernel: &MicroKernel) -> Vec<(Option<&'static AsmKernel>, Option<f64>)> {
        versions_of(&self.table, ukernel, self.level)
    }

    fn format(&self, format: WeightFormat) -> &FormatCosts {
        let found = self.formats.iter().find(|(other, _)| *other == format);
        &found.expect("only formats with blocks meet q8 rows").1
    }

    /// How the level's gemm micro-kernels add products up.
    pub fn products(&self) -> DotStep {
        self.products
    }

    /// Input rows from which on panels pay for matrices of a format.
    pub fn least_rows(&self, format: WeightFormat) -> usize {
        self.format(format).least_rows
    }

    /// Input rows from which on tiles pay for matrices of a format.
    pub fn least_rows_of_tiles(&self, format: WeightFormat) -> usize {
        self.format(format).least_rows(&self.machine, |rows| self.tile_block(format, rows))
    }

    /// Arithmetic of `rows` rows with a tile of a format on tiles, per block of k, with what decoding takes
    /// behind products: beside whole panels it takes nothing.
    fn tile_block(&self, format: WeightFormat, rows: usize) -> f64 {
        let (costs, element) = (self.format(format), TileElement::of(format));
        let vectors = costs.gemms[1][GROUP - 1] / (2 * GROUP) as f64;
        let group = self.machine.tile_shares[element as usize] * vectors * gemm_tiles::PANEL_ROWS as f64;
        let decode = match element {
            TileElement::Bf16 => self.machine.tile_decode,
            TileElement::I8 => costs.decode,
        };
        let beside = (rows / gemm_tiles::PANEL_ROWS).min(gemm_tiles::DECODING_PANELS);
        let behind = 1.0 - beside as f64 / gemm_tiles::DECODING_PANELS as f64;
        let halves = rows.div_ceil(gemm_tiles::HALF_PANEL);
        behind * decode + group * halves as f64 / (gemm_tiles::PANEL_ROWS / gemm_tiles::HALF_PANEL) as f64
    }

    /// ns of a work item.
    fn item(&self, part: &MatrixPart, input: RowType, tiling: Tiling, rows: usize) -> f64 {
        let ItemWork { bytes, arithmetic, besides, hides } = self.item_work(part, input, tiling, rows);
        let memory = bytes / self.machine.bytes();
        let machine = &self.machine;
        besides
            + if hides {
                machine.overlapped(memory, arithmetic)
            } else {
                machine.beside_panels(memory, arithmetic)
            }
    }

    /// A work item: some rows of every matrix of a part times `rows` input rows. Dots prefetch, so that most
    /// of waiting for memory hides in their arithmetic or the other way round; with panels most of it does
    /// not, because weights are decoded first.
    pub fn item_work(&self, part: &MatrixPart, input: RowType, tiling: Tiling, rows: usize) -> ItemWork {
        let mut work = ItemWork::default();
        if rows == 0 {
            return work;
        }
        let tiles = part.rows_per_item / TILE_ROWS;
        let by_panels = tiling.least_rows().is_some_and(|least| rows >= least);
        work.besides = self.machine.epilogue * (rows * tiles * part.mats.len()) as f64;
        let (q8, bf16) = (input.is_q8(), matches!(input, RowType::Bf16(_)));
        for mat in &part.mats {
            let bytes = (tiles * mat.format.tile(mat.k).bytes()) as f64;
            // The second of an input row's terms finds the weights in the cache.
            work.bytes += if mat.term == 0 { bytes } else { 0.0 };
            if !q8 && !bf16 {
                work.arithmetic +=
                    tiles as f64 * self.machine.f32_product * (rows * mat.k * TILE_ROWS) as f64;
            } else if q8 && !by_panels {
                let (arithmetic, calls) = self.format(mat.format).by_dots(rows);
                let again = (calls - 1.0) * bytes / self.machine.cached_bytes;
                let arithmetic =
                    tiles as f64 * (arithmetic * (mat.k / BLOCK) as f64 + calls * self.machine.call);
                work.arithmetic += arithmetic + again;
            }
        }
        work.hides = q8 && !by_panels;
        if bf16 {
            work.arithmetic += self.by_bf16_panels(part, rows);
        } else if by_panels && matches!(tiling, Tiling::Tiles { .. }) {
            work.arithmetic += self.by_tiles(part, rows);
        } else if by_panels {
            // Panels take tiles of all matrices in pairs.
            let mat = &part.mats[0];
            let blocks = mat.k / BLOCK;
            let (pairs, rest) = (tiles * part.mats.len() / 2, tiles * part.mats.len() % 2);
            for (count, size) in [(pairs, 2), (rest, 1)] {
                let (arithmetic, calls) = self.format(mat.format).by_panels(size, rows);
                let calls = calls * blocks.div_ceil(CHUNK_BLOCKS) as f64;
                let arithmetic = if size == 2 && part.mats.len() == 1 {
                    arithmetic * self.machine.pair
                } else {
                    arithmetic
                };
                work.arithmetic += count as f64 * (arithmetic * blocks as f64 + calls * self.machine.call);
            }
        }
        work
    }

    /// Arithmetic of a work item for `rows` bf16 rows, decoding included. There is nothing to weigh it
    /// against but other items and steps.
    fn by_bf16_panels(&self, part: &MatrixPart, rows: usize) -> f64 {
        let tiles = part.mats.len() * part.rows_per_item / TILE_ROWS;
        let blocks = part.mats[0].k / BLOCK;
        let calls = tiles + tiles.div_ceil(2) * rows.div_ceil(gemm_bf16::PANEL_ROWS);
        let calls = calls * blocks.div_ceil(gemm_bf16::CHUNK_BLOCKS);
        let block = self.machine.bf16_decode + self.machine.bf16_row * rows as f64;
        (tiles * blocks) as f64 * block + calls as f64 * self.machine.call
    }

    /// Arithmetic of a work item for `rows` q8 rows on tiles, decoding included.
    fn by_tiles(&self, part: &MatrixPart, rows: usize) -> f64 {
        let tiles = part.mats.len() * part.rows_per_item / TILE_ROWS;
        let blocks = part.mats[0].k / BLOCK;
        let format = part.mats[0].format;
        let calls = 1 + tiles.div_ceil(2) * blocks.div_ceil(gemm_tiles::CHUNK_BLOCKS);
        (tiles * blocks) as f64 * self.tile_block(format, rows) + calls as f64 * self.machine.call
    }

    /// Rows up to which an item of experts takes about as long as with one, since its weights come from
    /// memory meanwhile; 1 for other kernels.
    pub fn even_rows(&self, kernel: &Kernel) -> usize {
        const MANY: usize = 32;
        let Body::Experts { input, part, .. } = &kernel.body else { return 1 };
        let item = |rows: usize| self.item(part, kernel.vals[*input].row, kernel.tiling, rows);
        let row = (item(2 * MANY) - item(MANY)) / MANY as f64;
        ((item(1) / row).round() as usize).clamp(1, MANY)
    }

    /// Gathering `rows` rows of `k` into panels.
    pub fn gather(&self, tiling: Tiling, k: usize, rows: usize) -> f64 {
        match tiling.least_rows() {
            Some(least) if rows >= least => self.machine.panel_block * (rows * (k / BLOCK)) as f64,
            _ => 0.0,
        }
    }

    /// ns of `items` equal items, shared out; `each` is one's.
    fn shared(&self, items: f64, each: f64) -> f64 {
        (items / self.machine.workers as f64).ceil() * each
    }

    /// A row through stages.
    pub fn row_ops(&self, kernel: &Kernel, row_ops: &[RowOp]) -> f64 {
        let len = |val: ValId| kernel.vals[val].row.len();
        let time = |work: RowWork| {
            self.machine.stage_element * work.elements as f64
                + self.machine.stage_weight * work.weights as f64
        };
        row_ops.iter().map(|row_op| time(row_op.work(&len))).sum()
    }

    /// The time of a step for a batch of `tokens`, its barrier included. Attention and the shrinks of
    /// adapters have one candidate and are not modelled.
    pub fn kernel(&self, kernel: &Kernel, tokens: usize) -> f64 {
        let rows = |domain: Domain| match domain {
            Domain::Tokens => tokens,
            Domain::Slots(k) => tokens * k,
            Domain::LogitRows => tokens.min(LOGIT_SLAB),
        };
        let input_type = |input: &ValId| kernel.vals[*input].row;
        let (domain, body) = match &kernel.body {
            Body::Rows { domain, row_ops } => {
                (*domain, self.shared(rows(*domain) as f64, self.row_ops(kernel, row_ops)))
            }
            Body::Matmul { domain, input, parts } => {
                let rows = rows(*domain);
                let items: usize = parts.iter().map(MatrixPart::items).sum();
                let cost = |part: &MatrixPart| {
                    part.items() as f64 * self.item(part, input_type(input), kernel.tiling, rows)
                };
                let all: f64 = parts.iter().map(cost).sum();
                let runs = kernel.panel_runs().iter().map(|run| run.terms).sum::<usize>() as f64;
                let own = if kernel.panels.is_empty() { runs } else { 0.0 };
                let gather = own * self.gather(kernel.tiling, input_type(input).len(), rows);
                (*domain, gather + self.shared(items as f64, all / items as f64))
            }
            Body::Panels { domain, input, routed, panels } => {
                let k = input_type(input).len();
                let each = match routed {
                    Some((_, experts, top_k)) => (expert_rows(*experts, *top_k, tokens))
                        .fold(0.0, |sum, (rows, active)| sum + active * self.gather(kernel.tiling, k, rows)),
                    None => self.gather(kernel.tiling, k, rows(*domain)),
                };
                (
                    *domain,
                    panels.iter().map(|(.., terms)| *terms).sum::<usize>() as f64 * each
                        / self.machine.workers as f64,
                )
            }
            Body::Experts { input, experts, top_k, part, .. } => {
                (Domain::Tokens, self.experts(kernel, input_type(input), (*experts, *top_k), part, tokens))
            }
            Body::ExpertDown { input, experts, top_k, mat, rows_per_item, .. } => {
                let part = MatrixPart::down(mat, *rows_per_item);
                (Domain::Tokens, self.experts(kernel, input_type(input), (*experts, *top_k), &part, tokens))
            }
            Body::Attention(_) | Body::Shrink { .. } => (Domain::Tokens, 0.0),
        };
        let prologue = rows(domain) as f64 * self.row_ops(kernel, &kernel.prologue);
        self.machine.barrier + prologue + body
    }

    /// A multiply-add of attention. Vectors of 256 bits take twice as long as those of 512.
    pub fn attention_mac(&self) -> f64 {
        let wide = self.level.features().has(Features::AVX512F);
        self.machine.attention_mac * if wide { 1.0 } else { 2.0 }
    }

    /// Grouped matrices.
    fn experts(
        &self,
        kernel: &Kernel,
        input: RowType,
        (experts, top_k): (usize, usize),
        part: &MatrixPart,
        tokens: usize,
    ) -> f64 {
        let (mut items, mut all, mut gather) = (0.0, 0.0, 0.0);
        for (rows, active) in expert_rows(experts, top_k, tokens) {
            items += active * part.items() as f64;
            all += active * part.items() as f64 * self.item(part, input, kernel.tiling, rows);
            if kernel.panels.is_empty() {
                gather += active * self.gather(kernel.tiling, part.mats[0].k, rows);
            }
        }
        if items == 0.0 { 0.0 } else { gather + self.shared(items, all / items) }
    }
}

impl FormatCosts {
    /// Arithmetic of `rows` rows with a tile by dots, per block of k; calls of micro-kernels.
    fn by_dots(&self, rows: usize) -> (f64, f64) {
        let (mut left, mut ns, mut calls) = (rows, 0.0, 0.0);
        for (size, each) in MicroKernel::dot_tokens(true).iter().zip(&self.dots) {
            let groups = (left / size) as f64;
            left %= size;
            ns += each * groups;
            calls += groups;
        }
        (ns, calls)
    }

    /// Arithmetic of `rows` rows with `tiles` tiles (1 or 2) by panels, per block of k, decoding included;
    /// calls of micro-kernels per chunk of k.
    fn by_panels(&self, tiles: usize, rows: usize) -> (f64, f64) {
        let groups = rows.div_ceil(GROUP);
        let (size, larger) = (rows / groups, rows % groups);
        let gemm = |tokens: usize| self.gemms[tiles - 1][tokens - 1];
        let more = if larger > 0 { gemm(size + 1) * larger as f64 } else { 0.0 };
        let ns = self.decode * tiles as f64 + more + gemm(size) * (groups - larger) as f64;
        (ns, (tiles + groups) as f64)
    }

    /// Where the sum of both sides' excess over the better of the two is least, weights from memory. (Dots
    /// like their group sizes, so the costs cross more than once.) `by_panels` is what a tile takes per block
    /// with so many rows by panels.
    fn least_rows(&self, machine: &Machine, by_panels: impl Fn(usize) -> f64) -> usize {
        const MOST: usize = 64;
        let excess = |rows: usize| {
            let dots = machine.overlapped(self.memory, self.by_dots(rows).0);
            let panels = machine.beside_panels(self.memory, by_panels(rows));
            (dots / dots.min(panels), panels / dots.min(panels))
        };
        let excess: Vec<(f64, f64)> = (1..=MOST).map(excess).collect();
        let total = |least: usize| -> f64 {
            let (few, many) = excess.split_at(least - 1);
            few.iter().map(|(dots, _)| dots).sum::<f64>() + many.iter().map(|(_, panels)| panels).sum::<f64>()
        };
        let mut best = (1, total(1));
        for least in 2..=MOST + 1 {
            let total = total(least);
            if total < best.1 {
                best = (least, total);
            }
        }
        best.0
    }
}
