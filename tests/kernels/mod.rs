//! Generated code against plain definitions, on every level that this machine can run.

mod gemm;
mod leaves;

use kernmill_plan::program::CodeBlob;
use memmap2::{Mmap, MmapMut};

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

    /// Address of symbol `index`.
    pub fn address(&self, index: usize) -> *const u8 {
        &raw const self.map[self.blob.symbols[index].offset as usize]
    }
}
