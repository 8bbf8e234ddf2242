//! The header of a safetensors file: which tensors it has, and where.
//!
//! Read here rather than by `safetensors::SafeTensors`, because a user must learn which tensor is wrong and
//! how, because offsets near 2^64 must not overflow, and because the data need not be in memory.

use kernmill_os::text::shortened;
use safetensors::tensor::TensorInfo;
use serde::de::{Deserializer, Error as _, IgnoredAny, MapAccess, Visitor};
use std::fmt;
use std::ops::Range;

/// A tensor as its file's header describes it.
#[derive(Clone, Debug)]
pub struct TensorEntry {
    /// Name of the tensor.
    pub name: String,
    /// Element type and shape.
    pub info: TensorInfo,
    /// Bytes in the file.
    pub range: Range<usize>,
}

/// The problem of a header, and what was expected.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct HeaderError(String);

/// Bytes before the header: its length is a u64.
pub const LENGTH_BYTES: usize = 8;
/// Dims of a tensor at most; those of published models have three or four.
const MAX_DIMS: usize = 8;

fn wrong<T>(what: String) -> Result<T, HeaderError> {
    Err(HeaderError(what))
}

/// Where the header's JSON is, by the first bytes of a file of `file_len` bytes (all of them if it is shorter
/// than [`LENGTH_BYTES`]).
///
/// # Errors
/// When the file is too short, or the header has more than `most` bytes.
pub fn header_range(start: &[u8], file_len: usize, most: u64) -> Result<Range<usize>, HeaderError> {
    let Some((length, _)) = start.split_first_chunk::<LENGTH_BYTES>() else {
        return wrong(format!(
            "{} bytes long, expected at least the 8 bytes of the header length",
            start.len()
        ));
    };
    let length = u64::from_le_bytes(*length);
    if length > most {
        return wrong(format!("header length {length} is over the limit of {most} bytes"));
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
/// When it is no such list, lists a name twice, or the tensors do not cover the rest of the file without
/// overlap or hole.
pub fn read_header(json: &[u8], file_len: usize) -> Result<Vec<TensorEntry>, HeaderError> {
    let data_start = LENGTH_BYTES + json.len();
    let mut reader = serde_json::Deserializer::from_slice(json);
    let mut entries = Vec::new();
    let read = reader.deserialize_map(Entries { data_start, file_len, found: &mut entries });
    read.and_then(|()| reader.end()).map_err(header_error)?;
    check_names(&mut entries)?;
    entries.sort_by_key(|e| (e.range.start, e.range.end));
    check_cover(&entries, data_start, file_len)?;
    Ok(entries)
}

/// Fills `found` with the entries of a header, one after another: a tree of JSON values would take many times
/// the header's size.
struct Entries<'a> {
    data_start: usize,
    file_len: usize,
    found: &'a mut Vec<TensorEntry>,
}

impl<'de> Visitor<'de> for Entries<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str("an object of tensors")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        while let Some(name) = map.next_key::<String>()? {
            if name == "__metadata__" {
                map.next_value::<IgnoredAny>()?;
                continue;
            }
            let info = map.next_value().map_err(|e| {
                let name = shortened(&name);
                A::Error::custom(format_args!("{TENSOR_FAULT}tensor `{name}`: unreadable header entry: {e}"))
            })?;
            let entry = entry(name, info, self.data_start, self.file_len);
            self.found.push(entry.map_err(|e| A::Error::custom(format_args!("{TENSOR_FAULT}{e}")))?);
        }
        Ok(())
    }
}

/// Marks the message of a fault of one tensor, while it is inside a JSON error.
const TENSOR_FAULT: &str = "\u{1}";

/// The message without the place in the JSON text, if a tensor is named instead.
fn header_error(error: serde_json::Error) -> HeaderError {
    let text = error.to_string();
    match text.split_once(TENSOR_FAULT) {
        Some((_, fault)) => {
            let place = format!(" at line {} column {}", error.line(), error.column());
            HeaderError(fault.strip_suffix(&place).unwrap_or(fault).to_owned())
        }
        None => HeaderError(format!("the header is not a JSON object of tensors: {text}")),
    }
}

/// No name may come twice: readers would disagree about which of them counts. Leaves the entries in the order
/// of their names.
fn check_names(entries: &mut [TensorEntry]) -> Result<(), HeaderError> {
    entries.sort_by(|a, b| a.name.cmp(&b.name));
    match entries.windows(2).find(|pair| pair[0].name == pair[1].name) {
        Some(pair) => wrong(format!("tensor `{}` is in the header twice", shortened(&pair[0].name))),
        None => Ok(()),
    }
}

fn entry(
    name: String,
    info: TensorInfo,
    data_start: usize,
    file_len: usize,
) -> Result<TensorEntry, HeaderError> {
    let corrupt = |what: String| HeaderError(format!("tensor `{}`: {what}", shortened(&name)));
    if info.shape.len() > MAX_DIMS {
        return Err(corrupt(format!("{} dims, expected at most {MAX_DIMS}", info.shape.len())));
    }
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
            return wrong(format!("tensor `{}` overlaps `{}`", shortened(name), shortened(previous)));
        }
        if start > position {
            let hole = start - position;
            return wrong(format!("a hole of {hole} bytes before tensor `{}`", shortened(name)));
        }
        (position, previous) = (entry.range.end, name);
    }
    if position != file_len {
        return wrong(format!("{} bytes behind the last tensor belong to no tensor", file_len - position));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(header: &str, data: usize) -> Result<Vec<String>, String> {
        let entries = read_header(header.as_bytes(), LENGTH_BYTES + header.len() + data);
        let names = |entries: Vec<TensorEntry>| entries.into_iter().map(|e| e.name).collect();
        entries.map(names).map_err(|e| e.to_string())
    }

    fn tensor(name: &str, begin: usize) -> String {
        format!(r#""{name}": {{"dtype": "U8", "shape": [2], "data_offsets": [{begin}, {}]}}"#, begin + 2)
    }

    #[test]
    fn tensors_come_in_the_order_of_their_data() {
        let header = format!("{{{}, {}}}", tensor("a", 2), tensor("b", 0));
        assert_eq!(read(&header, 4).unwrap(), ["b", "a"]);
        let header = format!(r#"{{"__metadata__": {{"format": ["pt", 1]}}, {}}}  "#, tensor("a", 0));
        assert_eq!(read(&header, 2).unwrap(), ["a"]);
    }

    #[test]
    fn a_name_that_comes_twice_is_refused() {
        let same = tensor("a", 0);
        for header in [
            format!("{{{same}, {same}}}"),
            format!("{{{same}, {}, {}}}", tensor("b", 2), tensor("a", 4)),
            format!(r#"{{{same}, "\u0061": {{"dtype": "U8", "shape": [0], "data_offsets": [2, 2]}}}}"#),
        ] {
            assert_eq!(read(&header, 6).unwrap_err(), "tensor `a` is in the header twice");
        }
    }

    #[test]
    fn faults_name_the_tensor_or_the_place() {
        let long = "x".repeat(1000);
        let cases = [
            (r#"{"a": 1}"#.to_owned(), "tensor `a`: unreadable header entry"),
            (
                r#"{"a": {"dtype": "U9", "shape": [], "data_offsets": [0, 1]}}"#.into(),
                "tensor `a`: unreadable",
            ),
            ("[1]".into(), "the header is not a JSON object of tensors"),
            ("{} {}".into(), "trailing characters at line 1 column 4"),
            (format!("{{{}", tensor("a", 0)), "the header is not a JSON object of tensors: EOF"),
            (format!(r#"{{"{long}": 1}}"#), "x... (1000 bytes)`: unreadable header entry"),
            (
                r#"{"a": {"dtype": "U8", "shape": [1,1,1,1,1,1,1,1,1], "data_offsets": [0, 1]}}"#.into(),
                "tensor `a`: 9 dims, expected at most 8",
            ),
        ];
        for (header, expected) in cases {
            let error = read(&header, 2).unwrap_err();
            assert!(error.contains(expected) && !error.contains('\u{1}'), "{expected}: {error}");
            assert!(error.len() < 600, "{error}");
        }
    }

    #[test]
    fn a_header_longer_than_its_reader_allows_is_refused() {
        let start = 4097u64.to_le_bytes();
        assert_eq!(header_range(&start, 1 << 20, 4097).unwrap(), 8..4105);
        let error = header_range(&start, 1 << 20, 4096).unwrap_err().to_string();
        assert_eq!(error, "header length 4097 is over the limit of 4096 bytes");
    }
}
