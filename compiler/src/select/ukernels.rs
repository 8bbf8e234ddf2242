//! Which version of each micro-kernel is called.

use super::Pick;
use super::cost::{CostModel, cheapest_version};
use super::table::version_name;
use kernmill_kernels_gen::asm::AsmKernel;
use kernmill_kernels_gen::kernel::Kernel;
use kernmill_kernels_gen::ukernel::MicroKernel;
use kernmill_kernels_gen::{generate, isa};

/// A micro-kernel's versions, and the one that was picked. All give the same bits.
#[derive(Clone, Debug)]
pub struct MicroKernelChoice {
    /// The micro-kernel.
    pub ukernel: MicroKernel,
    /// Each version's name with its ns per block of 32 k, where the model has a number.
    pub versions: Vec<(&'static str, Option<f64>)>,
    /// Index of the pick.
    pub pick: usize,
    /// The pick; `None` is the 128-bit version.
    pub version: Option<&'static AsmKernel>,
}

/// Picks a version of every micro-kernel that `kernels` call, in the order of [`generate::ukernels`]. Without
/// numbers for all versions, the first is taken for the cheapest.
pub fn choose_ukernels(
    kernels: &[(String, Kernel)],
    model: &CostModel,
    pick: Pick,
) -> Vec<MicroKernelChoice> {
    generate::ukernels(kernels, model.level())
        .into_iter()
        .map(|ukernel| choose(ukernel, model, pick))
        .collect()
}

fn choose(ukernel: MicroKernel, model: &CostModel, pick: Pick) -> MicroKernelChoice {
    let versions = model.versions(&ukernel);
    let pick = match pick {
        // Whatever is picked for other micro-kernels, one of them may need tiles.
        _ if matches!(ukernel, MicroKernel::TilesOn(_) | MicroKernel::TilesOff) => 0,
        Pick::Cheapest | Pick::Tiles => cheapest_version(&versions),
        Pick::Nth(n) => n % versions.len(),
    };
    let vnni = isa::has_vnni(model.level());
    let named = versions.iter().map(|(version, ns)| (version_name(*version, vnni), *ns));
    MicroKernelChoice { ukernel, versions: named.collect(), pick, version: versions[pick].0 }
}
