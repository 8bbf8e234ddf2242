//! Which items of a whole kernel a worker gets: generated kernels, run by one worker at a time, against the
//! numbers that replays and simulations take.

use super::{Code, choose};
use kernmill_kernels_gen::generate::generate;
use kernmill_kernels_gen::hand_out::hand_out;
use kernmill_kernels_gen::kernel::{Body, Domain, Home, Kernel, Mat, MatrixPart, RowType, Tiling, Val};
use kernmill_kernels_gen::row_op::StoreRow;
use kernmill_kernels_gen::ukernel::gemm_q8::DotStep;
use kernmill_plan::abi::{Args, COUNTERS, ChosenExpert, KernelFn, Worker};
use kernmill_plan::format::WeightFormat;
use kernmill_plan::hand_out::WorkersByNode;
use kernmill_plan::target::Level;
use std::sync::atomic::{AtomicU32, Ordering};

const LEVEL: Level = Level::V3;
const K: usize = 64;
/// Rows of the matrices: 37 tiles, which no number of workers below divides.
const N: usize = 592;
const EXPERTS: usize = 4;
const TOP_K: usize = 2;
/// Experts that tokens choose.
const CHOSEN: [u32; TOP_K] = [1, 3];
/// Bytes of every operand: none needs more.
const BYTES: usize = 1 << 20;
/// A row of results that nobody has written.
const POISON: u8 = 0xff;

/// An output row that a worker may have written, and the item of each of its columns.
struct Output {
    row: usize,
    first_item: usize,
}

fn mat(expert_stride: usize) -> Mat {
    let format = WeightFormat::Int8;
    Mat {
        operand: 3,
        format,
        n: N,
        k: K,
        tile_stride: format.tile(K).bytes(),
        expert_stride,
        bias: None,
        term: 0,
        adapter: None,
    }
}

fn part(mat: Mat) -> MatrixPart {
    MatrixPart {
        mats: vec![mat],
        interleaved: false,
        rows_per_item: 16,
        epilogue: vec![StoreRow::results(2).into()],
    }
}

fn kernel(body: Body, max_rows: usize, tiling: Tiling) -> Kernel {
    let val = |row, operand| Val { row, home: Home::Operand(operand) };
    let vals = vec![val(RowType::Q8(K), 0), val(RowType::Routing(TOP_K), 1), val(RowType::F32(N), 2)];
    Kernel { vals, prologue: Vec::new(), body, max_rows, tiling, panels: Vec::new() }
}

/// Kernels of each body for batches of a token and of many, with the rows of results to look at.
fn kernels() -> Vec<(&'static str, Kernel, usize, Vec<Output>)> {
    let expert_stride = part(mat(0)).items() * mat(0).tile_stride;
    // There is no routing: its operand is the matrix, whose bytes do not matter where rows are zeros.
    let dense_mat = Mat { operand: 1, ..mat(0) };
    let dense = Body::Matmul { domain: Domain::Tokens, input: 0, parts: vec![part(dense_mat)] };
    let (experts, top_k) = (EXPERTS, TOP_K);
    let up = Body::Experts {
        input: 0,
        input_slots: false,
        routing: 1,
        experts,
        top_k,
        part: part(mat(expert_stride)),
        even_rows: 2,
    };
    let down = Body::ExpertDown {
        input: 0,
        routing: 1,
        experts,
        top_k,
        mat: mat(expert_stride),
        rows_per_item: 16,
        residual: None,
        out: 2,
    };
    let panels = Tiling::Gemm { least_rows: 4, products: DotStep::at(LEVEL) };
    let first = || vec![Output { row: 0, first_item: 0 }];
    // Both experts of the first token: a slot each.
    let slots = || {
        let items = part(mat(0)).items();
        (0..TOP_K).map(|slot| Output { row: slot, first_item: slot * items }).collect()
    };
    vec![
        ("a dense matrix", kernel(dense.clone(), 1, Tiling::Dot), 1, first()),
        ("a dense matrix, few rows of many", kernel(dense.clone(), 32, panels), 3, first()),
        ("a dense matrix by panels", kernel(dense, 32, panels), 8, first()),
        ("experts", kernel(up.clone(), TOP_K, Tiling::Dot), 1, slots()),
        ("experts in a batch", kernel(up.clone(), 32 * TOP_K, Tiling::Dot), 2, slots()),
        ("experts by panels", kernel(up, 32 * TOP_K, panels), 8, slots()),
        ("the sum of experts", kernel(down.clone(), TOP_K, Tiling::Dot), 1, first()),
        ("the sum of experts by panels", kernel(down, 32 * TOP_K, panels), 8, first()),
    ]
}

/// Memory at an address that kernels ask for.
fn aligned(bytes: u8) -> (Vec<u8>, usize) {
    let memory = vec![bytes; BYTES + 64];
    let offset = memory.as_ptr().align_offset(64);
    (memory, offset)
}

/// The items of which a worker has written results, when `before` are gone from each counter.
fn written(
    (code, scratch_bytes): (&Code, usize),
    (rows, outputs): (usize, &[Output]),
    (index, nodes): (u32, &WorkersByNode),
    before: u32,
) -> Vec<usize> {
    let mut operands = [0, 0, POISON, 0].map(aligned);
    let routes = CHOSEN.map(|expert| ChosenExpert { expert, weight: 0.5 });
    let (memory, offset) = &mut operands[1];
    for (at, route) in (0..rows).flat_map(|_| routes).enumerate() {
        let place = &mut memory[*offset + at * 8..][..8];
        place[..4].copy_from_slice(&route.expert.to_le_bytes());
        place[4..].copy_from_slice(&route.weight.to_le_bytes());
    }
    let mut scratch = vec![0_u8; scratch_bytes + 64];
    let scratch_start = scratch.as_ptr().align_offset(64);
    let addresses: Vec<u64> =
        operands.iter_mut().map(|(memory, offset)| memory[*offset..].as_mut_ptr() as u64).collect();
    let counters: Vec<[AtomicU32; COUNTERS]> = nodes.starts().iter().map(|_| Default::default()).collect();
    counters.iter().for_each(|of_node| of_node[0].store(before, Ordering::Relaxed));
    let zeros = vec![0_u32; rows];
    let args = Args {
        tokens: rows as u32,
        logit_rows: 1,
        token_ids: zeros.as_ptr(),
        positions: zeros.as_ptr(),
        sequences: zeros.as_ptr(),
        adapters: zeros.as_ptr(),
        logit_index: zeros.as_ptr(),
        block_tables: [zeros.as_ptr(); 2],
        block_table_stride: [1; 2],
        adapter_table: std::ptr::null(),
        adapter_stride: 0,
        adapter_runs: zeros.as_ptr(),
        adapter_tiles: 0,
        logit_tiles: std::ptr::null(),
        last_positions: std::ptr::null(),
        logit_tile_count: 0,
    };
    let worker = Worker {
        index,
        count: nodes.workers(),
        scratch: scratch[scratch_start..].as_mut_ptr(),
        counters: counters.as_ptr().cast(),
        operands: addresses.as_ptr(),
        first_scratch: scratch[scratch_start..].as_mut_ptr(),
        node_starts: nodes.starts().as_ptr(),
        nodes: nodes.nodes() as u32,
        node: nodes.node_of(index) as u32,
    };
    // SAFETY: the kernel is symbol 0, the operands and the scratch have room for all that it asks for.
    unsafe {
        let function = std::mem::transmute::<*const u8, KernelFn>(code.address(0));
        function(&args, &worker);
    }
    let (memory, offset) = &operands[2];
    let stride = RowType::F32(N).stride();
    let is_written = |row: usize, item: usize| {
        let columns = &memory[offset + row * stride + item * 64..][..64];
        let is_poison = columns.iter().all(|byte| *byte == POISON);
        assert!(is_poison || columns.iter().all(|byte| *byte == 0), "half an item is written");
        !is_poison
    };
    let items = N / 16;
    let of = |output: &Output| {
        let (row, first) = (output.row, output.first_item);
        (0..items)
            .filter(move |item| is_written(row, *item))
            .map(move |item| first + item)
            .collect::<Vec<_>>()
    };
    outputs.iter().flat_map(of).collect()
}

#[test]
fn a_worker_gets_the_items_that_the_numbers_give_it() {
    for (name, kernel, rows, outputs) in kernels() {
        let generated =
            generate(&[(name.replace([' ', ','], "_"), kernel.clone())], LEVEL, &choose(LEVEL, 0), false)
                .unwrap();
        let code = (&Code::new(generated.blob), generated.scratch_bytes);
        let items = hand_out(&kernel, rows, &[rows; TOP_K]);
        for counts in [&[1][..], &[2], &[3], &[8], &[1, 1], &[2, 1], &[3, 2, 3]] {
            let nodes = WorkersByNode::counted(counts.iter().copied());
            let (count, parts) = (nodes.workers(), items.by_node(&nodes));
            for index in [0, count / 2, count - 1] {
                for before in [0, 2] {
                    let found = written(code, (rows, &outputs), (index, &nodes), before);
                    // Its share, and nobody else takes from the counters.
                    let mut expected = Vec::new();
                    for (turn, part) in items.order(&nodes, index).enumerate() {
                        let part = &parts[part];
                        let share = if turn == 0 { part.share(index) } else { 0..0 };
                        let taken = part.claimed(before.into(), u64::MAX / 2).unwrap_or(0..0);
                        expected.extend(
                            [share, taken].into_iter().flat_map(|range| part.ranges(range)).flatten(),
                        );
                    }
                    expected.sort_unstable();
                    let expected: Vec<usize> = expected.into_iter().map(|item| item as usize).collect();
                    assert_eq!(found, expected, "{name}: worker {index} of {counts:?}, {before} gone");
                }
            }
        }
    }
}
