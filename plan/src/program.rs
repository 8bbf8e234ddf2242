//! A program: the part of a plan that is specific to one target. Steps, their operands, the memory plan, the
//! code.

use crate::adapter::Adapters;
use crate::bounded;
use crate::contract::Contract;
use crate::hand_out::HandOut;
use crate::kv::{KvLayers, LayerKind};
use crate::limit::{BUFFERS, HEAD_DIM, OPERANDS, STEPS};
use crate::target::Level;
use crate::vectors::{ModelOutput, VectorForm};
use serde::{Deserialize, Serialize};

/// Everything the runtime needs besides weights, tokenizer and chat template.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Program {
    /// Features the code uses.
    pub level: Level,
    /// Model facts.
    pub model: ModelInfo,
    /// Step lists by token class, ascending by `max_tokens`; the last one's maximum is the prefill chunk.
    pub classes: Vec<TokenClass>,
    /// Bytes of the arena, whose base is 64-byte aligned.
    pub arena_bytes: u64,
    /// Bytes of each worker's scratch.
    pub scratch_bytes: u64,
    /// Bytes of the weight region that operands may refer to.
    pub weight_bytes: u64,
    /// Machine code and its symbols.
    pub code: CodeBlob,
}

/// Facts about the model that the runtime needs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ModelInfo {
    /// Model name from the spec.
    pub name: String,
    /// Preset the plan was made with: `exact`, `faithful`, `bf16`, `fast`.
    pub preset: String,
    /// Vocabulary size: token ids are below it.
    pub vocab: u32,
    /// The row that the program leaves of each token that is asked for.
    pub output: ModelOutput,
    /// Longest context, in tokens.
    pub max_context: u32,
    /// Whether tokens see those that follow, so that a text runs whole in one batch and never goes on.
    pub whole_texts: bool,
    /// Attention layers.
    pub kv: KvLayers,
    /// Rotary tables that [`Operand::Rope`] refers to.
    #[serde(deserialize_with = "bounded::list::<_, _, 1024>")]
    pub ropes: Vec<RopeTable>,
    /// Bytes of weights that one token reads at decode (all dense matrices, the chosen experts), for reports.
    pub decode_bytes: u64,
    /// Which adapters the program takes; `None` when it was compiled without them.
    pub adapters: Option<Adapters>,
}

impl ModelInfo {
    /// Elements of a row that the program leaves: the vocabulary, or the width of vectors.
    pub fn row_width(&self) -> usize {
        match self.output {
            ModelOutput::Logits => self.vocab as usize,
            ModelOutput::Vectors { width, .. } => width as usize,
        }
    }

    /// How rows become vectors; `None` where they are logits.
    pub fn vectors(&self) -> Option<VectorForm> {
        match self.output {
            ModelOutput::Logits => None,
            ModelOutput::Vectors { form, .. } => Some(form),
        }
    }
}

/// A rotary table: row `p` is `[cos(p*f_0)..cos(p*f_{h-1}), sin(p*f_0)..]`, each times `factor`; see
/// docs/dev/numerics.md.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RopeTable {
    /// `[head_dim / 2]` inverse frequencies.
    #[serde(deserialize_with = "bounded::list::<_, _, HEAD_DIM>")]
    pub inv_freq: Vec<f32>,
    /// Attention factor on cos and sin.
    pub factor: f64,
}

/// Steps for batches of up to `max_tokens` tokens.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TokenClass {
    /// Largest batch.
    pub max_tokens: u32,
    /// Steps over the batch, a barrier after each.
    #[serde(deserialize_with = "bounded::list::<_, _, STEPS>")]
    pub steps: Vec<Step>,
    /// Steps over one slab of wanted rows; they leave `[logit_rows][row_width]` f32 at `logits`.
    #[serde(deserialize_with = "bounded::list::<_, _, STEPS>")]
    pub logit_steps: Vec<Step>,
    /// Arena offset of the slab of logits or vectors, rows [`crate::format::f32_row_stride`]`(row_width)`
    /// apart.
    pub logits: u64,
    /// Every arena buffer of this class, for the memory checker and listings.
    #[serde(deserialize_with = "bounded::list::<_, _, BUFFERS>")]
    pub buffers: Vec<Buffer>,
    /// Where routings can be read, in order of steps; the same layers in every class.
    #[serde(deserialize_with = "bounded::list::<_, _, STEPS>")]
    pub routings: Vec<Routing>,
    /// From where on only the wanted rows matter; `None` where all do up to the last step.
    pub wanted_only: Option<WantedOnly>,
}

/// Steps that are about rows whose logits are wanted, and no others: no step from here on writes the KV
/// cache. The rows can be moved together, and the steps run over a batch of these rows alone.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct WantedOnly {
    /// Index into [`TokenClass::steps`] of the first.
    pub step: u32,
    /// Rows that steps before it write, and steps from there on read.
    #[serde(deserialize_with = "bounded::list::<_, _, OPERANDS>")]
    pub rows: Vec<TokenRows>,
}

/// Rows of tokens in a buffer, one behind the other.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TokenRows {
    /// Index into [`TokenClass::buffers`].
    pub buffer: u32,
    /// Bytes of a token.
    pub bytes: u64,
}

/// A step that chooses experts, so that the runtime can count how often each is chosen.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Routing {
    /// Index into [`TokenClass::steps`]; the routing is read right after it.
    pub step: u32,
    /// Buffer of routes `[tokens][top_k]`, written by the step.
    pub buffer: u32,
    /// Experts per token.
    pub top_k: u32,
    /// Experts of the layer.
    pub experts: u32,
}

/// An arena buffer and the steps over which it is live. Steps are numbered through `steps` and then
/// `logit_steps`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Buffer {
    /// Name for listings.
    pub name: String,
    /// Offset in the arena, a multiple of 64.
    pub offset: u64,
    /// Bytes.
    pub bytes: u64,
    /// First step that writes the buffer.
    pub first: u32,
    /// Last step that reads the buffer.
    pub last: u32,
}

/// One kernel call by all workers, followed by a barrier.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Step {
    /// Name for listings and profiles, such as `layers.3.qkv`.
    pub label: String,
    /// Index into [`CodeBlob::symbols`].
    pub kernel: u32,
    /// Operands in the order that the kernel expects.
    #[serde(deserialize_with = "bounded::list::<_, _, OPERANDS>")]
    pub operands: Vec<Operand>,
    /// Which of the arena buffers (indices into [`TokenClass::buffers`]) the step reads and writes, for the
    /// checker.
    #[serde(deserialize_with = "bounded::list::<_, _, OPERANDS>")]
    pub reads: Vec<u32>,
    /// See `reads`.
    #[serde(deserialize_with = "bounded::list::<_, _, OPERANDS>")]
    pub writes: Vec<u32>,
    /// LoRA targets that it serves, index into [`Adapters::lora_targets`]: it runs only when a token of the
    /// batch has an adapter at one of them. Empty: it always runs.
    #[serde(deserialize_with = "bounded::list::<_, _, OPERANDS>")]
    pub lora_targets: Vec<u32>,
    /// The step's reads and arithmetic, for reports.
    pub work: StepWork,
    /// Weights that the step's workers read.
    pub weight_reads: WeightReads,
}

/// Weights that a step's workers read, and in which order. A worker that waits for the step before fetches
/// the first of them ahead; a replay of the reads ([`crate::probe`]) reads all. No kernel depends on it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct WeightReads {
    /// Operands (indices into [`Step::operands`], all [`Operand::Weights`]) that every worker reads whole
    /// before anything else.
    #[serde(deserialize_with = "bounded::list::<_, _, OPERANDS>")]
    pub whole: Vec<u32>,
    /// Reads of work items, in the order of their numbers.
    #[serde(deserialize_with = "bounded::list::<_, _, OPERANDS>")]
    pub parts: Vec<ItemReads>,
    /// Index into [`TokenClass::routings`] when the parts are experts' matrices.
    pub routing: Option<u32>,
    /// Whether every chosen expert has separate items, so that only the step's own choice tells with which
    /// one a worker begins. Otherwise a worker goes through its items expert by expert, the lowest id first.
    pub own_items: bool,
}

impl WeightReads {
    /// How workers get the items of all parts. Where items are experts' own, these are the items of one
    /// expert, and the hand-out is another.
    pub fn hand_out(&self) -> HandOut {
        HandOut::with_tail(self.parts.iter().map(|part| u64::from(part.items)).sum(), 1)
    }
}

/// Consecutive work items.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ItemReads {
    /// Number of items.
    pub items: u32,
    /// Reads of each of them; the first is fetched ahead.
    #[serde(deserialize_with = "bounded::list::<_, _, OPERANDS>")]
    pub operands: Vec<OperandReads>,
}

/// Weights that consecutive work items read one behind the other.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct OperandReads {
    /// Index into [`Step::operands`] of the weights.
    pub operand: u32,
    /// Pieces, such as tiles, that each item reads.
    pub pieces: u32,
    /// Bytes of a piece.
    pub bytes: u64,
    /// Bytes from one piece to the next; more than a piece when other matrices lie between.
    pub stride: u64,
    /// Bytes from one expert to the next; 0 for dense matrices.
    pub expert_stride: u64,
}

/// Reads and multiply-adds of a step. Reports are made of it; no kernel depends on it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct StepWork {
    /// Bytes of weights that the step reads once, whatever the batch.
    pub shared_bytes: u64,
    /// Bytes of weights for each row of the batch (of the slab, for logits), such as a row of the embedding
    /// table.
    pub row_bytes: u64,
    /// Multiply-adds of matrices for each row.
    pub row_macs: u64,
    /// Bytes of weights of each expert that any row chose.
    pub expert_bytes: u64,
    /// Multiply-adds for each choice of an expert.
    pub expert_macs: u64,
    /// Index into [`TokenClass::routings`] of the choice that the expert figures are about.
    pub routing: Option<u32>,
    /// Layer whose cached keys and values it reads, index into [`KvLayers::layers`].
    pub cache: Option<u32>,
}

/// The meaning of an operand address.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Operand {
    /// `bytes` at `offset` of the weight region.
    Weights {
        /// Byte offset.
        offset: u64,
        /// Bytes the kernel may read.
        bytes: u64,
    },
    /// Arena buffer (index into [`TokenClass::buffers`]).
    Buffer(u32),
    /// KV pool of a layer.
    Kv {
        /// Layer index into [`KvLayers::layers`].
        layer: u32,
        /// Kind of the layer.
        kind: LayerKind,
    },
    /// Rotary table.
    Rope(u32),
    /// Byte offset of a LoRA target's entry in a slot's row of the table of adapters; no address.
    LoraTarget(u32),
}

/// Position-independent machine code: functions at 64-byte aligned offsets.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CodeBlob {
    /// The bytes, references between functions resolved.
    pub bytes: Vec<u8>,
    /// Functions, ascending by offset.
    pub symbols: Vec<Symbol>,
}

/// A function in a [`CodeBlob`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Symbol {
    /// Name.
    pub name: String,
    /// Byte offset.
    pub offset: u64,
    /// Bytes.
    pub size: u64,
    /// The demands on the steps that call it, if it follows the kernel ABI; micro-kernels do not.
    pub contract: Option<Contract>,
}
