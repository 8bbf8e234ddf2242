//! Two tiles times some rows in a strip: its operands, made of a definition, and checks of every version
//! against "blockdot" of docs/dev/numerics.md.

use super::machine::{Machine, Memory, Region};
use super::{Code, Tiles, choose, name, versions};
use fastrand::Rng;
use half::{bf16, f16};
use kernmill_kernels_gen::generate::generate_ukernels;
use kernmill_kernels_gen::ukernel::MicroKernel;
use kernmill_kernels_gen::ukernel::gemm_tiles::{
    PANEL_ROWS, PRODUCT_BYTES, PRODUCTS, Strip, TileElement, TileShapes,
};
use kernmill_plan::format;
use kernmill_plan::format::{BLOCK, LINE, TILE_ROWS, WeightFormat};
use kernmill_plan::target::Level;

/// Where the interpreted code lies, and the micro-kernel's operands: those that are read come first.
const CODE: u64 = 0x40_0000;
const OPERANDS: [u64; 6] = [0x10_0000, 0x18_0000, 0x28_0000, 0x30_0000, 0x38_0000, 0x39_0000];
/// Bytes between the sums of tokens, and those of two tiles.
const STRIDE: usize = 200;
const GAP: usize = 100;
/// The filling that no micro-kernel may change.
const FILL: u8 = 0xee;

/// Two tiles, some rows, and the sums that the product is added to.
#[derive(Clone)]
pub struct Product {
    format: WeightFormat,
    blocks: usize,
    tiles: [PackedTile; 2],
    /// By token: integers, and a scale per block.
    pub rows: Vec<(Vec<i8>, Vec<f32>)>,
    /// By token and tile: 16.
    sums: Vec<f32>,
    /// Blocks of the tiles that are decoded meanwhile, as if they were the next chunk.
    next: usize,
}

/// A strip: its arguments are addresses and numbers.
type StripFunction = unsafe extern "C" fn(u64, u64, u64, u64, u64, u64, u64, u64, u64, u64, u64, u64);

#[derive(Clone)]
pub struct PackedTile {
    bytes: Vec<u8>,
    /// Integers by row, and scales of the rows by block, in formats that have both.
    integers: Vec<Vec<i8>>,
    scales: Vec<[f16; TILE_ROWS]>,
}

impl Product {
    /// `code` gives the codes of two weights, `scale` the byte of a scale, `row` an integer.
    pub fn of(
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
        Product { format: WeightFormat::Mxfp4, blocks, tiles, rows, sums, next: blocks }
    }

    /// One in a format that stores codes of integers, and f16 scales: `weight` gives an integer, `scale` a
    /// scale, `row` an integer of a row.
    pub fn of_integers(
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
        Product { format, blocks, tiles, rows, sums, next: blocks }
    }

    pub fn random_integers(format: WeightFormat, tokens: usize, blocks: usize) -> Product {
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

    pub fn random(tokens: usize, blocks: usize, scales: std::ops::RangeInclusive<u8>) -> Product {
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
    pub fn alone(mut self) -> Product {
        self.sums.fill(0.0);
        self
    }

    /// With so many blocks of the tiles decoded meanwhile.
    pub fn decoding(self, next: usize) -> Product {
        Product { next, ..self }
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
    pub fn check(&self) {
        let decoded = self.decoded();
        (1..=2).for_each(|tiles| self.check_strip(tiles, &decoded));
    }

    fn code(&self, tiles: usize, level: Level, version: usize) -> Code {
        let strip = [MicroKernel::GemmStrip(self.strip(tiles))];
        Code::new(generate_ukernels(&strip, level, &choose(level, version)).unwrap())
    }

    /// Both tiles, decoded without any rows to multiply.
    fn decoded(&self) -> Vec<u8> {
        let alone = Product { rows: Vec::new(), sums: Vec::new(), next: self.blocks, ..self.clone() };
        let mut first: Option<Vec<u8>> = None;
        let mut same = |[_, decoded]: [Vec<u8>; 2], what: &str| {
            assert!(*first.get_or_insert_with(|| decoded.clone()) == decoded, "{what}: decodes otherwise");
        };
        for (level, version) in versions() {
            let code = self.code(2, level, version);
            same(alone.run(2, &code, &[], |call| call()), &name(level, version));
        }
        let code = self.code(2, Level::Amx, 0);
        same(alone.interpreted(2, &code, &[]), "interpreted amx");
        // Without rows no tiles are used.
        if Level::V4.missing().is_empty() {
            same(alone.run(2, &code, &[], |call| call()), "amx");
        }
        first.expect("a version")
    }

    fn check_strip(&self, tiles: usize, decoded: &[u8]) {
        let (tokens, blocks, next) = (self.rows.len(), self.blocks, self.next);
        let compare = |[sums, out]: [Vec<u8>; 2], version: &str| {
            let what = format!("{version}, {tiles} tiles, {tokens} tokens, {blocks} blocks, next {next}");
            self.compare(tiles, sums, &what);
            let (tile, bytes) = (self.element().decoded_tile(), next * self.element().decoded_block());
            for (number, out) in out.chunks(tile).enumerate() {
                let written = if number < tiles { bytes } else { 0 };
                assert!(out[..written] == decoded[number * tile..][..written], "{what}: decodes otherwise");
                assert!(out[written..].iter().all(|byte| *byte == FILL), "{what}: decodes more");
            }
        };
        for (level, version) in versions() {
            let code = self.code(tiles, level, version);
            compare(self.run(tiles, &code, decoded, |call| call()), &name(level, version));
        }
        let code = self.code(tiles, Level::Amx, 0);
        if let Some(on) = Tiles::of_host(TileShapes::Strip(self.element())) {
            compare(self.run(tiles, &code, decoded, |call| on.around(call)), "amx");
        }
        compare(self.interpreted(tiles, &code, decoded), "interpreted amx");
    }

    /// Packed tiles and panels, then what is written: sums, what is decoded, and room for products.
    fn operands(&self, tiles: usize) -> [Vec<u8>; 5] {
        let packed: Vec<u8> = self.tiles.iter().flat_map(|tile| tile.bytes.clone()).collect();
        let out = vec![FILL; 2 * self.element().decoded_tile()];
        [packed, self.panels(), self.sums(tiles), out, vec![0xff; PRODUCTS * PRODUCT_BYTES]]
    }

    /// Arguments for decoded tiles and operands that lie there.
    fn args(&self, [decoded, packed, panels, sums, out, products]: [u64; 6]) -> [u64; 12] {
        let [rows, blocks, next] = [self.rows.len(), self.blocks, self.next].map(|number| number as u64);
        let apart = self.tiles[0].bytes.len() as u64;
        let data = packed + self.format.tile(self.blocks * BLOCK).scale_bytes as u64;
        [decoded, panels, sums, rows, blocks, products, packed, data, out, next, apart, apart]
    }

    /// The sums, and what was decoded.
    fn run(
        &self,
        tiles: usize,
        code: &Code,
        decoded: &[u8],
        around: impl Fn(&mut dyn FnMut()),
    ) -> [Vec<u8>; 2] {
        let [packed, panels, mut sums, mut out, mut products] = self.operands(tiles);
        let [sums_at, out_at, products_at] =
            [&mut sums, &mut out, &mut products].map(|bytes| bytes.as_mut_ptr() as u64);
        let read = [decoded, &packed, &panels].map(|bytes| bytes.as_ptr() as u64);
        let [a, b, c, d, e, f, g, h, i, j, k, l] =
            self.args([read[0], read[1], read[2], sums_at, out_at, products_at]);
        around(&mut || {
            // SAFETY: the memory is what the contract asks for.
            unsafe {
                let strip: StripFunction = std::mem::transmute(code.address(0));
                strip(a, b, c, d, e, f, g, h, i, j, k, l);
            }
        });
        [sums, out]
    }

    fn interpreted(&self, tiles: usize, code: &Code, decoded: &[u8]) -> [Vec<u8>; 2] {
        let states = [MicroKernel::TilesOn(TileShapes::Strip(self.element())), MicroKernel::TilesOff];
        let states = Code::new(generate_ukernels(&states, Level::Amx, &choose(Level::Amx, 0)).unwrap());
        let mut memory = Memory::default();
        let operands = [decoded.to_vec()].into_iter().chain(self.operands(tiles));
        for (index, (address, bytes)) in OPERANDS.into_iter().zip(operands).enumerate() {
            memory.add(Region { address, bytes, writable: index >= 3 });
        }
        let mut machine = Machine::new(memory);
        let args = self.args(OPERANDS);
        let calls = [(states.bytes(0), &[][..]), (code.bytes(0), &args[..]), (states.bytes(1), &[][..])];
        for (index, (bytes, args)) in calls.into_iter().enumerate() {
            let place = CODE + index as u64 * 0x10_0000;
            machine.call(bytes, place, args).expect("no fault");
        }
        assert!(!machine.has_tiles(), "tiles are left configured");
        [3, 4].map(|operand| {
            let region = machine.memory.region(OPERANDS[operand]);
            region.map_or_else(Vec::new, |region| region.bytes.clone())
        })
    }
}

/// The integers that a format has, in ascending order. Packing refuses the least of int8.
pub fn levels(format: WeightFormat) -> Vec<i8> {
    let parts = format.parts();
    let codes = 0..=((1u32 << parts.codes.bits()) - 1) as u8;
    let mut levels: Vec<i8> = codes.map(|code| parts.integer(code) as i8).filter(|q| *q > i8::MIN).collect();
    levels.sort();
    levels
}
