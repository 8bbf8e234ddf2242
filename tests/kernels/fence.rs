//! Memory between pages that cannot be touched.

use std::ptr;

/// Which end of the memory lies against the next page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Flush {
    Start,
    End,
}

/// Exactly so many bytes; the neighbouring pages fault.
pub struct Fenced {
    map: *mut u8,
    map_bytes: usize,
    start: *mut u8,
    bytes: usize,
}

fn page() -> usize {
    // SAFETY: a query without side effects.
    usize::try_from(unsafe { libc::sysconf(libc::_SC_PAGESIZE) }).unwrap()
}

impl Fenced {
    pub fn new(bytes: usize, flush: Flush) -> Fenced {
        let page = page();
        let inner = bytes.next_multiple_of(page);
        let map_bytes = inner + 2 * page;
        // SAFETY: a new private mapping at a place of the system's choice; then its inner pages are opened.
        let map = unsafe {
            let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
            let map = libc::mmap(ptr::null_mut(), map_bytes, libc::PROT_NONE, flags, -1, 0);
            assert_ne!(map, libc::MAP_FAILED);
            let map = map.cast::<u8>();
            let open = libc::PROT_READ | libc::PROT_WRITE;
            assert!(inner == 0 || libc::mprotect(map.add(page).cast(), inner, open) == 0);
            map
        };
        let offset = if flush == Flush::Start { page } else { page + inner - bytes };
        // SAFETY: inside the mapping.
        let start = unsafe { map.add(offset) };
        Fenced { map, map_bytes, start, bytes }
    }

    pub fn address(&self) -> u64 {
        self.start as u64
    }

    pub fn bytes(&self) -> &[u8] {
        // SAFETY: these pages are open, and the leaves that write to them have returned.
        unsafe { std::slice::from_raw_parts(self.start, self.bytes) }
    }

    /// Not after [`Fenced::read_only`].
    pub fn bytes_mut(&mut self) -> &mut [u8] {
        // SAFETY: as above, and borrowed mutably.
        unsafe { std::slice::from_raw_parts_mut(self.start, self.bytes) }
    }

    /// From now on a write faults too.
    pub fn read_only(&mut self) {
        let (page, inner) = (page(), self.map_bytes - 2 * page());
        // SAFETY: the inner pages of the mapping.
        let done = unsafe { libc::mprotect(self.map.add(page).cast(), inner, libc::PROT_READ) };
        assert!(inner == 0 || done == 0);
    }
}

impl Drop for Fenced {
    fn drop(&mut self) {
        // SAFETY: the mapping made above, to which nothing refers any more.
        unsafe { libc::munmap(self.map.cast(), self.map_bytes) };
    }
}

/// Whether the system itself may read a byte there.
fn readable(address: u64) -> bool {
    let mut pipe = [0; 2];
    // SAFETY: `write` reports an address that cannot be read as an error.
    unsafe {
        assert_eq!(libc::pipe(pipe.as_mut_ptr()), 0);
        let written = libc::write(pipe[1], address as *const libc::c_void, 1);
        libc::close(pipe[0]);
        libc::close(pipe[1]);
        written == 1
    }
}

#[test]
fn the_neighbouring_byte_cannot_be_touched() {
    for bytes in [1, 64, 4096, 4097] {
        let end = Fenced::new(bytes, Flush::End);
        assert!(readable(end.address() + bytes as u64 - 1) && !readable(end.address() + bytes as u64));
        let start = Fenced::new(bytes, Flush::Start);
        assert!(readable(start.address()) && !readable(start.address() - 1));
    }
    assert!(!readable(Fenced::new(0, Flush::Start).address()));
}
