//! `quantize_q8`, `bf16_cast` and `kv_cast`: rows rounded to q8 for products with matrices in blocks, to bf16
//! for experts in MXFP4, or to a format of the KV cache.

use super::def::{OpDef, OpKind, Outline, Packed};
use super::form::{Input, OpForm, Operands, ensure};
use super::places::{ANYWHERE, KernelPosition, KernelTemplate};
use crate::ir::cursor::{LineCursor, unknown};
use crate::ir::eval::num::{quantize_block, round_bf16};
use crate::ir::eval::state::{Data, OpState};
use crate::ir::{GraphRowOp, Node, Op, Rows, Type};
use kernmill_kernels_gen::row_op::{RoundRow, RoundTo, RowPlace};
use kernmill_plan::format::BLOCK;
use kernmill_plan::kv::{KvElements, KvFormat, KvRow};

/// `f32 -> q8, bf16, or a type of keys and values`: rounds rows.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Round {
    /// To q8.
    Q8,
    /// To q8, and what that leaves to q8.
    Q8x2,
    /// To bf16.
    Bf16,
    /// To keys or values that enter the cache.
    Kv(KvRow),
}

pub static KINDS: [Outline; 3] = [
    Outline {
        places: &[
            KernelPosition::Rows,
            KernelPosition::Prologue,
            KernelPosition::Epilogue,
            KernelPosition::EpilogueOf(KernelTemplate::Attention),
        ],
        passes: true,
        by_presets: true,
        ..Outline::new("quantize_q8", FORM, |at, written| {
            if !written {
                return Ok(Round::Q8.into());
            }
            at.expect("terms=2")?;
            Ok(Round::Q8x2.into())
        })
    },
    Outline {
        places: ANYWHERE,
        by_presets: true,
        ..Outline::new("bf16_cast", FORM, |_, _| Ok(Round::Bf16.into()))
    },
    Outline {
        places: &[KernelPosition::Rows, KernelPosition::Epilogue],
        passes: true,
        by_presets: true,
        ..Outline::new("kv_cast", FORM, parse_kv)
    },
];

const FORM: OpForm = OpForm::new(&[Input::F32], &[]);

/// The type of rows of keys or values, `cols` for each token, that enter the cache.
pub fn kv_type(row: KvRow, cols: usize) -> Type {
    match row.format {
        KvFormat::F16 => Type::F16(Rows::Tokens, cols),
        KvFormat::F32 => Type::F32(Rows::Tokens, cols),
        _ => Type::Kv(row, cols),
    }
}

fn parse_kv(at: &mut LineCursor<'_>, attributes: bool) -> Result<Op, String> {
    if !attributes {
        return Ok(Round::Kv(KvRow::new(KvFormat::F16, 0)).into());
    }
    at.expect("to")?;
    at.expect("=")?;
    let name = at.word()?;
    let format = KvFormat::from_name(name).ok_or_else(|| unknown("KV format", name))?;
    let mut head_dim = 0;
    if format.is_scaled() {
        at.expect(",")?;
        head_dim = at.attribute("head_dim")?;
    }
    Ok(Round::Kv(KvRow::new(format, head_dim)).into())
}

impl OpDef for Round {
    fn kind(&self, _: usize) -> OpKind {
        OpKind(match self {
            Round::Q8 | Round::Q8x2 => &KINDS[0],
            Round::Bf16 => &KINDS[1],
            Round::Kv(_) => &KINDS[2],
        })
    }

    fn infer(&self, on: &Operands<'_>) -> Result<Type, String> {
        let (rows, cols) = (on.x().rows(), on.x().cols());
        match self {
            Round::Q8 => Ok(Type::Q8(rows, on.blocks()?)),
            Round::Q8x2 => Ok(Type::Q8x2(rows, on.blocks()?)),
            Round::Bf16 => Ok(Type::Bf16(rows, on.blocks()?)),
            Round::Kv(row) => {
                on.rows_are(Rows::Tokens)?;
                ensure(row.divides(cols), || {
                    format!("{cols} columns are not heads of head_dim = {}", row.head_dim)
                })?;
                Ok(kv_type(*row, cols))
            }
        }
    }

    fn attributes(&self, _: usize) -> String {
        match self {
            Round::Q8x2 => "(terms=2)".to_owned(),
            Round::Q8 | Round::Bf16 | Round::Kv(KvRow { format: KvFormat::F16, .. }) => String::new(),
            Round::Kv(KvRow { format, .. }) if !format.is_scaled() => format!("(to={})", format.name()),
            Round::Kv(KvRow { format, head_dim }) => format!("(to={}, head_dim={head_dim})", format.name()),
        }
    }

    fn eval(&self, state: &mut OpState, node: &Node) -> Data {
        let x = state.f32s(node.inputs[0]);
        match self {
            Round::Q8 => {
                let mut q = vec![0; x.len()];
                let blocks = x.chunks_exact(BLOCK).zip(q.chunks_exact_mut(BLOCK));
                let (scales, sums) = blocks.map(|(x, q)| quantize_block(x, q)).unzip();
                Data::Q8 { q, scales, sums }
            }
            Round::Q8x2 => {
                let (mut q, mut scales, mut sums) = (Vec::new(), Vec::new(), Vec::new());
                for row in x.chunks_exact(state.cols(node.inputs[0])) {
                    let mut left = row.to_vec();
                    for _ in 0..2 {
                        for block in left.chunks_exact_mut(BLOCK) {
                            let mut integers = [0; BLOCK];
                            let (scale, sum) = quantize_block(block, &mut integers);
                            for (x, q) in block.iter_mut().zip(integers) {
                                *x = (-f32::from(q)).mul_add(scale, *x);
                            }
                            q.extend(integers);
                            scales.push(scale);
                            sums.push(sum);
                        }
                    }
                }
                Data::Q8 { q, scales, sums }
            }
            Round::Bf16 => Data::F32(x.iter().map(|&x| round_bf16(x)).collect()),
            Round::Kv(row) => {
                let is_scaled = row.format.is_scaled();
                let head_dim = if is_scaled { row.head_dim } else { state.cols(node.inputs[0]) };
                let heads: Vec<KvElements> =
                    x.chunks_exact(head_dim).map(|head| row.format.round(head)).collect();
                let scales = heads.iter().map(|head| head.scale).collect();
                let values = heads.into_iter().flat_map(|head| head.values).collect();
                if is_scaled { Data::Scaled { values, scales } } else { Data::F32(values) }
            }
        }
    }

    fn row_op(&self, node: &Node, _: &dyn Packed) -> Option<GraphRowOp> {
        Some(RoundRow { x: RowPlace::Row(node.inputs[0]), to: self.to(), out: node.output }.into())
    }

    fn in_epilogue(&self, node: &Node) -> Option<GraphRowOp> {
        Some(RoundRow { x: RowPlace::Results, to: self.to(), out: node.output }.into())
    }
}

impl Round {
    fn to(self) -> RoundTo {
        match self {
            Round::Q8 => RoundTo::Q8,
            Round::Q8x2 => RoundTo::Q8x2,
            Round::Bf16 => RoundTo::Bf16,
            Round::Kv(row) => RoundTo::Kv(row),
        }
    }
}
