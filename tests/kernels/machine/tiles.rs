//! AMX tiles of palette 1 and their products, by the description of each instruction in Intel's manual.

use super::float;
use super::memory::Fault;

const TILES: usize = 8;
pub const ROWS: usize = 16;
pub const ROW_BYTES: usize = 64;

/// Configured tiles.
pub struct Tiles {
    /// Rows and bytes per row.
    pub shapes: [(usize, usize); TILES],
    pub data: Box<[[[u8; ROW_BYTES]; ROWS]; TILES]>,
}

impl Tiles {
    /// From the 64 bytes of `ldtilecfg`; tiles start as zeros.
    pub fn new(config: &[u8]) -> Result<Tiles, Fault> {
        let bad = |what: &str| Err(format!("bad tile configuration: {what}"));
        if config[0] != 1 || config[1] != 0 {
            return bad("palette or start row");
        }
        // Reserved bytes, and the places of tiles that palette 1 does not have.
        if [2..16, 32..48, 56..64].into_iter().any(|reserved| config[reserved].iter().any(|byte| *byte != 0))
        {
            return bad("reserved bytes");
        }
        let shapes: [(usize, usize); TILES] = std::array::from_fn(|tile| {
            let bytes = u16::from_le_bytes([config[16 + 2 * tile], config[17 + 2 * tile]]);
            (usize::from(config[48 + tile]), usize::from(bytes))
        });
        for (rows, bytes) in shapes {
            if rows > ROWS || bytes > ROW_BYTES || (rows == 0) != (bytes == 0) {
                return bad("shape");
            }
        }
        Ok(Tiles { shapes, data: Box::new([[[0; ROW_BYTES]; ROWS]; TILES]) })
    }

    pub fn element(&self, tile: usize, row: usize, column: usize) -> u32 {
        let bytes = &self.data[tile][row][4 * column..][..4];
        u32::from_le_bytes(bytes.try_into().expect("4 bytes"))
    }

    /// `c += a * b`, pairs of bf16: even and odd ones are summed apart from zero, in ascending order, then
    /// added to each other, then to `c`.
    pub fn dot_bf16(&mut self, tiles: [usize; 3]) -> Result<(), Fault> {
        self.dot(tiles, |sum, pairs| {
            let mut sums = [0; 2];
            for (a, b) in pairs {
                sums[0] = float::flushed_fma(a << 16, b << 16, sums[0]);
                sums[1] = float::flushed_fma(a & 0xffff_0000, b & 0xffff_0000, sums[1]);
            }
            float::flushed_add(sum, float::flushed_add(sums[0], sums[1]))
        })
    }

    /// `c += a * b`, four signed bytes by four, which wraps around.
    pub fn dot_bytes(&mut self, tiles: [usize; 3]) -> Result<(), Fault> {
        self.dot(tiles, |sum, fours| {
            fours.iter().fold(sum, |sum, (a, b)| {
                let products = a
                    .to_le_bytes()
                    .into_iter()
                    .zip(b.to_le_bytes())
                    .map(|(a, b)| i32::from(a.cast_signed()) * i32::from(b.cast_signed()));
                products.fold(sum, |sum, product| sum.wrapping_add(product.cast_unsigned()))
            })
        })
    }

    /// Each element of `c` becomes what `product` makes of it, a row of `a` and a column of `b`.
    fn dot(
        &mut self,
        [c, a, b]: [usize; 3],
        product: impl Fn(u32, &[(u32, u32)]) -> u32,
    ) -> Result<(), Fault> {
        let [(rows, columns), (a_rows, a_bytes), (b_rows, b_bytes)] = [c, a, b].map(|tile| self.shapes[tile]);
        let fits = rows == a_rows && columns == b_bytes && a_bytes == 4 * b_rows;
        if !fits || columns % 4 != 0 || c == a || c == b || a == b {
            return Err(format!("shapes do not fit: {rows}x{columns} {a_rows}x{a_bytes} {b_rows}x{b_bytes}"));
        }
        let mut result = [[0; ROW_BYTES]; ROWS];
        for (m, out) in result.iter_mut().enumerate().take(rows) {
            for n in 0..columns / 4 {
                let pairs: Vec<(u32, u32)> =
                    (0..b_rows).map(|k| (self.element(a, m, k), self.element(b, k, n))).collect();
                let sum = product(self.element(c, m, n), &pairs);
                out[4 * n..][..4].copy_from_slice(&sum.to_le_bytes());
            }
        }
        self.data[c] = result;
        Ok(())
    }
}
