use super::num::*;
use super::*;
use crate::ir::{Attention, Graph};
use crate::passes::quant::choose::FormatChoices;
use crate::passes::quant::{Preset, quantise, quantise_chosen};
use crate::testing::{ModelShape, Rng, build, random_weights};
use kernmill_plan::kv::{KvElements, KvFormat, KvPair, hadamard_block};

fn bits(x: &[f32]) -> Vec<u32> {
    x.iter().map(|x| x.to_bits()).collect()
}

#[test]
fn exp_is_within_two_ulp() {
    let mut worst = 0.0f64;
    let mut x = -87.0f32;
    while x <= 88.0 {
        let (got, want) = (f64::from(exp(x)), f64::from(x).exp());
        let ulp = f64::from(f32::from_bits((want as f32).to_bits() + 1) - want as f32);
        worst = worst.max((got - want).abs() / ulp);
        x += 0.000_37;
    }
    assert!(worst < 2.0, "{worst} ULP");
    assert_eq!(exp(0.0), 1.0);
    assert_eq!((exp(-87.1), exp(f32::NEG_INFINITY)), (0.0, 0.0));
    assert_eq!((exp(100.0), exp(f32::INFINITY), exp(f32::NAN)), (exp(88.0), exp(88.0), exp(88.0)));
}

#[test]
fn the_fast_copies_have_the_same_bits() {
    let mut rng = Rng::new(1);
    for n in [0, 1, 3, 4, 17, 64, 100] {
        let x: Vec<f32> = (0..n).map(|_| rng.unit()).collect();
        let y: Vec<f32> = (0..n).map(|_| rng.unit()).collect();
        let mut acc = [0.0f32; 4];
        for i in 0..n {
            acc[i % 4] = x[i].mul_add(y[i], acc[i % 4]);
        }
        assert_eq!(dot4(&x, &y).to_bits(), ((acc[0] + acc[1]) + (acc[2] + acc[3])).to_bits());
        let mut all = x.clone();
        exp_all(&mut all);
        assert_eq!(bits(&all), bits(&x.iter().map(|x| exp(*x)).collect::<Vec<_>>()));
    }
}

#[test]
fn lane_sums_follow_the_tree() {
    let x: Vec<f32> = (0..37).map(|i| 1.0 / (i as f32 + 1.0)).collect();
    let mut lanes = [0.0f32; 16];
    for (i, x) in x.iter().enumerate() {
        lanes[(i + 5) % 16] += x;
    }
    let l = |i: usize| (lanes[i] + lanes[i + 8]) + (lanes[i + 4] + lanes[i + 12]);
    assert_eq!(lane_sum(&x, 5), (l(0) + l(2)) + (l(1) + l(3)));
}

#[test]
fn quantisation_of_edge_blocks() {
    let mut q = [1i8; 32];
    assert_eq!(quantize_block(&[0.0; 32], &mut q), (0.0, 0));
    assert_eq!(q, [0; 32]);
    // amax 127 makes x * inv = x: ties go to even.
    let mut x = [0.0f32; 32];
    x[..6].copy_from_slice(&[127.0, 0.5, 1.5, 2.5, -0.5, -1.5]);
    assert_eq!(quantize_block(&x, &mut q), (1.0, 127 + 2 + 2 - 2));
    assert_eq!(q[..6], [127, 0, 2, 2, 0, -2]);
    for odd in [f32::INFINITY, f32::NEG_INFINITY, f32::NAN, f32::MIN_POSITIVE / 8.0, f32::MAX] {
        x[7] = odd;
        quantize_block(&x, &mut q);
        quantize_block(&[odd; 32], &mut q);
        quantize_weights(&x, 127.0, &mut q);
        quantize_weights(&[odd; 32], 7.0, &mut q);
    }
}

#[test]
fn weight_scales_round_up() {
    let mut rng = Rng::new(3);
    for _ in 0..1000 {
        let size = rng.pick(&[1e-9, 1e-3, 1.0, 1e4]);
        let w: Vec<f32> = (0..32).map(|_| rng.unit() * size).collect();
        let amax = w.iter().fold(0.0f32, |m, w| m.max(w.abs()));
        for limit in [127.0, 7.0] {
            let mut q = [0; 32];
            let scale = quantize_weights(&w, limit, &mut q);
            assert_eq!(round_f16(scale), scale);
            assert!(scale >= amax / limit);
            let below = half::f16::from_bits(half::f16::from_f32(scale).to_bits() - 1).to_f32();
            assert!(below < amax / limit);
            for (w, q) in w.iter().zip(q) {
                assert!((w - f32::from(q) * scale).abs() <= scale * 0.5001 + 1e-30);
            }
        }
    }
}

#[test]
fn mxfp4_decodes_low_nibbles_first() {
    let blocks: Vec<u8> = (0..16).map(|i| (i as u8 * 2 % 16) | ((i as u8 * 2 + 1) % 16) << 4).collect();
    let raw = RawTensor::Mxfp4 { blocks, scales: vec![128] };
    let values = raw.to_f32();
    let expected = [0.0, 1.0, 2.0, 3.0, 4.0, 6.0, 8.0, 12.0, 0.0, -1.0, -2.0, -3.0, -4.0, -6.0, -8.0, -12.0];
    assert_eq!(values[..16], expected);
    let tiny = RawTensor::Mxfp4 { blocks: vec![0x22; 16], scales: vec![0] };
    assert_eq!(tiny.to_f32()[0], 2.0f32.powi(-127));
}

/// A cache of random keys and values, and attention over it in f64 without segments.
fn naive(a: &Attention, kv: &LayerKv, q: &[f32], pos: usize, sinks: Option<&[f32]>) -> Vec<f64> {
    let first = a.window.map_or(0, |w| (pos + 1).saturating_sub(w as usize));
    let mut out = Vec::new();
    for h in 0..a.heads {
        let row = |rows: &CachedRows, p: usize| -> Vec<f64> {
            let head = p * a.kv_heads + h / (a.heads / a.kv_heads);
            let scale = rows.scales.get(head).map_or(1.0, |scale| f64::from(*scale));
            rows.values[head * a.head_dim..][..a.head_dim].iter().map(|x| f64::from(*x) * scale).collect()
        };
        let q = &q[h * a.head_dim..][..a.head_dim];
        let score = |p| {
            let dot: f64 = row(&kv.k, p).iter().zip(q).map(|(k, q)| k * f64::from(*q)).sum();
            let score = dot * f64::from(a.scale);
            let cap = a.softcap.map(f64::from);
            cap.map_or(score, |cap| cap * (score / cap).tanh()).exp()
        };
        let e: Vec<f64> = (first..=pos).map(score).collect();
        let sum: f64 = e.iter().sum::<f64>() + sinks.map_or(0.0, |s| f64::from(s[h]).exp());
        for d in 0..a.head_dim {
            let values = (first..=pos).map(|p| row(&kv.v, p)[d]);
            out.push(values.zip(&e).map(|(v, e)| v * e).sum::<f64>() / sum);
        }
    }
    if !a.kv.v.descriptor().rotated {
        return out;
    }
    // The cache has transformed values: the inverse, as a matrix of signs.
    let block = hadamard_block(a.head_dim);
    let sign = |i: usize, j: usize| if (i & j).count_ones().is_multiple_of(2) { 1.0 } else { -1.0 };
    let back = |x: &[f64], i: usize| x.iter().enumerate().map(|(j, x)| sign(i, j) * x).sum::<f64>();
    out.chunks(block).flat_map(|x| (0..block).map(move |i| back(x, i) / block as f64)).collect()
}

#[test]
fn attention_is_softmax() {
    let mut rng = Rng::new(9);
    let mut random = |n: usize, size: f32| -> Vec<f32> { (0..n).map(|_| rng.unit() * size).collect() };
    for (pos, window) in [
        (0, None),
        (5, Some(3)),
        (1023, None),
        (1024, None),
        (2500, None),
        (2500, Some(1500)),
        (1030, Some(1)),
    ] {
        let (heads, kv_heads, head_dim) = (4, 2, 32);
        let n = (pos + 1) * kv_heads * head_dim;
        let (k, v) = (random(n, 3.0), random(n, 1.0));
        let q = random(heads * head_dim, 1.0);
        let sinks = random(heads, 4.0);
        for format in KvFormat::ALL {
            // Formats with integer scores round the query besides.
            let allowed = if format.is_scaled() { 0.02 } else { 2e-6 };
            let cached = |x: &[f32]| {
                let heads: Vec<KvElements> = x.chunks(head_dim).map(|head| format.round(head)).collect();
                let scales = heads.iter().filter(|_| format.is_scaled()).map(|head| head.scale).collect();
                CachedRows { scales, values: heads.into_iter().flat_map(|head| head.values).collect() }
            };
            let (kv, formats) = (LayerKv { k: cached(&k), v: cached(&v) }, KvPair::both(format));
            let plain = Attention {
                layer: 0,
                shared: false,
                heads,
                kv_heads,
                head_dim,
                v_head_dim: head_dim,
                scale: 0.35,
                softcap: None,
                causal: true,
                window,
                kv: formats,
            };
            let capped = Attention { softcap: Some(2.0), ..plain.clone() };
            for (a, sinks) in [(&plain, None), (&plain, Some(sinks.as_slice())), (&capped, None)] {
                let got = a.attend(&kv, &q, a.view(pos, pos), sinks);
                for (got, want) in got.iter().zip(naive(a, &kv, &q, pos, sinks)) {
                    let what = format!("{format:?} pos {pos} window {window:?}: {got} {want}");
                    assert!((f64::from(*got) - want).abs() < allowed, "{what}");
                }
            }
        }
    }
}

/// As GLM-4 and ERNIE 4.5 pair elements, and as Phi-3 and StableLM do, in f64.
#[test]
fn a_part_of_each_head_rotates_as_published() {
    for (word, pair) in [(", neighbours", [2, 1]), ("", [1, 8])] {
        let plain = word.trim_start_matches(',');
        let graph: Graph = format!(
            r#"model "m" vocab 64 context 512
            rope 0 head_dim 32 theta 10000.0 plain rotary_dim 16{plain} attention_factor 1.25
            tensor @t table f32[64, 64] from "t"
            input %tokens : ids[T]
            %x = embed %tokens, @t : f32[T, 64]
            %y = rope(rope=0, head_dim=32, rotary_dim=16{word}) %x : f32[T, 64]
            %o = select_rows %y : f32[R, 64]
            output %o"#
        )
        .replace("            ", "")
        .parse()
        .unwrap();
        let weights = random_weights(&graph, 3).for_graph(&graph);
        let mut interp = Interpreter::new(&graph, &weights).unwrap();
        let tokens: Vec<u32> = (0..40).map(|i| i * 7 % 64).collect();
        // At position 0 nothing turns, and the factor is in these as in all others.
        let turned = interp.extend(0, &tokens).unwrap();
        let alone = tokens.iter().enumerate().map(|(i, &token)| interp.extend(1 + i, &[token]).unwrap());
        let alone: Vec<Vec<f32>> = alone.collect();
        for (position, (x, y)) in alone.iter().zip(turned.chunks(64)).enumerate() {
            for (x, y) in x.chunks(32).zip(y.chunks(32)) {
                assert_eq!(bits(&x[16..]), bits(&y[16..]));
                for i in 0..8 {
                    let (lo, hi) = (pair[0] * i, pair[0] * i + pair[1]);
                    let (sin, cos) = (position as f64 / 10000f64.powf(i as f64 / 8.0)).sin_cos();
                    let (a, b) = (f64::from(x[lo]), f64::from(x[hi]));
                    let found = [y[lo], y[hi]].map(f64::from);
                    let wrong =
                        (found[0] - (a * cos - b * sin)).abs() + (found[1] - (b * cos + a * sin)).abs();
                    assert!(wrong < 1e-5, "{word} position {position} pair {i}: {wrong}");
                }
            }
        }
    }
}

#[test]
fn chunks_and_company_change_no_bit() {
    for seed in 0..24 {
        let graph = build(&ModelShape::random(seed)).unwrap();
        let weights = random_weights(&graph, seed);
        for preset in Preset::ALL {
            let graph = quantise_chosen(&graph, preset, Some(&FormatChoices::assumed(&graph))).unwrap();
            let mut interp = Interpreter::new(&graph, &weights.for_graph(&graph)).unwrap();
            let mut rng = Rng::new(seed);
            let tokens: Vec<u32> = (0..40).map(|_| rng.below(graph.vocab) as u32).collect();
            let whole = interp.extend(0, &tokens).unwrap();
            assert!(whole.iter().all(|x| x.is_finite()));
            let single: Vec<f32> = tokens.iter().flat_map(|&t| interp.extend(1, &[t]).unwrap()).collect();
            let odd: Vec<f32> = tokens.chunks(7).flat_map(|c| interp.extend(2, c).unwrap()).collect();
            assert_eq!(bits(&whole), bits(&single), "seed {seed} {preset:?}");
            assert_eq!(bits(&whole), bits(&odd), "seed {seed} {preset:?}");
            // Beside another sequence, wanting only some rows.
            let batch: Vec<BatchToken> = tokens
                .iter()
                .enumerate()
                .flat_map(|(position, &token)| {
                    let other = BatchToken { sequence: 4, token: tokens[39 - position], position };
                    [BatchToken { sequence: 3, token, position }, other]
                })
                .collect();
            let beside = interp.run(&batch, &[0, 24, 78]).unwrap();
            let vocab = graph.vocab;
            let rows: Vec<f32> =
                [0, 12, 39].iter().flat_map(|r| whole[r * vocab..][..vocab].to_vec()).collect();
            assert_eq!(bits(&beside), bits(&rows), "seed {seed} {preset:?}");
        }
    }
}

#[test]
fn presets_agree_roughly() {
    let graph = build(&ModelShape::mini_gpt_oss()).unwrap();
    let weights = random_weights(&graph, 4);
    let logits = |preset| {
        let graph = quantise(&graph, preset).unwrap();
        let mut interp = Interpreter::new(&graph, &weights.for_graph(&graph)).unwrap();
        interp.extend(0, &[5, 17, 80, 3]).unwrap()
    };
    let exact = logits(Preset::Exact);
    let size = exact.iter().map(|x| x * x).sum::<f32>().sqrt();
    for preset in [Preset::Faithful, Preset::Bf16] {
        let other = logits(preset);
        let difference = exact.iter().zip(&other).map(|(a, b)| (a - b) * (a - b)).sum::<f32>().sqrt();
        assert!(difference > 0.0 && difference < 0.05 * size, "{preset:?}: {difference} of {size}");
    }
}

#[test]
fn bf16_rounds_to_even_and_keeps_no_denormals() {
    let rounded = |bits: u32| round_bf16(f32::from_bits(bits)).to_bits();
    for (bits, expected) in [
        (0x3f80_8000, 0x3f80_0000),
        (0x3f80_8001, 0x3f81_0000),
        (0x3f81_8000, 0x3f82_0000),
        (0x007f_ffff, 0),
        (0x8040_0000, 0x8000_0000),
        (0x0080_0000, 0x0080_0000),
        (0x7f7f_ffff, 0x7f80_0000),
        (0xff80_0000, 0xff80_0000),
        (0x7f80_0001, 0x7fc0_0000),
        (0xffff_ffff, 0xffff_0000),
    ] {
        assert_eq!(rounded(bits), expected, "{bits:08x}");
    }
}

#[test]
fn tiledot_takes_denormals_for_zeros() {
    let small = f32::MIN_POSITIVE;
    let dot = |w: [f32; 2], a: [f32; 2]| {
        let block = |x: [f32; 2]| [&x[..], &[0.0; 30]].concat();
        tiledot(&block(w), &block(a))
    };
    assert_eq!(dot([1.0, 2.0], [3.0, 5.0]), 13.0);
    assert_eq!(dot([small / 2.0, 0.0], [4.0, 0.0]), 0.0);
    assert_eq!(dot([1.0, 0.0], [small / 2.0, 0.0]), 0.0);
    // Each product is denormal, their sum would not be.
    assert_eq!(dot([0.5, 0.5], [small, small]), 0.0);
    assert_eq!(dot([0.5, 0.5], [small * 2.0, small]), small);
}

#[test]
fn hostile_weights_do_not_panic() {
    for seed in 0..20 {
        let graph = build(&ModelShape::random(seed)).unwrap();
        let mut weights = random_weights(&graph, seed);
        let mut rng = Rng::new(seed);
        for raw in &mut weights.raw {
            match raw {
                RawTensor::F32(x) => x.iter_mut().for_each(|x| *x = f32::from_bits(rng.bits() as u32)),
                RawTensor::Bf16(x) => x.iter_mut().for_each(|x| *x = rng.bits() as u16),
                RawTensor::Mxfp4 { scales, .. } => scales.iter_mut().for_each(|x| *x = rng.bits() as u8),
                RawTensor::Stored { bytes, .. } => bytes.iter_mut().for_each(|x| *x = rng.bits() as u8),
            }
        }
        for preset in Preset::ALL {
            let graph = quantise_chosen(&graph, preset, Some(&FormatChoices::assumed(&graph))).unwrap();
            let mut interp = Interpreter::new(&graph, &weights.for_graph(&graph)).unwrap();
            interp.extend(0, &[1, 2, 3]).unwrap();
        }
    }
}

#[test]
fn batches_are_checked() {
    let graph = build(&ModelShape::mini_llama()).unwrap();
    let weights = random_weights(&graph, 0).for_graph(&graph);
    let mut interp = Interpreter::new(&graph, &weights).unwrap();
    let token = |token, position| BatchToken { sequence: 0, token, position };
    let error = interp.run(&[token(96, 0)], &[]).unwrap_err();
    assert_eq!(error.to_string(), "batch row 0: token 96 of a vocabulary of 96");
    let error = interp.run(&[token(1, 0), token(1, 2)], &[]).unwrap_err();
    assert_eq!(error.to_string(), "batch row 1: position 2, expected 1");
    let error = interp.run(&[token(1, 0)], &[1]).unwrap_err();
    assert_eq!(error.to_string(), "batch row 0: wanted row 1, the batch has 1");
    assert_eq!(interp.length(0), 0);
    assert_eq!(interp.run(&[token(1, 0)], &[]), Ok(vec![]));
    assert!(matches!(interp.value("layers.0.h"), Some(Data::F32(h)) if h.len() == 96));
    assert_eq!(interp.sequence(0).map(|layers| layers[1].k.values.len()), Some(64));
}
