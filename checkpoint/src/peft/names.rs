//! PEFT's names of the matrices of a program's LoRA targets.

use super::error::PeftError;
use kernmill_plan::adapter::{Adapters, Published, published};

/// A matrix, or one for each expert, that PEFT may have an adapter for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PeftTarget {
    /// The module that PEFT wraps, such as `model.layers.3.self_attn.q_proj` or `model.layers.3.mlp.experts`.
    pub module: String,
    /// The parameter, such as `model.layers.3.mlp.router.weight` or `model.layers.3.mlp.experts.down_proj`.
    pub parameter: String,
    /// Columns.
    pub k: usize,
    /// Rows (of each expert's).
    pub rows: usize,
    /// Experts; 0 for a dense matrix.
    pub experts: usize,
    /// The LoRA targets that share its rows: a GGUF file has gate and up apart, PEFT has them in one.
    pub parts: Vec<TargetRows>,
}

/// A LoRA target that has some of a target's rows: row i is row `first + i * step` of the target.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TargetRows {
    pub lora_target: usize,
    pub first: usize,
    pub step: usize,
}

impl PeftTarget {
    /// The name that patterns of ranks are matched with.
    pub fn key(&self, by_parameter: bool) -> &str {
        if by_parameter { &self.parameter } else { &self.module }
    }
}

/// Every LoRA target of the program is part of one target.
///
/// # Errors
/// When LoRA targets that share a target do not have each of its rows once. Plans from elsewhere can say so.
pub fn targets(adapters: &Adapters) -> Result<Vec<PeftTarget>, PeftError> {
    let mut targets: Vec<PeftTarget> = Vec::new();
    for (index, lora_target) in adapters.lora_targets.iter().enumerate() {
        let Published { parameter, first, step } = published(&lora_target.tensor);
        let experts = lora_target.experts as usize;
        let part = TargetRows { lora_target: index, first, step };
        let rows = lora_target.rows();
        if let Some(target) = targets.iter_mut().find(|target| target.parameter == parameter) {
            let alike = (target.k, target.experts) == (lora_target.k as usize, experts);
            let new = target.parts.iter().all(|other| other.step == step && other.first != first);
            if !(alike && new && target.rows == target.parts.len() * rows) {
                return Err(apart(&target.parameter));
            }
            target.rows += rows;
            target.parts.push(part);
            continue;
        }
        let module = match (experts, parameter.rsplit_once('.')) {
            (0, _) => parameter.strip_suffix(".weight").unwrap_or(&parameter),
            (_, Some((module, _))) => module,
            (_, None) => "",
        };
        let (module, k) = (module.to_owned(), lora_target.k as usize);
        targets.push(PeftTarget { module, parameter, k, rows, experts, parts: vec![part] });
    }
    match targets.iter().find(|target| target.parts.len() != target.parts[0].step) {
        Some(target) => Err(apart(&target.parameter)),
        None => Ok(targets),
    }
}

fn apart(parameter: &str) -> PeftError {
    PeftError::LoraTargets(format!("its matrices for `{parameter}` do not have each of its rows once"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use kernmill_plan::adapter::{LoraTarget, LoraTargetSlice, PackedAt};
    use kernmill_plan::format::WeightFormat;

    fn lora_target(tensor: &str, experts: u32, rows: u32) -> LoraTarget {
        let weights = PackedAt { format: WeightFormat::Int8, offset: 0, tile_stride: 0, expert_stride: 0 };
        let out = LoraTargetSlice { name: "w".into(), rows, first: 0, step: 1, weights };
        LoraTarget { name: "s".into(), tensor: tensor.into(), k: 64, experts, outs: vec![out] }
    }

    #[test]
    fn names_of_checkpoints_and_of_gguf_files_meet() {
        let of = |lora_targets: Vec<LoraTarget>| {
            targets(&Adapters { format: WeightFormat::F32, lora_targets }).unwrap()
        };
        let published = of(vec![
            lora_target("model.layers.2.self_attn.q_proj.weight", 0, 128),
            lora_target("model.layers.2.mlp.router.weight", 0, 4),
            lora_target("model.layers.2.mlp.experts.gate_up_proj_blocks", 4, 64),
            lora_target("model.layers.2.mlp.experts.down_proj", 4, 64),
        ]);
        let names: Vec<[&str; 2]> = published.iter().map(|t| [t.module.as_str(), &t.parameter]).collect();
        assert_eq!(
            names,
            [
                ["model.layers.2.self_attn.q_proj", "model.layers.2.self_attn.q_proj.weight"],
                ["model.layers.2.mlp.router", "model.layers.2.mlp.router.weight"],
                ["model.layers.2.mlp.experts", "model.layers.2.mlp.experts.gate_up_proj"],
                ["model.layers.2.mlp.experts", "model.layers.2.mlp.experts.down_proj"],
            ]
        );
        let gguf = of(vec![
            lora_target("blk.2.attn_q.weight", 0, 128),
            lora_target("blk.2.ffn_gate_inp.weight", 0, 4),
            lora_target("blk.2.ffn_gate_exps.weight", 4, 32),
            lora_target("blk.2.ffn_up_exps.weight", 4, 32),
            lora_target("blk.2.ffn_down_exps.weight", 4, 64),
        ]);
        for (a, b) in published.iter().zip(&gguf) {
            assert_eq!((&a.module, &a.parameter, a.rows), (&b.module, &b.parameter, b.rows));
        }
        let part = |lora_target, first| TargetRows { lora_target, first, step: 2 };
        assert_eq!(gguf[2].parts, [part(2, 0), part(3, 1)]);
    }
}
