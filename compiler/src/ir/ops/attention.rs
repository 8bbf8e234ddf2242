//! `attention`: keys and values go into the layer's cache, then queries attend to it.

use super::def::{OpDef, OpKind, Outline, SpecOp};
use super::form::{Input, OpForm, Operands, TensorOperand, ensure};
use super::keys::{OpInfo, ParamKind, optional, required};
use super::places::{KernelPosition, KernelTemplate};
use super::round::kv_type;
use super::spec_node::SpecNode;
use crate::ir::RowKind;
use crate::ir::cursor::{LineCursor, unknown};
use crate::ir::eval::state::{Data, OpState};
use crate::ir::{GraphRowOp, Node, Op, OperandRef, Role, Rows, Type, ValueId};
use crate::spec_text::Result as SpecResult;
use kernmill_kernels_gen::kernel::KvPlane;
use kernmill_kernels_gen::row_op::{KvStoreRow, RowPlace};
use kernmill_plan::kv::{KvFormat, KvGeometry, KvPair, KvRow, LayerKind};
use kernmill_plan::limit;
use std::ops::RangeInclusive;

/// `q f32, k, v (f32 or a format of the cache); [sinks] -> f32`: appends k and v to the layer's cache, then
/// attends. One that shares the cache of an attention before it has the same k and v, and appends nothing.
#[derive(Clone, Debug, PartialEq)]
pub struct Attention {
    /// Attention layer, in order: index of its KV pool.
    pub layer: u32,
    /// Whether an attention before it has that cache, and writes it.
    pub shared: bool,
    /// Query heads.
    pub heads: usize,
    /// KV heads; `heads` is a multiple of it.
    pub kv_heads: usize,
    /// Elements of a head's queries and keys.
    pub head_dim: usize,
    /// Elements of a head's values, and of its results.
    pub v_head_dim: usize,
    /// Factor on the scores.
    pub scale: f32,
    /// Scores go through `cap * tanh(score / cap)`.
    pub softcap: Option<f32>,
    /// Whether a token sees no token behind it; else it sees its whole sequence.
    pub causal: bool,
    /// Keys in view, the token itself included; on either side of it, where it is not causal. `None` is all.
    pub window: Option<u32>,
    /// Formats of the cache.
    pub kv: KvPair,
}

impl Attention {
    /// Kind of the layer, which decides about its block table.
    pub fn layer_kind(&self) -> LayerKind {
        if self.kept().is_some() { LayerKind::Sliding } else { LayerKind::Full }
    }

    /// Keys that the cache keeps at least. A sequence that runs whole is kept whole.
    pub fn kept(&self) -> Option<u32> {
        self.window.filter(|_| self.causal)
    }

    /// The positions that a token at `position` sees, of a sequence that ends at `last` so far.
    pub fn view(&self, position: usize, last: usize) -> RangeInclusive<usize> {
        let window = self.window.map_or(usize::MAX, |window| window as usize);
        let last = if self.causal { position } else { last.min(position.saturating_add(window - 1)) };
        (position + 1).saturating_sub(window)..=last
    }

    /// Shape of the layer's KV blocks.
    pub fn geometry(&self) -> KvGeometry {
        let Attention { kv_heads, head_dim, v_head_dim, kv: formats, .. } = *self;
        KvGeometry { kv_heads, head_dim, v_head_dim, formats }
    }

    /// Row operations that write keys and values into the cache, where nothing before has done so; `node` is
    /// the attention's.
    pub fn cache_writes(&self, node: &Node) -> [GraphRowOp; 2] {
        let (kind, geometry) = (self.layer_kind(), self.geometry());
        let pool = OperandRef::Kv(self.layer, kind);
        [(1, KvPlane::K), (2, KvPlane::V)].map(|(i, plane)| {
            KvStoreRow { x: RowPlace::Row(node.inputs[i]), pool, plane, kind, geometry }.into()
        })
    }
}

pub static KINDS: [Outline; 1] = [Outline {
    spec: &[SpecOp {
        info: OpInfo {
            name: "attention",
            params: &[
                required("q", ParamKind::Value),
                optional("k", ParamKind::Value),
                optional("v", ParamKind::Value),
                optional("shares", ParamKind::Number),
                required("heads", ParamKind::Number),
                required("kv_heads", ParamKind::Number),
                optional("scale", ParamKind::Number),
                optional("softcap", ParamKind::Number),
                optional("causal", ParamKind::Flag),
                optional("window", ParamKind::Window),
                optional("sinks", ParamKind::Tensor),
            ],
            pattern: &[],
        },
        lower,
    }],
    places: &[KernelPosition::Root(KernelTemplate::Attention)],
    facts: |known, inputs, out| {
        let (kv_heads, group, head_dim) = (known.sizes.kv_heads, known.sizes.group, known.sizes.head_dim);
        known.cols_are(inputs[0], kv_heads * group * head_dim);
        known.cols_are(inputs[1], kv_heads * head_dim);
        known.cols_are(inputs[2], kv_heads * known.sizes.v_head_dim);
        known.cols_are(out, kv_heads * group * known.sizes.v_head_dim);
        inputs.iter().chain([&out]).for_each(|name| known.rows_are(name, RowKind::Tokens));
    },
    ..Outline::new("attention", FORM, parse)
}];

const FORM: OpForm = OpForm::new(
    &[Input::F32, Input::Cached, Input::Cached],
    &[TensorOperand::optional("sinks", Role::Vector)],
);

/// `=` and the name of a format.
fn format(at: &mut LineCursor<'_>) -> Result<KvFormat, String> {
    at.expect("=")?;
    let name = at.word()?;
    KvFormat::from_name(name).ok_or_else(|| unknown("KV format", name))
}

fn parse(at: &mut LineCursor<'_>, _: bool) -> Result<Op, String> {
    let layer = at.attribute("layer")?;
    at.expect(",")?;
    let shared = at.eat("shared");
    if shared {
        at.expect(",")?;
    }
    let heads = at.attribute("heads")?;
    at.expect(",")?;
    let kv_heads = at.attribute("kv_heads")?;
    at.expect(",")?;
    let head_dim = at.attribute("head_dim")?;
    at.expect(",")?;
    let mut v_head_dim = head_dim;
    if at.peek('v') {
        v_head_dim = at.attribute("v_head_dim")?;
        at.expect(",")?;
    }
    let scale = at.attribute("scale")?;
    at.expect(",")?;
    let mut softcap = None;
    if at.peek('s') {
        softcap = Some(at.attribute("softcap")?);
        at.expect(",")?;
    }
    let causal = !at.peek('c');
    if !causal {
        at.expect("causal")?;
        at.expect("=")?;
        at.expect("false")?;
        at.expect(",")?;
    }
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
    Ok(Attention { layer, shared, heads, kv_heads, head_dim, v_head_dim, scale, softcap, causal, window, kv }
        .into())
}

impl OpDef for Attention {
    fn kind(&self, _: usize) -> OpKind {
        OpKind(&KINDS[0])
    }

    fn infer(&self, on: &Operands<'_>) -> Result<Type, String> {
        let a = self;
        ensure(
            a.kv_heads > 0
                && a.head_dim.min(a.v_head_dim) > 0
                && a.heads > 0
                && a.heads.is_multiple_of(a.kv_heads),
            || {
                format!(
                    "heads = {} are not a multiple of kv_heads = {} (head_dim {}, v_head_dim {})",
                    a.heads, a.kv_heads, a.head_dim, a.v_head_dim
                )
            },
        )?;
        let columns = |heads: usize, head_dim: usize| {
            let columns = heads.checked_mul(head_dim);
            columns.ok_or_else(|| format!("{heads} heads of head_dim = {head_dim} overflow"))
        };
        let (q, out) = (columns(a.heads, a.head_dim)?, columns(a.heads, a.v_head_dim)?);
        let (k, v) = (columns(a.kv_heads, a.head_dim)?, columns(a.kv_heads, a.v_head_dim)?);
        ensure(a.scale.is_finite(), || format!("scale = {} is not finite", a.scale))?;
        let softcap = a.softcap.unwrap_or(1.0);
        ensure(softcap.is_finite() && softcap > 0.0, || format!("softcap = {softcap} is not above 0"))?;
        ensure(a.window != Some(0), || "window = 0 sees no key, not even the token's own".into())?;
        let cached = |plane, cols| {
            let head_dim = a.geometry().head_dim(plane);
            kv_type(KvRow::new(a.kv.of(plane), head_dim), cols)
        };
        let (k, v) = (cached(KvPlane::K, k), cached(KvPlane::V, v));
        let wanted = [("q", Type::F32(Rows::Tokens, q)), ("k", k), ("v", v)];
        for ((name, wanted), found) in wanted.into_iter().zip(on.inputs) {
            ensure(*found == wanted, || format!("{name} is {}, expected {}", found.text(), wanted.text()))?;
        }
        on.shape(0, &[a.heads])?;
        Ok(Type::F32(Rows::Tokens, out))
    }

    fn attributes(&self, _: usize) -> String {
        let Attention {
            layer,
            heads,
            kv_heads,
            head_dim,
            v_head_dim,
            scale,
            softcap,
            causal,
            window,
            kv,
            ..
        } = self;
        let shared = if self.shared { ", shared" } else { "" };
        let softcap = softcap.map_or(String::new(), |softcap| format!(", softcap={softcap:?}"));
        let causal = if *causal { "" } else { ", causal=false" };
        let window = window.map_or(String::new(), |window| format!(", window={window}"));
        let kv = match kv.k == kv.v {
            true => format!("kv={}", kv.k.name()),
            false => format!("k={}, v={}", kv.k.name(), kv.v.name()),
        };
        let values = match v_head_dim == head_dim {
            true => String::new(),
            false => format!(", v_head_dim={v_head_dim}"),
        };
        let heads = format!("heads={heads}, kv_heads={kv_heads}, head_dim={head_dim}{values}");
        format!("(layer={layer}{shared}, {heads}, scale={scale:?}{softcap}{causal}{window}, {kv})")
    }

    fn eval(&self, state: &mut OpState, node: &Node) -> Data {
        let a = self;
        let (layer, k_cols) = (a.layer as usize, a.kv_heads * a.head_dim);
        let own = if a.shared { 0 } else { state.batch.len() };
        for i in 0..own {
            let sequence = state.batch[i].sequence;
            let mut kv = std::mem::take(&mut state.sequences[sequence][layer]);
            for (rows, input) in [&mut kv.k, &mut kv.v].into_iter().zip(&node.inputs[1..]) {
                let cols = state.cols(*input);
                let (values, scales) = state.cached(*input);
                rows.values.extend(&values[i * cols..][..cols]);
                rows.scales.extend(scales.chunks(a.kv_heads).nth(i).unwrap_or(&[]));
            }
            state.sequences[sequence][layer] = kv;
        }
        let sinks = node.tensors.first().map(|&sinks| state.dense(sinks));
        let q = state.f32s(node.inputs[0]).chunks_exact(a.heads * a.head_dim);
        let rows = q.zip(&state.batch).flat_map(|(q, token)| {
            let kv = &state.sequences[token.sequence][layer];
            let last = kv.k.values.len() / k_cols - 1;
            a.attend(kv, q, a.view(token.position, last), sinks)
        });
        Data::F32(rows.collect())
    }

    fn multiples(&self, _: usize) -> Vec<(&'static str, usize, usize)> {
        let a = self;
        let least = |format: KvFormat| format.descriptor().head_multiple.max(16);
        match a.head_dim == a.v_head_dim {
            true => vec![("head_dim", a.head_dim, least(a.kv.k).max(least(a.kv.v)))],
            false => {
                vec![("head_dim", a.head_dim, least(a.kv.k)), ("v_head_dim", a.v_head_dim, least(a.kv.v))]
            }
        }
    }
}

fn lower(at: &mut dyn SpecNode) -> SpecResult<ValueId> {
    let (q, q_cols) = at.token_input("q")?;
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
    let causal = !at.has("causal") || at.flag("causal");
    let shared = at.has("shares");
    let (layer, v_head_dim, [k, v]) = match shared {
        true => shared_cache(at, q, kv_heads, head_dim)?,
        false => {
            let (v_head_dim, kv) = own_cache(at, kv_heads, head_dim)?;
            (at.next_attention([kv_heads, head_dim, v_head_dim], causal)?, v_head_dim, kv)
        }
    };
    let scale = match at.has("scale") {
        true => at.positive("scale", "the scale")?,
        false => (1.0 / (head_dim as f64).sqrt()) as f32,
    };
    let softcap = match at.has("softcap") {
        true => Some(at.positive("softcap", "the soft cap")?),
        false => None,
    };
    let window = at.window()?;
    let tensors = match at.has("sinks") {
        true => vec![at.vector("sinks", heads)?],
        false => vec![],
    };
    let kv = KvPair::both(KvFormat::F32);
    let attention = Attention {
        layer,
        shared,
        heads,
        kv_heads,
        head_dim,
        v_head_dim,
        scale,
        softcap,
        causal,
        window,
        kv,
    };
    let ty = Type::F32(Rows::Tokens, heads * v_head_dim);
    Ok(at.push(ty, attention, vec![q, k, v], tensors))
}

/// Keys and values of so many heads that the node names, and the elements of a head's values.
fn own_cache(at: &mut dyn SpecNode, kv_heads: usize, head_dim: usize) -> SpecResult<(usize, [ValueId; 2])> {
    let mut read = |key| {
        if !at.has(key) {
            let message = format!("attention without `{key}`");
            return Err(at.at("q", &message, "expected `k` and `v` beside it, or `shares`"));
        }
        at.token_input(key)
    };
    let ((k, k_cols), (v, v_cols)) = (read("k")?, read("v")?);
    if k_cols != kv_heads * head_dim {
        let message = format!("k has {k_cols} columns");
        let label = format!("expected {} ({kv_heads} KV heads of {head_dim})", kv_heads * head_dim);
        return Err(at.at("k", &message, label));
    }
    let v_head_dim = v_cols / kv_heads;
    if !v_cols.is_multiple_of(kv_heads) || v_head_dim > limit::HEAD_DIM {
        let message = format!("v has {v_cols} columns");
        let label = format!("expected {kv_heads} KV heads of at most {} elements", limit::HEAD_DIM);
        return Err(at.at("v", &message, label));
    }
    Ok((v_head_dim, [k, v]))
}

/// The cache of the layer that the node names, the elements of a head's values, and the keys and values that
/// are in it.
fn shared_cache(
    at: &mut dyn SpecNode,
    q: ValueId,
    kv_heads: usize,
    head_dim: usize,
) -> SpecResult<(u32, usize, [ValueId; 2])> {
    if let Some(key) = ["k", "v"].into_iter().find(|key| at.has(key)) {
        let message = format!("`{key}` beside `shares`");
        return Err(at.at(key, &message, "expected keys and values of its own, or another layer's"));
    }
    let own = at.attention_of_layer("shares")?;
    let node = at.graph().node(own);
    let kv = [node.inputs[1], node.inputs[2]];
    let other = node.op.attention().expect("it is an attention").clone();
    if (other.kv_heads, other.head_dim) != (kv_heads, head_dim) {
        let message = format!("{kv_heads} KV heads of {head_dim}");
        let label = format!("expected {} of {}, as that layer has", other.kv_heads, other.head_dim);
        return Err(at.at("shares", &message, label));
    }
    let causal = !at.has("causal") || at.flag("causal");
    if (at.window()?, causal) != (other.window, other.causal) {
        let message = "another view than that of the layer whose cache it reads";
        return Err(at.at("shares", message, "expected the same `window` and `causal`"));
    }
    if !at.graph().follows(q, own) {
        let message = "its queries do not depend on the attention whose cache it reads";
        return Err(at.at("q", message, "expected a value that is computed from it"));
    }
    Ok((other.layer, other.v_head_dim, kv))
}
