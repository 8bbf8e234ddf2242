//! Collects the values and operands of one kernel.

use super::candidate::Products;
use super::cost::CostModel;
use super::{KernelUse, Selector};
use crate::ir::ops::Packed;
use crate::ir::{MatMul, Node, OperandRef, PanelBuffer, Rows, TensorId, Type, ValueId};
use crate::passes::fuse::Group;
use kernmill_kernels_gen::kernel::{
    Body, Domain, Home, Kernel, Mat, MatrixPart, OperandId, RowOp, RowType, Tiling, Val, ValId,
};
use kernmill_kernels_gen::names::Names;
use kernmill_kernels_gen::row_op::{RowPlace, StoreRow};
use kernmill_kernels_gen::ukernel::gemm_tiles::TileElement;
use kernmill_plan::format::{TILE_ROWS, WeightFormat};

/// A kernel in the making.
pub struct KernelBuilder<'a> {
    selector: &'a Selector<'a>,
    vals: Vec<Val>,
    val_of: Vec<(ValueId, ValId)>,
    operands: Vec<OperandRef>,
    prologue: Vec<RowOp>,
    reads: Vec<OperandRef>,
    writes: Vec<OperandRef>,
}

impl<'a> KernelBuilder<'a> {
    pub fn new(selector: &'a Selector<'a>) -> KernelBuilder<'a> {
        KernelBuilder {
            selector,
            vals: Vec::new(),
            val_of: Vec::new(),
            operands: Vec::new(),
            prologue: Vec::new(),
            reads: Vec::new(),
            writes: Vec::new(),
        }
    }

    /// Index of an operand; equal ones share it.
    pub fn operand(&mut self, operand: OperandRef) -> OperandId {
        match self.operands.iter().position(|other| *other == operand) {
            Some(index) => index,
            None => {
                self.operands.push(operand);
                self.operands.len() - 1
            }
        }
    }

    /// A value that this kernel reads: from its buffer, unless the kernel itself made it.
    pub fn input(&mut self, value: ValueId) -> ValId {
        if let Some((_, val)) = self.val_of.iter().find(|(id, _)| *id == value) {
            return *val;
        }
        self.reads.push(OperandRef::Value(value));
        let operand = self.operand(OperandRef::Value(value));
        self.add_val(value, Home::Operand(operand))
    }

    /// A value that this kernel writes to its buffer.
    pub fn output(&mut self, value: ValueId) -> ValId {
        self.writes.push(OperandRef::Value(value));
        let operand = self.operand(OperandRef::Value(value));
        self.add_val(value, Home::Operand(operand))
    }

    /// A value of the prologue: scratch, and worker 0's copy in the value's buffer when later steps read it.
    pub fn local(&mut self, value: ValueId, used_outside: bool) -> ValId {
        if !used_outside {
            return self.add_val(value, Home::Scratch);
        }
        self.writes.push(OperandRef::Value(value));
        let operand = self.operand(OperandRef::Value(value));
        self.add_val(value, Home::ScratchExceptWorker0(operand))
    }

    /// A buffer of panels that this kernel fills.
    pub fn panels(&mut self, buffer: PanelBuffer) -> OperandId {
        self.writes.push(OperandRef::Panels(buffer));
        self.operand(OperandRef::Panels(buffer))
    }

    fn add_val(&mut self, value: ValueId, home: Home) -> ValId {
        let row = row_type(self.selector.graph.value(value).ty);
        self.vals.push(Val { row, home });
        self.val_of.push((value, self.vals.len() - 1));
        self.vals.len() - 1
    }

    pub fn prologue(&mut self, row_op: RowOp) {
        self.prologue.push(row_op);
    }

    /// Whether workers compute something before the body.
    pub fn has_prologue(&self) -> bool {
        !self.prologue.is_empty()
    }

    /// The packed matrix of a product, with its bias (the second tensor, if any) and its adapter branch.
    pub fn mat(&mut self, node: &Node) -> Mat {
        self.selector.mat(node).numbered(self)
    }

    /// The matrix of a product, once for each of its terms: bias and adapter come with the first.
    pub fn mats(&mut self, node: &Node) -> Vec<Mat> {
        let first = self.mat(node);
        let terms = node.op.matmul().map_or(1, MatMul::terms);
        let mat = |term| match term {
            0 => first.clone(),
            _ => Mat { term, bias: None, adapter: None, ..first.clone() },
        };
        (0..terms).map(mat).collect()
    }

    /// Whether these are the products of two matrices whose tiles alternate in memory, the first one's first.
    pub fn are_interleaved<'n>(&self, products: impl Iterator<Item = &'n Node>) -> bool {
        let graph = self.selector.graph;
        let matrices: Vec<TensorId> = products.map(|node| node.tensors[0]).collect();
        let [first, second] = matrices[..] else { return false };
        let tile = |id: TensorId| {
            let tensor = graph.tensor(id);
            tensor.format.tile(tensor.shape[tensor.shape.len() - 1]).bytes() as u64
        };
        let [a, b] = [first, second].map(|id| self.selector.layout.placement(id));
        let alike = (a.tile_stride, a.expert_stride) == (b.tile_stride, b.expert_stride);
        let both = tile(first) + tile(second);
        alike && tile(first) == tile(second) && a.tile_stride == both && b.offset == a.offset + tile(first)
    }

    /// Stores the results at hand as a value that later groups read: such rows as they need, when only
    /// adapters read them.
    pub fn store(&mut self, group: &Group, value: ValueId) -> StoreRow {
        let graph = self.selector.graph;
        let members = group.members();
        let users = self.selector.uses.users(value).iter().filter(|id| !members.contains(id));
        let shrinks: Option<Vec<u32>> =
            users.map(|id| Some(graph.node(*id).op.shrink()?.lora_target)).collect();
        let lora_targets = shrinks.filter(|_| value != graph.output).unwrap_or_default();
        let lora_targets = lora_targets
            .into_iter()
            .map(|lora_target| self.operand(OperandRef::LoraTarget(lora_target)))
            .collect();
        StoreRow { x: RowPlace::Results, out: self.output(value), lora_targets }
    }

    /// Output rows per work item of a matrix where nothing else decides: the candidate's, if they divide the
    /// matrix's.
    pub fn rows_per_item(&self, mat: &Mat) -> usize {
        let rows_per_item = self.selector.trial.rows_per_item;
        if mat.n.is_multiple_of(rows_per_item) { rows_per_item } else { TILE_ROWS }
    }

    /// The candidate's tiling. Panels hold q8 rows, and one kind of weights at a time; bf16 rows are
    /// multiplied by panels, however few they are.
    fn tiling(&self, input: ValId, parts: &[&[&Mat]]) -> Tiling {
        let products = self.selector.trial.model.products();
        let q8 = match self.vals[input].row {
            RowType::Bf16(_) => return Tiling::Gemm { least_rows: 1, products },
            row => row.is_q8(),
        };
        let uniform = parts.iter().all(|mats| mats.iter().all(|mat| mat.format == mats[0].format));
        let trial = &self.selector.trial;
        if trial.products == Products::Dots || !q8 || !uniform {
            return Tiling::Dot;
        }
        let least = |of: fn(&CostModel, WeightFormat) -> usize| {
            parts.iter().map(|mats| of(trial.model, mats[0].format)).max().unwrap_or(1)
        };
        let on_tiles = parts.iter().all(|mats| mats.iter().all(|mat| TileElement::serves(mat.format)));
        if trial.products == Products::Tiles && on_tiles {
            return Tiling::Tiles { least_rows: least(CostModel::least_rows_of_tiles) };
        }
        Tiling::Gemm { least_rows: least(CostModel::least_rows), products }
    }

    fn tiling_of(&self, body: &Body) -> Tiling {
        fn mats(part: &MatrixPart) -> Vec<&Mat> {
            part.mats.iter().collect()
        }
        let (input, parts): (ValId, Vec<Vec<&Mat>>) = match body {
            Body::Matmul { input, parts, .. } => (*input, parts.iter().map(mats).collect()),
            Body::Experts { input, part, .. } => (*input, vec![mats(part)]),
            Body::ExpertDown { input, mat, .. } => (*input, vec![vec![mat]]),
            Body::Rows { .. } | Body::Panels { .. } | Body::Attention(_) | Body::Shrink { .. } => {
                return Tiling::Dot;
            }
        };
        self.tiling(input, &parts.iter().map(Vec::as_slice).collect::<Vec<_>>())
    }

    /// The finished kernel. `max_rows` bounds the rows of its pointer lists.
    pub fn finish(self, label: String, stem: &str, body: Body, max_rows: usize) -> KernelUse {
        let per_slab = match &body {
            Body::Rows { domain, .. } | Body::Matmul { domain, .. } | Body::Panels { domain, .. } => {
                *domain == Domain::LogitRows
            }
            _ => false,
        };
        let tiling = self.tiling_of(&body);
        KernelUse {
            label,
            stem: stem.to_owned(),
            kernel: Kernel {
                tiling,
                vals: self.vals,
                prologue: self.prologue,
                body,
                max_rows,
                panels: Vec::new(),
            },
            operands: self.operands,
            reads: self.reads,
            writes: self.writes,
            per_slab,
        }
    }
}

impl Names<ValueId, OperandRef> for KernelBuilder<'_> {
    fn read(&mut self, value: &ValueId) -> ValId {
        self.input(*value)
    }

    fn write(&mut self, value: &ValueId) -> ValId {
        self.output(*value)
    }

    fn operand(&mut self, operand: &OperandRef) -> OperandId {
        KernelBuilder::operand(self, *operand)
    }
}

/// The row layout of a graph value.
pub fn row_type(ty: Type) -> RowType {
    match ty {
        Type::F32(_, n) => RowType::F32(n),
        Type::Q8(_, n) => RowType::Q8(n),
        Type::Q8x2(_, n) => RowType::Q8x2(n),
        Type::F16(_, n) => RowType::F16(n),
        Type::Bf16(_, n) => RowType::Bf16(n),
        Type::Kv(row, n) => RowType::Kv(row, n),
        Type::Routing(k) => RowType::Routing(k as usize),
        // Token ids come through the kernel's arguments, never through a buffer.
        Type::TokenIds => RowType::F32(1),
    }
}

/// The rows that a kernel computing a value of that type walks over.
pub fn domain(ty: Type) -> Domain {
    match ty.rows() {
        Rows::Tokens => Domain::Tokens,
        Rows::Slots(k) => Domain::Slots(k as usize),
        Rows::LogitRows => Domain::LogitRows,
    }
}
