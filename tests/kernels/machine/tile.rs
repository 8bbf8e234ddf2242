//! Instructions on AMX tiles, by their description in Intel's manual.

use super::tiles::{ROW_BYTES, ROWS, Tiles};
use super::{Fault, Machine};
use iced_x86::{Instruction, Mnemonic, Register};

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
            Mnemonic::Tdpbf16ps | Mnemonic::Tdpbssd => {
                let operands = [i.op0_register(), i.op1_register(), i.op2_register()];
                let mut tiles = [0; 3];
                for (tile, register) in tiles.iter_mut().zip(operands) {
                    *tile = self.tile(register)?.0;
                }
                let tiles_there = self.configured()?;
                match i.mnemonic() {
                    Mnemonic::Tdpbssd => tiles_there.dot_bytes(tiles)?,
                    _ => tiles_there.dot_bf16(tiles)?,
                }
            }
            _ => return Ok(false),
        }
        Ok(true)
    }
}
