//! The names of a graph's tensors in GGUF files.

use crate::ir::{Graph, RowSelect, Tensor};

pub(super) const EMBEDDINGS: &str = "token_embd.weight";
pub(super) const UNEMBEDDING: &str = "output.weight";
const FINAL_NORM: &str = "output_norm.weight";
/// Tensors outside of the layers, as published and as GGUF files have them; some are called the same.
const GLOBAL: [(&str, &str); 5] = [
    ("model.norm.weight", FINAL_NORM),
    ("lm_head.weight", UNEMBEDDING),
    (EMBEDDINGS, EMBEDDINGS),
    (FINAL_NORM, FINAL_NORM),
    (UNEMBEDDING, UNEMBEDDING),
];
/// Modules of a layer, whose weight and bias are called after them in both.
const MODULES: [(&str, &str); 11] = [
    ("input_layernorm", "attn_norm"),
    ("self_attn.q_proj", "attn_q"),
    ("self_attn.k_proj", "attn_k"),
    ("self_attn.v_proj", "attn_v"),
    ("self_attn.o_proj", "attn_output"),
    ("self_attn.q_norm", "attn_q_norm"),
    ("self_attn.k_norm", "attn_k_norm"),
    ("mlp.gate_proj", "ffn_gate"),
    ("mlp.up_proj", "ffn_up"),
    ("mlp.down_proj", "ffn_down"),
    ("mlp.router", "ffn_gate_inp"),
];
const EXPERTS: &str = "mlp.experts.";
/// The sinks of attention, which only mixtures have.
const SINKS: &str = "self_attn.sinks";

/// Names by graph.
pub(super) struct TensorNames<'a> {
    /// The tensor that the graph looks tokens up in.
    table: &'a str,
    /// Whether the layers' second norm is called as in files of mixtures.
    is_mixture: bool,
}

impl<'a> TensorNames<'a> {
    pub(super) fn of(graph: &'a Graph) -> Option<TensorNames<'a>> {
        let embed = graph.nodes.iter().find(|node| node.op.is_embed())?;
        let table = &graph.tensors[embed.tensors.first()?.0 as usize].source.name;
        let is_mixture = graph.nodes.iter().any(|node| node.op.router().is_some());
        Some(TensorNames { table, is_mixture })
    }

    /// The name of a tensor, and its layer; `None` if files have no name for it.
    pub(super) fn get(&self, tensor: &Tensor) -> Option<(String, Option<usize>)> {
        let name = tensor.source.name.as_str();
        if name == self.table {
            return Some((EMBEDDINGS.to_owned(), None));
        }
        if let Some((_, own)) = GLOBAL.iter().find(|(published, _)| *published == name) {
            return Some(((*own).to_owned(), None));
        }
        let in_layer = |prefix: &str| {
            let (layer, rest) = name.strip_prefix(prefix)?.split_once('.')?;
            Some((layer.parse::<usize>().ok()?, rest))
        };
        let (layer, own) = match in_layer("blk.") {
            Some((layer, own)) => (layer, own.to_owned()),
            None => {
                let (layer, published) = in_layer("model.layers.")?;
                (layer, self.in_layer(published, tensor.source.rows)?)
            }
        };
        Some((format!("blk.{layer}.{own}"), Some(layer)))
    }

    /// The name within a layer. Published experts have rows of gate and up by turns in one matrix.
    fn in_layer(&self, published: &str, rows: RowSelect) -> Option<String> {
        if let Some(experts) = published.strip_prefix(EXPERTS) {
            let (matrix, end) = match experts.strip_suffix("_bias") {
                Some(matrix) => (matrix, "bias"),
                None => (experts.strip_suffix("_blocks").unwrap_or(experts), "weight"),
            };
            let own = match (matrix, rows) {
                ("gate_up_proj", RowSelect::EVEN) => "ffn_gate_exps",
                ("gate_up_proj", RowSelect::ODD) => "ffn_up_exps",
                ("down_proj", RowSelect::ALL) => "ffn_down_exps",
                _ => return None,
            };
            return Some(format!("{own}.{end}"));
        }
        let own = match published {
            _ if rows != RowSelect::ALL => return None,
            SINKS => "attn_sinks.weight",
            "post_attention_layernorm.weight" if self.is_mixture => "post_attention_norm.weight",
            "post_attention_layernorm.weight" => "ffn_norm.weight",
            _ => {
                let (module, end) = published.rsplit_once('.')?;
                let (_, own) = MODULES.iter().find(|(published, _)| *published == module)?;
                return Some(format!("{own}.{end}"));
            }
        };
        Some(own.to_owned())
    }
}
