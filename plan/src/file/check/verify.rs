//! Verifying the weights: piece by piece, on several threads.

use super::{FileError, PlanFile, read_section};
use crate::file::{Hash, MAX_PIECE_BYTES, PIECE_ENTRY_BYTES, SectionKind};
use kernmill_os::source::Source;
use kernmill_os::threads::share;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Part of the weights with a hash of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct HashedPiece {
    /// Byte offset in the weights.
    start: u64,
    bytes: u64,
    hash: Hash,
}

impl<S: Source + Sync> PlanFile<S> {
    /// Reads all sections and all weights, and compares every hash. `progress` is told, from any thread, the
    /// bytes of weights read since its last call.
    ///
    /// # Errors
    /// The first damage, in the order of the file.
    pub fn verify(&self, threads: usize, progress: &(dyn Fn(u64) + Sync)) -> Result<(), FileError> {
        self.spec()?;
        self.tokenizer_json()?;
        self.chat_templates()?;
        for target in 0..self.metadata().targets.len() {
            match self.program(target) {
                Err(FileError::Level { .. }) | Ok(_) => {}
                Err(error) => return Err(error),
            }
        }
        let pieces = self.pieces()?;
        let next = AtomicUsize::new(0);
        let failure: Mutex<Option<(usize, FileError)>> = Mutex::new(None);
        let work = || {
            let mut buffer = Vec::new();
            loop {
                let index = next.fetch_add(1, Ordering::Relaxed);
                let Some(piece) = pieces.get(index) else { return };
                if let Err(error) = self.verify_piece(piece, &mut buffer) {
                    let mut failure = failure.lock().expect("no panic holds it");
                    if failure.as_ref().is_none_or(|(first, _)| index < *first) {
                        *failure = Some((index, error));
                    }
                    // Pieces before this one are in hand already; those after it do not matter.
                    next.store(pieces.len(), Ordering::Relaxed);
                    return;
                }
                progress(piece.bytes);
            }
        };
        share(threads, work);
        match failure.into_inner().expect("no panic holds it") {
            Some((_, error)) => Err(error),
            None => Ok(()),
        }
    }

    fn verify_piece(&self, piece: &HashedPiece, buffer: &mut Vec<u8>) -> Result<(), FileError> {
        buffer.resize(piece.bytes as usize, 0);
        self.source().read_at(self.weights().offset + piece.start, buffer).map_err(FileError::Read)?;
        if *blake3::hash(buffer).as_bytes() == piece.hash {
            return Ok(());
        }
        let (start, end) = (piece.start, piece.start + piece.bytes);
        let within = self.metadata().tensors.iter();
        let names: Vec<&str> = within
            .filter(|tensor| tensor.offset < end && start < tensor.offset + tensor.bytes)
            .map(|tensor| tensor.name.as_str())
            .collect();
        Err(FileError::Weights { start, end, tensors: names.join(", ") })
    }

    /// The pieces, which together are the weights.
    fn pieces(&self) -> Result<Vec<HashedPiece>, FileError> {
        // The header's check has found it before the weights.
        let section = &self.sections()[self.sections().len() - 2];
        debug_assert_eq!(section.kind, SectionKind::WeightHashes);
        let bytes = read_section(self.source(), section)?;
        let wrong = |what: String| FileError::Content { section: section.name(), what };
        if !bytes.len().is_multiple_of(PIECE_ENTRY_BYTES) {
            return Err(wrong(format!("{} bytes, expected a multiple of {PIECE_ENTRY_BYTES}", bytes.len())));
        }
        let mut start = 0u64;
        let mut pieces = Vec::with_capacity(bytes.len() / PIECE_ENTRY_BYTES);
        for entry in bytes.chunks_exact(PIECE_ENTRY_BYTES) {
            let (length, hash) = entry.split_at(8);
            let bytes = length.iter().rev().fold(0, |sum, byte| sum << 8 | u64::from(*byte));
            if !(1..=MAX_PIECE_BYTES).contains(&bytes) {
                return Err(wrong(format!(
                    "piece {} has {bytes} bytes, expected 1 to {MAX_PIECE_BYTES}",
                    pieces.len()
                )));
            }
            let mut piece = HashedPiece { start, bytes, hash: Hash::default() };
            piece.hash.copy_from_slice(hash);
            pieces.push(piece);
            start += bytes;
        }
        let weights = self.weights().bytes;
        if start != weights {
            return Err(wrong(format!("its pieces have {start} bytes, the weights {weights}")));
        }
        Ok(pieces)
    }
}
