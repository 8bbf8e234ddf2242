//! Disassembly of a code blob, for `--emit asm` and golden files.

use iced_x86::{Decoder, DecoderOptions, Formatter, Instruction, NasmFormatter};
use kernmill_plan::program::{CodeBlob, Symbol};
use std::fmt::Write;

/// NASM text of one function, offsets relative to the blob. Constants behind the code are decoded as if they
/// were code.
pub fn function(blob: &CodeBlob, symbol: &Symbol) -> String {
    let (start, end) = (symbol.offset as usize, (symbol.offset + symbol.size) as usize);
    let mut decoder = Decoder::with_ip(64, &blob.bytes[start..end], symbol.offset, DecoderOptions::NONE);
    let mut formatter = NasmFormatter::new();
    let mut text = format!("{}:\n", symbol.name);
    let mut instruction = Instruction::default();
    while decoder.can_decode() {
        decoder.decode_out(&mut instruction);
        let mut line = String::new();
        formatter.format(&instruction, &mut line);
        // Writing to a String cannot fail.
        let _ = writeln!(text, "  {:6x}  {line}", instruction.ip());
    }
    text
}

/// NASM text of every function.
pub fn blob(blob: &CodeBlob) -> String {
    blob.symbols.iter().map(|symbol| function(blob, symbol)).collect::<Vec<_>>().join("\n")
}
