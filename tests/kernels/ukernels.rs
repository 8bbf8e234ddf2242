//! Micro-kernels against scalar loops written from docs/dev/numerics.md.

use super::{Code, choose, interpret, name, ukernel_code, versions, versions_anywhere};
use fastrand::Rng;
use kernmill_kernels_gen::generate::generate_ukernels;
use kernmill_kernels_gen::ukernel::{MicroKernel, TileOrder};
use kernmill_plan::format;
use kernmill_plan::format::{BLOCK, Q8Row, Scale, TILE_ROWS, WeightFormat};

/// Roughly normal, by a sum of uniforms.
pub(super) fn normal(rng: &mut Rng) -> f32 {
    (0..4).map(|_| rng.f32() - 0.5).sum::<f32>() * 1.7
}

/// A tile of 16 random rows. `extreme` puts the largest magnitudes everywhere.
pub(super) fn random_tile(rng: &mut Rng, format: WeightFormat, k: usize, extreme: bool) -> Vec<u8> {
    let mut tile = vec![0; format.tile(k).bytes()];
    if format.is_stored() {
        let mut blocks = vec![0; TILE_ROWS * k / 2];
        rng.fill(&mut blocks);
        if extreme {
            blocks.iter_mut().for_each(|byte| *byte = if *byte & 1 == 0 { 0x77 } else { 0xff });
        }
        let scales: Vec<u8> =
            (0..TILE_ROWS * k / BLOCK).map(|i| if i == 3 { 0 } else { rng.u8(110..130) }).collect();
        format::mxfp4::pack_tile(k, &blocks, &scales, &mut tile).unwrap();
    } else {
        let rows: Vec<f32> = (0..TILE_ROWS * k)
            .map(|i| {
                let x = normal(rng);
                let x = if extreme { x.signum() } else { x };
                // Whole zero blocks occur; bf16 takes only what it can hold.
                if i / BLOCK == 5 { 0.0 } else { half::bf16::from_f32(x).to_f32() }
            })
            .collect();
        format::pack_f32_tile(format, k, &rows, &mut tile).unwrap();
    }
    tile
}

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
    let q: Vec<i8> = (0..k)
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
    let scales: Vec<f32> = (0..k / BLOCK).map(|_| normal(rng).abs() / 127.0).collect();
    let mut memory = aligned(layout.stride());
    let base = memory.as_mut_ptr().cast::<u8>();
    for (i, value) in q.iter().enumerate() {
        // SAFETY: `memory` has the row's stride in bytes.
        unsafe { base.add(i).cast::<i8>().write(*value) };
    }
    for (b, scale) in scales.iter().enumerate() {
        let sum: i32 = q[b * BLOCK..][..BLOCK].iter().map(|v| i32::from(*v)).sum();
        // SAFETY: as above; the offsets are multiples of 4.
        unsafe {
            base.add(layout.scales() + 4 * b).cast::<f32>().write(*scale);
            base.add(layout.sums() + 4 * b).cast::<i32>().write(sum);
        }
    }
    Q8 { q, scales, memory }
}

/// Stored integer and scale of one element, mxfp4 as twice its value.
pub(super) fn integer(format: WeightFormat, k: usize, tile: &[u8], row: usize, i: usize) -> (i32, f32) {
    let descriptor = format.descriptor();
    let place = TILE_ROWS * (i / BLOCK) + row;
    let scale = match descriptor.scale {
        Scale::E8M0 => format::mxfp4::scale_value(tile[place]),
        Scale::F16 => half::f16::from_le_bytes([tile[2 * place], tile[2 * place + 1]]).to_f32(),
        Scale::None => panic!("{format:?} has no integers"),
    };
    let step = scale * descriptor.decode.block().expect("it has scales").unit();
    let value = format::value(format, k, tile, row, i);
    (if step == 0.0 { 0 } else { (value / step).round() as i32 }, scale)
}

fn blockdot(format: WeightFormat, k: usize, tile: &[u8], row: usize, a: &Q8) -> f32 {
    let mut acc = 0f32;
    for b in 0..k / BLOCK {
        let mut sum = 0;
        let mut w_scale = 0.0;
        for i in b * BLOCK..(b + 1) * BLOCK {
            let (q, scale) = integer(format, k, tile, row, i);
            sum += q * i32::from(a.q[i]);
            w_scale = scale;
        }
        let w_scale = w_scale * format.decode().block().expect("it has scales").unit();
        acc = (sum as f32 * w_scale).mul_add(a.scales[b], acc);
    }
    acc
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

/// On levels that this CPU lacks, in the interpreter.
#[test]
fn q8_dots_match_the_definition_bit_for_bit() {
    for (level, version, interpreted) in versions_anywhere() {
        for format in WeightFormat::ALL.into_iter().filter(|f| f.is_blocked()) {
            // One block, an even and an odd number of them.
            for k in if interpreted { [32, 64, 160] } else { [32, 64, 2880] } {
                for tokens in MicroKernel::dot_tokens(true).iter().copied() {
                    let ukernel = MicroKernel::DotQ8 { format, k, tokens };
                    let Some(code) = ukernel_code(&ukernel, level, version, interpreted) else { continue };
                    for extreme in [false, true] {
                        let mut rng = Rng::with_seed(k as u64 + 7);
                        let tile = random_tile(&mut rng, format, k, extreme);
                        let rows: Vec<Q8> = (0..tokens).map(|_| random_q8(&mut rng, k, extreme)).collect();
                        let out = call_tiles(&code, &tile, &rows, RESULTS, interpreted);
                        for (a, out) in rows.iter().zip(out.chunks(RESULTS)) {
                            let expected: Vec<f32> =
                                (0..TILE_ROWS).map(|r| blockdot(format, k, &tile, r, a)).collect();
                            let what = format!("{} {ukernel} extreme={extreme}", name(level, version));
                            assert_bits(&out[..TILE_ROWS], &expected, &what);
                            assert!(out[TILE_ROWS..].iter().all(|x| x.is_nan()), "{what} wrote past a row");
                        }
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

/// Tiles one behind the other give the results of each, in the micro-kernel's order. On levels that this CPU
/// lacks, in the interpreter.
#[test]
fn dots_of_adjacent_tiles_are_those_of_each_tile() {
    for (level, version, interpreted) in versions_anywhere() {
        for format in WeightFormat::ALL.into_iter().filter(|f| f.is_blocked()) {
            // Fewer blocks than the micro-kernel prefetches ahead and more, whole turns of its loop and not.
            let shapes = [
                (32, 1, TileOrder::Pairs),
                (32, 2, TileOrder::Straight),
                (64, 2, TileOrder::Straight),
                (288, 1, TileOrder::Straight),
                (288, 2, TileOrder::Pairs),
                (2880, 1, TileOrder::Pairs),
                (2880, 2, TileOrder::Pairs),
                (2880, 2, TileOrder::Straight),
            ];
            for (k, tokens, order) in shapes {
                let ukernel = MicroKernel::DotQ8x4 { format, k, tokens, order };
                let Some(code) = ukernel_code(&ukernel, level, version, interpreted) else { continue };
                let mut rng = Rng::with_seed(k as u64 + 11);
                let tiles: Vec<Vec<u8>> = (0..4).map(|_| random_tile(&mut rng, format, k, false)).collect();
                let rows: Vec<Q8> = (0..tokens).map(|_| random_q8(&mut rng, k, false)).collect();
                let out = call_tiles(&code, &tiles.concat(), &rows, TILES_PER_CALL_RESULTS, interpreted);
                let places = match order {
                    TileOrder::Straight => [0, 1, 2, 3],
                    TileOrder::Pairs => [0, 2, 1, 3],
                };
                for (a, out) in rows.iter().zip(out.chunks(TILES_PER_CALL_RESULTS)) {
                    let expected: Vec<f32> = places
                        .iter()
                        .flat_map(|t| (0..TILE_ROWS).map(|r| blockdot(format, k, &tiles[*t], r, a)))
                        .collect();
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
    for (level, version) in versions() {
        for format in WeightFormat::ALL {
            for k in [32, 48, 50, 2880] {
                if format.is_blocked() && k % BLOCK != 0 {
                    continue;
                }
                let ukernels: Vec<MicroKernel> = MicroKernel::dot_tokens(false)
                    .iter()
                    .map(|t| MicroKernel::DotF32 { format, k, tokens: *t })
                    .collect();
                let code = Code::new(generate_ukernels(&ukernels, level, &choose(level, version)).unwrap());
                let mut rng = Rng::with_seed(k as u64);
                let tile = random_tile(&mut rng, format, k, false);
                for (index, tokens) in MicroKernel::dot_tokens(false).iter().enumerate() {
                    let rows: Vec<Vec<f32>> =
                        (0..*tokens).map(|_| (0..k).map(|_| normal(&mut rng)).collect()).collect();
                    let list: Vec<u64> = rows.iter().map(|row| address(row)).collect();
                    let expected: Vec<f32> = rows
                        .iter()
                        .flat_map(|a| {
                            let tile = &tile;
                            (0..TILE_ROWS).map(move |r| {
                                dot4((0..k).map(|i| (format::value(format, k, tile, r, i), a[i])))
                            })
                        })
                        .collect();
                    let what = format!("{} {}", name(level, version), ukernels[index]);
                    assert_bits(&call_dot(&code, index, &tile, &list), &expected, &what);
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
