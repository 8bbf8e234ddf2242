//! Dense decoders with a gated MLP, as Llama, Mistral and Qwen2 are: they differ in biases and attention
//! windows.

use super::config::{ModelConfig, bad, unsupported};
use super::error::Result;
use super::rope::rope;
use super::stored::StoredTensors;
use super::writer::{Tensors, TomlWriter, per_layer, quote, when};

/// The parts of a dense model that other models lack.
pub(super) struct Dense {
    /// Name of its class, for the first line.
    pub(super) class: &'static str,
    /// Biases of q, k and v.
    pub(super) qkv_bias: bool,
    /// Norms of each head of q and of k, before RoPE.
    pub(super) head_norms: bool,
    /// A bias of the output projection.
    pub(super) o_bias: bool,
    /// Biases of gate, up and down.
    pub(super) mlp_bias: bool,
    /// Layers whose attention sees the last `sliding_window` tokens only.
    pub(super) windows: Windows,
    /// Products behind the last attention whose inputs stay f32 in every preset: any of `gate`, `up`, `down`
    /// (of the last layer) and `logits`.
    pub(super) f32_inputs: Vec<&'static str>,
}

impl Dense {
    fn stays_f32(&self, product: &str) -> bool {
        self.f32_inputs.contains(&product)
    }
}

/// Products behind the last attention whose matrices the checkpoint has in blocks. Blocks lose nothing, so
/// that rounding the input would be all that is lost, and behind the last attention nothing makes it good.
pub(super) fn f32_inputs(config: &ModelConfig, stored: &StoredTensors<'_>) -> Result<Vec<&'static str>> {
    let last = |module: &str| format!("model.layers.{}.mlp.{module}_proj.weight", stored.last_layer());
    let products = [
        ("gate", last("gate")),
        ("up", last("up")),
        ("down", last("down")),
        ("logits", stored.embedding_names(config)?.1.to_owned()),
    ];
    let in_blocks = products.into_iter().filter(|(_, tensor)| stored.is_in_blocks(tensor));
    Ok(in_blocks.map(|(product, _)| product).collect())
}

/// Which layers of a model slide.
pub(super) enum Windows {
    /// None.
    None,
    /// All, over so many tokens.
    All(u64),
    /// By layer, over so many tokens.
    ByLayer(Vec<bool>, u64),
}

impl Windows {
    /// Windows of `tokens` in layers whose entry of `slides` is true. A window as long as the context counts
    /// as no window.
    pub(super) fn new(slides: Vec<bool>, tokens: u64, max_context: u64) -> Windows {
        match (slides.contains(&true) && tokens < max_context, slides.contains(&false)) {
            (false, _) => Windows::None,
            (true, false) => Windows::All(tokens),
            (true, true) => Windows::ByLayer(slides, tokens),
        }
    }
}

/// Kinds of layers by `layer_types`, as whether they slide; `None` if there is no such key.
pub(super) fn sliding_layers(config: &ModelConfig, layers: u64) -> Result<Option<Vec<bool>>> {
    let Some(types) = config.texts("layer_types")? else { return Ok(None) };
    if types.len() as u64 != layers {
        return bad(format!("`layer_types` has {} entries for {layers} layers", types.len()));
    }
    let slides = types.into_iter().map(|kind| match kind {
        "sliding_attention" => Ok(true),
        "full_attention" => Ok(false),
        other => {
            unsupported(format!("layer type `{other}`; supported are: sliding_attention, full_attention"))
        }
    });
    slides.collect::<Result<_>>().map(Some)
}

/// The tensors of a checkpoint as transformers names them.
pub(super) fn tensors(config: &ModelConfig, stored: &StoredTensors<'_>, dense: &Dense) -> Result<Tensors> {
    let (embed, head, global_comment) = stored.embeddings(config)?;
    Ok(Tensors {
        global_comment,
        global: vec![
            ("embed", embed),
            ("final_norm", stored.tensor("model.norm.weight", "hidden")),
            ("lm_head", head),
        ],
        layer_comment: "",
        layer: layer_tensors(stored, dense),
    })
}

/// The spec with these tensors.
pub(super) fn write(name: &str, config: &ModelConfig, tensors: &Tensors, dense: &Dense) -> Result<String> {
    let activation = activation(config)?;
    let rope = rope(config)?;
    let mut w = TomlWriter::new(name, &format!("dense model ({})", dense.class));
    w.section("model", "");
    w.keys(&[
        ("name", quote(name)),
        ("vocab", quote("vocab")),
        ("max_context", rope.max_context(config)?.to_string()),
    ]);
    w.section("dims", "");
    let number = |key: &str| config.require_whole(&[key]);
    let (hidden, heads) = (number("hidden_size")?, number("num_attention_heads")?);
    let mut dims = vec![
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
    ];
    if let Windows::All(tokens) | Windows::ByLayer(_, tokens) = &dense.windows {
        dims.push(("sliding_window", tokens.to_string()));
    }
    w.keys(&dims);
    w.section("rope.main", "");
    w.keys(&rope.keys());

    w.section("tensors", tensors.global_comment);
    w.keys(&tensors.global);
    w.section("before", "");
    w.nodes(&["out = \"x\", op = \"embed\", table = \"embed\"".into()]);
    w.section("layer", "One layer; `x` enters it, and `mlp_residual` is the next layer's `x`.");
    w.keys(&[("count", quote("layers")), ("carry", "{ x = \"mlp_residual\" }".into())]);
    w.nodes(&layer_nodes(dense, activation));
    if let Windows::ByLayer(slides, _) = &dense.windows {
        let words: Vec<&str> =
            slides.iter().map(|&slides| if slides { "sliding_window" } else { "full" }).collect();
        w.section("layer.values", "By layer: attention to the last `sliding_window` tokens, or to all.");
        w.keys(&[("window", per_layer(&words))]);
    }
    w.section("layer.tensors", tensors.layer_comment);
    w.keys(&tensors.layer);
    w.section("after", "Only the rows whose logits are wanted go on from `last`.");
    w.nodes(&[
        "out = \"last\", op = \"select_rows\", input = \"x\"".into(),
        "out = \"normed\", op = \"rms_norm\", input = \"last\", weight = \"final_norm\", eps = \"norm_eps\""
            .into(),
        format!(
            "out = \"logits\", op = \"logits\", input = \"normed\", weight = \"lm_head\"{}",
            when(dense.stays_f32("logits"), ", activations = \"f32\"")
        ),
    ]);
    Ok(w.finish())
}

/// The MLP's activation, as an expression.
fn activation(config: &ModelConfig) -> Result<&'static str> {
    match config.text("hidden_act")? {
        None | Some("silu" | "swish") => Ok("silu(gate) * up"),
        Some("gelu_pytorch_tanh" | "gelu_new") => Ok("gelu(gate) * up"),
        Some("gelu") => Ok("gelu_erf(gate) * up"),
        Some(other) => {
            unsupported(format!("activation `{other}`; supported are: silu, gelu, gelu_pytorch_tanh"))
        }
    }
}

/// Elements of a head: stated, or a head's share of the hidden size.
pub(super) fn head_dim(config: &ModelConfig, hidden: u64, heads: u64) -> Result<u64> {
    match config.whole(&["head_dim"])? {
        Some(head_dim) => Ok(head_dim),
        None if hidden.is_multiple_of(heads) => Ok(hidden / heads),
        None => bad(format!("`hidden_size` {hidden} does not divide among `num_attention_heads` {heads}")),
    }
}

fn layer_nodes(dense: &Dense, activation: &str) -> Vec<String> {
    let linear = |out: &str, input: &str, bias: bool| {
        let bias = if bias { format!(", bias = \"{out}_bias\"") } else { String::new() };
        format!("out = \"{out}\", op = \"linear\", input = \"{input}\", weight = \"{out}\"{bias}")
    };
    let mlp = |out: &str, input: &str| {
        let stays = when(dense.stays_f32(out), ", activations = \"f32_in_last_layer\"");
        linear(out, input, dense.mlp_bias) + stays
    };
    let window = match dense.windows {
        Windows::None => "",
        Windows::All(_) => ", window = \"sliding_window\"",
        Windows::ByLayer(..) => ", window = \"window\"",
    };
    let mut nodes = vec![
        "out = \"attn_in\", op = \"rms_norm\", input = \"x\", weight = \"attn_norm\", eps = \"norm_eps\""
            .into(),
        linear("q", "attn_in", dense.qkv_bias),
        linear("k", "attn_in", dense.qkv_bias),
        linear("v", "attn_in", dense.qkv_bias),
    ];
    let mut normed = |heads: &str| match dense.head_norms {
        true => {
            nodes.push(format!(
                "out = \"{heads}_normed\", op = \"rms_norm\", input = \"{heads}\", weight = \"{heads}_norm\", \
                 head_dim = \"head_dim\", eps = \"norm_eps\""
            ));
            format!("{heads}_normed")
        }
        false => heads.to_owned(),
    };
    let rope = ["q", "k"].map(|heads| {
        let input = normed(heads);
        format!("out = \"{heads}_rot\", op = \"rope\", input = \"{input}\", rope = \"main\"")
    });
    nodes.extend(rope);
    nodes.extend([
        format!(
            "out = \"attn\", op = \"attention\", q = \"q_rot\", k = \"k_rot\", v = \"v\", \
             heads = \"heads\", kv_heads = \"kv_heads\"{window}"
        ),
        linear("o", "attn", dense.o_bias),
        "out = \"attn_residual\", op = \"add\", inputs = [\"x\", \"o\"]".into(),
        "out = \"mlp_in\", op = \"rms_norm\", input = \"attn_residual\", weight = \"mlp_norm\", eps = \"norm_eps\""
            .into(),
        mlp("gate", "mlp_in"),
        mlp("up", "mlp_in"),
        format!("out = \"act\", op = \"glu\", gate = \"gate\", up = \"up\", expr = \"{activation}\""),
        mlp("down", "act"),
        "out = \"mlp_residual\", op = \"add\", inputs = [\"attn_residual\", \"down\"]".into(),
    ]);
    nodes
}

fn layer_tensors(stored: &StoredTensors<'_>, dense: &Dense) -> Vec<(&'static str, String)> {
    let own = |name: &str, shape: &str| stored.tensor(&format!("model.layers.{{layer}}.{name}"), shape);
    let mut tensors = vec![("attn_norm", own("input_layernorm.weight", "hidden"))];
    let mut matrix = |name: &'static str, bias: &'static str, path: &str, shape: &str, has_bias: bool| {
        tensors.push((name, own(&format!("{path}.weight"), shape)));
        if has_bias {
            let rows = shape.split(' ').next().unwrap_or_default();
            tensors.push((bias, own(&format!("{path}.bias"), rows)));
        }
    };
    matrix("q", "q_bias", "self_attn.q_proj", "q_dim hidden", dense.qkv_bias);
    matrix("k", "k_bias", "self_attn.k_proj", "kv_dim hidden", dense.qkv_bias);
    matrix("v", "v_bias", "self_attn.v_proj", "kv_dim hidden", dense.qkv_bias);
    matrix("o", "o_bias", "self_attn.o_proj", "hidden q_dim", dense.o_bias);
    matrix("gate", "gate_bias", "mlp.gate_proj", "mlp_hidden hidden", dense.mlp_bias);
    matrix("up", "up_bias", "mlp.up_proj", "mlp_hidden hidden", dense.mlp_bias);
    matrix("down", "down_bias", "mlp.down_proj", "hidden mlp_hidden", dense.mlp_bias);
    if dense.head_norms {
        tensors.extend(
            ["q_norm", "k_norm"].map(|norm| (norm, own(&format!("self_attn.{norm}.weight"), "head_dim"))),
        );
    }
    tensors.push(("mlp_norm", own("post_attention_layernorm.weight", "hidden")));
    tensors
}
