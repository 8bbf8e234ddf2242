//! Files with what a reference model said of a text: kernmill's, and llama.cpp's. Nothing in them is
//! believed: every length is held against the file's before it is used, and every token against the
//! vocabulary.

mod llama;
mod own;

use crate::distance::Known;
use crate::texts::Window;
use kernmill::{Error, Result};
use std::fs::File;
use std::io::{BufReader, Read};
use std::path::Path;

pub use own::{Writer, record_bytes};

/// Tokens of a vocabulary at most.
const MOST_VOCAB: u32 = 1 << 22;
/// Tokens of a window at most.
const MOST_CONTEXT: u32 = 1 << 20;

/// A base whose windows have been read, and whose records come one after the other.
pub struct Base<R> {
    /// The windows, in the order of their records.
    pub windows: Vec<Window>,
    /// Tokens of the vocabulary.
    pub vocab: usize,
    /// The reference model's name.
    pub model: String,
    /// Whether the first token of each window gives way to the model's start token.
    pub takes_start: bool,
    form: BaseForm,
    reader: R,
}

#[derive(Clone, Copy)]
enum BaseForm {
    Own,
    Llama,
}

/// Opens a base, if the file at `path` is one.
///
/// # Errors
/// When it is one and damaged, or cannot be read.
pub fn open(path: &Path) -> Result<Option<Base<BufReader<File>>>> {
    if !path.is_file() {
        return Ok(None);
    }
    let file = File::open(path).map_err(Error::read(path))?;
    let length = file.metadata().map_err(Error::read(path))?.len();
    read(BufReader::new(file), length).map_err(|what| Error::input(path, what))
}

/// Reads the head and the windows of a file of `length` bytes, if it is a base.
///
/// # Errors
/// What is wrong with it.
pub fn read<R: Read>(mut reader: R, length: u64) -> std::result::Result<Option<Base<R>>, String> {
    let mut magic = [0; 8];
    if length < 8 || reader.read_exact(&mut magic).is_err() {
        return Ok(None);
    }
    match &magic {
        own::MAGIC => own::read(reader, length).map(Some),
        llama::MAGIC => llama::read(reader, length).map(Some),
        _ => Ok(None),
    }
}

impl<R: Read> Base<R> {
    /// Reads the next record.
    ///
    /// # Errors
    /// When the file ends, or the record is wrong.
    pub fn next_known(&mut self) -> std::result::Result<Known, String> {
        match self.form {
            BaseForm::Own => own::record(&mut self.reader, self.vocab),
            BaseForm::Llama => llama::record(&mut self.reader, self.vocab),
        }
    }
}

/// So many bytes of a file.
fn bytes<R: Read>(reader: &mut R, count: usize) -> std::result::Result<Vec<u8>, String> {
    let mut bytes = vec![0; count];
    reader.read_exact(&mut bytes).map_err(|error| format!("the base ends early: {error}"))?;
    Ok(bytes)
}

fn number<R: Read>(reader: &mut R) -> std::result::Result<u32, String> {
    let four = bytes(reader, 4)?;
    Ok(u32::from_le_bytes([four[0], four[1], four[2], four[3]]))
}

/// Numbers of four bytes each.
fn numbers(bytes: &[u8]) -> impl Iterator<Item = u32> + '_ {
    bytes.chunks_exact(4).map(|four| u32::from_le_bytes([four[0], four[1], four[2], four[3]]))
}

/// Refuses tokens that the vocabulary does not have.
fn check_tokens(ids: &[u32], vocab: u32) -> std::result::Result<(), String> {
    match ids.iter().find(|id| **id >= vocab) {
        Some(id) => Err(format!("the base has token {id}, expected less than {vocab}, its vocabulary")),
        None => Ok(()),
    }
}

/// Refuses a file whose length is not the one that its head asks for.
fn check_length(length: u64, expected: Option<u64>) -> std::result::Result<(), String> {
    match expected {
        Some(expected) if expected == length => Ok(()),
        Some(expected) => {
            Err(format!("the base has {length} bytes, expected {expected} by its head: it is cut or damaged"))
        }
        None => Err("the base's head asks for more bytes than a file can have: it is damaged".to_owned()),
    }
}
