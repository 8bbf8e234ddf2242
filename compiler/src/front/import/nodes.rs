//! The spec of a decoder: the nodes of a layer follow from what its class has.

use super::config::{ModelConfig, head_dim};
use super::decoder::{DecoderModel, HeadNorms, Mixture, NormPlaces, Windows};
use super::error::Result;
use super::tensors::{ModelTensors, Part, in_layer, of_experts, of_mlp};
use super::writer::{TomlWriter, per_layer, quote, when};
use std::fmt::Write;

impl DecoderModel {
    /// The spec of the model called `name`, with the tensors of `file`.
    pub(super) fn spec(&self, name: &str, config: &ModelConfig, file: &dyn ModelTensors) -> Result<String> {
        let kind = if self.mixture.is_some() { "mixture of experts" } else { "dense model" };
        let mut w = TomlWriter::new(name, &format!("{kind} ({})", self.class));
        w.section("model", "");
        w.keys(&[
            ("name", quote(name)),
            ("vocab", quote("vocab")),
            ("max_context", self.ropes.max_context(config)?.to_string()),
        ]);
        let left_out = file.left_out(self);
        if !left_out.is_empty() {
            w.line("# Tensors of the checkpoint that are no part of this model.");
            w.keys(&[("left_out", format!("{left_out:?}"))]);
        }
        w.section("dims", "");
        w.keys(&self.dims(config)?);
        for (name, rope) in self.ropes.named() {
            w.section(&format!("rope.{name}"), "");
            w.keys(&rope.keys());
        }
        let (comment, global) = file.global(self)?;
        w.section("tensors", comment);
        w.keys(&global);
        w.section("before", "");
        w.nodes(&self.before());
        let out = self.mlp_name();
        let comment = format!("One layer; `x` enters it, and `{out}_residual` is the next layer's `x`.");
        w.section("layer", &comment);
        w.keys(&[("count", quote("layers")), ("carry", format!("{{ x = \"{out}_residual\" }}"))]);
        w.nodes(&self.layer(file));
        self.values(&mut w, config.require_whole(&["num_hidden_layers"])? as usize, file);
        let (before, after) = in_layer(self);
        w.section("layer.tensors", file.layer_comment(self));
        w.keys(&file.texts(&[before, after].concat()));
        for (block, nodes, tensors) in self.blocks(file) {
            w.section(&format!("block.{block}"), "");
            w.keys(&[("inputs", "[\"mlp_in\", \"residual\"]".into())]);
            w.nodes(&nodes);
            w.section(&format!("block.{block}.tensors"), "");
            w.keys(&file.texts(&tensors));
        }
        w.section("after", "Only the rows whose logits are wanted go on from `last`.");
        w.nodes(&self.after(file));
        Ok(w.finish())
    }

    fn dims(&self, config: &ModelConfig) -> Result<Vec<(&'static str, String)>> {
        let number = |key: &str| config.require_whole(&[key]);
        let (hidden, heads) = (number("hidden_size")?, number("num_attention_heads")?);
        let mut dims = vec![
            ("vocab", number("vocab_size")?.to_string()),
            ("hidden", hidden.to_string()),
            ("layers", number("num_hidden_layers")?.to_string()),
            ("heads", heads.to_string()),
            ("kv_heads", config.whole(&["num_key_value_heads"])?.unwrap_or(heads).to_string()),
            ("head_dim", head_dim(config)?.to_string()),
            ("q_dim", quote("heads * head_dim")),
            ("kv_dim", quote("kv_heads * head_dim")),
        ];
        if self.mixture.as_ref().is_none_or(Mixture::by_layer) {
            dims.push(("mlp_hidden", number("intermediate_size")?.to_string()));
        }
        if let Some(mixture) = &self.mixture {
            dims.extend([
                ("experts", mixture.experts.to_string()),
                ("top_k", mixture.top_k.to_string()),
                ("expert_hidden", mixture.inner.to_string()),
            ]);
            dims.extend(mixture.shared.map(|(inner, _)| ("shared_hidden", inner.to_string())));
        }
        dims.push(("norm_eps", format!("{:?}", config.require_positive("rms_norm_eps")?)));
        if let Windows::All(tokens) | Windows::ByLayer(_, tokens) = &self.windows {
            dims.push(("sliding_window", tokens.to_string()));
        }
        Ok(dims)
    }

    fn before(&self) -> Vec<String> {
        match self.embed_scale {
            None => vec!["out = \"x\", op = \"embed\", table = \"embed\"".into()],
            Some(scale) => vec![
                "out = \"embedded\", op = \"embed\", table = \"embed\"".into(),
                scaled("x", "embedded", scale),
            ],
        }
    }

    /// The name of what a layer has behind attention.
    fn mlp_name(&self) -> &'static str {
        if self.mixture.as_ref().is_some_and(|mixture| !mixture.by_layer()) { "moe" } else { "mlp" }
    }

    fn layer(&self, file: &dyn ModelTensors) -> Vec<String> {
        let mut nodes = self.attention(file);
        let entry = format!("{}_in", self.mlp_name());
        let input = match self.norms {
            NormPlaces::After => "attn_residual",
            _ => {
                nodes.push(norm(&entry, "attn_residual", &format!("{}_norm", self.mlp_name())));
                entry.as_str()
            }
        };
        match &self.mixture {
            None => self.mlp(&mut nodes, input, "attn_residual", file),
            Some(mixture) if mixture.by_layer() => nodes.push(format!(
                "out = \"mlp_residual\", block = \"mlp\", mlp_in = \"{input}\", residual = \"attn_residual\""
            )),
            Some(mixture) => self.experts(&mut nodes, mixture, input, "attn_residual"),
        }
        nodes
    }

    /// The blocks that layers have in turns: name, nodes and tensors.
    fn blocks(&self, file: &dyn ModelTensors) -> Vec<(&'static str, Vec<String>, Vec<Part>)> {
        let Some(mixture) = self.mixture.as_ref().filter(|mixture| mixture.by_layer()) else {
            return Vec::new();
        };
        let (mut dense, mut experts) = (Vec::new(), Vec::new());
        self.mlp(&mut dense, "mlp_in", "residual", file);
        self.experts(&mut experts, mixture, "mlp_in", "residual");
        vec![("dense", dense, of_mlp(self)), ("experts", experts, of_experts(self, mixture))]
    }

    fn attention(&self, file: &dyn ModelTensors) -> Vec<String> {
        let mut nodes = Vec::new();
        let input = match self.norms {
            NormPlaces::After => "x",
            _ => {
                nodes.push(norm("attn_in", "x", "attn_norm"));
                "attn_in"
            }
        };
        nodes.extend(["q", "k"].map(|out| linear(out, input, self.qkv_bias)));
        let twice = when(self.mixture.is_none() && file.is_in_blocks("v"), IN_TWO_TERMS);
        nodes.push(linear("v", input, self.qkv_bias) + twice);
        let mut normed = |heads: &str| {
            if self.head_norms == HeadNorms::None {
                return heads.to_owned();
            }
            let by_head = when(self.head_norms == HeadNorms::Heads, "head_dim = \"head_dim\", ");
            nodes.push(format!(
                "out = \"{heads}_normed\", op = \"rms_norm\", input = \"{heads}\", weight = \"{heads}_norm\", \
                 {by_head}eps = \"norm_eps\""
            ));
            format!("{heads}_normed")
        };
        let rope = self.ropes.of_layers();
        let rotated = ["q", "k"].map(|heads| {
            let input = normed(heads);
            format!("out = \"{heads}_rot\", op = \"rope\", input = \"{input}\", rope = \"{rope}\"")
        });
        nodes.extend(rotated);
        let mut keys = String::new();
        let _ = self.scale.map(|scale| write!(keys, ", scale = {scale:?}"));
        let _ = self.softcap.map(|cap| write!(keys, ", softcap = {cap:?}"));
        keys.push_str(match self.windows {
            Windows::None => "",
            Windows::All(_) => ", window = \"sliding_window\"",
            Windows::ByLayer(..) => ", window = \"window\"",
        });
        keys.push_str(when(self.sinks, ", sinks = \"sinks\""));
        nodes.push(format!(
            "out = \"attn\", op = \"attention\", q = \"q_rot\", k = \"k_rot\", v = \"v\", \
             heads = \"heads\", kv_heads = \"kv_heads\"{keys}"
        ));
        nodes.push(linear("o", "attn", self.o_bias));
        self.join(&mut nodes, "x", "o", "attn");
        nodes
    }

    /// Adds `out` to the residual stream `x`, with the norm and the factor that the class has there.
    fn join(&self, nodes: &mut Vec<String>, x: &str, out: &str, part: &str) {
        let mut out = out.to_owned();
        if self.norms != NormPlaces::Before {
            nodes.push(norm(&format!("{part}_normed"), &out, &format!("{part}_post_norm")));
            out = format!("{part}_normed");
        }
        nodes.push(match self.residual_scale {
            None => format!("out = \"{part}_residual\", op = \"add\", inputs = [\"{x}\", \"{out}\"]"),
            Some(scale) => format!(
                "out = \"{part}_residual\", op = \"elementwise\", inputs = [\"{out}\", \"{x}\"], \
                 expr = \"{x} + {out} * {scale:?}\""
            ),
        });
    }

    /// Gate, up, activation and down, from `input`, added to `residual`.
    fn mlp(&self, nodes: &mut Vec<String>, input: &str, residual: &str, file: &dyn ModelTensors) {
        let mlp = |out: &'static str, input: &str| {
            let more = match (file.is_in_blocks(out), &self.mixture, out) {
                (false, ..) => "",
                (true, None, "down") => ", activations = \"down_input\"",
                (true, None, _) => ", activations = \"mlp_input\"",
                (true, Some(_), _) => ", activations = \"f32_in_last_layer\"",
            };
            linear(out, input, self.mlp_bias) + more
        };
        let activation = &self.activation;
        nodes.extend([
            mlp("gate", input),
            mlp("up", input),
            format!("out = \"act\", op = \"glu\", gate = \"gate\", up = \"up\", expr = \"{activation}\""),
            mlp("down", "act"),
        ]);
        self.join(nodes, residual, "down", "mlp");
    }

    /// The router, the chosen experts, and what every token passes beside them, added to `residual`.
    fn experts(&self, nodes: &mut Vec<String>, mixture: &Mixture, input: &str, residual: &str) {
        let activation = &self.activation;
        let bias = when(mixture.choice_bias, ", bias = \"choice_bias\"");
        let biases = when(
            mixture.biases,
            "gate_bias = \"gate_bias\", up_bias = \"up_bias\", down_bias = \"down_bias\", ",
        );
        nodes.extend([
            linear("router", input, mixture.biases),
            format!(
                "out = \"routing\", op = \"router_topk\", input = \"router\", k = \"top_k\"{}{bias}",
                mixture.route
            ),
            format!(
                "out = \"moe\", op = \"moe\", input = \"{input}\", routing = \"routing\", gate = \"gate\", \
                 up = \"up\", down = \"down\", {biases}activation = \"{activation}\""
            ),
        ]);
        let Some((_, gated)) = mixture.shared else {
            return self.join(nodes, residual, "moe", self.mlp_name());
        };
        // The experts are added first, so that each sum is with the product that it follows.
        nodes.push(format!("out = \"experts_residual\", op = \"add\", inputs = [\"{residual}\", \"moe\"]"));
        nodes.extend([
            linear("shared_gate", input, false),
            linear("shared_up", input, false),
            format!(
                "out = \"shared_act\", op = \"glu\", gate = \"shared_gate\", up = \"shared_up\", \
                 expr = \"{activation}\""
            ),
            linear("shared_down", "shared_act", false),
        ]);
        let out = format!("{}_residual", self.mlp_name());
        if gated {
            nodes.push(linear("shared_router", input, false));
            nodes.push(format!(
                "out = \"{out}\", op = \"elementwise\", inputs = [\"experts_residual\", \"shared_down\", \
                 \"shared_router\"], expr = \"experts_residual + shared_down * sigmoid(shared_router)\""
            ));
        } else {
            nodes.push(format!(
                "out = \"{out}\", op = \"add\", inputs = [\"experts_residual\", \"shared_down\"]"
            ));
        }
    }

    /// Values by layer: windows, RoPEs, roundings, and the kinds of MLP.
    fn values(&self, w: &mut TomlWriter, layers: usize, file: &dyn ModelTensors) {
        let mut values = Vec::new();
        let mut says = Vec::new();
        if let Windows::ByLayer(slides, _) = &self.windows {
            let word = |&slides: &bool| if slides { "sliding_window" } else { "full" };
            says.push("attention to the last `sliding_window` tokens, or to all");
            values.push(("window", per_layer(&slides.iter().map(word).collect::<Vec<_>>())));
        }
        if let Some(words) = self.ropes.by_layer() {
            says.push("its RoPE");
            values.push(("rope", per_layer(words)));
        }
        if let Some(mixture) = self.mixture.as_ref().filter(|mixture| mixture.by_layer()) {
            let word = |&dense: &bool| if dense { "dense" } else { "experts" };
            says.push("one MLP, or experts");
            values.push(("mlp", per_layer(&mixture.dense.iter().map(word).collect::<Vec<_>>())));
        }
        // docs/dev/numerics.md says why these layers.
        let in_two_terms = |last: usize| {
            let word = |layer| if layer + last < layers { "preset" } else { "q8x2" };
            per_layer(&(0..layers).map(word).collect::<Vec<_>>())
        };
        let kept = |modules: &[&str]| {
            self.mixture.is_none() && modules.iter().any(|module| file.is_in_blocks(module))
        };
        if kept(&["gate", "up"]) {
            says.push("8 bits of an MLP's inputs, or twice 8");
            values.push(("mlp_input", in_two_terms(1)));
        }
        if kept(&["down"]) {
            values.push(("down_input", in_two_terms(layers.div_ceil(2))));
        }
        if !values.is_empty() {
            w.section("layer.values", &format!("By layer: {}.", says.join("; ")));
            w.keys(&values);
        }
    }

    fn after(&self, file: &dyn ModelTensors) -> Vec<String> {
        let stays = when(self.mixture.is_none() && file.is_in_blocks("logits"), ", activations = \"f32\"");
        let mut nodes = vec![
            "out = \"last\", op = \"select_rows\", input = \"x\"".into(),
            norm("normed", "last", "final_norm"),
            format!("out = \"logits\", op = \"logits\", input = \"normed\", weight = \"lm_head\"{stays}"),
        ];
        nodes.extend(self.logits.as_ref().map(|expr| {
            format!("out = \"final_logits\", op = \"elementwise\", inputs = [\"logits\"], expr = \"{expr}\"")
        }));
        nodes
    }
}

/// The key that keeps more of a product's input than 8 bits, at twice the arithmetic.
pub(super) const IN_TWO_TERMS: &str = ", activations = \"q8x2\"";

fn norm(out: &str, input: &str, weight: &str) -> String {
    format!(
        "out = \"{out}\", op = \"rms_norm\", input = \"{input}\", weight = \"{weight}\", eps = \"norm_eps\""
    )
}

fn linear(out: &str, input: &str, bias: bool) -> String {
    let bias = if bias { format!(", bias = \"{out}_bias\"") } else { String::new() };
    format!("out = \"{out}\", op = \"linear\", input = \"{input}\", weight = \"{out}\"{bias}")
}

fn scaled(out: &str, input: &str, scale: f64) -> String {
    format!("out = \"{out}\", op = \"elementwise\", inputs = [\"{input}\"], expr = \"{input} * {scale:?}\"")
}
