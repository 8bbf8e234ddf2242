//! Products of q8 rows on tiles, of bf16 for MXFP4 and of int8 for other formats: every version of the host,
//! and those for tiles and of 512 bits in the interpreter of machine code and, if the host has any, on tiles,
//! against "blockdot" of docs/dev/numerics.md.

use super::machine::{Machine, Memory, Region};
use super::packed::FIRST;
use super::{Code, Tiles, choose, name, versions, versions_anywhere};
use fastrand::Rng;
use half::{bf16, f16};
use kernmill_kernels_gen::generate::generate_ukernels;
use kernmill_kernels_gen::ukernel::MicroKernel;
use kernmill_kernels_gen::ukernel::gemm_tiles::{
    CHUNK_BLOCKS, PANEL_ROWS, PRODUCT_BYTES, PRODUCTS, Strip, TileElement, TileShapes,
};
use kernmill_plan::format;
use kernmill_plan::format::{BLOCK, LINE, TILE_ROWS, WeightFormat};
use kernmill_plan::target::Level;

/// Where the interpreted code lies, and operands of the two micro-kernels.
const CODE: u64 = 0x40_0000;
const OPERANDS: [u64; 4] = [0x10_0000, 0x20_0000, 0x30_0000, 0x38_0000];
/// Bytes between the sums of tokens, and those of two tiles.
const STRIDE: usize = 200;
const GAP: usize = 100;
/// The filling that no micro-kernel may change.
const FILL: u8 = 0xee;

/// Two tiles, some rows, and the sums that the product is added to.
#[derive(Clone)]
struct Product {
    format: WeightFormat,
    blocks: usize,
    tiles: [PackedTile; 2],
    /// By token: integers, and a scale per block.
    rows: Vec<(Vec<i8>, Vec<f32>)>,
    /// By token and tile: 16.
    sums: Vec<f32>,
}

#[derive(Clone)]
struct PackedTile {
    bytes: Vec<u8>,
    /// Integers by row, and scales of the rows by block, in formats that have both.
    integers: Vec<Vec<i8>>,
    scales: Vec<[f16; TILE_ROWS]>,
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
        let tiles = [0, 1].map(|_| {
            let codes: Vec<u8> = (0..TILE_ROWS * k / 2).map(|_| code()).collect();
            let scales: Vec<u8> = (0..TILE_ROWS * blocks).map(|_| scale()).collect();
            let mut bytes = vec![0; WeightFormat::Mxfp4.tile(k).bytes()];
            format::mxfp4::pack_tile(k, &codes, &scales, &mut bytes).unwrap();
            PackedTile { bytes, integers: Vec::new(), scales: Vec::new() }
        });
        let mut one = || -> (Vec<i8>, Vec<f32>) {
            ((0..k).map(|_| row()).collect(), (0..blocks).map(|_| float()).collect())
        };
        let rows = (0..tokens).map(|_| one()).collect();
        let sums = (0..2 * tokens * TILE_ROWS).map(|_| float()).collect();
        Product { format: WeightFormat::Mxfp4, blocks, tiles, rows, sums }
    }

    /// One in a format that stores codes of integers, and f16 scales: `weight` gives an integer, `scale` a
    /// scale, `row` an integer of a row.
    fn of_integers(
        format: WeightFormat,
        (tokens, blocks): (usize, usize),
        mut weight: impl FnMut() -> i8,
        mut scale: impl FnMut() -> f16,
        mut row: impl FnMut() -> i8,
        mut float: impl FnMut() -> f32,
    ) -> Product {
        let k = blocks * BLOCK;
        let tiles = [0, 1].map(|_| {
            let integers: Vec<Vec<i8>> = (0..TILE_ROWS).map(|_| (0..k).map(|_| weight()).collect()).collect();
            let scales: Vec<[f16; TILE_ROWS]> =
                (0..blocks).map(|_| std::array::from_fn(|_| scale())).collect();
            let mut tile: Vec<u8> = scales.iter().flatten().flat_map(|scale| scale.to_le_bytes()).collect();
            tile.resize(format.tile(k).scale_bytes, 0);
            let code = |q: i8| {
                (0..=u8::MAX)
                    .find(|code| format.parts().integer(*code) == i32::from(q))
                    .expect("an integer of it")
            };
            let codes: Vec<Vec<u8>> =
                integers.iter().map(|row| row.iter().map(|q| code(*q)).collect()).collect();
            // A line has a few bits of 4 k of each row in its bytes' lowest ones, and of the next 4 k above.
            let planes =
                [(format.parts().codes.low, 0), (format.parts().codes.high, format.parts().codes.low)];
            for first in (0..k).step_by(BLOCK) {
                for (bits, shift) in planes {
                    let byte = |at: usize, line: usize| {
                        let place = |group: usize| first + 4 * (line * 8 / bits + group) + at % 4;
                        let part =
                            |group: usize| codes[at / 4][place(group)] >> shift & (0xff >> (8 - bits)) as u8;
                        (0..8 / bits).fold(0, |byte, group| byte | part(group) << (bits * group))
                    };
                    tile.extend(
                        (0..bits)
                            .flat_map(|line| (0..LINE).map(move |at| (at, line)))
                            .map(|(at, line)| byte(at, line)),
                    );
                }
            }
            assert_eq!(tile.len(), format.tile(k).bytes());
            for (row, integers) in integers.iter().enumerate() {
                for (i, q) in integers.iter().enumerate() {
                    let value = f32::from(*q) * scales[i / BLOCK][row].to_f32();
                    assert_eq!(format::value(format, k, &tile, row, i), value, "element {i} of row {row}");
                }
            }
            PackedTile { bytes: tile, integers, scales }
        });
        let mut one = || -> (Vec<i8>, Vec<f32>) {
            ((0..k).map(|_| row()).collect(), (0..blocks).map(|_| float()).collect())
        };
        let rows = (0..tokens).map(|_| one()).collect();
        let sums = (0..2 * tokens * TILE_ROWS).map(|_| float()).collect();
        Product { format, blocks, tiles, rows, sums }
    }

    fn random_integers(format: WeightFormat, tokens: usize, blocks: usize) -> Product {
        let seed = (tokens * 100 + blocks) as u64;
        let [mut weights, mut scales, mut integers, mut floats] =
            [0, 1, 2, 3].map(|i| Rng::with_seed(seed * 4 + i));
        let levels = levels(format);
        Product::of_integers(
            format,
            (tokens, blocks),
            || levels[weights.usize(..levels.len())],
            || f16::from_f32((scales.f32() - 0.5) * 0.1),
            || integers.i8(..),
            || (floats.f32() - 0.5) * 0.1,
        )
    }

    fn element(&self) -> TileElement {
        TileElement::of(self.format)
    }

    /// Panels have a block more, which is left out.
    fn strip(&self, tiles: usize) -> Strip {
        Strip { format: self.format, tiles, k: (self.blocks + 1) * BLOCK, stride: STRIDE, gap: GAP }
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

    /// `isum * w` of a block of row `n` of a tile and a row's integers, rounded once.
    fn scaled(&self, tile: &PackedTile, n: usize, block: usize, row: &[i8]) -> f32 {
        let places = block * BLOCK..(block + 1) * BLOCK;
        if let Some(integers) = tile.integers.get(n) {
            let products = places.map(|i| i32::from(integers[i]) * i32::from(row[i]));
            return products.sum::<i32>() as f32 * tile.scales[block][n].to_f32();
        }
        let k = self.blocks * BLOCK;
        let value = |i: usize| f64::from(format::value(self.format, k, &tile.bytes, n, i));
        // The sum of the exact products. An integer has one zero.
        let sum = places.map(|i| value(i) * f64::from(row[i])).sum::<f64>() + 0.0;
        sum as f32
    }

    /// Blockdot.
    fn expected(&self) -> Vec<f32> {
        let mut out = self.sums.clone();
        for ((integers, scales), sums) in self.rows.iter().zip(out.chunks_mut(2 * TILE_ROWS)) {
            for (at, sum) in sums.iter_mut().enumerate() {
                let (tile, n) = (&self.tiles[at / TILE_ROWS], at % TILE_ROWS);
                for (block, scale) in scales.iter().enumerate() {
                    *sum = self.scaled(tile, n, block, integers).mul_add(*scale, *sum);
                }
            }
        }
        out
    }

    fn panels(&self) -> Vec<u8> {
        // Rows and blocks that are not there hold NaNs.
        let (element, stride) = (self.element(), self.strip(1).panel_stride());
        let mut panels = vec![0xff; self.rows.len().div_ceil(PANEL_ROWS) * stride];
        for (token, (integers, scales)) in self.rows.iter().enumerate() {
            let (panel, token) = (&mut panels[token / PANEL_ROWS * stride..], token % PANEL_ROWS);
            for (block, scale) in scales.iter().enumerate() {
                let panel = &mut panel[block * element.panel_block()..][..element.panel_block()];
                panel[element.panel_scales() + token * 4..][..4].copy_from_slice(&scale.to_le_bytes());
                let integers = &integers[block * BLOCK..][..BLOCK];
                let as_bf16 = |q: &i8| bf16::from_f32(f32::from(*q)).to_le_bytes();
                let row: Vec<u8> = match element {
                    TileElement::Bf16 => integers.iter().flat_map(as_bf16).collect(),
                    TileElement::I8 => integers.iter().map(|q| q.cast_unsigned()).collect(),
                };
                panel[token * row.len()..][..row.len()].copy_from_slice(&row);
            }
        }
        panels
    }

    /// Where the sums of tokens of so many tiles lie.
    fn places(&self, tiles: usize) -> impl Iterator<Item = (usize, &[f32])> {
        let sums = self.sums.chunks(TILE_ROWS).enumerate().filter(move |(at, _)| at % 2 < tiles);
        sums.map(|(at, sums)| (at / 2 * STRIDE + at % 2 * GAP, sums))
    }

    fn sums(&self, tiles: usize) -> Vec<u8> {
        let rows = self.rows.len().next_multiple_of(PANEL_ROWS);
        let mut sums = vec![FILL; rows * STRIDE];
        for (place, values) in self.places(tiles) {
            let bytes: Vec<u8> = values.iter().flat_map(|x| x.to_le_bytes()).collect();
            sums[place..][..bytes.len()].copy_from_slice(&bytes);
        }
        sums
    }

    /// Compares all sums, and what lies between those that a version may write.
    fn compare(&self, tiles: usize, mut memory: Vec<u8>, what: &str) {
        let done = Product { sums: self.expected(), ..self.clone() };
        for (place, expected) in done.places(tiles) {
            for (n, expected) in expected.iter().enumerate() {
                let bytes: [u8; 4] = memory[place + 4 * n..][..4].try_into().unwrap();
                let actual = f32::from_le_bytes(bytes);
                let same = actual.to_bits() == expected.to_bits() || actual.is_nan() && expected.is_nan();
                let (token, at) = (place / STRIDE, place % STRIDE);
                assert!(same, "{what}: token {token} at {at}, row {n}: {actual:e}, expected {expected:e}");
            }
        }
        for token in memory.chunks_mut(STRIDE) {
            (0..tiles).for_each(|tile| token[tile * GAP..][..TILE_ROWS * 4].fill(FILL));
        }
        assert!(memory.iter().all(|byte| *byte == FILL), "{what}: wrote between its sums");
    }

    /// Decodes by every version, all to the same bytes, and multiplies by every version.
    fn check(&self) {
        let bytes = self.element().decoded_tile();
        let mut decoded = vec![0xff; 2 * bytes];
        for (tile, decoded) in self.tiles.iter().zip(decoded.chunks_mut(bytes)) {
            let one = self.decoded(tile);
            decoded[..one.len()].copy_from_slice(&one);
        }
        (1..=2).for_each(|tiles| self.check_strip(tiles, &decoded));
    }

    fn decoded(&self, tile: &PackedTile) -> Vec<u8> {
        let mut decoded: Option<Vec<u8>> = None;
        for (level, version, interpreted) in versions_anywhere() {
            let ukernel = MicroKernel::DecodeTiles { format: self.format };
            let Some(code) = super::ukernel_code(&ukernel, level, version, interpreted) else { continue };
            let bytes = self.decode(tile, &code, interpreted);
            let what = name(level, version);
            assert!(*decoded.get_or_insert_with(|| bytes.clone()) == bytes, "{what}: decodes otherwise");
        }
        decoded.expect("a version of the host")
    }

    fn check_strip(&self, tiles: usize, decoded: &[u8]) {
        let strip = [MicroKernel::GemmStrip(self.strip(tiles))];
        let (tokens, blocks) = (self.rows.len(), self.blocks);
        let what = |version: &str| format!("{version}, {}, {tokens} tokens, {blocks} blocks", strip[0]);
        for (level, version) in versions() {
            let code = Code::new(generate_ukernels(&strip, level, &choose(level, version)).unwrap());
            let sums = self.multiply(tiles, &code, decoded, |call| call());
            self.compare(tiles, sums, &what(&name(level, version)));
        }
        let code = Code::new(generate_ukernels(&strip, Level::Amx, &choose(Level::Amx, 0)).unwrap());
        if let Some(on) = Tiles::of_host(TileShapes::Strip(self.element())) {
            let sums = self.multiply(tiles, &code, decoded, |call| on.around(call));
            self.compare(tiles, sums, &what("amx"));
        }
        self.compare(tiles, self.interpreted(tiles, &code, decoded), &what("interpreted amx"));
    }

    fn decode(&self, tile: &PackedTile, code: &Code, interpreted: bool) -> Vec<u8> {
        let (scales, data) = tile.bytes.split_at(self.format.tile(self.blocks * BLOCK).scale_bytes);
        let mut out = vec![FILL; self.blocks * self.element().decoded_block()];
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

    fn multiply(
        &self,
        tiles: usize,
        code: &Code,
        decoded: &[u8],
        around: impl Fn(&mut dyn FnMut()),
    ) -> Vec<u8> {
        let (panels, mut sums) = (self.panels(), self.sums(tiles));
        let mut products = vec![0xff_u8; PRODUCTS * PRODUCT_BYTES];
        around(&mut || {
            // SAFETY: the memory is what the contract asks for.
            unsafe {
                let f: unsafe extern "C" fn(*const u8, *const u8, *mut u8, u64, u64, *mut u8) =
                    std::mem::transmute(code.address(0));
                let [rows, blocks] = [self.rows.len(), self.blocks].map(|number| number as u64);
                let [sums, products] = [sums.as_mut_ptr(), products.as_mut_ptr()];
                f(decoded.as_ptr(), panels.as_ptr(), sums, rows, blocks, products);
            }
        });
        sums
    }

    fn interpreted(&self, tiles: usize, code: &Code, decoded: &[u8]) -> Vec<u8> {
        let states = [MicroKernel::TilesOn(TileShapes::Strip(self.element())), MicroKernel::TilesOff];
        let states = Code::new(generate_ukernels(&states, Level::Amx, &choose(Level::Amx, 0)).unwrap());
        let products = vec![0xff; PRODUCTS * PRODUCT_BYTES];
        let mut memory = Memory::default();
        let operands = [decoded.to_vec(), self.panels(), self.sums(tiles), products];
        for (index, (address, bytes)) in OPERANDS.into_iter().zip(operands).enumerate() {
            memory.add(Region { address, bytes, writable: index >= 2 });
        }
        let mut machine = Machine::new(memory);
        let [weights, panels, sums, products] = OPERANDS;
        let args = [weights, panels, sums, self.rows.len() as u64, self.blocks as u64, products];
        let calls = [(states.bytes(0), &[][..]), (code.bytes(0), &args[..]), (states.bytes(1), &[][..])];
        for (index, (bytes, args)) in calls.into_iter().enumerate() {
            let place = CODE + index as u64 * 0x10_0000;
            machine.call(bytes, place, args).expect("no fault");
        }
        assert!(!machine.has_tiles(), "tiles are left configured");
        machine.memory.region(sums).unwrap().bytes.clone()
    }
}

/// The integers that a format has, in ascending order. Packing refuses the least of int8.
fn levels(format: WeightFormat) -> Vec<i8> {
    let parts = format.parts();
    let codes = 0..=((1u32 << parts.codes.bits()) - 1) as u8;
    let mut levels: Vec<i8> = codes.map(|code| parts.integer(code) as i8).filter(|q| *q > i8::MIN).collect();
    levels.sort();
    levels
}

/// The formats that tiles of bytes serve.
fn of_integers() -> impl Iterator<Item = WeightFormat> {
    let served = WeightFormat::blocked().filter(|format| TileElement::serves(*format));
    served.filter(|format| TileElement::of(*format) == TileElement::I8)
}

#[test]
fn products_of_integers_are_blockdots() {
    for format in of_integers() {
        let (tokens, blocks) = match FIRST.contains(&format) {
            true => (&[1, 2, 9, 16][..], 1..=CHUNK_BLOCKS),
            false => (&[2, 16][..], CHUNK_BLOCKS - 1..=CHUNK_BLOCKS),
        };
        for tokens in tokens {
            blocks.clone().for_each(|blocks| Product::random_integers(format, *tokens, blocks).check());
        }
    }
}

/// The largest sums there are, of either sign, and sums that cancel out; the least and the largest scales,
/// and zeros of either sign.
#[test]
fn extreme_integers_and_scales_on_tiles_of_bytes_keep_their_bits() {
    let scales = [f16::MAX, f16::MIN, f16::from_bits(1), f16::from_f32(-0.5), f16::ZERO, f16::NEG_ZERO];
    for format in of_integers() {
        let levels = levels(format);
        let [least, largest] = [levels[0], levels[levels.len() - 1]];
        let zero = *levels.iter().min_by_key(|q| q.unsigned_abs()).unwrap();
        let every = if FIRST.contains(&format) { 1 } else { 3 };
        for (weight, q) in [(largest, 127), (largest, -128), (least, -128), (zero, -5)] {
            for scale in scales.into_iter().step_by(every) {
                for float in [0.75, -0.0, 1e-45, 3e38].into_iter().step_by(every) {
                    let of = Product::of_integers;
                    of(format, (5, CHUNK_BLOCKS), || weight, || scale, || q, || float).alone().check();
                }
            }
        }
        // Products of a block that cancel out.
        let (mut signs, mut rng) = ([true, false].into_iter().cycle(), Rng::with_seed(9));
        let weight = || if signs.next().unwrap() { largest } else { least };
        let scale = || f16::from_f32(rng.f32() - 0.5);
        Product::of_integers(format, (16, CHUNK_BLOCKS), weight, scale, || 77, || -1e-44).check();
    }
}

#[test]
fn infinite_and_undefined_scales_of_activations_go_where_they_should_on_tiles_of_bytes() {
    for float in [f32::INFINITY, f32::NEG_INFINITY, f32::NAN, f32::MAX, f32::MIN_POSITIVE] {
        let (mut rng, mut weights) = (Rng::with_seed(5), Rng::with_seed(6));
        let product = Product::of_integers(
            WeightFormat::Int8,
            (16, CHUNK_BLOCKS),
            || weights.i8(-127..=127),
            || f16::from_f32(0.01),
            || rng.i8(..),
            || float,
        );
        product.alone().check();
    }
    // The numbers of a row stay in its sums.
    let mut product = Product::random_integers(WeightFormat::Int8, 16, CHUNK_BLOCKS);
    product.rows[7].1[2] = f32::NAN;
    product.rows[15].1[0] = f32::INFINITY;
    product.check();
}

#[test]
fn products_are_blockdots() {
    for tokens in [1, 2, 7, 16] {
        for blocks in 1..CHUNK_BLOCKS {
            Product::random(tokens, blocks, 110..=130).check();
        }
    }
}

/// Whole and half panels, first, last or alone, of chunks as long as they get, of few blocks, and of one.
#[test]
fn panels_of_any_number_of_rows_are_multiplied() {
    for tokens in [1, 7, 8, 9, 15, 16, 17, 24, 25, 31, 32, 33, 40, 48, 70] {
        for blocks in [1, 2, 3, CHUNK_BLOCKS] {
            Product::random(tokens, blocks, 100..=140).check();
            Product::random_integers(WeightFormat::Int8, tokens, blocks).check();
        }
    }
}

/// Every scale that can be packed; and only those whose products tiles would take for zeros.
#[test]
fn small_and_large_scales_keep_their_bits() {
    Product::random(24, CHUNK_BLOCKS, 0..=232).check();
    for scales in [0..=0, 1..=1, 2..=2, 0..=3, 232..=232] {
        for blocks in [1, CHUNK_BLOCKS] {
            Product::random(9, blocks, scales.clone()).alone().check();
        }
    }
    // One such block among others, wherever it is; its products are of the size of theirs, or denormal.
    for at in (0..2 * CHUNK_BLOCKS * TILE_ROWS).step_by(7) {
        let mut scales = (0..).map(|place: usize| if place == at { at as u8 % 2 } else { 3 });
        let mut rng = Rng::with_seed(at as u64);
        let float = if at % 3 == 0 { 1.0 } else { 2f32.powi(100) };
        let product =
            Product::of((3, CHUNK_BLOCKS), || rng.u8(..), || scales.next().unwrap(), || -3, || float);
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
                Product::of((5, CHUNK_BLOCKS), || codes, || scale, || q, || float).alone().check();
            }
        }
    }
}

#[test]
fn infinite_and_undefined_scales_of_activations_go_where_they_should() {
    for float in [f32::INFINITY, f32::NEG_INFINITY, f32::NAN, f32::MAX, f32::MIN_POSITIVE, 1e-45] {
        let (mut rng, mut codes) = (Rng::with_seed(5), Rng::with_seed(6));
        Product::of((16, CHUNK_BLOCKS), || codes.u8(..), || 127, || rng.i8(..), || float).alone().check();
    }
    // The numbers of a row stay in its sums.
    let mut product = Product::random(16, CHUNK_BLOCKS, 120..=130);
    product.rows[7].1[2] = f32::NAN;
    product.rows[15].1[0] = f32::INFINITY;
    product.check();
}
