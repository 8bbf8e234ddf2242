//! Costs of micro-kernels: the numbers of the cost model, which are data in `compiler/tables/`.

use kernmill_kernels_gen::asm::AsmKernel;
use kernmill_kernels_gen::ukernel::MicroKernel;
use kernmill_kernels_gen::ukernel::gemm_q8::{Decoded, DecodedNumber, GROUP, Overlap};
use kernmill_plan::format::{CodeMap, WeightFormat};
use kernmill_plan::target::Tuning;
use serde::Deserialize;
use std::collections::BTreeMap;

/// ns per block for every CPU family, by kind of micro-kernel, version, and what the version is specialised
/// to.
const UKERNELS: &str = include_str!("../../../tables/ukernels.toml");

/// The differences of a CPU family.
fn family_text(tuning: Tuning) -> &'static str {
    match tuning {
        Tuning::Generic => include_str!("../../../tables/generic.toml"),
        Tuning::Intel => include_str!("../../../tables/intel.toml"),
        Tuning::Amd => include_str!("../../../tables/amd.toml"),
        Tuning::Zen5 => include_str!("../../../tables/zen5.toml"),
    }
}

/// Tokens of the columns of `dot`.
const DOT_TOKENS: [usize; 5] = [1, 2, 3, 4, 8];
/// A version of `gemm_q8_avx512vnni` that adds where that multiplies.
const ADDS: &str = "gemm_q8_avx512vnni_adds";
/// The suffix of versions of `DotQ8x4` and `DotQ8` that fetch bytes as they lie, into L1, and are the same
/// otherwise.
const LINEAR: &str = "_linear";

/// The costs of micro-kernels on the CPUs of a family.
#[derive(Clone, Debug)]
pub struct Table {
    numbers: MicroKernelSpeeds,
    family: Family,
}

/// `ukernels.toml`.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct MicroKernelSpeeds {
    dot: BTreeMap<String, BTreeMap<String, [f64; DOT_TOKENS.len()]>>,
    decode: BTreeMap<String, BTreeMap<String, f64>>,
    decode_words: BTreeMap<String, f64>,
    gemm: BTreeMap<String, GemmSpeeds>,
    parts: PartSpeeds,
}

/// The time that the parts of a format add to the one without any of them: shares of the time that it takes
/// for one token, by themselves and for each token. Of gemms shares of the whole.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct PartSpeeds {
    /// Lower bits by fours of a byte.
    pairs: [f64; 2],
    /// Upper bits of codes.
    high: [f64; 2],
    /// Scales with units.
    units: [f64; 2],
    /// A scale for each half of a block.
    halves: [f64; 2],
    /// A minimum for each scale.
    minimum: [f64; 2],
    gemm_halves: f64,
    gemm_minimum: f64,
}

impl PartSpeeds {
    /// The format whose numbers are those of this one's codes, and the shares that its parts add.
    fn of(&self, format: WeightFormat) -> (WeightFormat, [f64; 2]) {
        let parts = format.parts();
        let base = match (parts.codes.low, parts.map) {
            (8, _) => WeightFormat::Int8,
            (_, CodeMap::Table { .. }) => WeightFormat::Mxfp4,
            (_, CodeMap::Linear { .. }) => WeightFormat::Int4,
        };
        let added = [
            (parts.codes.low == 2, self.pairs),
            (parts.codes.high > 0, self.high),
            (parts.is_super(), self.units),
            (parts.parts() > 1, self.halves),
            (parts.has_minimum(), self.minimum),
        ];
        let added = added.into_iter().filter_map(|(is, share)| is.then_some(share));
        (base, added.fold([0.0; 2], |[fixed, each], [f, e]| [fixed + f, each + e]))
    }
}

/// A version of `GemmQ8`: by tiles less 1 and tokens less 1.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct GemmSpeeds {
    small: [[f64; GROUP]; 2],
    any: [[f64; GROUP]; 2],
}

/// A family's file.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Family {
    gemm_adds: f64,
    dot_linear: [f64; DOT_TOKENS.len()],
    dot_x4_linear: f64,
}

/// Name of a version; the 128-bit one has two, with and without `vpdpbusd`.
pub fn version_name(version: Option<&'static AsmKernel>, vnni: bool) -> &'static str {
    match version {
        Some(wide) => wide.name,
        None if vnni => "cranelift_128_vnni",
        None => "cranelift_128",
    }
}

impl Table {
    /// The numbers for a family.
    ///
    /// # Panics
    /// When an embedded table is not one: a test reads all of them.
    pub fn of(tuning: Tuning) -> Table {
        Table { numbers: read(UKERNELS), family: read(family_text(tuning)) }
    }

    /// ns for a block (of all tiles) of a micro-kernel in the version of that name; `None` where there is no
    /// number.
    pub fn ns_per_block(&self, ukernel: &MicroKernel, version: &str) -> Option<f64> {
        if version == ADDS {
            return Some(self.ns_per_block(ukernel, "gemm_q8_avx512vnni")? * self.family.gemm_adds);
        }
        if let Some(version) = version.strip_suffix(LINEAR) {
            let factor = match ukernel {
                MicroKernel::DotQ8 { tokens, .. } => self.family.dot_linear[column(*tokens)?],
                _ => self.family.dot_x4_linear,
            };
            return Some(self.ns_per_block(ukernel, version)? * factor);
        }
        match *ukernel {
            MicroKernel::DotQ8 { format, tokens, .. } => self.dot(version, format, tokens),
            // The arithmetic of each tile is that of a tile by itself.
            MicroKernel::DotQ8x4 { format, tokens, .. } => {
                self.dot(&version.replace("dot_adjacent", "dot_q8"), format, tokens)
            }
            MicroKernel::Decode { format } => {
                let (base, [fixed, _]) = self.numbers.parts.of(format);
                Some(self.numbers.decode.get(version)?.get(base.name())? * (1.0 + fixed))
            }
            MicroKernel::DecodeWords { .. } => self.numbers.decode_words.get(version).copied(),
            MicroKernel::GemmQ8 { weights, tiles, tokens } => self.gemm(version, weights, tiles, tokens),
            // Decoding beside the products takes no extra time; versions differ as they do without.
            MicroKernel::GemmDecode(Overlap { tokens, .. }) => {
                self.gemm(version, Decoded::plain(DecodedNumber::U8Max24Pow2), 2, tokens)
            }
            _ => None,
        }
    }

    fn dot(&self, version: &str, format: WeightFormat, tokens: usize) -> Option<f64> {
        let (base, [fixed, each]) = self.numbers.parts.of(format);
        let costs = self.numbers.dot.get(version)?.get(base.name())?;
        Some(costs[column(tokens)?] + costs[0] * (fixed + each * tokens as f64))
    }

    fn gemm(&self, version: &str, weights: Decoded, tiles: usize, tokens: usize) -> Option<f64> {
        let gemm = self.numbers.gemm.get(version)?;
        let rows = if weights.is_small() { &gemm.small } else { &gemm.any };
        let parts = &self.numbers.parts;
        let halves = if weights.parts > 1 { parts.gemm_halves } else { 1.0 };
        let minima = if weights.minima { parts.gemm_minimum } else { 1.0 };
        Some(rows.get(tiles.checked_sub(1)?)?.get(tokens.checked_sub(1)?)? * halves * minima)
    }
}

/// Column of dots of so many tokens.
fn column(tokens: usize) -> Option<usize> {
    DOT_TOKENS.iter().position(|size| *size == tokens)
}

/// An embedded table.
fn read<T: for<'de> Deserialize<'de>>(text: &str) -> T {
    toml::from_str(text).unwrap_or_else(|error| panic!("a table of compiler/tables is wrong: {error}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use kernmill_kernels_gen::ukernel::TileOrder;
    use kernmill_kernels_gen::ukernel::gemm_q8::DotStep;
    use kernmill_kernels_gen::{asm, isa};
    use kernmill_plan::target::Level;

    #[test]
    fn every_version_of_every_q8_ukernel_has_its_number() {
        let tables = Tuning::ALL.map(Table::of);
        for level in Level::ALL {
            for format in WeightFormat::blocked() {
                let dots = MicroKernel::dot_tokens(true).iter().map(|t| MicroKernel::DotQ8 {
                    format,
                    k: 64,
                    tokens: *t,
                });
                let adjacent = [1, 2].map(|tokens| MicroKernel::DotQ8x4 {
                    format,
                    k: 64,
                    tokens,
                    order: TileOrder::Straight,
                });
                let weights = DotStep::at(level).decoded(format);
                let gemms = (1..=2).flat_map(|tiles| {
                    (1..=GROUP).map(move |tokens| MicroKernel::GemmQ8 { weights, tiles, tokens })
                });
                for ukernel in
                    dots.chain(adjacent).chain(gemms).chain([MicroKernel::decoding(weights, format)])
                {
                    for version in asm::candidates(&ukernel, level).map(Some).chain([None]) {
                        let name = version_name(version, isa::has_vnni(level));
                        let ns = tables.each_ref().map(|table| table.ns_per_block(&ukernel, name));
                        assert!(ns.iter().all(|ns| ns.is_some_and(|ns| ns > 0.0)), "{ukernel}: {name}");
                    }
                }
            }
        }
    }

    /// A number that no version has is a slip in its name.
    #[test]
    fn every_number_is_of_a_version() {
        let known = |version: &String| {
            version.starts_with("cranelift_128") || asm::ALL.iter().any(|wide| wide.name == version)
        };
        let MicroKernelSpeeds { dot, decode, decode_words, gemm, .. } = Table::of(Tuning::Generic).numbers;
        let versions = dot.keys().chain(decode.keys()).chain(decode_words.keys()).chain(gemm.keys());
        assert_eq!(versions.filter(|version| !known(version)).collect::<Vec<_>>(), Vec::<&String>::new());
        for format in dot.values().flat_map(BTreeMap::keys).chain(decode.values().flat_map(BTreeMap::keys)) {
            assert!(WeightFormat::ALL.iter().any(|known| known.name() == format), "{format}");
        }
    }
}
