//! Rows of tables against the elements of their formats: a kernel that does nothing else, on every level.

use super::fence::{Fenced, Flush};
use super::packed::random_tile;
use super::{Code, name, versions};
use fastrand::Rng;
use kernmill_kernels_gen::generate::generate;
use kernmill_kernels_gen::kernel::{Body, Domain, Home, Kernel, RowType, Tiling, Val};
use kernmill_kernels_gen::row_op::EmbedRow;
use kernmill_plan::abi::{Args, COUNTERS, KernelFn, Worker};
use kernmill_plan::format;
use kernmill_plan::format::{TILE_ROWS, WeightFormat};
use std::ptr::null;
use std::sync::atomic::AtomicU32;

const TILES: usize = 3;

/// Tiles one behind the other, all rows shuffled, some of them twice.
#[test]
fn rows_of_tables_with_blocks_are_their_elements() {
    let mut rng = Rng::with_seed(21);
    for format in WeightFormat::blocked() {
        let n = if format.parts().is_super() { 512 } else { 96 };
        let tiles: Vec<Vec<u8>> =
            (0..TILES).map(|tile| random_tile(&mut rng, format, n, tile == 1)).collect();
        let mut ids: Vec<u32> = (0..(TILES * TILE_ROWS) as u32).chain([5, 5, 31]).collect();
        rng.shuffle(&mut ids);
        let kernel = kernel(format, n, ids.len());
        // Levels have no versions of their own of this work.
        for (level, version) in versions().filter(|(_, version)| *version == 0) {
            let code = generate(&[("embed".into(), kernel.clone())], level, &|_| None, false).unwrap();
            let what = format!("{} {format:?}", name(level, version));
            for (flush, packed) in [Flush::Start, Flush::End].map(|flush| (flush, tiles.concat())) {
                let mut table = Fenced::new(packed.len(), flush);
                table.bytes_mut().copy_from_slice(&packed);
                table.read_only();
                let rows = run(&Code::new(code.blob.clone()), &table, &ids, n);
                for (row, id) in rows.chunks(n).zip(&ids) {
                    let (tile, lane) = (*id as usize / TILE_ROWS, *id as usize % TILE_ROWS);
                    for (i, x) in row.iter().enumerate() {
                        let expected = format::value(format, n, &tiles[tile], lane, i);
                        assert_eq!(x.to_bits(), expected.to_bits(), "{what}: element {i} of row {id}");
                    }
                }
            }
        }
    }
}

/// A kernel that looks up rows of `n`, which are operand 1, in the table that is operand 0.
fn kernel(format: WeightFormat, n: usize, tokens: usize) -> Kernel {
    let embed = EmbedRow { table: 0, format, row_bytes: format.tile(n).bytes(), positions: None, out: 0 };
    Kernel {
        vals: vec![Val { row: RowType::F32(n), home: Home::Operand(1) }],
        prologue: Vec::new(),
        body: Body::Rows { domain: Domain::Tokens, row_ops: vec![embed.into()] },
        max_rows: tokens,
        tiling: Tiling::Dot,
        panels: Vec::new(),
    }
}

/// The rows of these numbers.
fn run(code: &Code, table: &Fenced, ids: &[u32], n: usize) -> Vec<f32> {
    let mut out = vec![f32::NAN; ids.len() * n];
    let operands = [table.address(), out.as_mut_ptr() as u64];
    let args = Args {
        tokens: ids.len() as u32,
        logit_rows: 0,
        token_ids: ids.as_ptr(),
        positions: null(),
        sequences: null(),
        adapters: null(),
        logit_index: null(),
        block_tables: [null(); 2],
        block_table_stride: [0; 2],
        adapter_table: null(),
        adapter_stride: 0,
        adapter_runs: null(),
        adapter_tiles: 0,
        logit_tiles: null(),
        last_positions: null(),
        logit_tile_count: 0,
    };
    let counters = [const { AtomicU32::new(0) }; COUNTERS];
    let worker = Worker {
        index: 0,
        count: 1,
        scratch: std::ptr::null_mut(),
        counters: counters.as_ptr(),
        operands: operands.as_ptr(),
        first_scratch: std::ptr::null_mut(),
        node_starts: [0, 1].as_ptr(),
        nodes: 1,
        node: 0,
    };
    // SAFETY: the kernel reads the table and token ids, and writes a row of n for each; it has no scratch.
    unsafe {
        let f: KernelFn = std::mem::transmute(code.address(0));
        f(&raw const args, &raw const worker);
    }
    out
}
