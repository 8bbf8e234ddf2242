//! `GptOssForCausalLM`: mixture of experts, attention with sinks, sliding windows in some layers.

use super::config::{ModelConfig, unsupported};
use super::dense::{head_dim, sliding_layers};
use super::rope::rope;
use super::stored::StoredTensors;
use super::writer::{Tensors, TomlWriter, per_layer, quote, tensor, when};
use super::{Architecture, Result};
use serde_json::json;

/// Factor in the experts' activation, unless `swiglu_alpha` says another.
pub(super) const SIGMOID_FACTOR: f64 = 1.702;

pub(super) fn architecture() -> Architecture {
    Architecture {
        class: "GptOssForCausalLM",
        aliases: &[],
        model_type: "gpt_oss",
        keys: &[
            "attention_bias",
            "num_local_experts",
            "num_experts",
            "num_experts_per_tok",
            "experts_per_token",
            "sliding_window",
            "swiglu_limit",
            "swiglu_alpha",
            "initial_context_length",
            "quantization_config",
        ],
        defaults: json!({
            "vocab_size": 201088, "hidden_size": 2880, "intermediate_size": 2880, "num_hidden_layers": 36,
                "head_dim": 64,
            "num_attention_heads": 64, "num_key_value_heads": 8, "num_local_experts": 128, "num_experts_per_tok": 4,
            "sliding_window": 128, "max_position_embeddings": 131072, "rms_norm_eps": 1e-5, "rope_theta": 150000.0,
            "rope_parameters": {
                "rope_type": "yarn", "factor": 32.0, "beta_fast": 32.0, "beta_slow": 1.0, "truncate": false,
                "original_max_position_embeddings": 4096,
            },
        }),
        spec,
    }
}

/// How a checkpoint stores the experts' matrices.
#[derive(Clone, Copy, PartialEq)]
enum Experts {
    /// `[experts, rows, columns]` in MXFP4.
    Mxfp4,
    /// `[experts, columns, rows]`, as transformers computes with them and fine-tuning saves them.
    Plain,
}

fn spec(name: &str, config: &ModelConfig, stored: &StoredTensors<'_>) -> Result<String> {
    if !matches!(config.text("hidden_act")?, None | Some("silu" | "swish")) {
        return unsupported("`hidden_act` other than silu in a GptOssForCausalLM");
    }
    let experts = experts(config, stored)?;
    let (embed, head, _) = stored.embeddings(config)?;
    let tensors = Tensors {
        global_comment: "",
        global: vec![
            ("embed", embed),
            ("final_norm", stored.tensor("model.norm.weight", "hidden")),
            ("lm_head", head),
        ],
        layer_comment: "The checkpoint interleaves the experts' rows: gate in the even ones, up in the odd ones.",
        layer: layer_tensors(config.flag("attention_bias", true)?, experts, stored),
    };
    write(name, config, &tensors)
}

/// How the experts are stored: as the tensors' names say, or as `quantization_config` does where there are no
/// tensors.
fn experts(config: &ModelConfig, stored: &StoredTensors<'_>) -> Result<Experts> {
    let method = match config.section("quantization_config")? {
        Some(section) => section.text("quant_method")?.map(str::to_owned),
        None => None,
    };
    match stored.has("model.layers.0.mlp.experts.gate_up_proj_blocks") {
        Some(true) => return Ok(Experts::Mxfp4),
        Some(false) if stored.has("model.layers.0.mlp.experts.gate_up_proj") == Some(true) => {
            return Ok(Experts::Plain);
        }
        _ => {}
    }
    match method.as_deref() {
        Some("mxfp4") => Ok(Experts::Mxfp4),
        Some(other) => unsupported(format!("quantization `{other}`; supported is: mxfp4")),
        None => Ok(Experts::Plain),
    }
}

/// The spec with these tensors.
pub(super) fn write(name: &str, config: &ModelConfig, tensors: &Tensors) -> Result<String> {
    let layers = config.require_whole(&["num_hidden_layers"])?;
    let windows = windows(config, layers)?;
    let sliding = windows.contains(&"sliding_window");
    let bias = config.flag("attention_bias", true)?;
    let rope = rope(config)?;
    let limit = config.positive("swiglu_limit")?.unwrap_or(7.0) as f32;
    let alpha = config.positive("swiglu_alpha")?.unwrap_or(SIGMOID_FACTOR) as f32;

    let mut w = TomlWriter::new(name, "mixture of experts (GptOssForCausalLM)");
    w.section("model", "");
    w.keys(&[
        ("name", quote(name)),
        ("vocab", quote("vocab")),
        ("max_context", rope.max_context(config)?.to_string()),
    ]);
    w.section("dims", "");
    let number = |key: &str| config.require_whole(&[key]).map(|n| n.to_string());
    let (hidden, heads) =
        (config.require_whole(&["hidden_size"])?, config.require_whole(&["num_attention_heads"])?);
    let mut dims = vec![
        ("vocab", number("vocab_size")?),
        ("hidden", hidden.to_string()),
        ("layers", layers.to_string()),
        ("heads", heads.to_string()),
        ("kv_heads", config.whole(&["num_key_value_heads"])?.unwrap_or(heads).to_string()),
        ("head_dim", head_dim(config, hidden, heads)?.to_string()),
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
    w.keys(&rope.keys());

    w.section("tensors", tensors.global_comment);
    w.keys(&tensors.global);
    w.section("before", "");
    w.nodes(&["out = \"x\", op = \"embed\", table = \"embed\"".into()]);
    w.section("layer", "One layer; `x` enters it, and `moe_residual` is the next layer's `x`.");
    w.keys(&[("count", quote("layers")), ("carry", "{ x = \"moe_residual\" }".into())]);
    w.nodes(&layer_nodes(bias, sliding, limit, alpha));
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
fn windows(config: &ModelConfig, layers: u64) -> Result<Vec<&'static str>> {
    let slides = match sliding_layers(config, layers)? {
        Some(slides) => slides,
        None => (0..layers).map(|layer| config.has("sliding_window") && layer.is_multiple_of(2)).collect(),
    };
    Ok(slides.into_iter().map(|slides| if slides { "sliding_window" } else { "full" }).collect())
}

fn layer_nodes(bias: bool, sliding: bool, limit: f32, alpha: f32) -> Vec<String> {
    let linear = |out: &str, input: &str| {
        let bias = if bias { format!(", bias = \"{out}_bias\"") } else { String::new() };
        format!("out = \"{out}\", op = \"linear\", input = \"{input}\", weight = \"{out}\"{bias}")
    };
    let window = when(sliding, ", window = \"window\"");
    let gate = format!("min(gate, {limit})");
    let activation = format!("(clamp(up, -{limit}, {limit}) + 1) * ({gate} * sigmoid({alpha} * {gate}))");
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

fn layer_tensors(bias: bool, stored_as: Experts, stored: &StoredTensors<'_>) -> Vec<(&'static str, String)> {
    let own = |name: &str, shape: &str| stored.tensor(&format!("model.layers.{{layer}}.{name}"), shape);
    let with = |tensor: String, keys: &str| tensor.replacen(", shape", &format!("{keys}, shape"), 1);
    let experts = |name: &str, rows: &str, shape: &str| {
        let from = format!("mlp.experts.{name}");
        match stored_as {
            Experts::Plain => with(own(&from, shape), &format!("{rows}, transposed = true")),
            Experts::Mxfp4 => {
                let from = format!("model.layers.{{layer}}.{from}");
                let tensor = tensor(&format!("{from}_blocks"), shape, &["mxfp4"]);
                with(tensor, &format!(", scales = \"{from}_scales\"{rows}"))
            }
        }
    };
    let up_bias = |rows: &str| with(own("mlp.experts.gate_up_proj_bias", "experts expert_hidden"), rows);
    let (even, odd) = (", rows = \"even\"", ", rows = \"odd\"");
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
        ("gate", experts("gate_up_proj", even, "experts expert_hidden hidden")),
        ("up", experts("gate_up_proj", odd, "experts expert_hidden hidden")),
        ("down", experts("down_proj", "", "experts hidden expert_hidden")),
        ("gate_bias", up_bias(even)),
        ("up_bias", up_bias(odd)),
        ("down_bias", own("mlp.experts.down_proj_bias", "experts hidden")),
    ]);
    tensors
}
