//! Golden text of the stages after fusion, for a GPT-OSS in miniature. `UPDATE_EXPECT=1 cargo test golden`
//! blesses changes.

use crate::hostile::targets::small_model::{ModelShape, build};
use expect_test::expect_file;
use kernmill_compiler::ir::expr;
use kernmill_compiler::passes::quant::Preset;
use kernmill_compiler::passes::select::explain;
use kernmill_compiler::pipeline::{Compiled, CompilerOptions, compile};
use kernmill_kernels_gen::asm;
use kernmill_kernels_gen::disasm;
use kernmill_kernels_gen::generate::generate_ukernels;
use kernmill_kernels_gen::ukernel::gemm_bf16::Shape;
use kernmill_kernels_gen::ukernel::gemm_q8::{Decoded, DecodedNumber, DotStep, Overlap};
use kernmill_kernels_gen::ukernel::gemm_tiles::{CHUNK_BLOCKS, Strip, TileShapes};
use kernmill_kernels_gen::ukernel::map::Map;
use kernmill_kernels_gen::ukernel::{MicroKernel, QueryHeads, TileOrder};
use kernmill_plan::format::WeightFormat;
use kernmill_plan::kv::KvFormat;
use kernmill_plan::target::{Features, Level};
use std::collections::BTreeSet;

fn compiled(preset: Preset) -> Compiled {
    let graph = build(&ModelShape::mini_gpt_oss()).unwrap();
    compile(&graph, &CompilerOptions { preset, keep_clif: true, ..CompilerOptions::new(Level::V4Vnni) })
        .unwrap()
}

fn joined<T: ToString>(parts: &[T]) -> String {
    parts.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n")
}

/// Texts of one kind in one file, each below its name.
fn titled(texts: &[(&str, String)]) -> String {
    texts.iter().map(|(name, text)| format!("==> {name}\n{text}")).collect::<Vec<_>>().join("\n")
}

#[test]
fn selection_schedule_and_memory() {
    let faithful = compiled(Preset::Faithful);
    expect_file!["stages.txt"].assert_eq(&titled(&[
        ("selection, faithful", joined(&faithful.selections)),
        ("schedule, faithful", joined(&faithful.schedules)),
        ("memory, faithful", joined(&faithful.arenas)),
        ("selection, bf16", joined(&compiled(Preset::Bf16).selections)),
        ("selection, exact", joined(&compiled(Preset::Exact).selections)),
    ]));
}

#[test]
fn candidates_and_their_costs() {
    let graph = build(&ModelShape::mini_gpt_oss()).unwrap();
    let texts = [Level::V3, Level::V4Vnni].map(|level| {
        let compiled =
            compile(&graph, &CompilerOptions { chunk: 64, ..CompilerOptions::new(level) }).unwrap();
        let text = explain(&compiled.model, &compiled.selections, &compiled.ukernels).to_string();
        (level.name(), text)
    });
    expect_file!["candidates.txt"].assert_eq(&titled(&texts));
}

#[test]
fn cranelift_ir_of_a_kernel() {
    let faithful = compiled(Preset::Faithful);
    let wanted = faithful.clif.iter().find(|text| text.starts_with("; linear_residual")).unwrap();
    expect_file!["linear_residual.clif"].assert_eq(wanted);
}

/// An activation, and how its result is rounded.
fn row_wise() -> [MicroKernel; 2] {
    let glu = expr::parse("silu(min(x, 7)) * (y + 1)", &["x", "y"]).unwrap();
    [MicroKernel::Map(Map::new(glu, 32, &[256, 256], 256)), MicroKernel::Quantize]
}

fn dot(format: WeightFormat) -> MicroKernel {
    MicroKernel::DotQ8 { format, k: 64, tokens: 1 }
}

fn dot_x4() -> MicroKernel {
    MicroKernel::DotQ8x4 { format: WeightFormat::Mxfp4, k: 64, tokens: 1, order: TileOrder::Pairs }
}

fn gemm(weights: Decoded) -> MicroKernel {
    MicroKernel::GemmQ8 { weights, tiles: 1, tokens: 2 }
}

fn gemm_bf16(tiles: usize, groups: usize) -> MicroKernel {
    MicroKernel::GemmBf16(Shape { tiles, groups, stride: 256, gap: 128 })
}

fn attention() -> [MicroKernel; 2] {
    let queries = QueryHeads::of_token(2);
    [
        MicroKernel::Score { elem: KvFormat::F16, head_dim: 32, queries, scale: 0.125f32.to_bits() },
        MicroKernel::Value { elem: KvFormat::F16, head_dim: 32, queries },
    ]
}

/// Assembled code of a level, as selection has it where there is nothing to choose by cost.
fn text(ukernels: &[MicroKernel], level: Level) -> String {
    disasm::blob(&generate_ukernels(ukernels, level, &|ukernel| asm::find(ukernel, level)).unwrap())
}

/// One listing for each family, at one level. The others have no listing: `kernels-gen/src/asm/check` holds
/// every assembled version of every shape to its contract at every level, `tests/kernels` compares all of
/// them with the 128-bit code bit by bit (those of levels that the host lacks in an interpreter of machine
/// code), and `tools/compare-code` shows what a change does to the code of whole models.
#[test]
fn machine_code_of_a_ukernel_of_each_family() {
    let families = [
        ("dot", Level::V4Vnni, vec![dot(WeightFormat::Mxfp4)]),
        ("dot_x4", Level::V3, vec![dot_x4()]),
        ("dot_f32", Level::V3, vec![MicroKernel::DotF32 { format: WeightFormat::Bf16, k: 64, tokens: 1 }]),
        (
            "gemm",
            Level::V3,
            vec![
                gemm(Decoded::plain(DecodedNumber::U8Pairwise)),
                MicroKernel::Decode { format: WeightFormat::Mxfp4 },
            ],
        ),
        ("attention", Level::V4Vnni, attention().to_vec()),
        ("softmax", Level::V4Vnni, vec![MicroKernel::Softmax]),
        ("row_ops", Level::V4Vnni, row_wise().to_vec()),
        (
            "tiles",
            Level::Amx,
            vec![gemm_bf16(1, 1), MicroKernel::TilesOn(TileShapes::Whole), MicroKernel::TilesOff],
        ),
    ];
    let texts = families.map(|(family, level, ukernels)| (family, text(&ukernels, level)));
    expect_file!["ukernels.asm"].assert_eq(&titled(&texts));
}

#[test]
fn machine_code_of_128_bits() {
    let ukernels =
        [dot(WeightFormat::Mxfp4), MicroKernel::DotQ8 { format: WeightFormat::Int8, k: 64, tokens: 4 }];
    let text = |ukernels: &[MicroKernel], level| {
        disasm::blob(&generate_ukernels(ukernels, level, &|_| None).unwrap())
    };
    expect_file!["dot_128.asm"].assert_eq(&text(&ukernels[..1], Level::V4Vnni));
    for level in [Level::V3, Level::V4Vnni] {
        let text = text(&ukernels, level);
        assert_eq!(text.contains("vpdpbusd"), level == Level::V4Vnni, "{}", level.name());
        assert!(!text.contains("ymm") && !text.contains("zmm"), "{}", level.name());
    }
}

#[test]
fn tiles_multiply_each_pair_of_a_group_and_a_tile_once() {
    let text = text(&[gemm_bf16(1, 1), gemm_bf16(2, 2)], Level::Amx);
    assert_eq!(text.matches("tdpbf16ps").count(), 1 + 4);
}

/// A panel's chunk is in the code for the first panel and for others, whole, whole with decoding, or half;
/// and a block in loops.
#[test]
fn tiles_of_either_element_multiply_a_block_at_a_time() {
    for (format, product) in [(WeightFormat::Mxfp4, "tdpbf16ps"), (WeightFormat::Int8, "tdpbssd")] {
        for tiles in [1, 2] {
            let strip = Strip { format, tiles, k: 2880, stride: 128, gap: 64 };
            let text = text(&[MicroKernel::GemmStrip(strip)], Level::Amx);
            assert_eq!(text.matches(product).count(), tiles * (6 * CHUNK_BLOCKS + 1), "{format:?}");
        }
    }
}

/// A single token goes by dots, and rows of f32 never meet tiles.
#[test]
fn amx_code_without_tiles_is_that_of_v4_vnni() {
    let graph = build(&ModelShape::mini_gpt_oss()).unwrap();
    for (preset, chunk) in [(Preset::Faithful, 1), (Preset::Exact, 512)] {
        let code = |level| {
            let options = CompilerOptions { preset, chunk, ..CompilerOptions::new(level) };
            compile(&graph, &options).unwrap().program.code
        };
        assert!(code(Level::Amx) == code(Level::V4Vnni), "{}, chunk {chunk}", preset.name());
    }
}

#[test]
fn levels_use_their_vectors_and_instructions() {
    let common = [dot(WeightFormat::Mxfp4), dot(WeightFormat::Int8), MicroKernel::Softmax];
    let common = [&common[..], &attention(), &row_wise()].concat();
    for (level, register) in [
        (Level::V3, "ymm"),
        (Level::V3Vnni, "ymm"),
        (Level::V4, "zmm"),
        (Level::CascadeLake, "zmm"),
        (Level::V4Vnni, "zmm"),
    ] {
        let decoded: BTreeSet<Decoded> =
            WeightFormat::blocked().map(|format| DotStep::at(level).decoded(format)).collect();
        let gemms = decoded.into_iter().map(gemm);
        let text = text(&common.iter().cloned().chain(gemms).collect::<Vec<_>>(), level);
        for function in text.split("\n\n") {
            assert!(
                function.contains(register) && function.contains("vzeroupper"),
                "{}: {function}",
                level.name()
            );
        }
        assert_eq!(text.contains("zmm"), level.features().has(Features::AVX512), "{}", level.name());
        let vnni = matches!(level, Level::V3Vnni | Level::CascadeLake | Level::V4Vnni);
        assert_eq!(text.contains("vpdpbusd"), vnni, "{}", level.name());
    }
}

#[test]
fn dots_that_fetch_line_by_line_fetch_every_line_once() {
    // More blocks than have their scales in one line.
    let (format, k) = (WeightFormat::Mxfp4, 160);
    let single = MicroKernel::DotQ8 { format, k, tokens: 1 };
    let adjacent = MicroKernel::DotQ8x4 { format, k, tokens: 1, order: TileOrder::Pairs };
    let linear = |ukernel: &MicroKernel| {
        asm::candidates(ukernel, Level::V4Vnni).find(|wide| wide.name.ends_with("_linear"))
    };
    let code = |ukernels: &[MicroKernel]| {
        disasm::blob(&generate_ukernels(ukernels, Level::V4Vnni, &linear).unwrap())
    };
    // Every line of a tile once: two of scales, four for each block. The first four blocks are a turn of
    // the loop.
    let lines = 1 + 4 * 4 + 1 + 4;
    for (ukernel, tiles) in [(single, 1), (adjacent, 4)] {
        assert_eq!(
            code(std::slice::from_ref(&ukernel)).matches("prefetcht0").count(),
            tiles * lines,
            "{ukernel}"
        );
    }
}

#[test]
fn the_gemms_that_add_do_not_multiply_by_scales() {
    let ukernel =
        MicroKernel::GemmQ8 { weights: Decoded::plain(DecodedNumber::U8Max24Pow2), tiles: 2, tokens: 1 };
    let decodes = MicroKernel::GemmDecode(Overlap { tokens: 1, stride: 128, gap: 64 });
    let adds = |ukernel: &MicroKernel| {
        asm::candidates(ukernel, Level::V4Vnni).find(|wide| wide.name.ends_with("_adds"))
    };
    let text = disasm::blob(&generate_ukernels(&[ukernel, decodes], Level::V4Vnni, &adds).unwrap());
    assert!(text.contains("vaddps") && !text.contains("vfmadd213ps"));
}
