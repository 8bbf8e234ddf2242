//! CPU features and the named sets of them that code is generated for, and what the host can run.

use kernmill_os::cpu::host_has;
use serde::{Deserialize, Serialize};

/// A set of CPU features.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Features(u64);

impl Features {
    /// No feature.
    pub const NONE: Features = Features(0);
    /// 256-bit integer vectors, and with them AVX.
    pub const AVX2: Features = Features(1 << 0);
    /// Fused multiply-add.
    pub const FMA: Features = Features(1 << 1);
    /// Conversion between f16 and f32.
    pub const F16C: Features = Features(1 << 2);
    /// Bit manipulation, first set.
    pub const BMI1: Features = Features(1 << 3);
    /// Bit manipulation, second set.
    pub const BMI2: Features = Features(1 << 4);
    /// Leading zero count.
    pub const LZCNT: Features = Features(1 << 5);
    /// Population count.
    pub const POPCNT: Features = Features(1 << 6);
    /// `vpdpbusd` of 128 and 256 bits, VEX-encoded.
    pub const AVX_VNNI: Features = Features(1 << 7);
    /// 512-bit vectors.
    pub const AVX512F: Features = Features(1 << 8);
    /// 512-bit vectors of bytes and words.
    pub const AVX512BW: Features = Features(1 << 9);
    /// Conflict detection.
    pub const AVX512CD: Features = Features(1 << 10);
    /// 512-bit vectors of double and quad words.
    pub const AVX512DQ: Features = Features(1 << 11);
    /// AVX-512 instructions on shorter vectors.
    pub const AVX512VL: Features = Features(1 << 12);
    /// `vpdpbusd`, EVEX-encoded.
    pub const AVX512_VNNI: Features = Features(1 << 13);
    /// Permutations of bytes.
    pub const AVX512_VBMI: Features = Features(1 << 14);
    /// Tiles.
    pub const AMX_TILE: Features = Features(1 << 15);
    /// Products of tiles of bf16.
    pub const AMX_BF16: Features = Features(1 << 16);
    /// Products of tiles of int8.
    pub const AMX_INT8: Features = Features(1 << 17);

    /// The features that every level has: AVX2, FMA, F16C, BMI1/2, LZCNT, POPCNT.
    pub const FLOOR: Features = Features::AVX2
        .and(Features::FMA)
        .and(Features::F16C)
        .and(Features::BMI1)
        .and(Features::BMI2)
        .and(Features::LZCNT)
        .and(Features::POPCNT);
    /// The floor and AVX-512 F, BW, CD, DQ and VL, which all server CPUs with AVX-512 have.
    pub const AVX512: Features = Features::FLOOR
        .and(Features::AVX512F)
        .and(Features::AVX512BW)
        .and(Features::AVX512CD)
        .and(Features::AVX512DQ)
        .and(Features::AVX512VL);
    /// Tiles of bf16 and of int8.
    pub const AMX: Features = Features::AMX_TILE.and(Features::AMX_BF16).and(Features::AMX_INT8);

    /// Every single feature with its Linux `/proc/cpuinfo` name, in the order in which plans list them.
    pub const NAMED: &[(&str, Features)] = &[
        ("avx2", Features::AVX2),
        ("fma", Features::FMA),
        ("f16c", Features::F16C),
        ("bmi1", Features::BMI1),
        ("bmi2", Features::BMI2),
        ("lzcnt", Features::LZCNT),
        ("popcnt", Features::POPCNT),
        ("avx_vnni", Features::AVX_VNNI),
        ("avx512f", Features::AVX512F),
        ("avx512bw", Features::AVX512BW),
        ("avx512cd", Features::AVX512CD),
        ("avx512dq", Features::AVX512DQ),
        ("avx512vl", Features::AVX512VL),
        ("avx512_vnni", Features::AVX512_VNNI),
        ("avx512vbmi", Features::AVX512_VBMI),
        ("amx_tile", Features::AMX_TILE),
        ("amx_bf16", Features::AMX_BF16),
        ("amx_int8", Features::AMX_INT8),
    ];

    /// The features of either set.
    pub const fn and(self, other: Features) -> Features {
        Features(self.0 | other.0)
    }

    /// Whether all of `needed` are in this set.
    pub const fn has(self, needed: Features) -> bool {
        self.0 & needed.0 == needed.0
    }

    /// Whether this is the empty set.
    pub const fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// The feature of that `/proc/cpuinfo` name.
    pub fn from_name(name: &str) -> Option<Features> {
        Features::NAMED.iter().find(|(known, _)| *known == name).map(|(_, feature)| *feature)
    }

    /// Names of the features, in the order of [`Features::NAMED`].
    pub fn names(self) -> impl Iterator<Item = &'static str> {
        Features::NAMED.iter().filter(move |(_, feature)| self.has(*feature)).map(|(name, _)| *name)
    }
}

/// A named set of CPU features that code is generated for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
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
    /// V4Vnni and AMX tiles of bf16 and int8 (Sapphire Rapids and later). Code that multiplies no prompts is
    /// that of V4Vnni, but for preset `bf16`.
    #[serde(rename = "amx")]
    Amx,
}

/// A level's name and features.
#[derive(Clone, Copy, Debug)]
pub struct NamedLevel {
    /// The level.
    pub level: Level,
    /// The name on the command line and in plans.
    pub name: &'static str,
    /// CPU features that the level's code may use.
    pub features: Features,
}

/// Every level. Of those that a CPU can run the last one is its best: that order is a preference, and says
/// nothing of what one has beside another.
pub const NAMED: &[NamedLevel] = &[
    named(Level::V3, "x86-64-v3", Features::FLOOR),
    named(Level::V3Vnni, "x86-64-v3-vnni", Features::FLOOR.and(Features::AVX_VNNI)),
    named(Level::V4, "x86-64-v4", Features::AVX512),
    named(Level::CascadeLake, "cascadelake", VNNI_512),
    named(Level::V4Vnni, "x86-64-v4-vnni", VBMI_512),
    named(Level::Amx, "amx", VBMI_512.and(Features::AMX)),
];

const VNNI_512: Features = Features::AVX512.and(Features::AVX512_VNNI);
const VBMI_512: Features = VNNI_512.and(Features::AVX512_VBMI);

const fn named(level: Level, name: &'static str, features: Features) -> NamedLevel {
    NamedLevel { level, name, features }
}

impl Level {
    /// Every level that code can be generated for, in the order of [`NAMED`].
    pub const ALL: [Level; NAMED.len()] = {
        let mut all = [Level::V3; NAMED.len()];
        let mut place = 0;
        while place < all.len() {
            all[place] = NAMED[place].level;
            place += 1;
        }
        all
    };

    fn named(self) -> &'static NamedLevel {
        NAMED.iter().find(|named| named.level == self).expect("a test finds every level's name")
    }

    /// The name on the command line and in plans.
    pub fn name(self) -> &'static str {
        self.named().name
    }

    /// The level of that name.
    pub fn from_name(name: &str) -> Option<Level> {
        Level::ALL.into_iter().find(|level| level.name() == name)
    }

    /// CPU features that code of this level may use.
    pub fn features(self) -> Features {
        self.named().features
    }

    /// Whether code of this level may use AMX tiles, which the system must permit.
    pub fn has_tiles(self) -> bool {
        self.features().has(Features::AMX_TILE)
    }

    /// Prompt tokens that are run at once for levels, unless something says how many. Tiles want many: they
    /// multiply 16 rows at once of each expert, whether or not it has that many, and decode an expert's
    /// weights once a chunk.
    pub fn default_chunk(levels: impl IntoIterator<Item = Level>) -> u32 {
        if levels.into_iter().all(Level::has_tiles) { 2048 } else { 512 }
    }

    /// Names of the features of this level that this CPU lacks.
    pub fn missing(self) -> Vec<&'static str> {
        self.features().names().filter(|feature| !host_has(feature)).collect()
    }

    /// Levels that this CPU can run, the best last; empty when it lacks even the floor.
    pub fn supported() -> Vec<Level> {
        Level::ALL.into_iter().filter(|level| level.missing().is_empty()).collect()
    }

    /// The best of some levels.
    pub fn best(levels: &[Level]) -> Option<Level> {
        Level::ALL.into_iter().rfind(|level| levels.contains(level))
    }

    /// The best level that this CPU can run; one with tiles only if `tiles` says that they are permitted
    /// and of use. `None` when it lacks even the floor.
    pub fn native(tiles: bool) -> Option<Level> {
        Level::supported().into_iter().rfind(|level| tiles || !level.has_tiles())
    }
}

/// CPU family that code is made to be fast on. It decides among kernels that give the same bits and run on
/// every CPU of the level.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Tuning {
    /// No family in particular.
    #[default]
    Generic,
    /// CPUs of Intel.
    Intel,
    /// CPUs of AMD up to Zen 4; Zen 4 where they differ.
    Amd,
    /// CPUs of AMD from Zen 5 on, which reads memory fastest in one place.
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

    /// Family of this CPU, by its maker and number.
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

/// A CPU's family, of the version that CPUID function 1 has in eax (AMD64 Architecture Programmer's Manual,
/// volume 3, appendix E): the base family in bits 8 to 11 and, when that is 15, the extended one in bits 20
/// to 27 on top.
fn family(version: u32) -> u32 {
    let (base, extended) = (version >> 8 & 0xf, version >> 20 & 0xff);
    if base == 0xf { base + extended } else { base }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chunks_are_long_where_only_tiles_run() {
        let chunk = |levels: &[Level]| Level::default_chunk(levels.iter().copied());
        assert_eq!([chunk(&[Level::Amx]), chunk(&[Level::V3]), chunk(&Level::ALL)], [2048, 512, 512]);
    }

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
        let tiles = ["amx_tile", "amx_bf16", "amx_int8"].map(host_has);
        let lacking = Level::Amx.missing().iter().any(|feature| feature.starts_with("amx"));
        assert_eq!(lacking, tiles.contains(&false));
    }

    #[test]
    fn levels_and_features_are_found_by_their_names() {
        for level in Level::ALL {
            assert_eq!(Level::from_name(level.name()), Some(level));
            // The name in a plan is the name on the command line.
            assert_eq!(serde_json::to_value(level).unwrap(), level.name());
            assert!(level.features().has(Features::FLOOR));
            let again = level.features().names().map(|name| Features::from_name(name).unwrap());
            assert_eq!(again.fold(Features::NONE, Features::and), level.features());
        }
        let names: Vec<&str> = Level::V3Vnni.features().names().collect();
        assert_eq!(names, ["avx2", "fma", "f16c", "bmi1", "bmi2", "lzcnt", "popcnt", "avx_vnni"]);
        assert_eq!(Level::best(&[Level::V4, Level::V4Vnni, Level::V3]), Some(Level::V4Vnni));
    }

    #[test]
    fn a_set_has_what_was_put_into_it_and_nothing_else() {
        let both = Features::AVX2.and(Features::AVX_VNNI);
        assert!(both.has(Features::AVX2) && both.has(both) && both.has(Features::NONE));
        assert!(!both.has(Features::FMA) && !Features::AVX2.has(both));
        // Features are separate bits.
        let all = Features::NAMED.iter().fold(Features::NONE, |all, (_, one)| {
            assert!(!all.has(*one));
            all.and(*one)
        });
        assert_eq!(all.names().count(), Features::NAMED.len());
        // Neither of these has all that the other has.
        let (short, long) = (Level::V3Vnni.features(), Level::V4.features());
        assert!(!short.has(long) && !long.has(short));
    }
}
