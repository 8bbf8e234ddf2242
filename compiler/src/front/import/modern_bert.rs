//! ModernBERT, an encoder with RoPE whose layers see all tokens by turns with some on either side.

use super::config::{ModelConfig, bad, head_dim, unsupported};
use super::decoder::{Windows, activation, sliding_layers};
use super::encoder::{EncoderFile, EncoderTensor, model, select_rows, vectors};
use super::error::Result;
use super::nodes::IN_TWO_TERMS;
use super::rope::Ropes;
use super::writer::{TomlWriter, per_layer, quote, when};
use serde_json::{Map, Value, json};

/// Kinds of layers, with the older key of the base of their RoPE, and the base without it.
const KINDS: [(&str, &str, f64); 2] =
    [("full_attention", "global_rope_theta", 160_000.0), ("sliding_attention", "local_rope_theta", 10_000.0)];

/// Tensors outside of the layers: names in the spec, in checkpoints and in GGUF files, and dims.
const GLOBAL: [[&str; 4]; 3] = [
    ["embed", "embeddings.tok_embeddings", "token_embd", "vocab hidden"],
    ["embed_norm", "embeddings.norm", "token_embd_norm", "hidden"],
    ["final_norm", "final_norm", "output_norm", "hidden"],
];

/// Matrices of a layer: as above, and in a tensor of several matrices, all rows and those of the one.
const MATRICES: [[&str; 6]; 7] = [
    ["q", "attn.Wqkv", "attn_qkv", "hidden hidden", "3 * hidden", "0..hidden"],
    ["k", "attn.Wqkv", "attn_qkv", "hidden hidden", "3 * hidden", "hidden..2 * hidden"],
    ["v", "attn.Wqkv", "attn_qkv", "hidden hidden", "3 * hidden", "2 * hidden..3 * hidden"],
    ["o", "attn.Wo", "attn_output", "hidden hidden", "", ""],
    ["gate", "mlp.Wi", "ffn_up", "mlp_hidden hidden", "2 * mlp_hidden", "0..mlp_hidden"],
    ["up", "mlp.Wi", "ffn_up", "mlp_hidden hidden", "2 * mlp_hidden", "mlp_hidden..2 * mlp_hidden"],
    ["down", "mlp.Wo", "ffn_down", "hidden mlp_hidden", "", ""],
];

const MLP_NORM: [&str; 4] = ["mlp_norm", "mlp_norm", "ffn_norm", "hidden"];
const ATTN_NORM: [&str; 4] = ["attn_norm", "attn_norm", "attn_norm", "hidden"];
/// How the names begin of what is in a layer.
const LAYER: &str = "layers.{layer}.";

/// All that the spec of a ModernBERT says beside its numbers.
pub(super) struct ModernBert {
    /// Whether norms, attention and MLP have biases.
    norm_bias: bool,
    attention_bias: bool,
    mlp_bias: bool,
    windows: Windows,
    ropes: Ropes,
    /// The MLP's activation, an expression in `gate` and `up`.
    activation: String,
    layers: u64,
}

impl ModernBert {
    /// The model that a config describes.
    pub(super) fn of(config: &ModelConfig) -> Result<ModernBert> {
        let number = |key: &str| config.require_whole(&[key]);
        let layers = number("num_hidden_layers")?;
        let every = number("global_attn_every_n_layers")?;
        let slides = match sliding_layers(config)? {
            Some(slides) => slides,
            None => (0..layers).map(|layer| !layer.is_multiple_of(every)).collect(),
        };
        let ropes = ropes(config, &slides)?;
        // The half of the tokens is on either side, and the token itself between them.
        let window = number("local_attention")? / 2 + 1;
        Ok(ModernBert {
            norm_bias: config.flag("norm_bias", false)?,
            attention_bias: config.flag("attention_bias", false)?,
            mlp_bias: config.flag("mlp_bias", false)?,
            windows: Windows::new(slides, window, ropes.max_context(config)?),
            ropes,
            activation: activation(config)?,
            layers,
        })
    }

    /// The spec of the model called `name`, with the tensors of `file`.
    pub(super) fn spec(&self, name: &str, config: &ModelConfig, file: &dyn EncoderFile) -> Result<String> {
        let number = |key: &str| config.require_whole(&[key]);
        let mut w = TomlWriter::new(name, "encoder (ModernBertModel)");
        model(&mut w, name, &file.heads(&["head.", "decoder."]));
        w.section("dims", "");
        let mut dims = vec![
            ("vocab", number("vocab_size")?.to_string()),
            ("max_context", self.ropes.max_context(config)?.to_string()),
            ("hidden", number("hidden_size")?.to_string()),
            ("layers", self.layers.to_string()),
            ("heads", number("num_attention_heads")?.to_string()),
            ("head_dim", head_dim(config)?.to_string()),
            ("mlp_hidden", number("intermediate_size")?.to_string()),
            ("norm_eps", format!("{:?}", config.require_positive("norm_eps")?)),
        ];
        if let Windows::All(tokens) | Windows::ByLayer(_, tokens) = &self.windows {
            dims.push(("sliding_window", tokens.to_string()));
        }
        w.keys(&dims);
        for (name, rope) in self.ropes.named() {
            w.section(&format!("rope.{name}"), "");
            w.keys(&rope.keys());
        }
        w.section("tensors", "");
        let biases = [false, self.norm_bias, self.norm_bias];
        let global = GLOBAL.into_iter().zip(biases);
        tensors(&mut w, global.flat_map(|(names, bias)| stored(file, "", names, "", bias)));
        w.section("before", "");
        w.nodes(&[
            "out = \"embedded\", op = \"embed\", table = \"embed\"".into(),
            self.norm("x", "embedded", "embed_norm"),
        ]);
        self.layer(&mut w, file);
        w.section("after", "");
        w.nodes(&[select_rows(), self.norm("normed", "last", "final_norm"), vectors("normed")]);
        Ok(w.finish())
    }

    fn layer(&self, w: &mut TomlWriter, file: &dyn EncoderFile) {
        w.section("layer", "One layer; `x` enters it, and `mlp_residual` is the next layer's `x`.");
        w.keys(&[("count", quote("layers")), ("carry", "{ x = \"mlp_residual\" }".into())]);
        w.nodes(&[
            "out = \"o\", block = \"attention\", x = \"x\"".into(),
            "out = \"attn_residual\", op = \"add\", inputs = [\"x\", \"o\"]".into(),
            self.norm("mlp_in", "attn_residual", "mlp_norm"),
            linear("gate", "mlp_in", self.mlp_bias),
            linear("up", "mlp_in", self.mlp_bias),
            format!(
                "out = \"act\", op = \"glu\", gate = \"gate\", up = \"up\", expr = \"{}\"",
                self.activation
            ),
            linear("down", "act", self.mlp_bias),
            "out = \"mlp_residual\", op = \"add\", inputs = [\"attn_residual\", \"down\"]".into(),
        ]);
        let blocks: Vec<&str> =
            (0..self.layers).map(|layer| if layer == 0 { "first" } else { "later" }).collect();
        let mut values = vec![("attention", per_layer(&blocks))];
        if let Windows::ByLayer(slides, _) = &self.windows {
            let word = |&slides: &bool| if slides { "sliding_window" } else { "full" };
            values.push(("window", per_layer(&slides.iter().map(word).collect::<Vec<_>>())));
        }
        values.extend(self.ropes.by_layer().map(|words| ("rope", per_layer(words))));
        let comment =
            "By layer: attention, without a norm before the first; all tokens, or those on either side.";
        w.section("layer.values", comment);
        w.keys(&values);
        w.section("layer.tensors", "");
        let matrices = MATRICES.into_iter().flat_map(|[name, published, gguf, shape, of, take]| {
            let bias = if published.starts_with("attn.") { self.attention_bias } else { self.mlp_bias };
            let rows = format!(", rows = {{ of = \"{of}\", take = \"{take}\" }}");
            stored(file, LAYER, [name, published, gguf, shape], when(!of.is_empty(), &rows), bias)
        });
        tensors(w, matrices.chain(stored(file, LAYER, MLP_NORM, "", self.norm_bias)));
        w.section("block.first", "");
        w.keys(&[("inputs", "[\"x\"]".into())]);
        w.nodes(&self.attention("x"));
        if self.layers > 1 {
            w.section("block.later", "");
            w.keys(&[("inputs", "[\"x\"]".into())]);
            let norm = self.norm("attn_in", "x", "attn_norm");
            w.nodes(&[vec![norm], self.attention("attn_in")].concat());
            w.section("block.later.tensors", "");
            tensors(w, stored(file, LAYER, ATTN_NORM, "", self.norm_bias).into_iter());
        }
    }

    /// The nodes of attention on `input`; the last one is its result.
    fn attention(&self, input: &str) -> Vec<String> {
        let rope = self.ropes.of_layers();
        let turned = |heads: &str| {
            format!("out = \"{heads}_rot\", op = \"rope\", input = \"{heads}\", rope = \"{rope}\"")
        };
        let window = match self.windows {
            Windows::None => "",
            Windows::All(_) => ", window = \"sliding_window\"",
            Windows::ByLayer(..) => ", window = \"window\"",
        };
        let mut nodes = ["q", "k", "v"].map(|out| linear(out, input, self.attention_bias)).to_vec();
        nodes[2].push_str(IN_TWO_TERMS);
        nodes.extend([
            turned("q"),
            turned("k"),
            format!(
                "out = \"attn\", op = \"attention\", q = \"q_rot\", k = \"k_rot\", v = \"v\", heads = \"heads\", \
                 kv_heads = \"heads\", causal = false{window}"
            ),
            linear("o", "attn", self.attention_bias),
        ]);
        nodes
    }

    fn norm(&self, out: &str, input: &str, weight: &str) -> String {
        let bias = format!("bias = \"{weight}_bias\", ");
        let bias = when(self.norm_bias, &bias);
        format!(
            "out = \"{out}\", op = \"layer_norm\", input = \"{input}\", weight = \"{weight}\", \
             {bias}eps = \"norm_eps\""
        )
    }
}

fn linear(out: &str, input: &str, has_bias: bool) -> String {
    let bias = if has_bias { format!(", bias = \"{out}_bias\"") } else { String::new() };
    format!("out = \"{out}\", op = \"linear\", input = \"{input}\", weight = \"{out}\"{bias}")
}

/// A weight as the spec writes it, and its bias, if it has one: names in the spec, in checkpoints and in GGUF
/// files, and dims. `rows` says which rows are meant.
fn stored(
    file: &dyn EncoderFile,
    place: &'static str,
    [name, published, gguf, shape]: [&str; 4],
    rows: &str,
    has_bias: bool,
) -> Vec<(String, String)> {
    let tensor = |name: String, ending: &str, shape: &str| {
        let [published, gguf] = [published, gguf].map(|module| format!("{module}.{ending}"));
        let tensor = EncoderTensor { name: &name, published: &published, gguf: &gguf, shape, place };
        let text = file.encoder_tensor(&tensor, rows);
        (name, text)
    };
    let mut stored = vec![tensor(name.to_owned(), "weight", shape)];
    if has_bias {
        let rows = shape.split(' ').next().unwrap_or_default();
        stored.push(tensor(format!("{name}_bias"), "bias", rows));
    }
    stored
}

fn tensors(w: &mut TomlWriter, stored: impl Iterator<Item = (String, String)>) {
    let stored: Vec<(String, String)> = stored.collect();
    w.keys(&stored.iter().map(|(name, text)| (name.as_str(), text.clone())).collect::<Vec<_>>());
}

/// The RoPE of each kind of layers: its section's, with the base of the older keys where it states none.
fn ropes(config: &ModelConfig, slides: &[bool]) -> Result<Ropes> {
    let parameters = config.section("rope_parameters")?.unwrap_or(ModelConfig::from_map(Map::new()));
    if let Some((key, _)) =
        parameters.entries().find(|(key, value)| !value.is_null() && KINDS.iter().all(|kind| kind.0 != *key))
    {
        let known = KINDS.map(|kind| kind.0).join(", ");
        return unsupported(format!("key `{key}` of `rope_parameters`; supported are: {known}"));
    }
    let mut sections = Map::new();
    for (kind, older, usual) in KINDS {
        let section = parameters.section(kind)?.unwrap_or(ModelConfig::from_map(Map::new()));
        // The published code rotates all of a head.
        if section.has("partial_rotary_factor") {
            return unsupported(format!("`partial_rotary_factor` of `{kind}` in a ModernBertModel"));
        }
        let theta = match (section.positive("rope_theta")?, config.positive(older)?) {
            (Some(theta), Some(other)) if theta != other => {
                return bad(format!(
                    "`{older}` is {other} but `rope_theta` of `{kind}` is {theta}: expected the same"
                ));
            }
            (theta, other) => theta.or(other).unwrap_or(usual),
        };
        let mut section = section.object().clone();
        section.insert("rope_theta".into(), json!(theta));
        sections.insert(kind.into(), Value::Object(section));
    }
    Ropes::by_kind(&config.with_rope(&ModelConfig::from_map(sections)), slides)
}

#[cfg(test)]
mod tests {
    use crate::front::import::from_config;

    fn import(more: &str) -> Result<String, String> {
        let config = format!(
            r#"{{"architectures": ["ModernBertModel"], "hidden_size": 64, "num_attention_heads": 4,
            "num_hidden_layers": 5, "intermediate_size": 96, "vocab_size": 64{more}}}"#
        );
        from_config("m", &config).map_err(|error| error.to_string())
    }

    #[test]
    fn both_spellings_mean_the_same() {
        // As the first published files have it, with keys of another class.
        let older = import(
            r#", "global_attn_every_n_layers": 2, "local_attention": 16, "global_rope_theta": 5e4,
            "local_rope_theta": 2e4, "layer_norm_eps": 1e-5, "position_embedding_type": "absolute",
            "classifier_pooling": "mean", "reference_compile": true, "decoder_bias": true"#,
        );
        let newer = import(
            r#", "layer_types": ["full_attention", "sliding_attention", "full_attention",
            "sliding_attention", "full_attention"], "local_attention": 17, "rope_parameters": {
            "full_attention": {"rope_type": "default", "rope_theta": 5e4},
            "sliding_attention": {"rope_type": "default", "rope_theta": 2e4}}"#,
        );
        let spec = older.unwrap();
        assert_eq!(newer.as_ref(), Ok(&spec));
        for part in [
            "sliding_window = 9",
            "window    = { cycle = [\"full\", \"sliding_window\"] }",
            "rope      = { cycle = [\"main\", \"local\"] }",
            "attention = { list = [\"first\", \"later\", \"later\", \"later\", \"later\"] }",
        ] {
            assert!(spec.contains(part), "{part}: {spec}");
        }
    }

    #[test]
    fn defaults_are_those_of_the_published_code() {
        let spec = import("").unwrap();
        for part in [
            "max_context    = 8192",
            "norm_eps       = 1e-5",
            "sliding_window = 65",
            "theta    = 160000.0",
            "theta    = 10000.0",
            "[\"full\", \"sliding_window\", \"sliding_window\", \"full\", \"sliding_window\"]",
            "gelu_erf(gate) * up",
        ] {
            assert!(spec.contains(part), "{part}: {spec}");
        }
    }

    #[test]
    fn what_is_another_model_is_refused_by_name() {
        for (more, says) in [
            (r#", "hidden_activation": "relu""#, "activation `relu`"),
            (r#", "layer_types": ["full_attention"]"#, "`layer_types` has 1 entries for 5 layers"),
            (r#", "rope_scaling": {"type": "linear", "factor": 2.0}"#, "unknown key `rope_scaling`"),
            (r#", "rope_theta": 1e4"#, "unknown key `rope_theta`"),
            (r#", "rope_parameters": {"rope_theta": 1e4}"#, "key `rope_theta` of `rope_parameters`"),
            (
                r#", "global_rope_theta": 1e4, "rope_parameters": {"full_attention": {"rope_theta": 2e4}}"#,
                "`global_rope_theta` is 10000 but `rope_theta` of `full_attention` is 20000",
            ),
            (r#", "rope_parameters": {"full_attention": {"rope_type": "x"}}"#, "RoPE scaling `x`"),
            (
                r#", "rope_parameters": {"sliding_attention": {"partial_rotary_factor": 0.5}}"#,
                "`partial_rotary_factor` of `sliding_attention`",
            ),
            (r#", "is_decoder": true"#, "unknown key `is_decoder`"),
            (r#", "head_dim": 32"#, "unknown key `head_dim`"),
            (r#", "sliding_window": 32"#, "unknown key `sliding_window`"),
            (r#", "local_attention": 0"#, "`local_attention` is 0"),
            (r#", "num_key_value_heads": 2"#, "unknown key `num_key_value_heads`"),
        ] {
            let error = import(more).unwrap_err();
            assert!(error.contains(says), "{says}: {error}");
        }
    }
}
