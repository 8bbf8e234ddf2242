//! The names of a graph's tensors in GGUF files.

use crate::front::import::module_in_gguf;
use crate::ir::{EXPERT, Graph, RowSelect, Tensor};

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
const EXPERTS: &str = "mlp.experts.";
/// The sinks of attention, which only GPT-OSS has.
const SINKS: &str = "self_attn.sinks";
/// A norm behind the MLP. Models with it have one behind attention, too.
const POST_NORM: &str = "post_feedforward_layernorm.weight";
/// The norm behind attention; of models without such, it is the one before the MLP.
const SECOND_NORM: &str = "post_attention_layernorm.weight";

/// Names by graph.
pub(super) struct TensorNames<'a> {
    /// The tensor that the graph looks tokens up in.
    table: &'a str,
    /// The name of [`SECOND_NORM`] in files.
    second_norm: &'static str,
}

impl<'a> TensorNames<'a> {
    pub(super) fn of(graph: &'a Graph) -> Option<TensorNames<'a>> {
        let embed = graph.nodes.iter().find(|node| node.op.is_embed())?;
        let table = &graph.tensors[embed.tensors.first()?.0 as usize].source.name;
        let ends = |end: &str| graph.tensors.iter().any(|tensor| tensor.source.name.ends_with(end));
        let is_behind = ends(SINKS) || ends(POST_NORM);
        let second_norm = if is_behind { "post_attention_norm.weight" } else { "ffn_norm.weight" };
        Some(TensorNames { table, second_norm })
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
        let grouped = published.strip_prefix(EXPERTS).filter(|rest| !rest.starts_with(EXPERT));
        if let Some(experts) = grouped {
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
            SECOND_NORM => self.second_norm,
            "pre_feedforward_layernorm.weight" => "ffn_norm.weight",
            "mlp.router.weight" => "ffn_gate_inp.weight",
            "mlp.router.bias" => "ffn_gate_inp.bias",
            _ => {
                let (module, end) = published.rsplit_once('.')?;
                return Some(format!("{}.{end}", module_in_gguf(module)?));
            }
        };
        Some(own.to_owned())
    }
}
