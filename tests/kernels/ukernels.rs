//! Micro-kernels against scalar loops written from docs/dev/numerics.md.

use super::packed::{Elements, FIRST, columns, normal, random_tile};
use super::{Code, choose, interpret, name, ukernel_code, versions, versions_anywhere};
use fastrand::Rng;
use kernmill_kernels_gen::generate::generate_ukernels;
use kernmill_kernels_gen::ukernel::{MicroKernel, TILES_PER_CALL, TileOrder};
use kernmill_plan::format;
use kernmill_plan::format::{BLOCK, Q8Row, TILE_ROWS, WeightFormat};
use std::collections::BTreeMap;

/// 64 bytes, aligned to as many.
#[derive(Clone, Copy)]
#[repr(C, align(64))]
pub(super) struct Line([u8; 64]);

/// Room for so many bytes, zero.
pub(super) fn aligned(bytes: usize) -> Vec<Line> {
    vec![Line([0; 64]); bytes.div_ceil(64)]
}

fn address<T>(data: &[T]) -> u64 {
    data.as_ptr() as u64
}

/// Numbers and lines as bytes.
pub(super) fn bytes_of<T: Plain>(data: &[T]) -> &[u8] {
    // SAFETY: they have as many bytes, all of them initialised.
    unsafe { std::slice::from_raw_parts(data.as_ptr().cast(), size_of_val(data)) }
}

/// Bytes of plain data as [`bytes_of`] gives them, to be written.
pub(super) fn bytes_of_mut<T: Plain>(data: &mut [T]) -> &mut [u8] {
    // SAFETY: as above, and any bytes are a value.
    unsafe { std::slice::from_raw_parts_mut(data.as_mut_ptr().cast(), size_of_val(data)) }
}

/// Types without padding, of which any bytes are a value.
pub(super) trait Plain {}
impl Plain for f32 {}
impl Plain for u64 {}
impl Plain for Line {}

/// A q8 row, written field by field.
struct Q8 {
    q: Vec<i8>,
    scales: Vec<f32>,
    memory: Vec<Line>,
}

fn random_q8(rng: &mut Rng, k: usize, extreme: bool) -> Q8 {
    let layout = Q8Row { k };
    let mut q: Vec<i8> = (0..k)
        .map(|_| {
            let q = rng.i32(-127..=127);
            match (extreme, q) {
                // Only a row that was not finite holds -128.
                (true, ..-100) => -128,
                (true, ..0) => -127,
                (true, _) => 127,
                _ => q as i8,
            }
        })
        .collect();
    // Sums at their ends.
    for block in q.chunks_mut(BLOCK).filter(|_| extreme && rng.bool()) {
        block.fill(block[0]);
    }
    let scales: Vec<f32> = (0..k / BLOCK).map(|_| normal(rng).abs() / 127.0).collect();
    let mut memory = aligned(layout.stride());
    let bytes = bytes_of_mut(&mut memory);
    for (i, value) in q.iter().enumerate() {
        bytes[i] = value.cast_unsigned();
    }
    for (b, scale) in scales.iter().enumerate() {
        bytes[layout.scales() + 4 * b..][..4].copy_from_slice(&scale.to_le_bytes());
    }
    for (half, q) in q.chunks(BLOCK / 2).enumerate() {
        let sum: i16 = q.iter().map(|q| i16::from(*q)).sum();
        bytes[layout.sums() + 2 * half..][..2].copy_from_slice(&sum.to_le_bytes());
    }
    Q8 { q, scales, memory }
}

/// Adjacent tiles and q8 rows, and for each row its products with the tiles, in their order.
struct Dots {
    tiles: Vec<u8>,
    rows: Vec<Q8>,
    expected: Vec<Vec<f32>>,
}

impl Dots {
    fn random(format: WeightFormat, k: usize, [tiles, tokens]: [usize; 2], extreme: bool) -> Dots {
        let mut rng = Rng::with_seed((k + tiles) as u64 + 6);
        let tiles: Vec<Vec<u8>> = (0..tiles).map(|_| random_tile(&mut rng, format, k, extreme)).collect();
        let rows: Vec<Q8> = (0..tokens).map(|_| random_q8(&mut rng, k, extreme)).collect();
        let elements: Vec<Elements> = tiles.iter().map(|tile| Elements::of(format, k, tile)).collect();
        let of = |a: &Q8| {
            let of_tile = |tile: &Elements| tile.dots([0.0; TILE_ROWS], (&a.q, &a.scales), k / BLOCK);
            elements.iter().flat_map(of_tile).collect()
        };
        let expected = rows.iter().map(of).collect();
        Dots { tiles: tiles.concat(), rows, expected }
    }
}

pub(super) fn dot4(terms: impl Iterator<Item = (f32, f32)>) -> f32 {
    let mut acc = [0f32; 4];
    for (i, (w, a)) in terms.enumerate() {
        acc[i % 4] = w.mul_add(a, acc[i % 4]);
    }
    (acc[0] + acc[1]) + (acc[2] + acc[3])
}

type Dot = unsafe extern "C" fn(*const u8, *const u64, *mut f32, u64);

/// Calls a dot micro-kernel with results 24 floats apart; what lies between must stay untouched.
fn call_dot(code: &Code, index: usize, tile: &[u8], rows: &[u64]) -> Vec<f32> {
    let mut aligned_tile = aligned(tile.len());
    // SAFETY: `aligned_tile` has at least as many bytes.
    unsafe { aligned_tile.as_mut_ptr().cast::<u8>().copy_from_nonoverlapping(tile.as_ptr(), tile.len()) };
    let mut out = vec![f32::NAN; 24 * rows.len()];
    // SAFETY: the micro-kernel reads the tile and the rows and writes 16 floats per row at the given stride.
    unsafe {
        let f: Dot = std::mem::transmute(code.address(index));
        f(aligned_tile.as_ptr().cast(), rows.as_ptr(), out.as_mut_ptr(), 24 * 4);
    }
    assert!(out.chunks(24).all(|row| row[TILE_ROWS..].iter().all(|x| x.is_nan())), "wrote past a row");
    out.chunks(24).flat_map(|row| row[..TILE_ROWS].to_vec()).collect()
}

pub(super) fn assert_bits(actual: &[f32], expected: &[f32], what: &str) {
    for (i, (a, e)) in actual.iter().zip(expected).enumerate() {
        assert_eq!(a.to_bits(), e.to_bits(), "{what}: element {i} is {a}, expected {e}");
    }
}

/// Floats from one token's results to the next, of one tile and of adjacent ones.
const RESULTS: usize = 24;
const TILES_PER_CALL_RESULTS: usize = 80;

/// Columns and tokens to test a format's dots with; fewer `interpreted`.
fn shapes(format: WeightFormat, interpreted: bool) -> Vec<(usize, usize)> {
    let all = MicroKernel::dot_tokens(true);
    let [one, two, many] = columns(format);
    let of = |columns: &[usize], tokens: &[usize]| -> Vec<(usize, usize)> {
        columns.iter().flat_map(|k| tokens.iter().map(|tokens| (*k, *tokens))).collect()
    };
    match (FIRST.contains(&format), interpreted) {
        (true, true) => of(&[one, two, 160], all),
        (false, true) => of(&[one], all),
        (true, false) => [of(&[one, two, many], all), of(&[two], &[5, 6, 7])].concat(),
        (false, false) => [of(&[two], &[1, 2, 3, 4, 5, 6, 7, 8]), of(&[one, many], &[1, 3])].concat(),
    }
}

/// On levels that this CPU lacks, in the interpreter.
#[test]
fn q8_dots_match_the_definition_bit_for_bit() {
    for format in WeightFormat::blocked() {
        let mut cases = BTreeMap::new();
        for (level, version, interpreted) in versions_anywhere() {
            for (k, tokens) in shapes(format, interpreted) {
                let ukernel = MicroKernel::DotQ8 { format, k, tokens };
                let Some(code) = ukernel_code(&ukernel, level, version, interpreted) else { continue };
                for extreme in [false, true] {
                    let case = cases
                        .entry((k, tokens, extreme))
                        .or_insert_with(|| Dots::random(format, k, [1, tokens], extreme));
                    let out = call_tiles(&code, &case.tiles, &case.rows, RESULTS, interpreted);
                    for (expected, out) in case.expected.iter().zip(out.chunks(RESULTS)) {
                        let what = format!("{} {ukernel} extreme={extreme}", name(level, version));
                        assert_bits(&out[..TILE_ROWS], expected, &what);
                        assert!(out[TILE_ROWS..].iter().all(|x| x.is_nan()), "{what} wrote past a row");
                    }
                }
            }
        }
    }
}

/// Calls a dot of q8 rows, a token's results `stride` floats behind those of the one before; `interpreted`:
/// not on this CPU, which may lack the level.
fn call_tiles(code: &Code, tiles: &[u8], rows: &[Q8], stride: usize, interpreted: bool) -> Vec<f32> {
    let list: Vec<u64> = rows.iter().map(|row| address(&row.memory)).collect();
    let mut memory = aligned(tiles.len());
    let mut out = vec![f32::NAN; stride * rows.len()];
    // SAFETY: `memory` has at least as many bytes.
    unsafe { memory.as_mut_ptr().cast::<u8>().copy_from_nonoverlapping(tiles.as_ptr(), tiles.len()) };
    if !interpreted {
        // SAFETY: the micro-kernel reads the tiles and the rows and writes fewer floats than `stride` to each
        // row of results.
        unsafe {
            let f: Dot = std::mem::transmute(code.address(0));
            f(memory.as_ptr().cast(), list.as_ptr(), out.as_mut_ptr(), 4 * stride as u64);
        }
        return out;
    }
    let list_bytes: &[u8] = bytes_of(&list);
    let rows = rows.iter().map(|row| bytes_of(&row.memory));
    let read: Vec<&[u8]> = [bytes_of(&memory), list_bytes].into_iter().chain(rows).collect();
    let args = [address(&memory), address(&list), address(&out), 4 * stride as u64];
    interpret(code, &read, &mut [bytes_of_mut(&mut out)], &args);
    out
}

/// Columns, tokens and orders to test a format's dots of adjacent tiles with: fewer blocks than are
/// prefetched ahead and more, whole turns of the loop and not.
fn adjacent_shapes(format: WeightFormat, interpreted: bool) -> Vec<(usize, usize, TileOrder)> {
    use TileOrder::{Pairs, Straight};
    let is_super = format.parts().is_super();
    match (FIRST.contains(&format), interpreted) {
        (true, _) => vec![
            (32, 1, Pairs),
            (32, 2, Straight),
            (64, 2, Straight),
            (288, 1, Straight),
            (288, 2, Pairs),
            (2880, 1, Pairs),
            (2880, 2, Pairs),
            (2880, 2, Straight),
        ],
        (false, true) if is_super => vec![(256, 1, Pairs), (256, 2, Straight)],
        (false, true) => vec![(32, 2, Straight), (96, 1, Pairs)],
        (false, false) if is_super => {
            vec![(256, 1, Straight), (256, 2, Pairs), (512, 2, Straight), (2816, 1, Pairs), (2816, 2, Pairs)]
        }
        (false, false) => {
            vec![(32, 1, Pairs), (64, 2, Straight), (288, 1, Straight), (288, 2, Pairs), (2880, 2, Pairs)]
        }
    }
}

/// Tiles one behind the other give the results of each, in the micro-kernel's order. On levels that this CPU
/// lacks, in the interpreter.
#[test]
fn dots_of_adjacent_tiles_are_those_of_each_tile() {
    for format in WeightFormat::blocked() {
        let mut cases = BTreeMap::new();
        for (level, version, interpreted) in versions_anywhere() {
            for (k, tokens, order) in adjacent_shapes(format, interpreted) {
                let ukernel = MicroKernel::DotQ8x4 { format, k, tokens, order };
                let Some(code) = ukernel_code(&ukernel, level, version, interpreted) else { continue };
                // Of either kind over all shapes.
                let extreme = order == TileOrder::Straight;
                let case = cases
                    .entry((k, tokens, extreme))
                    .or_insert_with(|| Dots::random(format, k, [TILES_PER_CALL, tokens], extreme));
                let out = call_tiles(&code, &case.tiles, &case.rows, TILES_PER_CALL_RESULTS, interpreted);
                let places = match order {
                    TileOrder::Straight => [0, 1, 2, 3],
                    TileOrder::Pairs => [0, 2, 1, 3],
                };
                for (expected, out) in case.expected.iter().zip(out.chunks(TILES_PER_CALL_RESULTS)) {
                    let expected = places.map(|tile| &expected[tile * TILE_ROWS..][..TILE_ROWS]).concat();
                    let (written, rest) = out.split_at(expected.len());
                    assert_bits(written, &expected, &format!("{} {ukernel}", name(level, version)));
                    assert!(rest.iter().all(|x| x.is_nan()), "{ukernel} wrote past a row");
                }
            }
        }
    }
}

#[test]
fn f32_dots_match_the_definition_bit_for_bit() {
    let counts = MicroKernel::dot_tokens(false);
    let most = counts[0];
    for format in WeightFormat::ALL {
        let blocked = format.is_blocked();
        for k in if blocked { columns(format).to_vec() } else { vec![32, 48, 50, 2880] } {
            let mut rng = Rng::with_seed(k as u64);
            // The longest rows of everyday numbers, others of extreme ones.
            let tile = random_tile(&mut rng, format, k, blocked && k < 1000);
            let rows: Vec<Vec<f32>> = (0..most).map(|_| (0..k).map(|_| normal(&mut rng)).collect()).collect();
            let list: Vec<u64> = rows.iter().map(|row| address(row)).collect();
            let value = |row: usize, i: usize| format::value(format, k, &tile, row, i);
            let product = |a: &[f32], row: usize| dot4((0..k).map(|i| (value(row, i), a[i])));
            let expected: Vec<f32> =
                rows.iter().flat_map(|a| (0..TILE_ROWS).map(|row| product(a, row))).collect();
            for (level, version) in versions() {
                let ukernels: Vec<MicroKernel> =
                    counts.iter().map(|tokens| MicroKernel::DotF32 { format, k, tokens: *tokens }).collect();
                let code = Code::new(generate_ukernels(&ukernels, level, &choose(level, version)).unwrap());
                for (index, tokens) in counts.iter().enumerate() {
                    let what = format!("{} {}", name(level, version), ukernels[index]);
                    let out = call_dot(&code, index, &tile, &list[..*tokens]);
                    assert_bits(&out, &expected[..tokens * TILE_ROWS], &what);
                }
            }
        }
    }
}

type AddDot = unsafe extern "C" fn(*const u8, *const f32, u64, *mut f32, u64, u64);

#[test]
fn added_dots_match_the_definition_bit_for_bit() {
    for (level, version) in versions() {
        for format in [WeightFormat::Bf16, WeightFormat::F32] {
            for tokens in [1, 6] {
                let ukernel = MicroKernel::AddDot { format, tokens };
                let code = Code::new(
                    generate_ukernels(std::slice::from_ref(&ukernel), level, &choose(level, version))
                        .unwrap(),
                );
                for k in [4, 8, 20, 256, 2880] {
                    let mut rng = Rng::with_seed(k as u64 + 3);
                    let tile = random_tile(&mut rng, format, k, false);
                    let x: Vec<f32> = (0..tokens * (k + 4)).map(|_| normal(&mut rng)).collect();
                    let before: Vec<f32> = (0..24 * tokens).map(|_| normal(&mut rng)).collect();
                    let mut out = before.clone();
                    // SAFETY: the tile has k columns, x `tokens` rows of k at that stride, out as many of 16.
                    unsafe {
                        let f: AddDot = std::mem::transmute(code.address(0));
                        f(tile.as_ptr(), x.as_ptr(), (k as u64 + 4) * 4, out.as_mut_ptr(), 24 * 4, k as u64);
                    }
                    let expected: Vec<f32> = (0..24 * tokens)
                        .map(|at| match (at / 24, at % 24) {
                            (t, row) if row < TILE_ROWS => {
                                let x = &x[t * (k + 4)..];
                                let terms = (0..k).map(|i| (format::value(format, k, &tile, row, i), x[i]));
                                before[at] + dot4(terms)
                            }
                            _ => before[at],
                        })
                        .collect();
                    assert_bits(&out, &expected, &format!("{} {ukernel} k = {k}", name(level, version)));
                }
            }
        }
    }
}
