//! `adapter_model.safetensors`: its header is checked when it is opened, its tensors are read when they are
//! packed.

use super::error::PeftError;
use crate::file_kind::{FileKind, KIND_BYTES};
use crate::tensor_file::{LENGTH_BYTES, TensorEntry, header_range, read_header};
use half::f16;
use half::slice::HalfFloatSliceExt;
use kernmill_os::files::open_regular;
use kernmill_os::text::shortened;
use kernmill_plan::limit;
use safetensors::Dtype;
use std::collections::BTreeMap;
use std::fs::File;
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

/// Name of the file with an adapter's tensors.
pub const TENSOR_FILE: &str = "adapter_model.safetensors";

/// A safetensors file of an adapter.
#[derive(Debug)]
pub struct TensorFile {
    path: PathBuf,
    bytes: AdapterBytes,
    tensors: BTreeMap<String, TensorEntry>,
}

#[derive(Debug)]
enum AdapterBytes {
    File(File),
    Memory(Vec<u8>),
}

impl TensorFile {
    /// Opens a file and checks its header.
    pub fn open(path: &Path) -> Result<TensorFile, PeftError> {
        let file = open_regular(path).map_err(PeftError::io(path))?;
        let length = file.metadata().map_err(PeftError::io(path))?.len();
        TensorFile::read(path, AdapterBytes::File(file), length as usize)
    }

    /// Reads a file's bytes from memory; `path` is for messages.
    pub fn from_bytes(path: &Path, bytes: Vec<u8>) -> Result<TensorFile, PeftError> {
        let length = bytes.len();
        TensorFile::read(path, AdapterBytes::Memory(bytes), length)
    }

    fn read(path: &Path, bytes: AdapterBytes, length: usize) -> Result<TensorFile, PeftError> {
        let corrupt = |error| PeftError::malformed(path, format!("corrupt: {error}"));
        let mut file = TensorFile { path: path.to_owned(), bytes, tensors: BTreeMap::new() };
        let start = file.bytes(0..length.min(KIND_BYTES))?;
        match FileKind::of(&start) {
            FileKind::Safetensors | FileKind::Unknown => {}
            kind => {
                let what = format!("{}; expected a safetensors file", kind.describe());
                return Err(PeftError::malformed(path, what));
            }
        }
        let start = &start[..length.min(LENGTH_BYTES)];
        let json = file.bytes(header_range(start, length, limit::ADAPTER_HEADER_BYTES).map_err(corrupt)?)?;
        let entries = read_header(&json, length).map_err(corrupt)?;
        file.tensors = entries.into_iter().map(|entry| (entry.name.clone(), entry)).collect();
        Ok(file)
    }

    /// Path of the file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Tensors of the file, in the order of their names.
    pub fn tensors(&self) -> impl Iterator<Item = &TensorEntry> {
        self.tensors.values()
    }

    /// The elements of a tensor whose dtype has been checked ([`TensorFile::check_dtype`]), as f32; all must
    /// be finite.
    pub fn floats(&self, tensor: &TensorEntry) -> Result<Vec<f32>, PeftError> {
        let bytes = self.bytes(tensor.range.clone())?;
        let floats = match tensor.info.dtype {
            Dtype::F16 => halves(&bytes),
            Dtype::BF16 => {
                let pairs = bytes.as_chunks::<2>().0.iter();
                pairs.map(|x| f32::from_bits(u32::from(u16::from_le_bytes(*x)) << 16)).collect()
            }
            _ => bytes.as_chunks::<4>().0.iter().map(|x| f32::from_le_bytes(*x)).collect(),
        };
        // A pass without branches first: looking for the culprit is for the rare case.
        if floats.iter().fold(true, |finite, x: &f32| finite & x.is_finite()) {
            return Ok(floats);
        }
        match floats.iter().position(|x| !x.is_finite()) {
            None => Ok(floats),
            Some(at) => {
                let columns = tensor.info.shape.last().copied().unwrap_or(1).max(1);
                let (row, column) = (at / columns, at % columns);
                Err(self.malformed(
                    tensor,
                    format!("element [{row}, {column}] is {}, expected a finite number", floats[at]),
                ))
            }
        }
    }

    /// Error unless the tensor has a dtype that adapters may have.
    pub fn check_dtype(&self, tensor: &TensorEntry) -> Result<(), PeftError> {
        match tensor.info.dtype {
            Dtype::F32 | Dtype::F16 | Dtype::BF16 => Ok(()),
            other => Err(PeftError::unsupported(
                &self.path,
                format!("tensor `{}` is {other:?}, expected F32, F16 or BF16", shortened(&tensor.name)),
            )),
        }
    }

    /// An error that says what is wrong with one of the file's tensors.
    pub fn malformed(&self, tensor: &TensorEntry, what: String) -> PeftError {
        PeftError::malformed(&self.path, format!("tensor `{}`: {what}", shortened(&tensor.name)))
    }

    /// Bytes that the header has found inside the file.
    fn bytes(&self, range: Range<usize>) -> Result<Vec<u8>, PeftError> {
        match &self.bytes {
            AdapterBytes::Memory(bytes) => Ok(bytes[range].to_vec()),
            AdapterBytes::File(file) => {
                let mut bytes = vec![0; range.len()];
                file.read_exact_at(&mut bytes, range.start as u64).map_err(PeftError::io(&self.path))?;
                Ok(bytes)
            }
        }
    }
}

/// f16, little-endian.
fn halves(bytes: &[u8]) -> Vec<f32> {
    let halves: Vec<f16> = bytes.as_chunks::<2>().0.iter().map(|x| f16::from_le_bytes(*x)).collect();
    let mut floats = vec![0.0; halves.len()];
    halves.convert_to_f32_slice(&mut floats);
    floats
}
