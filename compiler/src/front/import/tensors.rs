//! The tensors of a decoder: which ones it has, and what they are called in published checkpoints and in GGUF
//! files.

use super::decoder::{DecoderModel, ExpertTensors, HeadNorms, Mixture, NormPlaces};
use super::error::Result;

/// Modules of a layer, and their names in published checkpoints and in GGUF files. Where a name has no
/// ending, `.weight` or `.bias` follows; `!` ends a whole name.
const MODULES: [(&str, &str, &str); 30] = [
    ("attn_norm", "input_layernorm", "attn_norm"),
    ("q", "self_attn.q_proj", "attn_q"),
    ("k", "self_attn.k_proj", "attn_k"),
    ("v", "self_attn.v_proj", "attn_v"),
    ("o", "self_attn.o_proj", "attn_output"),
    ("qkv", "self_attn.qkv_proj", "attn_qkv"),
    ("q_norm", "self_attn.q_norm", "attn_q_norm"),
    ("k_norm", "self_attn.k_norm", "attn_k_norm"),
    ("sinks", "self_attn.sinks!", "attn_sinks"),
    ("attn_post_norm", "post_attention_layernorm", "post_attention_norm"),
    ("mlp_norm", "post_attention_layernorm", "ffn_norm"),
    ("mlp_post_norm", "post_feedforward_layernorm", "post_ffw_norm"),
    ("gate", "mlp.gate_proj", "ffn_gate"),
    ("up", "mlp.up_proj", "ffn_up"),
    ("down", "mlp.down_proj", "ffn_down"),
    ("gate_up", "mlp.gate_up_proj", "ffn_up"),
    ("router", "mlp.gate", "ffn_gate_inp"),
    ("choice_bias", "mlp.gate.e_score_correction_bias!", "exp_probs_b.bias!"),
    ("experts_gate", "mlp.experts.{expert}.gate_proj", "ffn_gate_exps"),
    ("experts_up", "mlp.experts.{expert}.up_proj", "ffn_up_exps"),
    ("experts_down", "mlp.experts.{expert}.down_proj", "ffn_down_exps"),
    ("experts_gate_up", "mlp.experts.gate_up_proj", "ffn_gate_up_exps"),
    ("experts_gate_up_bias", "mlp.experts.gate_up_proj_bias!", "-"),
    ("experts_down_bias", "mlp.experts.down_proj_bias!", "ffn_down_exps.bias!"),
    ("shared_gate", "mlp.shared_expert.gate_proj", "ffn_gate_shexp"),
    ("shared_up", "mlp.shared_expert.up_proj", "ffn_up_shexp"),
    ("shared_down", "mlp.shared_expert.down_proj", "ffn_down_shexp"),
    ("shared_router", "mlp.shared_expert_gate", "ffn_gate_inp_shexp"),
    ("experts_gate_bias", "-", "ffn_gate_exps.bias!"),
    ("experts_up_bias", "-", "ffn_up_exps.bias!"),
];

/// The name that GGUF files have for a module of a layer in published checkpoints.
pub(crate) fn module_in_gguf(published: &str) -> Option<&'static str> {
    let row = MODULES.iter().find(|row| row.1 == published)?;
    Some(row.2).filter(|name| !name.ends_with(['!', '-']))
}

/// Modules that a class calls otherwise: pairs of a module and its name.
pub(super) type OtherNames = &'static [(&'static str, &'static str)];

/// A kind of file that holds a model's tensors.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum FileNames {
    Published,
    Gguf,
}

impl FileNames {
    /// The name of a module's weight within a layer, or of its bias.
    pub(super) fn of(self, module: &str, own: OtherNames) -> String {
        let (module, ending) = match module.strip_suffix("_bias") {
            Some(matrix) if !MODULES.iter().any(|row| row.0 == module) => (matrix, "bias"),
            _ => (module, "weight"),
        };
        let own = own.iter().find(|(name, _)| *name == module).map(|(_, other)| *other);
        let row = MODULES.iter().find(|row| row.0 == module).expect("a module of the table");
        let name = own.unwrap_or(if self == FileNames::Published { row.1 } else { row.2 });
        match name.strip_suffix('!') {
            Some(whole) => whole.to_owned(),
            None => format!("{name}.{ending}"),
        }
    }
}

/// A tensor that a spec's layer or block reads.
#[derive(Clone)]
pub(super) struct Part {
    /// Name in the spec.
    pub(super) name: &'static str,
    /// The module of [`MODULES`] that it belongs to.
    pub(super) module: String,
    /// Dims, with spaces between.
    pub(super) shape: String,
    /// Further keys of the tensor in a spec, each behind a comma.
    pub(super) keys: String,
    /// Whether it is two tensors in a published checkpoint, its blocks and their scales.
    pub(super) in_mxfp4: bool,
}

/// Names, shapes and formats of the tensors of one file.
pub(super) trait ModelTensors {
    /// The comment on the tensors outside of the layers, and these.
    fn global(&self, decoder: &DecoderModel) -> Result<(&'static str, Vec<(&'static str, String)>)>;

    /// How the names begin of the file's tensors that are not the decoder's.
    fn left_out(&self, decoder: &DecoderModel) -> Vec<String>;

    /// A comment on the tensors of the layers.
    fn layer_comment(&self, decoder: &DecoderModel) -> &'static str;

    /// Tensors of a layer, as the spec writes them.
    fn texts(&self, parts: &[Part]) -> Vec<(&'static str, String)>;

    /// Whether the file has a matrix of the last layer's MLP in blocks; or that of the `logits`. Blocks lose
    /// nothing, so that rounding the input would be all that is lost, and behind the last attention nothing
    /// makes it good.
    fn is_in_blocks(&self, module: &str) -> bool;
}

fn part(name: &'static str, shape: &str) -> Part {
    Part { name, module: name.to_owned(), shape: shape.to_owned(), keys: String::new(), in_mxfp4: false }
}

fn matrix(parts: &mut Vec<Part>, name: &'static str, bias: &'static str, shape: &str, has_bias: bool) {
    parts.push(part(name, shape));
    if has_bias {
        parts.push(part(bias, shape.split(' ').next().unwrap_or_default()));
    }
}

/// The tensors of a layer: those up to the MLP, and those of the one MLP or mixture that every layer has.
pub(super) fn in_layer(decoder: &DecoderModel) -> (Vec<Part>, Vec<Part>) {
    let norm = |name: &'static str| {
        let keys = if decoder.plus_one { ", plus = 1" } else { "" }.to_owned();
        Part { keys, ..part(name, "hidden") }
    };
    let mut parts = Vec::new();
    if decoder.norms != NormPlaces::After {
        parts.push(norm("attn_norm"));
    }
    for (name, bias, shape) in
        [("q", "q_bias", "q_dim hidden"), ("k", "k_bias", "kv_dim hidden"), ("v", "v_bias", "kv_dim hidden")]
    {
        matrix(&mut parts, name, bias, shape, decoder.qkv_bias);
    }
    if decoder.joined_qkv {
        let takes = ["0..q_dim", "q_dim..q_dim + kv_dim", "q_dim + kv_dim..q_dim + 2 * kv_dim"];
        for (part, take) in parts.iter_mut().filter(|part| part.name != "attn_norm").zip(takes) {
            part.module = "qkv".into();
            part.keys = format!(", rows = {{ of = \"q_dim + 2 * kv_dim\", take = \"{take}\" }}");
        }
    }
    matrix(&mut parts, "o", "o_bias", "hidden q_dim", decoder.o_bias);
    if decoder.sinks {
        parts.push(part("sinks", "heads"));
    }
    match decoder.head_norms {
        HeadNorms::None => {}
        HeadNorms::Heads => {
            parts.extend(["q_norm", "k_norm"].map(|n| Part { shape: "head_dim".into(), ..norm(n) }))
        }
        HeadNorms::Rows => {
            parts.push(Part { shape: "q_dim".into(), ..norm("q_norm") });
            parts.push(Part { shape: "kv_dim".into(), ..norm("k_norm") });
        }
    }
    if decoder.norms != NormPlaces::Before {
        parts.push(norm("attn_post_norm"));
    }
    let (spec_norm, spec_post) = match &decoder.mixture {
        Some(mixture) if !mixture.dense.contains(&true) => ("moe_norm", "moe_post_norm"),
        _ => ("mlp_norm", "mlp_post_norm"),
    };
    if decoder.norms != NormPlaces::After {
        parts.push(Part { module: "mlp_norm".into(), ..norm(spec_norm) });
    }
    if decoder.norms != NormPlaces::Before {
        parts.push(Part { module: "mlp_post_norm".into(), ..norm(spec_post) });
    }
    let own = match &decoder.mixture {
        None => of_mlp(decoder),
        Some(mixture) if mixture.dense.contains(&true) => Vec::new(),
        Some(mixture) => of_experts(decoder, mixture),
    };
    (parts, own)
}

/// The tensors of an MLP.
pub(super) fn of_mlp(decoder: &DecoderModel) -> Vec<Part> {
    let mut parts = Vec::new();
    matrix(&mut parts, "gate", "gate_bias", "mlp_hidden hidden", decoder.mlp_bias);
    matrix(&mut parts, "up", "up_bias", "mlp_hidden hidden", decoder.mlp_bias);
    if decoder.joined_gate_up {
        halves(&mut parts, "gate_up", "mlp_hidden");
    }
    matrix(&mut parts, "down", "down_bias", "hidden mlp_hidden", decoder.mlp_bias);
    parts
}

/// Takes gate and up from one tensor, in which they are one below the other.
fn halves(parts: &mut [Part], module: &str, rows: &str) {
    let takes = [format!("0..{rows}"), format!("{rows}..2 * {rows}")];
    for (part, take) in parts.iter_mut().zip(takes) {
        part.module = module.into();
        part.keys = format!(", rows = {{ of = \"2 * {rows}\", take = \"{take}\" }}");
    }
}

/// The tensors of a router and its experts.
pub(super) fn of_experts(_: &DecoderModel, mixture: &Mixture) -> Vec<Part> {
    let mut parts = Vec::new();
    matrix(&mut parts, "router", "router_bias", "experts hidden", mixture.biases);
    if mixture.choice_bias {
        parts.push(part("choice_bias", "experts"));
    }
    let up = "experts expert_hidden hidden";
    let mut experts = ["gate", "up", "down"].map(|name| Part {
        module: format!("experts_{name}"),
        ..part(name, if name == "down" { "experts hidden expert_hidden" } else { up })
    });
    let alternate = |parts: &mut [Part], module: &str, keys: &str| {
        for (part, rows) in parts.iter_mut().zip(["even", "odd"]) {
            part.module = module.into();
            part.keys = format!(", rows = \"{rows}\"{keys}");
        }
    };
    match mixture.stored {
        ExpertTensors::Each | ExpertTensors::Grouped => {}
        ExpertTensors::Halves => halves(&mut experts[..2], "experts_gate_up", "expert_hidden"),
        ExpertTensors::Mxfp4 => {
            alternate(&mut experts, "experts_gate_up", "");
            experts.iter_mut().for_each(|part| part.in_mxfp4 = true);
        }
        ExpertTensors::Transposed => {
            alternate(&mut experts, "experts_gate_up", ", transposed = true");
            experts[2].keys = ", transposed = true".into();
        }
    }
    parts.extend(experts);
    if mixture.biases {
        let mut biases = [("gate_bias", "experts_gate_bias"), ("up_bias", "experts_up_bias")]
            .map(|(name, module)| Part { module: module.into(), ..part(name, "experts expert_hidden") });
        if matches!(mixture.stored, ExpertTensors::Mxfp4 | ExpertTensors::Transposed) {
            alternate(&mut biases, "experts_gate_up_bias", "");
        }
        parts.extend(biases);
        parts.push(Part { module: "experts_down_bias".into(), ..part("down_bias", "experts hidden") });
    }
    if let Some((_, gated)) = mixture.shared {
        for (name, shape) in [
            ("shared_gate", "shared_hidden hidden"),
            ("shared_up", "shared_hidden hidden"),
            ("shared_down", "hidden shared_hidden"),
        ] {
            parts.push(part(name, shape));
        }
        if gated {
            parts.push(part("shared_router", "1 hidden"));
        }
    }
    parts
}
