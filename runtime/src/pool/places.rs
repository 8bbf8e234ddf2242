//! Where workers stay. Kernels give each worker the rows next to those of the worker before it. So workers
//! come in the order of nodes, and of caches on a node: then a node has rows that follow each other.

use super::arrival::SeatPlace;
use super::config::{Numa, PoolConfig, PoolError, usable_on};
use kernmill_os::affinity::{CpuSet, Usable};
use kernmill_os::numa::{self, NumaNode};
use kernmill_os::sisters;

/// The CPUs that workers may use, and what they share.
pub(crate) struct CpuLayout {
    pub(super) usable: Usable,
    /// Nodes that the CPUs are of. One or none makes no difference.
    pub(super) nodes: Vec<NumaNode>,
    /// CPUs that share a last level of cache.
    pub(super) caches: Vec<CpuSet>,
    /// Finds pairs of CPUs that are one core and are not named so; asked where it matters.
    pub(super) sisters: fn(&Usable) -> Vec<CpuSet>,
}

/// Where each worker stays.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct WorkerPlaces {
    /// By worker, the CPUs that it is kept on; `None` leaves that to the system.
    pub(super) cpus: Vec<Option<CpuSet>>,
    /// By worker, how near it is to others.
    pub(super) seats: Vec<SeatPlace>,
    /// By worker, the number of its node; empty where there is one.
    pub(super) nodes: Vec<usize>,
}

impl CpuLayout {
    /// The layout of this system, as far as workers of `config` may use it.
    ///
    /// # Errors
    /// When this process may not use the CPUs.
    pub(crate) fn of_system(config: &PoolConfig) -> Result<CpuLayout, PoolError> {
        let usable = usable_on(config.cpus.as_ref())?;
        let nodes = if config.numa == Numa::Off { Vec::new() } else { numa::nodes() };
        Ok(CpuLayout { nodes, caches: usable.caches(), usable, sisters: sisters::sisters })
    }

    /// Where `count` workers stay. Where there are as many as cores, each has a core: the system would put
    /// two on one as soon as a neighbour keeps one of them waiting, however little time the neighbour is to
    /// get, and leave it the other core. Worker 0, whose thread is the caller's, goes to the core that is
    /// left. Where cores are pairs of CPUs that the system takes for cores, it would not spread workers over
    /// them. Else workers stay on their node, if there are several.
    pub(super) fn places(&self, config: &PoolConfig, count: usize) -> WorkerPlaces {
        let (cores, are_pairs) = self.cores(count);
        let has_core_each = cores.len() == count && self.usable.own_cores() == count || are_pairs;
        let nodes: Vec<&[PlacedCore]> = cores.chunk_by(|a, b| a.seat.node == b.seat.node).collect();
        let apart = nodes.len() > 1;
        let mut places = WorkerPlaces { cpus: Vec::new(), seats: Vec::new(), nodes: Vec::new() };
        let mut before = 0;
        for cores_here in &nodes {
            let first_of = |core: usize| (count * core).div_ceil(cores.len());
            let workers = first_of(before + cores_here.len()) - first_of(before);
            before += cores_here.len();
            let all: CpuSet = cores_here.iter().flat_map(|core| core.cpus.iter()).collect();
            let single = one_of_each_first(cores_here, workers);
            for worker in 0..workers {
                let core = &cores_here[worker * cores_here.len() / workers];
                let node = core.seat.node;
                let (seat, cpus) = match (config.pin, has_core_each, apart) {
                    (true, ..) => single[worker % single.len()],
                    (_, true, _) => (core.seat, core.cpus),
                    (_, _, true) => (SeatPlace { node, cache: 0 }, all),
                    _ => {
                        places.cpus.push(config.cpus);
                        places.seats.push(SeatPlace::default());
                        continue;
                    }
                };
                places.cpus.push(Some(cpus));
                places.seats.push(seat);
                places.nodes.extend(self.nodes.get(node).filter(|_| apart).map(|node| node.number));
            }
        }
        if !config.pin && !are_pairs && !apart {
            places.cpus[0] = config.cpus;
        }
        places
    }

    /// Cores in the order of workers, and whether some are pairs that the system does not name.
    fn cores(&self, count: usize) -> (Vec<PlacedCore>, bool) {
        let some = (2..self.usable.cpus.len()).contains(&count);
        let pairs = if some { (self.sisters)(&self.usable) } else { Vec::new() };
        let cores = sisters::joined(self.usable.cores(), &pairs);
        let placed = |cpus: CpuSet| {
            let has = |set: &CpuSet| cpus.first().is_some_and(|cpu| set.has(cpu));
            let node = self.nodes.iter().position(|node| has(&node.cpus)).unwrap_or(0);
            let cache = self.caches.iter().position(has).unwrap_or(0);
            PlacedCore { seat: SeatPlace { node, cache }, cpus }
        };
        let mut cores: Vec<PlacedCore> = cores.into_iter().map(placed).collect();
        cores.sort_by_key(|core| (core.seat.node, core.seat.cache, core.cpus.first()));
        (cores, !pairs.is_empty())
    }
}

struct PlacedCore {
    seat: SeatPlace,
    cpus: CpuSet,
}

/// So many single CPUs of cores, or all if there are fewer: the first of each core before the second of any.
/// They are in the order of the cores.
fn one_of_each_first(cores: &[PlacedCore], count: usize) -> Vec<(SeatPlace, CpuSet)> {
    let numbered = cores.iter().enumerate();
    let mut cpus: Vec<(usize, usize, usize)> = numbered
        .flat_map(|(n, core)| core.cpus.iter().enumerate().map(move |(thread, cpu)| (thread, n, cpu)))
        .collect();
    cpus.sort_unstable();
    cpus.truncate(count);
    cpus.sort_unstable_by_key(|(thread, core, _)| (*core, *thread));
    cpus.into_iter().map(|(_, core, cpu)| (cores[core].seat, CpuSet::one(cpu))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn set(text: &str) -> CpuSet {
        text.parse().unwrap()
    }

    /// CPUs that are cores, as in a virtual machine, on these nodes and with these caches.
    fn layout(cpus: &str, nodes: &[&str], caches: &[&str], sisters: fn(&Usable) -> Vec<CpuSet>) -> CpuLayout {
        let cpus: Vec<usize> = set(cpus).iter().collect();
        let node = |(n, cpus): (usize, &&str)| NumaNode { number: 4 + n, cpus: set(cpus) };
        CpuLayout {
            usable: Usable { count: cpus.len(), cpus },
            nodes: nodes.iter().enumerate().map(node).collect(),
            caches: caches.iter().map(|cpus| set(cpus)).collect(),
            sisters,
        }
    }

    fn none(_: &Usable) -> Vec<CpuSet> {
        Vec::new()
    }

    /// A CPU of the first half and one of the second half are a core.
    fn far_pairs(usable: &Usable) -> Vec<CpuSet> {
        let half = usable.cpus.len() / 2;
        (0..half).map(|n| [usable.cpus[n], usable.cpus[n + half]].into_iter().collect()).collect()
    }

    fn cpus(places: &WorkerPlaces) -> Vec<String> {
        places.cpus.iter().map(|cpus| cpus.map_or_else(|| "-".to_owned(), |cpus| cpus.to_string())).collect()
    }

    // CPUs of these numbers are on no machine that runs this: the system names no threads of them.
    const EIGHT: &str = "1000-1007";

    fn pinned() -> PoolConfig {
        PoolConfig { pin: true, ..PoolConfig::default() }
    }

    #[test]
    fn on_one_node_workers_have_cores_if_there_are_as_many() {
        for nodes in [&[][..], &[EIGHT]] {
            let layout = layout(EIGHT, nodes, &[EIGHT], none);
            let places = |config, count| layout.places(&config, count);
            let full = places(PoolConfig::default(), 8);
            assert_eq!(cpus(&full), ["-", "1001", "1002", "1003", "1004", "1005", "1006", "1007"]);
            let few = places(PoolConfig::default(), 3);
            assert_eq!((cpus(&few), few.nodes.len()), (vec!["-".to_owned(); 3], 0));
            assert_eq!(few.seats, [SeatPlace::default(); 3]);
            let own = PoolConfig { cpus: Some(set(EIGHT)), ..PoolConfig::default() };
            assert_eq!(cpus(&places(own, 2)), [EIGHT, EIGHT]);
            assert_eq!(cpus(&places(own, 8))[..2], [EIGHT, "1001"]);
            assert_eq!(cpus(&places(pinned(), 3)), ["1000", "1001", "1002"]);
            assert_eq!(cpus(&places(pinned(), 10))[7..], ["1007", "1000", "1001"]);
        }
    }

    #[test]
    fn workers_take_one_cpu_of_each_hidden_pair_first() {
        let layout = layout(EIGHT, &[], &[EIGHT], far_pairs);
        let places = |config, count| cpus(&layout.places(&config, count));
        assert_eq!(places(PoolConfig::default(), 4), ["1000,1004", "1001,1005", "1002,1006", "1003,1007"]);
        assert_eq!(places(PoolConfig::default(), 2), ["1000,1004", "1002,1006"]);
        assert_eq!(places(PoolConfig::default(), 6)[..3], ["1000,1004", "1000,1004", "1001,1005"]);
        assert_eq!(places(pinned(), 4), ["1000", "1001", "1002", "1003"]);
        assert_eq!(places(pinned(), 5), ["1000", "1004", "1001", "1002", "1003"]);
        // With a worker for every CPU, or a single one, it makes no difference.
        assert_eq!(places(PoolConfig::default(), 8)[..2], ["-", "1001"]);
        assert_eq!(places(PoolConfig::default(), 1), ["-"]);
    }

    #[test]
    fn workers_come_node_by_node_and_cache_by_cache() {
        // Numbers go round the nodes; the second node has two caches.
        let even = "1000,1002,1004,1006";
        let caches = [even, "1001,1005", "1003,1007"];
        let layout = layout(EIGHT, &[even, "1001,1003,1005,1007"], &caches, none);
        let full = layout.places(&PoolConfig::default(), 8);
        assert_eq!(cpus(&full), ["1000", "1002", "1004", "1006", "1001", "1005", "1003", "1007"]);
        assert_eq!(full.nodes, [4, 4, 4, 4, 5, 5, 5, 5]);
        let caches: Vec<_> = full.seats.iter().map(|seat| (seat.node, seat.cache)).collect();
        assert_eq!(caches, [(0, 0), (0, 0), (0, 0), (0, 0), (1, 1), (1, 1), (1, 2), (1, 2)]);
        // Half on each node, whose CPUs they share.
        let few = layout.places(&PoolConfig::default(), 4);
        assert_eq!(cpus(&few), [even, even, "1001,1003,1005,1007", "1001,1003,1005,1007"]);
        assert_eq!((few.nodes, few.seats[1].cache, few.seats[2].cache), (vec![4, 4, 5, 5], 0, 0));
        assert_eq!(layout.places(&PoolConfig::default(), 1).nodes, [4]);
        assert_eq!(cpus(&layout.places(&pinned(), 4)), ["1000", "1002", "1001", "1005"]);
        // Where this process may use one node's CPUs only, there is one node.
        let layout = self::layout(even, &[even, "1001"], &[even], none);
        assert_eq!(layout.places(&PoolConfig::default(), 2).nodes, [0; 0]);
    }
}
