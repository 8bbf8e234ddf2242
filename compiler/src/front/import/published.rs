//! The `config.json` of a model, for what reads published models and not specs.
//!
//! It is guessed from the graph, and then proved: what the importer makes of it must be that very graph.

use super::gpt_oss::SIGMOID_FACTOR;
use super::{architectures, from_checkpoint};
use crate::front::spec::{self, Spec};
use crate::ir::{Attention, Graph, Role, RopeParameters, RopeScaling, Tensor, TensorId, TensorSource};
use kernmill_checkpoint::Checkpoint;
use kernmill_kernels_gen::expr::Expr;
use kernmill_plan::format::WeightFormat;
use serde_json::{Value, json};

/// Names of `hidden_act` that the importers know.
const ACTIVATIONS: [&str; 3] = ["silu", "gelu", "gelu_pytorch_tanh"];
/// Constants that are tried as the limit and the factor of the experts' activation; the published one has
/// three.
const MOST_CONSTANTS: usize = 4;
/// The first layer's tensors, which tell the architectures apart.
const FIRST: &str = "model.layers.0.";

/// The text of a `config.json` from which [`from_checkpoint`], given `checkpoint`, makes a spec of `graph`;
/// `None` if no supported architecture has such a graph. `end` is the token that ends a text, if one does.
///
/// ```no_run
/// # fn show(graph: &kernmill_compiler::ir::Graph, checkpoint: &kernmill_checkpoint::Checkpoint) {
/// if let Some(text) = kernmill_compiler::front::import::published_config(graph, checkpoint, None) {
///     println!("{text}");
/// }
/// # }
/// ```
pub fn published_config(graph: &Graph, checkpoint: &Checkpoint, end: Option<usize>) -> Option<String> {
    let config = PublishedModel::of(graph)?.config(end)?;
    let proved = |config: &Value| {
        let text = serde_json::to_string_pretty(config).ok()?;
        let spec = from_checkpoint(&graph.name, &text, checkpoint).ok()?;
        let read = spec::lower(&Spec::parse("spec", &spec).ok()?).ok()?;
        is_same(&read, graph).then_some(text + "\n")
    };
    variants(graph, &config).iter().find_map(proved)
}

/// The contents of a model of the architectures that can be imported.
struct PublishedModel<'a> {
    graph: &'a Graph,
    attention: Vec<&'a Attention>,
    embedding: &'a Tensor,
    head: &'a Tensor,
    eps: f32,
    rope: &'a RopeParameters,
}

impl<'a> PublishedModel<'a> {
    fn of(graph: &'a Graph) -> Option<PublishedModel<'a>> {
        let tensor = |id: &TensorId| &graph.tensors[id.0 as usize];
        let attention = graph.nodes.iter().filter_map(|node| node.op.attention());
        let eps = graph.nodes.iter().find_map(|node| Some(node.op.norm()?.eps));
        let head = graph.nodes.iter().find(|node| node.output == graph.output)?;
        Some(PublishedModel {
            graph,
            attention: attention.collect(),
            embedding: tensor(graph.nodes.iter().find(|node| node.op.is_embed())?.tensors.first()?),
            head: tensor(head.tensors.first()?),
            eps: eps?,
            rope: graph.ropes.first()?,
        })
    }

    /// The first layer's tensor of this name.
    fn own(&self, name: &str) -> Option<&Tensor> {
        self.graph.tensors.iter().find(|tensor| tensor.source.name.strip_prefix(FIRST) == Some(name))
    }

    fn has(&self, name: &str) -> bool {
        self.own(name).is_some()
    }

    /// All keys but those of [`variants`].
    fn config(&self, end: Option<usize>) -> Option<Value> {
        let attention = self.attention.first()?;
        let config = json!({
            "bos_token_id": end,
            "eos_token_id": end,
            "head_dim": attention.head_dim,
            "hidden_size": self.embedding.shape.last()?,
            "max_position_embeddings": self.graph.max_context,
            "num_attention_heads": attention.heads,
            "num_hidden_layers": self.attention.len(),
            "num_key_value_heads": attention.kv_heads,
            "rms_norm_eps": decimal(self.eps),
            "rope_theta": self.rope.theta,
            "rope_scaling": scaling(&self.rope.scaling),
            "tie_word_embeddings": self.embedding.source == self.head.source,
            "torch_dtype": dtype(self.embedding.stored)?,
            "vocab_size": self.graph.vocab,
        });
        let (class, own) = match self.has("self_attn.sinks") {
            true => ("GptOssForCausalLM", self.mixture()?),
            false => self.dense()?,
        };
        let known = architectures();
        let architecture = known.iter().find(|architecture| architecture.class == class)?;
        let names = json!({ "architectures": [class], "model_type": architecture.model_type });
        Some(merged(merged(config, own), names))
    }

    /// A dense model's class and what it has besides what all have.
    fn dense(&self) -> Option<(&'static str, Value)> {
        let (window, types) = self.windows();
        let (q, o) = (self.has("self_attn.q_proj.bias"), self.has("self_attn.o_proj.bias"));
        let windows =
            json!({ "sliding_window": window, "use_sliding_window": window.is_some(), "layer_types": types });
        let (class, own) = match (q && !o, window) {
            _ if self.has("self_attn.q_norm.weight") => {
                ("Qwen3ForCausalLM", merged(windows, json!({ "attention_bias": q })))
            }
            (true, _) => ("Qwen2ForCausalLM", windows),
            (false, Some(_)) => ("MistralForCausalLM", json!({ "sliding_window": window })),
            (false, None) => (
                "LlamaForCausalLM",
                json!({ "attention_bias": q, "mlp_bias": self.has("mlp.gate_proj.bias") }),
            ),
        };
        let rows = self.own("mlp.gate_proj.weight")?.shape.first()?;
        Some((class, merged(own, json!({ "intermediate_size": rows }))))
    }

    /// The first window, and the kind of each layer.
    fn windows(&self) -> (Option<u32>, Vec<&'static str>) {
        let window = self.attention.iter().find_map(|attention| attention.window);
        let kind = |a: &&Attention| {
            if a.window.is_some() { "sliding_attention" } else { "full_attention" }
        };
        (window, self.attention.iter().map(kind).collect())
    }

    /// The parts of a mixture of experts that other models lack.
    fn mixture(&self) -> Option<Value> {
        let (window, types) = self.windows();
        let top_k = self.graph.nodes.iter().find_map(|node| Some(node.op.router()?.k))?;
        let experts = self.graph.tensors.iter().find(|tensor| tensor.role == Role::ExpertMatrix)?;
        let &[count, rows, _] = experts.shape.as_slice() else { return None };
        let mut config = json!({
            "attention_bias": self.has("self_attn.q_proj.bias"),
            "experts_per_token": top_k,
            "intermediate_size": rows,
            "layer_types": types,
            "num_experts_per_tok": top_k,
            "num_local_experts": count,
            "sliding_window": window,
        });
        if experts.stored.is_stored() {
            let plain =
                ["model.layers.*.self_attn", "model.layers.*.mlp.router", "model.embed_tokens", "lm_head"];
            let section = json!({ "quant_method": "mxfp4", "modules_to_not_convert": plain });
            config = merged(config, json!({ "quantization_config": section }));
        }
        Some(config)
    }
}

/// `config` with each activation that the graph may have: a spec's expression does not say what config.json
/// calls it.
fn variants(graph: &Graph, config: &Value) -> Vec<Value> {
    let with = |own: Value| merged(config.clone(), own);
    if config.get("num_local_experts").is_none() {
        return ACTIVATIONS.map(|name| with(json!({ "hidden_act": name }))).into();
    }
    // The limit and the factor are two of a handful of constants.
    let mut found = Vec::new();
    for node in &graph.nodes {
        if let Some(expr) = node.op.def().expr() {
            constants(&expr, &mut found);
        }
    }
    found.truncate(MOST_CONSTANTS);
    let pairs = found.iter().flat_map(|limit| found.iter().map(move |alpha| (*limit, *alpha)));
    let own = pairs.map(|(limit, alpha)| match alpha == SIGMOID_FACTOR as f32 {
        true => json!({ "hidden_act": "silu", "swiglu_limit": decimal(limit) }),
        false => {
            json!({ "hidden_act": "silu", "swiglu_limit": decimal(limit), "swiglu_alpha": decimal(alpha) })
        }
    });
    own.map(with).collect()
}

/// The distinct constants above 0.
fn constants(expr: &Expr, found: &mut Vec<f32>) {
    match expr {
        Expr::Var(_) => {}
        Expr::Const(c) => {
            if *c > 0.0 && !found.contains(c) {
                found.push(*c);
            }
        }
        Expr::Unary(_, x) => constants(x, found),
        Expr::Binary(_, x, y) => [x, y].into_iter().for_each(|x| constants(x, found)),
        Expr::Select(_, parts) => parts.iter().for_each(|x| constants(x, found)),
    }
}

/// RoPE's scaling in the older spelling, which every reader knows.
fn scaling(scaling: &RopeScaling) -> Value {
    match *scaling {
        RopeScaling::Plain => json!({ "rope_type": "default" }),
        RopeScaling::Linear { factor } => json!({ "rope_type": "linear", "factor": factor }),
        RopeScaling::Yarn { factor, beta_fast, beta_slow, original_context, truncate } => json!({
            "rope_type": "yarn", "factor": factor, "beta_fast": beta_fast, "beta_slow": beta_slow,
            "original_max_position_embeddings": original_context as u64, "truncate": truncate,
        }),
        RopeScaling::Llama3 { factor, low_freq_factor, high_freq_factor, original_context } => json!({
            "rope_type": "llama3", "factor": factor, "low_freq_factor": low_freq_factor,
            "high_freq_factor": high_freq_factor, "original_max_position_embeddings": original_context as u64,
        }),
    }
}

fn dtype(stored: WeightFormat) -> Option<&'static str> {
    match stored {
        WeightFormat::Bf16 => Some("bfloat16"),
        WeightFormat::F32 => Some("float32"),
        _ => None,
    }
}

/// The shortest decimal that rounds to `x`, as a person would write it: 1e-5, not 0.000009999999747378752.
fn decimal(x: f32) -> Value {
    x.to_string().parse::<f64>().map_or(Value::Null, Value::from)
}

/// The members of both objects.
fn merged(mut object: Value, more: Value) -> Value {
    if let (Value::Object(object), Value::Object(more)) = (&mut object, more) {
        object.extend(more);
    }
    object
}

/// Whether two graphs compute the same from the same tensors, under any names.
fn is_same(a: &Graph, b: &Graph) -> bool {
    type Content<'a> = (Role, &'a [usize], WeightFormat, &'a TensorSource);
    fn content<'a>(graph: &'a Graph, ids: &[TensorId]) -> Vec<Content<'a>> {
        let tensors = ids.iter().map(|id| &graph.tensors[id.0 as usize]);
        tensors.map(|t| (t.role, t.shape.as_slice(), t.stored, &t.source)).collect()
    }
    (a.vocab, a.max_context, a.output, &a.ropes) == (b.vocab, b.max_context, b.output, &b.ropes)
        && a.nodes.len() == b.nodes.len()
        && a.nodes.iter().zip(&b.nodes).all(|(x, y)| {
            (&x.op, &x.inputs, x.output) == (&y.op, &y.inputs, y.output)
                && content(a, &x.tensors) == content(b, &y.tensors)
        })
}
