//! Products of q8 rows by MXFP4 on tiles: every version of the host, and those for tiles and of 512 bits in
//! the interpreter of machine code and, if the host has any, on tiles, against "blockdot" of
//! docs/dev/numerics.md.

use super::machine::{Machine, Memory, Region};
use super::{Code, Tiles, choose, name, versions, versions_anywhere};
use fastrand::Rng;
use half::bf16;
use kernmill_kernels_gen::generate::generate_ukernels;
use kernmill_kernels_gen::ukernel::MicroKernel;
use kernmill_kernels_gen::ukernel::gemm_tiles::{
    CHUNK_BLOCKS, DECODED_BLOCK, PANEL_BLOCK, PANEL_ROWS, PANEL_SCALES, PRODUCT_BYTES, PRODUCTS, ROW_BYTES,
};
use kernmill_plan::format;
use kernmill_plan::format::{BLOCK, TILE_ROWS, WeightFormat};
use kernmill_plan::target::Level;

/// Where the interpreted code lies, and operands of the two micro-kernels.
const CODE: u64 = 0x40_0000;
const OPERANDS: [u64; 4] = [0x10_0000, 0x20_0000, 0x30_0000, 0x38_0000];
/// Bytes between the sums of tokens.
const STRIDE: usize = 200;
const GEMM: MicroKernel = MicroKernel::GemmTiles { stride: STRIDE };
/// What no micro-kernel may change.
const FILL: u8 = 0xee;

/// A tile, some rows, and the sums that the product is added to.
struct Product {
    blocks: usize,
    tile: Vec<u8>,
    /// By token: integers, and a scale per block.
    rows: Vec<(Vec<i8>, Vec<f32>)>,
    /// By token: 16.
    sums: Vec<f32>,
}

impl Product {
    /// `code` gives the codes of two weights, `scale` the byte of a scale, `row` an integer.
    fn of(
        (tokens, blocks): (usize, usize),
        mut code: impl FnMut() -> u8,
        mut scale: impl FnMut() -> u8,
        mut row: impl FnMut() -> i8,
        mut float: impl FnMut() -> f32,
    ) -> Product {
        let k = blocks * BLOCK;
        let codes: Vec<u8> = (0..TILE_ROWS * k / 2).map(|_| code()).collect();
        let scales: Vec<u8> = (0..TILE_ROWS * blocks).map(|_| scale()).collect();
        let mut tile = vec![0; WeightFormat::Mxfp4.tile(k).bytes()];
        format::mxfp4::pack_tile(k, &codes, &scales, &mut tile).unwrap();
        let mut one = || -> (Vec<i8>, Vec<f32>) {
            ((0..k).map(|_| row()).collect(), (0..blocks).map(|_| float()).collect())
        };
        let rows = (0..tokens).map(|_| one()).collect();
        let sums = (0..tokens * TILE_ROWS).map(|_| float()).collect();
        Product { blocks, tile, rows, sums }
    }

    fn random(tokens: usize, blocks: usize, scales: std::ops::RangeInclusive<u8>) -> Product {
        let seed = (tokens * 100 + blocks) as u64;
        let [mut codes, mut bytes, mut integers, mut floats] =
            [0, 1, 2, 3].map(|i| Rng::with_seed(seed * 4 + i));
        Product::of(
            (tokens, blocks),
            || codes.u8(..),
            || bytes.u8(scales.clone()),
            || integers.i8(..),
            || (floats.f32() - 0.5) * 0.1,
        )
    }

    /// Added to nothing, so that the least product shows.
    fn alone(mut self) -> Product {
        self.sums.fill(0.0);
        self
    }

    /// Blockdot. `isum * w` is the sum of the exact products, rounded once.
    fn expected(&self) -> Vec<f32> {
        let k = self.blocks * BLOCK;
        let value =
            |row: usize, i: usize| f64::from(format::value(WeightFormat::Mxfp4, k, &self.tile, row, i));
        let mut out = self.sums.clone();
        for ((integers, scales), sums) in self.rows.iter().zip(out.chunks_mut(TILE_ROWS)) {
            for (n, sum) in sums.iter_mut().enumerate() {
                for (block, scale) in scales.iter().enumerate() {
                    let places = block * BLOCK..(block + 1) * BLOCK;
                    let products = places.map(|i| value(n, i) * f64::from(integers[i]));
                    // An integer has one zero.
                    let product = products.sum::<f64>() + 0.0;
                    *sum = (product as f32).mul_add(*scale, *sum);
                }
            }
        }
        out
    }

    fn panel(&self) -> Vec<u8> {
        // Rows that are not there hold NaNs.
        let mut panel = vec![0xff; self.blocks * PANEL_BLOCK];
        for (token, (integers, scales)) in self.rows.iter().enumerate() {
            for (block, scale) in scales.iter().enumerate() {
                let panel = &mut panel[block * PANEL_BLOCK..][..PANEL_BLOCK];
                panel[PANEL_SCALES + token * 4..][..4].copy_from_slice(&scale.to_le_bytes());
                let integers = &integers[block * BLOCK..][..BLOCK];
                let row = integers.iter().flat_map(|q| bf16::from_f32(f32::from(*q)).to_le_bytes());
                let row: Vec<u8> = row.collect();
                panel[token * ROW_BYTES..][..ROW_BYTES].copy_from_slice(&row);
            }
        }
        panel
    }

    fn sums(&self) -> Vec<u8> {
        let mut sums = vec![FILL; (PANEL_ROWS - 1) * STRIDE + TILE_ROWS * 4];
        for (token, values) in self.sums.chunks(TILE_ROWS).enumerate() {
            let bytes: Vec<u8> = values.iter().flat_map(|x| x.to_le_bytes()).collect();
            sums[token * STRIDE..][..bytes.len()].copy_from_slice(&bytes);
        }
        sums
    }

    /// Compares all sums, and what lies between those that a version may write.
    fn compare(&self, mut memory: Vec<u8>, what: &str) {
        for (token, expected) in self.expected().chunks(TILE_ROWS).enumerate() {
            for (n, expected) in expected.iter().enumerate() {
                let bytes: [u8; 4] = memory[token * STRIDE + 4 * n..][..4].try_into().unwrap();
                let actual = f32::from_le_bytes(bytes);
                let same = actual.to_bits() == expected.to_bits() || actual.is_nan() && expected.is_nan();
                assert!(same, "{what}: token {token}, row {n}: {actual:e}, expected {expected:e}");
            }
        }
        for token in 0..PANEL_ROWS {
            memory[token * STRIDE..][..TILE_ROWS * 4].fill(FILL);
        }
        assert!(memory.iter().all(|byte| *byte == FILL), "{what}: wrote between its sums");
    }

    /// Decodes by every version, all to the same bytes, and multiplies by every version.
    fn check(&self) {
        let mut decoded: Option<Vec<u8>> = None;
        for (level, version, interpreted) in versions_anywhere() {
            let Some(code) = super::ukernel_code(&MicroKernel::DecodeTiles, level, version, interpreted)
            else {
                continue;
            };
            let bytes = self.decode(&code, interpreted);
            let what = name(level, version);
            assert!(*decoded.get_or_insert_with(|| bytes.clone()) == bytes, "{what}: decodes otherwise");
        }
        let decoded = decoded.expect("a version of the host");
        let what = |version: &str| format!("{version}, {} tokens, {} blocks", self.rows.len(), self.blocks);
        for (level, version) in versions() {
            let code = Code::new(generate_ukernels(&[GEMM], level, &choose(level, version)).unwrap());
            self.compare(self.multiply(&code, &decoded, |call| call()), &what(&name(level, version)));
        }
        let code = Code::new(generate_ukernels(&[GEMM], Level::Amx, &choose(Level::Amx, 0)).unwrap());
        if let Some(tiles) = Tiles::of_host() {
            self.compare(self.multiply(&code, &decoded, |call| tiles.around(call)), &what("amx"));
        }
        self.compare(self.interpreted(&code, &decoded), &what("interpreted amx"));
    }

    fn decode(&self, code: &Code, interpreted: bool) -> Vec<u8> {
        let (scales, data) = self.tile.split_at(WeightFormat::Mxfp4.tile(self.blocks * BLOCK).scale_bytes);
        let mut out = vec![FILL; self.blocks * DECODED_BLOCK];
        let blocks = self.blocks as u64;
        if interpreted {
            let args = [scales.as_ptr() as u64, data.as_ptr() as u64, out.as_ptr() as u64, blocks, 0];
            super::interpret(code, &[scales, data], &mut [out.as_mut_slice()], &args);
        } else {
            // SAFETY: whole planes in, as many blocks out; nothing is loaded from the last argument.
            unsafe {
                let f: unsafe extern "C" fn(*const u8, *const u8, *mut u8, u64, *const u8) =
                    std::mem::transmute(code.address(0));
                f(scales.as_ptr(), data.as_ptr(), out.as_mut_ptr(), blocks, std::ptr::null());
            }
        }
        out
    }

    fn multiply(&self, code: &Code, decoded: &[u8], around: impl Fn(&mut dyn FnMut())) -> Vec<u8> {
        let (panel, mut sums) = (self.panel(), self.sums());
        let mut products = vec![0xff; PRODUCTS * PRODUCT_BYTES];
        around(&mut || {
            // SAFETY: the memory is what the contract asks for.
            unsafe {
                let f: unsafe extern "C" fn(*const u8, *const u8, *mut u8, u64, *mut u8) =
                    std::mem::transmute(code.address(0));
                let blocks = self.blocks as u64;
                f(decoded.as_ptr(), panel.as_ptr(), sums.as_mut_ptr(), blocks, products.as_mut_ptr());
            }
        });
        sums
    }

    fn interpreted(&self, code: &Code, decoded: &[u8]) -> Vec<u8> {
        let states = [MicroKernel::TilesOn, MicroKernel::TilesOff];
        let states = Code::new(generate_ukernels(&states, Level::Amx, &choose(Level::Amx, 0)).unwrap());
        let products = vec![0xff; PRODUCTS * PRODUCT_BYTES];
        let mut memory = Memory::default();
        let operands = [decoded.to_vec(), self.panel(), self.sums(), products];
        for (index, (address, bytes)) in OPERANDS.into_iter().zip(operands).enumerate() {
            memory.add(Region { address, bytes, writable: index >= 2 });
        }
        let mut machine = Machine::new(memory);
        let [weights, panel, sums, products] = OPERANDS;
        let args = [weights, panel, sums, self.blocks as u64, products];
        let calls = [(states.bytes(0), &[][..]), (code.bytes(0), &args[..]), (states.bytes(1), &[][..])];
        for (index, (bytes, args)) in calls.into_iter().enumerate() {
            let place = CODE + index as u64 * 0x10_0000;
            machine.call(bytes, place, args).unwrap_or_else(|fault| panic!("{GEMM}: {fault}"));
        }
        assert!(!machine.has_tiles(), "tiles are left configured");
        machine.memory.region(sums).unwrap().bytes.clone()
    }
}

#[test]
fn products_are_blockdots() {
    for tokens in [1, 2, 7, 15, 16] {
        for blocks in 1..=7 {
            Product::random(tokens, blocks, 110..=130).check();
        }
    }
    // As many blocks as are decoded at a time.
    Product::random(16, CHUNK_BLOCKS, 100..=140).check();
}

/// Every scale that can be packed; and only those whose products tiles would take for zeros.
#[test]
fn small_and_large_scales_keep_their_bits() {
    Product::random(16, CHUNK_BLOCKS, 0..=232).check();
    for scales in [0..=0, 1..=1, 2..=2, 0..=3, 232..=232] {
        for blocks in [1, 3, 5] {
            Product::random(9, blocks, scales.clone()).alone().check();
        }
    }
    // One such block among others, wherever it is; its products are of the size of theirs, or denormal.
    for at in 0..4 * TILE_ROWS {
        let mut scales = (0..).map(|place: usize| if place == at { at as u8 % 2 } else { 3 });
        let mut rng = Rng::with_seed(at as u64);
        let float = if at % 3 == 0 { 1.0 } else { 2f32.powi(100) };
        let product = Product::of((3, 4), || rng.u8(..), || scales.next().unwrap(), || -3, || float);
        product.alone().check();
    }
}

/// The largest sums there are, of either sign; zeros of either sign; and sums that cancel out.
#[test]
fn extreme_integers_keep_their_bits() {
    let operands = [(0x77, 127), (0x77, -128), (0xff, -128), (0x08, -5), (0x80, 5), (0x00, -1), (0x7f, 127)];
    for (codes, q) in operands {
        for scale in [0, 1, 2, 127, 232] {
            for float in [0.75, -0.0] {
                Product::of((5, 4), || codes, || scale, || q, || float).alone().check();
            }
        }
    }
}

#[test]
fn infinite_and_undefined_scales_of_activations_go_where_they_should() {
    for float in [f32::INFINITY, f32::NEG_INFINITY, f32::NAN, f32::MAX, f32::MIN_POSITIVE, 1e-45] {
        let (mut rng, mut codes) = (Rng::with_seed(5), Rng::with_seed(6));
        Product::of((16, 4), || codes.u8(..), || 127, || rng.i8(..), || float).alone().check();
    }
    // What a row has stays in its sums.
    let mut product = Product::random(16, 4, 120..=130);
    product.rows[7].1[2] = f32::NAN;
    product.rows[15].1[0] = f32::INFINITY;
    product.check();
}
