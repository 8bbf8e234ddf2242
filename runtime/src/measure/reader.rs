//! Functions that read memory and do nothing else.

use super::MeasureError;
use crate::code::ExecutableCode;
use crate::executor::LoadError;
use kernmill_plan::format::LINE;
use kernmill_plan::probe::{Probe, ReadWay};
use std::sync::Arc;

/// One way to read memory.
pub struct MemoryReader {
    way: ReadWay,
    read: extern "C" fn(*const u8, u64),
    // The function's home.
    _code: Arc<ExecutableCode>,
}

/// A probe's ways to read memory.
///
/// # Errors
/// When this CPU lacks the probe's features, or the system refuses memory for code.
///
/// # Safety
/// The probe is what kernmill's generator made (`kernmill_kernels_gen::peak::probe`): its code is called.
pub unsafe fn readers(probe: &Probe) -> Result<Vec<MemoryReader>, MeasureError> {
    let missing = probe.level.missing();
    if !missing.is_empty() {
        return Err(MeasureError::Cpu(LoadError::Cpu { level: probe.level.name(), missing }));
    }
    let code = Arc::new(ExecutableCode::load(&probe.code.bytes, &blake3::hash(&probe.code.bytes))?);
    let reader = |way: &ReadWay| {
        let symbol = probe.code.symbols.iter().find(|symbol| symbol.name == way.symbol)?;
        let offset =
            Some(symbol.offset as usize).filter(|at| *at < probe.code.bytes.len() && way.step > 0)?;
        // SAFETY: a probe's functions have this type, by the caller's promise; the CPU has what they use, and
        // the code lives as long as the reader.
        let read =
            unsafe { std::mem::transmute::<*const u8, extern "C" fn(*const u8, u64)>(code.address(offset)) };
        Some(MemoryReader { way: way.clone(), read, _code: Arc::clone(&code) })
    };
    let all: Option<Vec<MemoryReader>> = probe.reads.iter().map(reader).collect();
    all.ok_or(MeasureError::Symbol("read"))
}

impl MemoryReader {
    /// How it reads.
    pub fn way(&self) -> &ReadWay {
        &self.way
    }

    /// Reads memory, at least a word of every line of it.
    pub fn read(&self, memory: &[u8]) {
        let steps = memory.len() / self.way.step;
        // The function reads `steps * step` bytes from the start on, which are there.
        (self.read)(memory.as_ptr(), steps as u64);
        for line in memory[steps * self.way.step..].chunks(LINE) {
            std::hint::black_box(line[0]);
        }
    }
}
