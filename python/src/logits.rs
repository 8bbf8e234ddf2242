//! Logits of a sequence that is run for them alone.

use crate::error::Failure;
use kernmill::Error;
use kernmill_runtime::kv::KvError;
use kernmill_runtime::{AdapterUse, Engine, EngineError, SeqId, SequenceTokens, Steps};
use std::sync::atomic::{AtomicBool, Ordering};

/// The logits after every token, row behind row, or those after the last. Others wait while they are
/// computed. A caller that set `is_abandoned` wants no more of them.
///
/// # Errors
/// When the tokens cannot be run, or there is no room for them.
pub fn logits(
    engine: &mut Engine,
    tokens: &[u32],
    last: bool,
    adapters: &[AdapterUse],
    is_abandoned: &AtomicBool,
) -> Result<Vec<f32>, Failure> {
    let (length, context) = (tokens.len(), engine.context());
    if tokens.is_empty() || length > context as usize {
        return Err(Failure::Input(format!(
            "{length} tokens, expected 1 to {context}, which the context holds"
        )));
    }
    if engine.model().vectors().is_some() {
        return Err(Failure::Input("the model makes vectors of texts, and no logits: embed() gives them".to_owned()));
    }
    engine.check_tokens(tokens).map_err(wrong)?;
    let rows = if last { 1 } else { length };
    let numbers = rows * engine.model().vocab as usize;
    let mut data = Vec::new();
    if data.try_reserve_exact(numbers).is_err() {
        return Err(Failure::Input(format!(
            "there is no memory for {rows} rows of logits: ask for the last row, or for fewer tokens"
        )));
    }
    let sequence = engine.create_with(adapters).map_err(wrong)?;
    let computed = compute(engine, sequence, tokens, last, is_abandoned, &mut data);
    engine.drop_sequence(sequence);
    computed.map_err(wrong)?;
    Ok(data)
}

fn compute(
    engine: &mut Engine,
    sequence: SeqId,
    tokens: &[u32],
    last: bool,
    is_abandoned: &AtomicBool,
    data: &mut Vec<f32>,
) -> Result<(), EngineError> {
    let pieces: Vec<&[u32]> = tokens.chunks(engine.chunk() as usize).collect();
    for (at, piece) in pieces.iter().enumerate() {
        let is_final = at + 1 == pieces.len();
        let entry = match (last, is_final) {
            (false, _) => SequenceTokens::all(sequence, piece),
            (true, true) => SequenceTokens::last(sequence, piece),
            (true, false) => SequenceTokens::silent(sequence, piece),
        };
        if is_abandoned.load(Ordering::Relaxed) {
            break;
        }
        engine.extend_in_order(&[entry], &mut |row| data.extend_from_slice(row.logits))?;
    }
    Ok(())
}

fn wrong(error: EngineError) -> Failure {
    let is_want_of_room = match &error {
        EngineError::Entry { source, .. } => is_full(source),
        other => is_full(other),
    };
    if is_want_of_room { Failure::Overloaded(error.to_string()) } else { Error::from(error).into() }
}

fn is_full(error: &EngineError) -> bool {
    matches!(error, EngineError::Kv(KvError::OutOfBlocks { .. } | KvError::NoFreeSequence { .. }))
}
