//! Files by which Linux's `perf` knows code that no file holds: a map of names, and a dump of the code.

mod jit;

use crate::engine::Engine;
pub use jit::write_dump;
use kernmill_plan::program::Symbol;
use std::fmt::Write as _;
use std::fs::File;
use std::io::{self, ErrorKind, Write};
use std::path::{Path, PathBuf};

/// Writes `/tmp/perf-PID.map`, which `perf` looks for, with the functions of the engine's program; the path.
///
/// # Errors
/// When the file cannot be written, or is there and belongs to somebody else.
pub fn write_map(engine: &Engine, symbols: &[Symbol]) -> Result<PathBuf, (PathBuf, io::Error)> {
    let path = PathBuf::from(format!("/tmp/perf-{}.map", std::process::id()));
    match replace(&path, &map(engine.code_address(), symbols)) {
        Ok(()) => Ok(path),
        Err(error) => Err((path, error)),
    }
}

/// A line for each function: address and size in hexadecimal, name.
fn map(base: usize, symbols: &[Symbol]) -> String {
    symbols.iter().fold(String::new(), |mut text, symbol| {
        // Writing to a String cannot fail.
        let _ =
            writeln!(text, "{:x} {:x} kernmill:{}", base as u64 + symbol.offset, symbol.size, symbol.name);
        text
    })
}

/// Everybody can write to the directory: what lies there under the name, a link perhaps, is removed and never
/// written through.
fn replace(path: &Path, text: &str) -> io::Result<()> {
    match std::fs::remove_file(path) {
        Err(error) if error.kind() != ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    File::create_new(path)?.write_all(text.as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_for_each_function() {
        let symbol =
            |name: &str, offset, size| Symbol { name: name.to_owned(), offset, size, contract: None };
        let symbols = [symbol("qkv", 0, 0x35), symbol("experts", 64, 16)];
        assert_eq!(map(0x7f00, &symbols), "7f00 35 kernmill:qkv\n7f40 10 kernmill:experts\n");
    }
}
