//! A decoder as its class describes it.

use super::config::{ModelConfig, bad, unsupported};
use super::error::Result;
use super::rope::Ropes;

/// Norms of q and k, before RoPE.
#[derive(Clone, Copy, Default, PartialEq)]
pub(super) enum HeadNorms {
    #[default]
    None,
    /// One norm for each head.
    Heads,
    /// One norm over all heads of a token.
    Rows,
}

/// Places of a layer's norms: in front of attention and MLP, behind them, or both.
#[derive(Clone, Copy, Default, PartialEq)]
pub(super) enum NormPlaces {
    #[default]
    Before,
    After,
    Around,
}

/// Which layers of a model slide.
#[derive(Default)]
pub(super) enum Windows {
    #[default]
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

/// The experts of a class, beside an MLP or in its place.
#[derive(Default)]
pub(super) struct Mixture {
    pub(super) experts: u64,
    pub(super) top_k: u64,
    /// Hidden units of an expert.
    pub(super) inner: u64,
    /// Keys of the node of the router beside `k`, as `scores = "sigmoid"`.
    pub(super) route: String,
    /// A bias of the scores, for the choice only.
    pub(super) choice_bias: bool,
    /// Biases of the router and of the experts' matrices.
    pub(super) biases: bool,
    /// An MLP of so many hidden units that every token passes, and whether its result has a gate.
    pub(super) shared: Option<(u64, bool)>,
    /// Layers that have an MLP in place of experts: one entry for each layer, or none.
    pub(super) dense: Vec<bool>,
    pub(super) stored: ExpertTensors,
}

impl Mixture {
    /// Whether there are both kinds of layers.
    pub(super) fn by_layer(&self) -> bool {
        self.dense.contains(&true)
    }
}

/// How a checkpoint stores the experts' matrices.
#[derive(Clone, Copy, Default, PartialEq)]
pub(super) enum ExpertTensors {
    /// A tensor for each matrix of each expert.
    #[default]
    Each,
    /// A tensor for each matrix of all experts.
    Grouped,
    /// Gate and up of all experts in one tensor, one below the other.
    Halves,
    /// GPT-OSS's: gate and up in alternating rows, in MXFP4.
    Mxfp4,
    /// GPT-OSS's as transformers computes with them: gate and up in alternating columns.
    Transposed,
}

/// All that the spec of a decoder says beside its numbers.
#[derive(Default)]
pub(super) struct DecoderModel {
    /// Name of its class, for the first line.
    pub(super) class: &'static str,
    /// Biases of q, k and v, of o, and of gate, up and down.
    pub(super) qkv_bias: bool,
    pub(super) o_bias: bool,
    pub(super) mlp_bias: bool,
    pub(super) sinks: bool,
    /// q, k and v are parts of one tensor; gate and up are.
    pub(super) joined_qkv: bool,
    pub(super) joined_gate_up: bool,
    pub(super) head_norms: HeadNorms,
    pub(super) norms: NormPlaces,
    /// Norms have 1 + w as their weight.
    pub(super) plus_one: bool,
    pub(super) windows: Windows,
    pub(super) ropes: Ropes,
    /// Factor on the scores of attention, where it is not the root of the head's size.
    pub(super) scale: Option<f64>,
    /// The cap of attention's scores.
    pub(super) softcap: Option<f64>,
    /// Factors on embeddings, and on what attention and MLP add.
    pub(super) embed_scale: Option<f64>,
    pub(super) residual_scale: Option<f64>,
    /// The last step of the logits, an expression in `logits`.
    pub(super) logits: Option<String>,
    /// The MLP's activation, an expression in `gate` and `up`.
    pub(super) activation: String,
    pub(super) mixture: Option<Mixture>,
    /// Layers behind the last one, which predict further tokens and are left out.
    pub(super) further_layers: u64,
}

/// The MLP's activation, as an expression.
pub(super) fn activation(config: &ModelConfig) -> Result<String> {
    let act = match config.text("hidden_activation")? {
        Some(act) => Some(act),
        None => config.text("hidden_act")?,
    };
    let function = match act {
        None | Some("silu" | "swish") => "silu",
        Some("gelu_pytorch_tanh" | "gelu_new") => "gelu",
        Some("gelu") => "gelu_erf",
        Some(other) => {
            return unsupported(format!(
                "activation `{other}`; supported are: silu, gelu, gelu_pytorch_tanh"
            ));
        }
    };
    Ok(format!("{function}(gate) * up"))
}

/// Kinds of layers by `layer_types`, as whether they slide; `None` if there is no such key.
pub(super) fn sliding_layers(config: &ModelConfig) -> Result<Option<Vec<bool>>> {
    let layers = config.require_whole(&["num_hidden_layers"])?;
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
