//! An encoder as its class describes it, and its spec.

use super::config::{ModelConfig, bad, head_dim, unsupported};
use super::error::Result;
use super::nodes::IN_TWO_TERMS;
use super::writer::{TomlWriter, quote};

/// Tensors of an encoder: names in the spec, in checkpoints and in GGUF files, and dims.
const TENSORS: [EncoderTensor<'static>; 21] = [
    of("embed", "embeddings.word_embeddings.weight", "token_embd.weight", "vocab hidden"),
    of(
        "position_embed",
        "embeddings.position_embeddings.weight",
        "position_embd.weight",
        "max_context hidden",
    ),
    of("type_embed", "embeddings.token_type_embeddings.weight", "token_types.weight", "hidden"),
    of("embed_norm", "embeddings.LayerNorm.weight", "token_embd_norm.weight", "hidden"),
    of("embed_norm_bias", "embeddings.LayerNorm.bias", "token_embd_norm.bias", "hidden"),
    in_layer("q", "attention.self.query.weight", "attn_q.weight", "hidden hidden"),
    in_layer("q_bias", "attention.self.query.bias", "attn_q.bias", "hidden"),
    in_layer("k", "attention.self.key.weight", "attn_k.weight", "hidden hidden"),
    in_layer("k_bias", "attention.self.key.bias", "attn_k.bias", "hidden"),
    in_layer("v", "attention.self.value.weight", "attn_v.weight", "hidden hidden"),
    in_layer("v_bias", "attention.self.value.bias", "attn_v.bias", "hidden"),
    in_layer("o", "attention.output.dense.weight", "attn_output.weight", "hidden hidden"),
    in_layer("o_bias", "attention.output.dense.bias", "attn_output.bias", "hidden"),
    in_layer("attn_norm", "attention.output.LayerNorm.weight", "attn_output_norm.weight", "hidden"),
    in_layer("attn_norm_bias", "attention.output.LayerNorm.bias", "attn_output_norm.bias", "hidden"),
    in_layer("up", "intermediate.dense.weight", "ffn_up.weight", "mlp_hidden hidden"),
    in_layer("up_bias", "intermediate.dense.bias", "ffn_up.bias", "mlp_hidden"),
    in_layer("down", "output.dense.weight", "ffn_down.weight", "hidden mlp_hidden"),
    in_layer("down_bias", "output.dense.bias", "ffn_down.bias", "hidden"),
    in_layer("mlp_norm", "output.LayerNorm.weight", "layer_output_norm.weight", "hidden"),
    in_layer("mlp_norm_bias", "output.LayerNorm.bias", "layer_output_norm.bias", "hidden"),
];

/// A tensor of an encoder, or of each of its layers.
pub(super) struct EncoderTensor<'a> {
    /// Name in the spec.
    pub(super) name: &'a str,
    /// Name in checkpoints, within its layer where it is of one.
    pub(super) published: &'a str,
    /// Name in GGUF files, within its layer where it is of one.
    pub(super) gguf: &'a str,
    /// Dims, with spaces between.
    pub(super) shape: &'a str,
    /// How the names begin of what is in a layer of a checkpoint; empty for a tensor outside of the layers.
    pub(super) place: &'static str,
}

const fn of(
    name: &'static str,
    published: &'static str,
    gguf: &'static str,
    shape: &'static str,
) -> EncoderTensor<'static> {
    EncoderTensor { name, published, gguf, shape, place: "" }
}

const fn in_layer(
    name: &'static str,
    published: &'static str,
    gguf: &'static str,
    shape: &'static str,
) -> EncoderTensor<'static> {
    EncoderTensor { place: "encoder.layer.{layer}.", ..of(name, published, gguf, shape) }
}

/// The file that an encoder is read from.
pub(super) trait EncoderFile {
    /// A tensor, as the spec writes it, with further keys, each behind a comma.
    fn encoder_tensor(&self, tensor: &EncoderTensor<'_>, keys: &str) -> String;

    /// How the names of the tensors begin that are of one of these heads.
    fn heads(&self, of: &[&str]) -> Vec<String>;
}

/// All that the spec of an encoder says beside its numbers.
pub(super) struct EncoderModel {
    /// Name of its class, for the first line.
    pub(super) class: &'static str,
    /// Rows of the table of positions that stand for no position of a text, before those that do.
    pub(super) first_position: u64,
}

impl EncoderModel {
    /// The spec of the model called `name`, with the tensors of `file`.
    pub(super) fn spec(&self, name: &str, config: &ModelConfig, file: &dyn EncoderFile) -> Result<String> {
        for key in ["is_decoder", "add_cross_attention"] {
            if config.flag(key, false)? {
                return unsupported(format!("`{key}` in a {}; supported is: false", self.class));
            }
        }
        if let Some(other) = config.text("position_embedding_type")?.filter(|&kind| kind != "absolute") {
            return unsupported(format!("`position_embedding_type` `{other}`; supported is: absolute"));
        }
        let number = |key: &str| config.require_whole(&[key]);
        let (hidden, heads) = (number("hidden_size")?, number("num_attention_heads")?);
        head_dim(config)?;
        let (rows, first) = (number("max_position_embeddings")?, self.first_position);
        let Some(context) = rows.checked_sub(first).filter(|&context| context > 0) else {
            return bad(format!("`max_position_embeddings` is {rows}: expected more than {first}"));
        };
        let types = number("type_vocab_size")?;
        let activation = activation(config)?;
        let mut w = TomlWriter::new(name, &format!("encoder ({})", self.class));
        model(&mut w, name, &file.heads(&["pooler.", "cls.", "lm_head."]));
        w.section("dims", "");
        w.keys(&[
            ("vocab", number("vocab_size")?.to_string()),
            ("max_context", context.to_string()),
            ("hidden", hidden.to_string()),
            ("layers", number("num_hidden_layers")?.to_string()),
            ("heads", heads.to_string()),
            ("mlp_hidden", number("intermediate_size")?.to_string()),
            ("norm_eps", format!("{:?}", config.require_positive("layer_norm_eps")?)),
        ]);
        let text = |tensor: &EncoderTensor<'static>| {
            let keys = match tensor.name {
                "position_embed" if first > 0 => {
                    format!(", rows = {{ of = {rows}, take = \"{first}..{rows}\" }}")
                }
                // A text is of the first type.
                "type_embed" if types > 1 => {
                    format!(", rows = {{ of = \"{types} * hidden\", take = \"0..hidden\" }}")
                }
                _ => String::new(),
            };
            (tensor.name, file.encoder_tensor(tensor, &keys))
        };
        let (layer, global): (Vec<_>, Vec<_>) = TENSORS.iter().partition(|tensor| !tensor.place.is_empty());
        w.section("tensors", "");
        w.keys(&global.into_iter().map(text).collect::<Vec<_>>());
        w.section("before", "");
        w.nodes(&[
            "out = \"word\", op = \"embed\", table = \"embed\"".into(),
            "out = \"place\", op = \"embed\", table = \"position_embed\", by = \"position\"".into(),
            "out = \"embedded\", op = \"elementwise\", inputs = [\"word\", \"place\"], \
             vectors = [\"type_embed\"], expr = \"word + type_embed + place\""
                .into(),
            norm("x", "embedded", "embed_norm"),
        ]);
        w.section("layer", "One layer; `x` enters it, and `mlp_normed` is the next layer's `x`.");
        w.keys(&[("count", quote("layers")), ("carry", "{ x = \"mlp_normed\" }".into())]);
        w.nodes(&[
            linear("q", "x"),
            linear("k", "x"),
            linear("v", "x") + IN_TWO_TERMS,
            "out = \"attn\", op = \"attention\", q = \"q\", k = \"k\", v = \"v\", heads = \"heads\", \
             kv_heads = \"heads\", causal = false"
                .into(),
            linear("o", "attn"),
            "out = \"attn_residual\", op = \"add\", inputs = [\"x\", \"o\"]".into(),
            norm("attn_normed", "attn_residual", "attn_norm"),
            linear("up", "attn_normed"),
            format!("out = \"act\", op = \"elementwise\", inputs = [\"up\"], expr = \"{activation}\""),
            linear("down", "act"),
            "out = \"mlp_residual\", op = \"add\", inputs = [\"attn_normed\", \"down\"]".into(),
            norm("mlp_normed", "mlp_residual", "mlp_norm"),
        ]);
        w.section("layer.tensors", "");
        w.keys(&layer.into_iter().map(text).collect::<Vec<_>>());
        w.section("after", "");
        w.nodes(&[select_rows(), vectors("last")]);
        Ok(w.finish())
    }
}

/// The section of the model called `name`, of whose checkpoint something is left out.
pub(super) fn model(w: &mut TomlWriter, name: &str, left_out: &[String]) {
    w.section("model", "");
    w.keys(&[("name", quote(name)), ("vocab", quote("vocab")), ("max_context", quote("max_context"))]);
    if !left_out.is_empty() {
        w.line("# Tensors of the checkpoint that are no part of this model.");
        w.keys(&[("left_out", format!("{left_out:?}"))]);
    }
}

/// The node behind the layers.
pub(super) fn select_rows() -> String {
    "out = \"last\", op = \"select_rows\", input = \"x\"".into()
}

/// The node that makes vectors of rows. A model's other files may say another pooling.
pub(super) fn vectors(input: &str) -> String {
    format!("out = \"vectors\", op = \"embedding\", input = \"{input}\", pool = \"mean\", normalise = false")
}

/// The MLP's activation, as an expression of `up`.
fn activation(config: &ModelConfig) -> Result<&'static str> {
    match config.text("hidden_act")? {
        None | Some("gelu") => Ok("gelu_erf(up)"),
        Some("gelu_new" | "gelu_pytorch_tanh") => Ok("gelu(up)"),
        Some("relu") => Ok("max(up, 0)"),
        Some(other) => unsupported(format!(
            "activation `{other}`; supported are: gelu, gelu_new, gelu_pytorch_tanh, relu"
        )),
    }
}

fn norm(out: &str, input: &str, weight: &str) -> String {
    format!(
        "out = \"{out}\", op = \"layer_norm\", input = \"{input}\", weight = \"{weight}\", \
         bias = \"{weight}_bias\", eps = \"norm_eps\""
    )
}

fn linear(out: &str, input: &str) -> String {
    format!(
        "out = \"{out}\", op = \"linear\", input = \"{input}\", weight = \"{out}\", bias = \"{out}_bias\""
    )
}
