//! CPU feature levels: what code is generated for, and what the host can run.

use kernmill_os::cpu::host_has;
use serde::{Deserialize, Serialize};

/// A named set of CPU features; later ones include the earlier ones' requirements as listed in [`Level::features`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Level {
    /// AVX2, FMA, F16C, BMI1/2, LZCNT, POPCNT: the floor.
    #[serde(rename = "x86-64-v3")]
    V3,
    /// The floor and AVX-VNNI.
    #[serde(rename = "x86-64-v3-vnni")]
    V3Vnni,
    /// AVX-512 F, BW, CD, DQ, VL.
    #[serde(rename = "x86-64-v4")]
    V4,
    /// AVX-512 and its VNNI (Cascade Lake, Cooper Lake).
    #[serde(rename = "cascadelake")]
    CascadeLake,
    /// AVX-512, its VNNI and VBMI (Ice Lake, Zen 4 and later).
    #[serde(rename = "x86-64-v4-vnni")]
    V4Vnni,
    /// V4Vnni and AMX tiles of bf16 (Sapphire Rapids and later). Code that multiplies no bf16 activations is that of V4Vnni.
    #[serde(rename = "amx")]
    Amx,
}

impl Level {
    /// Every level that code can be generated for, ascending.
    pub const ALL: [Level; 6] =
        [Level::V3, Level::V3Vnni, Level::V4, Level::CascadeLake, Level::V4Vnni, Level::Amx];

    /// The name on the command line and in plans.
    pub fn name(self) -> &'static str {
        match self {
            Level::V3 => "x86-64-v3",
            Level::V3Vnni => "x86-64-v3-vnni",
            Level::V4 => "x86-64-v4",
            Level::CascadeLake => "cascadelake",
            Level::V4Vnni => "x86-64-v4-vnni",
            Level::Amx => "amx",
        }
    }

    /// The level of that name.
    pub fn from_name(name: &str) -> Option<Level> {
        Level::ALL.into_iter().find(|level| level.name() == name)
    }

    /// CPU features, by their Linux `/proc/cpuinfo` names, that code of this level may use.
    pub fn features(self) -> &'static [&'static str] {
        match self {
            Level::V3 => through("popcnt"),
            Level::V3Vnni => &["avx2", "fma", "f16c", "bmi1", "bmi2", "lzcnt", "popcnt", "avx_vnni"],
            Level::V4 => through("avx512vl"),
            Level::CascadeLake => through("avx512_vnni"),
            Level::V4Vnni => through("avx512vbmi"),
            Level::Amx => through("amx_bf16"),
        }
    }

    /// Features of this level that this CPU lacks.
    pub fn missing(self) -> Vec<&'static str> {
        self.features().iter().copied().filter(|feature| !host_has(feature)).collect()
    }

    /// Levels that this CPU can run, ascending; empty when it lacks even the floor.
    pub fn supported() -> Vec<Level> {
        Level::ALL.into_iter().filter(|level| level.missing().is_empty()).collect()
    }

    /// The best level that this CPU can run; one with tiles only if `tiles` says that they are permitted and of use. `None` when it lacks
    /// even the floor.
    pub fn native(tiles: bool) -> Option<Level> {
        Level::supported().into_iter().rfind(|level| tiles || *level < Level::Amx)
    }
}

/// What levels add to one another, in their order; AVX-VNNI alone belongs to one level only.
const FEATURES: [&str; 16] = [
    "avx2",
    "fma",
    "f16c",
    "bmi1",
    "bmi2",
    "lzcnt",
    "popcnt",
    "avx512f",
    "avx512bw",
    "avx512cd",
    "avx512dq",
    "avx512vl",
    "avx512_vnni",
    "avx512vbmi",
    "amx_tile",
    "amx_bf16",
];

/// Features up to that one.
fn through(last: &str) -> &'static [&'static str] {
    let place = FEATURES.iter().position(|feature| *feature == last).expect("it is one of them");
    &FEATURES[..=place]
}

/// Whose CPUs code is made to be fast on. It decides among kernels that give the same bits and run on every CPU of the level.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Tuning {
    /// Nobody's in particular.
    #[default]
    Generic,
    /// Intel's.
    Intel,
    /// AMD's up to Zen 4, and that one where it matters.
    Amd,
    /// AMD's from Zen 5 on, which reads memory fastest in one place.
    Zen5,
}

impl Tuning {
    /// Every one.
    pub const ALL: [Tuning; 4] = [Tuning::Generic, Tuning::Intel, Tuning::Amd, Tuning::Zen5];

    /// The name on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Tuning::Generic => "generic",
            Tuning::Intel => "intel",
            Tuning::Amd => "amd",
            Tuning::Zen5 => "zen5",
        }
    }

    /// That of this CPU, by its maker and family.
    pub fn native() -> Tuning {
        let ukernel = std::arch::x86_64::__cpuid(0);
        let maker = [ukernel.ebx, ukernel.edx, ukernel.ecx].map(u32::to_le_bytes).concat();
        Tuning::of(&maker, family(std::arch::x86_64::__cpuid(1).eax))
    }

    fn of(maker: &[u8], family: u32) -> Tuning {
        match maker {
            b"GenuineIntel" => Tuning::Intel,
            b"AuthenticAMD" if family >= ZEN5_FAMILY => Tuning::Zen5,
            b"AuthenticAMD" | b"HygonGenuine" => Tuning::Amd,
            _ => Tuning::Generic,
        }
    }
}

/// Zen 5's in CPUID.
const ZEN5_FAMILY: u32 = 0x1a;

/// A CPU's family, of the version that CPUID function 1 has in eax (AMD64 Architecture Programmer's Manual, volume 3, appendix E): the base family in bits 8
/// to 11 and, when that is 15, the extended one in bits 20 to 27 on top.
fn family(version: u32) -> u32 {
    let (base, extended) = (version >> 8 & 0xf, version >> 20 & 0xff);
    if base == 0xf { base + extended } else { base }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn makers_and_families_have_their_tuning() {
        // Signatures of a Sapphire Rapids, an EPYC Zen 3, a Zen 4 and a Zen 5.
        let families = [0x0008_06f8, 0x00a0_0f11, 0x00a1_0f11, 0x00b0_0f21].map(family);
        assert_eq!(families, [6, 0x19, 0x19, 0x1a]);
        let amd = families.map(|family| Tuning::of(b"AuthenticAMD", family));
        assert_eq!(amd, [Tuning::Amd, Tuning::Amd, Tuning::Amd, Tuning::Zen5]);
        assert_eq!(Tuning::of(b"GenuineIntel", families[0]), Tuning::Intel);
        assert_eq!(Tuning::of(b"  Shanghai  ", 7), Tuning::Generic);
    }

    #[test]
    fn amx_is_native_only_when_asked_for() {
        assert_eq!(Level::from_name("amx"), Some(Level::Amx));
        assert_ne!(Level::native(false), Some(Level::Amx));
        assert_eq!(Level::native(true), Level::supported().last().copied());
        assert!(Level::Amx.features().starts_with(Level::V4Vnni.features()));
        assert!(Level::V4Vnni.features().starts_with(Level::CascadeLake.features()));
        let tiles = ["amx_tile", "amx_bf16"].map(host_has);
        let lacking = Level::Amx.missing().iter().any(|feature| feature.starts_with("amx"));
        assert_eq!(lacking, tiles.contains(&false));
    }
}
