//! Fused-op specs of any bytes.

use kernmill_compiler::passes::fuse::{FusedSet, FusedSpec, fuse, sample};
use kernmill_plan::target::Level;

/// Reads whatever bytes there are, and makes samples of what is a spec: neither may panic.
pub fn parse_bytes(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    let Ok(spec) = FusedSpec::parse("fuzz.toml", text) else { return };
    if let Some(rule) = &spec.rule
        && let Ok(graph) = sample(rule, bytes.len() as u64)
    {
        fuse(&graph, [rule], Level::V3);
    }
    let set = FusedSet::builtin().with(vec![spec]);
    drop(set.map(|set| set.language()));
}
