//! Model graphs of every variation that the compiler serves.

use kernmill_compiler::ir::expr;
use kernmill_compiler::ir::{
    Activations, Attention, Elementwise, Embed, ExpertSum, Factor, Graph, GraphBuilder, GraphError, MatMul,
    Norm, Normed, Role, Rope, RopeParameters, RopeScaling, RouterTopk, RowSelect, SelectRows, TensorId,
    TensorSource, ValueId,
};
use kernmill_compiler::testing::Rng;
use kernmill_kernels_gen::expr::Expr;
use kernmill_kernels_gen::row_op::{HeadRotation, RopePairs, RouterScores};
use kernmill_plan::format::{BLOCK, WeightFormat};
use kernmill_plan::kv::{KvFormat, KvPair};

/// The shape of a small model.
#[derive(Clone, Debug, PartialEq)]
pub struct ModelShape {
    /// Layers.
    pub layers: usize,
    /// Width of the residual stream, a multiple of 32.
    pub hidden: usize,
    /// Vocabulary.
    pub vocab: usize,
    /// Query heads, a multiple of `kv_heads`.
    pub heads: usize,
    /// KV heads.
    pub kv_heads: usize,
    /// Elements of a head's queries and keys.
    pub head_dim: usize,
    /// Elements of a head's values; `heads * v_head_dim` is a multiple of 32.
    pub v_head_dim: usize,
    /// Longest context.
    pub max_context: usize,
    /// Window of the even layers; `None`: all layers see everything.
    pub window: Option<u32>,
    /// Columns of further projections beside q, k and v; each goes back to the residual stream through a
    /// matrix.
    pub extra: Vec<usize>,
    /// Biases on q, k, v, o.
    pub attention_bias: bool,
    /// A learned sink per head.
    pub sinks: bool,
    /// Norms of the residual stream.
    pub norms: Norms,
    /// Cap of attention's scores.
    pub softcap: Option<f32>,
    /// Scaling of RoPE.
    pub rope: RopeScaling,
    /// One of so many equal parts of each head rotates.
    pub rotary_share: usize,
    /// Elements that rotate together.
    pub pairs: RopePairs,
    /// The feed-forward part.
    pub mlp: Mlp,
    /// Format that matrices are stored in: blocks as GGUF files have them, or a plain one.
    pub matrix: WeightFormat,
    /// Format that the embedding table and the unembedding are stored in.
    pub table: WeightFormat,
    /// The unembedding reads the embedding table.
    pub tied: bool,
    /// The rounding that is asked for the input of every n-th product with a dense matrix; of none where n is 0.
    pub inputs: (Activations, usize),
    /// The choice of experts but for their number, with a bias or without.
    pub router: (RouterTopk, bool),
    /// The difference to any known model.
    pub twist: Twist,
}

/// Norms of the residual stream.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Norms {
    /// RMS norms.
    Rms,
    /// RMS norms whose weights the checkpoint has less 1.
    RmsPlusOne,
    /// RMS norms without weights.
    RmsOfNoWeight,
    /// Layer norms with weights and biases.
    Layer,
}

/// Oddities that keep some fusions from applying.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Twist {
    /// The attention's norm is also added to the residual stream, scaled: it has a user outside of `qkv`.
    pub norm_used_twice: bool,
    /// The attention's result is gated by the queries: q has a second user, and the result is not quantised
    /// directly.
    pub gated_attention: bool,
    /// Each head of q and k is normed before RoPE.
    pub head_norms: bool,
    /// The logits go through a soft cap.
    pub capped_logits: bool,
    /// The feed-forward part's result is gated by a number for each token, and scaled by a vector.
    pub gated_layers: bool,
}

/// The feed-forward part of a layer.
#[derive(Clone, Debug, PartialEq)]
pub enum Mlp {
    /// One gated MLP, SiLU.
    Dense {
        /// Width, a multiple of 32.
        inner: usize,
    },
    /// Routed experts with biases and the clamped SwiGLU.
    Experts {
        /// Experts.
        experts: usize,
        /// Chosen per token.
        top_k: u32,
        /// Width, a multiple of 32.
        inner: usize,
        /// Format that experts are stored in; MXFP4 in two tensors.
        format: WeightFormat,
    },
}

impl ModelShape {
    /// GPT-OSS with every feature, two layers.
    pub fn mini_gpt_oss() -> ModelShape {
        ModelShape {
            layers: 2,
            hidden: 64,
            vocab: 96,
            heads: 4,
            kv_heads: 2,
            head_dim: 32,
            v_head_dim: 32,
            max_context: 4096,
            window: Some(8),
            extra: Vec::new(),
            attention_bias: true,
            sinks: true,
            rope: RopeScaling::Yarn {
                factor: 32.0,
                beta_fast: 32.0,
                beta_slow: 1.0,
                original_context: 64.0,
                truncate: false,
            },
            mlp: Mlp::Experts { experts: 4, top_k: 2, inner: 32, format: WeightFormat::Mxfp4 },
            matrix: WeightFormat::Bf16,
            table: WeightFormat::Bf16,
            tied: false,
            inputs: (Activations::AsPreset, 0),
            router: (RouterTopk::new(2), false),
            norms: Norms::Rms,
            softcap: None,
            rotary_share: 1,
            pairs: RopePairs::Halves,
            twist: Twist::default(),
        }
    }

    /// A dense Llama, two layers.
    pub fn mini_llama() -> ModelShape {
        ModelShape {
            window: None,
            attention_bias: false,
            sinks: false,
            rope: RopeScaling::Plain,
            mlp: Mlp::Dense { inner: 96 },
            ..ModelShape::mini_gpt_oss()
        }
    }

    /// Any small model; half are like GPT-OSS, half like Llama.
    pub fn random(seed: u64) -> ModelShape {
        let rng = &mut Rng::new(seed);
        let routed = rng.one_in(2);
        let experts = rng.pick(&[1, 2, 3, 5, 8]);
        let kv_heads = rng.pick(&[1, 1, 2, 3]);
        let head_dim: usize = rng.pick(&[16, 32, 32, 48, 64, 64, 96, 128, 256]);
        // Heads of half a block go in pairs, so that the queries are whole blocks.
        let group = if head_dim.is_multiple_of(BLOCK) { rng.pick(&[1, 2, 4]) } else { rng.pick(&[2, 4]) };
        let plain = [WeightFormat::Bf16, WeightFormat::F32];
        let mut shape = ModelShape {
            layers: 1 + rng.below(3),
            hidden: 32 * (1 + rng.below(4)),
            vocab: 17 + rng.below(100),
            heads: kv_heads * group,
            kv_heads,
            head_dim,
            v_head_dim: head_dim,
            max_context: 4096,
            window: if rng.one_in(2) { Some(1 + rng.below(24) as u32) } else { None },
            extra: (0..rng.pick(&[0, 0, 1, 2])).map(|_| BLOCK * rng.pick(&[1, 3, 4, 5])).collect(),
            attention_bias: rng.one_in(2),
            sinks: rng.one_in(2),
            rope: match rng.below(3) {
                0 => RopeScaling::Plain,
                1 => RopeScaling::Yarn {
                    factor: rng.pick(&[4.0, 32.0]),
                    beta_fast: 32.0,
                    beta_slow: 1.0,
                    original_context: 64.0,
                    truncate: rng.one_in(2),
                },
                _ => RopeScaling::Llama3 {
                    factor: 8.0,
                    low_freq_factor: 1.0,
                    high_freq_factor: 4.0,
                    original_context: 64.0,
                },
            },
            mlp: if routed {
                Mlp::Experts {
                    experts,
                    top_k: 1 + rng.below(experts.min(4)) as u32,
                    inner: 32 * (1 + rng.below(3)),
                    format: rng.pick(&[WeightFormat::Mxfp4, WeightFormat::Bf16]),
                }
            } else {
                Mlp::Dense { inner: 32 * (1 + rng.below(5)) }
            },
            matrix: rng.pick(&plain),
            table: WeightFormat::Bf16,
            tied: rng.one_in(3),
            twist: Twist {
                norm_used_twice: rng.one_in(4),
                gated_attention: rng.one_in(4),
                head_norms: rng.one_in(3),
                ..Twist::default()
            },
            inputs: (rng.pick(&[Activations::F32, Activations::Q8x2]), rng.pick(&[0, 0, 1, 2, 3, 5])),
            router: random_router(rng),
            norms: rng.pick(&[Norms::Rms, Norms::Rms, Norms::RmsPlusOne, Norms::RmsOfNoWeight, Norms::Layer]),
            softcap: rng.pick(&[None, None, Some(2.0)]),
            rotary_share: rng.pick(&[1, 1, 2]),
            pairs: rng.pick(&[RopePairs::Halves, RopePairs::Halves, RopePairs::Neighbours]),
        };
        shape.table = shape.matrix;
        shape.twist.capped_logits = rng.one_in(3);
        shape.twist.gated_layers = rng.one_in(3);
        // A gate of queries has their columns.
        if rng.one_in(4) && !shape.twist.gated_attention {
            shape.v_head_dim =
                if group.is_multiple_of(2) { rng.pick(&[16, 48, 80]) } else { rng.pick(&[32, 96]) };
        }
        shape
    }

    /// The shape with its matrices, experts aside, and the table stored in blocks of a format.
    pub fn in_blocks(self, format: WeightFormat) -> ModelShape {
        ModelShape { matrix: format, table: format, ..self }
    }
}

/// Half of the time the router of GPT-OSS, else any.
fn random_router(rng: &mut Rng) -> (RouterTopk, bool) {
    if rng.one_in(2) {
        return (RouterTopk::new(2), false);
    }
    let scores = rng.pick(&[RouterScores::Softmax, RouterScores::Sigmoid]);
    let (normalise, scale) = (rng.one_in(2), rng.pick(&[None, Some(2.5)]));
    (RouterTopk { scores, normalise, scale, ..RouterTopk::new(2) }, rng.one_in(2))
}

/// The graph of a model, before quantisation.
///
/// # Errors
/// When the shape is not legal, such as sizes that do not divide.
pub fn build(shape: &ModelShape) -> Result<Graph, GraphError> {
    let mut model =
        Model { shape, b: GraphBuilder::new("random", shape.vocab, shape.max_context), products: 0 };
    let table_format = shape.table;
    let table = model.b.tensor(
        "embed",
        Role::Table,
        &[shape.vocab, shape.hidden],
        table_format,
        source("embed.weight"),
    );
    let tokens = model.b.tokens();
    let mut x = model.b.node("embed", Embed::default(), &[tokens], &[table])?;
    for layer in 0..shape.layers {
        x = model.attention(layer, x)?;
        let before = x;
        x = match &shape.mlp {
            Mlp::Dense { inner } => model.dense(layer, x, *inner)?,
            Mlp::Experts { experts, top_k, inner, format } => {
                model.experts(layer, x, *experts, *top_k, *inner, *format)?
            }
        };
        if shape.twist.gated_layers {
            x = model.gate(layer, before, x)?;
        }
    }
    let x = model.b.node("last", SelectRows, &[x], &[])?;
    let x = model.norm("norm", x)?;
    let from = if shape.tied { "embed.weight" } else { "unembed.weight" };
    let unembed =
        model.b.tensor("unembed", Role::Matrix, &[shape.vocab, shape.hidden], table_format, source(from));
    let activations = model.activations();
    let mut logits =
        model.b.node("logits", MatMul { x: Factor::F32(activations), ..MatMul::LINEAR }, &[x], &[unembed])?;
    if shape.twist.capped_logits {
        let expr = expr::parse("5 * tanh(x / 5)", &["x"]).expect("a constant expression");
        logits = model.b.node("capped", Elementwise::of(expr), &[logits], &[])?;
    }
    model.b.finish(logits)
}

/// Properties that the expert matrices of a layer share.
struct Experts {
    layer: usize,
    format: WeightFormat,
    topk: ValueId,
}

struct Model<'s> {
    shape: &'s ModelShape,
    b: GraphBuilder,
    /// Products with dense matrices so far.
    products: usize,
}

impl Model<'_> {
    fn attention(&mut self, layer: usize, x: ValueId) -> Result<ValueId, GraphError> {
        let s = self.shape;
        let name = |what: &str| format!("layers.{layer}.{what}");
        let rope = RopeParameters::new(s.head_dim, 10000.0, s.rope.clone());
        let head = HeadRotation { rotary_dim: s.head_dim / s.rotary_share, pairs: s.pairs, ..rope.head };
        let rope = Rope { rope: self.b.rope(RopeParameters { head, ..rope }), head };
        let n = self.norm(&name("attn_norm"), x)?;
        let q = self.linear(&name("q"), n, s.heads * s.head_dim, s.attention_bias)?;
        let k = self.linear(&name("k"), n, s.kv_heads * s.head_dim, s.attention_bias)?;
        let v = self.linear(&name("v"), n, s.kv_heads * s.v_head_dim, s.attention_bias)?;
        let extra = s.extra.iter().map(|cols| self.linear(&name("extra"), n, *cols, s.attention_bias));
        let extra = extra.collect::<Result<Vec<_>, _>>()?;
        let [q, k] = match s.twist.head_norms {
            true => [self.head_norm(&name("q_norm"), q)?, self.head_norm(&name("k_norm"), k)?],
            false => [q, k],
        };
        let q = self.b.node(&name("q_rope"), rope, &[q], &[])?;
        let k = self.b.node(&name("k_rope"), rope, &[k], &[])?;
        let attention = Attention {
            layer: self.b.next_layer(),
            shared: false,
            heads: s.heads,
            kv_heads: s.kv_heads,
            head_dim: s.head_dim,
            v_head_dim: s.v_head_dim,
            scale: 1.0 / (s.head_dim as f32).sqrt(),
            softcap: s.softcap,
            causal: true,
            window: s.window.filter(|_| layer.is_multiple_of(2)),
            kv: KvPair::both(KvFormat::F32),
        };
        let sinks = s.sinks.then(|| self.vector(&name("sinks"), s.heads));
        let mut a = self.b.node(&name("attn"), attention, &[q, k, v], sinks.as_slice())?;
        if s.twist.gated_attention {
            let gate = Elementwise::of(expr::parse("x0 * sigmoid(x1)", &["x0", "x1"]).expect("it is right"));
            a = self.b.node(&name("gated"), gate, &[a, q], &[])?;
        }
        let o = self.linear(&name("o"), a, s.hidden, s.attention_bias)?;
        let mut out = self.b.node(&name("attn_out"), Elementwise::add(), &[x, o], &[])?;
        for extra in extra {
            let back = self.linear(&name("back"), extra, s.hidden, false)?;
            out = self.b.node(&name("attn_out"), Elementwise::add(), &[out, back], &[])?;
        }
        if s.twist.norm_used_twice {
            return self.b.node(&name("attn_out"), Elementwise::add(), &[n, out], &[]);
        }
        Ok(out)
    }

    /// As the shared expert of Qwen2-MoE and the layer scale of Gemma 4.
    fn gate(&mut self, layer: usize, before: ValueId, x: ValueId) -> Result<ValueId, GraphError> {
        let name = |what: &str| format!("layers.{layer}.{what}");
        let gate = self.linear(&name("gate_of_layer"), before, 1, false)?;
        let scale = self.vector(&name("scale.norm.weight"), self.shape.hidden);
        let vars = ["gate", "x", "scale"];
        let expr = expr::parse("sigmoid(gate) * x * scale", &vars).expect("a constant expression");
        self.b.node(&name("gated_layer"), Elementwise::spread(expr), &[gate, x], &[scale])
    }

    fn dense(&mut self, layer: usize, x: ValueId, inner: usize) -> Result<ValueId, GraphError> {
        let name = |what: &str| format!("layers.{layer}.{what}");
        let n = self.norm(&name("mlp_norm"), x)?;
        let gate = self.linear(&name("gate"), n, inner, false)?;
        let up = self.linear(&name("up"), n, inner, false)?;
        let glu = Elementwise::of(expr("silu(gate) * up"));
        let h = self.b.node(&name("h"), glu, &[gate, up], &[])?;
        let down = self.linear(&name("down"), h, self.shape.hidden, false)?;
        self.b.node(&name("mlp_out"), Elementwise::add(), &[x, down], &[])
    }

    fn experts(
        &mut self,
        layer: usize,
        x: ValueId,
        experts: usize,
        top_k: u32,
        inner: usize,
        format: WeightFormat,
    ) -> Result<ValueId, GraphError> {
        let hidden = self.shape.hidden;
        let name = |what: &str| format!("layers.{layer}.{what}");
        let n = self.norm(&name("mlp_norm"), x)?;
        let router = self.linear(&name("router"), n, experts, true)?;
        let (op, biased) = self.shape.router;
        let bias = biased.then(|| self.vector(&name("router_bias"), experts));
        let topk = self.b.node(&name("topk"), RouterTopk { k: top_k, ..op }, &[router], bias.as_slice())?;
        let at = Experts { layer, format, topk };
        let gate = self.expert(&at, "gate", n, "gate_up", RowSelect::EVEN, [experts, inner, hidden])?;
        let up = self.expert(&at, "up", n, "gate_up", RowSelect::ODD, [experts, inner, hidden])?;
        let glu = "(clamp(up, -7, 7) + 1) * (min(gate, 7) * sigmoid(1.702 * min(gate, 7)))";
        let h = self.b.node(&name("h"), Elementwise::of(expr(glu)), &[gate, up], &[])?;
        let down = self.expert(&at, "down", h, "down", RowSelect::ALL, [experts, hidden, inner])?;
        let sum = self.b.node(&name("experts"), ExpertSum, &[down, topk], &[])?;
        self.b.node(&name("mlp_out"), Elementwise::add(), &[x, sum], &[])
    }

    fn expert(
        &mut self,
        at: &Experts,
        what: &str,
        input: ValueId,
        from: &str,
        rows: RowSelect,
        shape: [usize; 3],
    ) -> Result<ValueId, GraphError> {
        let (name, from) = (format!("layers.{}.{what}", at.layer), format!("layers.{}.{from}", at.layer));
        let packed = at.format == WeightFormat::Mxfp4;
        let scales = packed.then(|| format!("{from}_scales"));
        let data = if packed { format!("{from}_blocks") } else { from.clone() };
        let data = TensorSource { scales, rows, ..source(&data) };
        let matrix = self.b.tensor(&format!("{name}.weight"), Role::ExpertMatrix, &shape, at.format, data);
        let data = TensorSource { rows, ..source(&format!("{from}_bias")) };
        let bias = format!("{name}.bias");
        let bias = self.b.tensor(&bias, Role::ExpertVector, &shape[..2], WeightFormat::Bf16, data);
        self.b.node(&name, MatMul::EXPERT_LINEAR, &[input, at.topk], &[matrix, bias])
    }

    fn norm(&mut self, name: &str, x: ValueId) -> Result<ValueId, GraphError> {
        let (hidden, norms) = (self.shape.hidden, self.shape.norms);
        let mut vector = |what: &str, plus| {
            let weight = self.vector(&format!("{name}.{what}"), hidden);
            self.b.plus(weight, plus);
            weight
        };
        match norms {
            Norms::Rms => {
                let weight = vector("weight", 0.0);
                self.b.node(name, Norm { eps: 1e-5, of: Normed::Row }, &[x], &[weight])
            }
            Norms::RmsPlusOne => {
                let weight = vector("one_less", 1.0);
                self.b.node(name, Norm { eps: 1e-5, of: Normed::Row }, &[x], &[weight])
            }
            Norms::RmsOfNoWeight => self.b.node(name, Norm { eps: 1e-5, of: Normed::Row }, &[x], &[]),
            Norms::Layer => {
                let tensors = [vector("weight", 0.0), vector("bias", 0.0)];
                self.b.node(name, Norm { eps: 1e-5, of: Normed::Centred }, &[x], &tensors)
            }
        }
    }

    fn head_norm(&mut self, name: &str, x: ValueId) -> Result<ValueId, GraphError> {
        let head_dim = self.shape.head_dim;
        let weight = self.vector(&format!("{name}.weight"), head_dim);
        self.b.node(name, Norm { eps: 1e-5, of: Normed::Head(head_dim) }, &[x], &[weight])
    }

    fn linear(&mut self, name: &str, x: ValueId, n: usize, bias: bool) -> Result<ValueId, GraphError> {
        let k = self.b.graph().value(x).ty.cols();
        let from = format!("{name}.weight");
        let matrix = self.b.tensor(&from, Role::Matrix, &[n, k], self.shape.matrix, source(&from));
        self.b.name_source(matrix);
        let mut tensors = vec![matrix];
        tensors.extend(bias.then(|| self.vector(&format!("{name}.bias"), n)));
        let activations = self.activations();
        self.b.node(name, MatMul { x: Factor::F32(activations), ..MatMul::LINEAR }, &[x], &tensors)
    }

    /// The roundings that presets may apply to the input of the next product.
    fn activations(&mut self) -> Activations {
        self.products += 1;
        let (asked, every) = self.shape.inputs;
        if every > 0 && self.products.is_multiple_of(every) { asked } else { Activations::AsPreset }
    }

    fn vector(&mut self, name: &str, n: usize) -> TensorId {
        self.b.tensor(name, Role::Vector, &[n], WeightFormat::Bf16, source(name))
    }
}

fn source(name: &str) -> TensorSource {
    TensorSource { name: name.into(), scales: None, rows: RowSelect::ALL, transposed: false }
}

fn expr(text: &str) -> Expr {
    expr::parse(text, &["gate", "up"]).expect("a constant expression")
}
