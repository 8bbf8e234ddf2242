//! `LlamaForCausalLM`: a dense model with a gated MLP.

use super::Result;
use super::config::{Config, bad, unsupported};
use super::writer::{TIED, Tensors, Writer, quote, tensor};

pub(super) fn spec(name: &str, config: &Config) -> Result<String> {
    for key in ["quantization_config", "sliding_window"] {
        if config.has(key) {
            return unsupported(format!("`{key}` in a LlamaForCausalLM"));
        }
    }
    let f = config.plain_format()?;
    let tied = config.flag("tie_word_embeddings", false)?;
    let head = if tied { "model.embed_tokens.weight" } else { "lm_head.weight" };
    let tensors = Tensors {
        global_comment: if tied { TIED } else { "" },
        global: vec![
            ("embed", tensor("model.embed_tokens.weight", "vocab hidden", f)),
            ("final_norm", tensor("model.norm.weight", "hidden", f)),
            ("lm_head", tensor(head, "vocab hidden", f)),
        ],
        layer_comment: "",
        layer: layer_tensors(config.flag("attention_bias", false)?, config.flag("mlp_bias", false)?, f),
    };
    write(name, config, &tensors)
}

/// The spec with these tensors.
pub(super) fn write(name: &str, config: &Config, tensors: &Tensors) -> Result<String> {
    let activation = match config.text("hidden_act")? {
        None | Some("silu" | "swish") => "silu(gate) * up",
        Some("gelu_pytorch_tanh" | "gelu_new") => "gelu(gate) * up",
        Some(other) => {
            return unsupported(format!("activation `{other}`; supported are: silu, gelu_pytorch_tanh"));
        }
    };
    let attention_bias = config.flag("attention_bias", false)?;
    let mlp_bias = config.flag("mlp_bias", false)?;
    let rope = config.rope()?;

    let mut w = Writer::new(name, "dense model (LlamaForCausalLM)");
    w.section("model", "");
    w.keys(&[
        ("name", quote(name)),
        ("vocab", quote("vocab")),
        ("max_context", config.require_whole(&["max_position_embeddings"])?.to_string()),
    ]);
    w.section("dims", "");
    let number = |key: &str| config.require_whole(&[key]);
    let (hidden, heads) = (number("hidden_size")?, number("num_attention_heads")?);
    w.keys(&[
        ("vocab", number("vocab_size")?.to_string()),
        ("hidden", hidden.to_string()),
        ("layers", number("num_hidden_layers")?.to_string()),
        ("heads", heads.to_string()),
        ("kv_heads", config.whole(&["num_key_value_heads"])?.unwrap_or(heads).to_string()),
        ("head_dim", head_dim(config, hidden, heads)?.to_string()),
        ("q_dim", quote("heads * head_dim")),
        ("kv_dim", quote("kv_heads * head_dim")),
        ("mlp_hidden", number("intermediate_size")?.to_string()),
        ("norm_eps", format!("{:?}", config.require_positive("rms_norm_eps")?)),
    ]);
    w.section("rope.main", "");
    let mut keys = vec![("head_dim", quote("head_dim")), ("theta", format!("{:?}", rope.theta))];
    keys.extend(rope.scaling.map(|s| ("scaling", s)));
    w.keys(&keys);

    w.section("tensors", tensors.global_comment);
    w.keys(&tensors.global);
    w.section("before", "");
    w.nodes(&["out = \"x\", op = \"embed\", table = \"embed\"".into()]);
    w.section("layer", "One layer; `x` enters it, and `mlp_residual` is the next layer's `x`.");
    w.keys(&[("count", quote("layers")), ("carry", "{ x = \"mlp_residual\" }".into())]);
    w.nodes(&layer_nodes(attention_bias, mlp_bias, activation));
    w.section("layer.tensors", tensors.layer_comment);
    w.keys(&tensors.layer);
    w.section("after", "Only the rows whose logits are wanted go on from `last`.");
    w.nodes(&[
        "out = \"last\", op = \"select_rows\", input = \"x\"".into(),
        "out = \"normed\", op = \"rms_norm\", input = \"last\", weight = \"final_norm\", eps = \"norm_eps\""
            .into(),
        "out = \"logits\", op = \"logits\", input = \"normed\", weight = \"lm_head\"".into(),
    ]);
    Ok(w.finish())
}

fn head_dim(config: &Config, hidden: u64, heads: u64) -> Result<u64> {
    match config.whole(&["head_dim"])? {
        Some(head_dim) => Ok(head_dim),
        None if hidden.is_multiple_of(heads) => Ok(hidden / heads),
        None => bad(format!("`hidden_size` {hidden} does not divide among `num_attention_heads` {heads}")),
    }
}

fn layer_nodes(attention_bias: bool, mlp_bias: bool, activation: &str) -> Vec<String> {
    let linear = |out: &str, input: &str, bias: bool| {
        let bias = if bias { format!(", bias = \"{out}_bias\"") } else { String::new() };
        format!("out = \"{out}\", op = \"linear\", input = \"{input}\", weight = \"{out}\"{bias}")
    };
    vec![
        "out = \"attn_in\", op = \"rms_norm\", input = \"x\", weight = \"attn_norm\", eps = \"norm_eps\"".into(),
        linear("q", "attn_in", attention_bias),
        linear("k", "attn_in", attention_bias),
        linear("v", "attn_in", attention_bias),
        "out = \"q_rot\", op = \"rope\", input = \"q\", rope = \"main\"".into(),
        "out = \"k_rot\", op = \"rope\", input = \"k\", rope = \"main\"".into(),
        "out = \"attn\", op = \"attention\", q = \"q_rot\", k = \"k_rot\", v = \"v\", \
         heads = \"heads\", kv_heads = \"kv_heads\""
            .into(),
        linear("o", "attn", attention_bias),
        "out = \"attn_residual\", op = \"add\", inputs = [\"x\", \"o\"]".into(),
        "out = \"mlp_in\", op = \"rms_norm\", input = \"attn_residual\", weight = \"mlp_norm\", eps = \"norm_eps\""
            .into(),
        linear("gate", "mlp_in", mlp_bias),
        linear("up", "mlp_in", mlp_bias),
        format!("out = \"act\", op = \"glu\", gate = \"gate\", up = \"up\", expr = \"{activation}\""),
        linear("down", "act", mlp_bias),
        "out = \"mlp_residual\", op = \"add\", inputs = [\"attn_residual\", \"down\"]".into(),
    ]
}

fn layer_tensors(attention_bias: bool, mlp_bias: bool, f: &str) -> Vec<(&'static str, String)> {
    let own = |name: &str, shape: &str| tensor(&format!("model.layers.{{layer}}.{name}"), shape, f);
    let mut tensors = vec![("attn_norm", own("input_layernorm.weight", "hidden"))];
    let mut matrix = |name: &'static str, bias: &'static str, path: &str, shape: &str, has_bias: bool| {
        tensors.push((name, own(&format!("{path}.weight"), shape)));
        if has_bias {
            let rows = shape.split(' ').next().unwrap_or_default();
            tensors.push((bias, own(&format!("{path}.bias"), rows)));
        }
    };
    matrix("q", "q_bias", "self_attn.q_proj", "q_dim hidden", attention_bias);
    matrix("k", "k_bias", "self_attn.k_proj", "kv_dim hidden", attention_bias);
    matrix("v", "v_bias", "self_attn.v_proj", "kv_dim hidden", attention_bias);
    matrix("o", "o_bias", "self_attn.o_proj", "hidden q_dim", attention_bias);
    matrix("gate", "gate_bias", "mlp.gate_proj", "mlp_hidden hidden", mlp_bias);
    matrix("up", "up_bias", "mlp.up_proj", "mlp_hidden hidden", mlp_bias);
    matrix("down", "down_bias", "mlp.down_proj", "hidden mlp_hidden", mlp_bias);
    tensors.push(("mlp_norm", own("post_attention_layernorm.weight", "hidden")));
    tensors
}
