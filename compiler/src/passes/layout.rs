//! Where each tensor lies in the weight region.

use crate::ir::{Graph, Node, Role, Tensor, TensorId, whole_columns};
use kernmill_plan::format::{LINE, TILE_ROWS, WeightFormat, f32_row_stride};
use thiserror::Error;

/// Alignment of the weight region's base in a plan; offsets in it are multiples of [`LINE`].
pub const REGION_ALIGN: u64 = 2 << 20;

/// Where one tensor lies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Placement {
    /// Byte offset in the weight region, a multiple of 64.
    pub offset: u64,
    /// Bytes from `offset` to the end of the tensor's last element; of a pair, the partner's tiles in between
    /// included.
    pub bytes: u64,
    /// Bytes from one 16-row tile to this tensor's next one (a tile's bytes, or twice that in a pair); for a
    /// table without blocks, from one row to the next; 0 for vectors.
    pub tile_stride: u64,
    /// Bytes from one expert to the next; 0 for tensors without experts.
    pub expert_stride: u64,
}

impl Placement {
    /// Offset just past the tensor.
    pub fn end(&self) -> u64 {
        self.offset + self.bytes
    }
}

/// Where every tensor of a graph lies.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WeightLayout {
    /// Placements, indexed by [`TensorId`].
    pub placements: Vec<Placement>,
    /// Pack groups in order of offset: a tensor, or a pair whose tiles alternate.
    pub(crate) pack_groups: Vec<PackGroup>,
    /// Bytes of the region, a multiple of 64.
    pub bytes: u64,
}

impl WeightLayout {
    /// Where a tensor lies.
    pub fn placement(&self, tensor: TensorId) -> Placement {
        self.placements[tensor.0 as usize]
    }
}

/// Pairs of matrices whose tiles lie interleaved: the gate and up of every gated unit, fused or not, so that
/// the weights' layout does not depend on fusion.
pub fn gate_up_pairs(graph: &Graph) -> Vec<(TensorId, TensorId)> {
    let producer = |value| graph.nodes.iter().find(|node| node.output == value);
    let mut pairs = Vec::new();
    let is_gate = |node: &&Node| node.inputs.len() == 2 && node.op.def().expr().is_some() && !node.is_add();
    for node in graph.nodes.iter().filter(is_gate) {
        let [gate, up] = [0, 1].map(|i| producer(node.inputs[i]).filter(|node| node.op.matmul().is_some()));
        let (Some(gate), Some(up)) = (gate, up) else { continue };
        let (Some(first), Some(second)) = (gate.tensors.first(), up.tensors.first()) else { continue };
        let (a, b) = (graph.tensor(*first), graph.tensor(*second));
        let used = |id: &TensorId| pairs.iter().any(|(x, y)| x == id || y == id);
        if first != second
            && a.role == b.role
            && a.shape == b.shape
            && a.format == b.format
            && !used(first)
            && !used(second)
        {
            pairs.push((*first, *second));
        }
    }
    pairs
}

/// Tensors that are packed together, contiguous in the region.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct PackGroup {
    /// One tensor, or the two of a pair.
    pub tensors: Vec<TensorId>,
    /// Experts, 1 for tensors without.
    pub experts: usize,
    /// Chunks per expert: tiles (of both tensors of a pair) of a matrix or of a table with blocks, rows of
    /// another table, or the one row of a vector.
    pub chunks: usize,
    /// Bytes of a chunk.
    pub chunk_bytes: usize,
}

impl PackGroup {
    /// Bytes of all experts.
    fn bytes(&self) -> u64 {
        self.experts as u64 * self.chunks as u64 * self.chunk_bytes as u64
    }
}

/// Why a graph has no weight layout.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum LayoutError {
    /// The tensor's shape does not fit its role.
    #[error("tensor {tensor}: shape {shape:?} of a {role:?}, expected {expected}")]
    Shape {
        /// Tensor.
        tensor: String,
        /// Role of the tensor.
        role: Role,
        /// Shape of the tensor.
        shape: Vec<usize>,
        /// The possible ones.
        expected: String,
    },
    /// The format cannot be stored that way.
    #[error("tensor {tensor}: format {} of a {role:?}, expected {expected}", format.name())]
    Format {
        /// Tensor.
        tensor: String,
        /// Role of the tensor.
        role: Role,
        /// Format of the tensor.
        format: WeightFormat,
        /// The possible ones.
        expected: String,
    },
    /// The two tensors of a pair cannot alternate.
    #[error("tensors {first} and {second} cannot be interleaved: {reason}")]
    Pair {
        /// First of the pair.
        first: String,
        /// Second of the pair.
        second: String,
        /// Why not.
        reason: &'static str,
    },
}

/// Places every tensor, in order of first use (unused ones last); the tiles of each of `pairs` (matrices of
/// one shape and format, such as gate and up) alternate, the first tensor's first. A table and a matrix that
/// are the same rows in the same tiles, those of tied embeddings in blocks, lie in one place.
pub fn plan_weights(graph: &Graph, pairs: &[(TensorId, TensorId)]) -> Result<WeightLayout, LayoutError> {
    let mut partner = vec![None; graph.tensors.len()];
    for &pair in pairs {
        check_pair(graph, pair, &partner)?;
        partner[pair.0.0 as usize] = Some(pair);
        partner[pair.1.0 as usize] = Some(pair);
    }
    let mut layout = WeightLayout { placements: Vec::new(), pack_groups: Vec::new(), bytes: 0 };
    let mut placements: Vec<Option<Placement>> = vec![None; graph.tensors.len()];
    for tensor in use_order(graph) {
        if placements[tensor.0 as usize].is_some() {
            continue;
        }
        let tensors = match partner[tensor.0 as usize] {
            Some((first, second)) => vec![first, second],
            None => vec![tensor],
        };
        let placed = |(id, placement): (usize, &Option<Placement>)| {
            placement.filter(|_| partner[id].is_none() && are_same(&graph.tensors[id], graph.tensor(tensor)))
        };
        if partner[tensor.0 as usize].is_none()
            && let Some(same) = placements.iter().enumerate().find_map(placed)
        {
            placements[tensor.0 as usize] = Some(same);
            continue;
        }
        let pack_group = shape_pack_group(graph, tensors)?;
        for (index, &tensor) in pack_group.tensors.iter().enumerate() {
            placements[tensor.0 as usize] = Some(place(graph, &pack_group, layout.bytes, tensor, index));
        }
        layout.bytes += pack_group.bytes();
        layout.pack_groups.push(pack_group);
    }
    layout.placements =
        placements.into_iter().map(|placement| placement.expect("every tensor is placed")).collect();
    Ok(layout)
}

/// Bytes from one row of a table to the next, a multiple of 64.
///
/// # Panics
/// If the format is blocked.
pub fn table_row_stride(format: WeightFormat, cols: usize) -> usize {
    let decode = format.decode().plain();
    let decode = decode.unwrap_or_else(|| panic!("a table is not stored as {}", format.name()));
    (cols * decode.bytes()).next_multiple_of(LINE)
}

/// Whether one is a matrix, the other one a table, and both the same packed tiles.
fn are_same(a: &Tensor, b: &Tensor) -> bool {
    matches!((a.role, b.role), (Role::Matrix, Role::Table) | (Role::Table, Role::Matrix))
        && a.is_tiled()
        && b.is_tiled()
        && (&a.shape, a.stored, a.format, &a.source) == (&b.shape, b.stored, b.format, &b.source)
}

/// Error unless the two can alternate and belong to no other pair.
fn check_pair(
    graph: &Graph,
    (first, second): (TensorId, TensorId),
    partner: &[Option<(TensorId, TensorId)>],
) -> Result<(), LayoutError> {
    let [a, b] = [first, second].map(|tensor| &graph.tensors[tensor.0 as usize]);
    let reason = if first == second {
        "they are the same tensor"
    } else if partner[first.0 as usize].is_some() || partner[second.0 as usize].is_some() {
        "one of them is in another pair"
    } else if !matches!(a.role, Role::Matrix | Role::ExpertMatrix) || a.role != b.role {
        "they are not matrices of one role"
    } else if a.shape != b.shape {
        "their shapes differ"
    } else if a.format != b.format {
        "their formats differ"
    } else {
        return Ok(());
    };
    Err(LayoutError::Pair { first: a.name.clone(), second: b.name.clone(), reason })
}

/// Every tensor once or more, first those that nodes use, in the nodes' order.
fn use_order(graph: &Graph) -> impl Iterator<Item = TensorId> {
    let used = graph.nodes.iter().flat_map(|node| node.tensors.iter().copied());
    used.chain((0..graph.tensors.len() as u32).map(TensorId))
}

/// Sizes of a pack group.
fn shape_pack_group(graph: &Graph, tensors: Vec<TensorId>) -> Result<PackGroup, LayoutError> {
    let tensor = &graph.tensors[tensors[0].0 as usize];
    let (experts, n, k) = dims(tensor)?;
    if tensor.stored.is_blocked() && tensor.format != tensor.stored {
        return Err(format_error(tensor, format!("{}, as it is stored", tensor.stored.name())));
    }
    if tensor.format.is_stored() && !tensor.stored.is_blocked() {
        return Err(format_error(tensor, format!("one that {} weights become", tensor.stored.name())));
    }
    let (chunks, chunk_bytes) = match tensor.role {
        Role::Vector | Role::ExpertVector => match tensor.format {
            WeightFormat::F32 => (1, f32_row_stride(n)),
            _ => return Err(format_error(tensor, "f32".to_owned())),
        },
        Role::Matrix | Role::ExpertMatrix | Role::Table if tensor.is_tiled() => {
            let whole = whole_columns(tensor.format);
            if !k.is_multiple_of(whole) {
                let expected = format!("a multiple of {whole} columns in {}", tensor.format.name());
                return Err(shape_error(tensor, expected));
            }
            if tensor.role == Role::Table && !tensor.stored.is_blocked() {
                return Err(format_error(tensor, format!("{}, as it is stored", tensor.stored.name())));
            }
            (n.div_ceil(TILE_ROWS), tensors.len() * tensor.format.tile(k).bytes())
        }
        Role::Matrix | Role::ExpertMatrix | Role::Table => (n, table_row_stride(tensor.format, k)),
    };
    Ok(PackGroup { tensors, experts, chunks, chunk_bytes })
}

/// `(experts, n, k)` of a tensor; experts and k are 1 for a tensor without them.
pub(crate) fn dims(tensor: &Tensor) -> Result<(usize, usize, usize), LayoutError> {
    let dims = match (tensor.role, tensor.shape.as_slice()) {
        (Role::Matrix | Role::Table, &[n, k]) => (1, n, k),
        (Role::ExpertMatrix, &[experts, n, k]) => (experts, n, k),
        (Role::Vector, &[n]) => (1, n, 1),
        (Role::ExpertVector, &[experts, n]) => (experts, n, 1),
        _ => (0, 0, 0),
    };
    if matches!(dims, (0, _, _) | (_, 0, _) | (_, _, 0)) {
        let expected = match tensor.role {
            Role::Matrix | Role::Table => "[n, k], neither of them 0",
            Role::ExpertMatrix => "[experts, n, k], none of them 0",
            Role::Vector => "[n], not 0",
            Role::ExpertVector => "[experts, n], neither of them 0",
        };
        return Err(shape_error(tensor, expected.to_owned()));
    }
    Ok(dims)
}

fn shape_error(tensor: &Tensor, expected: String) -> LayoutError {
    let shape = tensor.shape.clone();
    LayoutError::Shape { tensor: tensor.name.clone(), role: tensor.role, shape, expected }
}

fn format_error(tensor: &Tensor, expected: String) -> LayoutError {
    LayoutError::Format { tensor: tensor.name.clone(), role: tensor.role, format: tensor.format, expected }
}

/// Where the pack group's `index`-th tensor lies when the pack group starts at `base`.
fn place(graph: &Graph, pack_group: &PackGroup, base: u64, tensor: TensorId, index: usize) -> Placement {
    let tensor = &graph.tensors[tensor.0 as usize];
    let own_bytes = (pack_group.chunk_bytes / pack_group.tensors.len()) as u64;
    let skip = index as u64 * own_bytes;
    let others = (pack_group.tensors.len() as u64 - 1) * own_bytes;
    Placement {
        offset: base + skip,
        // The last chunk's tiles of the other tensors lie before `offset` or after the end.
        bytes: pack_group.bytes() - others,
        tile_stride: match tensor.role {
            Role::Vector | Role::ExpertVector => 0,
            _ => pack_group.chunk_bytes as u64,
        },
        expert_stride: match tensor.role {
            Role::ExpertMatrix | Role::ExpertVector => (pack_group.chunks * pack_group.chunk_bytes) as u64,
            _ => 0,
        },
    }
}
