//! Models made of blocks as layers have them, and unlike any known one.

use kernmill_compiler::ir::expr;
use kernmill_compiler::ir::{
    Attention, Elementwise, Embed, ExpertSum, Graph, GraphBuilder, GraphError, MatMul, Norm, Normed, Role,
    Rope, RopeParameters, RopeScaling, RouterTopk, RowSelect, SelectRows, TensorId, TensorSource, ValueId,
};
use kernmill_compiler::testing::Rng;
use kernmill_plan::format::{BLOCK, WeightFormat};
use kernmill_plan::kv::{KvFormat, KvPair};

/// Columns that are no whole blocks, for presets that quantise nothing; whole ones are among them.
const ODD: [usize; 14] = [5, 16, 17, 24, 32, 33, 40, 48, 50, 64, 72, 96, 100, 144];
/// Elements of a head; small ones are frequent, as models with large ones take long.
const HEADS: [usize; 14] = [16, 16, 16, 32, 32, 32, 48, 64, 64, 80, 96, 128, 192, 256];

/// A model in the making.
struct Making<'r> {
    b: GraphBuilder,
    rng: &'r mut Rng,
    /// Columns of matrices' inputs are whole blocks.
    whole: bool,
    /// Columns of the residual stream.
    hidden: usize,
    /// Format of dense matrices, and of experts.
    format: WeightFormat,
    experts_format: WeightFormat,
    /// Heads of every attention.
    heads: usize,
    kv_heads: usize,
    head_dim: usize,
    scaling: RopeScaling,
}

type Made<T = ValueId> = Result<T, GraphError>;

/// A model; with `whole`, one that every preset can quantise.
pub(super) fn model(whole: bool, rng: &mut Rng) -> Made<Graph> {
    let hidden =
        if whole || rng.one_in(2) { BLOCK * rng.pick(&[1, 2, 2, 3, 5]) } else { 16 * (1 + rng.below(9)) };
    let (kv_heads, head_dim) = (rng.pick(&[1, 1, 2, 3]), rng.pick(&HEADS));
    let group = rng.pick(&[1, 2, 3, 4]);
    // Queries are the input of a matrix.
    let even = if whole && !(kv_heads * group * head_dim).is_multiple_of(BLOCK) { 2 } else { 1 };
    let vocab = 17 + rng.below(60);
    let plain = [WeightFormat::Bf16, WeightFormat::F32];
    let packed = whole || hidden.is_multiple_of(BLOCK);
    let mut make = Making {
        b: GraphBuilder::new("pair", vocab, 256),
        whole,
        hidden,
        format: rng.pick(&plain),
        experts_format: if packed && rng.one_in(2) { WeightFormat::Mxfp4 } else { rng.pick(&plain) },
        heads: kv_heads * group * even,
        kv_heads,
        head_dim,
        scaling: scaling(rng),
        rng,
    };
    let table = make.b.tensor("embed", Role::Table, &[vocab, hidden], make.format, source("embed"));
    let tokens = make.b.tokens();
    let mut x = make.b.node("embed", Embed::default(), &[tokens], &[table])?;
    for _ in 0..1 + make.rng.below(2) {
        x = match make.rng.below(8) {
            0..3 => make.attention(x)?,
            3..6 => make.projections(x)?,
            6 => make.experts(x)?,
            _ => make.rows(x)?,
        };
    }
    x = make.b.node("last", SelectRows, &[x], &[])?;
    if make.rng.one_in(2) {
        x = make.norm(x)?;
    }
    let logits = make.linear("logits", x, vocab)?;
    make.b.finish(logits)
}

fn scaling(rng: &mut Rng) -> RopeScaling {
    match rng.below(3) {
        0 => RopeScaling::Llama3 {
            factor: 8.0,
            low_freq_factor: 1.0,
            high_freq_factor: 4.0,
            original_context: 64.0,
        },
        1 => RopeScaling::Yarn {
            factor: rng.pick(&[4.0, 32.0]),
            beta_fast: 32.0,
            beta_slow: 1.0,
            original_context: 64.0,
            truncate: rng.one_in(2),
        },
        _ => RopeScaling::Plain,
    }
}

impl Making<'_> {
    /// Columns of a result.
    fn columns(&mut self) -> usize {
        match self.whole {
            true => BLOCK * self.rng.pick(&[1, 1, 2, 3, 5]),
            false => self.rng.pick(&ODD),
        }
    }

    /// The input of matrices: the stream, normed or not.
    fn prologue(&mut self, x: ValueId) -> Made {
        match self.rng.below(8) {
            0 => Ok(x),
            1 => self.map("pre", &[x]),
            2 => {
                let n = self.norm(x)?;
                self.map("pre", &[n, x])
            }
            3 => {
                let scaled = self.map("pre", &[x])?;
                self.norm(scaled)
            }
            _ => self.norm(x),
        }
    }

    /// Queries, keys, values, perhaps more of the same input, attention, and what becomes of it.
    fn attention(&mut self, x: ValueId) -> Made {
        let n = self.prologue(x)?;
        let (q_cols, kv_cols) = (self.heads * self.head_dim, self.kv_heads * self.head_dim);
        let mut extra = Vec::new();
        let extras = self.rng.pick(&[0, 0, 1, 1, 2]);
        let before = self.rng.below(extras + 1);
        for _ in 0..before {
            extra.push(self.extra(n, q_cols)?);
        }
        let mut q = self.linear("q", n, q_cols)?;
        let mut k = self.linear("k", n, kv_cols)?;
        let v = self.linear("v", n, kv_cols)?;
        for _ in before..extras {
            extra.push(self.extra(n, q_cols)?);
        }
        let head_dim = self.head_dim;
        let rope = RopeParameters::new(head_dim, 10000.0, self.scaling.clone());
        let head = rope.head;
        let rope = Rope { rope: self.b.rope(rope), head };
        if !self.rng.one_in(6) {
            q = self.b.node("q_rope", rope, &[q], &[])?;
        }
        if !self.rng.one_in(6) {
            k = self.b.node("k_rope", rope, &[k], &[])?;
        }
        let attention = Attention {
            layer: self.b.next_layer(),
            shared: false,
            heads: self.heads,
            kv_heads: self.kv_heads,
            head_dim,
            v_head_dim: head_dim,
            scale: 1.0 / (head_dim as f32).sqrt(),
            softcap: None,
            causal: true,
            window: self.rng.one_in(2).then_some(1 + self.rng.below(20) as u32),
            kv: KvPair::both(KvFormat::F32),
        };
        let sinks = self.rng.one_in(2).then(|| self.vector("sinks", self.heads));
        let mut a = self.b.node("attn", attention, &[q, k, v], sinks.as_slice())?;
        let mut x = x;
        for extra in extra {
            if self.cols(extra) == q_cols {
                a = self.map("gated", &[a, extra])?;
            } else {
                x = self.back(extra, x)?;
            }
        }
        self.back(a, x)
    }

    /// A root beside queries, keys and values.
    fn extra(&mut self, n: ValueId, q_cols: usize) -> Made {
        let cols = if self.rng.one_in(3) { q_cols } else { self.columns() };
        self.linear("extra", n, cols)
    }

    /// One to five matrices of one input, results of which meet.
    fn projections(&mut self, x: ValueId) -> Made {
        let n = self.prologue(x)?;
        let mut left = 1 + self.rng.below(5);
        let mut results = Vec::new();
        while left > 0 {
            let meet = 1 + self.rng.below(left.min(3));
            let cols = if self.rng.one_in(3) { self.hidden } else { self.columns() };
            let mut units = Vec::with_capacity(meet);
            for _ in 0..meet {
                units.push(self.linear("unit", n, cols)?);
            }
            results.push(self.meeting(&units, x)?);
            left -= meet;
        }
        let mut x = x;
        for result in results {
            x = self.back(result, x)?;
        }
        Ok(x)
    }

    /// Joins results of the same columns; perhaps the stream joins them.
    fn meeting(&mut self, units: &[ValueId], x: ValueId) -> Made {
        let mut value = match units {
            [one] => *one,
            [a, b] => match self.rng.below(4) {
                0 => self.b.node("product", Elementwise::mul(), units, &[])?,
                1 => self.b.node("sum", Elementwise::add(), &[*b, *a], &[])?,
                2 => self.map("joined", units)?,
                _ => {
                    let expr = expr::parse("silu(gate) * up", &["gate", "up"]).expect("a right expression");
                    self.b.node("glu", Elementwise::of(expr), units, &[])?
                }
            },
            all => self.map("joined", all)?,
        };
        for _ in 0..self.rng.below(3) {
            let joins = self.b.graph().value(x).ty == self.b.graph().value(value).ty && self.rng.one_in(2);
            value = if joins { self.map("with", &[value, x])? } else { self.map("then", &[value])? };
        }
        Ok(value)
    }

    /// Router, some matrices of the chosen experts, and their weighted sum.
    fn experts(&mut self, x: ValueId) -> Made {
        let n = self.prologue(x)?;
        let experts = self.rng.pick(&[1, 2, 3, 5]);
        let router = self.linear("router", n, experts)?;
        let k = 1 + self.rng.below(experts.min(3)) as u32;
        let topk = self.b.node("topk", RouterTopk::new(k), &[router], &[])?;
        let mxfp4 = self.experts_format == WeightFormat::Mxfp4;
        let inner = match self.columns() {
            cols if mxfp4 => cols.next_multiple_of(BLOCK),
            cols => cols,
        };
        let mut units = Vec::new();
        for _ in 0..self.rng.pick(&[1, 2, 2, 3]) {
            units.push(self.expert(n, topk, experts, inner)?);
        }
        let mut h = self.meeting(&units, units[0])?;
        if self.cols(h) != self.hidden || !self.rng.one_in(3) {
            h = self.expert(h, topk, experts, self.hidden)?;
        }
        let sum = self.b.node("sum", ExpertSum, &[h, topk], &[])?;
        match self.rng.one_in(4) {
            true => self.map("moe", &[sum, x]),
            false => self.b.node("moe", Elementwise::add(), &[x, sum], &[]),
        }
    }

    /// Row-wise ops on the stream.
    fn rows(&mut self, x: ValueId) -> Made {
        let mut values = vec![x];
        for _ in 0..2 + self.rng.below(4) {
            let (a, b) = (self.rng.pick(&values), self.rng.pick(&values));
            values.push(match self.rng.below(4) {
                0 => self.norm(a)?,
                1 => self.b.node("row_sum", Elementwise::add(), &[a, b], &[])?,
                2 => self.map("row", &[a])?,
                _ => self.map("row", &[a, b])?,
            });
        }
        // All of them count, and none grows beyond bounds.
        let mut y = self.norm(values[values.len() - 1])?;
        for value in &values[1..values.len() - 1] {
            let n = self.norm(*value)?;
            y = self.b.node("row_out", Elementwise::add(), &[y, n], &[])?;
        }
        self.b.node("row_stream", Elementwise::add(), &[x, y], &[])
    }

    /// A result back into the stream: through a matrix, or as it is where its columns are the stream's.
    fn back(&mut self, value: ValueId, x: ValueId) -> Made {
        let direct = self.cols(value) == self.hidden && self.rng.one_in(2);
        let value = if direct { value } else { self.linear("down", value, self.hidden)? };
        match self.rng.below(4) {
            0 => self.map("stream", &[value, x]),
            _ => self.b.node("stream", Elementwise::add(), &[x, value], &[]),
        }
    }

    fn cols(&self, value: ValueId) -> usize {
        self.b.graph().value(value).ty.cols()
    }

    fn norm(&mut self, x: ValueId) -> Made {
        let cols = self.cols(x);
        let weight = self.vector("norm.weight", cols);
        self.b.node("norm", Norm { eps: 1e-5, of: Normed::Row }, &[x], &[weight])
    }

    /// An expression of the inputs, whose results are small.
    fn map(&mut self, name: &str, inputs: &[ValueId]) -> Made {
        let names: Vec<String> = (0..inputs.len()).map(|i| format!("x{i}")).collect();
        let vars: Vec<&str> = names.iter().map(String::as_str).collect();
        let one =
            ["silu(x0)", "x0 * 0.5", "gelu(x0)", "clamp(x0, -2, 2)", "max(x0, 0) * max(x0, 0)", "tanh(x0)"];
        let first = self.rng.pick(&one);
        let more =
            ["{} * sigmoid({x})", "{} + 0.25 * {x}", "{} * (0.5 + tanh({x}))", "select({x} < 0, {}, {x})"];
        let mut text = first.to_owned();
        for var in &vars[1..] {
            text = self.rng.pick(&more).replace("{}", &format!("({text})")).replace("{x}", var);
        }
        let expr = expr::parse(&text, &vars).expect("a right expression");
        self.b.node(name, Elementwise::of(expr), inputs, &[])
    }

    fn linear(&mut self, name: &str, x: ValueId, n: usize) -> Made {
        let from = format!("{name}.weight");
        let shape = [n, self.cols(x)];
        let matrix = self.b.tensor(&from, Role::Matrix, &shape, self.format, source(&from));
        let matrix = self.named(matrix);
        let mut tensors = vec![matrix];
        if self.rng.one_in(2) {
            tensors.push(self.vector(&format!("{name}.bias"), n));
        }
        self.b.node(name, MatMul::LINEAR, &[x], &tensors)
    }

    fn expert(&mut self, x: ValueId, routing: ValueId, experts: usize, n: usize) -> Made {
        let shape = [experts, n, self.cols(x)];
        let format = self.experts_format;
        let scales = (format == WeightFormat::Mxfp4).then(|| "expert.scales".to_owned());
        let data =
            TensorSource { name: "expert.weight".into(), scales, rows: RowSelect::ALL, transposed: false };
        let matrix = self.b.tensor("expert.weight", Role::ExpertMatrix, &shape, format, data);
        let mut tensors = vec![self.named(matrix)];
        if self.rng.one_in(2) {
            let bias = source("expert.bias");
            let bias = self.b.tensor("expert.bias", Role::ExpertVector, &shape[..2], self.format, bias);
            tensors.push(self.named(bias));
        }
        self.b.node("expert", MatMul::EXPERT_LINEAR, &[x, routing], &tensors)
    }

    fn vector(&mut self, name: &str, n: usize) -> TensorId {
        let vector = self.b.tensor(name, Role::Vector, &[n], self.format, source(name));
        self.named(vector)
    }

    /// A tensor is in the checkpoint under its own name, so that every one has an adapter of its own.
    fn named(&mut self, tensor: TensorId) -> TensorId {
        self.b.name_source(tensor);
        tensor
    }
}

fn source(name: &str) -> TensorSource {
    TensorSource { name: name.into(), scales: None, rows: RowSelect::ALL, transposed: false }
}
