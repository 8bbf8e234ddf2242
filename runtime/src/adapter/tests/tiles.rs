//! Adapters of many tiles, with experts whose elements lie side by side in the file.

use super::*;
use crate::adapter::factors::{unpack_a, unpack_b};

const RANK: usize = 64;
const EXPERTS: usize = 16;
/// Columns and rows of q, and of an expert's matrices.
const Q: (usize, usize) = (4096, 48);
const GATE_UP: (usize, usize) = (64, 512);
const DOWN: (usize, usize) = (512, 144);

/// One layer; gate and up rows alternate.
fn loader() -> AdapterLoader {
    let mut all = adapters();
    all.lora_targets.retain(|lora_target| {
        lora_target.name.starts_with("layers.0.") && !lora_target.tensor.contains("router")
    });
    for (lora_target, (k, rows)) in all.lora_targets.iter_mut().zip([Q, GATE_UP, DOWN]) {
        lora_target.k = k as u32;
        lora_target.experts = if lora_target.experts > 0 { EXPERTS as u32 } else { 0 };
        let outs = lora_target.outs.len();
        lora_target.outs.iter_mut().for_each(|out| out.rows = (rows / outs) as u32);
    }
    AdapterLoader::for_merging(Arc::new(all), "small".into())
}

/// An adapter of all of them, with or without A and B of experts in each other's place; element i of a tensor
/// is i + 1.
fn draft(swapped: bool) -> Draft {
    let config = json!({
        "r": RANK, "target_modules": ["q_proj"], "target_parameters": ["experts.gate_up_proj", "experts.down_proj"],
    });
    let all = RANK * EXPERTS;
    let of_experts = |draft: Draft, module: &str, (k, rows): (usize, usize)| match swapped {
        false => draft.pair(module, [all, k], [rows, all]),
        true => draft.pair(module, [all, rows], [k, all]),
    };
    let draft = Draft::new(config).pair("0.self_attn.q_proj", [RANK, Q.0], [Q.1, RANK]);
    let draft = of_experts(draft, "0.mlp.experts.base_layer", GATE_UP);
    of_experts(draft, "0.mlp.experts", DOWN)
}

#[test]
fn every_element_comes_to_its_place() {
    for swapped in [false, true] {
        let draft = draft(swapped);
        let adapter = draft.load_with(&loader()).unwrap();
        let unpack = |lora_target, expert| {
            let a = unpack_a(&adapter.lora_targets, &adapter.packed, lora_target, expert);
            (a, unpack_b(&adapter.lora_targets, &adapter.packed, lora_target, expert))
        };
        let numbers = |count: usize| -> Vec<f32> { (1..=count).map(|i| i as f32).collect() };
        assert_eq!(unpack(0, 0), (numbers(RANK * Q.0), numbers(Q.1 * RANK)));
        for (lora_target, (k, rows)) in [(1, GATE_UP), (2, DOWN)] {
            for expert in 0..EXPERTS {
                let (a, b) = unpack(lora_target, expert);
                // [expert, rank][width], and [row][rank, expert].
                let together =
                    |width: usize, r: usize, i: usize| ((expert * RANK + r) * width + i + 1) as f32;
                let apart = |row: usize, r: usize| ((row * RANK + r) * EXPERTS + expert + 1) as f32;
                for (at, a) in a.iter().enumerate() {
                    let (r, i) = (at / k, at % k);
                    assert_eq!(*a, if swapped { apart(i, r) } else { together(k, r, i) }, "A [{r}, {i}]");
                }
                for (at, b) in b.iter().enumerate() {
                    let (row, r) = (at / RANK, at % RANK);
                    assert_eq!(
                        *b,
                        if swapped { together(rows, r, row) } else { apart(row, r) },
                        "B [{row}, {r}]"
                    );
                }
            }
        }
    }
}

/// Tiles of a combination's ranks are not those of its parts.
#[test]
fn combinations_are_packed_anew() {
    let loader = loader();
    let of_rank = |rank: usize| {
        let config = json!({ "r": rank, "target_modules": ["q_proj"] });
        let draft = Draft::new(config).pair("0.self_attn.q_proj", [rank, Q.0], [Q.1, rank]);
        Arc::new(draft.load_with(&loader).unwrap())
    };
    let parts = [(of_rank(10), 1.0), (of_rank(60), 1.0)];
    let both = loader.combine(&parts).unwrap().run().unwrap();
    let a = |adapter: &Adapter| unpack_a(&adapter.lora_targets, &adapter.packed, 0, 0);
    assert_eq!(a(&both), [a(&parts[0].0), a(&parts[1].0)].concat());
}
