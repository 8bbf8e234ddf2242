use super::*;
use crate::ir::{Graph, MatMul, Node, Role, RowSelect, Tensor, TensorId, TensorSource, ValueId};
use crate::passes::layout::{self, Placement, WeightLayout, plan_weights, table_row_stride};
use crate::testing::{Rng, random_blocks};
use crate::weights::{PackWeightsError, WeightSource};
use half::bf16;
use kernmill_plan::format::{self, Problem};
use kernmill_plan::format::{WeightFormat, f32_row_stride};
use std::ops::Range;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

fn tensor(name: &str, role: Role, shape: &[usize], stored: WeightFormat, format: WeightFormat) -> Tensor {
    let scales = (stored == WeightFormat::Mxfp4).then(|| format!("ckpt.{name}_scales"));
    let source =
        TensorSource { name: format!("ckpt.{name}"), scales, rows: RowSelect::ALL, transposed: false };
    Tensor { name: name.into(), role, shape: shape.into(), stored, format, plus: 0.0, source }
}

/// A graph of these tensors, used in this order.
fn graph(tensors: Vec<Tensor>, used: &[u32]) -> Graph {
    let node = |&id| Node {
        op: MatMul::LINEAR.into(),
        inputs: vec![],
        tensors: vec![TensorId(id)],
        output: ValueId(0),
    };
    Graph {
        name: "test".into(),
        vocab: 0,
        max_context: 0,
        left_out: vec![],
        values: vec![],
        tensors,
        nodes: used.iter().map(node).collect(),
        ropes: vec![],
        output: ValueId(0),
        vectors: None,
    }
}

/// Every role and way to store; gate and up (tensors 3 and 4) are a pair.
fn model() -> Graph {
    use Role::{ExpertMatrix, ExpertVector, Matrix, Table, Vector};
    use WeightFormat::{Bf16, F32, Int4, Int8, Mxfp4};
    let mut tensors = vec![
        tensor("embed", Table, &[5, 33], Bf16, Bf16),
        tensor("norm", Vector, &[33], Bf16, F32),
        tensor("q", Matrix, &[40, 64], Bf16, Int8),
        tensor("gate", ExpertMatrix, &[3, 40, 96], Mxfp4, Mxfp4),
        tensor("up", ExpertMatrix, &[3, 40, 96], Mxfp4, Mxfp4),
        tensor("bias", ExpertVector, &[3, 40], F32, F32),
        tensor("router", Matrix, &[3, 33], Bf16, Bf16),
        tensor("head", Matrix, &[17, 32], F32, Int4),
        tensor("exact", Matrix, &[16, 7], F32, F32),
        tensor("unused", Table, &[2, 16], F32, F32),
        tensor("down", ExpertMatrix, &[3, 20, 32], Bf16, Int8),
    ];
    // In the blocks of a file: a table that is a matrix too, and experts.
    tensors.push(tensor("tied", Table, &[37, 256], WeightFormat::Q4K, WeightFormat::Q4K));
    tensors.push(tensor("tied", Matrix, &[37, 256], WeightFormat::Q4K, WeightFormat::Q4K));
    tensors.push(tensor("other", Matrix, &[37, 256], WeightFormat::Q4K, WeightFormat::Q4K));
    tensors.push(tensor("experts", ExpertMatrix, &[3, 20, 64], WeightFormat::Nvfp4, WeightFormat::Nvfp4));
    graph(tensors, &[0, 1, 2, 6, 4, 3, 5, 10, 0, 7, 8, 11, 14, 12, 13])
}

const PAIR: (TensorId, TensorId) = (TensorId(3), TensorId(4));

/// Weights of [`model`], different everywhere.
fn weights(graph: &Graph) -> MemorySource {
    let mut source = MemorySource::default();
    let mut state = 1u32;
    let mut next = move || {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        state >> 8
    };
    for tensor in &graph.tensors {
        let elements = tensor.shape.iter().product::<usize>();
        if tensor.source.scales.is_some() {
            let blocks = (0..elements / 2).map(|_| next() as u8).collect();
            let scales = (0..elements / 32).map(|_| 100 + next() as u8 % 40).collect();
            source.stored.insert(tensor.name.clone(), (blocks, scales));
        } else if tensor.stored.is_blocked() {
            let blocks = random_blocks(tensor.stored, elements, 1.0, &mut Rng::new(1));
            source.stored.insert(tensor.name.clone(), (blocks, Vec::new()));
        } else {
            let data = (0..elements).map(|_| bf16::from_f32(next() as f32 / (1 << 23) as f32 - 1.0).to_f32());
            source.f32.insert(tensor.name.clone(), data.collect());
        }
    }
    source
}

fn pack(graph: &Graph, layout: &WeightLayout, source: &impl WeightSource, threads: usize) -> Vec<u8> {
    let mut out = vec![0xaa; layout.bytes as usize];
    let progress = AtomicU64::new(0);
    let count = |bytes| {
        progress.fetch_add(bytes, Ordering::Relaxed);
    };
    pack_weights(graph, layout, source, &mut out, threads, &count).unwrap();
    assert_eq!(progress.into_inner(), layout.bytes, "progress adds up to the region");
    out
}

#[test]
fn tensors_lie_in_order_of_use() {
    let graph = model();
    let layout = plan_weights(&graph, &[PAIR]).unwrap();
    let mut spans: Vec<(u64, u64, &str)> = Vec::new();
    for (placement, tensor) in layout.placements.iter().zip(&graph.tensors) {
        assert!(placement.offset.is_multiple_of(64), "{}", tensor.name);
        assert!(placement.end() <= layout.bytes, "{}", tensor.name);
        spans.push((placement.offset, placement.end(), &tensor.name));
    }
    spans.sort();
    let order: Vec<&str> = spans.iter().map(|span| span.2).collect();
    let expected = [
        "embed", "norm", "q", "router", "gate", "up", "bias", "down", "head", "exact", "tied", "tied",
        "experts", "other", "unused",
    ];
    assert_eq!(order, expected);
    for pair in spans.windows(2).filter(|pair| pair[1].2 != "up" && pair[0].2 != pair[1].2) {
        assert_eq!(pair[0].1, pair[1].0, "{pair:?}: no gap");
    }
}

#[test]
fn a_pair_alternates() {
    let graph = model();
    let layout = plan_weights(&graph, &[PAIR]).unwrap();
    let (gate, up) = (layout.placement(PAIR.0), layout.placement(PAIR.1));
    let tile = WeightFormat::Mxfp4.tile(96).bytes() as u64;
    assert_eq!(up.offset, gate.offset + tile);
    assert_eq!((gate.tile_stride, up.tile_stride), (2 * tile, 2 * tile));
    assert_eq!((gate.expert_stride, up.expert_stride), (6 * tile, 6 * tile));
    assert_eq!(gate.bytes, 17 * tile);
    assert_eq!(up.end(), gate.offset + 18 * tile);
    let alone = plan_weights(&graph, &[]).unwrap();
    assert_eq!(alone.bytes, layout.bytes);
    assert_eq!(alone.placement(PAIR.0).tile_stride, tile);
    assert_eq!(alone.placement(PAIR.0).bytes, 9 * tile);
}

#[test]
fn a_table_and_a_matrix_of_the_same_tiles_are_one() {
    let graph = model();
    let of = |graph: &Graph| {
        let layout = plan_weights(graph, &[PAIR]).unwrap();
        ([11, 12, 13].map(|id| layout.placement(TensorId(id))), layout.bytes)
    };
    let ([table, matrix, other], bytes) = of(&graph);
    let tiles = WeightFormat::Q4K.matrix_bytes(37, 256) as u64;
    assert_eq!(table, matrix);
    assert_eq!((table.tile_stride, table.bytes), (WeightFormat::Q4K.tile(256).bytes() as u64, tiles));
    assert_ne!(other.offset, table.offset);
    // Not where they are other rows, or one is changed before it is packed.
    let apart = |change: fn(&mut Tensor)| {
        let mut graph = graph.clone();
        change(&mut graph.tensors[12]);
        let ([table, matrix, _], more) = of(&graph);
        assert_ne!(table.offset, matrix.offset);
        assert_eq!(more - bytes, matrix.bytes);
    };
    apart(|tensor| tensor.source.rows = RowSelect::EVEN);
    apart(|tensor| tensor.source.name = "another".into());
    apart(|tensor| (tensor.stored, tensor.format) = (WeightFormat::F32, WeightFormat::Int8));
}

/// Every element, found through the placement, is what the source has.
fn check_elements(graph: &Graph, layout: &WeightLayout, source: &MemorySource, out: &[u8]) {
    for (index, tensor) in graph.tensors.iter().enumerate() {
        let place = layout.placement(TensorId(index as u32));
        let (experts, n, k) = layout::dims(tensor).unwrap();
        for expert in 0..experts {
            for row in 0..n {
                for column in 0..k {
                    let place = place.offset as usize + expert * place.expert_stride as usize;
                    let at = (expert * n + row) * k + column;
                    check_element(tensor, &layout.placements[index], source, &out[place..], at, row, column);
                }
            }
        }
    }
}

/// One element; `out` starts at its expert, `at` is its index in the source.
fn check_element(
    tensor: &Tensor,
    place: &Placement,
    source: &MemorySource,
    out: &[u8],
    at: usize,
    row: usize,
    column: usize,
) {
    let what = format!("{} [{row}, {column}]", tensor.name);
    if !tensor.is_tiled() {
        let want = source.f32[&tensor.name][at];
        let at = row * if tensor.role == Role::Table { place.tile_stride as usize } else { 4 };
        let got = match tensor.format {
            WeightFormat::Bf16 => {
                bf16::from_le_bytes(out[at + 2 * column..][..2].try_into().unwrap()).to_f32()
            }
            _ => f32::from_le_bytes(out[at + 4 * column..][..4].try_into().unwrap()),
        };
        assert_eq!(got, want, "{what}");
        return;
    }
    let k = *tensor.shape.last().unwrap();
    let tile = &out[row / 16 * place.tile_stride as usize..][..tensor.format.tile(k).bytes()];
    let got = format::value(tensor.format, k, tile, row % 16, column);
    if tensor.stored.is_blocked() && tensor.source.scales.is_none() {
        let (mut elements, (blocks, _)) = (Vec::new(), &source.stored[&tensor.name]);
        let bytes = tensor.stored.stored_bytes(k);
        format::read_stored(tensor.stored, &blocks[at / k * bytes..][..bytes], &mut elements);
        assert_eq!(got, elements[column], "{what}");
        return;
    }
    if tensor.format == WeightFormat::Mxfp4 {
        let (blocks, scales) = &source.stored[&tensor.name];
        let code = blocks[at / 2] >> (4 * (at % 2)) & 15;
        assert_eq!(
            got,
            format::mxfp4::E2M1[usize::from(code)] * 2f32.powi(i32::from(scales[at / 32]) - 127),
            "{what}"
        );
        return;
    }
    // Weights are below 1, so half a step of the quantisation is below 0.51 / levels; of int4, a weight
    // opposite the largest one may lie beyond 7 steps of 1 / 8.75.
    let error = match tensor.format {
        WeightFormat::Int8 => 0.51 / 127.0,
        WeightFormat::Int4 => 0.201,
        _ => 0.0,
    };
    assert!((got - source.f32[&tensor.name][at]).abs() <= error, "{what}");
}

#[test]
fn packed_elements_are_the_sources() {
    let graph = model();
    let source = weights(&graph);
    for pairs in [&[PAIR][..], &[]] {
        let layout = plan_weights(&graph, pairs).unwrap();
        let out = pack(&graph, &layout, &source, 1);
        check_elements(&graph, &layout, &source, &out);
        assert!(out == pack(&graph, &layout, &source, 3), "the number of threads changes nothing");
    }
}

#[test]
fn rows_are_padded_with_zeros() {
    let graph = model();
    let layout = plan_weights(&graph, &[PAIR]).unwrap();
    let out = pack(&graph, &layout, &weights(&graph), 2);
    let bias = layout.placement(TensorId(5));
    assert_eq!(bias.expert_stride, f32_row_stride(40) as u64);
    let first = &out[bias.offset as usize..][..f32_row_stride(40)];
    assert!(first[160..].iter().all(|&byte| byte == 0));
    let embed = layout.placement(TensorId(0));
    assert_eq!(embed.tile_stride, table_row_stride(WeightFormat::Bf16, 33) as u64);
    assert!(out[embed.offset as usize..][66..128].iter().all(|&byte| byte == 0));
}

/// Rows of an expert of a tensor.
type Part = (String, usize, Range<usize>);

/// A matrix of several work items, read by range; it records what is wanted soon, and what is done with.
struct Counting {
    inner: MemorySource,
    hinted: Mutex<Vec<Part>>,
    done: Mutex<Vec<Part>>,
}

impl WeightSource for Counting {
    type Error = MemorySourceError;

    fn f32_rows(
        &self,
        t: &Tensor,
        e: usize,
        rows: Range<usize>,
        out: &mut Vec<f32>,
    ) -> Result<(), Self::Error> {
        assert!(rows.len() * 2048 <= 1 << 20, "rows come in small groups");
        self.inner.f32_rows(t, e, rows, out)
    }

    fn stored_rows(
        &self,
        t: &Tensor,
        e: usize,
        rows: Range<usize>,
        blocks: &mut Vec<u8>,
        scales: &mut Vec<u8>,
    ) -> Result<(), Self::Error> {
        self.inner.stored_rows(t, e, rows, blocks, scales)
    }

    fn will_need(&self, t: &Tensor, e: usize, rows: Range<usize>) {
        self.hinted.lock().unwrap().push((t.name.clone(), e, rows));
    }

    fn done_with(&self, t: &Tensor, e: usize, rows: Range<usize>) {
        self.done.lock().unwrap().push((t.name.clone(), e, rows));
    }

    fn drop_cache(&self) {}
}

#[test]
fn large_tensors_are_asked_for_and_given_back_part_by_part() {
    let mut tensors = model().tensors;
    tensors.push(tensor("large", Role::Matrix, &[2500, 2048], WeightFormat::F32, WeightFormat::F32));
    let used: Vec<u32> = (0..tensors.len() as u32).collect();
    let graph = graph(tensors, &used);
    let source = Counting { inner: weights(&graph), hinted: Mutex::default(), done: Mutex::default() };
    let layout = plan_weights(&graph, &[PAIR]).unwrap();
    let out = pack(&graph, &layout, &source, 2);
    check_elements(&graph, &layout, &source.inner, &out);
    let sorted = |parts: Mutex<Vec<Part>>| {
        let mut parts = parts.into_inner().unwrap();
        parts.sort_by_key(|(name, expert, rows)| (name.clone(), *expert, rows.start));
        parts
    };
    let (hinted, done) = (sorted(source.hinted), sorted(source.done));
    assert_eq!(hinted, done, "everything is asked for once");
    assert!(done.iter().filter(|(name, ..)| name == "large").count() > 3, "it comes in parts");
    // The table that is a matrix too is read once.
    for (_, tensor) in graph.tensors.iter().enumerate().filter(|(id, _)| *id != 12) {
        let (experts, rows, _) = layout::dims(tensor).unwrap();
        for expert in 0..experts {
            let parts = done.iter().filter(|part| part.0 == tensor.name && part.1 == expert);
            let end = parts.fold(0, |end, (.., part)| {
                assert_eq!(part.start, end, "{}: every row once, in order", tensor.name);
                part.end
            });
            assert_eq!(end, rows, "{}", tensor.name);
        }
    }
}

fn failure(graph: &Graph, source: &MemorySource) -> PackWeightsError<MemorySourceError> {
    let layout = plan_weights(graph, &[PAIR]).unwrap();
    pack_weights(graph, &layout, source, &mut vec![0; layout.bytes as usize], 2, &|_| ()).unwrap_err()
}

#[test]
fn bad_weights_are_named() {
    let graph = model();
    let mut source = weights(&graph);
    source.f32.get_mut("down").unwrap()[(2 * 20 + 18) * 32 + 5] = f32::NAN;
    let text = failure(&graph, &source).to_string();
    let expected = "checkpoint tensor ckpt.down (for down), expert 2, row 18, k 5: the weight is NaN, \
        expected a finite number";
    assert_eq!(text, expected);

    // Of several errors the first in the region is the one reported: up's.
    source.stored.get_mut("up").unwrap().1[(40 + 39) * 3 + 2] = 255;
    let text = failure(&graph, &source).to_string();
    let expected = "checkpoint tensor ckpt.up_scales (for up), expert 1, row 39, k 64: the MXFP4 scale byte \
        is 255, expected 0 to 232";
    assert_eq!(text, expected);

    source.f32.get_mut("q").unwrap()[17 * 64 + 33] = -1e9;
    let PackWeightsError::Weight { row: 17, k: 33, expert: None, problem, .. } = failure(&graph, &source)
    else {
        panic!("an error of q")
    };
    assert!(matches!(problem, Problem::ScaleOverflow { amax: 1e9, .. }), "{problem}");

    source.f32.get_mut("norm").unwrap()[32] = f32::INFINITY;
    let PackWeightsError::Weight { tensor, row: 32, k: 0, .. } = failure(&graph, &source) else {
        panic!("an error of norm")
    };
    assert_eq!(tensor, "norm");

    let mut other = weights(&graph);
    other.stored.get_mut("experts").unwrap().0[(20 + 19) * 36 + 3] = 127;
    let text = failure(&graph, &other).to_string();
    let expected = "checkpoint tensor ckpt.experts (for experts), expert 1, row 19, k 0: the block's scale or \
        minimum is NaN, expected a finite number";
    assert_eq!(text, expected);

    source.f32.remove("embed");
    assert!(matches!(failure(&graph, &source), PackWeightsError::Source(MemorySourceError { .. })));
}

#[test]
fn impossible_layouts_are_refused() {
    use WeightFormat::{Bf16, F32, Int8, Mxfp4, Nvfp4, Q4K};
    let refuse = |tensor: Tensor| plan_weights(&graph(vec![tensor], &[0]), &[]).unwrap_err().to_string();
    let text = refuse(tensor("m", Role::Matrix, &[4, 40], Bf16, Int8));
    assert_eq!(text, "tensor m: shape [4, 40] of a Matrix, expected a multiple of 32 columns in int8");
    assert!(
        refuse(tensor("m", Role::Matrix, &[4, 32], Q4K, Q4K)).contains("a multiple of 256 columns in q4_k")
    );
    assert!(refuse(tensor("m", Role::Matrix, &[4, 96], Nvfp4, Nvfp4)).contains("a multiple of 64 columns"));
    let text = refuse(tensor("m", Role::Matrix, &[4, 256], Q4K, Int8));
    assert_eq!(text, "tensor m: format int8 of a Matrix, expected q4_k, as it is stored");
    assert!(refuse(tensor("v", Role::Vector, &[256], Q4K, F32)).contains("q4_k, as it is stored"));
    assert!(refuse(tensor("m", Role::Matrix, &[0, 32], Bf16, Int8)).contains("[n, k]"));
    assert!(refuse(tensor("m", Role::ExpertMatrix, &[4, 32], Bf16, Int8)).contains("[experts, n, k]"));
    let text = refuse(tensor("m", Role::Matrix, &[4, 32], Bf16, Mxfp4));
    assert_eq!(text, "tensor m: format mxfp4 of a Matrix, expected one that bf16 weights become");
    assert!(
        refuse(tensor("t", Role::Table, &[4, 32], Bf16, Int8)).contains("expected bf16, as it is stored")
    );
    assert!(refuse(tensor("v", Role::Vector, &[4], Bf16, Bf16)).contains("expected f32"));

    let graph = model();
    let refuse = |pairs: &[(u32, u32)]| {
        let pairs: Vec<_> = pairs.iter().map(|&(a, b)| (TensorId(a), TensorId(b))).collect();
        plan_weights(&graph, &pairs).unwrap_err().to_string()
    };
    assert_eq!(refuse(&[(3, 3)]), "tensors gate and gate cannot be interleaved: they are the same tensor");
    assert!(refuse(&[(3, 4), (4, 3)]).contains("another pair"));
    assert!(refuse(&[(2, 3)]).contains("role"));
    assert!(refuse(&[(3, 10)]).contains("shapes differ"));
    assert!(refuse(&[(1, 5)]).contains("not matrices"));
}
