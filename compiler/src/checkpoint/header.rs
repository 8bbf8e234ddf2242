//! The header of one safetensors file.
//!
//! Read here rather than by `safetensors::SafeTensors`, because a user must learn which tensor is wrong and how, and
//! because offsets near 2^64 must not overflow.

use super::error::{CheckpointError, Result};
use safetensors::tensor::TensorInfo;
use std::ops::Range;
use std::path::Path;

/// A tensor as its file's header describes it.
pub(super) struct HeaderEntry {
    pub(super) name: String,
    pub(super) info: TensorInfo,
    /// Bytes in the file.
    pub(super) range: Range<usize>,
}

/// A header's length is a u64.
const LENGTH_BYTES: usize = 8;
/// The published format's limit on the header.
const MAX_HEADER_BYTES: u64 = 100_000_000;

/// Reads and checks the header of `file`, the whole of the file at `path`; entries ascend by offset.
pub(super) fn read(path: &Path, file: &[u8]) -> Result<Vec<HeaderEntry>> {
    let (json, data_start) = split(path, file)?;
    let map: serde_json::Map<String, serde_json::Value> = serde_json::from_slice(json)
        .map_err(|e| CheckpointError::corrupt(path, format!("the header is not a JSON object: {e}")))?;
    let mut entries = Vec::with_capacity(map.len());
    for (name, value) in map {
        if name != "__metadata__" {
            entries.push(entry(path, name, value, data_start, file.len())?);
        }
    }
    entries.sort_by_key(|e| (e.range.start, e.range.end));
    check_cover(path, &entries, data_start, file.len())?;
    Ok(entries)
}

/// The header's JSON and the offset of the data behind it.
fn split<'a>(path: &Path, file: &'a [u8]) -> Result<(&'a [u8], usize)> {
    let Some((length, rest)) = file.split_first_chunk::<LENGTH_BYTES>() else {
        let what = format!("{} bytes long, expected at least the 8 bytes of the header length", file.len());
        return Err(CheckpointError::corrupt(path, what));
    };
    let length = u64::from_le_bytes(*length);
    if length > MAX_HEADER_BYTES {
        let what = format!("header length {length} is over the limit of {MAX_HEADER_BYTES} bytes");
        return Err(CheckpointError::corrupt(path, what));
    }
    let length = length as usize;
    let Some(json) = rest.get(..length) else {
        let what = format!("header length {length} runs past the end of the file ({} bytes)", file.len());
        return Err(CheckpointError::corrupt(path, what));
    };
    Ok((json, LENGTH_BYTES + length))
}

fn entry(
    path: &Path,
    name: String,
    value: serde_json::Value,
    data_start: usize,
    file_len: usize,
) -> Result<HeaderEntry> {
    let corrupt = |what: String| CheckpointError::corrupt(path, format!("tensor `{name}`: {what}"));
    let info: TensorInfo =
        serde_json::from_value(value).map_err(|e| corrupt(format!("unreadable header entry: {e}")))?;
    let (begin, end) = info.data_offsets;
    let bytes = byte_size(&info).ok_or_else(|| corrupt(format!("shape {:?} overflows", info.shape)))?;
    if begin > end || end - begin != bytes {
        return Err(corrupt(format!(
            "offsets {begin}..{end} do not fit its shape {:?} of {:?}, expected {bytes} bytes",
            info.shape, info.dtype
        )));
    }
    let available = file_len - data_start;
    if end > available {
        return Err(corrupt(format!(
            "offsets {begin}..{end} run past the end of the file, which holds {available} bytes of data (truncated?)"
        )));
    }
    Ok(HeaderEntry { range: data_start + begin..data_start + end, name, info })
}

fn byte_size(info: &TensorInfo) -> Option<usize> {
    let elements = info.shape.iter().try_fold(1usize, |n, &d| n.checked_mul(d))?;
    let bits = elements.checked_mul(info.dtype.bitsize())?;
    bits.is_multiple_of(8).then_some(bits / 8)
}

/// The tensors must cover the data without overlap or hole.
fn check_cover(path: &Path, entries: &[HeaderEntry], data_start: usize, file_len: usize) -> Result<()> {
    let mut position = data_start;
    let mut previous = "the header";
    for entry in entries {
        let (name, start) = (&entry.name, entry.range.start);
        if start < position {
            return Err(CheckpointError::corrupt(path, format!("tensor `{name}` overlaps `{previous}`")));
        }
        if start > position {
            let what = format!("a hole of {} bytes before tensor `{name}`", start - position);
            return Err(CheckpointError::corrupt(path, what));
        }
        (position, previous) = (entry.range.end, name);
    }
    if position != file_len {
        let what = format!("{} bytes behind the last tensor belong to no tensor", file_len - position);
        return Err(CheckpointError::corrupt(path, what));
    }
    Ok(())
}
