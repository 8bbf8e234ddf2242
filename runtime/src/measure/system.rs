//! The system's figures for this process.

use kernmill_os::proc;

/// How much of a stretch of memory lies on huge pages.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct HugePages {
    /// Bytes of the mappings that the stretch is part of.
    pub mapped: u64,
    /// Bytes of these mappings in memory.
    pub resident: u64,
    /// Bytes of these mappings on huge pages, of anonymous memory or of files.
    pub huge: u64,
}

/// The mappings that hold any of `memory`; `None` when the system does not say.
pub fn huge_pages(memory: &[u8]) -> Option<HugePages> {
    let start = memory.as_ptr() as u64;
    Some(sum_mappings(&proc::text("self/smaps")?, start, start + memory.len() as u64))
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
        let counted = match first {
            "Size:" if inside => &mut sum.mapped,
            "Rss:" if inside => &mut sum.resident,
            "AnonHugePages:" | "ShmemPmdMapped:" | "FilePmdMapped:" if inside => &mut sum.huge,
            _ => continue,
        };
        *counted = counted.saturating_add(second.and_then(bytes_of_kib).unwrap_or(0));
    }
    sum
}

/// `start-end` in hexadecimal: a mapping's first line begins with it.
fn address_range(word: &str) -> Option<(u64, u64)> {
    let (from, to) = word.split_once('-')?;
    Some((u64::from_str_radix(from, 16).ok()?, u64::from_str_radix(to, 16).ok()?))
}

fn bytes_of_kib(number: &str) -> Option<u64> {
    Some(number.parse::<u64>().ok()?.saturating_mul(1024))
}

fn usage() -> Option<libc::rusage> {
    // SAFETY: rusage is plain data, for which all zeros is a value.
    let mut usage: libc::rusage = unsafe { std::mem::zeroed() };
    // SAFETY: `usage` is writable and lives through the call.
    let result = unsafe { libc::getrusage(libc::RUSAGE_SELF, &raw mut usage) };
    (result == 0).then_some(usage)
}

/// Page faults of this process so far that had to wait for a disk.
pub fn major_faults() -> u64 {
    usage().map_or(0, |usage| usage.ru_majflt as u64)
}

/// Seconds so far that the machine's CPUs wanted to run and others had them (steal), of all CPUs together;
/// `None` where the system does not say.
pub fn stolen_seconds() -> Option<f64> {
    // SAFETY: asking has no preconditions.
    let ticks = unsafe { libc::sysconf(libc::_SC_CLK_TCK) };
    Some(stolen_in(&proc::text("stat")?)? as f64 / ticks.max(1) as f64)
}

/// The eighth figure of the line of all CPUs.
fn stolen_in(stat: &str) -> Option<u64> {
    stat.lines().find_map(|line| line.strip_prefix("cpu "))?.split_whitespace().nth(7)?.parse().ok()
}

/// Largest resident size of this process so far, in bytes.
pub fn peak_resident() -> Option<u64> {
    let stated = proc::text("self/status").and_then(|status| peak_in(&status));
    // This one may have what ran in the process before, which is little.
    stated.or_else(|| Some(u64::try_from(usage()?.ru_maxrss).ok()?.saturating_mul(1024)))
}

fn peak_in(status: &str) -> Option<u64> {
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    bytes_of_kib(line.split_whitespace().next()?)
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
        let usage = u64::try_from(usage().unwrap().ru_maxrss).unwrap() * 1024;
        assert!(usage > 100_000 && usage < 1 << 50, "{usage}");
    }

    #[test]
    fn stolen_time_is_that_of_all_cpus() {
        assert_eq!(stolen_in("cpu  9 8 7 6 5 4 3 42 1 0\ncpu0 1 1 1 1 1 1 1 5 1 1\nctxt 7\n"), Some(42));
        for stat in ["", "cpu 1 2 3", "cpu0 1 1 1 1 1 1 1 5 1 1", "cpu 1 1 1 1 1 1 1 x"] {
            assert_eq!(stolen_in(stat), None, "{stat:?}");
        }
    }

    #[test]
    fn lists_that_make_no_sense_are_passed_over() {
        assert_eq!(peak_in("VmPeak: 9 kB\nVmHWM:\t    7 kB\n"), Some(7 << 10));
        for status in ["", "VmHWM:", "VmHWM: much kB", "VmHWM: -1 kB", "\u{fffd}"] {
            assert_eq!(peak_in(status), None, "{status:?}");
        }
        assert_eq!(peak_in("VmHWM: 18446744073709551615 kB"), Some(u64::MAX));
        let mapped = |lines: &str| sum_mappings(&format!("0-ff r--p\n{lines}"), 0, 1).mapped;
        assert_eq!(mapped("Size: 1 kB\nSize: 2 kB"), 3 << 10);
        for lines in ["", "Size:", "Size: all kB", "Size: -1 kB", "Size", "g0-ff\n:"] {
            assert_eq!(mapped(lines), 0, "{lines:?}");
        }
        assert_eq!(mapped("Size: 18446744073709551615 kB\nSize: 4 kB"), u64::MAX);
        assert_eq!(sum_mappings("Size: 4 kB\n-\n0-\n", 0, 1), HugePages::default());
    }
}
