//! Random adapters of a model's true shapes, as PEFT's `save_pretrained` writes them.

use super::fill::{ByteFill, Scatter, scatters};
use super::{
    NewDirs, PlannedTensor, Result, SPACE_MARGIN, SynthError, check_space, io_error, small_file, start,
    write_shard,
};
use crate::ir::{Graph, Role, Tensor};
use crate::weights::row_shape;
use kernmill_os::float_env::FloatEnv;
use kernmill_plan::adapter::{Published, published};
use std::collections::BTreeSet;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};

/// Size of what an adapter adds, relative to what the matrix itself gives.
const GAIN: f32 = 0.1;
const CONFIG: &str = "adapter_config.json";
const TENSORS: &str = "adapter_model.safetensors";

/// The shape of a random adapter.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AdapterShape {
    /// Rank, the same everywhere.
    pub rank: usize,
    /// Matrices: ends of modules' names, with or without `_proj`, such as `q` or `router`; `experts` for both
    /// matrices of experts.
    pub targets: Vec<String>,
    /// Whether it is a DoRA; dense matrices only.
    pub dora: bool,
}

/// A matrix that may have an adapter.
struct AdaptedMatrix {
    /// PEFT's module.
    module: String,
    /// The parameter within it.
    parameter: String,
    rows: usize,
    k: usize,
    /// 0 for a dense matrix.
    experts: usize,
    /// Standard deviation of what the matrix gives for inputs of variance 1.
    output: f32,
}

impl AdaptedMatrix {
    fn is_target(&self, target: &str) -> bool {
        let last = self.module.rsplit('.').next().unwrap_or(&self.module);
        match self.experts {
            0 => last == target || last.strip_suffix("_proj") == Some(target),
            _ => {
                target == last
                    || self.parameter == target
                    || self.parameter.strip_suffix("_proj") == Some(target)
            }
        }
    }

    /// Whether PEFT reaches it as a parameter, which is how it finds what no linear module holds.
    fn by_parameter(&self) -> bool {
        self.experts > 0 || self.module.ends_with(".router")
    }
}

/// Writes a random adapter for `graph` into `dir`; `progress` gets bytes done and bytes in all. The same seed
/// gives the same bytes.
///
/// # Errors
/// When a target is no matrix of the graph, a DoRA has experts, there is not enough space, an adapter is
/// there already, or writing fails.
pub fn write_adapter(
    graph: &Graph,
    dir: &Path,
    shape: &AdapterShape,
    seed: u64,
    progress: &(dyn Fn(u64, u64) + Sync),
) -> Result<()> {
    let _env = FloatEnv::standard();
    let places = chosen(graph, shape)?;
    let planned: Vec<PlannedTensor> =
        places.iter().flat_map(|place| tensors(place, &places, shape)).collect();
    for file in [CONFIG, TENSORS] {
        if dir.join(file).exists() {
            return Err(SynthError::Exists { path: dir.join(file) });
        }
    }
    let total: u64 = planned.iter().map(|p| p.bytes).sum();
    check_space(NewDirs::existing(dir), total + SPACE_MARGIN)?;
    let made = NewDirs::create(dir)?;
    let tensors = start(dir, TENSORS)?;
    let done = AtomicU64::new(0);
    let count = |bytes| progress(done.fetch_add(bytes, Ordering::Relaxed) + bytes, total);
    write_shard(tensors.file(), &planned, seed, &count).map_err(io_error(tensors.path()))?;
    for file in [tensors, small_file(dir, CONFIG, &config(graph, &places, shape))?] {
        let path = file.path().to_owned();
        file.finish().map_err(io_error(&path))?;
    }
    made.keep();
    Ok(())
}

/// The matrices that are asked for.
fn chosen(graph: &Graph, shape: &AdapterShape) -> Result<Vec<AdaptedMatrix>> {
    let mut all: Vec<AdaptedMatrix> = Vec::new();
    for place in
        graph.tensors.iter().zip(scatters(graph)).filter_map(|(tensor, scatter)| place(tensor, scatter))
    {
        let is_same =
            |other: &AdaptedMatrix| (&other.module, &other.parameter) == (&place.module, &place.parameter);
        if !all.iter().any(is_same) {
            all.push(place);
        }
    }
    if all.is_empty() {
        return Err(SynthError::Unpublished);
    }
    if let Some(target) = shape.targets.iter().find(|target| !all.iter().any(|place| place.is_target(target)))
    {
        let names: BTreeSet<&str> = all.iter().filter_map(|place| place.module.rsplit('.').next()).collect();
        let names = names.into_iter().collect::<Vec<_>>().join(", ");
        return Err(SynthError::Target { target: target.clone(), names });
    }
    all.retain(|place| shape.targets.iter().any(|target| place.is_target(target)));
    match all.iter().find(|place| shape.dora && place.by_parameter()) {
        Some(place) => Err(SynthError::Dora { module: place.module.clone() }),
        None => Ok(all),
    }
}

/// A matrix of a layer, by the name that published checkpoints have for it. Of the tensors that share one,
/// each gives the whole.
fn place(tensor: &Tensor, scatter: Scatter) -> Option<AdaptedMatrix> {
    let shape = row_shape(tensor);
    // No adapter reaches experts that have tensors of their own, or rows in pieces.
    let regular = tensor.source.rows.first_and_step(tensor.shape[tensor.row_dim()]).is_some();
    if tensor.source.is_gathered() || !regular {
        return None;
    }
    let Published { parameter: name, step, .. } = published(&tensor.source.name);
    let (experts, module, parameter) = match tensor.role {
        Role::Matrix => (0, name.strip_suffix(".weight")?, "weight"),
        Role::ExpertMatrix => {
            let (module, parameter) = name.rsplit_once('.')?;
            (shape[0], module, parameter)
        }
        _ => return None,
    };
    let (rows, k) = (shape[shape.len() - 2] * step, shape[shape.len() - 1]);
    module.starts_with("model.layers.").then(|| AdaptedMatrix {
        module: module.to_owned(),
        parameter: parameter.to_owned(),
        rows,
        k,
        experts,
        output: scatter.std * (k as f32).sqrt(),
    })
}

/// A, B and perhaps a magnitude.
fn tensors(place: &AdaptedMatrix, places: &[AdaptedMatrix], shape: &AdapterShape) -> Vec<PlannedTensor> {
    let all = shape.rank * place.experts.max(1);
    // Of two matrices of one module, PEFT wraps the first one first: the other's wrapper is around it.
    let inner = places.iter().rposition(|other| other.module == place.module)
        != places.iter().position(|other| std::ptr::eq(other, place));
    let wrapper = if inner { ".base_layer" } else { "" };
    let tensor = |end: &str, shape: Vec<usize>, mean, std| PlannedTensor {
        name: format!("base_model.model.{}{wrapper}.{end}", place.module),
        dtype: "BF16",
        bytes: shape.iter().product::<usize>() as u64 * 2,
        shape,
        fill: ByteFill::Bf16(Scatter { mean, std }),
    };
    let mut tensors = vec![
        tensor("lora_A.weight", vec![all, place.k], 0.0, 1.0 / (place.k as f32).sqrt()),
        tensor("lora_B.weight", vec![place.rows, all], 0.0, GAIN * place.output / (shape.rank as f32).sqrt()),
    ];
    if shape.dora {
        tensors.push(tensor("lora_magnitude_vector", vec![place.rows], place.output, 0.02 * place.output));
    }
    tensors
}

fn config(graph: &Graph, places: &[AdaptedMatrix], shape: &AdapterShape) -> String {
    let last = |place: &AdaptedMatrix, parts: usize| -> String {
        let name =
            if parts > 1 { format!("{}.{}", place.module, place.parameter) } else { place.module.clone() };
        let start = name.rmatch_indices('.').nth(parts - 1).map_or(0, |(at, _)| at + 1);
        name[start..].to_owned()
    };
    let names = |by_parameter: bool, parts| -> BTreeSet<String> {
        places
            .iter()
            .filter(|place| place.by_parameter() == by_parameter)
            .map(|place| last(place, parts))
            .collect()
    };
    let config = serde_json::json!({
        "peft_type": "LORA",
        "task_type": "CAUSAL_LM",
        "base_model_name_or_path": graph.name,
        "bias": "none",
        "inference_mode": true,
        "r": shape.rank,
        "lora_alpha": shape.rank,
        "lora_dropout": 0.0,
        "use_dora": shape.dora,
        "target_modules": names(false, 1),
        "target_parameters": names(true, 3),
    });
    format!("{config:#}\n")
}
