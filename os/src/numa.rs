//! Nodes: CPUs, and the memory that lies beside them. A CPU reads another node's memory more slowly, and all
//! CPUs together read one node's memory no faster than that node gives it.

use crate::affinity::CpuSet;
use crate::files::read_named;
use std::io;
use std::path::Path;

/// Where the system describes its nodes.
const NODES: &str = "/sys/devices/system/node";
/// Most bytes of a file there: the longest is a list of CPUs.
const FILE_BYTES: u64 = 64 << 10;
/// Node numbers that a set can have: the system's own sets have as many at most.
const MOST_NODES: usize = 1024;
/// Moves pages that no other process has mapped, and says so if some are left elsewhere. The system's numbers
/// of `MPOL_MF_STRICT` and `MPOL_MF_MOVE`.
const MOVE_OR_SAY: libc::c_uint = 1 | 2;

/// A node that has CPUs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NumaNode {
    /// Number of the node.
    pub number: usize,
    /// CPUs of the node.
    pub cpus: CpuSet,
}

/// The nodes with CPUs, ascending. None where the system tells of none, and where one of them has no memory:
/// nothing can be laid beside its CPUs.
pub fn nodes() -> Vec<NumaNode> {
    nodes_in(Path::new(NODES))
}

/// The nodes that a directory describes as the system's does: by `online` and a `cpulist` for each node, and
/// `has_memory` if there is one.
pub fn nodes_in(dir: &Path) -> Vec<NumaNode> {
    let list = |name: &str| -> Option<CpuSet> {
        let bytes = read_named(&dir.join(name), FILE_BYTES).ok()?;
        String::from_utf8_lossy(&bytes).trim().parse().ok()
    };
    let Some(online) = list("online") else { return Vec::new() };
    let node = |number: usize| Some(NumaNode { number, cpus: list(&format!("node{number}/cpulist"))? });
    let nodes: Vec<NumaNode> = online.iter().filter_map(node).collect();
    let has_memory = list("has_memory");
    let all = nodes.iter().all(|node| has_memory.is_none_or(|has| has.has(node.number)));
    if all { nodes } else { Vec::new() }
}

/// Lays pages of some memory on a node when they are first touched, as far as there is room. Pages that were
/// touched before stay where they are.
///
/// # Errors
/// When the system knows no such node, or this process may not use it.
pub fn prefer(memory: &[u8], node: usize) -> io::Result<()> {
    set_policy(memory, libc::MPOL_PREFERRED, &[node], 0)
}

/// Lays pages of some memory on these nodes in turns when they are first touched.
///
/// # Errors
/// As of [`prefer`].
pub fn interleave(memory: &[u8], nodes: &[usize]) -> io::Result<()> {
    set_policy(memory, libc::MPOL_INTERLEAVE, nodes, 0)
}

/// Moves to a node what this process has of `memory`, whether it is its own or a file's: whether all of it
/// lies there now. Pages that other processes have mapped as well stay where they are.
///
/// # Errors
/// As of [`prefer`].
pub fn move_to(memory: &[u8], node: usize) -> io::Result<bool> {
    match set_policy(memory, libc::MPOL_PREFERRED, &[node], MOVE_OR_SAY) {
        Err(error) if error.raw_os_error() == Some(libc::EIO) => Ok(false),
        Err(error) => Err(error),
        // Linux before 6.7 says nothing of pages that others have mapped. Where it may not be asked for the
        // pages' nodes, its word stands.
        Ok(()) => Ok(nodes_of(memory).map_or(true, |pages| pages.into_iter().flatten().all(|n| n == node))),
    }
}

fn set_policy(memory: &[u8], mode: libc::c_int, nodes: &[usize], flags: libc::c_uint) -> io::Result<()> {
    let mut mask = [0u64; MOST_NODES / 64];
    for node in nodes {
        let word = mask.get_mut(node / 64).ok_or_else(|| io::Error::from_raw_os_error(libc::EINVAL))?;
        *word |= 1 << (node % 64);
    }
    let (start, bytes) = whole_pages(memory);
    // SAFETY: the kernel reads the mask only. Where memory lies changes nothing of what it holds.
    let result = unsafe {
        libc::syscall(
            libc::SYS_mbind,
            start,
            bytes,
            mode,
            mask.as_ptr(),
            MOST_NODES as libc::c_ulong + 1,
            flags,
        )
    };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// The pages that memory lies on: their start and bytes.
fn whole_pages(memory: &[u8]) -> (usize, usize) {
    let page = page_size();
    let start = memory.as_ptr() as usize / page * page;
    (start, (memory.as_ptr() as usize + memory.len()).next_multiple_of(page) - start)
}

/// Node of each page of some memory, by what the system says; `None` where a page is not there.
///
/// # Errors
/// The system's.
pub fn nodes_of(memory: &[u8]) -> io::Result<Vec<Option<usize>>> {
    let (start, bytes) = whole_pages(memory);
    let pages: Vec<usize> = (0..bytes / page_size()).map(|n| start + n * page_size()).collect();
    let mut status = vec![0 as libc::c_int; pages.len()];
    let nowhere = std::ptr::null::<libc::c_int>();
    // SAFETY: without a list of nodes the kernel moves nothing; it reads as many addresses as there are, and
    // writes as many answers.
    let result = unsafe {
        libc::syscall(libc::SYS_move_pages, 0, pages.len(), pages.as_ptr(), nowhere, status.as_mut_ptr(), 0)
    };
    match result {
        0 => Ok(status.into_iter().map(|node| usize::try_from(node).ok()).collect()),
        _ => Err(io::Error::last_os_error()),
    }
}

/// Maps memory of a file, so that it can be moved: pages that are not there yet are read, and come to the
/// node of this thread. With `present_alone` these are left out, as far as the system tells this process
/// which ones it has: of files of others it tells nothing.
pub fn map(memory: &[u8], present_alone: bool) {
    let (start, bytes) = whole_pages(memory);
    let page = page_size();
    let mut present = vec![1u8; bytes / page];
    let address = start as *mut libc::c_void;
    // SAFETY: the kernel writes a byte for each page of the range.
    if present_alone && unsafe { libc::mincore(address, bytes, present.as_mut_ptr()) } != 0 {
        return;
    }
    for n in (0..present.len()).filter(|n| present[*n] & 1 == 1) {
        // The range begins and ends within its first and last page.
        let at = (n * page).saturating_sub(memory.as_ptr() as usize - start).min(memory.len() - 1);
        std::hint::black_box(memory[at]);
    }
}

fn page_size() -> usize {
    // SAFETY: sysconf has no preconditions.
    usize::try_from(unsafe { libc::sysconf(libc::_SC_PAGESIZE) }).unwrap_or(4096)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::region::WeightRegion;
    use std::fs;

    #[test]
    fn nodes_are_read_from_a_directory() {
        let dir = std::env::temp_dir().join(format!("kernmill-nodes-{}", std::process::id()));
        let write = |name: &str, text: &str| {
            let file = dir.join(name);
            fs::create_dir_all(file.parent().unwrap()).unwrap();
            fs::write(file, text).unwrap();
        };
        assert_eq!(nodes_in(&dir), []);
        write("online", "0,2-3\n");
        write("node0/cpulist", "0-3,8\n");
        write("node1/cpulist", "40\n");
        write("node2/cpulist", "\n");
        write("node3/cpulist", "4-7\n");
        let node = |number, cpus: &str| NumaNode { number, cpus: cpus.parse().unwrap() };
        let expected = [node(0, "0-3,8"), node(3, "4-7")];
        assert_eq!(nodes_in(&dir), expected);
        write("has_memory", "0-3\n");
        assert_eq!(nodes_in(&dir), expected);
        write("has_memory", "0,2\n");
        assert_eq!(nodes_in(&dir), []);
        fs::remove_dir_all(&dir).unwrap();
    }

    /// By what `move_pages` says of every page. Any system has the node that it lays memory on by itself.
    #[test]
    fn memory_lies_where_it_is_asked_to() {
        let mut region = WeightRegion::anonymous(5 << 20).unwrap();
        region.as_mut_slice()[..4 << 20].fill(1);
        let found = match nodes_of(region.as_slice()) {
            Ok(found) => found,
            Err(error) => return println!("NOT RUN: memory_lies_where_it_is_asked_to: move_pages: {error}"),
        };
        let node = found[0].expect("it was touched");
        assert!(found[..1024].iter().all(Option::is_some));
        assert!(move_to(region.as_slice(), node).unwrap());
        prefer(&region.as_slice()[4 << 20..], node).unwrap();
        region.as_mut_slice()[4 << 20..].fill(2);
        assert!(nodes_of(region.as_slice()).unwrap().iter().all(|page| *page == Some(node)));
        interleave(region.as_slice(), &[node]).unwrap();
        let absent = (0..MOST_NODES).rfind(|node| !Path::new(NODES).join(format!("node{node}")).exists());
        for node in [absent.unwrap(), MOST_NODES] {
            assert!(move_to(region.as_slice(), node).is_err());
            assert!(prefer(region.as_slice(), node).is_err());
        }
        assert!(
            region.as_slice().iter().enumerate().all(|(at, byte)| *byte == if at < 4 << 20 { 1 } else { 2 })
        );
    }
}
