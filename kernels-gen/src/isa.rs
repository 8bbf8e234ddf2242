//! Cranelift's view of a feature level.

use cranelift_codegen::isa::{OwnedTargetIsa, lookup};
use cranelift_codegen::settings::{self, Configurable};
use kernmill_plan::target::{Features, Level};
use std::str::FromStr;
use target_lexicon::Triple;

/// Cranelift flags that every level sets: all of x86-64-v3 that the backend knows.
const FLOOR: &[&str] = &[
    "has_cmpxchg16b",
    "has_sse3",
    "has_ssse3",
    "has_sse41",
    "has_sse42",
    "has_avx",
    "has_avx2",
    "has_fma",
    "has_bmi1",
    "has_bmi2",
    "has_lzcnt",
    "has_popcnt",
];

/// Flags that go with features beyond the floor.
const BEYOND: &[(Features, &[&str])] = &[
    (Features::AVX_VNNI, &["has_avx_vnni"]),
    (Features::AVX512, &["has_avx512f", "has_avx512dq", "has_avx512vl"]),
    (Features::AVX512_VNNI, &["has_avx512vnni"]),
];

/// The Cranelift flags of a level, beyond nothing: the backend's defaults are baseline x86-64.
pub fn flags(level: Level) -> Vec<&'static str> {
    let mut flags = FLOOR.to_vec();
    let features = level.features();
    for (needed, more) in BEYOND {
        if features.has(*needed) {
            flags.extend(*more);
        }
    }
    flags
}

/// Whether 128-bit code of the level has a `vpdpbusd` for Cranelift to fold to.
pub fn has_vnni(level: Level) -> bool {
    level.features().has(Features::AVX_VNNI) || level.features().has(Features::AVX512_VNNI)
}

/// The Cranelift target of a level.
///
/// # Panics
/// Never for the flags above: they exist in the pinned Cranelift version, which a test checks for every
/// level.
pub fn target(level: Level) -> OwnedTargetIsa {
    let mut shared = settings::builder();
    for (name, value) in [
        ("opt_level", "speed"),
        ("is_pic", "true"),
        ("enable_verifier", if cfg!(debug_assertions) { "true" } else { "false" }),
        ("unwind_info", "false"),
        ("enable_probestack", "false"),
    ] {
        shared.set(name, value).expect("a shared flag of the pinned Cranelift");
    }
    let triple = Triple::from_str("x86_64-unknown-linux-gnu").expect("a well-formed triple");
    let mut builder = lookup(triple).expect("the x86 backend is compiled in");
    for flag in flags(level) {
        builder.enable(flag).expect("an x86 flag of the pinned Cranelift");
    }
    builder.finish(settings::Flags::new(shared)).expect("consistent flags")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_level_has_a_target() {
        for level in Level::ALL {
            assert_eq!(target(level).pointer_bytes(), 8, "{level:?}");
        }
    }
}
