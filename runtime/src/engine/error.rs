//! Why an engine cannot be made, or a request not be served.

use crate::adapter::AdapterError;
use crate::code::CodeError;
use crate::error_kind::ErrorKind;
use crate::executor::{BatchError, CutError, LoadError};
use crate::kv::KvError;
use crate::pool::PoolError;
use crate::sampler::SamplerError;
use crate::stages::StageLost;

/// Why an engine cannot be made or a request not be served.
#[derive(Debug, thiserror::Error)]
pub enum EngineError {
    /// A number of the configuration is out of range.
    #[error("{name} is {found}, expected 1 to {max}")]
    Config {
        /// Name of the setting.
        name: &'static str,
        /// Value of the setting.
        found: u32,
        /// Largest legal value.
        max: u32,
    },
    /// The plan cannot be executed here.
    #[error(transparent)]
    Load(#[from] LoadError),
    /// The workers could not be started.
    #[error(transparent)]
    Pool(#[from] PoolError),
    /// A token id past the vocabulary.
    #[error("token {index} of the input has id {token}, expected less than {vocab}")]
    Token {
        /// Place in the input.
        index: usize,
        /// The id.
        token: u32,
        /// Vocabulary size.
        vocab: u32,
    },
    /// A handle of a sequence that is gone.
    #[error("there is no such sequence: it was dropped, or belongs to another engine")]
    NoSequence,
    /// An adapter slot that holds nothing.
    #[error("there is no adapter in slot {slot}")]
    NoAdapterSlot {
        /// The slot.
        slot: u32,
    },
    /// An entry of a step without tokens.
    #[error("an entry of a step has no tokens: give at least one, or leave the sequence out")]
    EmptyEntry,
    /// More tokens than one run takes.
    #[error(
        "the step has {given} tokens, one run takes at most {most}: split it, or make the engine with a larger chunk"
    )]
    TooManyTokens {
        /// Tokens of all entries.
        given: usize,
        /// Tokens of a run.
        most: u32,
    },
    /// A sequence that has tokens, of a model whose texts run whole.
    #[error("the sequence has tokens, and the model reads texts whole: run a text in one step, and drop it")]
    GoesOn,
    /// One sequence twice in a step.
    #[error("a sequence occurs twice in one step")]
    Repeated,
    /// The KV cache has no room.
    #[error(transparent)]
    Kv(#[from] KvError),
    /// An adapter cannot be used.
    #[error(transparent)]
    Adapter(#[from] AdapterError),
    /// No token could be sampled.
    #[error(transparent)]
    Sampler(#[from] SamplerError),
    /// An entry of a step with several cannot be served; the others are not at fault.
    #[error("entry {entry} of the step: {source}")]
    Entry {
        /// Index of the entry.
        entry: usize,
        /// The underlying error.
        source: Box<EngineError>,
    },
    /// The process was forked after the engine was made.
    #[error(
        "this process was forked after its engine was made, and has none of the engine's threads: make the \
         engine in the process that runs it, or with one thread"
    )]
    Forked,
    /// A step was asked for while others are on their way.
    #[error("a step is on its way: end it before this")]
    InFlight,
    /// A step was to be ended, and none is on its way.
    #[error("no step is on its way")]
    NoFlight,
    /// The program cannot be cut into so many stages.
    #[error(transparent)]
    Cut(#[from] CutError),
    /// Stages of a model without a name of its contents.
    #[error("the model has no identity: stages run plans")]
    NoIdentity,
    /// The thread that calls the next stage could not be made.
    #[error("starting the thread that calls the next stage: {0}")]
    StageThread(#[source] std::io::Error),
    /// Another stage is gone. Its parts of sequences are lost.
    #[error(transparent)]
    Stage(#[from] StageLost),
    /// The runtime made a batch that its own checks refuse.
    #[error(transparent)]
    Batch(#[from] BatchError),
}

impl EngineError {
    /// The kind of fault.
    pub fn kind(&self) -> ErrorKind {
        match self {
            EngineError::Batch(_) => ErrorKind::Bug,
            EngineError::Stage(_)
            | EngineError::StageThread(_)
            | EngineError::Cut(CutError::Mixed { .. } | CutError::Uneven { .. }) => ErrorKind::Unsupported,
            EngineError::Pool(PoolError::Spawn { .. } | PoolError::Pin { .. })
            | EngineError::Load(LoadError::Cpu { .. } | LoadError::Tiles(_) | LoadError::Region(_))
            | EngineError::Load(LoadError::Code(CodeError::Map { .. } | CodeError::Forbidden(_))) => {
                ErrorKind::Unsupported
            }
            EngineError::Adapter(error) => error.kind(),
            EngineError::Entry { source, .. } => source.kind(),
            _ => ErrorKind::BadInput,
        }
    }
}
