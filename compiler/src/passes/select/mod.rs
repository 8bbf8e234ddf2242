//! Selection: which kernels compute each group of the fused graph, for one token class.
//!
//! The result is data: kernels ([`kernmill_kernels_gen::kernel::Kernel`]) with symbolic operands. Nothing
//! here depends on where buffers or weights lie, except for the strides of packed tensors.
//! A selection also names the version of each micro-kernel that is called.

pub(crate) mod binomial;
mod builder;
mod candidate;
mod classes;
pub mod cost;
pub mod costs_of_machine;
mod explain;
mod groups;
mod row_ops;
mod table;
#[cfg(test)]
mod tests;
mod text;

use crate::ir::{Graph, LoraTargetNode, OperandRef, Rows, Type, Uses};
use crate::passes::fuse::{Composition, FusedGraph, Group};
use crate::passes::layout::WeightLayout;
pub use builder::domain;
pub(crate) use candidate::Products;
pub use candidate::{KernelCandidate, KernelChoice, Pick, Prologue};
pub use classes::select_classes;
use cost::{CostModel, cheapest_version};
pub use explain::{SelectionReport, explain};
use kernmill_kernels_gen::asm::AsmKernel;
use kernmill_kernels_gen::kernel::Kernel;
use kernmill_kernels_gen::ukernel::MicroKernel;
use kernmill_kernels_gen::{generate, isa};
use kernmill_plan::format::TILE_ROWS;
use kernmill_plan::kv::KvGeometry;
use kernmill_plan::numeric::ATTENTION_SEGMENT;
use table::version_name;

/// One use of a kernel: a step.
#[derive(Clone, Debug, PartialEq)]
pub struct KernelUse {
    /// Name for listings, such as `layers.3.qkv`.
    pub label: String,
    /// Symbol stem: what kind of kernel it is.
    pub stem: String,
    /// The kernel.
    pub kernel: Kernel,
    /// Operands in the kernel's order.
    pub operands: Vec<OperandRef>,
    /// Buffers that it reads: those of values, and panels.
    pub reads: Vec<OperandRef>,
    /// Buffers that it writes: those of values, and panels.
    pub writes: Vec<OperandRef>,
    /// Whether its rows are the wanted ones, so that it runs once per slab of logits.
    pub per_slab: bool,
}

/// The kernels of one token class, in executable order.
#[derive(Clone, Debug, PartialEq)]
pub struct Selection {
    /// Largest batch.
    pub max_tokens: usize,
    /// Kernel uses.
    pub uses: Vec<KernelUse>,
    /// By group with more than one candidate: what it could have been.
    pub choices: Vec<KernelChoice>,
}

/// A graph that no kernel can compute.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SelectError {
    /// Kernels exist only for some shapes.
    #[error("unsupported shape: {what} is {found}; kernels need {needed}")]
    Shape {
        /// The measured quantity, and its place.
        what: String,
        /// Value that was measured.
        found: usize,
        /// The feature that kernels need.
        needed: String,
    },
    /// A graph that the passes before should not have let through.
    #[error("node `{node}`: {message} (please report this)")]
    Bug {
        /// Output of the node.
        node: String,
        /// The problem.
        message: String,
    },
}

/// Selects kernels for every group, for batches of up to `max_tokens`: the candidates that `model` thinks
/// cheapest for that many, or others if asked to.
///
/// # Errors
/// When a shape has no kernel.
pub fn select(
    fused: &FusedGraph,
    layout: &WeightLayout,
    max_tokens: usize,
    model: &CostModel,
    pick: Pick,
) -> Result<Selection, SelectError> {
    check_shapes(&fused.graph)?;
    let uses = Uses::new(&fused.graph);
    let selector = Selector {
        fused,
        graph: &fused.graph,
        uses: &uses,
        layout,
        lora_targets: &fused.graph.lora_targets(),
        max_tokens,
        max_segments: fused.graph.max_context.div_ceil(ATTENTION_SEGMENT),
        last_writer: last_writer(fused),
        trial: CandidateTrial {
            prologue: Prologue::Step,
            products: Products::Dots,
            rows_per_item: TILE_ROWS,
            model,
        },
    };
    let (mut kernels, mut choices) = (Vec::new(), Vec::new());
    for index in 0..fused.groups.len() {
        let (picked, choice) = selector.choose(index, model, pick)?;
        kernels.extend(picked);
        choices.extend(choice);
    }
    Ok(Selection { max_tokens, uses: kernels, choices })
}

/// The group that writes the last layer's keys and values.
fn last_writer(fused: &FusedGraph) -> Option<usize> {
    let own = |group: &Group| match group.composition {
        Composition::Attention { root, .. } => fused.graph.cache_owner(root).filter(|own| *own == root),
        _ => None,
    };
    fused.groups.iter().rev().find_map(own).map(|attention| fused.kv_writer(attention))
}

/// The inputs of a group's selection.
struct Selector<'a> {
    fused: &'a FusedGraph,
    graph: &'a Graph,
    uses: &'a Uses,
    layout: &'a WeightLayout,
    lora_targets: &'a [LoraTargetNode],
    max_tokens: usize,
    max_segments: usize,
    /// Group that writes the last layer's keys and values.
    last_writer: Option<usize>,
    trial: CandidateTrial<'a>,
}

/// The candidate that is being made.
#[derive(Clone, Copy)]
struct CandidateTrial<'a> {
    prologue: Prologue,
    /// The kind of products, wherever matrices allow it.
    products: Products,
    /// Output rows per work item where they are free.
    rows_per_item: usize,
    /// Knows from how many rows on panels pay.
    model: &'a CostModel,
}

/// Refuses what the kernels are not written for.
fn check_shapes(graph: &Graph) -> Result<(), SelectError> {
    let need = |what: String, found: usize, multiple: usize| {
        if found.is_multiple_of(multiple) && found > 0 {
            return Ok(());
        }
        Err(SelectError::Shape { what, found, needed: format!("a multiple of {multiple}") })
    };
    // By kind of layer.
    let mut first: [Option<KvGeometry>; 2] = [None; 2];
    for node in &graph.nodes {
        let name = &graph.value(node.output).name;
        let width = graph.value(node.output).ty.cols();
        for (what, found, multiple) in node.op.def().multiples(width) {
            need(format!("{what} of `{name}`"), found, multiple)?;
        }
        if let Some(a) = node.op.attention()
            && *first[a.layer_kind().index()].get_or_insert(a.geometry()) != a.geometry()
        {
            return Err(SelectError::Shape {
                what: format!("the KV shape of `{name}`"),
                found: a.kv_heads * a.head_dim,
                needed: "the same KV heads, sizes of heads and formats in all layers of a kind".into(),
            });
        }
    }
    Ok(())
}

/// Rows of a value in a class of `max_tokens`.
pub fn max_rows(ty: Type, max_tokens: usize) -> usize {
    match ty.rows() {
        Rows::Tokens => max_tokens,
        Rows::Slots(k) => max_tokens * k as usize,
        Rows::LogitRows => kernmill_plan::abi::LOGIT_SLAB,
    }
}

/// Bytes from one row of a value to the next in its buffer.
pub fn row_stride(ty: Type) -> usize {
    builder::row_type(ty).stride()
}

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
