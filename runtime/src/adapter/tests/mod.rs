//! Adapters in the making, for the tests.

mod reading;
mod refusals;
mod store;
mod table;
mod tiles;

use super::{Adapter, AdapterError, AdapterLoader, AdapterStore, AdapterTable, AdapterUse};
use kernmill_os::region::WeightRegion;
use kernmill_plan::adapter::{Adapters, LoraTarget, LoraTargetSlice, PackedAt};
use kernmill_plan::format::WeightFormat;
use kernmill_plan::format::pack_f32_tile;
use safetensors::tensor::TensorView;
use safetensors::{Dtype, serialize};
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use std::sync::Arc;

const HIDDEN: usize = 8;
const FF: usize = 12;
const EXPERTS: usize = 3;

/// q `[16, 8]`, a router `[3, 8]`, and experts `[3, 24, 8]` and `[3, 8, 12]`, of two layers.
fn adapters() -> Adapters {
    let mut lora_targets = Vec::new();
    for layer in 0..2 {
        let mut lora_target = |tensor: &str, experts: usize, k: usize, rows: &[(usize, usize, usize)]| {
            let out = |(rows, first, step): &(usize, usize, usize)| LoraTargetSlice {
                name: "w".into(),
                rows: *rows as u32,
                first: *first as u32,
                step: *step as u32,
                weights: PackedAt {
                    format: WeightFormat::F32,
                    offset: 0,
                    tile_stride: WeightFormat::F32.tile(k).bytes() as u64,
                    expert_stride: 0,
                },
            };
            lora_targets.push(LoraTarget {
                name: format!("layers.{layer}.{}", tensor.split('.').next_back().unwrap_or(tensor)),
                tensor: format!("model.layers.{layer}.{tensor}"),
                k: k as u32,
                experts: experts as u32,
                outs: rows.iter().map(out).collect(),
            });
        };
        lora_target("self_attn.q_proj.weight", 0, HIDDEN, &[(16, 0, 1)]);
        lora_target("mlp.router.weight", 0, HIDDEN, &[(EXPERTS, 0, 1)]);
        lora_target("mlp.experts.gate_up_proj_blocks", EXPERTS, HIDDEN, &[(FF, 0, 2), (FF, 1, 2)]);
        lora_target("mlp.experts.down_proj_blocks", EXPERTS, FF, &[(HIDDEN, 0, 1)]);
    }
    Adapters { format: WeightFormat::F32, lora_targets }
}

/// A loader whose base weights of every dense matrix are the same 16 rows, all ones.
fn loader() -> AdapterLoader {
    let mut weights = WeightRegion::anonymous(1 << 16).unwrap();
    let tile = &mut weights.as_mut_slice()[..WeightFormat::F32.tile(HIDDEN).bytes()];
    pack_f32_tile(WeightFormat::F32, HIDDEN, &[1.0; 16 * HIDDEN], tile).unwrap();
    AdapterLoader::new(Arc::new(adapters()), weights.freeze().unwrap(), "small".into())
}

/// An adapter in the making: its config, and tensors by name.
#[derive(Clone)]
struct Draft {
    config: Value,
    tensors: Vec<(String, Dtype, Vec<usize>, Vec<u8>)>,
}

const PREFIX: &str = "base_model.model.model.layers.";

impl Draft {
    fn new(config: Value) -> Draft {
        let mut all = json!({ "peft_type": "LORA", "base_model_name_or_path": "small-base", "r": 2,
            "lora_alpha": 4, "bias": "none" });
        for (key, value) in config.as_object().unwrap() {
            all[key] = value.clone();
        }
        Draft { config: all, tensors: Vec::new() }
    }

    /// q of both layers, rank 2.
    fn of_q() -> Draft {
        let draft = Draft::new(json!({ "target_modules": ["q_proj"] }));
        (0..2).fold(draft, |draft, layer| {
            draft.pair(&format!("{layer}.self_attn.q_proj"), [2, HIDDEN], [16, 2])
        })
    }

    fn with(mut self, key: &str, value: Value) -> Draft {
        self.config[key] = value;
        self
    }

    fn pair(self, module: &str, a: [usize; 2], b: [usize; 2]) -> Draft {
        let name = |part| format!("{PREFIX}{module}.lora_{part}.weight");
        self.tensor(&name('A'), &a, None).tensor(&name('B'), &b, None)
    }

    /// A tensor of f32, the numbers 1, 2, 3 and so on unless given.
    fn tensor(mut self, name: &str, shape: &[usize], values: Option<&[f32]>) -> Draft {
        let count = shape.iter().product::<usize>();
        let numbers: Vec<f32> = (1..=count).map(|i| i as f32).collect();
        let bytes = values.unwrap_or(&numbers).iter().flat_map(|x| x.to_le_bytes()).collect();
        self.tensors.retain(|(other, ..)| other != name);
        self.tensors.push((name.to_owned(), Dtype::F32, shape.to_vec(), bytes));
        self
    }

    fn without(mut self, end: &str) -> Draft {
        self.tensors.retain(|(name, ..)| !name.ends_with(end));
        self
    }

    fn file(&self) -> Vec<u8> {
        let view = |(name, dtype, shape, bytes): &'_ (String, Dtype, Vec<usize>, Vec<u8>)| {
            (name.clone(), *dtype, shape.clone(), bytes.clone())
        };
        let tensors: Vec<_> = self.tensors.iter().map(view).collect();
        let views = tensors.iter().map(|(name, dtype, shape, bytes)| {
            (name.as_str(), TensorView::new(*dtype, shape.clone(), bytes).unwrap())
        });
        serialize(views, None).unwrap()
    }

    fn load(&self) -> Result<Adapter, AdapterError> {
        self.load_with(&loader())
    }

    fn load_with(&self, loader: &AdapterLoader) -> Result<Adapter, AdapterError> {
        let config = self.config.to_string();
        loader.open_bytes(Path::new("dir"), &config, self.file(), 1.0)?.run()
    }

    fn refusal(&self) -> String {
        self.load().map(|_| ()).unwrap_err().to_string()
    }
}
