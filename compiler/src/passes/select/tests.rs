use super::cost::{CostModel, TIE, cheapest, cheapest_version};
use super::{KernelUse, Pick, select, select_classes};
use crate::passes::fuse;
use crate::passes::layout::{WeightLayout, gate_up_pairs, plan_weights};
use crate::passes::quant::choose::FormatChoices;
use crate::passes::quant::{Preset, quantise_chosen};
use crate::testing::{Mlp, ModelShape, build};
use kernmill_kernels_gen::kernel::{Body, Tiling};
use kernmill_kernels_gen::ukernel::{MicroKernel, TileOrder};
use kernmill_plan::format::WeightFormat;
use kernmill_plan::target::{Level, Tuning};

fn fused(preset: Preset) -> (fuse::FusedGraph, WeightLayout) {
    fused_of(&ModelShape::mini_gpt_oss(), preset)
}

fn fused_of(shape: &ModelShape, preset: Preset) -> (fuse::FusedGraph, WeightLayout) {
    let graph = build(shape).unwrap();
    let graph = quantise_chosen(&graph, preset, Some(&FormatChoices::assumed(&graph))).unwrap();
    let layout = plan_weights(&graph, &gate_up_pairs(&graph)).unwrap();
    (fuse::fuse(&graph, fuse::FusedSet::builtin().rules(), Level::V4Vnni).0, layout)
}

#[test]
fn the_pick_is_the_cheapest_and_the_first_of_equals() {
    assert_eq!(cheapest(&[]), None);
    assert_eq!(cheapest(&[3.0, 2.0, 2.0]), Some(1));
    // A difference of a percent counts as none.
    assert_eq!(cheapest(&[3.0, 2.02, 2.0]), Some(1));
    for preset in [Preset::Exact, Preset::Faithful, Preset::Bf16] {
        let (fused, layout) = fused(preset);
        for level in Level::ALL {
            let model = CostModel::new(level, Tuning::Generic);
            for tokens in [1, 8, 9, 64, 512] {
                let selection = select(&fused, &layout, tokens, &model, Pick::Cheapest).unwrap();
                assert!(!selection.choices.is_empty());
                for choice in &selection.choices {
                    let (before, after) = choice.candidates.split_at(choice.pick);
                    let cost = after[0].1;
                    assert!(cost > 0.0 && cost.is_finite(), "{choice:?}");
                    assert!(choice.candidates.iter().all(|(_, other)| cost <= *other * TIE), "{choice:?}");
                    // Each that comes before costs too much more than some other one.
                    let dearer =
                        |before: f64| choice.candidates.iter().any(|(_, other)| before > *other * TIE);
                    assert!(before.iter().all(|(_, before)| dearer(*before)), "{choice:?}");
                }
            }
        }
    }
}

/// On a Zen 5 all do; on Intel's CPUs those of one tile and three tokens or more, and those of four tiles do
/// not.
#[test]
fn dots_fetch_bytes_as_they_lie_where_the_family_wants_it() {
    for format in WeightFormat::blocked() {
        let adjacent = [1, 2].map(|tokens| {
            (MicroKernel::DotQ8x4 { format, k: 64, tokens, order: TileOrder::Straight }, false)
        });
        let single = MicroKernel::dot_tokens(true)
            .iter()
            .map(|t| (MicroKernel::DotQ8 { format, k: 64, tokens: *t }, *t >= 3));
        for (ukernel, on_intel) in adjacent.into_iter().chain(single) {
            for tuning in Tuning::ALL {
                let expected = match tuning {
                    Tuning::Zen5 => true,
                    Tuning::Intel => on_intel,
                    Tuning::Generic | Tuning::Amd => false,
                };
                let versions = CostModel::new(Level::V4Vnni, tuning).versions(&ukernel);
                let pick = versions[cheapest_version(&versions)].0.expect("an assembled version");
                assert_eq!(pick.name.ends_with("_linear"), expected, "{ukernel}, {tuning:?}: {}", pick.name);
            }
        }
    }
}

#[test]
fn picks_by_number_go_round_and_change_only_the_pick() {
    let (fused, layout) = fused(Preset::Faithful);
    let model = CostModel::new(Level::V4, Tuning::Generic);
    let of = |pick| select(&fused, &layout, 8, &model, pick).unwrap();
    let cheapest = of(Pick::Cheapest);
    for n in 0..20 {
        for (choice, free) in of(Pick::Nth(n)).choices.iter().zip(&cheapest.choices) {
            assert_eq!(choice.pick, n % choice.candidates.len());
            assert_eq!(choice.candidates, free.candidates);
        }
    }
    assert_eq!(of(Pick::Nth(cheapest.choices[0].pick)).choices[0], cheapest.choices[0]);
}

/// Wherever the rows that a matrix multiplies are q8, in one class; a single token goes by dots.
#[test]
fn tiles_multiply_whatever_has_q8_rows_and_leave_single_tokens_to_dots() {
    for preset in [Preset::Faithful, Preset::Fast, Preset::Bf16] {
        let (fused, layout) = fused(preset);
        let model = CostModel::new(Level::Amx, Tuning::Generic);
        let of = |tokens, pick| select(&fused, &layout, tokens, &model, pick).unwrap();
        let mut dense = 0;
        for one in of(64, Pick::Tiles).uses {
            let input = match &one.kernel.body {
                Body::Matmul { input, .. } => *input,
                Body::Experts { input, .. } | Body::ExpertDown { input, .. } => *input,
                _ => continue,
            };
            let q8 = one.kernel.vals[input].row.is_q8();
            let on_tiles = matches!(one.kernel.tiling, Tiling::Tiles { .. });
            assert_eq!(on_tiles, q8, "{}: {:?}", one.label, one.kernel.tiling);
            dense += usize::from(on_tiles && matches!(one.kernel.body, Body::Matmul { .. }));
        }
        // Projections and outputs of two layers, and the unembedding.
        assert!(dense >= 5, "{}: {dense} dense matrices on tiles", preset.name());
        for one in of(1, Pick::Cheapest).uses {
            assert!(!matches!(one.kernel.tiling, Tiling::Tiles { .. }), "{}", one.label);
        }
    }
}

/// In the widths of GPT-OSS-20B: projections, the output of attention, and both steps of experts.
#[test]
fn prompts_of_many_tokens_take_tiles_of_both_kinds() {
    let mlp = Mlp::Experts { experts: 2, top_k: 2, inner: 2880, format: WeightFormat::Mxfp4 };
    let heads =
        ModelShape { heads: 64, kv_heads: 8, head_dim: 64, v_head_dim: 64, ..ModelShape::mini_gpt_oss() };
    let shape = ModelShape { layers: 1, hidden: 2880, mlp, ..heads };
    let (fused, layout) = fused_of(&shape, Preset::Faithful);
    let on_tiles = |level| {
        let selection =
            select(&fused, &layout, 512, &CostModel::new(level, Tuning::Intel), Pick::Cheapest).unwrap();
        let tiles = |one: &KernelUse| matches!(one.kernel.tiling, Tiling::Tiles { .. });
        let of = |kind: fn(&Body) -> bool| {
            selection.uses.iter().filter(|one| tiles(one) && kind(&one.kernel.body)).count()
        };
        let experts = of(|body| matches!(body, Body::Experts { .. } | Body::ExpertDown { .. }));
        // Each reads panels that a step before has filled.
        let dense = of(|body| matches!(body, Body::Matmul { .. }));
        assert_eq!(of(|body| matches!(body, Body::Panels { .. })), dense + experts);
        (dense, experts)
    };
    assert_eq!(on_tiles(Level::V4Vnni), (0, 0));
    let (dense, experts) = on_tiles(Level::Amx);
    assert!(dense >= 2 && experts == 2, "{dense} dense matrices and {experts} of experts");
}

#[test]
fn classes_ascend_to_the_chunk_and_selection_repeats_itself() {
    let (fused, layout) = fused(Preset::Faithful);
    for level in Level::ALL {
        let model = CostModel::new(level, Tuning::Generic);
        for chunk in [1, 5, 8, 64, 512] {
            let classes = select_classes(&fused, &layout, chunk, &model, Pick::Cheapest).unwrap();
            assert!(classes.is_sorted_by(|a, b| a.max_tokens < b.max_tokens));
            assert_eq!(classes.last().unwrap().max_tokens, chunk);
            assert_eq!(
                classes,
                select_classes(
                    &fused,
                    &layout,
                    chunk,
                    &CostModel::new(level, Tuning::Generic),
                    Pick::Cheapest
                )
                .unwrap()
            );
        }
    }
}

#[test]
fn more_tokens_never_cost_less() {
    let (fused, layout) = fused(Preset::Faithful);
    let model = CostModel::new(Level::V3, Tuning::Generic);
    let selection = select(&fused, &layout, 64, &model, Pick::Cheapest).unwrap();
    for one in &selection.uses {
        let costs: Vec<f64> = [1, 8, 64].iter().map(|tokens| model.kernel(&one.kernel, *tokens)).collect();
        assert!(costs.is_sorted(), "{}: {costs:?}", one.label);
    }
}
