//! Large aligned memory: the weight region, arenas and KV pools, and how much memory there is to take.
//!
//! A region starts at a multiple of 2 MiB and asks for huge pages, so that streaming through weights costs
//! few TLB misses.

use crate::bus::BusGuard;
use std::fs::File;
use std::ops::Range;
use std::os::fd::AsRawFd;
use std::ptr::NonNull;
use std::sync::Arc;

/// Bytes of a cache line.
pub const LINE: usize = 64;
/// Alignment of anonymous regions: a huge page.
pub const REGION_ALIGN: usize = 2 << 20;
/// Advice about a plan that lost bytes while it was mapped.
const ADVICE: &str = "leave plans alone while they run, and put a whole one in its place";

/// Why a region could not be made.
#[derive(Debug, thiserror::Error)]
pub enum RegionError {
    /// The kernel refused the mapping.
    #[error("mapping {bytes} bytes of {what} failed: {source}")]
    Map {
        /// Size asked for.
        bytes: u64,
        /// `anonymous memory` or `the file`.
        what: &'static str,
        /// The kernel's answer.
        source: std::io::Error,
    },
    /// The part of the file asked for is not there.
    #[error("the file holds {actual} bytes, the region ends at byte {end}")]
    PastEnd {
        /// First byte after the region.
        end: u64,
        /// Bytes in the file.
        actual: u64,
    },
    /// File regions start at a multiple of the page size.
    #[error("the region starts at byte {offset} of the file, expected a multiple of {expected}")]
    Unaligned {
        /// Offset asked for.
        offset: u64,
        /// Page size.
        expected: u64,
    },
}

/// One mapping, unmapped on drop.
#[derive(Debug)]
struct Mapping {
    base: NonNull<u8>,
    /// Bytes of use.
    len: usize,
    /// Bytes mapped from `base` on.
    mapped: usize,
    /// Inaccessible bytes before `base`.
    before: usize,
    /// Inaccessible bytes after those mapped.
    after: usize,
    /// The guard that turns the loss of a file's bytes into a message.
    _guard: Option<BusGuard>,
}

// SAFETY: a mapping is plain memory that this value alone owns.
unsafe impl Send for Mapping {}
// SAFETY: shared references only read it.
unsafe impl Sync for Mapping {}

impl Mapping {
    /// Zeroed memory at a multiple of [`REGION_ALIGN`], with at least a line to spare after `bytes`.
    fn anonymous(bytes: usize) -> Result<Mapping, RegionError> {
        let refused = |source| RegionError::Map { bytes: bytes as u64, what: "anonymous memory", source };
        let too_large = || refused(std::io::Error::from_raw_os_error(libc::ENOMEM));
        let mapped = bytes
            .checked_add(LINE)
            .and_then(|n| n.checked_next_multiple_of(page_size()))
            .ok_or_else(too_large)?;
        let reserved = mapped.checked_add(REGION_ALIGN).ok_or_else(too_large)?;
        // SAFETY: a fresh private mapping at an address of the kernel's choice touches no memory of ours.
        let raw = unsafe {
            libc::mmap(
                std::ptr::null_mut(),
                reserved,
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE,
                -1,
                0,
            )
        };
        if raw == libc::MAP_FAILED {
            return Err(refused(std::io::Error::last_os_error()));
        }
        let head = (raw as usize).next_multiple_of(REGION_ALIGN) - raw as usize;
        let tail = reserved - head - mapped;
        let base = raw.cast::<u8>().wrapping_add(head);
        // SAFETY: head and tail are parts of the mapping just made, outside `base..base + mapped`; all ends
        // are page aligned. Advice and unmapping of them change nothing else; a refused advice (no huge
        // pages) is harmless.
        unsafe {
            if head > 0 {
                libc::munmap(raw, head);
            }
            if tail > 0 {
                libc::munmap(base.add(mapped).cast(), tail);
            }
            libc::madvise(base.cast(), mapped, libc::MADV_HUGEPAGE);
        }
        let base = NonNull::new(base).ok_or_else(too_large)?;
        Ok(Mapping { base, len: bytes, mapped, before: 0, after: 0, _guard: None })
    }

    fn file(file: &File, offset: u64, bytes: usize, name: &str) -> Result<Mapping, RegionError> {
        let refused = |source| RegionError::Map { bytes: bytes as u64, what: "the file", source };
        let page = page_size() as u64;
        if !offset.is_multiple_of(page) {
            return Err(RegionError::Unaligned { offset, expected: page });
        }
        let actual = file.metadata().map_err(refused)?.len();
        let end = offset.saturating_add(bytes as u64);
        if end > actual {
            return Err(RegionError::PastEnd { end, actual });
        }
        let mapped = bytes.max(1).checked_next_multiple_of(page as usize);
        let reserved = mapped.and_then(|mapped| mapped.checked_add(REGION_ALIGN + 2 * page as usize));
        let (Some(mapped), Some(reserved)) = (mapped, reserved) else {
            return Err(refused(std::io::Error::from_raw_os_error(libc::ENOMEM)));
        };
        let offset = libc::off_t::try_from(offset).map_err(|_| RegionError::PastEnd { end, actual })?;
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE;
        // SAFETY: a fresh inaccessible mapping at an address of the kernel's choice touches no memory of
        // ours.
        let raw = unsafe { libc::mmap(std::ptr::null_mut(), reserved, libc::PROT_NONE, flags, -1, 0) };
        let start = match NonNull::new(raw.cast::<u8>()) {
            Some(start) if raw != libc::MAP_FAILED => start,
            _ => return Err(refused(std::io::Error::last_os_error())),
        };
        // At a multiple of 2 MiB, as plans have their weights: huge pages of the file's cache can be mapped
        // then. The rest of the reservation on both sides, a page at least, stays inaccessible.
        let before = (raw as usize + page as usize).next_multiple_of(REGION_ALIGN) - raw as usize;
        // SAFETY: `before + mapped` is less than what is reserved.
        let base = unsafe { start.add(before) };
        // Owned from here on, so that it is unmapped on an error.
        let after = reserved - before - mapped;
        let mut mapping = Mapping { base, len: bytes, mapped, before, after, _guard: None };
        let flags = libc::MAP_PRIVATE | libc::MAP_FIXED;
        let address = base.as_ptr().cast();
        // SAFETY: the new mapping replaces a part of the reservation, or fails and leaves it as it was; all
        // ends are page aligned.
        let placed = unsafe { libc::mmap(address, mapped, libc::PROT_READ, flags, file.as_raw_fd(), offset) };
        if placed == libc::MAP_FAILED {
            return Err(refused(std::io::Error::last_os_error()));
        }
        // SAFETY: advice changes nothing but speed; a refusal is harmless.
        unsafe { libc::madvise(address, mapped, libc::MADV_HUGEPAGE) };
        mapping._guard = Some(BusGuard::new(base.as_ptr() as usize, mapped, name, ADVICE));
        Ok(mapping)
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        let start = self.base.as_ptr().wrapping_sub(self.before);
        // SAFETY: this value owns the mapping and what lies inaccessible around it; nothing refers to it any
        // more.
        unsafe { libc::munmap(start.cast(), self.before + self.mapped + self.after) };
    }
}

/// Packed weights, read-only and shared: anonymous memory filled by the compiler, or a plan file's mapping.
#[derive(Debug)]
pub struct WeightRegion(Mapping);

impl WeightRegion {
    /// Zeroed memory to pack weights into.
    ///
    /// # Errors
    /// When the kernel refuses. Check [`crate::memory::available_memory`] before: an overcommitted mapping
    /// fails only when touched.
    pub fn anonymous(bytes: usize) -> Result<RegionMut, RegionError> {
        Mapping::anonymous(bytes).map(RegionMut)
    }

    /// Maps `bytes` at `offset` (a multiple of the page size) of a file, at a multiple of 2 MiB.
    ///
    /// If somebody shortens the file meanwhile, reading the lost part ends the process with a message that
    /// calls the file `name`.
    ///
    /// # Errors
    /// When that part is not in the file or the kernel refuses.
    ///
    /// # Safety
    /// As of every file mapping: nobody writes to that part of the file while the region lives. Nothing in
    /// the region protects it from other processes. Where the file is not the caller's alone, what reads the
    /// region must take any bytes at any time, as kernels do, and nothing may be concluded from a byte that
    /// is read twice.
    pub unsafe fn map_file(
        file: &File,
        offset: u64,
        bytes: usize,
        name: &str,
    ) -> Result<Arc<WeightRegion>, RegionError> {
        Mapping::file(file, offset, bytes, name).map(|mapping| Arc::new(WeightRegion(mapping)))
    }

    /// Locks the region in memory for as long as it lives: what is not there yet is read now, and the system
    /// takes none of it away later.
    ///
    /// # Errors
    /// The system's, such as that so much may not be locked ([`crate::memory::lock_limit`]).
    pub fn lock(&self) -> std::io::Result<()> {
        // SAFETY: the whole mapping is ours; locking changes nothing but where it lies.
        match unsafe { libc::mlock(self.0.base.as_ptr().cast(), self.0.mapped) } {
            0 => Ok(()),
            _ => Err(std::io::Error::last_os_error()),
        }
    }

    /// Puts a copy of some of the region, in whole pages, into its place: memory of this process alone, which
    /// lies on a node. Readers see the same bytes, whenever they read.
    ///
    /// # Errors
    /// The system's, such as that it has no memory: everything is as it was.
    ///
    /// # Panics
    /// When the range is not part of the region, or does not begin at a page.
    pub fn copy_to(&self, range: Range<usize>, node: usize) -> std::io::Result<()> {
        let own = &self.as_slice()[range.clone()];
        assert!(range.start.is_multiple_of(page_size()), "a page's start");
        let mut copy = Mapping::anonymous(own.len()).map_err(|error| match error {
            RegionError::Map { source, .. } => source,
            other => std::io::Error::other(other.to_string()),
        })?;
        let bytes = own.len().next_multiple_of(page_size());
        let source = copy.base.as_ptr();
        // SAFETY: the new mapping has as many bytes, and nobody else knows it.
        let target = unsafe { std::slice::from_raw_parts_mut(source, own.len()) };
        crate::numa::prefer(target, node)?;
        target.copy_from_slice(own);
        // SAFETY: both ranges are whole pages of mappings that this value and `copy` own. The copy holds what
        // the region holds there, and readers may not write to either; the kernel puts one into the other's
        // place in one step, as threads see it.
        unsafe {
            if libc::mprotect(source.cast(), bytes, libc::PROT_READ) != 0 {
                return Err(std::io::Error::last_os_error());
            }
            let place = self.0.base.as_ptr().add(range.start);
            let flags = libc::MREMAP_MAYMOVE | libc::MREMAP_FIXED;
            if libc::mremap(source.cast(), bytes, bytes, flags, place) == libc::MAP_FAILED {
                return Err(std::io::Error::last_os_error());
            }
        }
        // Memory that was moved away has left the copy's mapping.
        copy.base = NonNull::new(source.wrapping_add(bytes)).unwrap_or(copy.base);
        copy.mapped -= bytes;
        Ok(())
    }

    /// First byte.
    pub fn as_ptr(&self) -> *const u8 {
        self.0.base.as_ptr()
    }

    /// Bytes.
    pub fn len(&self) -> usize {
        self.0.len
    }

    /// Whether the region has no bytes.
    pub fn is_empty(&self) -> bool {
        self.0.len == 0
    }

    /// The bytes.
    pub fn as_slice(&self) -> &[u8] {
        // SAFETY: `len` bytes are mapped and readable. This process writes none of them while the region
        // lives; that no other one writes to a mapped file is what the caller of `map_file` has promised.
        unsafe { std::slice::from_raw_parts(self.0.base.as_ptr(), self.0.len) }
    }
}

/// Zeroed, writable, 2 MiB aligned memory of one owner: for weights, arenas, scratch or a KV cache.
#[derive(Debug)]
pub struct RegionMut(Mapping);

impl RegionMut {
    /// Bytes.
    pub fn len(&self) -> usize {
        self.0.len
    }

    /// Whether the region has no bytes.
    pub fn is_empty(&self) -> bool {
        self.0.len == 0
    }

    /// First byte; at least 64 readable bytes follow the last one.
    pub fn as_mut_ptr(&mut self) -> *mut u8 {
        self.0.base.as_ptr()
    }

    /// The bytes.
    pub fn as_slice(&self) -> &[u8] {
        // SAFETY: `len` bytes are mapped and readable, and `&self` excludes writers.
        unsafe { std::slice::from_raw_parts(self.0.base.as_ptr(), self.0.len) }
    }

    /// The bytes, for writing; split it to pack from several threads.
    pub fn as_mut_slice(&mut self) -> &mut [u8] {
        // SAFETY: `len` bytes are mapped and writable, and `&mut self` excludes every other access.
        unsafe { std::slice::from_raw_parts_mut(self.0.base.as_ptr(), self.0.len) }
    }

    /// Has memory that nothing has touched lie on small pages, for what is touched here and there: each touch
    /// takes a page.
    pub fn on_small_pages(self) -> RegionMut {
        // SAFETY: the whole mapping is ours; advice changes nothing but where it lies.
        unsafe { libc::madvise(self.0.base.as_ptr().cast(), self.0.mapped, libc::MADV_NOHUGEPAGE) };
        self
    }

    /// Moves what lies on small pages onto huge ones: a first touch finds few of these while files fill the
    /// memory. Whether all lies on such now, or the system knows of none (Linux before 6.1, huge pages
    /// switched off); otherwise it had too little memory in pieces so large.
    pub fn collapse(&mut self) -> bool {
        let base = self.0.base.as_ptr().cast();
        // SAFETY: the whole mapping is ours; advice changes nothing but where it lies.
        let refused = unsafe { libc::madvise(base, self.0.mapped, libc::MADV_COLLAPSE) } != 0;
        !refused || std::io::Error::last_os_error().raw_os_error() == Some(libc::EINVAL)
    }

    /// Makes the memory read-only and shareable.
    ///
    /// # Errors
    /// When the kernel refuses to change the protection.
    pub fn freeze(self) -> Result<Arc<WeightRegion>, RegionError> {
        let (base, mapped) = (self.0.base.as_ptr(), self.0.mapped);
        // SAFETY: the whole mapping is ours and no slice of it outlives `self`.
        if unsafe { libc::mprotect(base.cast(), mapped, libc::PROT_READ) } != 0 {
            let source = std::io::Error::last_os_error();
            return Err(RegionError::Map { bytes: mapped as u64, what: "anonymous memory", source });
        }
        Ok(Arc::new(WeightRegion(self.0)))
    }
}

fn page_size() -> usize {
    // SAFETY: sysconf has no preconditions.
    usize::try_from(unsafe { libc::sysconf(libc::_SC_PAGESIZE) }).unwrap_or(4096)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    #[test]
    fn anonymous_memory_is_aligned_zeroed_and_freezes() {
        let mut region = WeightRegion::anonymous(3_000_001).unwrap();
        assert_eq!(region.as_mut_ptr() as usize % REGION_ALIGN, 0);
        assert!(region.as_slice().iter().all(|b| *b == 0));
        region.as_mut_slice()[3_000_000] = 7;
        let frozen = region.freeze().unwrap();
        assert_eq!((frozen.len(), frozen.as_slice()[3_000_000]), (3_000_001, 7));
    }

    #[test]
    fn memory_keeps_its_bytes_on_larger_pages() {
        // First on small pages, so that there is something to do where the system has large ones.
        let mut region = WeightRegion::anonymous(9_000_001).unwrap().on_small_pages();
        let bytes = |i: usize| (i % 251) as u8;
        region.as_mut_slice().iter_mut().enumerate().for_each(|(i, byte)| *byte = bytes(i));
        // SAFETY: advice about memory of this region.
        unsafe { libc::madvise(region.as_mut_ptr().cast(), region.0.mapped, libc::MADV_HUGEPAGE) };
        region.collapse();
        assert!(region.as_slice().iter().enumerate().all(|(i, byte)| *byte == bytes(i)));
    }

    /// A part of a file's mapping becomes memory of this process; the file's other bytes stay mapped.
    #[test]
    fn a_copy_takes_the_place_of_a_part() {
        let path = std::env::temp_dir().join(format!("kernmill-copy-{}", std::process::id()));
        let bytes: Vec<u8> = (0..5_000_001u32).map(|i| (i % 251) as u8).collect();
        std::fs::write(&path, &bytes).unwrap();
        let file = File::options().read(true).write(true).open(&path).unwrap();
        std::fs::remove_file(&path).unwrap();
        // SAFETY: the file has no name any more, and this test writes to it below, which it looks for.
        let region = unsafe { WeightRegion::map_file(&file, 0, bytes.len(), "f") }.unwrap();
        let node =
            crate::numa::nodes_of(&region.as_slice()[..1]).ok().and_then(|nodes| nodes[0]).unwrap_or(0);
        let parts = [REGION_ALIGN..2 * REGION_ALIGN, 2 * REGION_ALIGN..bytes.len()];
        if parts.iter().any(|part| region.copy_to(part.clone(), node).is_err()) {
            assert_eq!(region.as_slice(), bytes);
            return println!("NOT RUN: a_copy_takes_the_place_of_a_part: this system lays memory on no node");
        }
        assert_eq!(region.as_slice(), bytes);
        std::os::unix::fs::FileExt::write_all_at(&file, &[255; 3 * REGION_ALIGN], 0).unwrap();
        assert_eq!(region.as_slice()[..REGION_ALIGN], [255; REGION_ALIGN]);
        assert_eq!(region.as_slice()[REGION_ALIGN..], bytes[REGION_ALIGN..]);
        assert!(region.copy_to(0..1, 5000).is_err());
    }

    #[test]
    fn empty_regions_and_absurd_sizes() {
        assert!(WeightRegion::anonymous(0).unwrap().is_empty());
        assert!(matches!(WeightRegion::anonymous(usize::MAX - 5), Err(RegionError::Map { .. })));
        assert!(matches!(WeightRegion::anonymous(1 << 60), Err(RegionError::Map { .. })));
    }

    #[test]
    fn files_map_at_page_offsets_within_their_length() {
        let path = std::env::temp_dir().join(format!("kernmill-region-{}", std::process::id()));
        let mut file =
            File::options().create(true).truncate(true).write(true).read(true).open(&path).unwrap();
        file.write_all(&[1; 4096]).unwrap();
        file.write_all(&[2; 100]).unwrap();
        std::fs::remove_file(&path).unwrap();
        // SAFETY: the file has no name any more, and this test does not write to it.
        let map = |offset, bytes| unsafe { WeightRegion::map_file(&file, offset, bytes, "f") };
        assert_eq!(map(4096, 100).unwrap().as_slice(), &[2; 100]);
        let past = map(4096, 101).unwrap_err();
        assert_eq!(past.to_string(), "the file holds 4196 bytes, the region ends at byte 4197");
        assert!(matches!(map(64, 10), Err(RegionError::Unaligned { .. })));
    }
}
