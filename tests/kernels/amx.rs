//! The leaves for AMX tiles: decoding on the CPU, the product in the interpreter of machine code, both against plain loops.

use super::Code;
use super::fence::Flush;
use super::machine::{Machine, Memory, Region, flushed_fma};
use super::operands::{Contents, call, operands};
use super::replay::memory;
use fastrand::Rng;
use half::bf16;
use kernmill_kernels::wide::amx::{BF16_BLOCK, BF16_TILE, MAX_TOKENS, TileLeaf};
use kernmill_plan::format::{BLOCK, TILE_ROWS, WeightFormat};
use kernmill_plan::pack;
use kernmill_plan::program::{CodeBlob, Symbol};
use kernmill_plan::target::host_has;

/// Where the interpreted code and its operands lie.
const CODE: u64 = 0x40_0000;
const OPERANDS: [u64; 3] = [0x10_0000, 0x20_0000, 0x30_0000];
/// Sums between the tokens of a tile, and between tiles.
const STRIDE: usize = 200;
const GAP: usize = 68;

fn code(bytes: Vec<u8>) -> Code {
    let symbol = Symbol { name: String::new(), offset: 0, size: bytes.len() as u64, kernel: false };
    Code::new(CodeBlob { bytes, symbols: vec![symbol] })
}

/// A packed tile with every scale that can be packed.
fn packed(rng: &mut Rng, k: usize) -> Vec<u8> {
    let mut blocks = vec![0; TILE_ROWS * k / 2];
    rng.fill(&mut blocks);
    let scales: Vec<u8> = (0..TILE_ROWS * k / BLOCK).map(|i| (i * 7 % 233) as u8).collect();
    let mut tile = vec![0; WeightFormat::Mxfp4.tile(k).bytes()];
    pack::mxfp4::pack_tile(k, &blocks, &scales, &mut tile).unwrap();
    tile
}

#[test]
fn decoded_weights_are_exact() {
    if !TileLeaf::Decode.level().missing().is_empty() {
        return;
    }
    let decode = code(TileLeaf::Decode.assemble().unwrap());
    for k in [32, 96, 2880] {
        let tile = packed(&mut Rng::with_seed(k as u64), k);
        let scale_bytes = WeightFormat::Mxfp4.tile(k).scale_bytes;
        let mut out = vec![0u16; k / BLOCK * BF16_BLOCK / 2];
        // SAFETY: whole planes in, as many blocks out.
        unsafe {
            let f: unsafe extern "C" fn(*const u8, *const u8, *mut u16, u64) =
                std::mem::transmute(decode.address(0));
            f(tile.as_ptr(), tile[scale_bytes..].as_ptr(), out.as_mut_ptr(), (k / BLOCK) as u64);
        }
        for i in 0..k {
            for row in 0..TILE_ROWS {
                let decoded = bf16::from_bits(out[i / 2 * 2 * TILE_ROWS + 2 * row + i % 2]).to_f32();
                let expected = pack::value(WeightFormat::Mxfp4, k, &tile, row, i);
                assert_eq!(decoded.to_bits(), expected.to_bits(), "row {row}, k {i}: {decoded} {expected}");
            }
        }
    }
}

#[test]
fn decoding_stays_inside_its_operands_and_the_interpreter_agrees() {
    if !TileLeaf::Decode.level().missing().is_empty() {
        return;
    }
    let decode = code(TileLeaf::Decode.assemble().unwrap());
    let contract = TileLeaf::Decode.contract();
    for contents in [Contents::Random, Contents::Ones] {
        for blocks in [0, 1, 5] {
            for flush in [Flush::Start, Flush::End] {
                let operands = operands(&contract, &[blocks], flush, 0x33, contents);
                let mut machine = Machine::new(memory(&contract, &operands));
                let args: Vec<u64> = operands.iter().map(|operand| operand.value).collect();
                machine.call(decode.bytes(0), decode.address(0) as u64, &args).unwrap();
                // SAFETY: operands are made from the leaf's contract.
                unsafe { call(decode.address(0), &operands) };
                let (out, _) = operands[2].region.as_ref().unwrap();
                if let Some(interpreted) = machine.memory.region(out.address()) {
                    assert!(interpreted.bytes == out.bytes(), "{contents:?} {blocks} blocks");
                }
            }
        }
    }
}

/// Denormals as zeros.
fn flushed(x: f32) -> f32 {
    if x.is_subnormal() { 0f32.copysign(x) } else { x }
}

/// "tiledot" of docs/numerics.md: of one row and one column, continuing from `acc`.
fn tiledot(weights: &[f32], activations: &[f32], mut acc: f32) -> f32 {
    for (w, a) in weights.chunks(BLOCK).zip(activations.chunks(BLOCK)) {
        let mut sums = [0f32; 2];
        for (i, (w, a)) in w.iter().zip(a).enumerate() {
            sums[i % 2] = flushed(flushed(*a).mul_add(flushed(*w), sums[i % 2]));
        }
        acc = flushed(flushed(acc) + flushed(sums[0] + sums[1]));
    }
    acc
}

/// Operands of a product with memory of exactly the right sizes.
struct Product {
    weights: Vec<Vec<bf16>>,
    rows: Vec<Vec<bf16>>,
    sums: Vec<f32>,
    blocks: usize,
    row_bytes: usize,
}

impl Product {
    fn random(tiles: usize, tokens: usize, blocks: usize, scale: f32) -> Product {
        let mut rng = Rng::with_seed((tiles * 100 + tokens) as u64);
        let mut number = |scale: f32| bf16::from_f32((rng.f32() - 0.5) * scale);
        let k = blocks * BLOCK;
        // Weights by tile: [k / 2][row][2].
        let weights = (0..tiles).map(|_| (0..k * TILE_ROWS).map(|_| number(scale)).collect()).collect();
        let rows = (0..tokens).map(|_| (0..k).map(|_| number(scale)).collect()).collect();
        let sums = (0..tiles * tokens * TILE_ROWS).map(|_| number(1.0).to_f32()).collect();
        Product { weights, rows, sums, blocks, row_bytes: k * 2 + 64 }
    }

    fn place(&self, tile: usize, token: usize) -> usize {
        token * STRIDE + tile * GAP
    }

    /// The three operands as regions.
    fn memory(&self) -> Memory {
        let bytes = |values: &[bf16]| values.iter().flat_map(|x| x.to_le_bytes()).collect::<Vec<u8>>();
        let mut weights = Vec::new();
        for tile in &self.weights {
            weights.resize(weights.len().next_multiple_of(BF16_TILE), 0xff);
            weights.extend(bytes(tile));
        }
        let mut rows = Vec::new();
        for row in &self.rows {
            rows.resize(rows.len().next_multiple_of(self.row_bytes), 0xff);
            rows.extend(bytes(row));
        }
        let last = self.place(self.weights.len() - 1, self.rows.len() - 1);
        let mut sums = vec![0xee; last + TILE_ROWS * 4];
        for (place, values) in self.places().zip(self.sums.chunks(TILE_ROWS)) {
            let bytes: Vec<u8> = values.iter().flat_map(|x| x.to_le_bytes()).collect();
            sums[place..place + bytes.len()].copy_from_slice(&bytes);
        }
        let mut memory = Memory::default();
        for (index, (address, bytes)) in OPERANDS.into_iter().zip([weights, rows, sums]).enumerate() {
            memory.add(Region { address, bytes, writable: index == 2 });
        }
        memory
    }

    /// Of the sums, tile by tile and token by token.
    fn places(&self) -> impl Iterator<Item = usize> {
        let tokens = self.rows.len();
        (0..self.weights.len()).flat_map(move |tile| (0..tokens).map(move |t| self.place(tile, t)))
    }

    fn expected(&self) -> Vec<f32> {
        let mut out = Vec::new();
        for (tile, weights) in self.weights.iter().enumerate() {
            for (token, row) in self.rows.iter().enumerate() {
                let row: Vec<f32> = row.iter().map(|x| x.to_f32()).collect();
                for n in 0..TILE_ROWS {
                    let column: Vec<f32> = (0..row.len())
                        .map(|i| weights[i / 2 * 2 * TILE_ROWS + 2 * n + i % 2].to_f32())
                        .collect();
                    let start = self.sums[(tile * self.rows.len() + token) * TILE_ROWS + n];
                    out.push(tiledot(&column, &row, start));
                }
            }
        }
        out
    }

    /// Runs the leaf in the interpreter and compares all sums.
    fn check(&self) {
        let leaf =
            TileLeaf::Gemm { tiles: self.weights.len(), tokens: self.rows.len(), row_bytes: self.row_bytes };
        let code = leaf.assemble().unwrap();
        let mut machine = Machine::new(self.memory());
        let [weights, rows, sums] = OPERANDS;
        let args = [weights, rows, sums, self.blocks as u64, STRIDE as u64, GAP as u64];
        machine.call(&code, CODE, &args).unwrap_or_else(|fault| panic!("{leaf}: {fault}"));
        let mut memory = machine.memory.region(sums).unwrap().bytes.clone();
        for (place, expected) in self.places().zip(self.expected().chunks(TILE_ROWS)) {
            for (n, expected) in expected.iter().enumerate() {
                let bytes = &mut memory[place + 4 * n..][..4];
                let actual = u32::from_le_bytes(bytes.try_into().unwrap());
                assert_eq!(actual, expected.to_bits(), "{leaf}: at {place}, row {n}");
                bytes.fill(0xee);
            }
        }
        assert!(memory.iter().all(|byte| *byte == 0xee), "{leaf}: wrote between its sums");
    }
}

#[test]
fn products_follow_the_definition_in_the_interpreter() {
    for tiles in [1, 2] {
        for tokens in [1, 2, 15, 16, 17, 31, MAX_TOKENS] {
            for blocks in [0, 1, 3] {
                Product::random(tiles, tokens, blocks, 2.0).check();
            }
        }
    }
    // Whole tiles as far as one is decoded at a time.
    Product::random(2, MAX_TOKENS, BF16_TILE / BF16_BLOCK, 2.0).check();
}

#[test]
fn denormal_operands_and_results_are_zeros() {
    // Products below the smallest normal number, and denormal operands beside them.
    Product::random(1, 3, 2, 1e-19).check();
    let mut product = Product::random(2, 17, 2, 2e-38);
    product.sums.iter_mut().step_by(3).for_each(|sum| *sum = f32::from_bits(1));
    product.check();
}

/// `vdpbf16ps`, which CPUs without tiles may have, multiplies and adds as `tdpbf16ps` does: odd elements first, then even ones.
#[test]
fn the_interpreters_bf16_arithmetic_is_the_cpus() {
    use iced_x86::code_asm::{CodeAssembler, rdi, rdx, rsi, zmm0, zmm1, zmmword_ptr};
    if !host_has("avx512_bf16") {
        return;
    }
    let mut a = CodeAssembler::new(64).unwrap();
    a.vmovups(zmm0, zmmword_ptr(rdx)).unwrap();
    a.vmovups(zmm1, zmmword_ptr(rdi)).unwrap();
    a.vdpbf16ps(zmm0, zmm1, zmmword_ptr(rsi)).unwrap();
    a.vmovups(zmmword_ptr(rdx), zmm0).unwrap();
    a.vzeroupper().unwrap();
    a.ret().unwrap();
    let dot = code(a.assemble(0).unwrap());
    let mut rng = Rng::with_seed(5);
    for round in 0..20_000 {
        // Random bits; or exponents at which products, or sums, are about as small as numbers get.
        let mut operand = |around: u32| -> [u32; 16] {
            std::array::from_fn(|_| match round % 4 {
                0 => rng.u32(..),
                _ => {
                    let half = |rng: &mut Rng| {
                        let exponent = (around + rng.u32(0..6)).saturating_sub(3);
                        rng.u32(..) & 0x807f | exponent << 7
                    };
                    half(&mut rng) | half(&mut rng) << 16
                }
            })
        };
        let (x, y, z) = (operand(64), operand(64), operand(2));
        let mut actual = z;
        // SAFETY: the code reads three vectors and writes the last.
        unsafe {
            let f: unsafe extern "C" fn(*const u32, *const u32, *mut u32) =
                std::mem::transmute(dot.address(0));
            f(x.as_ptr(), y.as_ptr(), actual.as_mut_ptr());
        }
        for lane in 0..16 {
            let (x, y) = (x[lane], y[lane]);
            let odd = flushed_fma(x & 0xffff_0000, y & 0xffff_0000, z[lane]);
            let expected = flushed_fma(x << 16, y << 16, odd);
            let nan = |bits: u32| f32::from_bits(bits).is_nan();
            let same = expected == actual[lane] || nan(expected) && nan(actual[lane]);
            assert!(same, "{x:08x} {y:08x} {:08x}: {expected:08x}, the CPU {:08x}", z[lane], actual[lane]);
        }
    }
}
