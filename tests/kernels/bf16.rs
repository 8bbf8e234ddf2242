//! The micro-kernels of bf16 products: every version of the host, and that for tiles in the interpreter of
//! machine code and, if the host has any, on tiles, against plain loops.

use super::machine::{Machine, Memory, Region, flushed_fma};
use super::{Code, Tiles, choose, name, versions};
use fastrand::Rng;
use half::bf16;
use kernmill_kernels_gen::generate::generate_ukernels;
use kernmill_kernels_gen::ukernel::MicroKernel;
use kernmill_kernels_gen::ukernel::gemm_bf16::{
    CHUNK_BLOCKS, DECODED_BLOCK, DECODED_TILE, GROUP, PANEL_BLOCK, ROW_BYTES, Shape,
};
use kernmill_kernels_gen::ukernel::gemm_tiles::TileShapes;
use kernmill_os::cpu::host_has;
use kernmill_plan::format;
use kernmill_plan::format::{BLOCK, TILE_ROWS, WeightFormat};
use kernmill_plan::program::{CodeBlob, Symbol};
use kernmill_plan::target::Level;

/// Where the interpreted code and its operands lie.
const CODE: [u64; 3] = [0x40_0000, 0x50_0000, 0x60_0000];
const OPERANDS: [u64; 3] = [0x10_0000, 0x20_0000, 0x30_0000];
/// Bytes between the sums of tokens, and of tiles.
const STRIDE: usize = 200;
const GAP: usize = 68;
/// The filling that no micro-kernel may change.
const FILL: u8 = 0xee;

/// A packed tile with every scale that can be packed.
fn packed(rng: &mut Rng, k: usize) -> Vec<u8> {
    let mut blocks = vec![0; TILE_ROWS * k / 2];
    rng.fill(&mut blocks);
    let scales: Vec<u8> = (0..TILE_ROWS * k / BLOCK).map(|i| (i * 7 % 233) as u8).collect();
    let mut tile = vec![0; WeightFormat::Mxfp4.tile(k).bytes()];
    format::mxfp4::pack_tile(k, &blocks, &scales, &mut tile).unwrap();
    tile
}

#[test]
fn decoded_weights_are_exact() {
    for (level, version) in versions() {
        let decode =
            Code::new(generate_ukernels(&[MicroKernel::DecodeBf16], level, &choose(level, version)).unwrap());
        for k in [32, 96, 2880] {
            let tile = packed(&mut Rng::with_seed(k as u64), k);
            let scale_bytes = WeightFormat::Mxfp4.tile(k).scale_bytes;
            let mut out = vec![0u16; k / BLOCK * DECODED_BLOCK / 2];
            // SAFETY: whole planes in, as many blocks out; nothing is loaded from the last argument.
            unsafe {
                let f: unsafe extern "C" fn(*const u8, *const u8, *mut u16, u64, *const u8) =
                    std::mem::transmute(decode.address(0));
                let data = tile[scale_bytes..].as_ptr();
                f(tile.as_ptr(), data, out.as_mut_ptr(), (k / BLOCK) as u64, std::ptr::null());
            }
            for i in 0..k {
                for row in 0..TILE_ROWS {
                    let decoded = bf16::from_bits(out[i / 2 * 2 * TILE_ROWS + 2 * row + i % 2]).to_f32();
                    // Both zeros are +0.
                    let expected = format::value(WeightFormat::Mxfp4, k, &tile, row, i) + 0.0;
                    let what = format!("{}: row {row}, k {i}", name(level, version));
                    assert_eq!(decoded.to_bits(), expected.to_bits(), "{what}: {decoded} {expected}");
                }
            }
        }
    }
}

/// Denormals as zeros.
fn flushed(x: f32) -> f32 {
    if x.is_subnormal() { 0f32.copysign(x) } else { x }
}

/// "tiledot" of docs/dev/numerics.md: of one row and one column, continuing from `acc`.
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
    shape: Shape,
    /// By tile: `[k / 2][row][2]`.
    weights: Vec<Vec<bf16>>,
    rows: Vec<Vec<bf16>>,
    /// By tile and token: 16.
    sums: Vec<f32>,
    blocks: usize,
}

impl Product {
    fn of(tiles: usize, tokens: usize, blocks: usize, mut number: impl FnMut() -> bf16) -> Product {
        let k = blocks * BLOCK;
        let weights = (0..tiles).map(|_| (0..k * TILE_ROWS).map(|_| number()).collect()).collect();
        let rows = (0..tokens).map(|_| (0..k).map(|_| number()).collect()).collect();
        let sums = (0..tiles * tokens * TILE_ROWS).map(|_| number().to_f32()).collect();
        let shape = Shape { tiles, groups: tokens.div_ceil(GROUP), stride: STRIDE, gap: GAP };
        Product { shape, weights, rows, sums, blocks }
    }

    /// Uniform between plus and minus half of `scale`.
    fn random(tiles: usize, tokens: usize, blocks: usize, scale: f32) -> Product {
        let mut rng = Rng::with_seed((tiles * 100 + tokens) as u64);
        Product::of(tiles, tokens, blocks, || bf16::from_f32((rng.f32() - 0.5) * scale))
    }

    /// Any bits: NaNs, infinities, denormals; or every exponent near `around`.
    fn bits(tiles: usize, tokens: usize, blocks: usize, around: Option<u16>) -> Product {
        let mut rng = Rng::with_seed((tiles * 100 + tokens) as u64);
        Product::of(tiles, tokens, blocks, || {
            let bits = rng.u16(..);
            bf16::from_bits(match around {
                Some(exponent) => bits & 0x807f | (exponent + rng.u16(0..8)) << 7,
                None => bits,
            })
        })
    }

    fn place(&self, tile: usize, token: usize) -> usize {
        token * STRIDE + tile * GAP
    }

    /// Bytes of the three operands.
    fn memory(&self) -> [Vec<u8>; 3] {
        let bytes = |values: &[bf16]| values.iter().flat_map(|x| x.to_le_bytes()).collect::<Vec<u8>>();
        let mut weights = Vec::new();
        for tile in &self.weights {
            weights.resize(weights.len().next_multiple_of(DECODED_TILE), 0xff);
            weights.extend(bytes(tile));
        }
        // Rows that are not there hold NaNs; behind the last block's groups nothing does.
        let mut panel = vec![0xff; self.blocks * PANEL_BLOCK];
        for (token, row) in self.rows.iter().enumerate() {
            for (block, row) in row.chunks(BLOCK).enumerate() {
                panel[block * PANEL_BLOCK + token * ROW_BYTES..][..ROW_BYTES].copy_from_slice(&bytes(row));
            }
        }
        let rows = self.shape.groups * GROUP;
        panel.truncate((self.blocks.max(1) - 1) * PANEL_BLOCK + rows * ROW_BYTES);
        let mut sums = vec![FILL; self.place(self.shape.tiles - 1, rows - 1) + TILE_ROWS * 4];
        for (place, values) in self.places().zip(self.sums.chunks(TILE_ROWS)) {
            let bytes: Vec<u8> = values.iter().flat_map(|x| x.to_le_bytes()).collect();
            sums[place..place + bytes.len()].copy_from_slice(&bytes);
        }
        [weights, panel, sums]
    }

    /// Places of the sums, tile by tile and token by token.
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

    /// Compares all sums, and what lies between those that a version may write.
    fn compare(&self, mut memory: Vec<u8>, what: &str) {
        for (place, expected) in self.places().zip(self.expected().chunks(TILE_ROWS)) {
            for (n, expected) in expected.iter().enumerate() {
                let bytes: [u8; 4] = memory[place + 4 * n..][..4].try_into().unwrap();
                let actual = f32::from_le_bytes(bytes);
                let same = actual.to_bits() == expected.to_bits() || actual.is_nan() && expected.is_nan();
                assert!(same, "{what}: at {place}, row {n}: {actual:e}, expected {expected:e}");
            }
        }
        for token in 0..self.shape.groups * GROUP {
            for tile in 0..self.shape.tiles {
                memory[self.place(tile, token)..][..TILE_ROWS * 4].fill(FILL);
            }
        }
        assert!(memory.iter().all(|byte| *byte == FILL), "{what}: wrote between its sums");
    }

    /// Runs every version of the micro-kernel, that for tiles in the interpreter too.
    fn check(&self) {
        let ukernel = MicroKernel::GemmBf16(self.shape);
        let what = |version: &str| format!("{version} {ukernel}, {} blocks", self.blocks);
        for (level, version) in versions() {
            self.compare(self.run(level, version, |call| call()), &what(&name(level, version)));
        }
        if let Some(tiles) = Tiles::of_host(TileShapes::Whole) {
            self.compare(self.run(Level::Amx, 0, |call| tiles.around(call)), &what("amx"));
        }
        self.check_interpreted(&what("interpreted amx"));
    }

    /// Runs a version on this CPU. The memory of the sums afterwards.
    fn run(&self, level: Level, version: usize, around: impl Fn(&mut dyn FnMut())) -> Vec<u8> {
        let ukernel = MicroKernel::GemmBf16(self.shape);
        let code = Code::new(generate_ukernels(&[ukernel], level, &choose(level, version)).unwrap());
        let [weights, panel, mut sums] = self.memory();
        around(&mut || {
            // SAFETY: the memory is what the contract asks for.
            unsafe {
                let f: unsafe extern "C" fn(*const u8, *const u8, *mut u8, u64, u64) =
                    std::mem::transmute(code.address(0));
                let tokens = self.rows.len() as u64;
                f(weights.as_ptr(), panel.as_ptr(), sums.as_mut_ptr(), self.blocks as u64, tokens);
            }
        });
        sums
    }

    fn check_interpreted(&self, what: &str) {
        let ukernels = [
            MicroKernel::TilesOn(TileShapes::Whole),
            MicroKernel::GemmBf16(self.shape),
            MicroKernel::TilesOff,
        ];
        let code = Code::new(generate_ukernels(&ukernels, Level::Amx, &choose(Level::Amx, 0)).unwrap());
        let mut memory = Memory::default();
        for (index, (address, bytes)) in OPERANDS.into_iter().zip(self.memory()).enumerate() {
            memory.add(Region { address, bytes, writable: index == 2 });
        }
        let mut machine = Machine::new(memory);
        let [weights, panel, sums] = OPERANDS;
        let args = [weights, panel, sums, self.blocks as u64, self.rows.len() as u64];
        for (index, args) in [&[][..], &args, &[]].into_iter().enumerate() {
            machine
                .call(code.bytes(index), CODE[index], args)
                .unwrap_or_else(|fault| panic!("{what}: {}: {fault}", ukernels[index]));
        }
        assert!(!machine.has_tiles(), "{what}: tiles are left configured");
        self.compare(machine.memory.region(sums).unwrap().bytes.clone(), what);
    }
}

#[test]
fn products_follow_the_definition() {
    for tiles in [1, 2] {
        for tokens in [1, 2, 5, 6, 7, 15, 16, 17, 31, 32] {
            for blocks in [0, 1, 3] {
                Product::random(tiles, tokens, blocks, 2.0).check();
            }
        }
    }
    // Whole tiles as far as one is decoded at a time.
    Product::random(2, 32, CHUNK_BLOCKS, 2.0).check();
}

#[test]
fn denormal_operands_and_results_are_zeros() {
    // Products below the smallest normal number, and denormal operands beside them.
    Product::random(1, 3, 2, 1e-19).check();
    let mut product = Product::random(2, 17, 2, 2e-38);
    product.sums.iter_mut().step_by(3).for_each(|sum| *sum = f32::from_bits(1));
    product.check();
    // Exponents whose products are around 2^-126, and around where a product is looked at closely.
    for exponent in [60, 62, 64, 68, 72] {
        Product::bits(2, 7, 3, Some(exponent)).check();
    }
}

/// Whether a sum is denormal is decided after rounding, here to a multiple of 2^-149.
#[test]
fn sums_are_rounded_before_they_can_be_denormal() {
    let power = |exponent: i32| bf16::from_f32(2f32.powi(exponent));
    // 2^-126 less the square of a small number.
    let product = |small: i32| {
        let mut product = Product::of(1, 1, 1, || bf16::ZERO);
        product.rows[0][0] = power(-63);
        product.rows[0][2] = power(small);
        for row in 0..TILE_ROWS {
            product.weights[0][2 * row] = power(-63);
            product.weights[0][2 * TILE_ROWS + 2 * row] = -power(small);
        }
        product
    };
    for (small, expected) in [(-76, f32::MIN_POSITIVE), (-74, 0.0), (-70, 0.0)] {
        assert_eq!(product(small).expected(), [expected; TILE_ROWS]);
        product(small).check();
    }
    // Tiles of a CPU make 0 of this one (docs/dev/numerics.md), everything else what the definition says.
    let between = product(-75);
    assert_eq!(between.expected(), [f32::MIN_POSITIVE; TILE_ROWS]);
    for (level, version) in versions() {
        between.compare(between.run(level, version, |call| call()), &name(level, version));
    }
    between.check_interpreted("interpreted amx");
}

#[test]
fn one_small_element_is_seen_wherever_it_is() {
    for at in 0..2 * BLOCK {
        let mut product = Product::random(1, 2, 2, 2.0);
        // Twice 2^-70 in a weight's column and a row: their product is denormal.
        let small = bf16::from_f32(2f32.powi(-70));
        product.rows[1].fill(bf16::ZERO);
        product.rows[1][at] = small;
        for row in 0..TILE_ROWS {
            product.weights[0][at / 2 * 2 * TILE_ROWS + 2 * row + at % 2] = small;
        }
        product.sums.fill(0.0);
        product.check();
    }
}

#[test]
fn infinities_and_nans_go_where_they_should() {
    for (tiles, tokens) in [(1, 1), (2, 9), (2, 16), (1, 30)] {
        Product::bits(tiles, tokens, 2, None).check();
        // Few enough that finite results remain.
        let mut product = Product::random(tiles, tokens, 2, 2.0);
        product.rows[tokens - 1][40] = bf16::INFINITY;
        product.rows[tokens / 2][3] = bf16::NAN;
        product.weights[0][77] = bf16::NEG_INFINITY;
        product.check();
    }
}

/// `vdpbf16ps`, which CPUs without tiles may have, multiplies and adds as `tdpbf16ps` does: odd elements
/// first, then even ones.
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
    let bytes = a.assemble(0).unwrap();
    let symbol = Symbol { name: String::new(), offset: 0, size: bytes.len() as u64, contract: None };
    let dot = Code::new(CodeBlob { bytes, symbols: vec![symbol] });
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
