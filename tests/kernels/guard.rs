//! Every version of every micro-kernel with each operand between pages that fault, at exactly the sizes of
//! its contract.
//!
//! Inputs are read-only while the micro-kernel runs. Contents are random bytes (any scale, any NaN). Bytes
//! between the pieces of an operand, and those that a micro-kernel only writes, differ from run to run:
//! results must not depend on them, and the bytes between stay.

use super::fence::Flush;
use super::operands::{Contents, call, operands};
use super::packed::{FIRST, columns};
use super::{Code, Tiles, choose, versions};
use kernmill_compiler::ir::expr;
use kernmill_kernels_gen::generate::generate_ukernels;
use kernmill_kernels_gen::ukernel::gemm_bf16::Shape;
use kernmill_kernels_gen::ukernel::gemm_q8::{Decoded, Overlap};
use kernmill_kernels_gen::ukernel::gemm_tiles::{CHUNK_BLOCKS, Strip, TileElement, TileShapes};
use kernmill_kernels_gen::ukernel::map::Map;
use kernmill_kernels_gen::ukernel::param::Param;
use kernmill_kernels_gen::ukernel::{MicroKernel, QueryHeads, TileOrder};
use kernmill_plan::format::WeightFormat;
use kernmill_plan::kv::KvFormat;
use kernmill_plan::target::Level;

/// The work around a call.
type Around<'a> = &'a dyn Fn(&mut dyn FnMut());

/// Runs a micro-kernel in every placement; `numbers` are the arguments that are no pointers, in order.
fn run(code: &Code, index: usize, ukernel: &MicroKernel, numbers: &[u64], what: &str, around: Around) {
    let contract = ukernel.contract();
    for contents in [Contents::Random, Contents::Ones] {
        let mut first: Option<Vec<u8>> = None;
        for (flush, between) in [(Flush::End, 0), (Flush::Start, 0), (Flush::End, 0x7f), (Flush::Start, 0xff)]
        {
            let operands = operands(&contract, numbers, flush, between, contents);
            // SAFETY: the memory is what the contract asks for; anything beyond faults, which is what is
            // tested.
            around(&mut || unsafe { call(code.address(index), &operands) });
            let mut results = Vec::new();
            for (param, operand) in contract.iter().zip(&operands) {
                if matches!(param, Param::Targets { .. }) {
                    results.extend(operand.rows.iter().flat_map(|row| row.bytes()));
                }
                let (Param::Write(_) | Param::Update(_), Some((memory, pieces))) = (param, &operand.region)
                else {
                    continue;
                };
                let mut rest = memory.bytes().to_vec();
                for (offset, bytes) in pieces {
                    results.extend_from_slice(&memory.bytes()[*offset..][..*bytes]);
                    rest[*offset..][..*bytes].fill(between);
                }
                assert!(
                    rest.iter().all(|byte| *byte == between),
                    "{what} {ukernel}: wrote between its pieces"
                );
            }
            let first = first.get_or_insert_with(|| results.clone());
            assert!(
                *first == results,
                "{what} {ukernel}: {contents:?} {flush:?} {between}: depends on more than its contract"
            );
        }
    }
}

/// Every version of every micro-kernel on every level, for each list of numbers.
fn run_all(ukernels: &[MicroKernel], numbers: &[&[u64]]) {
    for (level, version) in versions() {
        let code = Code::new(generate_ukernels(ukernels, level, &choose(level, version)).unwrap());
        let what = super::name(level, version);
        for (index, ukernel) in ukernels.iter().enumerate() {
            for numbers in numbers {
                run(&code, index, ukernel, numbers, &what, &|call| call());
            }
        }
    }
}

#[test]
fn q8_dots_stay_inside_their_operands() {
    let mut ukernels = Vec::new();
    for format in WeightFormat::blocked() {
        let [one, two, many] = columns(format);
        if !FIRST.contains(&format) {
            ukernels.extend([1, 2, 3, 8].map(|tokens| MicroKernel::DotQ8 { format, k: two, tokens }));
            continue;
        }
        ukernels.extend((1..=8).map(|tokens| MicroKernel::DotQ8 { format, k: one, tokens }));
        for k in [two, 96, many] {
            ukernels.extend([1, 2, 8].map(|tokens| MicroKernel::DotQ8 { format, k, tokens }));
        }
    }
    run_all(&ukernels, &[&[64], &[200]]);
}

#[test]
fn dots_of_adjacent_tiles_stay_inside_their_operands() {
    let mut ukernels = Vec::new();
    for format in WeightFormat::blocked() {
        if !FIRST.contains(&format) {
            let [one, two, _] = columns(format);
            let shapes = [(one, 1, TileOrder::Straight), (two, 2, TileOrder::Pairs)];
            ukernels.extend(shapes.map(|(k, tokens, order)| MicroKernel::DotQ8x4 {
                format,
                k,
                tokens,
                order,
            }));
            continue;
        }
        for (k, tokens) in [32, 96, 160, 2880].into_iter().flat_map(|k| [(k, 1), (k, 2)]) {
            let orders = [TileOrder::Straight, TileOrder::Pairs];
            ukernels.extend(orders.map(|order| MicroKernel::DotQ8x4 { format, k, tokens, order }));
        }
    }
    run_all(&ukernels, &[&[256], &[400]]);
}

#[test]
fn f32_dots_stay_inside_their_operands() {
    let mut ukernels = Vec::new();
    for format in WeightFormat::ALL {
        let all = match format.is_blocked() {
            true if FIRST.contains(&format) => columns(format).to_vec(),
            true => vec![columns(format)[1]],
            false => vec![1, 2, 3, 4, 7, 32, 50, 64, 2880],
        };
        for k in all {
            ukernels.extend(MicroKernel::dot_tokens(false).iter().map(|tokens| MicroKernel::DotF32 {
                format,
                k,
                tokens: *tokens,
            }));
        }
    }
    run_all(&ukernels, &[&[64], &[4096 + 64]]);
}

#[test]
fn added_dots_stay_inside_their_operands() {
    let formats = [WeightFormat::Bf16, WeightFormat::F32];
    let ukernels: Vec<MicroKernel> = formats
        .into_iter()
        .flat_map(|format| [1, 6].map(|tokens| MicroKernel::AddDot { format, tokens }))
        .collect();
    // Bytes between rows, bytes between results, columns.
    run_all(&ukernels, &[&[64, 64, 0], &[16, 64, 4], &[1024, 256, 36], &[11520, 80, 2880]]);
}

#[test]
fn decoding_stays_inside_its_operands() {
    let of = |is_super: bool| {
        let formats = WeightFormat::blocked().filter(move |format| format.parts().is_super() == is_super);
        formats.flat_map(|format| [MicroKernel::Decode { format }, MicroKernel::DecodeWords { format }])
    };
    let ukernels: Vec<MicroKernel> = of(false).chain([MicroKernel::DecodeBf16]).collect();
    run_all(&ukernels, &[&[0], &[1], &[2], &[15]]);
    // Whole units.
    run_all(&of(true).collect::<Vec<_>>(), &[&[0], &[8], &[16]]);
}

#[test]
fn gemms_stay_inside_their_operands() {
    for weights in Decoded::all() {
        let is_first = weights.parts == 1 && !weights.minima;
        let tokens = if is_first { &[1, 2, 3, 4, 5, 6][..] } else { &[1, 3, 6] };
        let of =
            |tiles| tokens.iter().map(move |tokens| MicroKernel::GemmQ8 { weights, tiles, tokens: *tokens });
        let ukernels: Vec<MicroKernel> = [1, 2].into_iter().flat_map(of).collect();
        // Blocks, bytes between tokens, bytes between tiles.
        let numbers: &[&[u64]] = match is_first {
            true => &[&[0, 128, 64], &[1, 128, 64], &[2, 64, 64 * 6], &[15, 320, 4096]],
            false => &[&[0, 128, 64], &[3, 320, 4096]],
        };
        run_all(&ukernels, numbers);
    }
    let overlaps = [(128, 64), (64, 64 * 6), (320, 4096)]
        .into_iter()
        .flat_map(|(stride, gap)| (1..=6).map(move |tokens| Overlap { tokens, stride, gap }));
    run_all(&overlaps.map(MicroKernel::GemmDecode).collect::<Vec<_>>(), &[&[]]);
}

#[test]
fn bf16_gemms_stay_inside_their_operands() {
    for (groups, tokens) in [(1, [1, 7, 16]), (2, [17, 20, 32])] {
        let shape = |tiles, stride, gap| MicroKernel::GemmBf16(Shape { tiles, groups, stride, gap });
        let ukernels = [shape(1, 64, 0), shape(2, 128, 64), shape(2, 256, 128), shape(2, 64, 64 * 32)];
        for tokens in tokens {
            // Blocks, rows.
            let numbers = [[0, tokens], [1, tokens], [15, tokens]];
            run_all(&ukernels, &numbers.each_ref().map(|numbers| &numbers[..]));
            let Some(tiles) = Tiles::of_host(TileShapes::Whole) else { continue };
            let code = Code::new(generate_ukernels(&ukernels, Level::Amx, &choose(Level::Amx, 0)).unwrap());
            for (index, ukernel) in ukernels.iter().enumerate() {
                for numbers in &numbers {
                    run(&code, index, ukernel, numbers, "amx", &|call| tiles.around(call));
                }
            }
        }
    }
}

#[test]
fn strips_stay_inside_their_operands() {
    let chunk = CHUNK_BLOCKS as u64;
    // Rows, blocks, blocks to decode, bytes between their tiles, and to what is fetched.
    let numbers: [&[u64]; 7] = [
        &[0, 1, 0, 0, 0],
        &[3, 0, 2, 4096, 64],
        &[1, 1, chunk, 4096, 64],
        &[33, 3, 1, 8192, 64],
        &[24, chunk, chunk, 4096, 64],
        &[40, chunk, 5, 8192, 4096],
        &[96, chunk, chunk, 8192, 4096],
    ];
    for format in WeightFormat::blocked().filter(|format| TileElement::serves(*format)) {
        let strip = |tiles, stride, gap| Strip { format, tiles, k: 32 * (CHUNK_BLOCKS + 1), stride, gap };
        let strips = [strip(1, 64, 0), strip(2, 128, 64), strip(2, 256, 128)].map(MicroKernel::GemmStrip);
        run_all(&strips, &numbers);
        let Some(tiles) = Tiles::of_host(TileShapes::Strip(TileElement::of(format))) else { continue };
        let code = Code::new(generate_ukernels(&strips, Level::Amx, &choose(Level::Amx, 0)).unwrap());
        for (index, ukernel) in strips.iter().enumerate() {
            for numbers in numbers {
                run(&code, index, ukernel, numbers, "amx", &|call| tiles.around(call));
            }
        }
    }
}

#[test]
fn maps_stay_inside_their_operands() {
    let expr = |text| expr::parse(text, &["x", "y", "z", "w"]).unwrap();
    let glu = expr("(clamp(y + w, -7, 7) + 1) * (min(x + z, 7) * sigmoid(1.702 * min(x + z, 7)))");
    let mut ukernels = Vec::new();
    for n in [16, 32, 48, 96, 2880] {
        let bytes = n * 4;
        ukernels.push(MicroKernel::Map(Map::new(
            glu.clone(),
            n,
            &[2 * bytes, 3 * bytes, 0, bytes],
            bytes + 64,
        )));
        ukernels.push(MicroKernel::Map(Map::new(expr("gelu(x) - tanh(exp(x))"), n, &[bytes], 2 * bytes)));
        ukernels.push(MicroKernel::Map(Map::zero(n, bytes)));
    }
    run_all(&ukernels, &[&[0], &[1], &[5]]);
}

#[test]
fn quantising_and_norms_stay_inside_their_operands() {
    run_all(&[MicroKernel::Quantize], &[&[0], &[1], &[2], &[90]]);
    let norms = [16, 48, 64, 2880].map(|n| MicroKernel::RmsNorm { n, eps: 1e-5f32.to_bits() });
    run_all(&norms, &[&[]]);
}

#[test]
fn weighted_sums_stay_inside_their_operands() {
    let ukernels: Vec<MicroKernel> = [16, 32, 48, 64, 96]
        .into_iter()
        .flat_map(|n| [false, true].map(|bias| MicroKernel::AddWeighted { n, bias }))
        .collect();
    // Bytes into each target, and rows.
    run_all(&ukernels, &[&[0, 0], &[64, 1], &[4096, 7]]);
}

#[test]
fn attention_tiles_stay_inside_their_operands() {
    let shapes = [(16usize, 1), (32, 2), (64, 8), (64, 3), (80, 4), (128, 5)];
    let (mut scores, mut values, mut combines) = (Vec::new(), Vec::new(), Vec::new());
    let (mut queries, mut integers, mut weights) = (Vec::new(), Vec::new(), Vec::new());
    for elem in KvFormat::ALL {
        let multiple = elem.descriptor().head_multiple;
        for (head_dim, group) in shapes.into_iter().filter(|(d, _)| d.is_multiple_of(multiple)) {
            let tokens = if group < 4 { 4 } else { 1 };
            let rows = QueryHeads { group, tokens, stride: group * head_dim * 4 + 64 };
            match elem.words() {
                None => scores.push(MicroKernel::Score {
                    elem,
                    head_dim,
                    queries: rows,
                    scale: 0.125f32.to_bits(),
                }),
                Some(words) => {
                    scores.push(MicroKernel::IntegerScore { elem, head_dim, group });
                    queries.push(MicroKernel::Query { head_dim, group, zero: words.zero, scale: 0 });
                }
            }
            match elem.is_scaled() {
                true => {
                    let stride = group * head_dim * 4 + 64;
                    integers.push(MicroKernel::IntegerValue { elem, head_dim, group, stride });
                    weights.push(MicroKernel::Weights { group });
                }
                false => values.push(MicroKernel::Value { elem, head_dim, queries: rows }),
            }
            if matches!(elem, KvFormat::F16 | KvFormat::F32) {
                combines.push(MicroKernel::Combine { head_dim, group, sinks: elem == KvFormat::F16 });
            }
        }
    }
    run_all(&scores, &[&[1], &[2], &[5]]);
    run_all(&queries, &[&[]]);
    // Blocks, first token, end.
    let ranges: [&[u64]; 7] =
        [&[1, 0, 16], &[1, 3, 7], &[1, 15, 16], &[1, 5, 5], &[1, 0, 0], &[2, 15, 17], &[4, 7, 64]];
    run_all(&values, &ranges);
    // Blocks, tokens.
    run_all(&integers, &[&[1, 1], &[2, 3], &[5, 2]]);
    weights.sort();
    weights.dedup();
    // Blocks, first token in view, end.
    run_all(&weights, &[&[1, 3, 7], &[2, 0, 32], &[5, 17, 64]]);
    run_all(&[MicroKernel::Softmax], &[&[1, 0, 16], &[1, 3, 7], &[2, 15, 17], &[64, 0, 1024]]);
    // No sinks are a number: it comes before the segments.
    let (with, without): (Vec<MicroKernel>, Vec<MicroKernel>) =
        combines.into_iter().partition(|ukernel| matches!(ukernel, MicroKernel::Combine { sinks: true, .. }));
    run_all(&with, &[&[1], &[3]]);
    run_all(&without, &[&[0, 1], &[0, 3]]);
}
