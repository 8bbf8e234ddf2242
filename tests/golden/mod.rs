//! Golden text of the stages after fusion, for a GPT-OSS in miniature. `UPDATE_EXPECT=1 cargo test golden` blesses changes.

use expect_test::expect_file;
use kernmill_compiler::expr;
use kernmill_compiler::pipeline::{Compiled, Options, compile};
use kernmill_compiler::quant::Preset;
use kernmill_compiler::select::explain;
use kernmill_compiler::testing::{ModelShape, build};
use kernmill_kernels_gen::asm;
use kernmill_kernels_gen::disasm;
use kernmill_kernels_gen::generate::generate_ukernels;
use kernmill_kernels_gen::ukernel::gemm_bf16::Shape;
use kernmill_kernels_gen::ukernel::gemm_q8::{Decoded, Overlap};
use kernmill_kernels_gen::ukernel::map::Map;
use kernmill_kernels_gen::ukernel::{MicroKernel, Order};
use kernmill_plan::format::WeightFormat;
use kernmill_plan::kv::KvElem;
use kernmill_plan::target::Level;

fn compiled(preset: Preset) -> Compiled {
    let graph = build(&ModelShape::mini_gpt_oss()).unwrap();
    compile(&graph, &Options { preset, keep_clif: true, ..Options::new(Level::V4Vnni) }).unwrap()
}

fn joined<T: ToString>(row_ops: &[T]) -> String {
    row_ops.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n")
}

#[test]
fn selection_schedule_and_memory() {
    let faithful = compiled(Preset::Faithful);
    expect_file!["select_faithful.txt"].assert_eq(&joined(&faithful.selections));
    expect_file!["schedule_faithful.txt"].assert_eq(&joined(&faithful.schedules));
    expect_file!["memory_faithful.txt"].assert_eq(&joined(&faithful.arenas));
    expect_file!["select_bf16.txt"].assert_eq(&joined(&compiled(Preset::Bf16).selections));
    expect_file!["select_exact.txt"].assert_eq(&joined(&compiled(Preset::Exact).selections));
}

#[test]
fn candidates_and_their_costs() {
    let graph = build(&ModelShape::mini_gpt_oss()).unwrap();
    for level in [Level::V3, Level::V4Vnni] {
        let compiled = compile(&graph, &Options { chunk: 64, ..Options::new(level) }).unwrap();
        let text = explain(&compiled.selections, &compiled.ukernels).to_string();
        expect_file![format!("{}/tests/golden/candidates_{}.txt", env!("CARGO_MANIFEST_DIR"), level.name())]
            .assert_eq(&text);
    }
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

#[test]
fn machine_code_of_ukernels() {
    let ukernels = [
        MicroKernel::DotQ8 { format: WeightFormat::Mxfp4, k: 64, tokens: 1 },
        MicroKernel::DotQ8 { format: WeightFormat::Int8, k: 64, tokens: 4 },
        MicroKernel::DotF32 { format: WeightFormat::Bf16, k: 64, tokens: 1 },
        MicroKernel::Value { elem: KvElem::F16, head_dim: 32, group: 2 },
    ];
    for level in [Level::V3, Level::V4Vnni] {
        let text = disasm::blob(&generate_ukernels(&ukernels, level, &|_| None).unwrap());
        expect_file![format!("{}/tests/golden/leaves_{}.asm", env!("CARGO_MANIFEST_DIR"), level.name())]
            .assert_eq(&text);
        assert_eq!(text.contains("vpdpbusd"), level == Level::V4Vnni, "{}", level.name());
    }
}

#[test]
fn machine_code_of_wide_ukernels() {
    let ukernels = [
        MicroKernel::DotQ8 { format: WeightFormat::Mxfp4, k: 64, tokens: 1 },
        MicroKernel::DotQ8 { format: WeightFormat::Int8, k: 64, tokens: 2 },
        MicroKernel::DotQ8x4 { format: WeightFormat::Mxfp4, k: 128, tokens: 1, order: Order::Pairs },
        MicroKernel::DotF32 { format: WeightFormat::Bf16, k: 64, tokens: 1 },
        MicroKernel::Score { elem: KvElem::F16, head_dim: 32, group: 2, scale: 0.125f32.to_bits() },
        MicroKernel::Value { elem: KvElem::F16, head_dim: 32, group: 2 },
        MicroKernel::Softmax,
        MicroKernel::Combine { head_dim: 32, group: 1, sinks: true },
    ];
    let ukernels = [&ukernels[..], &row_wise()].concat();
    let text = disasm::blob(
        &generate_ukernels(&ukernels, Level::V4Vnni, &|ukernel| asm::find(ukernel, Level::V4Vnni)).unwrap(),
    );
    expect_file!["wide_leaves_x86-64-v4-vnni.asm"].assert_eq(&text);
    assert!(text.split("\n\n").all(|function| function.contains("zmm") && function.contains("vzeroupper")));
}

#[test]
fn machine_code_of_ukernels_with_tiles() {
    let gemm = |tiles, groups| MicroKernel::GemmBf16(Shape { tiles, groups, stride: 256, gap: 128 });
    let ukernels = [gemm(1, 1), gemm(2, 2), MicroKernel::TilesOn, MicroKernel::TilesOff];
    let text = disasm::blob(
        &generate_ukernels(&ukernels, Level::Amx, &|ukernel| asm::find(ukernel, Level::Amx)).unwrap(),
    );
    expect_file!["leaves_amx.asm"].assert_eq(&text);
    assert_eq!(text.matches("tdpbf16ps").count(), 1 + 4);
    let decode_and_plain = [MicroKernel::DecodeBf16, gemm(1, 1)];
    let text = disasm::blob(
        &generate_ukernels(&decode_and_plain, Level::V4, &|ukernel| asm::find(ukernel, Level::V4)).unwrap(),
    );
    expect_file!["leaves_bf16_x86-64-v4.asm"].assert_eq(&text);
}

#[test]
fn amx_code_without_bf16_is_that_of_v4_vnni() {
    let graph = build(&ModelShape::mini_gpt_oss()).unwrap();
    let code = |level| {
        let options = Options { preset: Preset::Faithful, ..Options::new(level) };
        compile(&graph, &options).unwrap().program.code
    };
    assert!(code(Level::Amx) == code(Level::V4Vnni));
}

#[test]
fn machine_code_of_wide_ukernels_of_other_levels() {
    let dots = |format| MicroKernel::DotQ8 { format, k: 64, tokens: 1 };
    let gemm = |weights| MicroKernel::GemmQ8 { weights, tiles: 1, tokens: 2 };
    let dots_plain = [dots(WeightFormat::Mxfp4), dots(WeightFormat::Int8)];
    let plain = [&dots_plain[..], &[gemm(Decoded::U8Pairwise), gemm(Decoded::I16), MicroKernel::DecodeWords]]
        .concat();
    let plain512 = [&dots_plain[..], &[gemm(Decoded::U8Max24), gemm(Decoded::U8)]].concat();
    let vnni = [dots(WeightFormat::Mxfp4), dots(WeightFormat::Int8), gemm(Decoded::U8Max24)];
    let adjacent =
        MicroKernel::DotQ8x4 { format: WeightFormat::Mxfp4, k: 64, tokens: 1, order: Order::Pairs };
    let rest = [
        MicroKernel::Decode { format: WeightFormat::Mxfp4 },
        MicroKernel::DotF32 { format: WeightFormat::Bf16, k: 64, tokens: 1 },
        MicroKernel::DotF32 { format: WeightFormat::Int4, k: 64, tokens: 1 },
        MicroKernel::Score { elem: KvElem::F16, head_dim: 32, group: 2, scale: 0.125f32.to_bits() },
        MicroKernel::Value { elem: KvElem::F16, head_dim: 32, group: 2 },
        MicroKernel::Softmax,
        MicroKernel::Combine { head_dim: 32, group: 1, sinks: true },
    ];
    for (level, ukernels, register) in [
        (Level::V3, [&plain[..], &rest, &row_wise(), std::slice::from_ref(&adjacent)].concat(), "ymm"),
        (Level::V3Vnni, [&vnni[..], std::slice::from_ref(&adjacent)].concat(), "ymm"),
        (Level::V4, plain512, "zmm"),
        (Level::CascadeLake, vec![dots(WeightFormat::Mxfp4), adjacent], "zmm"),
    ] {
        let text =
            disasm::blob(&generate_ukernels(&ukernels, level, &|ukernel| asm::find(ukernel, level)).unwrap());
        expect_file![format!("{}/tests/golden/wide_leaves_{}.asm", env!("CARGO_MANIFEST_DIR"), level.name())]
            .assert_eq(&text);
        assert!(
            text.split("\n\n").all(|function| function.contains(register) && function.contains("vzeroupper"))
        );
        assert_eq!(text.contains("zmm"), level >= Level::V4, "{}", level.name());
        let vnni = matches!(level, Level::V3Vnni | Level::CascadeLake);
        assert_eq!(text.contains("vpdpbusd"), vnni, "{}", level.name());
    }
}

#[test]
fn machine_code_of_dots_that_fetch_line_by_line() {
    // More blocks than have their scales in one line.
    let (format, k) = (WeightFormat::Mxfp4, 160);
    let single = MicroKernel::DotQ8 { format, k, tokens: 1 };
    let adjacent = MicroKernel::DotQ8x4 { format, k, tokens: 1, order: Order::Pairs };
    let linear = |ukernel: &MicroKernel| {
        asm::candidates(ukernel, Level::V4Vnni).find(|wide| wide.name.ends_with("_linear"))
    };
    let code = |ukernels: &[MicroKernel]| {
        disasm::blob(&generate_ukernels(ukernels, Level::V4Vnni, &linear).unwrap())
    };
    expect_file![format!("{}/tests/golden/wide_leaves_linear.asm", env!("CARGO_MANIFEST_DIR"))]
        .assert_eq(&code(&[single.clone(), adjacent.clone()]));
    // Every line of a tile once: two of scales, four for each block. The first four blocks are a turn of the loop.
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
fn machine_code_of_the_gemms_that_add() {
    let ukernel = MicroKernel::GemmQ8 { weights: Decoded::U8Max24Pow2, tiles: 2, tokens: 1 };
    let decodes = MicroKernel::GemmDecode(Overlap { tokens: 1, stride: 128, gap: 64 });
    let adds = |ukernel: &MicroKernel| {
        asm::candidates(ukernel, Level::V4Vnni).find(|wide| wide.name.ends_with("_adds"))
    };
    let text = disasm::blob(
        &generate_ukernels(&[ukernel, decodes, MicroKernel::Prefetch], Level::V4Vnni, &|ukernel| {
            adds(ukernel).or_else(|| asm::find(ukernel, Level::V4Vnni))
        })
        .unwrap(),
    );
    expect_file![format!("{}/tests/golden/wide_leaves_adds.asm", env!("CARGO_MANIFEST_DIR"))]
        .assert_eq(&text);
    assert!(text.contains("vaddps") && !text.contains("vfmadd213ps"));
}
