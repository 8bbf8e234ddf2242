//! Files with something on every line.

use kernmill::{Error, Result};
use kernmill_os::files::failed_by_system;
use std::io::{BufRead, BufReader, Read, stdin};
use std::path::Path;

/// Bytes of a line at most: a prompt of the longest context takes less.
pub const LONGEST_LINE: u64 = 64 << 20;

/// A byte order mark in UTF-8, which editors of other systems write before a text.
const MARK: &[u8] = b"\xef\xbb\xbf";

/// Opens a file of requests; `-` is standard input.
///
/// # Errors
/// When the file cannot be opened.
pub fn open_requests(path: &Path) -> Result<Box<dyn BufRead>> {
    if path == Path::new("-") {
        return Ok(Box::new(stdin().lock()));
    }
    let opened = std::fs::File::open(path).map_err(|error| {
        let help = "give a file with a request on every line";
        match failed_by_system(&error) {
            true => Error::failed(format!("{}: {error}: {help}", path.display())),
            false => Error::input(path, format!("{error}: {help}")),
        }
    });
    Ok(Box::new(BufReader::new(opened?)))
}

/// The lines of an input that are not empty.
pub struct Lines<'a> {
    input: &'a mut dyn BufRead,
    name: &'a Path,
    number: usize,
}

impl<'a> Lines<'a> {
    /// Lines of `input`, which messages call `name`.
    pub fn new(input: &'a mut dyn BufRead, name: &'a Path) -> Lines<'a> {
        Lines { input, name, number: 0 }
    }

    /// The bytes of the next line that is not empty, without white space around them, and its number, counted
    /// from 1; `None` behind the last one. A byte order mark before the first line is passed over.
    ///
    /// # Errors
    /// When the input cannot be read, or a line is too long.
    pub fn read(&mut self) -> Result<Option<(usize, Vec<u8>)>> {
        loop {
            let mut bytes = Vec::new();
            let mut limited = Read::take(&mut *self.input, LONGEST_LINE);
            let count = limited.read_until(b'\n', &mut bytes).map_err(Error::read(self.name))?;
            if count == 0 {
                return Ok(None);
            }
            self.number += 1;
            if count as u64 == LONGEST_LINE && bytes.last() != Some(&b'\n') {
                let what = format!("line {} is longer than {LONGEST_LINE} bytes", self.number);
                return Err(Error::input(self.name, what));
            }
            let marked = bytes.strip_prefix(MARK).filter(|_| self.number == 1);
            let line = marked.unwrap_or(&bytes).trim_ascii();
            if !line.is_empty() {
                return Ok(Some((self.number, line.to_vec())));
            }
        }
    }
}
