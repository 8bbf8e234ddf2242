//! Helpers of several test modules: the built program, a checkpoint directory made into an engine, tensors
//! out of oracle files.

use kernmill_checkpoint::Checkpoint;
use kernmill_checkpoint::gguf::{Gguf, is_gguf};
use kernmill_compiler::front::import::{from_checkpoint, from_gguf, read_config};
use kernmill_compiler::front::spec::{Spec, lower};
use kernmill_compiler::interp::RawTensor;
use kernmill_compiler::ir::{Graph, Tensor};
use kernmill_compiler::output::region::build_weights;
use kernmill_compiler::passes::quant::Preset;
use kernmill_compiler::passes::quant::choose::FormatChoices;
use kernmill_compiler::pipeline::{Compiled, CompilerOptions, compile};
use kernmill_compiler::weights::{CheckpointWeights, WeightSource, bind};
use kernmill_os::region::WeightRegion;
use kernmill_plan::program::Program;
use kernmill_plan::target::Level;
use kernmill_runtime::{Engine, EngineConfig, PlanImage};
use kernmill_serve::{Answer, Request, RequestEvent, RequestId, Serving};
use safetensors::SafeTensors;
use std::collections::BTreeMap;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Arc, Mutex};

/// The built program. Nothing of this process's environment sets its options.
pub fn program() -> Command {
    without_options(Command::new(env!("CARGO_BIN_EXE_kernmill")))
}

/// A shell that runs `script`, in which `$0` is the built program.
pub fn shell(script: &str) -> Command {
    let mut command = Command::new("sh");
    command.args(["-c", script, env!("CARGO_BIN_EXE_kernmill")]);
    without_options(command)
}

fn without_options(mut command: Command) -> Command {
    let is_option = |name: &str| name.starts_with("KERNMILL_") || name == "RUST_LOG";
    let names = std::env::vars_os().filter_map(|(name, _)| name.into_string().ok());
    names.filter(|name| is_option(name)).for_each(|name| {
        command.env_remove(name);
    });
    command
}

/// The directory of what is in an archive of the repository, which is unpacked once. Directories of the same
/// bytes stay for the next run.
fn unpacked(archive: &str) -> PathBuf {
    static UNPACKED: Mutex<BTreeMap<String, PathBuf>> = Mutex::new(BTreeMap::new());
    let mut unpacked = UNPACKED.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
    let unpack = || {
        let file = Path::new(env!("CARGO_MANIFEST_DIR")).join(archive);
        let of = blake3::hash(&std::fs::read(&file).unwrap()).to_hex();
        let dir = Path::new(env!("CARGO_TARGET_TMPDIR")).join(&of[..16]);
        if !dir.exists() {
            // Another process may do the same: what has the name is whole.
            let parts = tempfile::TempDir::new_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
            let tar = Command::new("tar").arg("-xf").arg(&file).arg("-C").arg(parts.path()).status();
            assert!(tar.unwrap().success(), "{archive}");
            let renamed = std::fs::rename(parts.keep(), &dir);
            assert!(renamed.is_ok() || dir.exists(), "{renamed:?}");
        }
        dir
    };
    unpacked.entry(archive.to_owned()).or_insert_with(unpack).clone()
}

/// Directory of a checkpoint with the logits of PyTorch beside (`tools/oracle/make_checkpoints.py`).
pub fn oracle(name: &str) -> PathBuf {
    unpacked("tests/fixtures/oracle.tar").join(name)
}

/// Directory of a model for vectors (`tools/oracle/make_vectors.py`).
pub fn vectors() -> PathBuf {
    unpacked("tests/fixtures/vectors.tar")
}

/// Directory of the models that transformers saved, one directory each (`tools/oracle/make_imports.py`).
pub fn imports() -> PathBuf {
    unpacked("tests/fixtures/imports.tar")
}

/// Directory of the same models as GGUF files, one file each (`tools/oracle/make_ggufs.py`).
pub fn ggufs() -> PathBuf {
    unpacked("tests/fixtures/ggufs.tar")
}

/// Directory of models with quantised matrices, one directory each (`tools/oracle/make_quantised.py`).
pub fn quantised() -> PathBuf {
    unpacked("tests/fixtures/quantised.tar")
}

/// Directory of an adapter that PEFT saved, or file of logits of several (`tools/oracle/make_adapters.py`).
pub fn adapter(name: &str) -> PathBuf {
    unpacked("tests/fixtures/adapters.tar").join(name)
}

/// Directory of a fuzz target's inputs.
pub fn corpus(target: &str) -> PathBuf {
    unpacked("fuzz/corpus.tar").join(target)
}

/// Path of the description of a machine: `two_cores` or `many_cores`.
pub fn machine(name: &str) -> String {
    corpus("machine").join(name).into_os_string().into_string().unwrap()
}

/// A real model's file, which is not part of the project: `tools/models/fetch.py` fetches it.
pub struct RealModel {
    /// Name that the script and the directory below `target` have, and in capitals the variable.
    pub name: &'static str,
    pub file: &'static str,
}

impl RealModel {
    /// The file, if it is here. Otherwise everybody is told that `test` checks nothing, or where the variable
    /// names a file that is not there, it fails.
    pub fn find(&self, test: &str) -> Option<PathBuf> {
        let named = std::env::var_os(format!("KERNMILL_{}", self.name.to_uppercase())).map(PathBuf::from);
        let fetched = || Path::new(env!("CARGO_MANIFEST_DIR")).join("target").join(self.name).join(self.file);
        let path = named.clone().unwrap_or_else(fetched);
        if path.is_file() {
            return Some(path);
        }
        assert!(named.is_none(), "{}: no such file", path.display());
        // Written past the capture of the test's output, so that everybody sees it.
        let name = self.name;
        let note = format!(
            "NOT RUN: {test}: no target/{name}/{} (python3 tools/models/fetch.py {name})\n",
            self.file
        );
        let _ = std::io::stderr().write_all(note.as_bytes());
        None
    }
}

/// Runs requests together, to the answers in their order.
pub fn answers(serving: &mut Serving, requests: Vec<Request>) -> Vec<Answer> {
    let ids: Vec<RequestId> = requests.into_iter().map(|request| serving.submit(request).unwrap()).collect();
    let mut answers = BTreeMap::new();
    while !serving.is_empty() {
        let on_event = &mut |id, event| {
            if let RequestEvent::Done(answer) = event {
                answers.insert(id, *answer);
            }
        };
        serving.tick(on_event).unwrap();
    }
    ids.iter().map(|id| answers.remove(id).unwrap()).collect()
}

/// Runs one request to its answer.
pub fn answer(serving: &mut Serving, request: Request) -> Answer {
    answers(serving, vec![request]).remove(0)
}

/// A checkpoint directory or GGUF file, imported.
pub struct Model {
    pub graph: Graph,
    checkpoint: Checkpoint,
}

impl Model {
    pub fn open(path: &Path) -> Model {
        let checkpoint = Checkpoint::open(path).unwrap();
        let text = if is_gguf(path) {
            from_gguf("model", &Gguf::open(path).unwrap()).unwrap()
        } else {
            from_checkpoint("model", &read_config(path).unwrap(), &checkpoint).unwrap()
        };
        Model::of(&text, checkpoint)
    }

    /// The model that a spec describes, with these weights.
    pub fn of(spec: &str, checkpoint: Checkpoint) -> Model {
        let graph = lower(&Spec::parse("spec.toml", spec).unwrap()).unwrap();
        bind(&graph, &checkpoint).unwrap();
        Model { graph, checkpoint }
    }

    /// The model's weights, where packing takes them from.
    pub fn weights(&self) -> CheckpointWeights<'_> {
        CheckpointWeights::new(&self.graph, &self.checkpoint).unwrap()
    }

    /// Each tensor's data as the checkpoint has it, for the interpreter.
    pub fn raw(&self) -> Vec<RawTensor> {
        let weights = self.weights();
        let read = |tensor: &Tensor| {
            let experts = if tensor.row_dim() == 0 { 1 } else { tensor.shape[0] };
            let rows = 0..tensor.shape[tensor.row_dim()];
            let (mut all, mut blocks, mut scales) = (Vec::new(), Vec::new(), Vec::new());
            for expert in 0..experts {
                if tensor.source.scales.is_some() {
                    let (mut b, mut s) = (Vec::new(), Vec::new());
                    weights.stored_rows(tensor, expert, rows.clone(), &mut b, &mut s).unwrap();
                    blocks.extend(b);
                    scales.extend(s);
                } else {
                    let mut part = Vec::new();
                    weights.f32_rows(tensor, expert, rows.clone(), &mut part).unwrap();
                    all.extend(part);
                }
            }
            match tensor.source.scales {
                Some(_) => RawTensor::Mxfp4 { blocks, scales },
                None => RawTensor::F32(all),
            }
        };
        self.graph.tensors.iter().map(read).collect()
    }

    /// The model compiled for the best level of this machine, with its weights packed.
    pub fn image(&self, preset: Preset) -> PlanImage {
        self.image_with(preset, false)
    }

    /// The model compiled for the best level of this machine, perhaps with adapters, with its weights packed.
    pub fn image_with(&self, preset: Preset, adapters: bool) -> PlanImage {
        let choices = (preset == Preset::Fast).then(|| self.choices());
        self.compiled(&|options| CompilerOptions { preset, choices: choices.clone(), adapters, ..options })
    }

    /// The model compiled for the best level of this machine as `of` changes the options, with its weights
    /// packed.
    pub fn compiled(&self, of: &dyn Fn(CompilerOptions) -> CompilerOptions) -> PlanImage {
        let level = *Level::supported().last().expect("tests run on x86-64-v3 or better");
        let compiled = compile(&self.graph, &of(CompilerOptions::new(level))).unwrap();
        let packed = self.pack(&compiled);
        image_of(compiled.program, packed)
    }

    /// The model's weights, packed for what it was compiled to.
    pub fn pack(&self, compiled: &Compiled) -> Arc<WeightRegion> {
        build_weights(compiled, &self.weights(), 2, &|_| {}).unwrap()
    }

    /// The formats that preset `fast` chooses for its weights.
    pub fn choices(&self) -> FormatChoices {
        FormatChoices::measured(&self.graph, &self.weights(), 2, &|_| {}).unwrap()
    }

    /// The share of attention and unembedding parameters that have 4 bits in preset `fast`.
    pub fn share_at_4_bits(&self) -> f64 {
        let choices = self.choices();
        choices.elements_at_4_bits(&self.graph) as f64 / choices.elements(&self.graph) as f64
    }

    pub fn engine(&self, preset: Preset, config: EngineConfig) -> Engine {
        Engine::new(&self.image(preset), config).unwrap()
    }
}

/// A compiled program in memory.
pub fn image_of(program: Program, weights: Arc<WeightRegion>) -> PlanImage {
    // SAFETY: tests give it what the compiler made.
    unsafe { PlanImage::generated(program, weights) }
}

/// A tensor of 4-byte elements.
pub fn read<T>(bytes: &[u8], name: &str, element: impl Fn([u8; 4]) -> T) -> Vec<T> {
    let file = SafeTensors::deserialize(bytes).unwrap();
    let data = file.tensor(name).unwrap().data().to_vec();
    data.chunks_exact(4).map(|b| element(b.try_into().unwrap())).collect()
}
