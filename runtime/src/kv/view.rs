//! Block tables as kernels read them: those of an engine, or a copy of them at another stage.

use kernmill_plan::kv::LayerKind;

/// The block tables of all sequences, by kind of layers: `[sequences][stride]` ids of blocks, each row
/// indexed by position / 16.
#[derive(Clone, Copy, Debug)]
pub(crate) struct BlockTables<'a> {
    tables: [&'a [u32]; 2],
    stride: u32,
}

impl<'a> BlockTables<'a> {
    /// Tables by [`LayerKind::index`], whose rows are `stride` entries apart.
    pub(crate) fn new(tables: [&'a [u32]; 2], stride: u32) -> BlockTables<'a> {
        BlockTables { tables, stride }
    }

    /// The table of a kind of layers, and its stride.
    pub(crate) fn table(&self, kind: LayerKind) -> (&'a [u32], u32) {
        (self.tables[kind.index()], self.stride)
    }
}
