//! The metadata of a GGUF file, from the graph of its model and its tokenizer.

use super::names::TensorNames;
use crate::ir::rope::inv_freq;
use crate::ir::{Attention, Factor, Graph, MatMul, Op, RopeParameters, RopeScaling, TensorId};
use crate::synth::tokenizer::MadeTokenizer;
use kernmill_checkpoint::gguf::NewGguf;

/// Version of the arithmetic of blocks.
const QUANTIZATION_VERSION: u32 = 2;
/// Types of tokens: of the vocabulary, and those that are not shown.
const NORMAL: i32 = 1;
const CONTROL: i32 = 3;

/// The parts of a graph that metadata states.
struct Described<'a> {
    graph: &'a Graph,
    attention: Vec<&'a Attention>,
    /// RoPE of the layers that see everything, which has the largest base.
    rope: &'a RopeParameters,
    eps: f32,
    hidden: u32,
}

impl<'a> Described<'a> {
    fn of(graph: &'a Graph) -> Option<Described<'a>> {
        let attention = graph.nodes.iter().filter_map(|node| node.op.attention());
        let eps = graph.nodes.iter().find_map(|node| Some(node.op.norm()?.eps));
        let embed = graph.nodes.iter().find(|node| node.op.is_embed())?;
        let table = &graph.tensors[embed.tensors.first()?.0 as usize];
        Some(Described {
            graph,
            attention: attention.collect(),
            rope: graph.ropes.iter().max_by(|a, b| a.theta.total_cmp(&b.theta))?,
            eps: eps?,
            hidden: *table.shape.last()? as u32,
        })
    }

    /// Dimensions of the first layer's tensor of this name.
    fn shape(&self, name: &str) -> Option<&[usize]> {
        let names = TensorNames::of(self.graph)?;
        let is_it = |own: Option<(String, _)>| own.is_some_and(|(own, _)| own == format!("blk.0.{name}"));
        let found = self.graph.tensors.iter().find(|tensor| is_it(names.get(tensor)));
        found.map(|tensor| tensor.shape.as_slice())
    }

    /// The architecture: the one that has such tensors.
    fn architecture(&self) -> &'static str {
        let has = |name| self.shape(name).is_some();
        match (has("attn_sinks.weight"), has("attn_q.bias") && !has("attn_output.bias")) {
            (true, _) => "gpt-oss",
            _ if has("attn_q_norm.weight") && has("post_ffw_norm.weight") => "gemma3",
            _ if has("attn_q_norm.weight") && has("ffn_gate_exps.weight") => "qwen3moe",
            _ if has("attn_q_norm.weight") => "qwen3",
            (false, true) => "qwen2",
            (false, false) => "llama",
        }
    }

    /// The keys under the architecture's name.
    fn keys(&self, set: &mut dyn FnMut(&str, Key)) -> Option<()> {
        let attention = self.attention.first()?;
        let heads = [attention.heads, attention.kv_heads, attention.head_dim].map(|n| Key::Whole(n as u32));
        let [heads, kv_heads, head_dim] = heads;
        set("block_count", Key::Whole(self.attention.len() as u32));
        set("context_length", Key::Whole(self.graph.max_context as u32));
        set("embedding_length", Key::Whole(self.hidden));
        set("attention.head_count", heads);
        set("attention.head_count_kv", kv_heads);
        set("attention.key_length", head_dim);
        set("attention.value_length", head_dim);
        set("attention.layer_norm_rms_epsilon", Key::Number(self.eps));
        set("vocab_size", Key::Whole(self.graph.vocab as u32));
        set("rope.dimension_count", head_dim);
        set("rope.freq_base", Key::Number(self.rope.theta as f32));
        let local = self.graph.ropes.iter().find(|rope| rope.theta < self.rope.theta);
        local.into_iter().for_each(|rope| set("rope.freq_base_swa", Key::Number(rope.theta as f32)));
        let window = self.attention.iter().find_map(|attention| attention.window);
        window.into_iter().for_each(|window| set("attention.sliding_window", Key::Whole(window)));
        match self.rope.scaling {
            // Llama 3's is a tensor.
            RopeScaling::Plain | RopeScaling::Llama3 { .. } => {}
            RopeScaling::Linear { factor } => {
                set("rope.scaling.type", Key::Text("linear"));
                set("rope.scaling.factor", Key::Number(factor as f32));
            }
            RopeScaling::Yarn { factor, beta_fast, beta_slow, original_context, .. } => {
                set("rope.scaling.type", Key::Text("yarn"));
                set("rope.scaling.factor", Key::Number(factor as f32));
                set("rope.scaling.original_context_length", Key::Whole(original_context as u32));
                set("rope.scaling.yarn_beta_fast", Key::Number(beta_fast as f32));
                set("rope.scaling.yarn_beta_slow", Key::Number(beta_slow as f32));
            }
        }
        let Some(&[experts, rows, _]) = self.shape("ffn_gate_exps.weight") else {
            set("feed_forward_length", Key::Whole(*self.shape("ffn_gate.weight")?.first()? as u32));
            return Some(());
        };
        let used = self.graph.nodes.iter().find_map(|node| Some(node.op.router()?.k))?;
        set("feed_forward_length", Key::Whole(rows as u32));
        set("expert_feed_forward_length", Key::Whole(rows as u32));
        set("expert_count", Key::Whole(experts as u32));
        set("expert_used_count", Key::Whole(used));
        Some(())
    }
}

/// The value of a key.
#[derive(Clone, Copy)]
enum Key {
    Whole(u32),
    Number(f32),
    Text(&'static str),
}

/// The metadata of a file of `graph`, whose types have the number `file_type`; `None` if the graph lacks what
/// every architecture has.
pub(super) fn metadata(graph: &Graph, file_type: Option<u32>) -> Option<NewGguf> {
    let described = Described::of(graph)?;
    let arch = described.architecture();
    let mut file = NewGguf::default();
    file.set("general.architecture", arch);
    file.set("general.type", "model");
    file.set("general.name", graph.name.as_str());
    file.set("general.quantization_version", QUANTIZATION_VERSION);
    if let Some(file_type) = file_type {
        file.set("general.file_type", file_type);
    }
    described.keys(&mut |key, value| {
        let key = format!("{arch}.{key}");
        match value {
            Key::Whole(number) => file.set(&key, number),
            Key::Number(number) => file.set(&key, number),
            Key::Text(text) => file.set(&key, text),
        }
    })?;
    tokenizer(&mut file, &MadeTokenizer::of(graph.vocab));
    Some(file)
}

fn tokenizer(file: &mut NewGguf, made: &MadeTokenizer) {
    let tokens: Vec<&str> = made.tokens.iter().map(String::as_str).collect();
    let merges: Vec<String> = made.merges.iter().map(|(left, right)| format!("{left} {right}")).collect();
    let merges: Vec<&str> = merges.iter().map(String::as_str).collect();
    let end = made.end_of_text();
    let kind = |id| if Some(id) == end { CONTROL } else { NORMAL };
    file.set("tokenizer.ggml.model", "gpt2");
    file.set("tokenizer.ggml.pre", "gpt-2");
    file.set("tokenizer.ggml.tokens", &tokens[..]);
    file.set("tokenizer.ggml.token_type", &(0..tokens.len()).map(kind).collect::<Vec<_>>()[..]);
    if !merges.is_empty() {
        file.set("tokenizer.ggml.merges", &merges[..]);
    }
    if let Some(end) = end {
        file.set("tokenizer.ggml.bos_token_id", end as u32);
        file.set("tokenizer.ggml.eos_token_id", end as u32);
    }
    file.set("tokenizer.ggml.add_bos_token", false);
}

/// Divisors of RoPE's frequencies, where a file states them in a tensor.
pub(super) fn rope_factors(graph: &Graph) -> Option<Vec<f32>> {
    let rope = graph.ropes.first()?;
    let RopeScaling::Llama3 { .. } = rope.scaling else { return None };
    let (plain, _) = inv_freq(&RopeParameters { scaling: RopeScaling::Plain, ..rope.clone() });
    let (scaled, _) = inv_freq(rope);
    Some(plain.iter().zip(&scaled).map(|(plain, scaled)| plain / scaled).collect())
}

/// Whether `b`, whose tensors are called as in GGUF files, computes what `a` does, however tensors are
/// stored, and whichever inputs a preset may round.
pub(super) fn is_same<'a>(a: &'a Graph, b: &'a Graph) -> bool {
    let op = |op: &Op| match op.matmul() {
        Some(MatMul { x: Factor::F32(_), rows }) => MatMul { rows, ..MatMul::LINEAR }.into(),
        _ => op.clone(),
    };
    let Some(names) = TensorNames::of(a) else { return false };
    let tensor = |graph: &'a Graph, id: &TensorId| &graph.tensors[id.0 as usize];
    let same_tensor = |(x, y): (&TensorId, &TensorId)| {
        let (x, y) = (tensor(a, x), tensor(b, y));
        (x.role, &x.shape) == (y.role, &y.shape)
            && names.get(x).is_some_and(|(name, _)| name == y.source.name)
    };
    (a.vocab, a.max_context, a.output, &a.ropes) == (b.vocab, b.max_context, b.output, &b.ropes)
        && a.nodes.len() == b.nodes.len()
        && a.nodes.iter().zip(&b.nodes).all(|(x, y)| {
            (op(&x.op), &x.inputs, x.output) == (op(&y.op), &y.inputs, y.output)
                && x.tensors.len() == y.tensors.len()
                && x.tensors.iter().zip(&y.tensors).all(same_tensor)
        })
}
