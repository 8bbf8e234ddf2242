//! Importance matrices: how large the inputs of a model's matrices are, column by column, which quantisers
//! weight errors by. They are read in both forms that llama.cpp writes, GGUF and the older one without a
//! magic number, and written as GGUF.

use super::cursor::FileCursor;
use super::layout::DEFAULT_ALIGNMENT;
use super::value::MAGIC;
use super::{Gguf, GgufTensor, NewGguf};
use crate::error::{CheckpointError, Result};
use crate::mapped::{FileBytes, map};
use kernmill_os::text::shortened;
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

/// Ends of the names of an entry's two tensors.
const SUMS: &str = ".in_sum2";
const COUNTS: &str = ".counts";
/// Tokens that a chunk of the older form is taken to have, which does not say: llama.cpp's default.
const LEGACY_CHUNK: u32 = 512;

/// Sums over the inputs of matrices. Sums of several texts add up.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Imatrix {
    /// Names of the texts.
    pub datasets: Vec<String>,
    /// Chunks of the texts.
    pub chunks: u32,
    /// Tokens of a chunk.
    pub chunk_size: u32,
    /// By the name of the matrix in GGUF files.
    pub entries: BTreeMap<String, ImatrixEntry>,
}

/// The sums of one matrix, or of a matrix of each expert.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ImatrixEntry {
    /// Squares of the inputs, summed over the tokens: `[experts][columns]`.
    pub sums: Vec<f64>,
    /// Tokens, one for all experts or one for each.
    pub counts: Vec<f64>,
}

/// Two importance matrices that are not of one model.
#[derive(Debug, thiserror::Error)]
#[error("`{tensor}` has {here} columns of {here_counts} matrices here and {there} of {there_counts} there")]
pub struct OtherModel {
    tensor: String,
    here: usize,
    here_counts: usize,
    there: usize,
    there_counts: usize,
}

impl ImatrixEntry {
    /// The mean square of each column's input for matrix `expert` of `experts`; `None` where no token reached
    /// it, or the entry is not of such a matrix.
    pub fn means(&self, expert: usize, experts: usize, columns: usize) -> Option<Vec<f32>> {
        let count = *self.counts.get(if self.counts.len() == 1 { 0 } else { expert })?;
        let fits = self.sums.len() == experts * columns && [1, experts].contains(&self.counts.len());
        let sums = self.sums.get(expert * columns..(expert + 1) * columns).filter(|_| fits && count > 0.0)?;
        Some(sums.iter().map(|sum| (sum / count) as f32).collect())
    }
}

impl Imatrix {
    /// Reads the file at `path`, of either form.
    ///
    /// # Errors
    /// If it cannot be read, is damaged, or is no importance matrix.
    pub fn open(path: &Path) -> Result<Imatrix> {
        Imatrix::read(path, FileBytes::Mapped(Arc::new(map(path)?)))
    }

    /// Reads a file whose contents are `bytes`; `name` stands for its path.
    ///
    /// # Errors
    /// As [`Imatrix::open`].
    pub fn from_bytes(name: &str, bytes: Vec<u8>) -> Result<Imatrix> {
        Imatrix::read(Path::new(name), FileBytes::Owned(bytes))
    }

    fn read(path: &Path, bytes: FileBytes) -> Result<Imatrix> {
        match bytes.starts_with(MAGIC) {
            true => of_gguf(&Gguf::parse(path.to_owned(), bytes)?),
            false => legacy(path, &bytes),
        }
    }

    /// Adds the sums of other texts.
    ///
    /// # Errors
    /// If a matrix that both have differs in its size; then nothing is added.
    pub fn merge(&mut self, other: Imatrix) -> std::result::Result<(), OtherModel> {
        for (tensor, theirs) in &other.entries {
            let Some(ours) = self.entries.get(tensor) else { continue };
            let (here, there) = (ours.sums.len(), theirs.sums.len());
            let (here_counts, there_counts) = (ours.counts.len(), theirs.counts.len());
            if (here, here_counts) != (there, there_counts) {
                let tensor = tensor.clone();
                return Err(OtherModel { tensor, here, here_counts, there, there_counts });
            }
        }
        for (tensor, theirs) in other.entries {
            let ours = self.entries.entry(tensor).or_insert_with(|| ImatrixEntry {
                sums: vec![0.0; theirs.sums.len()],
                counts: vec![0.0; theirs.counts.len()],
            });
            let pairs = ours.sums.iter_mut().zip(theirs.sums);
            pairs.chain(ours.counts.iter_mut().zip(theirs.counts)).for_each(|(sum, more)| *sum += more);
        }
        self.datasets.extend(other.datasets);
        self.chunks = self.chunks.saturating_add(other.chunks);
        self.chunk_size = self.chunk_size.max(other.chunk_size);
        Ok(())
    }

    /// The file, as GGUF.
    pub fn to_gguf(&self) -> Vec<u8> {
        let mut file = NewGguf::default();
        let datasets: Vec<&str> = self.datasets.iter().map(String::as_str).collect();
        file.set("general.type", "imatrix");
        file.set("imatrix.datasets", &datasets[..]);
        file.set("imatrix.chunk_count", self.chunks);
        file.set("imatrix.chunk_size", self.chunk_size);
        let mut data = Vec::new();
        let mut add = |name: String, dims: [usize; 2], numbers: &[f64]| {
            file.add(&name, &dims.map(|dim| dim as u64), 0, 4 * numbers.len() as u64);
            data.extend(numbers.iter().flat_map(|&number| (number as f32).to_le_bytes()));
            data.resize(data.len().next_multiple_of(DEFAULT_ALIGNMENT), 0);
        };
        for (name, ImatrixEntry { sums, counts }) in &self.entries {
            add(format!("{name}{SUMS}"), [sums.len() / counts.len().max(1), counts.len()], sums);
            add(format!("{name}{COUNTS}"), [1, counts.len()], counts);
        }
        let mut bytes = file.head(&file.offsets());
        bytes.extend(data);
        bytes
    }
}

/// Reads the form of GGUF.
fn of_gguf(gguf: &Gguf) -> Result<Imatrix> {
    if gguf.text("general.type")? != Some("imatrix") {
        return gguf.bad(
            "it is no importance matrix (`general.type` is not `imatrix`): expected a file that `kernmill \
             quantize --save-imatrix` or llama-imatrix wrote",
        );
    }
    let number = |key: &str| gguf.whole(key).map(|number| number.unwrap_or(0) as u32);
    let datasets = gguf.texts("imatrix.datasets")?.unwrap_or_default();
    let mut read = Imatrix {
        datasets: datasets.into_iter().map(str::to_owned).collect(),
        chunks: number("imatrix.chunk_count")?,
        chunk_size: number("imatrix.chunk_size")?,
        entries: BTreeMap::new(),
    };
    for info in &gguf.tensors {
        let other = match (info.name.strip_suffix(SUMS), info.name.strip_suffix(COUNTS)) {
            (Some(name), _) => format!("{name}{COUNTS}"),
            (_, Some(name)) => format!("{name}{SUMS}"),
            _ => continue,
        };
        let Some(counts) = gguf.info(&other) else {
            let (name, other) = (shortened(&info.name), shortened(&other));
            return gguf.corrupt(format!("tensor `{name}` is there without `{other}`"));
        };
        let Some(name) = info.name.strip_suffix(SUMS) else { continue };
        let entry = ImatrixEntry { sums: numbers(gguf, info)?, counts: numbers(gguf, counts)? };
        if !entry.sums.len().is_multiple_of(entry.counts.len()) {
            let (sums, counts) = (entry.sums.len(), entry.counts.len());
            let what = format!("`{}` has {sums} sums for {counts} matrices", shortened(name));
            return gguf.corrupt(what);
        }
        read.entries.insert(name.to_owned(), entry);
    }
    Ok(read)
}

/// The elements of a tensor of sums.
fn numbers(gguf: &Gguf, info: &GgufTensor) -> Result<Vec<f64>> {
    let name = shortened(&info.name);
    if info.kind.name != "F32" {
        return gguf.corrupt(format!("tensor `{name}` is {}, expected F32", info.kind.name));
    }
    let numbers = |bytes: &[u8; 4]| f64::from(f32::from_le_bytes(*bytes));
    let numbers: Vec<f64> = gguf.data(info).as_chunks().0.iter().map(numbers).collect();
    match numbers.iter().find(|number| !is_sum(**number)) {
        Some(number) => gguf.corrupt(format!("tensor `{name}` has {number}, expected numbers from 0")),
        None => Ok(numbers),
    }
}

/// Whether a number may be a sum of squares, or a count.
fn is_sum(number: f64) -> bool {
    number >= 0.0 && number.is_finite()
}

/// Reads the older form: entries of a name, a number of chunks, and means times that number. What it says of
/// the chunks and the texts may be missing.
fn legacy(path: &Path, bytes: &[u8]) -> Result<Imatrix> {
    let mut cursor = FileCursor::new(path, bytes);
    let corrupt = |what: String| -> CheckpointError {
        let what = format!("expected an importance matrix, of GGUF or of the older form, but {what}");
        CheckpointError::Model { path: path.to_owned(), what }
    };
    let length = |cursor: &mut FileCursor<'_>, what: &str| -> Result<usize> {
        let number = cursor.u32(what)?;
        let fits = i32::try_from(number).is_ok() && number as usize <= bytes.len();
        fits.then_some(number as usize).ok_or_else(|| corrupt(format!("{what} is {}", number.cast_signed())))
    };
    let count = length(&mut cursor, "the number of entries")?;
    if count == 0 {
        return Err(corrupt("it has no entries".to_owned()));
    }
    let mut read = Imatrix { chunk_size: LEGACY_CHUNK, ..Imatrix::default() };
    for index in 0..count {
        let what = format!("the name of entry {index}");
        let letters = length(&mut cursor, &what)?;
        let name = cursor.take(letters, &what)?;
        let Ok(name) = str::from_utf8(name) else { return Err(corrupt(format!("{what} is not UTF-8"))) };
        let name = name.trim_end_matches('\0');
        let what = format!("entry `{}`", shortened(name));
        let calls = cursor.u32(&what)?.cast_signed();
        let values = length(&mut cursor, &what)?;
        let values = cursor.take(4 * values, &what)?.as_chunks().0;
        let tokens = f64::from(LEGACY_CHUNK);
        let sums: Vec<f64> =
            values.iter().map(|value| f64::from(f32::from_le_bytes(*value)) * tokens).collect();
        if calls < 0 || sums.is_empty() || !sums.iter().all(|sum| is_sum(*sum)) {
            return Err(corrupt(format!("{what} has values that are no sums of squares")));
        }
        let counts = vec![f64::from(calls) * tokens];
        if read.entries.insert(name.to_owned(), ImatrixEntry { sums, counts }).is_some() {
            return Err(corrupt(format!("{what} is there twice")));
        }
    }
    if cursor.at < bytes.len() {
        read.chunks = length(&mut cursor, "the number of chunks").unwrap_or(0) as u32;
        let letters = length(&mut cursor, "the name of the texts").unwrap_or(0);
        let name = cursor.take(letters, "the name of the texts")?;
        let name = String::from_utf8_lossy(name).trim_end_matches('\0').to_owned();
        read.datasets.extend(Some(name).filter(|name| !name.is_empty()));
    }
    Ok(read)
}

#[cfg(test)]
mod tests;
