//! Generated code against plain definitions, on every level that this machine can run.

mod bf16;
mod fence;
mod gemm;
mod guard;
mod leaves;
pub mod machine;
mod operands;
mod replay;

use kernmill_plan::program::CodeBlob;
use kernmill_plan::target::Level;
use memmap2::{Mmap, MmapMut};

/// Every level of this machine, with and without the wide versions. Not `amx`, whose own leaves need tiles around them, and permission: they run in
/// the interpreter here, and on the CPU, if it has tiles, in the programs of `tests/equality/`.
pub fn versions() -> impl Iterator<Item = (Level, bool)> {
    let levels = Level::supported().into_iter().filter(|level| *level < Level::Amx);
    levels.flat_map(|level| [(level, false), (level, true)])
}

pub fn name(level: Level, wide: bool) -> String {
    format!("{}{}", level.name(), if wide { " wide" } else { "" })
}

/// A code blob that can be called.
pub struct Code {
    map: Mmap,
    blob: CodeBlob,
}

impl Code {
    pub fn new(blob: CodeBlob) -> Code {
        let mut map = MmapMut::map_anon(blob.bytes.len()).unwrap();
        map.copy_from_slice(&blob.bytes);
        Code { map: map.make_exec().unwrap(), blob }
    }

    /// Machine code of symbol `index`.
    pub fn bytes(&self, index: usize) -> &[u8] {
        let symbol = &self.blob.symbols[index];
        &self.map[symbol.offset as usize..][..symbol.size as usize]
    }

    /// Address of symbol `index`.
    pub fn address(&self, index: usize) -> *const u8 {
        &raw const self.map[self.blob.symbols[index].offset as usize]
    }
}
