//! GGUF files of the committed checkpoints, in the layout that published converters give them.

use super::writer::{BF16, F32, MXFP4, Q8_0, Writer};
use crate::harness::oracle;
use half::{bf16, f16};
use safetensors::{Dtype, SafeTensors};
use serde_json::Value as Json;

/// The file of checkpoint `name`; `matrix` is the type of its bf16 matrices.
pub fn convert(name: &str, matrix: u32) -> Writer {
    let config = std::fs::read_to_string(oracle(name).join("config.json")).unwrap();
    let config: Json = serde_json::from_str(&config).unwrap();
    let bytes = std::fs::read(oracle(name).join("model.safetensors")).unwrap();
    let checkpoint = SafeTensors::deserialize(&bytes).unwrap();
    let mut writer = Writer::default();
    let arch = if config["model_type"] == "gpt_oss" { "gpt-oss" } else { "llama" };
    metadata(&mut writer, arch, &config);
    let mut converter = Converter { writer, checkpoint, matrix };
    for (from, to) in
        [("model.embed_tokens", "token_embd"), ("model.norm", "output_norm"), ("lm_head", "output")]
    {
        converter.copy(&format!("{from}.weight"), &format!("{to}.weight"), None);
    }
    for layer in 0..config["num_hidden_layers"].as_u64().unwrap() {
        let (from, to) = (format!("model.layers.{layer}"), format!("blk.{layer}"));
        match arch {
            "gpt-oss" => converter.gpt_oss_layer(&from, &to),
            _ => converter.llama_layer(&from, &to, &config),
        }
    }
    converter.writer
}

fn metadata(writer: &mut Writer, arch: &str, config: &Json) {
    let whole = |key: &str| config[key].as_u64().unwrap() as u32;
    let number = |value: &Json| value.as_f64().unwrap() as f32;
    writer.set("general.architecture", arch);
    writer.set("general.name", "a test");
    let mut set = |key: &str, value: super::writer::Value| writer.set(&format!("{arch}.{key}"), value);
    set("block_count", whole("num_hidden_layers").into());
    set("context_length", whole("max_position_embeddings").into());
    set("embedding_length", whole("hidden_size").into());
    set("feed_forward_length", whole("intermediate_size").into());
    set("attention.head_count", whole("num_attention_heads").into());
    set("attention.head_count_kv", whole("num_key_value_heads").into());
    set("attention.layer_norm_rms_epsilon", number(&config["rms_norm_eps"]).into());
    set("rope.freq_base", number(&config["rope_theta"]).into());
    if arch == "gpt-oss" {
        let scaling = &config["rope_scaling"];
        set("attention.key_length", whole("head_dim").into());
        set("attention.value_length", whole("head_dim").into());
        set("attention.sliding_window", whole("sliding_window").into());
        set("expert_count", whole("num_local_experts").into());
        set("expert_used_count", whole("num_experts_per_tok").into());
        set("expert_feed_forward_length", whole("intermediate_size").into());
        set("rope.scaling.type", "yarn".into());
        set("rope.scaling.factor", number(&scaling["factor"]).into());
        let context = scaling["original_max_position_embeddings"].as_u64().unwrap() as u32;
        set("rope.scaling.original_context_length", context.into());
    }
}

struct Converter<'a> {
    writer: Writer,
    checkpoint: SafeTensors<'a>,
    matrix: u32,
}

impl Converter<'_> {
    fn gpt_oss_layer(&mut self, from: &str, to: &str) {
        for (a, b) in
            [("q_proj", "attn_q"), ("k_proj", "attn_k"), ("v_proj", "attn_v"), ("o_proj", "attn_output")]
        {
            for part in ["weight", "bias"] {
                self.copy(&format!("{from}.self_attn.{a}.{part}"), &format!("{to}.{b}.{part}"), None);
            }
        }
        for (a, b) in [
            ("input_layernorm.weight", "attn_norm.weight"),
            ("self_attn.sinks", "attn_sinks.weight"),
            ("post_attention_layernorm.weight", "post_attention_norm.weight"),
            ("mlp.router.bias", "ffn_gate_inp.bias"),
            ("mlp.experts.down_proj_bias", "ffn_down_exps.bias"),
        ] {
            self.copy_as_f32(&format!("{from}.{a}"), &format!("{to}.{b}"), |_| true);
        }
        self.copy_as_f32(&format!("{from}.mlp.router.weight"), &format!("{to}.ffn_gate_inp.weight"), |_| {
            true
        });
        let experts = format!("{from}.mlp.experts");
        let bias = format!("{experts}.gate_up_proj_bias");
        self.copy_as_f32(&bias, &format!("{to}.ffn_gate_exps.bias"), |i| i % 2 == 0);
        self.copy_as_f32(&bias, &format!("{to}.ffn_up_exps.bias"), |i| i % 2 == 1);
        self.experts(&format!("{experts}.gate_up_proj"), &format!("{to}.ffn_gate_exps.weight"), |row| {
            row % 2 == 0
        });
        self.experts(&format!("{experts}.gate_up_proj"), &format!("{to}.ffn_up_exps.weight"), |row| {
            row % 2 == 1
        });
        self.experts(&format!("{experts}.down_proj"), &format!("{to}.ffn_down_exps.weight"), |_| true);
    }

    fn llama_layer(&mut self, from: &str, to: &str, config: &Json) {
        let heads = config["num_attention_heads"].as_u64().unwrap() as usize;
        let head_dim = config["hidden_size"].as_u64().unwrap() as usize / heads;
        for (a, b, paired) in [
            ("input_layernorm", "attn_norm", false),
            ("self_attn.q_proj", "attn_q", true),
            ("self_attn.k_proj", "attn_k", true),
            ("self_attn.v_proj", "attn_v", false),
            ("self_attn.o_proj", "attn_output", false),
            ("post_attention_layernorm", "ffn_norm", false),
            ("mlp.gate_proj", "ffn_gate", false),
            ("mlp.up_proj", "ffn_up", false),
            ("mlp.down_proj", "ffn_down", false),
        ] {
            let head = paired.then_some(head_dim);
            self.copy(&format!("{from}.{a}.weight"), &format!("{to}.{b}.weight"), head);
        }
    }

    /// A bf16 tensor: matrices in the chosen type, vectors in F32. With `head`, the halves of each head are
    /// interleaved.
    fn copy(&mut self, from: &str, to: &str, head: Option<usize>) {
        let view = self.checkpoint.tensor(from).unwrap();
        let [rows, cols] = *view.shape() else { return self.copy_as_f32(from, to, |_| true) };
        let mut data = widen(view.data());
        if let Some(head) = head {
            let source = data.clone();
            for row in 0..rows {
                // The two halves are rotated together, so converters put their rows side by side.
                let (first, i) = (row / head * head, row % head);
                let place = if i < head / 2 { first + 2 * i } else { first + 2 * (i - head / 2) + 1 };
                data[place * cols..][..cols].copy_from_slice(&source[row * cols..][..cols]);
            }
        }
        self.writer.add(to, &[cols as u64, rows as u64], self.matrix, encode(self.matrix, &data));
    }

    /// The elements whose index along the last dimension is `wanted`, in F32.
    fn copy_as_f32(&mut self, from: &str, to: &str, wanted: impl Fn(usize) -> bool) {
        let view = self.checkpoint.tensor(from).unwrap();
        assert_eq!(view.dtype(), Dtype::BF16);
        let cols = *view.shape().last().unwrap();
        let kept = (0..cols).filter(|&i| wanted(i)).count();
        let data: Vec<f32> = widen(view.data())
            .chunks(cols)
            .flat_map(|row| (0..cols).filter(|&i| wanted(i)).map(|i| row[i]))
            .collect();
        let dims = [
            &[kept as u64],
            &view.shape()[..view.shape().len() - 1].iter().map(|&d| d as u64).rev().collect::<Vec<_>>()[..],
        ];
        self.writer.add(to, &dims.concat(), F32, encode(F32, &data));
    }

    /// MXFP4 experts: the rows `wanted` of each.
    fn experts(&mut self, from: &str, to: &str, wanted: impl Fn(usize) -> bool) {
        let blocks = self.checkpoint.tensor(&format!("{from}_blocks")).unwrap();
        let scales = self.checkpoint.tensor(&format!("{from}_scales")).unwrap();
        let [experts, rows, per_row] = *scales.shape() else { panic!("{from}: {:?}", scales.shape()) };
        let mut data = Vec::new();
        for row in (0..experts * rows).filter(|row| wanted(row % rows)) {
            for block in row * per_row..(row + 1) * per_row {
                let codes = &blocks.data()[block * 16..][..16];
                let code = |k: usize| codes[k / 2] >> (k % 2 * 4) & 15;
                data.push(scales.data()[block]);
                data.extend((0..16).map(|i| code(i) | code(i + 16) << 4));
            }
        }
        let kept = (0..rows).filter(|&row| wanted(row)).count();
        let dims = [per_row as u64 * 32, kept as u64, experts as u64];
        self.writer.add(to, &dims, MXFP4, data);
    }
}

fn widen(data: &[u8]) -> Vec<f32> {
    data.chunks_exact(2).map(|b| bf16::from_le_bytes([b[0], b[1]]).to_f32()).collect()
}

fn encode(kind: u32, data: &[f32]) -> Vec<u8> {
    match kind {
        F32 => data.iter().flat_map(|x| x.to_le_bytes()).collect(),
        BF16 => data.iter().flat_map(|x| bf16::from_f32(*x).to_le_bytes()).collect(),
        Q8_0 => data.chunks(32).flat_map(|block| q8_0(block).0).collect(),
        other => panic!("type {other}"),
    }
}

/// A block of Q8_0: its bytes, and the values that they stand for.
pub fn q8_0(block: &[f32]) -> (Vec<u8>, Vec<f32>) {
    let largest = block.iter().fold(0.0f32, |m, x| m.max(x.abs()));
    let scale = f16::from_f32(largest / 127.0);
    let inverse = if largest == 0.0 { 0.0 } else { 127.0 / largest };
    let codes: Vec<i8> = block.iter().map(|x| (x * inverse).round() as i8).collect();
    let values = codes.iter().map(|&q| f32::from(q) * scale.to_f32()).collect();
    (scale.to_le_bytes().into_iter().chain(codes.iter().map(|q| q.cast_unsigned())).collect(), values)
}
