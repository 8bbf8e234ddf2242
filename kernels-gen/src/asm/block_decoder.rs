//! How assembled code makes unsigned bytes, scales and minima of a block's packed bytes: the one place of
//! each part of [`BlockParts`] in instructions, for vectors of either width.

use super::regs::Regs;
use super::vector::{Address, Lanes, Vector, VectorOperand, Vectors, Width};
use crate::ukernel::block::part_factors;
use iced_x86::IcedError;
use iced_x86::code_asm::{AsmRegister64, CodeAssembler};
use kernmill_plan::format::{BLOCK, BlockParts, CodeMap, LINE, Minimum, Scale, TILE_ROWS, WeightFormat};

/// Constants behind the code, in order; see [`BlockDecoder::constant`].
#[derive(Clone, Copy, PartialEq)]
enum Constant {
    /// Mask of the lower bits of codes.
    LowMask,
    /// Mask of the upper bits.
    HighMask,
    /// The bits of 2^-127, the smallest scale of E8M0.
    Smallest,
    /// A factor of scales without units.
    Factor,
    /// Four bits of a double word.
    Nibble,
    /// The sign of an f32.
    Sign,
    /// The signs of four bytes.
    Signs,
    /// Two int16 ones.
    Ones,
    /// Factor of a part's sum of activations: the integers' bias, negated.
    Bias(usize),
    /// Factor of a part's sum of activations: 1.
    Sum(usize),
}

/// Constants before the table.
const CONSTANTS: [Constant; 12] = [
    Constant::LowMask,
    Constant::HighMask,
    Constant::Smallest,
    Constant::Factor,
    Constant::Nibble,
    Constant::Sign,
    Constant::Signs,
    Constant::Ones,
    Constant::Bias(0),
    Constant::Bias(1),
    Constant::Sum(0),
    Constant::Sum(1),
];

/// Where the scales of a block are, and their units.
#[derive(Clone, Copy)]
pub struct ScaleAddress {
    pub scales: Address,
    pub units: Address,
}

/// Decodes blocks of a format.
pub struct BlockDecoder {
    format: WeightFormat,
    parts: &'static BlockParts,
    width: Width,
    /// Where the constants are.
    base: AsmRegister64,
    /// Constants that registers hold: every operand from memory costs 512-bit code one of two loads a cycle.
    kept: Vec<(Constant, Vector)>,
    /// The integers of codes with the bias added.
    table: Option<Vector>,
    /// For upper bits, and units.
    work: Option<Vector>,
    /// Whether codes are looked up with what is above them: `vpermb` minds only six bits of an index, and the
    /// table repeats every 16 bytes.
    whole: bool,
    /// Whether bytes are the integers themselves.
    integers: bool,
}

impl BlockDecoder {
    /// A decoder of a format with blocks; `vbmi` allows `vpermb`. `base` is to point to the constants.
    pub fn new(
        regs: &mut Regs,
        format: WeightFormat,
        width: Width,
        base: AsmRegister64,
        vbmi: bool,
    ) -> BlockDecoder {
        let parts = format.parts();
        let work = (parts.codes.high > 0 || parts.is_super() || parts.minimum == Minimum::Zero)
            .then(|| regs.numbered(width));
        let scale: &[Constant] = match (parts.scale, parts.minimum) {
            (Scale::E8M0, _) => &[Constant::Smallest, Constant::Factor],
            (Scale::E4M3, _) => &[Constant::Factor],
            (_, Minimum::SuperNibbles) => &[Constant::Nibble, Constant::Sign],
            (_, Minimum::Super | Minimum::Zero) => &[Constant::Sign],
            (Scale::F16 | Scale::Super { .. }, Minimum::None | Minimum::F16) => &[],
        };
        let high: &[Constant] = if parts.codes.high > 0 { &[Constant::HighMask] } else { &[] };
        let mut decoder = BlockDecoder::sharing(regs, format, width, base, work);
        if width == Width::Full {
            decoder
                .kept
                .extend([scale, high].concat().iter().map(|constant| (*constant, regs.numbered(width))));
        }
        decoder.whole = vbmi && decoder.table.is_some() && parts.codes.low == 4;
        decoder
    }

    /// The decoder that gives integers, of formats whose bias is 128.
    pub fn of_integers(mut self, regs: &mut Regs) -> BlockDecoder {
        if self.parts.codes.low == 8 {
            self.kept.push((Constant::Signs, regs.numbered(self.width)));
        }
        BlockDecoder { integers: true, ..self }
    }

    /// A decoder that takes few registers. The working one may be any that is free whenever it decodes.
    pub fn sharing(
        regs: &mut Regs,
        format: WeightFormat,
        width: Width,
        base: AsmRegister64,
        work: Option<Vector>,
    ) -> BlockDecoder {
        let parts = format.parts();
        let mut take = |is: bool| is.then(|| regs.numbered(width));
        let low_mask = take(parts.codes.low < 8 && width == Width::Full);
        BlockDecoder {
            format,
            parts,
            width,
            base,
            kept: low_mask.map(|register| (Constant::LowMask, register)).into_iter().collect(),
            table: take(matches!(parts.map, CodeMap::Table { .. })),
            work,
            whole: false,
            integers: false,
        }
    }

    /// Vectors of four columns that a line of lower bits has.
    pub fn chunks(&self) -> usize {
        8 / self.parts.codes.low
    }

    /// The lines of lower bits that part `part` of a block has.
    pub fn lines(&self, part: usize) -> std::ops::Range<usize> {
        let lines = self.parts.codes.low / self.parts.parts();
        part * lines..(part + 1) * lines
    }

    /// A constant in its register, or where it lies.
    fn constant(&self, constant: Constant) -> VectorOperand {
        match self.kept.iter().find(|(kept, _)| *kept == constant) {
            Some((_, register)) => VectorOperand::Register(*register),
            None => self.stored(constant),
        }
    }

    /// Where a constant lies.
    fn stored(&self, constant: Constant) -> VectorOperand {
        let index = CONSTANTS.iter().position(|known| *known == constant).expect("all are listed");
        VectorOperand::Constant(self.at(index * self.width.constant_bytes()))
    }

    fn at(&self, offset: usize) -> Address {
        Address { base: self.base, index: None, offset }
    }

    /// The factors of the sums of a block's halves, as int16, that make part `part`'s sum of activations, for
    /// `vpmaddwd`: times the bias, negated.
    pub fn bias_factors(&self, part: usize) -> VectorOperand {
        self.constant(Constant::Bias(part))
    }

    /// Int16 ones.
    pub fn ones(&self) -> VectorOperand {
        self.constant(Constant::Ones)
    }

    /// The factors that make part `part`'s sum of activations, as those of the bias do.
    pub fn sum_factors(&self, part: usize) -> VectorOperand {
        self.constant(Constant::Sum(part))
    }

    /// Loads what it keeps in registers.
    pub fn prepare(&self, a: &mut CodeAssembler) -> Result<(), IcedError> {
        let v = &mut Vectors { a, width: self.width };
        for (constant, register) in &self.kept {
            v.load(*register, self.stored(*constant))?;
        }
        if let Some(table) = self.table {
            let place = self.at(CONSTANTS.len() * self.width.constant_bytes());
            v.load(table, VectorOperand::Memory(place))?;
        }
        Ok(())
    }

    /// Puts the constants here.
    pub fn emit_constants(&self, a: &mut CodeAssembler) -> Result<(), IcedError> {
        let (parts, codes) = (self.parts, self.parts.codes);
        let bytes = |byte: usize| u32::from_le_bytes([byte as u8; 4]);
        for constant in CONSTANTS {
            let value = match constant {
                Constant::LowMask => bytes(0xff >> (8 - codes.low)),
                Constant::HighMask => bytes(((1 << codes.high) - 1) << codes.low),
                Constant::Smallest => 0x0040_0000,
                Constant::Factor => if parts.scale == Scale::E4M3 { 128.0f32 } else { 0.5 }.to_bits(),
                Constant::Nibble => 15,
                Constant::Sign => 0x8000_0000,
                Constant::Signs => 0x8080_8080,
                Constant::Ones => 0x0001_0001,
                Constant::Bias(part) => part_factors(self.format, part, -parts.bias()),
                Constant::Sum(part) => part_factors(self.format, part, 1),
            };
            a.dd(&vec![value; self.width.constant_bytes() / 4])?;
        }
        match parts.map {
            CodeMap::Linear { .. } => Ok(()),
            CodeMap::Table { values, bias } => {
                let bias = if self.integers { 0 } else { bias };
                let table = values.map(|value| value.cast_unsigned().wrapping_add(bias));
                a.db(&table.repeat(self.width.lanes() / 4))
            }
        }
    }

    /// Unsigned bytes of the chunks that line `line` of a block's lower bits has, [`BlockDecoder::chunks`] of
    /// them. `data` is the block's place, for 256-bit vectors that of the half of its rows.
    pub fn weights(
        &self,
        a: &mut CodeAssembler,
        to: &[Vector],
        data: Address,
        line: usize,
    ) -> Result<(), IcedError> {
        let v = &mut Vectors { a, width: self.width };
        let codes = self.parts.codes;
        let at = |line: usize| VectorOperand::Memory(Address { offset: data.offset + line * LINE, ..data });
        v.load(to[0], at(line))?;
        for (i, higher) in to.iter().enumerate().skip(1) {
            v.shift_words(*higher, VectorOperand::Register(to[0]), (codes.low * i) as i32)?;
        }
        if let (true, Some(table)) = (self.whole, self.table) {
            return to.iter().try_for_each(|to| v.look_up_any(*to, table, *to));
        }
        if codes.low < 8 {
            to.iter().try_for_each(|to| v.lanes(Lanes::And, *to, *to, self.constant(Constant::LowMask)))?;
        }
        for (i, to) in to.iter().enumerate() {
            self.add_high(v, *to, data, line * self.chunks() + i)?;
        }
        match self.table {
            Some(table) => to.iter().try_for_each(|to| v.look_up(*to, table, *to)),
            None => Ok(()),
        }
    }

    /// Bytes of one chunk: unsigned ones, or integers where `integers` says so, whose bias is 128 if they are
    /// codes.
    pub fn chunk(
        &self,
        a: &mut CodeAssembler,
        to: Vector,
        data: Address,
        chunk: usize,
    ) -> Result<(), IcedError> {
        let v = &mut Vectors { a, width: self.width };
        let low = self.parts.codes.low;
        let source =
            VectorOperand::Memory(Address { offset: data.offset + chunk / self.chunks() * LINE, ..data });
        if low == 8 {
            return match self.constant(Constant::Signs) {
                VectorOperand::Register(signs) => v.lanes(Lanes::Xor, to, signs, source),
                _ => v.load(to, source),
            };
        }
        match chunk % self.chunks() {
            0 => v.load(to, source)?,
            place => v.shift_words(to, source, (low * place) as i32)?,
        }
        v.lanes(Lanes::And, to, to, self.constant(Constant::LowMask))?;
        self.add_high(v, to, data, chunk)?;
        match self.table {
            Some(table) => v.look_up(to, table, to),
            None => Ok(()),
        }
    }

    /// Adds the upper bits of a chunk to the lower ones.
    fn add_high(
        &self,
        v: &mut Vectors<'_>,
        to: Vector,
        data: Address,
        chunk: usize,
    ) -> Result<(), IcedError> {
        let codes = self.parts.codes;
        let (Some(work), true) = (self.work, codes.high > 0) else { return Ok(()) };
        let per_line = 8 / codes.high;
        let offset = data.offset + (codes.low + chunk / per_line) * LINE;
        let source = VectorOperand::Memory(Address { offset, ..data });
        match (codes.high * (chunk % per_line)) as i32 - codes.low as i32 {
            0 => v.load(work, source)?,
            down => v.shift_words(work, source, down)?,
        }
        v.merge(to, work, self.constant(Constant::HighMask))
    }

    /// A place `bytes` behind, of rows from the `half`-th eight on, where each has so many bytes.
    fn of_half(place: Address, bytes: usize, half: usize, row_bytes: usize) -> Address {
        Address { offset: place.offset + bytes + half * 8 * row_bytes, ..place }
    }

    /// The scales of part `part` of a block as f32, for 256-bit vectors of the half `half` of the rows.
    pub fn scales(
        &self,
        a: &mut CodeAssembler,
        to: Vector,
        places: ScaleAddress,
        part: usize,
        half: usize,
    ) -> Result<(), IcedError> {
        let v = &mut Vectors { a, width: self.width };
        let bytes = Self::of_half(places.scales, part * TILE_ROWS, half, 1);
        match self.parts.scale {
            Scale::F16 => v.load_f16(to, Self::of_half(places.scales, 0, half, 2)),
            Scale::E8M0 => {
                v.load_bytes(to, bytes)?;
                v.shift_left(to, to, 23)?;
                // A scale byte of 0 stands for 2^-127, whose bits are below those of every other.
                v.largest(to, to, self.constant(Constant::Smallest))?;
                v.lanes(Lanes::Mul, to, to, self.constant(Constant::Factor))
            }
            Scale::E4M3 => {
                v.load_e4m3(to, bytes)?;
                v.lanes(Lanes::Mul, to, to, self.constant(Constant::Factor))
            }
            Scale::Super { signed, .. } => {
                match signed {
                    true => v.load_signed_bytes(to, bytes)?,
                    false => v.load_bytes(to, bytes)?,
                }
                if self.parts.minimum == Minimum::SuperNibbles {
                    v.lanes(Lanes::And, to, to, self.constant(Constant::Nibble))?;
                }
                self.times_unit(v, to, Self::of_half(places.units, 0, half, 2))
            }
        }
    }

    /// The minima of part `part` of a block, as [`BlockDecoder::scales`] gives scales.
    pub fn minima(
        &self,
        a: &mut CodeAssembler,
        to: Vector,
        places: ScaleAddress,
        part: usize,
        half: usize,
    ) -> Result<(), IcedError> {
        let v = &mut Vectors { a, width: self.width };
        let first = self.parts.minima();
        match self.parts.minimum {
            Minimum::None => return Ok(()),
            Minimum::F16 => return v.load_f16(to, Self::of_half(places.scales, first, half, 2)),
            Minimum::Zero | Minimum::Super => {
                v.load_bytes(to, Self::of_half(places.scales, first + part * TILE_ROWS, half, 1))?;
            }
            Minimum::SuperNibbles => {
                v.load_bytes(to, Self::of_half(places.scales, part * TILE_ROWS, half, 1))?;
                v.shift_right(to, to, 4)?;
            }
        }
        let unit = match self.parts.minimum {
            Minimum::Zero => Self::of_half(places.scales, 0, half, 2),
            _ => Self::of_half(places.units, 2 * TILE_ROWS, half, 2),
        };
        self.times_unit(v, to, unit)?;
        v.lanes(Lanes::Xor, to, to, self.constant(Constant::Sign))
    }

    /// int32 as f32 times the unit.
    fn times_unit(&self, v: &mut Vectors<'_>, to: Vector, unit: Address) -> Result<(), IcedError> {
        let work = self.work.expect("formats with units or zeros have it");
        v.convert_to_f32(to, to)?;
        v.load_f16(work, unit)?;
        v.lanes(Lanes::Mul, to, to, VectorOperand::Register(work))
    }
}

/// Puts the unit of the block that `block`, four times its number, is in `to`, as an offset from the first.
pub fn unit_offset(
    a: &mut CodeAssembler,
    format: WeightFormat,
    to: AsmRegister64,
    block: AsmRegister64,
) -> Result<(), IcedError> {
    let parts = format.parts();
    // Eight blocks have a unit of 64 bytes, or of 32.
    a.mov(to, block)?;
    a.and(to, -((parts.columns() / BLOCK * 4) as i32))?;
    if parts.unit_bytes() > 2 * TILE_ROWS { a.add(to, to) } else { Ok(()) }
}
