//! The header of a safetensors file: which tensors it has, and where.
//!
//! Read here rather than by `safetensors::SafeTensors`, because a user must learn which tensor is wrong and how, because offsets near
//! 2^64 must not overflow, and because the data need not be in memory.

use safetensors::tensor::TensorInfo;
use std::ops::Range;

/// A tensor as its file's header describes it.
#[derive(Clone, Debug)]
pub struct TensorEntry {
    /// Its name.
    pub name: String,
    /// Element type and shape.
    pub info: TensorInfo,
    /// Bytes in the file.
    pub range: Range<usize>,
}

/// What is wrong with a header, and what was expected.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct HeaderError(String);

/// Bytes before the header: its length is a u64.
pub const LENGTH_BYTES: usize = 8;
/// The published format's limit on the header.
const MAX_HEADER_BYTES: u64 = 100_000_000;

fn wrong<T>(what: String) -> Result<T, HeaderError> {
    Err(HeaderError(what))
}

/// Where the header's JSON is, by the first bytes of a file of `file_len` bytes (all of them if it is shorter than [`LENGTH_BYTES`]).
///
/// # Errors
/// When the file is too short, or the header too long.
pub fn header_range(start: &[u8], file_len: usize) -> Result<Range<usize>, HeaderError> {
    let Some((length, _)) = start.split_first_chunk::<LENGTH_BYTES>() else {
        return wrong(format!(
            "{} bytes long, expected at least the 8 bytes of the header length",
            start.len()
        ));
    };
    let length = u64::from_le_bytes(*length);
    if length > MAX_HEADER_BYTES {
        return wrong(format!("header length {length} is over the limit of {MAX_HEADER_BYTES} bytes"));
    }
    let end = LENGTH_BYTES + length as usize;
    if end > file_len {
        return wrong(format!("header length {length} runs past the end of the file ({file_len} bytes)"));
    }
    Ok(LENGTH_BYTES..end)
}

/// The tensors that the header's `json` lists, ascending by offset, in a file of `file_len` bytes.
///
/// # Errors
/// When it is no such list, or the tensors do not cover the rest of the file without overlap or hole.
pub fn read_header(json: &[u8], file_len: usize) -> Result<Vec<TensorEntry>, HeaderError> {
    let data_start = LENGTH_BYTES + json.len();
    let map: serde_json::Map<String, serde_json::Value> = serde_json::from_slice(json)
        .map_err(|e| HeaderError(format!("the header is not a JSON object: {e}")))?;
    let mut entries = Vec::with_capacity(map.len());
    for (name, value) in map {
        if name != "__metadata__" {
            entries.push(entry(name, value, data_start, file_len)?);
        }
    }
    entries.sort_by_key(|e| (e.range.start, e.range.end));
    check_cover(&entries, data_start, file_len)?;
    Ok(entries)
}

fn entry(
    name: String,
    value: serde_json::Value,
    data_start: usize,
    file_len: usize,
) -> Result<TensorEntry, HeaderError> {
    let corrupt = |what: String| HeaderError(format!("tensor `{name}`: {what}"));
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
    Ok(TensorEntry { range: data_start + begin..data_start + end, name, info })
}

fn byte_size(info: &TensorInfo) -> Option<usize> {
    let elements = info.shape.iter().try_fold(1usize, |n, &d| n.checked_mul(d))?;
    let bits = elements.checked_mul(info.dtype.bitsize())?;
    bits.is_multiple_of(8).then_some(bits / 8)
}

/// The tensors must cover the data without overlap or hole.
fn check_cover(entries: &[TensorEntry], data_start: usize, file_len: usize) -> Result<(), HeaderError> {
    let mut position = data_start;
    let mut previous = "the header";
    for entry in entries {
        let (name, start) = (&entry.name, entry.range.start);
        if start < position {
            return wrong(format!("tensor `{name}` overlaps `{previous}`"));
        }
        if start > position {
            return wrong(format!("a hole of {} bytes before tensor `{name}`", start - position));
        }
        (position, previous) = (entry.range.end, name);
    }
    if position != file_len {
        return wrong(format!("{} bytes behind the last tensor belong to no tensor", file_len - position));
    }
    Ok(())
}
