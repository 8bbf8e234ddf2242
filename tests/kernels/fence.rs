//! Memory between pages that cannot be touched.

pub use kernmill_runtime::guarded::{Fenced, Flush};

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

#[test]
fn memory_on_lines_ends_less_than_a_line_before_the_page() {
    for bytes in [1, 63, 64, 4100] {
        let end = Fenced::aligned(bytes, 64, Flush::End);
        let first_beyond = end.address() + (bytes as u64).next_multiple_of(64);
        assert!(end.address().is_multiple_of(64) && readable(first_beyond - 1) && !readable(first_beyond));
        assert_eq!(end.slack()[1].len(), bytes.next_multiple_of(64) - bytes);
    }
}
