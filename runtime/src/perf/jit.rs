//! A jitdump: kernels with their names and bytes, from which `perf inject --jit` makes object files that
//! `perf annotate` disassembles. The format is that of `tools/perf/Documentation/jitdump-specification.txt`
//! of Linux.

use crate::engine::Engine;
use kernmill_os::output::NewFile;
use kernmill_os::perf::{monotonic_nanoseconds, show};
use kernmill_plan::program::CodeBlob;
use std::fs::File;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

/// The letters JiTD, in the byte order of who reads them.
const MAGIC: u32 = 0x4a69_5444;
const VERSION: u32 = 1;
/// Bytes of the header.
const HEADER: u32 = 40;
/// Number of x86-64 in ELF files.
const X86_64: u32 = 62;
/// A record of code that was loaded.
const CODE_LOAD: u32 = 0;
/// Bytes of such a record before the name.
const LOAD_HEADER: usize = 56;

/// Writes `jit-PID.dump` to the directory `dir`, with the functions of the engine's program, and maps its
/// beginning, by which `perf record` finds it; the path.
///
/// # Errors
/// When the file cannot be written, or lies where nothing may be mapped as executable.
pub fn write_dump(dir: &Path, engine: &Engine, code: &CodeBlob) -> Result<PathBuf, (PathBuf, io::Error)> {
    let pid = std::process::id();
    let path = dir.join(format!("jit-{pid}.dump"));
    let dump = dump(engine.code_address() as u64, code, pid, monotonic_nanoseconds());
    match replace(&path, &dump) {
        Ok(()) => Ok(path),
        Err(error) => Err((path, error)),
    }
}

fn replace(path: &Path, dump: &[u8]) -> io::Result<()> {
    let new = NewFile::create_file(path)?;
    new.file().write_all(dump)?;
    new.finish()?;
    show(&File::open(path)?).map_err(|error| match error.kind() {
        io::ErrorKind::PermissionDenied => io::Error::new(
            error.kind(),
            format!(
                "{error}: perf finds the file by an executable mapping of it, which noexec forbids there"
            ),
        ),
        _ => error,
    })
}

/// The file: a header, and a record for each function.
fn dump(base: u64, code: &CodeBlob, pid: u32, time: u64) -> Vec<u8> {
    let mut dump = Vec::new();
    for word in [MAGIC, VERSION, HEADER, X86_64, 0, pid] {
        dump.extend(word.to_le_bytes());
    }
    // The second is flags: times are nanoseconds of CLOCK_MONOTONIC.
    [time, 0].iter().for_each(|word| dump.extend(word.to_le_bytes()));
    for (index, symbol) in (0_u64..).zip(&code.symbols) {
        let range = symbol.offset as usize..(symbol.offset + symbol.size) as usize;
        let Some(bytes) = code.bytes.get(range) else { continue };
        let address = base + symbol.offset;
        let name: Vec<u8> = symbol.name.bytes().filter(|byte| *byte != 0).chain([0]).collect();
        let size = LOAD_HEADER + name.len() + bytes.len();
        [CODE_LOAD, size as u32].iter().for_each(|word| dump.extend(word.to_le_bytes()));
        dump.extend(time.to_le_bytes());
        [pid, pid].iter().for_each(|word| dump.extend(word.to_le_bytes()));
        let words = [address, address, bytes.len() as u64, index];
        words.iter().for_each(|word| dump.extend(word.to_le_bytes()));
        dump.extend(name);
        dump.extend(bytes);
    }
    dump
}
