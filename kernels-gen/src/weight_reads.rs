//! Which weights a kernel's workers read, and in which order.

use crate::kernel::{Body, Kernel, Mat, MatrixPart, OperandId, RowOp, RowType};
use kernmill_plan::format::{TILE_ROWS, f32_row_stride};
use kernmill_plan::program::{ItemReads, OperandReads, WeightReads};

/// A kernel's weights in the order in which workers come to them. Which routing chooses among experts is left
/// open.
pub fn weight_reads(kernel: &Kernel) -> WeightReads {
    let vals: Vec<RowType> = kernel.vals.iter().map(|val| val.row).collect();
    let of_row = |op: &RowOp| op.code().weights(&vals);
    let whole = kernel.prologue.iter().flat_map(of_row).map(|(operand, _)| operand as u32).collect();
    let mut reads = WeightReads { whole, ..WeightReads::default() };
    match &kernel.body {
        Body::Matmul { parts, .. } => reads.parts = parts.iter().map(items_of).collect(),
        Body::ExpertDown { mat, rows_per_item, .. } => {
            reads.parts = vec![items_of(&MatrixPart::down(mat, *rows_per_item))];
        }
        Body::Experts { part, .. } => {
            reads.parts = vec![items_of(part)];
            reads.own_items = true;
        }
        // One item, since a row is all one worker's.
        Body::Rows { row_ops, .. } => {
            let operands: Vec<OperandReads> =
                row_ops.iter().flat_map(of_row).map(|(operand, bytes)| every_item(operand, bytes)).collect();
            reads.parts = vec![ItemReads { items: u32::from(!operands.is_empty()), operands }];
        }
        // Attention knows its own blocks; panels and adapters are no weights of the plan.
        Body::Attention(_) | Body::Panels { .. } | Body::Shrink { .. } => {}
    }
    reads
}

/// A part's work items.
fn items_of(part: &MatrixPart) -> ItemReads {
    // Interleaved matrices are read as one: their tiles alternate from the first one's start on.
    let mats = if part.interleaved { &part.mats[..1] } else { &part.mats[..] };
    let rows = part.rows_per_item;
    let of_matrix = |mat: &Mat| OperandReads {
        operand: mat.operand as u32,
        pieces: (rows / TILE_ROWS) as u32,
        bytes: match part.interleaved {
            true => mat.tile_stride as u64,
            false => mat.format.matrix_bytes(TILE_ROWS, mat.k) as u64,
        },
        stride: mat.tile_stride as u64,
        expert_stride: mat.expert_stride as u64,
    };
    let of_bias = |mat: &Mat| {
        let operand = mat.bias?;
        let expert_stride = if mat.expert_stride > 0 { f32_row_stride(mat.n) as u64 } else { 0 };
        Some(OperandReads { expert_stride, ..every_item(operand, rows * 4) })
    };
    // A matrix that is multiplied with several rows of q8 is read once.
    let operands = mats
        .iter()
        .filter(|mat| mat.term == 0)
        .map(of_matrix)
        .chain(part.mats.iter().filter_map(of_bias))
        .collect();
    ItemReads { items: part.items() as u32, operands }
}

/// So many bytes for each item.
fn every_item(operand: OperandId, bytes: usize) -> OperandReads {
    let (operand, bytes) = (operand as u32, bytes as u64);
    OperandReads { operand, pieces: 1, bytes, stride: bytes, expert_stride: 0 }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel::{Domain, Tiling};
    use crate::row_op::{HadamardRow, RowPlace, StoreRow};
    use kernmill_plan::format::WeightFormat;

    /// Bytes of a tile of the matrix.
    const TILE: usize = 100;

    fn part(n: usize, rows_per_item: usize, epilogue: Vec<RowOp>) -> MatrixPart {
        let mat = Mat {
            operand: 3,
            format: WeightFormat::Int8,
            n,
            k: 64,
            tile_stride: TILE,
            expert_stride: 0,
            bias: None,
            term: 0,
            adapter: None,
        };
        MatrixPart { mats: vec![mat], interleaved: false, rows_per_item, epilogue }
    }

    fn by_dots(body: Body) -> WeightReads {
        let (vals, prologue) = (Vec::new(), Vec::new());
        weight_reads(&Kernel { vals, prologue, body, max_rows: 1, tiling: Tiling::Dot, panels: Vec::new() })
    }

    /// Where in the matrix workers begin, in tiles.
    fn starts(reads: &WeightReads, workers: u64) -> Vec<u64> {
        let operand = &reads.parts[0].operands[0];
        let bytes = u64::from(operand.pieces) * operand.stride;
        let item = |worker| reads.hand_out().share(worker, workers).start;
        (0..workers).map(|worker| item(worker) * bytes / TILE as u64).collect()
    }

    /// There are 180 items of a tile. The counter keeps 45 of them.
    #[test]
    fn workers_begin_with_equal_shares_of_three_quarters() {
        let store = StoreRow::results(0);
        let parts = vec![part(2880, 16, vec![store.into()])];
        let dense = by_dots(Body::Matmul { domain: Domain::Tokens, input: 0, parts: parts.clone() });
        assert_eq!(dense.parts[0].items, 180);
        assert_eq!(starts(&dense, 2), [0, 67]);
        assert_eq!(starts(&dense, 3), [0, 45, 90]);
        let mat = parts[0].mats[0].clone();
        let (experts, top_k, rows_per_item) = (4, 2, 16);
        let down = Body::ExpertDown {
            input: 0,
            routing: 1,
            experts,
            top_k,
            mat,
            rows_per_item,
            residual: None,
            out: 2,
        };
        assert_eq!(starts(&by_dots(down), 2), [0, 67]);
    }

    /// A head is an item: there are 20 items of four tiles, 5 of them left to the counter.
    #[test]
    fn heads_are_handed_out_one_by_one() {
        let turned = HadamardRow { x: RowPlace::Results, head_dim: 64, out: RowPlace::Results };
        let parts = vec![part(1280, 64, vec![turned.into()])];
        let heads = by_dots(Body::Matmul { domain: Domain::Tokens, input: 0, parts });
        assert_eq!(heads.parts[0].items, 20);
        assert_eq!(starts(&heads, 2), [0, 28]);
    }
}
