//! `GptOssForCausalLM`: mixture of experts in MXFP4, attention with sinks, sliding windows in some layers.

use super::Result;
use super::config::{Config, bad, unsupported};
use super::writer::{Tensors, Writer, per_layer, quote, tensor, when};

/// Factor in the experts' activation; the published model code fixes it.
const SIGMOID_FACTOR: &str = "1.702";

pub(super) fn spec(name: &str, config: &Config) -> Result<String> {
    let method = match config.section("quantization_config")? {
        Some(section) => section.text("quant_method")?.map(str::to_owned),
        None => None,
    };
    match method.as_deref() {
        Some("mxfp4") => {}
        Some(other) => return unsupported(format!("quantization `{other}`; supported is: mxfp4")),
        None => {
            return unsupported("experts that are not in MXFP4; expected `quantization_config` with mxfp4");
        }
    }
    let f = config.plain_format()?;
    let tied = config.flag("tie_word_embeddings", false)?;
    let head = if tied { "model.embed_tokens.weight" } else { "lm_head.weight" };
    let tensors = Tensors {
        global_comment: "",
        global: vec![
            ("embed", tensor("model.embed_tokens.weight", "vocab hidden", f)),
            ("final_norm", tensor("model.norm.weight", "hidden", f)),
            ("lm_head", tensor(head, "vocab hidden", f)),
        ],
        layer_comment: "The checkpoint interleaves the experts' rows: gate in the even ones, up in the odd ones.",
        layer: layer_tensors(config.flag("attention_bias", true)?, f),
    };
    write(name, config, &tensors)
}

/// The spec with these tensors.
pub(super) fn write(name: &str, config: &Config, tensors: &Tensors) -> Result<String> {
    let layers = config.require_whole(&["num_hidden_layers"])?;
    let windows = windows(config, layers)?;
    let sliding = windows.contains(&"sliding_window");
    let bias = config.flag("attention_bias", true)?;
    let rope = config.rope()?;
    let limit = config.positive("swiglu_limit")?.unwrap_or(7.0) as f32;

    let mut w = Writer::new(name, "mixture of experts (GptOssForCausalLM)");
    w.section("model", "");
    w.keys(&[
        ("name", quote(name)),
        ("vocab", quote("vocab")),
        ("max_context", config.require_whole(&["max_position_embeddings"])?.to_string()),
    ]);
    w.section("dims", "");
    let number = |key: &str| config.require_whole(&[key]).map(|n| n.to_string());
    let mut dims = vec![
        ("vocab", number("vocab_size")?),
        ("hidden", number("hidden_size")?),
        ("layers", layers.to_string()),
        ("heads", number("num_attention_heads")?),
        ("kv_heads", number("num_key_value_heads")?),
        ("head_dim", number("head_dim")?),
        ("q_dim", quote("heads * head_dim")),
        ("kv_dim", quote("kv_heads * head_dim")),
        ("experts", config.require_whole(&["num_local_experts", "num_experts"])?.to_string()),
        ("top_k", config.require_whole(&["num_experts_per_tok", "experts_per_token"])?.to_string()),
        ("expert_hidden", number("intermediate_size")?),
        ("norm_eps", format!("{:?}", config.require_positive("rms_norm_eps")?)),
    ];
    if sliding {
        dims.push(("sliding_window", number("sliding_window")?));
    }
    w.keys(&dims);
    w.section("rope.main", "");
    let mut keys = vec![("head_dim", quote("head_dim")), ("theta", format!("{:?}", rope.theta))];
    keys.extend(rope.scaling.map(|s| ("scaling", s)));
    w.keys(&keys);

    w.section("tensors", tensors.global_comment);
    w.keys(&tensors.global);
    w.section("before", "");
    w.nodes(&["out = \"x\", op = \"embed\", table = \"embed\"".into()]);
    w.section("layer", "One layer; `x` enters it, and `moe_residual` is the next layer's `x`.");
    w.keys(&[("count", quote("layers")), ("carry", "{ x = \"moe_residual\" }".into())]);
    w.nodes(&layer_nodes(bias, sliding, limit));
    if sliding {
        w.section("layer.values", "By layer: attention to the last `sliding_window` tokens, or to all.");
        w.keys(&[("window", per_layer(&windows))]);
    }
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

/// The window of each layer, as the spec writes it.
fn windows(config: &Config, layers: u64) -> Result<Vec<&'static str>> {
    if layers > 1024 {
        return bad(format!("`num_hidden_layers` is {layers}: expected at most 1024"));
    }
    let Some(types) = config.texts("layer_types")? else {
        let alternate = ["sliding_window", "full"];
        let windows = (0..layers as usize).map(|i| alternate[i % 2]).collect();
        return Ok(if config.has("sliding_window") { windows } else { vec!["full"; layers as usize] });
    };
    if types.len() as u64 != layers {
        return bad(format!("`layer_types` has {} entries for {layers} layers", types.len()));
    }
    let window = |kind: &str| match kind {
        "sliding_attention" => Ok("sliding_window"),
        "full_attention" => Ok("full"),
        other => {
            unsupported(format!("layer type `{other}`; supported are: sliding_attention, full_attention"))
        }
    };
    types.into_iter().map(window).collect()
}

fn layer_nodes(bias: bool, sliding: bool, limit: f32) -> Vec<String> {
    let linear = |out: &str, input: &str| {
        let bias = if bias { format!(", bias = \"{out}_bias\"") } else { String::new() };
        format!("out = \"{out}\", op = \"linear\", input = \"{input}\", weight = \"{out}\"{bias}")
    };
    let window = when(sliding, ", window = \"window\"");
    let gate = format!("min(gate, {limit})");
    let activation =
        format!("(clamp(up, -{limit}, {limit}) + 1) * ({gate} * sigmoid({SIGMOID_FACTOR} * {gate}))");
    vec![
        "out = \"attn_in\", op = \"rms_norm\", input = \"x\", weight = \"attn_norm\", eps = \"norm_eps\"".into(),
        linear("q", "attn_in"),
        linear("k", "attn_in"),
        linear("v", "attn_in"),
        "out = \"q_rot\", op = \"rope\", input = \"q\", rope = \"main\"".into(),
        "out = \"k_rot\", op = \"rope\", input = \"k\", rope = \"main\"".into(),
        format!(
            "out = \"attn\", op = \"attention\", q = \"q_rot\", k = \"k_rot\", v = \"v\", \
             heads = \"heads\", kv_heads = \"kv_heads\"{window}, sinks = \"sinks\""
        ),
        linear("o", "attn"),
        "out = \"attn_residual\", op = \"add\", inputs = [\"x\", \"o\"]".into(),
        "out = \"moe_in\", op = \"rms_norm\", input = \"attn_residual\", weight = \"moe_norm\", eps = \"norm_eps\""
            .into(),
        "out = \"router\", op = \"linear\", input = \"moe_in\", weight = \"router\", bias = \"router_bias\"".into(),
        "out = \"routing\", op = \"router_topk\", input = \"router\", k = \"top_k\"".into(),
        format!(
            "out = \"moe\", op = \"moe\", input = \"moe_in\", routing = \"routing\", gate = \"gate\", up = \"up\", \
             down = \"down\", gate_bias = \"gate_bias\", up_bias = \"up_bias\", down_bias = \"down_bias\", \
             activation = \"{activation}\""
        ),
        "out = \"moe_residual\", op = \"add\", inputs = [\"attn_residual\", \"moe\"]".into(),
    ]
}

fn layer_tensors(bias: bool, f: &str) -> Vec<(&'static str, String)> {
    let own = |name: &str, shape: &str| tensor(&format!("model.layers.{{layer}}.{name}"), shape, f);
    let experts = |name: &str, rows: &str, shape: &str| {
        let from = format!("model.layers.{{layer}}.mlp.experts.{name}");
        format!(
            "{{ from = \"{from}_blocks\", scales = \"{from}_scales\"{rows}, shape = [{shape}], format = \"mxfp4\" }}"
        )
    };
    let up_bias = |rows: &str| {
        own("mlp.experts.gate_up_proj_bias", "experts expert_hidden")
            .replace(", shape", &format!(", rows = \"{rows}\", shape"))
    };
    let (even, odd) = (", rows = \"even\"", ", rows = \"odd\"");
    let gate_up = "\"experts\", \"expert_hidden\", \"hidden\"";
    let mut tensors = vec![("attn_norm", own("input_layernorm.weight", "hidden"))];
    for (name, bias_name, rows, shape) in [
        ("q", "q_bias", "q_dim", "q_dim hidden"),
        ("k", "k_bias", "kv_dim", "kv_dim hidden"),
        ("v", "v_bias", "kv_dim", "kv_dim hidden"),
        ("o", "o_bias", "hidden", "hidden q_dim"),
    ] {
        tensors.push((name, own(&format!("self_attn.{name}_proj.weight"), shape)));
        if bias {
            tensors.push((bias_name, own(&format!("self_attn.{name}_proj.bias"), rows)));
        }
    }
    tensors.extend([
        ("sinks", own("self_attn.sinks", "heads")),
        ("moe_norm", own("post_attention_layernorm.weight", "hidden")),
        ("router", own("mlp.router.weight", "experts hidden")),
        ("router_bias", own("mlp.router.bias", "experts")),
        ("gate", experts("gate_up_proj", even, gate_up)),
        ("up", experts("gate_up_proj", odd, gate_up)),
        ("down", experts("down_proj", "", "\"experts\", \"hidden\", \"expert_hidden\"")),
        ("gate_bias", up_bias("even")),
        ("up_bias", up_bias("odd")),
        ("down_bias", own("mlp.experts.down_proj_bias", "experts hidden")),
    ]);
    tensors
}
