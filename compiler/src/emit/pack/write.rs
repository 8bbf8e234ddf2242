//! Streams a checkpoint's tensors into the weight region.
//!
//! The region is cut into work items of a few MB: consecutive chunks of one expert of one pack group of the
//! layout. Threads take items in ascending order, so that the checkpoint is read forwards, and keep one
//! chunk's rows in memory each.

use crate::ir::{Graph, Role, Tensor, TensorId};
use crate::passes::layout::{PackGroup, WeightLayout};
use crate::weights::{PackWeightsError, WeightSource, locate};
use kernmill_os::float_env::FloatEnv;
use kernmill_os::threads::share;
use kernmill_plan::format::{self, PackError, PlainDecode, TILE_ROWS, WeightFormat};
use std::ops::Range;
use std::sync::Mutex;

/// Bytes of the region that a work item covers, unless one chunk is larger.
const ITEM_BYTES: usize = 4 << 20;
/// Items that the disk is asked for before their turn.
const ITEMS_AHEAD: usize = 8;

/// Packs every tensor of the graph into `out`, the weight region of `layout`, with `threads` threads.
///
/// `progress` is called, from any thread, with the bytes of the region done since its last call. On an error
/// (of several, the first one in the region) `out` is left half-written.
///
/// # Panics
/// If `out` is not `layout.bytes` long, or the layout is not of this graph.
pub fn pack_weights<S: WeightSource>(
    graph: &Graph,
    layout: &WeightLayout,
    source: &S,
    out: &mut [u8],
    threads: usize,
    progress: &(dyn Fn(u64) + Sync),
) -> Result<(), PackWeightsError<S::Error>> {
    let _env = FloatEnv::standard();
    assert_eq!(out.len() as u64, layout.bytes, "length of the weight region");
    let mut rest = out;
    let parts = items(layout).map(move |item| {
        let part = rest.split_off_mut(..item.bytes).expect("the region is as long as its pack groups");
        (item, part)
    });
    for_each_item(graph, layout, source, threads, progress, parts, |item, part, buffers| {
        pack_item(graph, &layout.pack_groups[item.pack_group], item, source, part, &mut buffers.rows)
    })
}

/// Does `work` on every item with `threads` threads, which take them in order; of several errors, the first
/// item's counts.
pub(super) fn for_each_item<S: WeightSource, T: Send, E: Send>(
    graph: &Graph,
    layout: &WeightLayout,
    source: &S,
    threads: usize,
    progress: &(dyn Fn(u64) + Sync),
    items: impl Iterator<Item = (PackItem, T)> + Send,
    work: impl Fn(&PackItem, T, &mut Buffers) -> Result<(), E> + Sync,
) -> Result<(), E> {
    assert_eq!(graph.tensors.len(), layout.placements.len(), "tensors of the weight layout");
    let ahead: Vec<PackItem> = self::items(layout).collect();
    let hint = |item: &PackItem| {
        for_each_part(graph, layout, item, |tensor, rows| source.will_need(tensor, item.expert, rows));
    };
    ahead.iter().take(ITEMS_AHEAD).for_each(hint);
    let queue = Mutex::new(items.enumerate());
    let failure: Mutex<Option<(usize, E)>> = Mutex::new(None);
    let take = || {
        let mut buffers = Buffers::default();
        while failure.lock().expect("no panic holds it").is_none() {
            let Some((index, (item, part))) = queue.lock().expect("no panic holds it").next() else { return };
            ahead.get(index + ITEMS_AHEAD).into_iter().for_each(hint);
            if let Err(error) = work(&item, part, &mut buffers) {
                let mut failure = failure.lock().expect("no panic holds it");
                if failure.as_ref().is_none_or(|(first, _)| index < *first) {
                    *failure = Some((index, error));
                }
                return;
            }
            // Item by item, so that of a large tensor little more is resident than what is being packed.
            for_each_part(graph, layout, &item, |tensor, rows| source.done_with(tensor, item.expert, rows));
            progress(item.bytes as u64);
        }
    };
    share(threads, take);
    match failure.into_inner().expect("no panic holds it") {
        Some((_, error)) => Err(error),
        None => Ok(()),
    }
}

/// Consecutive chunks of an expert of a pack group, and the bytes they go to.
#[derive(Clone, Debug)]
pub(super) struct PackItem {
    pub pack_group: usize,
    pub expert: usize,
    pub chunks: Range<usize>,
    /// Byte offset in the region.
    pub offset: u64,
    pub bytes: usize,
}

/// The work items in order of offset; together they cover the region.
pub(super) fn items(layout: &WeightLayout) -> impl Iterator<Item = PackItem> + '_ {
    let spans = layout.pack_groups.iter().enumerate().flat_map(|(index, pack_group)| {
        (0..pack_group.experts).flat_map(move |expert| {
            let step = chunks_per_item(pack_group);
            let starts = (0..pack_group.chunks).step_by(step);
            starts.map(move |start| (index, pack_group, expert, start..pack_group.chunks.min(start + step)))
        })
    });
    let mut offset = 0;
    spans.map(move |(index, pack_group, expert, chunks)| {
        let bytes = chunks.len() * pack_group.chunk_bytes;
        offset += bytes as u64;
        PackItem { pack_group: index, expert, chunks, offset: offset - bytes as u64, bytes }
    })
}

/// The tensors of an item and the rows that it takes of each.
fn for_each_part(
    graph: &Graph,
    layout: &WeightLayout,
    item: &PackItem,
    take: impl Fn(&Tensor, Range<usize>),
) {
    for &tensor in &layout.pack_groups[item.pack_group].tensors {
        let tensor = tensor_of(graph, tensor);
        let (first, last) = (item.chunks.start, item.chunks.end - 1);
        take(tensor, chunk_rows(tensor, first).start..chunk_rows(tensor, last).end);
    }
}

fn chunks_per_item(pack_group: &PackGroup) -> usize {
    (ITEM_BYTES / pack_group.chunk_bytes).max(1)
}

fn tensor_of(graph: &Graph, id: TensorId) -> &Tensor {
    &graph.tensors[id.0 as usize]
}

/// The working memory of a thread.
#[derive(Default)]
pub(super) struct Buffers {
    pub rows: RowBuffers,
    /// A packed item, where it does not go to its place in memory.
    pub packed: Vec<u8>,
}

/// A thread's rows of the current chunk, as the source gives them.
#[derive(Default)]
pub(super) struct RowBuffers {
    f32: Vec<f32>,
    blocks: Vec<u8>,
    scales: Vec<u8>,
}

pub(super) fn pack_item<S: WeightSource>(
    graph: &Graph,
    pack_group: &PackGroup,
    item: &PackItem,
    source: &S,
    out: &mut [u8],
    rows: &mut RowBuffers,
) -> Result<(), PackWeightsError<S::Error>> {
    let part_bytes = pack_group.chunk_bytes / pack_group.tensors.len();
    for (chunk, out) in item.chunks.clone().zip(out.chunks_exact_mut(pack_group.chunk_bytes)) {
        for (&tensor, out) in pack_group.tensors.iter().zip(out.chunks_exact_mut(part_bytes)) {
            pack_chunk(tensor_of(graph, tensor), item.expert, chunk, source, out, rows)?;
        }
    }
    Ok(())
}

/// Packs one tile, row of a table, or vector.
fn pack_chunk<S: WeightSource>(
    tensor: &Tensor,
    expert: usize,
    chunk: usize,
    source: &S,
    out: &mut [u8],
    rows: &mut RowBuffers,
) -> Result<(), PackWeightsError<S::Error>> {
    let range = chunk_rows(tensor, chunk);
    let count = range.len();
    let first_row = range.start;
    let k = columns(tensor);
    let packed = if tensor.stored.is_blocked() {
        // The layout has checked that the format is the same.
        source.stored_rows(tensor, expert, range, &mut rows.blocks, &mut rows.scales)?;
        let apart = tensor.source.scales.is_some();
        let bytes = if apart { k / 2 } else { tensor.stored.stored_bytes(k) };
        assert_eq!(rows.blocks.len(), count * bytes, "rows of {} from the source", tensor.name);
        match apart {
            true => format::mxfp4::pack_tile(k, &rows.blocks, &rows.scales, out),
            false => format::pack_stored_tile(tensor.format, k, &rows.blocks, out),
        }
    } else {
        source.f32_rows(tensor, expert, range, &mut rows.f32)?;
        assert_eq!(rows.f32.len(), count * k, "rows of {} from the source", tensor.name);
        if tensor.plus != 0.0 {
            rows.f32.iter_mut().for_each(|x| *x += tensor.plus);
        }
        match tensor.role {
            Role::Matrix | Role::ExpertMatrix => format::pack_f32_tile(tensor.format, k, &rows.f32, out),
            Role::Vector | Role::ExpertVector => {
                store_row(WeightFormat::F32, &rows.f32, out).map_err(element_is_row)
            }
            Role::Table => store_row(tensor.format, &rows.f32, out),
        }
    };
    packed.map_err(|error| locate(tensor, expert, first_row, error))
}

/// Rows of the tensor that a chunk holds.
fn chunk_rows(tensor: &Tensor, chunk: usize) -> Range<usize> {
    match (tensor.role, tensor.shape.as_slice()) {
        (_, &[.., n, _]) if tensor.is_tiled() => chunk * TILE_ROWS..n.min((chunk + 1) * TILE_ROWS),
        (Role::Vector | Role::ExpertVector, &[.., n]) => 0..n,
        (Role::Table, _) => chunk..chunk + 1,
        _ => unreachable!("the layout has checked the shape of {}", tensor.name),
    }
}

/// Elements of a row as the source counts them.
fn columns(tensor: &Tensor) -> usize {
    match tensor.role {
        Role::Vector | Role::ExpertVector => 1,
        Role::Matrix | Role::ExpertMatrix | Role::Table => tensor.shape[tensor.shape.len() - 1],
    }
}

/// Stores a row as it is, padded with zeros.
fn store_row(format: WeightFormat, row: &[f32], out: &mut [u8]) -> Result<(), PackError> {
    let decode = format.decode().plain().expect("the layout has checked the format");
    let (data, padding) = out.split_at_mut(row.len() * decode.bytes());
    padding.fill(0);
    match decode {
        PlainDecode::Bf16 => format::bf16::store_row(row, data),
        PlainDecode::F32 => format::f32::store_row(row, data),
    }
}

/// A vector is packed as one row of elements but counted as rows of one element.
fn element_is_row(error: PackError) -> PackError {
    PackError { row: error.k, k: 0, ..error }
}
