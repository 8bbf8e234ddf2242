//! Dense models: llama files, which converted Mistral models are too, and qwen2 and qwen3 files.

use super::super::dense::{self, Dense, Windows};
use super::{GgufImport, extend};
use kernmill_checkpoint::Result;
use serde_json::json;

impl GgufImport<'_> {
    /// A model of the published class `class`. Which biases there are, the file's tensors say.
    pub(super) fn dense(mut self, class: &'static str, name: &str) -> Result<String> {
        let mut config = self.common()?;
        let rope_scaling = match self.arch {
            "llama" => self.rope_scaling_or_factors()?,
            _ => {
                self.refuse_rope_factors()?;
                self.rope_scaling(true)?.0
            }
        };
        let own =
            json!({"intermediate_size": self.require("feed_forward_length")?, "rope_scaling": rope_scaling});
        extend(&mut config, own);
        let described = Dense {
            class,
            qkv_bias: self.has_bias("attn_q"),
            head_norms: self.arch == "qwen3",
            o_bias: self.has_bias("attn_output"),
            mlp_bias: self.has_bias("ffn_gate"),
            windows: Windows::None,
            f32_inputs: self.f32_inputs(),
        };
        let layer = self.dense_tensors(&described);
        let write = |name: &str, config: &_, tensors: &_| dense::write(name, config, tensors, &described);
        self.finish(write, name, config, layer)
    }

    /// Products behind the last attention whose matrices the file has in blocks. Blocks lose nothing, so that
    /// rounding the input would be all that is lost, and behind the last attention nothing makes it good.
    fn f32_inputs(&self) -> Vec<&'static str> {
        let last = |stored: &str| format!("blk.{}.{stored}.weight", self.layers - 1);
        let products = [
            ("gate", last("ffn_gate")),
            ("up", last("ffn_up")),
            ("down", last("ffn_down")),
            ("logits", self.unembedding().to_owned()),
        ];
        let in_blocks =
            |tensor: &str| self.gguf.info(tensor).is_some_and(|info| info.kind.encoding.format().is_some());
        products.into_iter().filter(|(_, tensor)| in_blocks(tensor)).map(|(product, _)| product).collect()
    }

    fn dense_tensors(&self, dense: &Dense) -> Vec<(&'static str, String)> {
        let mut layer = vec![("attn_norm", self.layer("attn_norm.weight", "hidden"))];
        for (name, bias_name, stored, shape, bias) in [
            ("q", "q_bias", "attn_q", "q_dim hidden", dense.qkv_bias),
            ("k", "k_bias", "attn_k", "kv_dim hidden", dense.qkv_bias),
            ("v", "v_bias", "attn_v", "kv_dim hidden", dense.qkv_bias),
            ("o", "o_bias", "attn_output", "hidden q_dim", dense.o_bias),
            ("gate", "gate_bias", "ffn_gate", "mlp_hidden hidden", dense.mlp_bias),
            ("up", "up_bias", "ffn_up", "mlp_hidden hidden", dense.mlp_bias),
            ("down", "down_bias", "ffn_down", "hidden mlp_hidden", dense.mlp_bias),
        ] {
            layer.push((name, self.layer(&format!("{stored}.weight"), shape)));
            if bias {
                let rows = shape.split(' ').next().unwrap_or_default();
                layer.push((bias_name, self.layer(&format!("{stored}.bias"), rows)));
            }
        }
        if dense.head_norms {
            layer.push(("q_norm", self.layer("attn_q_norm.weight", "head_dim")));
            layer.push(("k_norm", self.layer("attn_k_norm.weight", "head_dim")));
        }
        layer.push(("mlp_norm", self.layer("ffn_norm.weight", "hidden")));
        layer
    }
}
