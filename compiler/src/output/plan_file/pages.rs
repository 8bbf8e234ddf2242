//! Writes the weights of a new plan in whole huge pages.

use kernmill_plan::file::WEIGHT_ALIGN;
use std::collections::BTreeMap;
use std::fs::File;
use std::io;
use std::ops::Range;
use std::os::fd::AsRawFd;
use std::os::unix::fs::FileExt;
use std::sync::Mutex;

/// The part of a file that pieces of weights go to, from several threads.
///
/// Where a file system has huge pages in its cache (Linux 6.16 for ext4), a write makes them of what it fills
/// alone. So a page that several pieces share waits until it is whole.
pub(super) struct PageWriter<'a> {
    file: &'a File,
    /// Where the weights lie in the file, from a huge page on.
    place: Range<u64>,
    /// Parts of pages that lack others, by the page's start.
    parts: Mutex<BTreeMap<u64, Vec<PagePart>>>,
}

/// Where a part of a page begins in the file, and its bytes.
type PagePart = (u64, Vec<u8>);

impl PageWriter<'_> {
    pub(super) fn new(file: &File, place: Range<u64>) -> PageWriter<'_> {
        PageWriter { file, place, parts: Mutex::default() }
    }

    /// Writes a piece whose first byte is at `offset` of the file. All pieces together are the weights.
    pub(super) fn write(&self, offset: u64, piece: &[u8]) -> io::Result<()> {
        let end = offset + piece.len() as u64;
        let start = offset.next_multiple_of(WEIGHT_ALIGN).min(end);
        let stop = (end / WEIGHT_ALIGN * WEIGHT_ALIGN).max(start);
        let bytes = |part: Range<u64>| &piece[(part.start - offset) as usize..(part.end - offset) as usize];
        self.write_out(start, bytes(start..stop))?;
        for part in [offset..start, stop..end] {
            if !part.is_empty() {
                self.add(part.start, bytes(part))?;
            }
        }
        Ok(())
    }

    /// Adds a part of a page, and writes the page if that makes it whole.
    fn add(&self, offset: u64, part: &[u8]) -> io::Result<()> {
        let page = offset / WEIGHT_ALIGN * WEIGHT_ALIGN;
        let (start, end) = (page.max(self.place.start), (page + WEIGHT_ALIGN).min(self.place.end));
        let part = part.to_vec();
        let mut all = self.parts.lock().expect("no panic holds it");
        let parts = all.entry(page).or_default();
        parts.push((offset, part));
        let there: usize = parts.iter().map(|(_, part)| part.len()).sum();
        if (there as u64) < end - start {
            return Ok(());
        }
        let mut parts = all.remove(&page).unwrap_or_default();
        drop(all);
        parts.sort_unstable_by_key(|(offset, _)| *offset);
        let parts: Vec<&[u8]> = parts.iter().map(|(_, part)| part.as_slice()).collect();
        self.write_out(start, &parts.concat())
    }

    /// Writes whole pages, and lets the disk begin with them while the next piece is packed: where that is
    /// refused, nothing changes but speed.
    fn write_out(&self, offset: u64, pages: &[u8]) -> io::Result<()> {
        // No bytes would mean all up to the file's end.
        if pages.is_empty() {
            return Ok(());
        }
        self.file.write_all_at(pages, offset)?;
        // SAFETY: a system call on an open file; it touches no memory of ours.
        unsafe {
            libc::sync_file_range(
                self.file.as_raw_fd(),
                offset.cast_signed(),
                pages.len() as i64,
                libc::SYNC_FILE_RANGE_WRITE,
            );
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Pieces of all sizes, in any order and from several threads, all reach the file, and nothing is left.
    #[test]
    fn pieces_become_the_file() {
        let page = WEIGHT_ALIGN as usize;
        let mut rng = fastrand::Rng::with_seed(7);
        for first in [0, WEIGHT_ALIGN] {
            let sizes = (0..40).map(|n| [rng.usize(1..3 * page), page, 1, 64, 2 * page - 65, 300][n % 6]);
            let mut pieces: Vec<(u64, Vec<u8>)> = Vec::new();
            let mut at = first;
            for bytes in sizes {
                pieces.push((at, vec![pieces.len() as u8 + 1; bytes]));
                at += bytes as u64;
            }
            let expected: Vec<u8> = pieces.iter().flat_map(|(_, piece)| piece).copied().collect();
            rng.shuffle(&mut pieces);
            let file = tempfile::tempfile().expect("a file");
            let writer = PageWriter::new(&file, first..at);
            std::thread::scope(|scope| {
                for share in pieces.chunks(pieces.len().div_ceil(3)) {
                    let writer = &writer;
                    scope.spawn(move || {
                        share
                            .iter()
                            .for_each(|(offset, piece)| writer.write(*offset, piece).expect("written"));
                    });
                }
            });
            assert!(writer.parts.lock().expect("no panic holds it").is_empty());
            let mut written = vec![0; expected.len()];
            file.read_exact_at(&mut written, first).expect("as long as its pieces");
            assert!(written == expected, "from {first}");
            assert_eq!(file.metadata().expect("a file").len(), at);
        }
    }
}
