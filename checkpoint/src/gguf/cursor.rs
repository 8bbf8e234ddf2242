//! Reading a GGUF file from front to back.

use super::value::ValueType;
use crate::error::{CheckpointError, Result};
use std::ops::Range;
use std::path::Path;

/// Arrays of arrays deeper than this are refused.
const MAX_NESTING: usize = 4;

/// A position in the file; every reading checks the length.
pub(super) struct FileCursor<'a> {
    path: &'a Path,
    pub(super) bytes: &'a [u8],
    pub(super) at: usize,
}

impl<'a> FileCursor<'a> {
    pub(super) fn new(path: &'a Path, bytes: &'a [u8]) -> FileCursor<'a> {
        FileCursor { path, bytes, at: 0 }
    }

    pub(super) fn take(&mut self, count: usize, what: &str) -> Result<&'a [u8]> {
        let bytes = self.at.checked_add(count).and_then(|end| self.bytes.get(self.at..end));
        let Some(bytes) = bytes else {
            let (at, length) = (self.at, self.bytes.len());
            return self.corrupt(format!(
                "{what} at byte {at} is {count} bytes long and runs past the end ({length} bytes; truncated?)"
            ));
        };
        self.at += count;
        Ok(bytes)
    }

    pub(super) fn u32(&mut self, what: &str) -> Result<u32> {
        let bytes = self.take(4, what)?;
        Ok(u32::from_le_bytes(bytes.try_into().expect("4 bytes were taken")))
    }

    pub(super) fn u64(&mut self, what: &str) -> Result<u64> {
        let bytes = self.take(8, what)?;
        Ok(u64::from_le_bytes(bytes.try_into().expect("8 bytes were taken")))
    }

    /// The place of a length and so many bytes.
    pub(super) fn sized(&mut self, what: &str) -> Result<Range<usize>> {
        let length = self.u64(what)?;
        let start = self.at;
        self.take(usize::try_from(length).unwrap_or(usize::MAX), what)?;
        Ok(start..self.at)
    }

    pub(super) fn string(&mut self, what: &str) -> Result<&'a str> {
        let range = self.sized(what)?;
        let at = range.start;
        match str::from_utf8(&self.bytes[range]) {
            Ok(text) => Ok(text),
            Err(_) => self.corrupt(format!("{what} at byte {at} is not UTF-8")),
        }
    }

    pub(super) fn value_type(&mut self, what: &str) -> Result<ValueType> {
        let number = self.u32(what)?;
        match ValueType::from_number(number) {
            Some(kind) => Ok(kind),
            None => self.corrupt(format!("{what} has the unknown type {number}, expected 0 to 12")),
        }
    }

    pub(super) fn skip_elements(
        &mut self,
        element: ValueType,
        count: u64,
        what: &str,
        depth: usize,
    ) -> Result<()> {
        if let Some(size) = element.size() {
            let bytes = usize::try_from(count).ok().and_then(|n| n.checked_mul(size));
            return self.take(bytes.unwrap_or(usize::MAX), what).map(|_| ());
        }
        if depth > MAX_NESTING {
            return self.corrupt(format!("{what} is an array nested more than {MAX_NESTING} deep"));
        }
        // Every element takes bytes, so a false count ends at the end of the file.
        for _ in 0..count {
            match element {
                ValueType::Array => {
                    let inner = self.value_type(what)?;
                    let inner_count = self.u64(what)?;
                    self.skip_elements(inner, inner_count, what, depth + 1)?;
                }
                _ => {
                    self.sized(what)?;
                }
            }
        }
        Ok(())
    }

    pub(super) fn corrupt<T>(&self, what: impl Into<String>) -> Result<T> {
        Err(CheckpointError::Corrupt { path: self.path.to_owned(), what: what.into() })
    }

    pub(super) fn bad<T>(&self, what: impl Into<String>) -> Result<T> {
        Err(CheckpointError::Model { path: self.path.to_owned(), what: what.into() })
    }

    pub(super) fn unsupported<T>(&self, what: impl Into<String>) -> Result<T> {
        Err(CheckpointError::Unsupported { path: self.path.to_owned(), what: what.into() })
    }
}
