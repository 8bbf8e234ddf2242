//! The layout of a GGUF file: header, metadata, tensor descriptions, data.

use super::cursor::FileCursor;
use super::value::{GgufMetadata, GgufTensor, MAGIC, MetadataValue, ValueType};
use crate::blocks::{TensorType, refused};
use crate::error::Result;
use crate::file_kind::{FileKind, KIND_BYTES};
use kernmill_os::text::shortened;
use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::path::Path;

/// Versions read; 1 had 32-bit lengths.
const VERSIONS: [u32; 2] = [2, 3];
/// How files of the formats before GGUF begin.
const OLDER: [&[u8; 4]; 4] = [b"lmgg", b"fmgg", b"tjgg", b"algg"];
/// The alignment of offsets where a file does not say.
pub(super) const DEFAULT_ALIGNMENT: usize = 32;
const MAX_DIMENSIONS: u32 = 4;

/// Reads and checks all of `file` but the tensors' data.
pub(super) fn read(path: &Path, file: &[u8]) -> Result<(GgufMetadata, Vec<GgufTensor>)> {
    let mut cursor = FileCursor::new(path, file);
    if !file.starts_with(MAGIC) {
        return cursor.bad(format!("expected a GGUF file, but {}", other_kind(file)));
    }
    cursor.take(MAGIC.len(), "the magic number")?;
    let version = cursor.u32("the version")?;
    if VERSIONS.contains(&version.swap_bytes()) {
        return cursor.unsupported("it is big endian; supported is: little endian");
    }
    if !VERSIONS.contains(&version) {
        return cursor.unsupported(format!("GGUF version {version}; supported are: 2, 3"));
    }
    let tensor_count = cursor.u64("the number of tensors")?;
    let key_count = cursor.u64("the number of keys")?;
    let metadata = metadata(&mut cursor, key_count)?;
    let mut tensors = Vec::new();
    for index in 0..tensor_count {
        tensors.push(tensor(&mut cursor, index)?);
    }
    let alignment = alignment(&cursor, &metadata)?;
    // A file without tensors may end before the padding.
    let data_start = cursor.at.next_multiple_of(alignment);
    place(&cursor, &mut tensors, data_start, alignment)?;
    Ok((metadata, tensors))
}

/// The kind of a file that is no GGUF file.
fn other_kind(file: &[u8]) -> &'static str {
    if OLDER.iter().any(|magic| file.starts_with(*magic)) {
        return "it is of a format before GGUF (GGML): take a GGUF file of the model";
    }
    FileKind::of(&file[..file.len().min(KIND_BYTES)]).describe()
}

fn metadata(cursor: &mut FileCursor<'_>, count: u64) -> Result<GgufMetadata> {
    let mut values = BTreeMap::new();
    for index in 0..count {
        let key = cursor.string(&format!("key {index}"))?;
        let kind = cursor.value_type(&format!("key `{}`", shortened(key)))?;
        let value = value(cursor, key, kind)?;
        match values.entry(key.to_owned()) {
            Entry::Occupied(_) => return cursor.corrupt(format!("key `{}` is there twice", shortened(key))),
            Entry::Vacant(entry) => entry.insert(value),
        };
    }
    Ok(GgufMetadata { values })
}

/// Reads a value.
pub(super) fn value(cursor: &mut FileCursor<'_>, key: &str, kind: ValueType) -> Result<MetadataValue> {
    let what = format!("the value of key `{}`", shortened(key));
    Ok(match kind {
        ValueType::String => MetadataValue::Text(cursor.sized(&what)?),
        ValueType::Array => {
            let element = cursor.value_type(&what)?;
            let count = cursor.u64(&what)?;
            let start = cursor.at;
            cursor.skip_elements(element, count, &what, 1)?;
            MetadataValue::Array { element, count: count as usize, range: start..cursor.at }
        }
        scalar => {
            let at = cursor.at;
            let bytes = cursor.take(scalar.size().expect("every other type has a size"), &what)?;
            match MetadataValue::scalar(scalar, bytes) {
                Some(value) => value,
                None => return cursor.corrupt(format!("{what} at byte {at} is neither true nor false")),
            }
        }
    })
}

/// Describes a tensor; its range is still relative to the data.
fn tensor(cursor: &mut FileCursor<'_>, index: u64) -> Result<GgufTensor> {
    let name = cursor.string(&format!("the name of tensor {index}"))?;
    let shown = shortened(name);
    let what = format!("the description of tensor `{shown}`");
    let rank = cursor.u32(&what)?;
    if !(1..=MAX_DIMENSIONS).contains(&rank) {
        return cursor
            .corrupt(format!("tensor `{shown}` has {rank} dimensions, expected 1 to {MAX_DIMENSIONS}"));
    }
    let mut dims = Vec::with_capacity(rank as usize);
    for _ in 0..rank {
        dims.push(cursor.u64(&what)?);
    }
    let number = cursor.u32(&what)?;
    let Some(kind) = TensorType::from_number(number) else {
        return refuse_type(cursor, &shown, number);
    };
    let offset = cursor.u64(&what)?;
    let row = usize::try_from(dims[0]).ok().filter(|&n| n > 0).and_then(|n| kind.row_bytes(n));
    let Some(row) = row else {
        return cursor.corrupt(format!(
            "tensor `{shown}` has rows of {} elements of {}, whose blocks have {}",
            dims[0], kind.name, kind.elements
        ));
    };
    let bytes = dims[1..].iter().try_fold(row as u64, |n, &d| n.checked_mul(d)).filter(|&n| n > 0);
    let end = bytes.and_then(|n| offset.checked_add(n)).filter(|&end| end <= cursor.bytes.len() as u64);
    let Some(end) = end else {
        return cursor.corrupt(format!(
            "tensor `{shown}` of dimensions {dims:?} at offset {offset} does not fit into the file (truncated?)"
        ));
    };
    let shape = dims.iter().rev().map(|&d| d as usize).collect();
    Ok(GgufTensor { name: name.to_owned(), kind, shape, part: 0, range: offset as usize..end as usize })
}

fn refuse_type<T>(cursor: &FileCursor<'_>, name: &str, number: u32) -> Result<T> {
    let supported = TensorType::names();
    match refused(number) {
        Some((other, help)) => {
            cursor.unsupported(format!("tensor `{name}` is {other}: {help}; supported are: {supported}"))
        }
        None => cursor.unsupported(format!(
            "tensor `{name}` has the unknown type {number}; supported are: {supported}"
        )),
    }
}

fn alignment(cursor: &FileCursor<'_>, metadata: &GgufMetadata) -> Result<usize> {
    match metadata.values.get("general.alignment") {
        None => Ok(DEFAULT_ALIGNMENT),
        Some(MetadataValue::Unsigned(n)) if n.is_power_of_two() && *n <= 1 << 20 => Ok(*n as usize),
        Some(_) => cursor.corrupt("`general.alignment` is not a power of two up to 1048576"),
    }
}

/// Makes the tensors' ranges absolute, which must be aligned, in the file, and apart; sorts them by name.
fn place(
    cursor: &FileCursor<'_>,
    tensors: &mut [GgufTensor],
    data_start: usize,
    alignment: usize,
) -> Result<()> {
    let length = cursor.bytes.len();
    for GgufTensor { name, range, .. } in tensors.iter_mut() {
        let name = shortened(name);
        if !range.start.is_multiple_of(alignment) {
            let start = range.start;
            return cursor
                .corrupt(format!("tensor `{name}` at offset {start} is not aligned to {alignment}"));
        }
        // Both are at most the file's length, so the sum does not overflow.
        *range = data_start + range.start..data_start + range.end;
        if range.end > length {
            return cursor.corrupt(format!(
                "tensor `{name}` ends at byte {} of a file of {length} bytes (truncated?)",
                range.end
            ));
        }
    }
    let mut order: Vec<&GgufTensor> = tensors.iter().collect();
    order.sort_by_key(|t| t.range.start);
    if let Some([a, b]) = order.array_windows().find(|[a, b]| b.range.start < a.range.end) {
        return cursor.corrupt(format!("tensor `{}` overlaps `{}`", shortened(&b.name), shortened(&a.name)));
    }
    tensors.sort_by(|a, b| a.name.cmp(&b.name));
    if let Some([a, _]) = tensors.array_windows().find(|[a, b]| a.name == b.name) {
        return cursor.corrupt(format!("tensor `{}` is there twice", shortened(&a.name)));
    }
    Ok(())
}
