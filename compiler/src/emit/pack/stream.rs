//! Streams a checkpoint's tensors, packed, to something that takes pieces: a file.

use super::write::{for_each_item, items, pack_item};
use crate::ir::Graph;
use crate::passes::layout::WeightLayout;
use crate::weights::{PackWeightsError, WeightSource};

/// A finished part of the weight region.
#[derive(Clone, Copy, Debug)]
pub struct RegionPiece<'a> {
    /// Place among the pieces, which cover the region in this order.
    pub index: usize,
    /// Byte offset in the region.
    pub offset: u64,
    /// Bytes of the piece.
    pub bytes: &'a [u8],
}

/// Bytes of each piece that [`stream_weights`] gives out, in order of offset. They depend on the layout
/// alone.
pub fn piece_sizes(layout: &WeightLayout) -> impl Iterator<Item = u64> + '_ {
    items(layout).map(|item| item.bytes as u64)
}

/// Packs every tensor of the graph with `threads` threads and gives the pieces to `take`, from any thread and
/// in any order. A thread holds one piece (a few MB) at a time.
///
/// # Errors
/// The first piece's that cannot be packed or taken.
pub fn stream_weights<S: WeightSource, E>(
    graph: &Graph,
    layout: &WeightLayout,
    source: &S,
    threads: usize,
    progress: &(dyn Fn(u64) + Sync),
    take: &(dyn Fn(RegionPiece<'_>) -> Result<(), E> + Sync),
) -> Result<(), E>
where
    E: From<PackWeightsError<S::Error>> + Send,
{
    let numbered = items(layout).enumerate().map(|(index, item)| (item, index));
    for_each_item(graph, layout, source, threads, progress, numbered, |item, index, buffers| {
        // Packing leaves out padding, which is zero.
        buffers.packed.clear();
        buffers.packed.resize(item.bytes, 0);
        let pack_group = &layout.pack_groups[item.pack_group];
        pack_item(graph, pack_group, item, source, &mut buffers.packed, &mut buffers.rows)?;
        take(RegionPiece { index, offset: item.offset, bytes: &buffers.packed })
    })
}
