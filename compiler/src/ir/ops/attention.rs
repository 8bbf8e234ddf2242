//! `attention`: keys and values go into the layer's cache, then queries attend to it.

use super::def::{OpDef, Outline, RowCosts, SpecOp};
use super::form::{Input, OpForm, Operands, TensorOperand, ensure};
use super::keys::{OpInfo, ParamKind, optional, required};
use super::kv_cast::kv_type;
use super::places::{KernelPosition, KernelTemplate};
use super::sample::KnownValues;
use super::spec_node::SpecNode;
use crate::ir::RowKind;
use crate::ir::cursor::{LineCursor, unknown};
use crate::ir::eval::attention::attend;
use crate::ir::eval::state::{Data, OpState};
use crate::ir::{
    AttentionAttributes as Attributes, GraphRowOp, Node, Op, OperandRef, Role, Rows, Type, ValueId,
};
use crate::spec_text::Result as SpecResult;
use kernmill_kernels_gen::kernel::{KvPlane, RowOp, ValId};
use kernmill_plan::kv::{KvFormat, KvPair, KvRow};
use kernmill_plan::limit;

pub struct Attention;

const OUTLINE: Outline = Outline {
    name: "attention",
    form: OpForm::new(
        &[Input::F32, Input::Cached, Input::Cached],
        &[TensorOperand::optional("sinks", Role::Vector)],
    ),
    spec: &[SpecOp {
        info: OpInfo {
            name: "attention",
            params: &[
                required("q", ParamKind::Value),
                required("k", ParamKind::Value),
                required("v", ParamKind::Value),
                required("heads", ParamKind::Number),
                required("kv_heads", ParamKind::Number),
                optional("scale", ParamKind::Number),
                optional("window", ParamKind::Window),
                optional("sinks", ParamKind::Tensor),
            ],
            pattern: &[],
        },
        lower,
    }],
    places: &[KernelPosition::Root(KernelTemplate::Attention)],
};

/// `=` and the name of a format.
fn format(at: &mut LineCursor<'_>) -> Result<KvFormat, String> {
    at.expect("=")?;
    let name = at.word()?;
    KvFormat::from_name(name).ok_or_else(|| unknown("KV format", name))
}

fn attributes(op: &Op) -> &Attributes {
    let Op::Attention(attributes) = op else { unreachable!("{op:?}") };
    attributes
}

/// Row operations that write an attention's keys and values into its cache, where nothing before has done so.
pub fn cache_writes(node: &Node) -> [GraphRowOp; 2] {
    let a = attributes(&node.op);
    let (kind, geometry) = (a.layer_kind(), a.geometry());
    let pool = OperandRef::Kv(a.layer, kind);
    [(1, KvPlane::K), (2, KvPlane::V)].map(|(i, plane)| RowOp::KvStore {
        x: node.inputs[i],
        pool,
        plane,
        kind,
        geometry,
    })
}

impl OpDef for Attention {
    fn outline(&self) -> &Outline {
        &OUTLINE
    }

    fn infer(&self, op: &Op, on: &Operands<'_>) -> Result<Type, String> {
        let a = attributes(op);
        ensure(
            a.kv_heads > 0 && a.head_dim > 0 && a.heads > 0 && a.heads.is_multiple_of(a.kv_heads),
            || {
                format!(
                    "heads = {} are not a multiple of kv_heads = {} (head_dim {})",
                    a.heads, a.kv_heads, a.head_dim
                )
            },
        )?;
        let columns = |heads: usize| {
            let columns = heads.checked_mul(a.head_dim);
            columns.ok_or_else(|| format!("{heads} heads of head_dim = {} overflow", a.head_dim))
        };
        let (q, kv) = (columns(a.heads)?, columns(a.kv_heads)?);
        ensure(a.scale.is_finite(), || format!("scale = {} is not finite", a.scale))?;
        ensure(a.window != Some(0), || "window = 0 sees no key, not even the token's own".into())?;
        let cached = |format| kv_type(KvRow::new(format, a.head_dim), kv);
        let wanted = [("q", Type::F32(Rows::Tokens, q)), ("k", cached(a.kv.k)), ("v", cached(a.kv.v))];
        for ((name, wanted), found) in wanted.into_iter().zip(on.inputs) {
            ensure(*found == wanted, || format!("{name} is {}, expected {}", found.text(), wanted.text()))?;
        }
        on.shape(0, &[a.heads])?;
        Ok(on.x())
    }

    fn attributes(&self, op: &Op) -> String {
        let Attributes { layer, heads, kv_heads, head_dim, scale, window, kv } = attributes(op);
        let window = window.map_or(String::new(), |window| format!(", window={window}"));
        let kv = match kv.k == kv.v {
            true => format!("kv={}", kv.k.name()),
            false => format!("k={}, v={}", kv.k.name(), kv.v.name()),
        };
        format!(
            "(layer={layer}, heads={heads}, kv_heads={kv_heads}, head_dim={head_dim}, scale={scale:?}{window}, {kv})"
        )
    }

    fn parse(&self, at: &mut LineCursor<'_>, _: bool) -> Result<Op, String> {
        let layer = at.attribute("layer")?;
        at.expect(",")?;
        let heads = at.attribute("heads")?;
        at.expect(",")?;
        let kv_heads = at.attribute("kv_heads")?;
        at.expect(",")?;
        let head_dim = at.attribute("head_dim")?;
        at.expect(",")?;
        let scale = at.attribute("scale")?;
        at.expect(",")?;
        let mut window = None;
        if at.peek('w') {
            window = Some(at.attribute("window")?);
            at.expect(",")?;
        }
        let kv = match at.eat("kv") {
            true => KvPair::both(format(at)?),
            false => {
                at.expect("k")?;
                let k = format(at)?;
                at.expect(",")?;
                at.expect("v")?;
                KvPair { k, v: format(at)? }
            }
        };
        Ok(Op::Attention(Attributes { layer, heads, kv_heads, head_dim, scale, window, kv }))
    }

    fn eval(&self, state: &mut OpState, node: &Node) -> Data {
        let a = attributes(&node.op);
        let (layer, kv_cols) = (a.layer as usize, a.kv_heads * a.head_dim);
        for i in 0..state.batch.len() {
            let sequence = state.batch[i].sequence;
            let mut kv = std::mem::take(&mut state.sequences[sequence][layer]);
            for (rows, input) in [&mut kv.k, &mut kv.v].into_iter().zip(&node.inputs[1..]) {
                let (values, scales) = state.cached(*input);
                rows.values.extend(&values[i * kv_cols..][..kv_cols]);
                rows.scales.extend(scales.chunks(a.kv_heads).nth(i).unwrap_or(&[]));
            }
            state.sequences[sequence][layer] = kv;
        }
        let sinks = node.tensors.first().map(|&sinks| state.dense(sinks));
        let q = state.f32s(node.inputs[0]).chunks_exact(a.heads * a.head_dim);
        let rows = q.zip(&state.batch).flat_map(|(q, token)| {
            attend(a, &state.sequences[token.sequence][layer], q, token.position, sinks)
        });
        Data::F32(rows.collect())
    }

    fn row_cost(&self, row_op: &RowOp, len: &dyn Fn(ValId) -> usize, of: &RowCosts) -> f64 {
        let RowOp::KvStore { x, .. } = row_op else { unreachable!("{row_op:?}") };
        of.element * len(*x) as f64
    }

    fn multiples(&self, op: &Op, _: usize) -> Vec<(&'static str, usize, usize)> {
        let a = attributes(op);
        let least = [a.kv.k, a.kv.v].map(|format| format.descriptor().head_multiple);
        vec![("head_dim", a.head_dim, least.into_iter().fold(16, usize::max))]
    }

    fn facts(&self, known: &mut KnownValues<'_>, inputs: &[&str], out: &str) {
        let (kv_heads, group, head_dim) = (known.sizes.kv_heads, known.sizes.group, known.sizes.head_dim);
        known.cols_are(inputs[0], kv_heads * group * head_dim);
        known.cols_are(inputs[1], kv_heads * head_dim);
        known.same_cols(inputs[1], inputs[2]);
        known.same_cols(inputs[0], out);
        inputs.iter().chain([&out]).for_each(|name| known.rows_are(name, RowKind::Tokens));
    }
}

fn lower(at: &mut dyn SpecNode) -> SpecResult<ValueId> {
    let (q, q_cols) = at.token_input("q")?;
    let (k, k_cols) = at.token_input("k")?;
    let (v, v_cols) = at.token_input("v")?;
    let kv_heads = at.whole("kv_heads", limit::KV_HEADS)?;
    let heads = at.whole("heads", limit::KV_HEADS * limit::QUERIES_PER_KV_HEAD)?;
    if !q_cols.is_multiple_of(heads) {
        let message = format!("q has {q_cols} columns, which {heads} heads do not divide");
        return Err(at.at("heads", &message, format!("expected a divisor of {q_cols}")));
    }
    if !heads.is_multiple_of(kv_heads) {
        let message = format!("{heads} heads do not divide among {kv_heads} KV heads");
        return Err(at.at("kv_heads", &message, format!("expected a divisor of {heads}")));
    }
    if heads / kv_heads > limit::QUERIES_PER_KV_HEAD {
        let message = format!("{} heads share a KV head", heads / kv_heads);
        let label = format!("expected at most {}", limit::QUERIES_PER_KV_HEAD);
        return Err(at.at("heads", &message, label));
    }
    let head_dim = q_cols / heads;
    if !head_dim.is_multiple_of(2) || head_dim > limit::HEAD_DIM {
        let message = format!("heads of {head_dim} elements");
        let label = format!("expected an even number up to {}", limit::HEAD_DIM);
        return Err(at.at("heads", &message, label));
    }
    for (key, cols) in [("k", k_cols), ("v", v_cols)] {
        if cols != kv_heads * head_dim {
            let message = format!("{key} has {cols} columns");
            let label = format!("expected {} ({kv_heads} KV heads of {head_dim})", kv_heads * head_dim);
            return Err(at.at(key, &message, label));
        }
    }
    let layer = at.next_attention(kv_heads, head_dim)?;
    let scale = match at.has("scale") {
        true => at.positive("scale", "the scale")?,
        false => (1.0 / (head_dim as f64).sqrt()) as f32,
    };
    let window = at.window()?;
    let tensors = match at.has("sinks") {
        true => vec![at.vector("sinks", heads)?],
        false => vec![],
    };
    let attention =
        Attributes { layer, heads, kv_heads, head_dim, scale, window, kv: KvPair::both(KvFormat::F32) };
    let ty = Type::F32(Rows::Tokens, heads * head_dim);
    Ok(at.push(ty, Op::Attention(attention), vec![q, k, v], tensors))
}
