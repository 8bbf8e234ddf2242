//! The plan file: what lies where. docs/dev/plan-format.md has it byte by byte.
//!
//! A header of fixed size with a table of sections, then the sections in a fixed order, the packed weights
//! last. This module says what both sides agree on; [`check`] reads and believes nothing; the compiler
//! writes, and shares no code with the reader.

pub mod check;

use crate::bounded;
use crate::limit::{self, CLASSES, SYMBOLS};
use crate::program::{ModelInfo, Symbol, TokenClass};
use serde::{Deserialize, Serialize};

/// First bytes of a plan: not text, and damaged by whatever translates line ends.
pub const MAGIC: [u8; 8] = *b"\x89KMPLN\r\n";
/// Version of everything that this module, the packed weight formats ([`crate::format`]) and
/// [`crate::program`] say. Any change of them is a new version.
pub const VERSION: u32 = 10;
/// Bytes of the header.
pub const HEADER_BYTES: usize = 4096;
/// Bytes of an entry of the section table, which starts at [`TABLE_OFFSET`].
pub const ENTRY_BYTES: usize = 64;
/// Offset of the section table in the header.
pub const TABLE_OFFSET: usize = 64;
/// Offset in the header of its own hash, which is taken with zeros in its place.
pub const HEADER_HASH_OFFSET: usize = 32;
/// Sections at most.
pub const MAX_SECTIONS: usize = (HEADER_BYTES - TABLE_OFFSET) / ENTRY_BYTES;
/// Sections start at multiples of this.
pub const SECTION_ALIGN: u64 = 64;
/// The weights start at a multiple of this.
pub const WEIGHT_ALIGN: u64 = 2 << 20;
/// Bytes of a target's program at most, and of its code.
const MAX_PROGRAM_BYTES: u64 = 32 << 20;
const MAX_CODE_BYTES: u64 = 256 << 20;
/// Bytes of the weights' hashes at most: those of 2^22 pieces.
const MAX_HASHES_BYTES: u64 = (PIECE_ENTRY_BYTES as u64) << 22;
/// Bytes of an entry of the weight hashes: a piece's length, and its hash.
pub const PIECE_ENTRY_BYTES: usize = 40;
/// Bytes of a piece of the weights at most.
pub const MAX_PIECE_BYTES: u64 = 64 << 20;

/// A blake3 hash.
pub type Hash = [u8; 32];

/// The contents of a section. Sections follow each other in this order; program and code alternate, target by
/// target.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u32)]
pub enum SectionKind {
    /// [`Metadata`].
    Metadata = 1,
    /// The model spec, TOML.
    Spec = 2,
    /// `tokenizer.json`; may be missing.
    Tokenizer = 3,
    /// The default chat template, Jinja; may be missing.
    ChatTemplate = 4,
    /// [`crate::chat::ChatSection`]; may be missing.
    Chat = 9,
    /// [`TargetProgram`] of a target.
    Program = 5,
    /// Machine code of the same target.
    Code = 6,
    /// Length and hash of every piece of the weights.
    WeightHashes = 7,
    /// The packed weights. Its own hash in the table is zero: pieces have theirs.
    Weights = 8,
}

impl SectionKind {
    /// Every kind, in order.
    pub const ALL: [SectionKind; 9] = [
        SectionKind::Metadata,
        SectionKind::Spec,
        SectionKind::Tokenizer,
        SectionKind::ChatTemplate,
        SectionKind::Chat,
        SectionKind::Program,
        SectionKind::Code,
        SectionKind::WeightHashes,
        SectionKind::Weights,
    ];

    /// Bytes of such a section at most; of the weights there may be any number.
    pub fn max_bytes(self) -> u64 {
        match self {
            SectionKind::Metadata => limit::PLAN_METADATA_BYTES,
            SectionKind::Spec => limit::SPEC_BYTES,
            SectionKind::Tokenizer => limit::TOKENIZER_BYTES,
            SectionKind::ChatTemplate => limit::TEMPLATE_BYTES,
            SectionKind::Chat => limit::PLAN_CHAT_BYTES,
            SectionKind::Program => MAX_PROGRAM_BYTES,
            SectionKind::Code => MAX_CODE_BYTES,
            SectionKind::WeightHashes => MAX_HASHES_BYTES,
            SectionKind::Weights => u64::MAX,
        }
    }

    /// Name in listings and messages.
    pub fn name(self) -> &'static str {
        match self {
            SectionKind::Metadata => "metadata",
            SectionKind::Spec => "spec",
            SectionKind::Tokenizer => "tokenizer",
            SectionKind::ChatTemplate => "chat template",
            SectionKind::Chat => "chat",
            SectionKind::Program => "program",
            SectionKind::Code => "code",
            SectionKind::WeightHashes => "weight hashes",
            SectionKind::Weights => "weights",
        }
    }
}

/// The plan's description of itself, serialised with postcard.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Metadata {
    /// Program that wrote the plan, with its version and commit.
    pub producer: String,
    /// Model facts, the same for all targets.
    pub model: ModelInfo,
    /// Tokens per prefill chunk that was asked for.
    pub chunk: u32,
    /// Whether nodes were fused.
    pub fused: bool,
    /// The fused-op specs that the model was compiled with, in the order in which they were tried.
    #[serde(deserialize_with = "bounded::list::<_, _, 1024>")]
    pub fused_specs: Vec<FusedSpecText>,
    /// Bytes of the weights.
    pub weight_bytes: u64,
    /// Tensors of the model, and where each lies.
    #[serde(deserialize_with = "bounded::list::<_, _, 65536>")]
    pub tensors: Vec<TensorInfo>,
    /// Tokens by which the tokenizer's texts end, so that it need not be read to know them.
    #[serde(deserialize_with = "bounded::list::<_, _, 4096>")]
    pub end_tokens: Vec<u32>,
    /// The needs of each target's code.
    #[serde(deserialize_with = "bounded::list::<_, _, MAX_SECTIONS>")]
    pub targets: Vec<TargetInfo>,
}

/// The inputs that decide the bits of a model: equal for the same spec, weights, preset, formats and version,
/// whatever the target, chunk and threads.
#[derive(Clone, Copy, Debug)]
pub struct Identity<'a> {
    /// Program that generates the code ([`Metadata::producer`]).
    pub producer: &'a str,
    /// Model facts.
    pub model: &'a ModelInfo,
    /// Whether nodes are fused.
    pub fused: bool,
    /// The fused-op specs.
    pub fused_specs: &'a [FusedSpecText],
    /// Hash of the model spec's text.
    pub spec: Hash,
    /// Hash of the weight hashes, as section [`SectionKind::WeightHashes`] has them.
    pub weights: Hash,
}

impl Identity<'_> {
    /// The identity as a hash.
    pub fn hash(&self) -> Hash {
        let mut hash = blake3::Hasher::new();
        let mut add = |bytes: &[u8]| {
            hash.update(&(bytes.len() as u64).to_le_bytes()).update(bytes);
        };
        add(b"kernmill model identity 1");
        add(&VERSION.to_le_bytes());
        add(self.producer.as_bytes());
        // Facts of a model are numbers, texts and lists of them, all of which can be serialised.
        add(&postcard::to_allocvec(self.model).unwrap_or_default());
        add(&[u8::from(self.fused)]);
        for spec in self.fused_specs {
            add(spec.name.as_bytes());
            add(spec.text.as_bytes());
        }
        add(&self.spec);
        add(&self.weights);
        *hash.finalize().as_bytes()
    }
}

/// A fused-op spec.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FusedSpecText {
    /// Name of the spec.
    pub name: String,
    /// TOML.
    pub text: String,
}

/// A tensor of the packed weights.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TensorInfo {
    /// Logical name.
    pub name: String,
    /// Format, by [`crate::format::WeightFormat::name`].
    pub format: String,
    /// Shape, experts first.
    #[serde(deserialize_with = "bounded::list::<_, _, 8>")]
    pub shape: Vec<u64>,
    /// Byte offset in the weights.
    pub offset: u64,
    /// Bytes from there to its end; of a pair whose tiles alternate, the partner's in between included.
    pub bytes: u64,
    /// Relative error at 4 bits, where that was looked at.
    pub int4_error: Option<f64>,
}

/// The needs of a target's code.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TargetInfo {
    /// Level, by [`crate::target::Level::name`].
    pub level: String,
    /// CPU features that the code uses, 64 of 32 bytes at most.
    #[serde(deserialize_with = "bounded::texts::<_, 64, 32>")]
    pub features: Vec<String>,
    /// [`crate::abi::ABI_VERSION`] of the target's kernels.
    pub abi: u32,
}

/// A program without what it shares with other targets and without its code's bytes, serialised with
/// postcard.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TargetProgram {
    /// [`crate::program::Program::classes`].
    #[serde(deserialize_with = "bounded::list::<_, _, CLASSES>")]
    pub classes: Vec<TokenClass>,
    /// [`crate::program::Program::arena_bytes`].
    pub arena_bytes: u64,
    /// [`crate::program::Program::scratch_bytes`].
    pub scratch_bytes: u64,
    /// [`crate::program::CodeBlob::symbols`].
    #[serde(deserialize_with = "bounded::list::<_, _, SYMBOLS>")]
    pub symbols: Vec<Symbol>,
}
