//! Vectors of 512 bits, of 256 and of 128, and masks. What a register has above the vector is zero, as an
//! instruction leaves it there.

use super::lanes::{Vector, dot_bytes, dot_words, element, map4, two_sources, zip1, zip2, zip3, zip4};
use super::{Fault, Machine, VECTOR, float};
use iced_x86::{Instruction, Mnemonic, OpKind, Register};

/// Bytes of a register's vector.
fn bytes_of(register: Register) -> Option<usize> {
    let sizes =
        [(Register::is_zmm as fn(Register) -> bool, 64), (Register::is_ymm, 32), (Register::is_xmm, 16)];
    sizes.into_iter().find_map(|(is, bytes)| is(register).then_some(bytes))
}

/// Bytes of the instruction's vectors: of the widest, since a conversion reads half of what it writes.
fn width(i: &Instruction) -> usize {
    let registers = (0..i.op_count()).filter(|op| i.op_kind(*op) == OpKind::Register);
    registers.filter_map(|op| bytes_of(i.op_register(op))).max().unwrap_or(VECTOR)
}

impl Machine {
    pub fn vector(&self, register: Register) -> Result<Vector, Fault> {
        let bytes = bytes_of(register).ok_or("not a vector")?;
        let mut value = self.vectors[register.number()];
        value[bytes..].fill(0);
        Ok(value)
    }

    /// A source: a register, memory, or one element of memory in every lane.
    fn source(&mut self, i: &Instruction, operand: u32) -> Result<Vector, Fault> {
        if i.op_kind(operand) == OpKind::Register {
            return self.vector(i.op_register(operand));
        }
        let address = self.address(i)?;
        let bytes = if i.is_broadcast() { 4 } else { width(i) };
        self.repeated(address, bytes)
    }

    /// So many bytes of memory, repeated.
    fn repeated(&mut self, address: u64, bytes: usize) -> Result<Vector, Fault> {
        let mut out = [0; VECTOR];
        let data = self.memory.load(address, bytes)?;
        out.chunks_exact_mut(bytes).for_each(|chunk| chunk.copy_from_slice(data));
        Ok(out)
    }

    /// The low part of a source of fewer bytes.
    fn part(&mut self, i: &Instruction, operand: u32, bytes: usize) -> Result<Vec<u8>, Fault> {
        if i.op_kind(operand) == OpKind::Register {
            return Ok(self.vectors[i.op_register(operand).number()][..bytes].to_vec());
        }
        let address = self.address(i)?;
        Ok(self.memory.load(address, bytes)?.to_vec())
    }

    /// To the first operand, under its mask, by elements of `size` bytes.
    fn put(&mut self, i: &Instruction, value: Vector, size: usize) -> Result<(), Fault> {
        let Some(bytes) = bytes_of(i.op0_register()).filter(|_| i.op0_kind() == OpKind::Register) else {
            return Err("destination not modelled".to_owned());
        };
        let old = &mut self.vectors[i.op0_register().number()];
        if bytes < VECTOR {
            if i.op_mask() != Register::None {
                return Err("masks of less than 512 bits are not modelled".to_owned());
            }
            old[..bytes].copy_from_slice(&value[..bytes]);
            old[bytes..].fill(0);
            return Ok(());
        }
        if i.op_mask() == Register::None {
            *old = value;
            return Ok(());
        }
        let mask = self.masks[i.op_mask().number()];
        let elements = old.chunks_exact_mut(size).zip(value.chunks_exact(size)).enumerate();
        for (lane, (old, new)) in elements {
            if mask >> lane & 1 == 1 {
                old.copy_from_slice(new);
            } else if i.zeroing_masking() {
                old.fill(0);
            }
        }
        Ok(())
    }

    /// Executes it if it is one of these.
    pub fn vector_instruction(&mut self, i: &Instruction) -> Result<bool, Fault> {
        if i.op_mask() != Register::None && (0..i.op_count()).any(|op| i.op_kind(op) == OpKind::Memory) {
            return Err("masked memory operands are not modelled".to_owned());
        }
        if i.mnemonic() == Mnemonic::Vzeroupper {
            self.vectors[..16].iter_mut().for_each(|vector| vector[16..].fill(0));
            return Ok(true);
        }
        Ok(self.moves(i)? || self.mask_results(i)? || self.integers(i)? || self.floats(i)?)
    }

    fn moves(&mut self, i: &Instruction) -> Result<bool, Fault> {
        let aligned = matches!(
            i.mnemonic(),
            Mnemonic::Vmovaps | Mnemonic::Vmovdqa | Mnemonic::Vmovdqa32 | Mnemonic::Vmovdqa64
        );
        match i.mnemonic() {
            Mnemonic::Vmovaps
            | Mnemonic::Vmovdqa32
            | Mnemonic::Vmovdqa64
            | Mnemonic::Vmovups
            | Mnemonic::Vmovdqa
            | Mnemonic::Vmovdqu
            | Mnemonic::Vmovdqu32
            | Mnemonic::Vmovdqu64 => {
                let memory = (0..2).any(|op| i.op_kind(op) == OpKind::Memory);
                if aligned && memory && !self.address(i)?.is_multiple_of(width(i) as u64) {
                    return Err("misaligned".to_owned());
                }
                if i.op0_kind() == OpKind::Memory {
                    let (address, value) = (self.address(i)?, self.vector(i.op1_register())?);
                    self.memory.store(address, &value[..width(i)])?;
                    return Ok(true);
                }
                let value = self.source(i, 1)?;
                let size =
                    if matches!(i.mnemonic(), Mnemonic::Vmovdqa64 | Mnemonic::Vmovdqu64) { 8 } else { 4 };
                self.put(i, value, size)?;
            }
            Mnemonic::Vpbroadcastd | Mnemonic::Vbroadcastss => {
                let value = match i.op1_kind() {
                    OpKind::Register if i.op1_register().is_gpr32() => self.general(i.op1_register()) as u32,
                    _ => u32::from_le_bytes(self.part(i, 1, 4)?.try_into().expect("4 bytes")),
                };
                let all = map4(&[0; VECTOR], |_| value);
                self.put(i, all, 4)?;
            }
            Mnemonic::Vmovd if i.op1_kind() == OpKind::Register && i.op1_register().is_gpr32() => {
                let mut value = [0; VECTOR];
                value[..4].copy_from_slice(&(self.general(i.op1_register()) as u32).to_le_bytes());
                self.put(i, value, 4)?;
            }
            Mnemonic::Vmovss if i.op0_kind() == OpKind::Memory => {
                let (address, vector) = (self.address(i)?, self.vectors[i.op1_register().number()]);
                self.memory.store(address, &vector[..4])?;
            }
            Mnemonic::Vpmovdw if i.op0_kind() == OpKind::Memory && i.op1_register().is_zmm() => {
                let (address, vector) = (self.address(i)?, self.vectors[i.op1_register().number()]);
                let words: Vec<u8> = vector.chunks_exact(4).flat_map(|lane| [lane[0], lane[1]]).collect();
                self.memory.store(address, &words)?;
            }
            Mnemonic::Vbroadcasti32x4 | Mnemonic::Vbroadcasti128 => {
                let address = self.address(i)?;
                let value = self.repeated(address, 16)?;
                self.put(i, value, 4)?;
            }
            Mnemonic::Vpmovsxbw | Mnemonic::Vpmovzxbw => {
                let signed = i.mnemonic() == Mnemonic::Vpmovsxbw;
                let bytes = self.part(i, 1, width(i) / 2)?;
                let mut value = [0; VECTOR];
                for (lane, byte) in value.chunks_exact_mut(2).zip(bytes) {
                    let wide = if signed { i16::from(byte.cast_signed()) } else { i16::from(byte) };
                    lane.copy_from_slice(&wide.to_le_bytes());
                }
                self.put(i, value, 2)?;
            }
            Mnemonic::Vpmovzxbd | Mnemonic::Vpmovsxbd => {
                let bytes = self.part(i, 1, width(i) / 4)?;
                let mut value = [0; VECTOR];
                for (lane, byte) in value.chunks_exact_mut(4).zip(bytes) {
                    let wide = match i.mnemonic() {
                        Mnemonic::Vpmovzxbd => i32::from(byte),
                        _ => i32::from(byte.cast_signed()),
                    };
                    lane.copy_from_slice(&wide.to_le_bytes());
                }
                self.put(i, value, 4)?;
            }
            _ => return Ok(false),
        }
        Ok(true)
    }

    fn mask_results(&mut self, i: &Instruction) -> Result<bool, Fault> {
        let bits = match i.mnemonic() {
            Mnemonic::Vptestnmd => {
                let (a, b) = (self.source(i, 1)?, self.source(i, 2)?);
                let zero = |lane: &usize| element(&a, *lane) & element(&b, *lane) == 0;
                (0..VECTOR / 4).filter(zero).fold(0, |mask, lane| mask | 1 << lane)
            }
            Mnemonic::Vpcmpuw => {
                let (a, b) = (self.source(i, 1)?, self.source(i, 2)?);
                if i.immediate8() != 1 {
                    return Err("only less than is modelled".to_owned());
                }
                let word = |v: &Vector, lane: usize| u16::from_le_bytes([v[2 * lane], v[2 * lane + 1]]);
                let less = |lane: &usize| word(&a, *lane) < word(&b, *lane);
                (0..VECTOR / 2).filter(less).fold(0, |mask, lane| mask | 1 << lane)
            }
            Mnemonic::Vfpclassps => {
                let a = self.source(i, 1)?;
                if i.immediate8() != 0x20 {
                    return Err("only denormals are modelled".to_owned());
                }
                let denormal = |lane: &usize| f32::from_bits(element(&a, *lane)).is_subnormal();
                (0..VECTOR / 4).filter(denormal).fold(0, |mask, lane| mask | 1 << lane)
            }
            Mnemonic::Vpcmpd | Mnemonic::Vcmpps => {
                let (a, b) = (self.source(i, 1)?, self.source(i, 2)?);
                let less = |lane: usize| match i.mnemonic() {
                    Mnemonic::Vpcmpd => element(&a, lane).cast_signed() < element(&b, lane).cast_signed(),
                    _ => float::less(element(&a, lane), element(&b, lane)),
                };
                let wanted = match i.immediate8() {
                    1 => true,
                    5 => false,
                    _ => return Err("comparison not modelled".to_owned()),
                };
                (0..VECTOR / 4).filter(|lane| less(*lane) == wanted).fold(0, |mask, lane| mask | 1 << lane)
            }
            Mnemonic::Vpmovb2m => {
                let a = self.source(i, 1)?;
                (0..VECTOR).filter(|lane| a[*lane] >= 0x80).fold(0, |mask, lane| mask | 1 << lane)
            }
            _ => return Ok(false),
        };
        if i.op_mask() != Register::None {
            return Err("masked comparison not modelled".to_owned());
        }
        self.masks[i.op0_register().number()] = bits;
        Ok(true)
    }

    fn integers(&mut self, i: &Instruction) -> Result<bool, Fault> {
        let mnemonic = i.mnemonic();
        let (value, size) = match mnemonic {
            Mnemonic::Vpslld
            | Mnemonic::Vpsrld
            | Mnemonic::Vpsrad
            | Mnemonic::Vpsllw
            | Mnemonic::Vpsrlw
            | Mnemonic::Vpsraw => {
                let (a, count) = (self.source(i, 1)?, u32::from(i.immediate8()));
                match mnemonic {
                    Mnemonic::Vpslld => (map4(&a, |a| a.checked_shl(count).unwrap_or(0)), 4),
                    Mnemonic::Vpsrld => (map4(&a, |a| a.checked_shr(count).unwrap_or(0)), 4),
                    Mnemonic::Vpsllw => (zip2(&a, &a, |a, _| a.checked_shl(count).unwrap_or(0)), 2),
                    Mnemonic::Vpsrlw => (zip2(&a, &a, |a, _| a.checked_shr(count).unwrap_or(0)), 2),
                    // Signs fill all bits when the count is too large.
                    Mnemonic::Vpsrad => (map4(&a, |a| (a.cast_signed() >> count.min(31)).cast_unsigned()), 4),
                    _ => (zip2(&a, &a, |a, _| (a.cast_signed() >> count.min(15)).cast_unsigned()), 2),
                }
            }
            Mnemonic::Vpternlogd => {
                let (a, b, c) = (self.source(i, 0)?, self.source(i, 1)?, self.source(i, 2)?);
                // Bit 4a + 2b + c of the table is the result for bits a, b and c.
                let table = u32::from(i.immediate8());
                let bit = |a: u32, b: u32, c: u32, n: u32| {
                    (table >> (4 * (a >> n & 1) + 2 * (b >> n & 1) + (c >> n & 1)) & 1) << n
                };
                (zip3(&a, &b, &c, |a, b, c| (0..32).fold(0, |all, n| all | bit(a, b, c, n))), 4)
            }
            Mnemonic::Vpshufd => {
                // Within each 16 bytes.
                let (a, order) = (self.source(i, 1)?, i.immediate8());
                let from = |lane: usize| lane / 4 * 4 + usize::from(order >> (2 * (lane % 4)) & 3);
                (std::array::from_fn(|n| a[from(n / 4) * 4 + n % 4]), 4)
            }
            Mnemonic::Vshuff32x4 => {
                // Two pieces of 16 bytes from each source.
                let (a, b, order) = (self.source(i, 1)?, self.source(i, 2)?, i.immediate8());
                let piece = |n: usize| usize::from(order >> (2 * (n / 16)) & 3) * 16 + n % 16;
                (std::array::from_fn(|n| if n < 32 { a[piece(n)] } else { b[piece(n)] }), 4)
            }
            Mnemonic::Vpermps => {
                // Elements of the second by indices in the first, of which four bits count.
                let (index, table) = (self.source(i, 1)?, self.source(i, 2)?);
                (map4(&index, |index| element(&table, (index & 15) as usize)), 4)
            }
            Mnemonic::Vpabsb => {
                let a = self.source(i, 1)?;
                (zip1(&a, &a, |a, _| a.cast_signed().unsigned_abs()), 1)
            }
            Mnemonic::Vpxord
            | Mnemonic::Vpxor
            | Mnemonic::Vpand
            | Mnemonic::Vpsignb
            | Mnemonic::Vpmulld
            | Mnemonic::Vpandd
            | Mnemonic::Vpor
            | Mnemonic::Vpord
            | Mnemonic::Vpaddd
            | Mnemonic::Vpaddw
            | Mnemonic::Vpsubd
            | Mnemonic::Vpsubb
            | Mnemonic::Vpsubw
            | Mnemonic::Vpsubusw
            | Mnemonic::Vpmaxsd
            | Mnemonic::Vpmaxud
            | Mnemonic::Vpminuw
            | Mnemonic::Vpblendmb
            | Mnemonic::Vpshufb
            | Mnemonic::Vpermb
            | Mnemonic::Vpermw
            | Mnemonic::Vpsrlvd
            | Mnemonic::Vpackuswb
            | Mnemonic::Vpunpcklbw
            | Mnemonic::Vpunpckhbw
            | Mnemonic::Vpunpcklwd
            | Mnemonic::Vpunpckhwd
            | Mnemonic::Vpmaddubsw
            | Mnemonic::Vpmaddwd => {
                let (a, b) = (self.source(i, 1)?, self.source(i, 2)?);
                if mnemonic == Mnemonic::Vpblendmb {
                    let mask = self.masks[i.op_mask().number()];
                    let blended = std::array::from_fn(|n| if mask >> n & 1 == 1 { b[n] } else { a[n] });
                    self.vectors[i.op0_register().number()] = blended;
                    return Ok(true);
                }
                two_sources(mnemonic, &a, &b)
            }
            Mnemonic::Vpdpbusd => {
                let (sum, a, b) = (self.source(i, 0)?, self.source(i, 1)?, self.source(i, 2)?);
                (zip3(&sum, &a, &b, |sum, a, b| sum.wrapping_add(dot_bytes(a, b).cast_unsigned())), 4)
            }
            Mnemonic::Vpdpwssd => {
                let (sum, a, b) = (self.source(i, 0)?, self.source(i, 1)?, self.source(i, 2)?);
                (zip3(&sum, &a, &b, |sum, a, b| sum.wrapping_add(dot_words(a, b).cast_unsigned())), 4)
            }
            _ => return Ok(false),
        };
        self.put(i, value, size)?;
        Ok(true)
    }

    fn floats(&mut self, i: &Instruction) -> Result<bool, Fault> {
        let value =
            match i.mnemonic() {
                Mnemonic::Vaddps
                | Mnemonic::Vsubps
                | Mnemonic::Vmulps
                | Mnemonic::Vdivps
                | Mnemonic::Vminps
                | Mnemonic::Vmaxps => {
                    let operation = match i.mnemonic() {
                        Mnemonic::Vaddps => float::add,
                        Mnemonic::Vsubps => float::sub,
                        Mnemonic::Vmulps => float::mul,
                        Mnemonic::Vdivps => float::div,
                        Mnemonic::Vminps => float::min,
                        _ => float::max,
                    };
                    zip4(&self.source(i, 1)?, &self.source(i, 2)?, operation)
                }
                Mnemonic::Vfmadd231ps | Mnemonic::Vfmadd213ps => {
                    let (first, second, third) = (self.source(i, 0)?, self.source(i, 1)?, self.source(i, 2)?);
                    let order = i.mnemonic() == Mnemonic::Vfmadd231ps;
                    zip3(&first, &second, &third, |x, y, z| {
                        if order { float::fma(y, z, x) } else { float::fma(y, x, z) }
                    })
                }
                Mnemonic::Vcvtdq2ps => map4(&self.source(i, 1)?, float::from_i32),
                Mnemonic::Vcvtps2dq => map4(&self.source(i, 1)?, float::to_i32),
                Mnemonic::Vcvtph2ps => {
                    let halves = self.part(i, 1, width(i) / 2)?;
                    let mut value = [0; VECTOR];
                    for (lane, half) in value.chunks_exact_mut(4).zip(halves.chunks_exact(2)) {
                        let bits = u16::from_le_bytes([half[0], half[1]]);
                        lane.copy_from_slice(&float::from_f16(bits).to_le_bytes());
                    }
                    value
                }
                _ => return Ok(false),
            };
        self.put(i, value, 4)?;
        Ok(true)
    }
}
