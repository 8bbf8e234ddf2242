//! Memory between pages that cannot be touched.

use std::ptr;

/// Which end of the memory lies against the next page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Flush {
    /// The first byte: reading before it faults.
    Start,
    /// The last byte: reading after it faults.
    End,
}

/// The permitted access to the memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PageAccess {
    /// No access: reads and writes fault.
    Nothing,
    /// Reading: a write faults.
    Read,
    /// Reading and writing.
    Write,
}

/// So many zeroed bytes; the neighbouring pages fault.
#[derive(Debug)]
pub struct Fenced {
    map: *mut u8,
    map_bytes: usize,
    start: *mut u8,
    bytes: usize,
    access: PageAccess,
}

// SAFETY: the mapping is plain memory that this value alone owns.
unsafe impl Send for Fenced {}

fn page() -> usize {
    // SAFETY: a query without side effects.
    usize::try_from(unsafe { libc::sysconf(libc::_SC_PAGESIZE) }).unwrap_or(4096)
}

impl Fenced {
    /// Exactly `bytes` bytes, one end of them against an inaccessible page.
    ///
    /// # Panics
    /// When the system has no memory left.
    pub fn new(bytes: usize, flush: Flush) -> Fenced {
        Fenced::aligned(bytes, 1, flush)
    }

    /// So many bytes at a multiple of `align`, a power of two of at most a page; at the end fewer than
    /// `align` bytes, which [`Fenced::slack`] has, may come before the inaccessible page.
    ///
    /// # Panics
    /// When the system has no memory left.
    pub fn aligned(bytes: usize, align: usize, flush: Flush) -> Fenced {
        let page = page();
        let inner = bytes.next_multiple_of(page);
        let map_bytes = inner + 2 * page;
        // SAFETY: a new private mapping at a place of the system's choice; then its inner pages are opened.
        let map = unsafe {
            let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE;
            let map = libc::mmap(ptr::null_mut(), map_bytes, libc::PROT_NONE, flags, -1, 0);
            assert_ne!(
                map,
                libc::MAP_FAILED,
                "mapping {map_bytes} bytes: {}",
                std::io::Error::last_os_error()
            );
            map.cast::<u8>()
        };
        let offset = if flush == Flush::Start { page } else { page + inner - bytes.next_multiple_of(align) };
        let start = map.wrapping_add(offset);
        let mut fenced = Fenced { map, map_bytes, start, bytes, access: PageAccess::Nothing };
        fenced.allow(PageAccess::Write);
        fenced
    }

    /// Address of the first byte.
    pub fn address(&self) -> u64 {
        self.start as u64
    }

    /// Bytes.
    pub fn len(&self) -> usize {
        self.bytes
    }

    /// Whether the memory has no bytes.
    pub fn is_empty(&self) -> bool {
        self.bytes == 0
    }

    /// The bytes.
    ///
    /// # Panics
    /// When they cannot be read.
    pub fn bytes(&self) -> &[u8] {
        assert_ne!(self.access, PageAccess::Nothing);
        // SAFETY: these pages are open, and the code that writes to them has returned.
        unsafe { std::slice::from_raw_parts(self.start, self.bytes) }
    }

    /// The bytes, for writing.
    ///
    /// # Panics
    /// When they cannot be written.
    pub fn bytes_mut(&mut self) -> &mut [u8] {
        assert_eq!(self.access, PageAccess::Write);
        // SAFETY: as above, and borrowed mutably.
        unsafe { std::slice::from_raw_parts_mut(self.start, self.bytes) }
    }

    /// Bytes on the memory's pages that do not belong to it: those before, and those after.
    ///
    /// # Panics
    /// When they cannot be read.
    pub fn slack(&self) -> [&[u8]; 2] {
        assert_ne!(self.access, PageAccess::Nothing);
        let (first, last) = (self.map.wrapping_add(page()), self.map.wrapping_add(self.map_bytes - page()));
        let end = self.start.wrapping_add(self.bytes);
        // SAFETY: both are parts of the open pages; nobody else refers to them.
        unsafe {
            [
                std::slice::from_raw_parts(first, self.start as usize - first as usize),
                std::slice::from_raw_parts(end, last as usize - end as usize),
            ]
        }
    }

    /// Fills the memory, and what else is on its pages, with a byte.
    ///
    /// # Panics
    /// When it cannot be written.
    pub fn fill(&mut self, byte: u8) {
        assert_eq!(self.access, PageAccess::Write);
        // SAFETY: the open pages of the mapping, borrowed mutably.
        unsafe { ptr::write_bytes(self.map.add(page()), byte, self.map_bytes - 2 * page()) };
    }

    /// From now on a write faults.
    pub fn read_only(&mut self) {
        self.allow(PageAccess::Read);
    }

    /// From now on this may be done with the memory.
    ///
    /// # Panics
    /// When the system refuses.
    pub fn allow(&mut self, access: PageAccess) {
        let inner = self.map_bytes - 2 * page();
        if access == self.access {
            return;
        }
        self.access = access;
        let protection = match access {
            PageAccess::Nothing => libc::PROT_NONE,
            PageAccess::Read => libc::PROT_READ,
            PageAccess::Write => libc::PROT_READ | libc::PROT_WRITE,
        };
        // SAFETY: the inner pages of the mapping, of which no slice lives.
        let done = unsafe { libc::mprotect(self.map.add(page()).cast(), inner, protection) };
        assert!(inner == 0 || done == 0, "protecting {inner} bytes: {}", std::io::Error::last_os_error());
    }
}

impl Drop for Fenced {
    fn drop(&mut self) {
        // SAFETY: the mapping made above, to which nothing refers any more.
        unsafe { libc::munmap(self.map.cast(), self.map_bytes) };
    }
}
