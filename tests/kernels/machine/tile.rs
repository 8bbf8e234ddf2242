//! AMX tiles, palette 1, by the description of each instruction in Intel's manual.

use super::{Fault, Machine, float};
use iced_x86::{Instruction, Mnemonic, Register};

const TILES: usize = 8;
const ROWS: usize = 16;
const ROW_BYTES: usize = 64;

/// Configured tiles.
pub struct Tiles {
    /// Rows and bytes per row.
    shapes: [(usize, usize); TILES],
    data: Box<[[[u8; ROW_BYTES]; ROWS]; TILES]>,
}

impl Tiles {
    /// From the 64 bytes of `ldtilecfg`; tiles start as zeros.
    fn new(config: &[u8]) -> Result<Tiles, Fault> {
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

    fn element(&self, tile: usize, row: usize, column: usize) -> u32 {
        let bytes = &self.data[tile][row][4 * column..][..4];
        u32::from_le_bytes(bytes.try_into().expect("4 bytes"))
    }

    /// `c += a * b`, pairs of bf16: even and odd ones are summed apart from zero, in ascending order, then added to each other, then to
    /// `c`.
    fn dot_bf16(&mut self, [c, a, b]: [usize; 3]) -> Result<(), Fault> {
        let [(rows, columns), (a_rows, a_bytes), (b_rows, b_bytes)] = [c, a, b].map(|tile| self.shapes[tile]);
        let fits = rows == a_rows && columns == b_bytes && a_bytes == 4 * b_rows;
        if !fits || columns % 4 != 0 || c == a || c == b || a == b {
            return Err(format!("shapes do not fit: {rows}x{columns} {a_rows}x{a_bytes} {b_rows}x{b_bytes}"));
        }
        let mut result = [[0; ROW_BYTES]; ROWS];
        for (m, out) in result.iter_mut().enumerate().take(rows) {
            for n in 0..columns / 4 {
                let mut sums = [0; 2];
                for k in 0..b_rows {
                    let (a, b) = (self.element(a, m, k), self.element(b, k, n));
                    sums[0] = float::flushed_fma(a << 16, b << 16, sums[0]);
                    sums[1] = float::flushed_fma(a & 0xffff_0000, b & 0xffff_0000, sums[1]);
                }
                let sum = float::flushed_add(self.element(c, m, n), float::flushed_add(sums[0], sums[1]));
                out[4 * n..][..4].copy_from_slice(&sum.to_le_bytes());
            }
        }
        self.data[c] = result;
        Ok(())
    }
}

impl Machine {
    fn configured(&mut self) -> Result<&mut Tiles, Fault> {
        self.tiles.as_mut().ok_or_else(|| "tiles are not configured".to_owned())
    }

    /// A tile's number and shape.
    fn tile(&mut self, register: Register) -> Result<(usize, (usize, usize)), Fault> {
        let shape = self.configured()?.shapes[register.number()];
        if shape.0 == 0 {
            Err("the tile is not configured".to_owned())
        } else {
            Ok((register.number(), shape))
        }
    }

    /// Addresses of a tile's rows: the index register is the distance.
    fn row_addresses(&self, i: &Instruction, rows: usize) -> Result<Vec<u64>, Fault> {
        if i.memory_index() == Register::None {
            return Err("a tile in memory needs a stride".to_owned());
        }
        let stride = self.general(i.memory_index()).wrapping_mul(u64::from(i.memory_index_scale()));
        // The operand's address counts the index once.
        let start = self.address(i)?.wrapping_sub(stride);
        Ok((0..rows as u64).map(|row| start.wrapping_add(row.wrapping_mul(stride))).collect())
    }

    /// Executes it if it is one of these.
    pub fn tile_instruction(&mut self, i: &Instruction) -> Result<bool, Fault> {
        match i.mnemonic() {
            Mnemonic::Ldtilecfg => {
                let address = self.address(i)?;
                self.tiles = Some(Tiles::new(self.memory.load(address, 64)?)?);
            }
            Mnemonic::Tilerelease => self.tiles = None,
            Mnemonic::Tilezero => {
                let (tile, _) = self.tile(i.op0_register())?;
                self.configured()?.data[tile] = [[0; ROW_BYTES]; ROWS];
            }
            Mnemonic::Tileloadd => {
                let (tile, (rows, bytes)) = self.tile(i.op0_register())?;
                let mut data = [[0; ROW_BYTES]; ROWS];
                for (row, address) in data.iter_mut().zip(self.row_addresses(i, rows)?) {
                    row[..bytes].copy_from_slice(self.memory.load(address, bytes)?);
                }
                self.configured()?.data[tile] = data;
            }
            Mnemonic::Tilestored => {
                let (tile, (rows, bytes)) = self.tile(i.op1_register())?;
                let data = self.configured()?.data[tile];
                for (row, address) in data.iter().zip(self.row_addresses(i, rows)?) {
                    self.memory.store(address, &row[..bytes])?;
                }
            }
            Mnemonic::Tdpbf16ps => {
                let operands = [i.op0_register(), i.op1_register(), i.op2_register()];
                let mut tiles = [0; 3];
                for (tile, register) in tiles.iter_mut().zip(operands) {
                    *tile = self.tile(register)?.0;
                }
                self.configured()?.dot_bf16(tiles)?;
            }
            _ => return Ok(false),
        }
        Ok(true)
    }
}
