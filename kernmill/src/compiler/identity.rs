//! The identity of a model whose rows lie in a store or a session.

use super::source::SourceModel;
use crate::options::Options;
use kernmill_compiler::{pack::piece_sizes, pipeline::Compiled};
use kernmill_os::{region::WeightRegion, threads::share};
use kernmill_plan::file::{FusedSpecText, Identity};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

/// The identity of a model that was compiled here: that of the plan which `kernmill compile` would write.
/// `None`, and no time spent on hashing weights, unless it, a session, a store or a stage is asked for.
pub(super) fn identity(
    model: &SourceModel,
    compiled: &Compiled,
    weights: &WeightRegion,
    options: &Options,
) -> Option<[u8; 32]> {
    let is_wanted = options.identity || options.sessions;
    if options.kv_disk.is_none() && !is_wanted && options.stage.is_none() {
        return None;
    }
    let mut pieces = Vec::new();
    let mut rest = weights.as_slice();
    for bytes in piece_sizes(&compiled.layout) {
        let (piece, behind) = rest.split_at_checked(usize::try_from(bytes).ok()?)?;
        pieces.push(piece);
        rest = behind;
    }
    let entries = Mutex::new(vec![[0; 40]; pieces.len()]);
    let next = AtomicUsize::new(0);
    share(options.threads(), || {
        loop {
            let index = next.fetch_add(1, Ordering::Relaxed);
            let Some(piece) = pieces.get(index) else { break };
            let mut entry = [0; 40];
            entry[..8].copy_from_slice(&(piece.len() as u64).to_le_bytes());
            entry[8..].copy_from_slice(blake3::hash(piece).as_bytes());
            entries.lock().expect("no panic holds it")[index] = entry;
        }
    });
    let entries = entries.into_inner().expect("no panic holds it");
    let specs = model.source.fused.specs();
    let fused_specs: Vec<FusedSpecText> = specs
        .map(|spec| FusedSpecText { name: spec.name.value.clone(), text: spec.source.text().to_owned() })
        .collect();
    let identity = Identity {
        producer: options.compile.producer,
        model: &compiled.program.model,
        fused: options.compile.fuse,
        fused_specs: &fused_specs,
        spec: *blake3::hash(model.source.text.as_bytes()).as_bytes(),
        weights: *blake3::hash(entries.as_flattened()).as_bytes(),
    };
    Some(identity.hash())
}
