//! A thin layer over Cranelift's function builder: loops, vectors of four lanes, addresses.
//!
//! Everything is 128 bits wide, the widest Cranelift's x64 backend has. Pointers are `i64`.

use cranelift_codegen::ir::condcodes::{FloatCC, IntCC};
use cranelift_codegen::ir::types::{F32, F32X4, I8X16, I16X8, I32, I32X4, I64};
use cranelift_codegen::ir::{Block, BlockArg, ConstantData, FuncRef, InstBuilder, MemFlagsData, Type, Value};
use cranelift_frontend::FunctionBuilder;

/// Lanes of the vectors emitted here.
pub const LANES: usize = 4;

/// Accesses that do not trap: the plan's checks bound every address. No alignment is promised.
pub const MEM: MemFlagsData = MemFlagsData::new().with_notrap();

/// Emits one function.
pub struct Emit<'a, 'b> {
    /// The underlying builder.
    pub b: &'a mut FunctionBuilder<'b>,
}

impl Emit<'_, '_> {
    // ---- integers and addresses

    pub fn i64(&mut self, value: i64) -> Value {
        self.b.ins().iconst(I64, value)
    }

    pub fn i32(&mut self, value: i32) -> Value {
        self.b.ins().iconst(I32, i64::from(value as u32))
    }

    pub fn add(&mut self, a: Value, b: Value) -> Value {
        self.b.ins().iadd(a, b)
    }

    pub fn add_imm(&mut self, a: Value, imm: i64) -> Value {
        if imm == 0 { a } else { self.b.ins().iadd_imm_s(a, imm) }
    }

    pub fn mul_imm(&mut self, a: Value, imm: i64) -> Value {
        if imm > 0 && imm.count_ones() == 1 {
            self.b.ins().ishl_imm_u(a, i64::from(imm.trailing_zeros()))
        } else {
            self.b.ins().imul_imm_s(a, imm)
        }
    }

    /// `base + index * stride`.
    pub fn at(&mut self, base: Value, index: Value, stride: usize) -> Value {
        let offset = self.mul_imm(index, stride as i64);
        self.add(base, offset)
    }

    pub fn load(&mut self, ty: Type, ptr: Value, offset: usize) -> Value {
        self.b.ins().load(ty, MEM, ptr, offset as i32)
    }

    /// Loads a u32, zero-extended to 64 bits.
    pub fn load_u32(&mut self, ptr: Value, offset: usize) -> Value {
        self.b.ins().uload32(MEM, ptr, offset as i32)
    }

    pub fn store(&mut self, value: Value, ptr: Value, offset: usize) {
        self.b.ins().store(MEM, value, ptr, offset as i32);
    }

    pub fn min_u(&mut self, a: Value, b: Value) -> Value {
        self.b.ins().umin(a, b)
    }

    pub fn call(&mut self, function: FuncRef, args: &[Value]) {
        self.b.ins().call(function, args);
    }

    // ---- control flow

    /// `for i in (start..end).step_by(step)` over signed 64-bit values, with values carried from one turn to
    /// the next.
    pub fn for_carry(
        &mut self,
        start: Value,
        end: Value,
        step: i64,
        init: &[Value],
        body: impl FnOnce(&mut Self, Value, &[Value]) -> Vec<Value>,
    ) -> Vec<Value> {
        let (header, inside, exit) = (self.b.create_block(), self.b.create_block(), self.b.create_block());
        let index = self.b.append_block_param(header, I64);
        let carried: Vec<Value> = init
            .iter()
            .map(|value| {
                let ty = self.b.func.dfg.value_type(*value);
                self.b.append_block_param(header, ty)
            })
            .collect();
        self.jump(header, &[&[start], init].concat());
        self.b.switch_to_block(header);
        let more = self.b.ins().icmp(IntCC::SignedLessThan, index, end);
        self.b.ins().brif(more, inside, &[], exit, &[]);
        self.b.switch_to_block(inside);
        self.b.seal_block(inside);
        let next = body(self, index, &carried);
        let stepped = self.add_imm(index, step);
        self.jump(header, &[vec![stepped], next].concat());
        self.b.seal_block(header);
        self.b.switch_to_block(exit);
        self.b.seal_block(exit);
        carried
    }

    /// `for i in (start..end).step_by(step)`.
    pub fn for_range(&mut self, start: Value, end: Value, step: i64, body: impl FnOnce(&mut Self, Value)) {
        self.for_carry(start, end, step, &[], |e, i, _| {
            body(e, i);
            Vec::new()
        });
    }

    /// `while i < end`, i from `start` on; `body` gives the next i.
    pub fn for_next(&mut self, start: Value, end: Value, body: impl FnOnce(&mut Self, Value) -> Value) {
        let (header, inside, exit) = (self.b.create_block(), self.b.create_block(), self.b.create_block());
        let index = self.b.append_block_param(header, I64);
        self.jump(header, &[start]);
        self.b.switch_to_block(header);
        let more = self.b.ins().icmp(IntCC::SignedLessThan, index, end);
        self.b.ins().brif(more, inside, &[], exit, &[]);
        self.b.switch_to_block(inside);
        self.b.seal_block(inside);
        let next = body(self, index);
        self.jump(header, &[next]);
        self.b.seal_block(header);
        self.b.switch_to_block(exit);
        self.b.seal_block(exit);
    }

    /// `if x != 0 { then }`.
    pub fn if_nonzero(&mut self, x: Value, then: impl FnOnce(&mut Self)) {
        let zero = self.i64(0);
        let is = self.icmp(IntCC::NotEqual, x, zero);
        self.if_then(is, then);
    }

    /// `for i in 0..count`, `count` known now.
    pub fn for_count(&mut self, count: usize, body: impl FnOnce(&mut Self, Value)) {
        let (zero, end) = (self.i64(0), self.i64(count as i64));
        self.for_range(zero, end, 1, body);
    }

    /// `if condition { then }`.
    pub fn if_then(&mut self, condition: Value, then: impl FnOnce(&mut Self)) {
        let (inside, after) = (self.b.create_block(), self.b.create_block());
        self.b.ins().brif(condition, inside, &[], after, &[]);
        self.b.switch_to_block(inside);
        self.b.seal_block(inside);
        then(self);
        self.jump(after, &[]);
        self.b.switch_to_block(after);
        self.b.seal_block(after);
    }

    /// `if condition { then } else { otherwise }`.
    pub fn if_else(
        &mut self,
        condition: Value,
        then: impl FnOnce(&mut Self),
        otherwise: impl FnOnce(&mut Self),
    ) {
        let (inside, outside, after) = (self.b.create_block(), self.b.create_block(), self.b.create_block());
        self.b.ins().brif(condition, inside, &[], outside, &[]);
        self.b.switch_to_block(inside);
        self.b.seal_block(inside);
        then(self);
        self.jump(after, &[]);
        self.b.switch_to_block(outside);
        self.b.seal_block(outside);
        otherwise(self);
        self.jump(after, &[]);
        self.b.switch_to_block(after);
        self.b.seal_block(after);
    }

    pub fn jump(&mut self, block: Block, args: &[Value]) {
        let args: Vec<BlockArg> = args.iter().map(|value| BlockArg::Value(*value)).collect();
        self.b.ins().jump(block, &args);
    }

    pub fn icmp(&mut self, cc: IntCC, a: Value, b: Value) -> Value {
        self.b.ins().icmp(cc, a, b)
    }

    pub fn select(&mut self, condition: Value, a: Value, b: Value) -> Value {
        self.b.ins().select(condition, a, b)
    }

    // ---- vectors

    /// A 16-byte constant.
    pub fn bytes(&mut self, bytes: [u8; 16]) -> Value {
        let constant = self.b.func.dfg.constants.insert(ConstantData::from(&bytes[..]));
        self.b.ins().vconst(I8X16, constant)
    }

    pub fn cast(&mut self, ty: Type, value: Value) -> Value {
        if self.b.func.dfg.value_type(value) == ty {
            return value;
        }
        let little = MemFlagsData::new().with_endianness(cranelift_codegen::ir::Endianness::Little);
        self.b.ins().bitcast(ty, little, value)
    }

    pub fn splat_f32(&mut self, value: f32) -> Value {
        self.splat_bits(F32X4, value.to_bits())
    }

    pub fn splat_i32(&mut self, value: i32) -> Value {
        self.splat_bits(I32X4, value as u32)
    }

    fn splat_bits(&mut self, ty: Type, bits: u32) -> Value {
        let mut bytes = [0; 16];
        bytes.chunks_exact_mut(4).for_each(|lane| lane.copy_from_slice(&bits.to_le_bytes()));
        let constant = self.b.func.dfg.constants.insert(ConstantData::from(&bytes[..]));
        self.b.ins().vconst(ty, constant)
    }

    /// Four copies of a scalar (`F32` or `I32`).
    pub fn splat(&mut self, value: Value) -> Value {
        let ty = if self.b.func.dfg.value_type(value) == F32 { F32X4 } else { I32X4 };
        self.b.ins().splat(ty, value)
    }

    /// Four copies of the f32 at `ptr + offset`.
    pub fn load_splat(&mut self, ptr: Value, offset: usize) -> Value {
        let scalar = self.load(F32, ptr, offset);
        self.splat(scalar)
    }

    pub fn fadd(&mut self, a: Value, b: Value) -> Value {
        self.b.ins().fadd(a, b)
    }

    pub fn fsub(&mut self, a: Value, b: Value) -> Value {
        self.b.ins().fsub(a, b)
    }

    pub fn fmul(&mut self, a: Value, b: Value) -> Value {
        self.b.ins().fmul(a, b)
    }

    pub fn fdiv(&mut self, a: Value, b: Value) -> Value {
        self.b.ins().fdiv(a, b)
    }

    /// `a * b + c`, rounded once.
    pub fn fma(&mut self, a: Value, b: Value, c: Value) -> Value {
        self.b.ins().fma(a, b, c)
    }

    /// `a < b ? a : b` per lane: `minps`.
    pub fn fmin(&mut self, a: Value, b: Value) -> Value {
        self.lane_select(FloatCC::LessThan, a, b, a, b)
    }

    /// `a > b ? a : b` per lane: `maxps`.
    pub fn fmax(&mut self, a: Value, b: Value) -> Value {
        self.lane_select(FloatCC::LessThan, b, a, a, b)
    }

    /// `x cc y ? a : b` per f32 lane.
    pub fn lane_select(&mut self, cc: FloatCC, x: Value, y: Value, a: Value, b: Value) -> Value {
        let mask = self.b.ins().fcmp(cc, x, y);
        let ty = self.b.func.dfg.value_type(a);
        let mask = self.cast(ty, mask);
        self.b.ins().bitselect(mask, a, b)
    }

    /// Lanes 2, 3, 0, 1.
    pub fn swap_halves(&mut self, v: Value) -> Value {
        self.shuffle_words(v, [2, 3, 0, 1])
    }

    /// Lanes 1, 0, 3, 2.
    pub fn swap_pairs(&mut self, v: Value) -> Value {
        self.shuffle_words(v, [1, 0, 3, 2])
    }

    /// Lanes in that order.
    pub fn shuffle_words(&mut self, v: Value, order: [u8; 4]) -> Value {
        let ty = self.b.func.dfg.value_type(v);
        let mut mask = [0u8; 16];
        for (i, byte) in mask.iter_mut().enumerate() {
            *byte = order[i / 4] * 4 + (i % 4) as u8;
        }
        let mask = self.b.func.dfg.immediates.push(ConstantData::from(&mask[..]));
        let bytes = self.cast(I8X16, v);
        let out = self.b.ins().shuffle(bytes, bytes, mask);
        self.cast(ty, out)
    }

    /// The tree of docs/dev/numerics.md over 16 lanes held as four vectors; a scalar f32.
    pub fn lane_tree(&mut self, lanes: [Value; 4]) -> Value {
        let a = self.fadd(lanes[0], lanes[2]);
        let b = self.fadd(lanes[1], lanes[3]);
        let four = self.fadd(a, b);
        let swapped = self.swap_halves(four);
        let two = self.fadd(four, swapped);
        let l0 = self.b.ins().extractlane(two, 0);
        let l1 = self.b.ins().extractlane(two, 1);
        self.fadd(l0, l1)
    }

    /// Four f16 values in the low halves of the lanes of `h` (i32x4), as f32: exact, infinities and NaNs
    /// included.
    pub fn f16_to_f32(&mut self, h: Value) -> Value {
        let magnitude_mask = self.splat_i32(0x7fff);
        let magnitude = self.b.ins().band(h, magnitude_mask);
        let sign = self.b.ins().bxor(h, magnitude);
        let sign = self.b.ins().ishl_imm_u(sign, 16);
        let shifted = self.b.ins().ishl_imm_u(magnitude, 13);
        let as_float = self.cast(F32X4, shifted);
        // f32 and f16 exponents differ by 112; the multiplication also normalises f16's denormals.
        let rescale = self.splat_f32(f32::from_bits((127 + 112) << 23));
        let finite = self.fmul(as_float, rescale);
        let finite = self.cast(I32X4, finite);
        let infinity = self.splat_i32(0x7f80_0000);
        let special = self.b.ins().bor(shifted, infinity);
        let threshold = self.splat_i32(0x0f7f_ffff);
        let is_special = self.b.ins().icmp(IntCC::SignedGreaterThan, shifted, threshold);
        let bits = self.b.ins().bitselect(is_special, special, finite);
        let bits = self.b.ins().bor(bits, sign);
        self.cast(F32X4, bits)
    }

    /// Four f32 values to E4M3 (round to nearest even, 448 at most) in an i32x4, from -128 to 126: the codes
    /// as signed bytes.
    pub fn f32_to_fp8(&mut self, x: Value) -> Value {
        let bits = self.cast(I32X4, x);
        let magnitude = self.splat_i32(0x7fff_ffff);
        let size = self.b.ins().band(bits, magnitude);
        let size = self.cast(F32X4, size);
        let most = self.splat_f32(448.0);
        let size = self.fmin(size, most);
        let a = self.cast(I32X4, size);
        // Normal: rebias and round half to even by adding 0x7ffff and the lowest kept bit.
        let (one, half) = (self.splat_i32(1), self.splat_i32(0x7_ffff));
        let odd = self.b.ins().ushr_imm_u(a, 20);
        let odd = self.b.ins().band(odd, one);
        let normal = self.b.ins().iadd(a, half);
        let normal = self.b.ins().iadd(normal, odd);
        let normal = self.b.ins().ushr_imm_u(normal, 20);
        let bias = self.splat_i32(120 << 3);
        let normal = self.b.ins().isub(normal, bias);
        // Denormal: adding 2^14, whose last bit is worth the smallest step, rounds.
        let large = self.splat_f32(16384.0);
        let sum = self.fadd(size, large);
        let sum = self.cast(I32X4, sum);
        let large = self.splat_i32(16384f32.to_bits() as i32);
        let denormal = self.b.ins().isub(sum, large);
        let least = self.splat_i32((1f32 / 64.0).to_bits() as i32);
        let is_denormal = self.b.ins().icmp(IntCC::SignedLessThan, a, least);
        let code = self.b.ins().bitselect(is_denormal, denormal, normal);
        // The sign bit of a byte is worth -128.
        let sign = self.b.ins().sshr_imm_u(bits, 31);
        let negative = self.splat_i32(-128);
        let sign = self.b.ins().band(sign, negative);
        self.b.ins().bor(code, sign)
    }

    /// Loads four E4M3 as f32.
    pub fn load_fp8x4(&mut self, ptr: Value, offset: usize) -> Value {
        let codes = self.load_i8x4(ptr, offset);
        // f32 and E4M3 exponents differ by 120; the multiplication also normalises E4M3's denormals.
        let sizes = self.splat_i32(0x7f);
        let sizes = self.b.ins().band(codes, sizes);
        let sizes = self.b.ins().ishl_imm_u(sizes, 20);
        let sizes = self.cast(F32X4, sizes);
        let rescale = self.splat_f32(f32::from_bits((127 + 120) << 23));
        let sizes = self.fmul(sizes, rescale);
        let top = self.splat_i32(i32::MIN);
        let sign = self.b.ins().band(codes, top);
        let bits = self.cast(I32X4, sizes);
        let bits = self.b.ins().bor(bits, sign);
        self.cast(F32X4, bits)
    }

    /// Loads four signed bytes as an i32x4.
    pub fn load_i8x4(&mut self, ptr: Value, offset: usize) -> Value {
        let bytes = self.load(I32, ptr, offset);
        let bytes = self.b.ins().scalar_to_vector(I32X4, bytes);
        let bytes = self.cast(I8X16, bytes);
        let words = self.b.ins().swiden_low(bytes);
        self.b.ins().swiden_low(words)
    }

    /// Four f32 values to f16 (round to nearest even) in the low halves of an i32x4.
    pub fn f32_to_f16(&mut self, x: Value) -> Value {
        let bits = self.cast(I32X4, x);
        let magnitude_mask = self.splat_i32(0x7fff_ffff);
        let a = self.b.ins().band(bits, magnitude_mask);
        let sign = self.b.ins().ushr_imm_u(bits, 16);
        let sign_mask = self.splat_i32(0x8000);
        let sign = self.b.ins().band(sign, sign_mask);
        // Normal: rebias and round half to even by adding 0xfff and the lowest kept bit.
        let one = self.splat_i32(1);
        let odd = self.b.ins().ushr_imm_u(a, 13);
        let odd = self.b.ins().band(odd, one);
        let bias = self.splat_i32(0xC800_0FFF_u32 as i32);
        let normal = self.b.ins().iadd(a, bias);
        let normal = self.b.ins().iadd(normal, odd);
        let normal = self.b.ins().ushr_imm_u(normal, 13);
        // Denormal: adding 0.5, whose last bit is worth f16's smallest step, rounds.
        let half = self.splat_f32(0.5);
        let as_float = self.cast(F32X4, a);
        let sum = self.fadd(as_float, half);
        let sum = self.cast(I32X4, sum);
        let half_bits = self.splat_i32(0x3f00_0000);
        let denormal = self.b.ins().isub(sum, half_bits);
        let smallest_normal = self.splat_i32(0x3880_0000);
        let is_denormal = self.b.ins().icmp(IntCC::SignedLessThan, a, smallest_normal);
        let finite = self.b.ins().bitselect(is_denormal, denormal, normal);
        // Too large, infinite, NaN.
        let infinity32 = self.splat_i32(0x7f80_0000);
        let is_nan = self.b.ins().icmp(IntCC::SignedGreaterThan, a, infinity32);
        let nan = self.splat_i32(0x7e00);
        let infinity = self.splat_i32(0x7c00);
        let special = self.b.ins().bitselect(is_nan, nan, infinity);
        let largest = self.splat_i32(0x477f_ffff);
        let is_special = self.b.ins().icmp(IntCC::SignedGreaterThan, a, largest);
        let magnitude = self.b.ins().bitselect(is_special, special, finite);
        self.b.ins().bor(magnitude, sign)
    }

    /// Loads four f16 as f32x4.
    pub fn load_f16x4(&mut self, ptr: Value, offset: usize) -> Value {
        let h = self.b.ins().uload16x4(MEM, ptr, offset as i32);
        self.f16_to_f32(h)
    }

    /// Loads four bf16 as f32x4.
    pub fn load_bf16x4(&mut self, ptr: Value, offset: usize) -> Value {
        let h = self.b.ins().uload16x4(MEM, ptr, offset as i32);
        let bits = self.b.ins().ishl_imm_u(h, 16);
        self.cast(F32X4, bits)
    }

    /// Stores the low halves of the lanes of `h` (i32x4, each below 2^16) as four u16.
    pub fn store_u16x4(&mut self, h: Value, ptr: Value, offset: usize) {
        let narrow = self.b.ins().unarrow(h, h);
        let pair = self.cast(cranelift_codegen::ir::types::I64X2, narrow);
        let low = self.b.ins().extractlane(pair, 0);
        self.store(low, ptr, offset);
    }

    /// Adds to each i32 lane the dot product of its four unsigned bytes in `w` and four signed bytes in `a`.
    ///
    /// `vnni`: written as the tree that Cranelift folds to `vpdpbusd`. Otherwise by `pmaddwd` on 16-bit
    /// halves, which cannot saturate.
    pub fn dot_u8_i8(&mut self, acc: Value, w: Value, a: Value, vnni: bool) -> Value {
        let (a_lo, a_hi) = (self.b.ins().swiden_low(a), self.b.ins().swiden_high(a));
        let (w_lo, w_hi) = (self.b.ins().uwiden_low(w), self.b.ins().uwiden_high(w));
        let (lo, hi) = if vnni {
            let lo = self.b.ins().imul(a_lo, w_lo);
            let hi = self.b.ins().imul(a_hi, w_hi);
            (self.pairs(lo), self.pairs(hi))
        } else {
            (self.madd(a_lo, w_lo), self.madd(a_hi, w_hi))
        };
        let four = self.b.ins().iadd_pairwise(lo, hi);
        self.b.ins().iadd(four, acc)
    }

    /// Adds dot products as [`Self::dot_u8_i8`] does, for unsigned bytes of at most 64, whose 16-bit pair
    /// sums cannot saturate.
    pub fn dot_small_u8_i8(&mut self, acc: Value, w: Value, a: Value, vnni: bool) -> Value {
        if vnni {
            return self.dot_u8_i8(acc, w, a, true);
        }
        let pairs = self.b.ins().x86_pmaddubsw(a, w);
        let four = self.pairs(pairs);
        self.b.ins().iadd(acc, four)
    }

    /// Sums of adjacent i16 as i32.
    pub fn pairs(&mut self, v: Value) -> Value {
        let (lo, hi) = (self.b.ins().swiden_low(v), self.b.ins().swiden_high(v));
        self.b.ins().iadd_pairwise(lo, hi)
    }

    /// Sums of adjacent products of i16 as i32: `pmaddwd`.
    pub fn madd(&mut self, x: Value, y: Value) -> Value {
        debug_assert_eq!(self.b.func.dfg.value_type(x), I16X8);
        let (x_lo, y_lo) = (self.b.ins().swiden_low(x), self.b.ins().swiden_low(y));
        let (x_hi, y_hi) = (self.b.ins().swiden_high(x), self.b.ins().swiden_high(y));
        let (lo, hi) = (self.b.ins().imul(x_lo, y_lo), self.b.ins().imul(x_hi, y_hi));
        self.b.ins().iadd_pairwise(lo, hi)
    }
}
