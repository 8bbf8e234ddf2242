//! Attention's micro-kernels against scalar loops written from docs/dev/numerics.md.

use super::packed::normal;
use super::ukernels::{assert_bits, dot4};
use super::{Code, choose, name, versions};
use fastrand::Rng;
use kernmill_kernels_gen::generate::generate_ukernels;
use kernmill_kernels_gen::ukernel::{
    BLOCKS_AHEAD, MicroKernel, QueryHeads, QueryLayout, SCORE_STRIDE, ValueScratch,
};
use kernmill_plan::kv::{BLOCK_TOKENS, KvElements, KvFormat, KvPlane, store_plane, to_int8};
use kernmill_plan::numeric::{EXP_MAX, EXP_MIN, EXP_POLY, LN2_HI, LN2_LO, LOG2E, ROUND_MAGIC};

/// Floats between the scores of two heads.
const STRIDE: usize = SCORE_STRIDE / 4;
/// Head sizes and query heads of a KV head.
const SHAPES: [(usize, usize); 8] = [(32, 1), (64, 8), (64, 3), (16, 2), (128, 4), (64, 5), (80, 6), (96, 7)];

/// A plane of a head: its bytes, and what its tokens' elements are.
struct Plane {
    bytes: Vec<u8>,
    tokens: Vec<KvElements>,
}

/// Planes of random values; one of the tokens has none but zeros.
fn random_planes(
    rng: &mut Rng,
    elem: KvFormat,
    plane: KvPlane,
    head_dim: usize,
    blocks: usize,
) -> Vec<Plane> {
    let mut head = |token: usize| {
        let element = |d: usize| match (token, d % 97) {
            (13, _) => 0.0,
            (_, 0) => 3e-6,
            _ => normal(rng),
        };
        elem.round(&(0..head_dim).map(element).collect::<Vec<_>>())
    };
    let mut block = || {
        let tokens: Vec<KvElements> = (0..BLOCK_TOKENS).map(&mut head).collect();
        Plane { bytes: store_plane(elem, plane, head_dim, &tokens), tokens }
    };
    (0..blocks).map(|_| block()).collect()
}

/// Pointers to each plane, and as many behind them as micro-kernels may prefetch from.
fn list(planes: &[Plane]) -> Vec<*const u8> {
    let pointers = planes.iter().map(|plane| plane.bytes.as_ptr());
    pointers.chain(std::iter::repeat_n(std::ptr::null(), BLOCKS_AHEAD)).collect()
}

/// Queries of one token or, where the group is small, of four.
fn several(head_dim: usize, group: usize) -> QueryHeads {
    let tokens = if group < 4 { 4 } else { 1 };
    QueryHeads { group, tokens, stride: (group + 1) * head_dim * 4 }
}

/// Floats from the first query to another one's, and how many there are in all, in the kernels of a format.
fn query_rows(elem: KvFormat, head_dim: usize, group: usize) -> (impl Fn(usize) -> usize, usize) {
    let queries = if elem.is_scaled() { QueryHeads::of_token(group) } else { several(head_dim, group) };
    (move |row| queries.place(row, head_dim) / 4, queries.rows())
}

/// The micro-kernels of a format: of scores, of values, and what rounds queries and weights, if they are
/// rounded.
fn ukernels(elem: KvFormat, head_dim: usize, group: usize, scale: f32) -> Vec<MicroKernel> {
    let scale = scale.to_bits();
    match elem.words() {
        None => vec![
            MicroKernel::Score { elem, head_dim, queries: several(head_dim, group), scale },
            MicroKernel::Value { elem, head_dim, queries: several(head_dim, group) },
        ],
        Some(words) => vec![
            MicroKernel::IntegerScore { elem, head_dim, group },
            MicroKernel::IntegerValue { elem, head_dim, group, stride: group * head_dim * 4 },
            MicroKernel::Query { head_dim, group, zero: words.zero, scale },
            MicroKernel::Weights { group },
        ],
    }
}

#[test]
fn scores_and_values_match_the_definition_bit_for_bit() {
    for (level, version) in versions() {
        for elem in KvFormat::ALL {
            let multiple = elem.descriptor().head_multiple;
            for (head_dim, group) in SHAPES.into_iter().filter(|(d, _)| d.is_multiple_of(multiple)) {
                let scale = 1.0 / (head_dim as f32).sqrt();
                let ukernels = ukernels(elem, head_dim, group, scale);
                let code = Code::new(generate_ukernels(&ukernels, level, &choose(level, version)).unwrap());
                let what = format!("{} {}", name(level, version), ukernels[0]);
                for blocks in [1, 2, 3, 8] {
                    let mut rng = Rng::with_seed((head_dim + blocks) as u64);
                    let scores = check_score(&code, &mut rng, elem, [head_dim, group, blocks], scale, &what);
                    let check = if elem.is_scaled() { check_integer_value } else { check_value };
                    check(&code, &mut rng, elem, [head_dim, group, blocks], &scores, &what);
                }
            }
        }
    }
}

fn check_score(
    code: &Code,
    rng: &mut Rng,
    elem: KvFormat,
    [head_dim, group, blocks]: [usize; 3],
    scale: f32,
    what: &str,
) -> Vec<f32> {
    let planes = random_planes(rng, elem, KvPlane::K, head_dim, blocks);
    let list = list(&planes);
    let (place, rows) = query_rows(elem, head_dim, group);
    let q: Vec<f32> = (0..place(rows - 1) + head_dim).map(|_| normal(rng)).collect();
    let mut rounded = vec![0u8; QueryLayout::new(head_dim, group).bytes];
    let mut scores = vec![7.0; rows * STRIDE];
    // SAFETY: query reads the queries and writes as many bytes as its layout has; score reads the K planes
    // and what query has written, or the queries themselves, and writes 16 floats per head and block.
    unsafe {
        let f: unsafe extern "C" fn(*const *const u8, *const u8, *mut f32, u64) =
            std::mem::transmute(code.address(0));
        let mut queries = q.as_ptr().cast();
        if elem.is_scaled() {
            let round: unsafe extern "C" fn(*const f32, *mut u8) = std::mem::transmute(code.address(2));
            round(q.as_ptr(), rounded.as_mut_ptr());
            queries = rounded.as_ptr();
        }
        f(list.as_ptr(), queries, scores.as_mut_ptr(), blocks as u64);
    }
    let mut expected = vec![7.0; rows * STRIDE];
    for g in 0..rows {
        let q = &q[place(g)..][..head_dim];
        let (integers, query_scale) = to_int8(q);
        for t in 0..blocks * BLOCK_TOKENS {
            let key = &planes[t / BLOCK_TOKENS].tokens[t % BLOCK_TOKENS];
            expected[g * STRIDE + t] = match elem.is_scaled() {
                true => {
                    let products = integers.iter().zip(&key.values).map(|(q, k)| i64::from(*q) * *k as i64);
                    products.sum::<i64>() as f32 * key.scale * (query_scale * scale)
                }
                false => dot4(key.values.iter().copied().zip(q.iter().copied())) * scale,
            };
        }
    }
    assert_bits(&scores, &expected, &format!("{what} {blocks} blocks"));
    scores
}

fn check_value(
    code: &Code,
    rng: &mut Rng,
    elem: KvFormat,
    [head_dim, group, blocks]: [usize; 3],
    weights: &[f32],
    what: &str,
) {
    let planes = random_planes(rng, elem, KvPlane::V, head_dim, blocks);
    let list = list(&planes);
    let (place, rows) = query_rows(elem, head_dim, group);
    let before = (blocks - 1) * BLOCK_TOKENS;
    for (first, end) in [(0, 16), (3, 7), (15, 16), (5, 6), (8, 9)] {
        let end = before + end;
        let mut out: Vec<f32> = (0..place(rows - 1) + head_dim).map(|_| normal(rng)).collect();
        let mut expected = out.clone();
        let token = |t: usize| &planes[t / BLOCK_TOKENS].tokens[t % BLOCK_TOKENS];
        for (g, t) in (0..rows).flat_map(|g| (first..end).map(move |t| (g, t))) {
            for (o, value) in expected[place(g)..].iter_mut().zip(&token(t).values).take(head_dim) {
                *o = weights[g * STRIDE + t].mul_add(*value, *o);
            }
        }
        // SAFETY: value reads the V planes and the weights, and updates `head_dim` floats of each query.
        unsafe {
            let f: unsafe extern "C" fn(*const *const u8, *const f32, *mut f32, u64, u64, u64) =
                std::mem::transmute(code.address(1));
            let (v, p, o) = (list.as_ptr(), weights.as_ptr(), out.as_mut_ptr());
            f(v, p, o, blocks as u64, first as u64, end as u64);
        }
        assert_bits(&out, &expected, &format!("{what} tokens {first}..{end}"));
    }
}

/// Weights are made of scores, by a separate loop; then integers are added up, for two tokens that have the
/// same.
fn check_integer_value(
    code: &Code,
    rng: &mut Rng,
    elem: KvFormat,
    [head_dim, group, blocks]: [usize; 3],
    scores: &[f32],
    what: &str,
) {
    let mut planes = random_planes(rng, elem, KvPlane::V, head_dim, blocks);
    let tokens = blocks * BLOCK_TOKENS;
    let most = f32::INFINITY;
    for (size, first, end) in
        [(1.0, 0, tokens), (1e-12, 3, tokens - 2), (1e-37, tokens / 2, tokens), (0.0, 5, 9), (most, 0, 8)]
    {
        for (plane, number) in planes.iter_mut().zip(0..) {
            for (t, token) in plane.tokens.iter_mut().enumerate() {
                // Out of view a scale may be anything.
                let inside = (first..end).contains(&(number * BLOCK_TOKENS + t));
                token.scale = if inside { token.scale * size } else { f32::NAN };
                plane.bytes[4 * t..][..4].copy_from_slice(&token.scale.to_le_bytes());
            }
        }
        let list = list(&planes);
        let token = |t: usize| &planes[t / BLOCK_TOKENS].tokens[t % BLOCK_TOKENS];
        let mut row: Vec<f32> = scores.to_vec();
        row.iter_mut().skip(3).step_by(5).for_each(|score| *score = f32::NEG_INFINITY);
        let (mut own, mut expected_own) = (vec![7.0; 3 * group], vec![0.0; 3 * group]);
        let mut weights = vec![0i32; group * tokens];
        for (g, (row, weights)) in row.chunks(STRIDE).zip(weights.chunks_mut(tokens)).enumerate() {
            let (largest, sum, powers) = softmax(row, first, end);
            let weight = |t: usize| if powers[t] == 0.0 { 0.0 } else { powers[t] * token(t).scale };
            (expected_own[g], expected_own[group + g]) = (largest, sum);
            let largest = (first..end).map(|t| weight(t).to_bits() & 0x7fff_ffff).max().unwrap();
            let largest = f32::from_bits(largest);
            let inverse = if largest < 2f32.powi(-100) { 0.0 } else { 16383.0 / largest };
            for (t, own) in (first..end).zip(&mut weights[first..end]) {
                let rounded = (weight(t) * inverse).round_ties_even();
                *own = if rounded.is_nan() { -16383 } else { rounded as i32 };
            }
            expected_own[2 * group + g] = largest / 16383.0;
        }
        let mut sums: Vec<i32> = (0..2 * group * head_dim).map(|_| rng.i32(-1_000_000..1_000_000)).collect();
        let mut expected = sums.clone();
        for (g, t) in (0..2 * group).flat_map(|g| (0..tokens).map(move |t| (g, t))) {
            for (sum, value) in expected[g * head_dim..].iter_mut().zip(&token(t).values).take(head_dim) {
                *sum += weights[g % group * tokens + t] * *value as i32;
            }
        }
        let mut scratch = vec![7u8; ValueScratch::new(group).bytes];
        // SAFETY: weights reads scales of the V planes, rounds rows and writes three numbers for each; value
        // reads planes and both rows, and updates `group * head_dim` integers of each token and its scratch.
        unsafe {
            let weigh: unsafe extern "C" fn(*const *const u8, *mut f32, u64, u64, u64, *mut f32) =
                std::mem::transmute(code.address(3));
            let (p, range) = (row.as_mut_ptr(), [first as u64, end as u64]);
            weigh(list.as_ptr(), p, blocks as u64, range[0], range[1], own.as_mut_ptr());
            let add: unsafe extern "C" fn(*const *const u8, *const f32, *mut i32, u64, u64, *mut u8) =
                std::mem::transmute(code.address(1));
            let (rows, meanwhile) = (row.repeat(2), scratch.as_mut_ptr());
            add(list.as_ptr(), rows.as_ptr(), sums.as_mut_ptr(), blocks as u64, 2, meanwhile);
        }
        let what = format!("{what} {blocks} blocks, tokens {first}..{end}, scales times {size}");
        // The number that a factor of NaN is multiplied with does not matter.
        let numbers = |g: &usize| !expected_own[2 * group + *g].is_nan();
        for g in (0..group).filter(numbers) {
            let (row, own) = (&row[g * STRIDE..], &weights[g * tokens..][..tokens]);
            let words = row.iter().flat_map(|e| [e.to_bits() as i16, (e.to_bits() >> 16) as i16]);
            let found: Vec<i32> = words.take(tokens).map(i32::from).collect();
            assert_eq!(found, own, "{what}");
            for g in [g, group + g] {
                let head = g * head_dim..(g + 1) * head_dim;
                assert_eq!(sums[head.clone()], expected[head], "{what}");
            }
        }
        assert_bits(&own, &expected_own, &what);
    }
}

/// The largest score of those in view, the sum of their exponentials, and these.
fn softmax(row: &[f32], first: usize, end: usize) -> (f32, f32, Vec<f32>) {
    let mut lanes = [f32::NEG_INFINITY; BLOCK_TOKENS];
    (first..end).for_each(|c| lanes[c % 16] = max(row[c], lanes[c % 16]));
    let largest = tree(lanes, |low, high| max(high, low));
    let (mut powers, mut lanes) = (vec![0.0; row.len()], [0.0; BLOCK_TOKENS]);
    for column in first..end {
        powers[column] = exp(row[column] - largest);
        lanes[column % 16] += powers[column];
    }
    (largest, tree(lanes, |low, high| low + high), powers)
}

fn exp(x: f32) -> f32 {
    let clamped = if x < EXP_MAX { x } else { EXP_MAX };
    let t = clamped.mul_add(LOG2E, ROUND_MAGIC);
    let n = t - ROUND_MAGIC;
    let r = n.mul_add(-LN2_LO, n.mul_add(-LN2_HI, clamped));
    let p = EXP_POLY[1..].iter().fold(EXP_POLY[0], |p, c| p.mul_add(r, *c));
    let value = f32::from_bits(p.to_bits().wrapping_add(t.to_bits() << 23));
    if x < EXP_MIN { 0.0 } else { value }
}

fn max(a: f32, b: f32) -> f32 {
    if a > b { a } else { b }
}

/// The tree over 16 lanes.
fn tree(mut lanes: [f32; BLOCK_TOKENS], f: impl Fn(f32, f32) -> f32) -> f32 {
    for distance in [8, 4, 2, 1] {
        for i in 0..distance {
            lanes[i] = f(lanes[i], lanes[i + distance]);
        }
    }
    lanes[0]
}

#[test]
fn softmax_matches_the_definition_bit_for_bit() {
    type Softmax = unsafe extern "C" fn(*mut f32, u64, u64, u64, *mut f32, *mut f32);
    for (level, version) in versions() {
        let code =
            Code::new(generate_ukernels(&[MicroKernel::Softmax], level, &choose(level, version)).unwrap());
        // SAFETY: symbol 0 is a softmax micro-kernel.
        let ukernel: Softmax = unsafe { std::mem::transmute(code.address(0)) };
        let mut rng = Rng::with_seed(5);
        for (first, end) in
            [(0, 16), (3, 7), (15, 16), (0, 1), (15, 17), (1, 33), (7, 63), (0, 64), (0, 1024), (9, 1010)]
        {
            for spread in [0.0, 1.0, 30.0, 200.0] {
                let blocks = usize::div_ceil(end, BLOCK_TOKENS);
                // A score out of view may be anything; a NaN in view is no maximum.
                let mut row: Vec<f32> =
                    (0..blocks * BLOCK_TOKENS).map(|_| normal(&mut rng) * spread).collect();
                for (column, score) in row.iter_mut().enumerate() {
                    match column {
                        _ if column < first => *score = f32::NAN,
                        _ if column >= end => *score = f32::INFINITY,
                        11 | 500 => *score = if spread == 200.0 { f32::NAN } else { f32::NEG_INFINITY },
                        17 => *score = -0.0,
                        _ => {}
                    }
                }
                let (largest, expected_sum, expected) = softmax(&row, first, end);
                let (mut found_max, mut sum) = (9.0, 9.0);
                // SAFETY: the row has as many blocks, and max and sum are one float each.
                unsafe {
                    let out = (&raw mut found_max, &raw mut sum);
                    ukernel(row.as_mut_ptr(), blocks as u64, first as u64, end as u64, out.0, out.1);
                }
                let what = format!("{} softmax {first}..{end} spread {spread}", name(level, version));
                assert_bits(&row, &expected, &what);
                assert_bits(&[found_max, sum], &[largest, expected_sum], &what);
            }
        }
    }
}

#[test]
fn combining_matches_the_definition_bit_for_bit() {
    type Combine = unsafe extern "C" fn(*const f32, *const f32, *const f32, *const f32, *mut f32, u64);
    for (level, version) in versions() {
        for ((head_dim, group), with_sinks) in SHAPES.into_iter().flat_map(|s| [(s, false), (s, true)]) {
            let ukernel = MicroKernel::Combine { head_dim, group, sinks: with_sinks };
            let code = Code::new(
                generate_ukernels(std::slice::from_ref(&ukernel), level, &choose(level, version)).unwrap(),
            );
            // SAFETY: symbol 0 is a combining micro-kernel.
            let combine: Combine = unsafe { std::mem::transmute(code.address(0)) };
            let mut rng = Rng::with_seed(head_dim as u64);
            for segments in [1, 2, 5] {
                let mut random =
                    |n: usize, scale: f32| -> Vec<f32> { (0..n).map(|_| normal(&mut rng) * scale).collect() };
                let values = random(segments * group * head_dim, 10.0);
                let maxima = random(segments * group, 20.0);
                let sums: Vec<f32> = random(segments * group, 10.0).iter().map(|x| x.abs() + 1.0).collect();
                let sinks = random(group, 20.0);
                let mut out = vec![0.0; group * head_dim];
                let sink_pointer = if with_sinks { sinks.as_ptr() } else { std::ptr::null() };
                // SAFETY: every operand has the size of the contract.
                unsafe {
                    let [values, maxima, sums] = [&values, &maxima, &sums].map(|list| list.as_ptr());
                    combine(values, maxima, sums, sink_pointer, out.as_mut_ptr(), segments as u64);
                }
                let mut expected = vec![0.0; group * head_dim];
                for g in 0..group {
                    let own = |segment: usize| segment * group + g;
                    let start = if with_sinks { sinks[g] } else { f32::NEG_INFINITY };
                    let largest = (0..segments).fold(start, |m, s| max(maxima[own(s)], m));
                    let factor = |segment: usize| exp(maxima[own(segment)] - largest);
                    let total = (0..segments).fold(0f32, |l, s| factor(s).mul_add(sums[own(s)], l));
                    let total = if with_sinks { total + exp(sinks[g] - largest) } else { total };
                    for d in 0..head_dim {
                        let value = |s: usize| values[own(s) * head_dim + d];
                        let o = (0..segments).fold(0f32, |o, s| factor(s).mul_add(value(s), o));
                        expected[g * head_dim + d] = o / total;
                    }
                }
                assert_bits(&out, &expected, &format!("{} {ukernel} {segments}", name(level, version)));
            }
        }
    }
}
