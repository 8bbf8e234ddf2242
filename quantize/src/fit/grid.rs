//! A fitted row whose scales stay while other integers are chosen for its weights.

use super::table::NearestCodes;
use super::{BlockFitter, FitKind, bytes};
use half::f16;
use kernmill_plan::format::{FileBlock, SUPERBLOCK};
use kernmill_plan::numeric::ROUND_MAGIC;

/// The numbers that the weights of a row can be.
pub(crate) struct RowGrid {
    blocks: Vec<FileBlock>,
    /// Scales and minima, one for so many neighbours.
    lines: Vec<GridLine>,
    width: usize,
}

#[derive(Clone, Copy)]
struct GridLine {
    scale: f32,
    inverse: f32,
    minimum: f32,
}

impl BlockFitter {
    /// The grid of a row, from its bytes as [`BlockFitter::row`] makes them.
    pub(crate) fn grid(&self, row: &[u8]) -> RowGrid {
        let file = self.format.descriptor().file.expect("weights are fitted to types of files");
        let empty =
            FileBlock { codes: [0; SUPERBLOCK], scale: 0, minimum: 0, scales: [0; 16], minima: [0; 16] };
        let block = |bytes| {
            let mut block = empty;
            (file.read)(bytes, &mut block);
            block
        };
        let blocks: Vec<FileBlock> = row.chunks_exact(file.bytes).map(block).collect();
        let width = if let FitKind::Super(shape) = &self.kind { shape.width } else { self.elements };
        let parts = self.elements / width;
        let lines = blocks.iter().flat_map(|block| (0..parts).map(|at| self.line(block, at))).collect();
        RowGrid { blocks, lines, width }
    }

    fn line(&self, block: &FileBlock, at: usize) -> GridLine {
        let half = |bits| f16::from_bits(bits).to_f32();
        let (scale, minimum) = match &self.kind {
            FitKind::Linear(_) | FitKind::Table(_) => (half(block.scale), 0.0),
            FitKind::Affine(_) => (half(block.scale), half(block.minimum)),
            FitKind::PowerOfTwo(_) => (f32::from_bits(u32::from(block.scale) << 23) * 0.5, 0.0),
            FitKind::Super(shape) if shape.minima > 0 => {
                let minimum = half(block.minimum) * f32::from(block.minima[at]);
                (half(block.scale) * f32::from(block.scales[at]), -minimum)
            }
            FitKind::Super(_) => (half(block.scale) * f32::from(block.scales[at] as i8), 0.0),
        };
        let inverse = if scale.abs() < 1e-30 { 0.0 } else { 1.0 / scale };
        GridLine { scale, inverse, minimum }
    }

    /// Gives a weight of the row the code whose number is nearest to `x`, and returns the number.
    pub(crate) fn choose(&self, grid: &mut RowGrid, column: usize, x: f32) -> f32 {
        let line = grid.lines[column / grid.width];
        let code = &mut grid.blocks[column / self.elements].codes[column % self.elements];
        let on_line = |low: f32, high: f32| {
            let scaled = (x - line.minimum) * line.inverse;
            let scaled = if scaled > low { scaled } else { low };
            let q = ((if scaled < high { scaled } else { high }) + ROUND_MAGIC) - ROUND_MAGIC;
            // A scale of 0 has one number: which integer stands for it does not matter.
            if line.inverse == 0.0 {
                (0.0f32.clamp(low, high), line.minimum)
            } else {
                (q, q * line.scale + line.minimum)
            }
        };
        let in_table = |codes: &NearestCodes| codes.nearest_to(x, line.scale, line.inverse);
        match &self.kind {
            FitKind::Linear([low, high]) => {
                let (q, number) = on_line(*low, *high);
                *code = (q as i32 + self.format.parts().bias()) as u8;
                number
            }
            FitKind::Affine([low, high]) => {
                let (q, number) = on_line(*low, *high);
                *code = q as u8;
                number
            }
            FitKind::Super(shape) => {
                let (q, number) = on_line(shape.range[0], shape.range[1]);
                *code = (q as i32 - shape.range[0] as i32) as u8;
                number
            }
            FitKind::Table(codes) | FitKind::PowerOfTwo(codes) => {
                let (of_table, number) = in_table(codes);
                *code = of_table;
                number
            }
        }
    }

    /// Appends the row with the codes that it has now.
    pub(crate) fn write(&self, grid: &RowGrid, out: &mut Vec<u8>) {
        grid.blocks.iter().for_each(|block| bytes::write(self.format, block, out));
    }
}
