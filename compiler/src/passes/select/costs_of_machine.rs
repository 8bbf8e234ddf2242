//! The numbers of the cost model for a machine, besides those of its micro-kernels.

use kernmill_kernels_gen::ukernel::gemm_tiles::TileElement;

/// The model's numbers for a machine besides its micro-kernels.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Machine {
    /// Workers. Two, the fewest worth having: with more of them memory is the limit sooner, and candidates
    /// differ less.
    pub workers: usize,
    /// Bytes per ns from memory, all workers together.
    pub all_bytes: f64,
    /// Bytes per ns from memory, one worker.
    pub worker_bytes: f64,
    /// How much of the smaller of the two, waiting for memory and arithmetic, does not hide in the larger in
    /// dots, which prefetch.
    pub exposed: f64,
    /// How much of waiting for memory does not hide in the arithmetic of panels.
    pub exposed_panels: f64,
    /// The cost of one more step: the barrier, workers that do not come to it together, memory that waits for
    /// them.
    pub barrier: f64,
    /// An element of a row through a cheap stage (norm, quantisation, an expression).
    pub stage_element: f64,
    /// A weight of a small matrix in a stage (the router).
    pub stage_weight: f64,
    /// A block of a row, gathered into a panel.
    pub panel_block: f64,
    /// Panels by two tiles at a time where one would do, beside what the micro-kernel alone takes (a factor
    /// on the arithmetic).
    pub pair: f64,
    /// A call of a micro-kernel, with the loop around it.
    pub call: f64,
    /// Bytes per ns of a tile that another group of rows reads again, from L2, beside what the micro-kernel
    /// alone takes.
    pub cached_bytes: f64,
    /// 16 results through an epilogue.
    pub epilogue: f64,
    /// A weight times an activation of f32 rows, which have no panels.
    pub f32_product: f64,
    /// A block of k of a tile, decoded to bf16.
    pub bf16_decode: f64,
    /// A block of k of a tile of MXFP4, decoded for AMX tiles.
    pub tile_decode: f64,
    /// A decoded block of a tile times a bf16 row.
    pub bf16_row: f64,
    /// A row's products on AMX tiles as a share of what vectors take for them, for each of
    /// [`TileElement::ALL`].
    pub tile_shares: [f64; TileElement::ALL.len()],
    /// A multiply-add of attention with vectors of 512 bits, softmax included. Reports are made with it;
    /// nothing is picked by it.
    pub attention_mac: f64,
}

/// The model's numbers for a machine, at all levels. They do not concern arithmetic on vectors of weights.
/// Bytes: `kernmill cpu --measure` with two threads gave 35 GB/s on the Xeon of
/// `benches/runs/2026-11-20-memory-speed.md` and between 30 and 55 on the EPYC. The barrier and the stages
/// are those of `benches/runs/2026-11-21-candidates.md`: a prologue as a step costs one token 20 to 40 us,
/// and 32 rows of a norm and a quantisation of 2880 take 54.9 us, with a router of 32 rows besides 116.1.
/// `exposed`: `kernels-gen/benches/ukernels.rs` on the EPYC, dots of 1 to 8 tokens from memory and in cache.
/// `exposed_panels`: where panels overtake dots in `benches/runs/2026-11-30-panels-or-dots.md`.
/// The seven after the stages are fitted to the same record; the numbers of bf16 rows are those of the
/// 512-bit micro-kernels on the EPYC (bench `costs`), of pairs of tiles. Decoding for AMX tiles takes 0.6 of
/// decoding to bf16, and the shares of tiles are those of a Xeon (`benches/runs/2026-11-27-amx-tiles.md`).
/// Attention: `benches/runs/2026-11-21-attention.md`, where two threads take 72 us for the 6.0 million
/// multiply-adds of a token of a prompt of 512.
pub const MACHINE: Machine = Machine {
    workers: 2,
    all_bytes: 36.0,
    worker_bytes: 18.0,
    exposed: 0.15,
    exposed_panels: 0.75,
    barrier: 25_000.0,
    stage_element: 0.55,
    stage_weight: 0.04,
    panel_block: 4.0,
    pair: 1.05,
    call: 8.0,
    cached_bytes: 250.0,
    epilogue: 10.0,
    f32_product: 0.06,
    bf16_decode: 21.0,
    tile_decode: 12.0,
    bf16_row: 10.4,
    tile_shares: [0.66, 0.55],
    attention_mac: 0.024,
};

impl Machine {
    /// Bytes per ns that a worker gets while all of them read.
    pub fn bytes(&self) -> f64 {
        self.worker_bytes.min(self.all_bytes / self.workers as f64)
    }

    /// Waiting for memory beside arithmetic, with panels.
    pub(super) fn beside_panels(&self, memory: f64, arithmetic: f64) -> f64 {
        memory.max(arithmetic + self.exposed_panels * memory)
    }

    /// Waiting for memory beside arithmetic, in dots.
    pub(super) fn overlapped(&self, memory: f64, arithmetic: f64) -> f64 {
        memory.max(arithmetic) + self.exposed * memory.min(arithmetic)
    }
}
