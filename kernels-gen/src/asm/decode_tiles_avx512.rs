//! `DecodeTiles` in 512 bits. Needs AVX-512. Clobbers: caller-saved registers and flags.

use super::AsmKernel;
use super::block_decoder::{BlockDecoder, ScaleAddress};
use super::decoder::{first_block, next_block_ahead};
use super::gemm_bf16_avx512::{BF16_TABLE, pairs_of_words};
use super::regs::{PARAMS, Regs, SCRATCH, ZMM, constants_here};
use super::vector::{Address, Width};
use crate::ukernel::MicroKernel;
use crate::ukernel::block::data_lines;
use crate::ukernel::gemm_tiles::{LEAST_SCALE, TileElement};
use iced_x86::IcedError;
use iced_x86::code_asm::{CodeAssembler, byte_ptr, dword_ptr, eax, qword_ptr, xmmword_ptr, zmmword_ptr};
use kernmill_plan::format::{LINE, MAX_E8M0, WeightFormat};
use kernmill_plan::target::Features;

/// Decoding.
pub const DECODE: AsmKernel = AsmKernel {
    name: "decode_tiles_avx512",
    needs: Features::AVX512,
    unless: Features::NONE,
    serves: |ukernel| matches!(ukernel, MicroKernel::DecodeTiles { format } if TileElement::serves(format)),
    assemble: |a, ukernel| match ukernel {
        MicroKernel::DecodeTiles { format } => match TileElement::of(format) {
            TileElement::Bf16 => decode_powers(a),
            TileElement::I8 => decode_bytes(a, format),
        },
        _ => Ok(()),
    },
};

/// The scale byte whose values the table of [`decode_powers`] has: the largest that leaves all of them
/// finite. Those of other scales have a smaller exponent.
const TABLE_SCALE: u16 = 252;
/// The scale byte of 1.
const SCALE_OF_ONE: u16 = 127;
/// Places of a bf16's exponent, and of a f32's.
const EXPONENT_AT: u32 = 7;
const EXPONENT_AT_F32: u32 = 23;

// Every scale that is packed is below that of the table.
const _: () = assert!(MAX_E8M0 as u16 <= TABLE_SCALE);

/// MXFP4 as bf16, values times their power of two. A subtraction from the exponent does it, which stops at
/// zero: a value of zero stays one.
fn decode_powers(a: &mut CodeAssembler) -> Result<(), IcedError> {
    let element = TileElement::Bf16;
    let mut regs = Regs::with_params(5);
    let [scales, data, out, _, ahead, ..] = PARAMS;
    let [table, first, second, least, one, top] = [(); 6].map(|()| regs.vector());
    let [scale, used, less, bytes, low, high] = [(); 6].map(|()| regs.vector());
    let mut constants = a.create_label();
    regs.save(a)?;
    a.lea(SCRATCH, qword_ptr(constants))?;
    a.vmovdqu64(table, zmmword_ptr(SCRATCH))?;
    a.vmovdqu64(first, zmmword_ptr(SCRATCH + LINE))?;
    a.vmovdqu64(second, zmmword_ptr(SCRATCH + 2 * LINE))?;
    for (i, constant) in [least, one, top].into_iter().enumerate() {
        a.vpbroadcastd(constant, dword_ptr(SCRATCH + (3 * LINE + 4 * i)))?;
    }
    let labels = first_block(a)?;
    let lines = data_lines(WeightFormat::Mxfp4);
    for line in 0..lines {
        a.prefetcht1(byte_ptr(ahead + line * LINE))?;
    }
    a.vpmovzxbd(scale, xmmword_ptr(scales))?;
    a.vpmaxud(used, scale, least)?;
    // The difference of a row's exponents to the largest, in both words.
    a.vpsubd(less, top, used)?;
    a.vpslld(less, less, EXPONENT_AT)?;
    a.vpslld(low, less, 16)?;
    a.vpord(less, less, low)?;
    // 2^(scale - used).
    a.vpsubd(scale, scale, used)?;
    a.vpaddd(scale, scale, one)?;
    a.vpslld(scale, scale, EXPONENT_AT_F32)?;
    a.vmovdqu64(zmmword_ptr(out + element.decoded_factors()), scale)?;
    for line in 0..lines {
        a.vmovdqu64(bytes, zmmword_ptr(data + line * LINE))?;
        for (pair, words) in [first, second].into_iter().enumerate() {
            // Two words for each row, a byte in each.
            a.vpshufb(low, bytes, words)?;
            a.vpsrlw(high, low, 4)?;
            for (half, nibbles) in [low, high].into_iter().enumerate() {
                // The low five bits of a word are its index, and the table repeats every 16.
                a.vpermw(nibbles, nibbles, table)?;
                a.vpsubusw(nibbles, nibbles, less)?;
                a.vmovdqu64(zmmword_ptr(out + (line * 4 + half * 2 + pair) * LINE), nibbles)?;
            }
        }
    }
    next_block_ahead(a, WeightFormat::Mxfp4, element.decoded_block(), labels)?;
    regs.restore_and_return(a)?;
    constants_here(a, &mut constants)?;
    let of_table = |value: u16| match value {
        0 => 0,
        value => value + ((TABLE_SCALE - SCALE_OF_ONE) << EXPONENT_AT),
    };
    a.dw(&BF16_TABLE.map(of_table).repeat(2))?;
    for start in [0, 2] {
        a.db(&pairs_of_words(start))?;
    }
    a.dd(&[u32::from(LEAST_SCALE), u32::from(SCALE_OF_ONE), u32::from(TABLE_SCALE)])
}

/// Stored bytes as signed ones.
fn decode_bytes(a: &mut CodeAssembler, format: WeightFormat) -> Result<(), IcedError> {
    let (element, parts) = (TileElement::of(format), format.parts());
    let mut regs = Regs::with_params(5);
    let [scales, data, out, _, ahead, ..] = PARAMS;
    let decoder = BlockDecoder::new(&mut regs, format, Width::Full, SCRATCH, false);
    let (scale, bias) = (regs.numbered(Width::Full), regs.vector());
    let bytes = regs.several_numbered(Width::Full, decoder.chunks());
    let mut constants = a.create_label();
    regs.save(a)?;
    a.mov(eax, u32::from_ne_bytes([parts.bias() as u8; 4]))?;
    a.vpbroadcastd(bias, eax)?;
    a.lea(SCRATCH, qword_ptr(constants))?;
    decoder.prepare(a)?;
    let labels = first_block(a)?;
    let places = ScaleAddress { scales: Address::at(scales), units: Address::at(scales) };
    decoder.scales(a, scale, places, 0, 0)?;
    a.vmovups(zmmword_ptr(out + element.decoded_factors()), ZMM[scale])?;
    for line in 0..data_lines(format) {
        a.prefetcht1(byte_ptr(ahead + line * LINE))?;
    }
    for line in decoder.lines(0) {
        decoder.weights(a, &bytes, Address::at(data), line)?;
        for (i, bytes) in bytes.iter().enumerate() {
            let bytes = ZMM[*bytes];
            a.vpsubb(bytes, bytes, bias)?;
            a.vmovdqu64(zmmword_ptr(out + (line * decoder.chunks() + i) * LINE), bytes)?;
        }
    }
    next_block_ahead(a, format, element.decoded_block(), labels)?;
    regs.restore_and_return(a)?;
    constants_here(a, &mut constants)?;
    decoder.emit_constants(a)
}
