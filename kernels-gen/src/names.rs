//! Row operations and epilogues whose values and operands have the compiler's names, and the kernel's numbers
//! for them.
//!
//! The order in which numbers are asked for is part of a kernel's identity: what a step is given first has
//! the lower number.

use crate::kernel::{Epilogue, LoraInput, Mat, MatAdapter, OperandId, RowOp, ValId};

/// The numbers that a kernel gives to values `V` and operands `O`.
pub trait Names<V, O> {
    /// Number of a value that the kernel reads.
    fn read(&mut self, value: &V) -> ValId;
    /// Number of a value that the kernel writes.
    fn write(&mut self, value: &V) -> ValId;
    /// Number of an operand.
    fn operand(&mut self, operand: &O) -> OperandId;
}

impl<V, O> Mat<V, O> {
    /// The matrix by numbers.
    pub fn numbered(&self, names: &mut impl Names<V, O>) -> Mat {
        let adapter = self.adapter.as_ref().map(|adapter| MatAdapter {
            lora_target: names.operand(&adapter.lora_target),
            shrunk: names.read(&adapter.shrunk),
            format: adapter.format,
            first_tile: adapter.first_tile,
        });
        Mat {
            operand: names.operand(&self.operand),
            format: self.format,
            n: self.n,
            k: self.k,
            tile_stride: self.tile_stride,
            expert_stride: self.expert_stride,
            bias: self.bias.as_ref().map(|bias| names.operand(bias)),
            adapter,
        }
    }
}

impl<V, O> RowOp<V, O> {
    /// The value that the operation makes; none if it writes to the KV cache.
    pub fn out(&self) -> Option<&V> {
        match self {
            RowOp::Embed { out, .. }
            | RowOp::RmsNorm { out, .. }
            | RowOp::Quantize { out, .. }
            | RowOp::Bf16Cast { out, .. }
            | RowOp::Elementwise { out, .. }
            | RowOp::Rope { out, .. }
            | RowOp::Hadamard { out, .. }
            | RowOp::KvCast { out, .. }
            | RowOp::Linear { out, .. }
            | RowOp::TopK { out, .. }
            | RowOp::SelectRow { out, .. }
            | RowOp::ExpertSum { out, .. } => Some(out),
            RowOp::KvStore { .. } => None,
        }
    }

    /// The operation by numbers: first of what it writes, then of what it reads.
    pub fn numbered(&self, names: &mut impl Names<V, O>) -> RowOp {
        let written = self.out().map(|out| names.write(out)).unwrap_or_default();
        match self {
            RowOp::Embed { table, format, row_bytes, .. } => RowOp::Embed {
                table: names.operand(table),
                format: *format,
                row_bytes: *row_bytes,
                out: written,
            },
            RowOp::RmsNorm { x, weight, eps, .. } => {
                RowOp::RmsNorm { x: names.read(x), weight: names.operand(weight), eps: *eps, out: written }
            }
            RowOp::Quantize { x, .. } => RowOp::Quantize { x: names.read(x), out: written },
            RowOp::Bf16Cast { x, .. } => RowOp::Bf16Cast { x: names.read(x), out: written },
            RowOp::Elementwise { expr, inputs, .. } => RowOp::Elementwise {
                expr: expr.clone(),
                inputs: inputs.iter().map(|input| names.read(input)).collect(),
                out: written,
            },
            RowOp::Rope { x, table, head_dim, .. } => {
                let table = names.operand(table);
                RowOp::Rope { x: names.read(x), table, head_dim: *head_dim, out: written }
            }
            RowOp::Hadamard { x, head_dim, .. } => {
                RowOp::Hadamard { x: names.read(x), head_dim: *head_dim, out: written }
            }
            RowOp::KvCast { x, to, .. } => RowOp::KvCast { x: names.read(x), to: *to, out: written },
            RowOp::KvStore { x, pool, plane, kind, geometry } => {
                let pool = names.operand(pool);
                RowOp::KvStore { x: names.read(x), pool, plane: *plane, kind: *kind, geometry: *geometry }
            }
            RowOp::Linear { x, mat, .. } => {
                RowOp::Linear { x: names.read(x), mat: mat.numbered(names), out: written }
            }
            RowOp::TopK { x, experts, k, .. } => {
                RowOp::TopK { x: names.read(x), experts: *experts, k: *k, out: written }
            }
            RowOp::SelectRow { x, .. } => RowOp::SelectRow { x: names.read(x), out: written },
            RowOp::ExpertSum { y, routing, top_k, .. } => RowOp::ExpertSum {
                y: names.read(y),
                routing: names.read(routing),
                top_k: *top_k,
                out: written,
            },
        }
    }
}

impl<V, O> Epilogue<V, O> {
    /// The step by numbers.
    pub fn numbered(&self, names: &mut impl Names<V, O>) -> Epilogue {
        match self {
            Epilogue::Map { expr, inputs } => {
                let inputs = inputs.iter().map(|input| names.read(input)).collect();
                Epilogue::Map { expr: expr.clone(), inputs }
            }
            Epilogue::Rope { table } => Epilogue::Rope { table: names.operand(table) },
            Epilogue::Hadamard { head_dim } => Epilogue::Hadamard { head_dim: *head_dim },
            Epilogue::Store { out } => Epilogue::Store { out: names.write(out) },
            Epilogue::SaveLoraInput(LoraInput { out, lora_targets }) => Epilogue::SaveLoraInput(LoraInput {
                lora_targets: lora_targets.iter().map(|target| names.operand(target)).collect(),
                out: names.write(out),
            }),
            Epilogue::Quantize { out } => Epilogue::Quantize { out: names.write(out) },
            Epilogue::Bf16Cast { out } => Epilogue::Bf16Cast { out: names.write(out) },
            Epilogue::KvCast { to, out } => Epilogue::KvCast { to: *to, out: names.write(out) },
            Epilogue::KvWrite { pool, plane, kind, geometry } => Epilogue::KvWrite {
                pool: names.operand(pool),
                plane: *plane,
                kind: *kind,
                geometry: *geometry,
            },
        }
    }
}
