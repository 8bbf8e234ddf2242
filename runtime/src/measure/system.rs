//! What the system tells about this process.

use std::fs;

/// How much of a stretch of memory lies on huge pages.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct HugePages {
    /// Bytes of the mappings that the stretch is part of.
    pub mapped: u64,
    /// Bytes of them in memory.
    pub resident: u64,
    /// Bytes of them on huge pages, of anonymous memory or of files.
    pub huge: u64,
}

/// The mappings that hold any of `memory`; `None` when the system does not say.
pub fn huge_pages(memory: &[u8]) -> Option<HugePages> {
    let start = memory.as_ptr() as u64;
    Some(sum_mappings(&fs::read_to_string("/proc/self/smaps").ok()?, start, start + memory.len() as u64))
}

fn sum_mappings(smaps: &str, start: u64, end: u64) -> HugePages {
    let mut sum = HugePages::default();
    let mut inside = false;
    for line in smaps.lines() {
        let mut words = line.split_whitespace();
        let (Some(first), second) = (words.next(), words.next()) else { continue };
        if let Some((from, to)) = address_range(first) {
            inside = from < end && start < to;
            continue;
        }
        let bytes = second.and_then(|number| number.parse::<u64>().ok()).unwrap_or(0) * 1024;
        match first {
            "Size:" if inside => sum.mapped += bytes,
            "Rss:" if inside => sum.resident += bytes,
            "AnonHugePages:" | "ShmemPmdMapped:" | "FilePmdMapped:" if inside => sum.huge += bytes,
            _ => {}
        }
    }
    sum
}

/// `start-end` in hexadecimal: a mapping's first line begins with it.
fn address_range(word: &str) -> Option<(u64, u64)> {
    let (from, to) = word.split_once('-')?;
    Some((u64::from_str_radix(from, 16).ok()?, u64::from_str_radix(to, 16).ok()?))
}

/// Page faults of this process so far that had to wait for a disk.
pub fn major_faults() -> u64 {
    // SAFETY: rusage is plain data, for which all zeros is a value.
    let mut usage: libc::rusage = unsafe { std::mem::zeroed() };
    // SAFETY: `usage` is writable and lives through the call.
    let result = unsafe { libc::getrusage(libc::RUSAGE_SELF, &raw mut usage) };
    if result == 0 { usage.ru_majflt as u64 } else { 0 }
}

/// Largest resident size of this process so far, in bytes.
pub fn peak_resident() -> Option<u64> {
    let status = fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    let kib: u64 = line.split_whitespace().next()?.parse().ok()?;
    Some(kib * 1024)
}

#[cfg(test)]
mod tests {
    use super::*;

    const SMAPS: &str = "\
7f0000000000-7f0000400000 r--p 00000000 00:00 0
Size:               4096 kB
KernelPageSize:        4 kB
Rss:                4000 kB
AnonHugePages:      2048 kB
VmFlags: rd mr mw me hg
7f0000400000-7f0000500000 rw-p 00000000 08:01 77   /tmp/a b-c
Size:               1024 kB
Rss:                  16 kB
FilePmdMapped:         8 kB
";

    #[test]
    fn mappings_are_summed_where_they_overlap() {
        let sum = |start, end| sum_mappings(SMAPS, start, end);
        let first = HugePages { mapped: 4096 << 10, resident: 4000 << 10, huge: 2048 << 10 };
        assert_eq!(sum(0x7f00_0000_0000, 0x7f00_0000_0001), first);
        assert_eq!(sum(0x7f00_003f_ffff, 0x7f00_0040_0000), first);
        let both = HugePages { mapped: 5120 << 10, resident: 4016 << 10, huge: 2056 << 10 };
        assert_eq!(sum(0x7f00_0000_0000, 0x7f00_0040_0001), both);
        assert_eq!(sum(0, 0x7f00_0000_0000), HugePages::default());
    }

    #[test]
    fn this_process_is_resident_and_its_memory_is_found() {
        let memory = vec![1u8; 100_000];
        let pages = huge_pages(&memory).unwrap();
        assert!(pages.resident >= 100_000 && pages.mapped >= pages.resident, "{pages:?}");
        assert!(peak_resident().unwrap() > 100_000);
        assert!(major_faults() < u64::MAX);
    }
}
