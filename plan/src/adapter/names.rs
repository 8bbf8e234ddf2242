//! Names of a model's matrices in published checkpoints, and so in PEFT, whatever kind of file its tensors
//! come from.

/// A parameter of a published model, and which of its rows a tensor has: row i of the tensor is row `first +
/// i * step` of the parameter.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Published {
    /// Name, such as `model.layers.3.mlp.router.weight` or `model.layers.3.mlp.experts.down_proj`.
    pub parameter: String,
    /// Row of the parameter that is the tensor's first.
    pub first: usize,
    /// Rows of the parameter from one row of the tensor to the next; as many tensors share the parameter.
    pub step: usize,
}

/// The published name of each tensor of GGUF files, with the first of its rows there and the step between
/// them.
const GGUF: [(&str, &str, usize, usize); 11] = [
    ("attn_q.weight", "self_attn.q_proj.weight", 0, 1),
    ("attn_k.weight", "self_attn.k_proj.weight", 0, 1),
    ("attn_v.weight", "self_attn.v_proj.weight", 0, 1),
    ("attn_output.weight", "self_attn.o_proj.weight", 0, 1),
    ("ffn_gate.weight", "mlp.gate_proj.weight", 0, 1),
    ("ffn_up.weight", "mlp.up_proj.weight", 0, 1),
    ("ffn_down.weight", "mlp.down_proj.weight", 0, 1),
    ("ffn_gate_inp.weight", "mlp.router.weight", 0, 1),
    ("ffn_gate_exps.weight", "mlp.experts.gate_up_proj", 0, 2),
    ("ffn_up_exps.weight", "mlp.experts.gate_up_proj", 1, 2),
    ("ffn_down_exps.weight", "mlp.experts.down_proj", 0, 1),
];

/// The published parameter of a checkpoint's tensor. A GGUF file has gate and up of experts apart, PEFT has
/// them in one; blocks in MXFP4 are those of the matrix.
///
/// ```
/// # use kernmill_plan::adapter::published;
/// let up = published("blk.3.ffn_up_exps.weight");
/// assert_eq!((&*up.parameter, up.first, up.step), ("model.layers.3.mlp.experts.gate_up_proj", 1, 2));
/// ```
pub fn published(tensor: &str) -> Published {
    let gguf = tensor.strip_prefix("blk.").and_then(|rest| rest.split_once('.'));
    if let Some((layer, rest)) = gguf
        && let Some((_, name, first, step)) = GGUF.iter().find(|(gguf, ..)| *gguf == rest)
    {
        return Published { parameter: format!("model.layers.{layer}.{name}"), first: *first, step: *step };
    }
    Published { parameter: tensor.strip_suffix("_blocks").unwrap_or(tensor).to_owned(), first: 0, step: 1 }
}
