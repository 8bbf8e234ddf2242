//! How much an error of a matrix changes what the model says, by the place of the matrix.
//!
//! Relative errors alone do not rank matrices: an error of the unembedding is in the logits at once, one of a
//! projection to queries hardly is.

const EMBEDDINGS: &str = "token_embd.weight";

/// Divergence in nats for a squared relative error of 1, by a part of the name: geometric means of what was
/// measured on SmolLM2 135M and Gemma 3 270M, with noise of 5 % of the weights in all matrices of a kind, for
/// each of them (docs/user/quantize.md).
const BY_NAME: [(&str, f64); 10] = [
    ("attn_qkv", 0.44),
    ("attn_q", 0.12),
    ("attn_k", 0.12),
    ("attn_v", 0.44),
    ("attn_output", 0.13),
    ("ffn_gate_up", 0.35),
    ("ffn_down", 0.6),
    ("ffn_up", 0.35),
    ("ffn_gate", 0.16),
    (EMBEDDINGS, 0.3),
];
const OTHERS: f64 = 0.2;
const UNEMBEDDING: f64 = 18.0;
/// The last layer's matrices, beside those of the others.
const LAST_LAYER: f64 = 4.0;

/// The sensitivity of a tensor; `layer` is its layer and how many there are.
pub(crate) fn sensitivity(name: &str, layer: Option<(usize, usize)>, is_output: bool) -> f64 {
    if is_output {
        return UNEMBEDDING;
    }
    let of_name = BY_NAME.iter().find(|(part, _)| name.contains(part)).map_or(OTHERS, |(_, of)| *of);
    let is_last = layer.is_some_and(|(layer, layers)| layers > 1 && layer + 1 == layers);
    of_name * if is_last { LAST_LAYER } else { 1.0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_unembedding_counts_most_and_longer_names_go_before() {
        assert_eq!(sensitivity("output.weight", None, true), UNEMBEDDING);
        assert_eq!(sensitivity(EMBEDDINGS, None, true), UNEMBEDDING);
        assert_eq!(sensitivity(EMBEDDINGS, None, false), 0.3);
        assert_eq!(sensitivity("blk.0.attn_qkv.weight", Some((0, 4)), false), 0.44);
        assert_eq!(sensitivity("blk.0.attn_q.weight", Some((0, 4)), false), 0.12);
        assert_eq!(sensitivity("blk.3.ffn_down_exps.weight", Some((3, 4)), false), 2.4);
    }
}
