//! Which version of each leaf is called.

use super::Pick;
use super::cost::{cheapest_version, versions};
use super::table::version_name;
use kernmill_kernels::kernel::Kernel;
use kernmill_kernels::leaf::Leaf;
use kernmill_kernels::wide::Wide;
use kernmill_kernels::{generate, isa};
use kernmill_plan::target::{Level, Tuning};

/// A leaf's versions, and the one that was picked. All give the same bits.
#[derive(Clone, Debug)]
pub struct LeafChoice {
    /// The leaf.
    pub leaf: Leaf,
    /// Each version's name with its ns per block of 32 k, where the model has a number.
    pub versions: Vec<(&'static str, Option<f64>)>,
    /// Index of the pick.
    pub pick: usize,
    /// The pick; `None` is the 128-bit version.
    pub version: Option<&'static Wide>,
}

/// Picks a version of every leaf that `kernels` call, in the order of [`generate::leaves`]. Without numbers for all versions, the first is taken for the cheapest.
pub fn choose_leaves(
    kernels: &[(String, Kernel)],
    level: Level,
    tuning: Tuning,
    pick: Pick,
) -> Vec<LeafChoice> {
    generate::leaves(kernels, level).into_iter().map(|leaf| choose(leaf, level, tuning, pick)).collect()
}

fn choose(leaf: Leaf, level: Level, tuning: Tuning, pick: Pick) -> LeafChoice {
    let versions = versions(leaf, level, tuning);
    let pick = match pick {
        // Whatever is picked for other leaves, one of them may need tiles.
        _ if matches!(leaf, Leaf::TilesOn | Leaf::TilesOff) => 0,
        Pick::Cheapest => cheapest_version(&versions),
        Pick::Nth(n) => n % versions.len(),
    };
    let vnni = isa::has_vnni(level);
    let named = versions.iter().map(|(version, ns)| (version_name(*version, vnni), *ns));
    LeafChoice { leaf, versions: named.collect(), pick, version: versions[pick].0 }
}
