//! What micro-kernels cost: the numbers of the cost model.
//!
//! ns for a block of 32 k of a tile of 16 rows, data in cache, one thread. `cargo bench -p kernmill-kernels --bench costs` prints them. Each is the mean of
//! two machines, since a level has hosts of both kinds: an AMD EPYC (Zen 4; benches/runs/2026-11-21/micro-kernel-costs.jsonl) and an Intel Xeon (Sapphire
//! Rapids; benches/runs/2026-11-20.md, which has no gemm micro-kernels but those of two tiles by six tokens: the others have
//! Zen 4's proportions, and with VNNI and one tile the factor that its loads take longer than its multiplications, 1 + 1 / tokens). AVX-VNNI was measured
//! on the Xeon only. `dot_q8_avx512vnni` with mxfp4 was measured on Zen 4 only, and has the factor from there to the mean of a version like it: 5.6, 7.4, 12.4 and 25.2 ns
//! by that of `dot_q8_avx512vbmi` (4.8, 6.8, 12.2 and 24.7). `gemm_q8_avx2` and `DecodeWords` were measured on a Zen 3 only
//! (benches/runs/2026-11-22/zen3/costs.jsonl), and so was `dot_q8_avx2` (benches/runs/2026-11-24/zen3/costs-after.jsonl); each is the less of two runs. `dot_q8_avx2vnni` was
//! measured on the Xeon while it broadcast activations for each vector of rows; what it has here is less by as much as its instructions are fewer by count, 0.82 to 0.92.
//! Dots of three tokens in 512 bits were measured on a Zen 5 only (benches/runs/2026-11-23/zen5/costs-dots.jsonl); they stand between those of two and of four as
//! they do there. The raw records that are named here are in the repository's history (benches/runs/README.md).

use kernmill_kernels_gen::asm::AsmKernel;
use kernmill_kernels_gen::ukernel::MicroKernel;
use kernmill_kernels_gen::ukernel::gemm_q8::{Decoded, GROUP, Overlap};
use kernmill_plan::format::WeightFormat::{self, Int4, Int8, Mxfp4};
use kernmill_plan::target::Tuning;

/// A version of `DotQ8`.
struct Dot {
    version: &'static str,
    format: WeightFormat,
    /// By tokens: 1, 2, 3, 4, 8.
    ns: [f64; 5],
}

/// A version of `Decode`.
struct Decode {
    version: &'static str,
    /// By format: mxfp4, int8, int4.
    ns: [f64; 3],
}

/// A version of `GemmQ8`; ns for a block of all its tiles.
struct Gemm {
    version: &'static str,
    small: bool,
    tiles: usize,
    /// By tokens: 1 to 6.
    ns: [f64; GROUP],
}

#[rustfmt::skip]
const DOTS: &[Dot] = &[
    Dot { version: "dot_q8_avx512vbmi", format: Mxfp4, ns: [5.0, 7.8, 9.8, 11.9, 22.2] },
    Dot { version: "dot_q8_avx512vnni", format: Mxfp4, ns: [5.8, 8.4, 10.2, 12.1, 22.6] },
    Dot { version: "dot_q8_avx512vnni", format: Int8, ns: [7.0, 8.2, 9.7, 11.3, 20.5] },
    Dot { version: "dot_q8_avx512vnni", format: Int4, ns: [4.7, 7.2, 9.5, 11.8, 21.6] },
    Dot { version: "dot_q8_avx512bw", format: Mxfp4, ns: [7.2, 10.6, 14.2, 18.2, 32.7] },
    Dot { version: "dot_q8_avx512bw", format: Int8, ns: [11.7, 21.9, 32.2, 42.9, 83.7] },
    Dot { version: "dot_q8_avx512bw", format: Int4, ns: [6.0, 8.8, 12.3, 15.7, 30.0] },
    Dot { version: "dot_q8_avx2vnni", format: Mxfp4, ns: [8.6, 10.4, 12.0, 16.7, 39.6] },
    Dot { version: "dot_q8_avx2vnni", format: Int8, ns: [7.2, 8.4, 12.3, 15.8, 32.0] },
    Dot { version: "dot_q8_avx2vnni", format: Int4, ns: [6.2, 10.3, 11.2, 16.6, 34.7] },
    Dot { version: "dot_q8_avx2", format: Mxfp4, ns: [9.3, 13.4, 18.9, 22.4, 44.7] },
    Dot { version: "dot_q8_avx2", format: Int8, ns: [9.8, 17.6, 25.9, 33.7, 67.2] },
    Dot { version: "dot_q8_avx2", format: Int4, ns: [7.4, 11.0, 15.5, 19.4, 38.5] },
    Dot { version: "cranelift_128_vnni", format: Mxfp4, ns: [23.1, 47.4, 69.8, 87.9, 183.1] },
    Dot { version: "cranelift_128_vnni", format: Int8, ns: [20.5, 44.4, 68.6, 91.1, 186.3] },
    Dot { version: "cranelift_128_vnni", format: Int4, ns: [24.2, 46.0, 69.4, 92.3, 182.8] },
    Dot { version: "cranelift_128", format: Mxfp4, ns: [24.4, 49.2, 75.4, 108.2, 205.3] },
    Dot { version: "cranelift_128", format: Int8, ns: [40.6, 91.7, 137.4, 185.4, 365.4] },
    Dot { version: "cranelift_128", format: Int4, ns: [23.3, 46.5, 73.7, 105.6, 207.2] },
];

#[rustfmt::skip]
const DECODES: &[Decode] = &[
    Decode { version: "decode_avx512", ns: [4.5, 4.4, 4.5] },
    Decode { version: "decode_avx2", ns: [8.4, 4.4, 7.4] },
    Decode { version: "cranelift_128", ns: [11.8, 9.4, 11.6] },
    Decode { version: "cranelift_128_vnni", ns: [11.8, 9.4, 11.6] },
];

/// Versions of `DecodeWords`.
const WORDS: [(&str, f64); 2] = [("decode_avx2", 12.0), ("cranelift_128", 22.5)];

#[rustfmt::skip]
const GEMMS: &[Gemm] = &[
    Gemm { version: "gemm_q8_avx512vnni", small: true, tiles: 1, ns: [4.0, 5.9, 7.5, 9.7, 12.3, 14.1] },
    Gemm { version: "gemm_q8_avx512vnni", small: true, tiles: 2, ns: [6.1, 8.9, 13.2, 17.7, 22.1, 26.5] },
    Gemm { version: "gemm_q8_avx512vnni", small: false, tiles: 1, ns: [4.0, 5.9, 7.5, 9.7, 12.3, 14.1] },
    Gemm { version: "gemm_q8_avx512vnni", small: false, tiles: 2, ns: [6.2, 9.0, 13.3, 17.7, 22.2, 26.6] },
    Gemm { version: "gemm_q8_avx512bw", small: true, tiles: 1, ns: [4.3, 7.7, 11.0, 14.8, 18.7, 22.4] },
    Gemm { version: "gemm_q8_avx512bw", small: true, tiles: 2, ns: [8.7, 14.9, 22.0, 29.6, 37.4, 44.8] },
    Gemm { version: "gemm_q8_avx512bw", small: false, tiles: 1, ns: [10.8, 21.3, 31.9, 42.5, 53.2, 63.8] },
    Gemm { version: "gemm_q8_avx512bw", small: false, tiles: 2, ns: [18.5, 34.7, 51.4, 68.2, 84.9, 102.0] },
    Gemm { version: "gemm_q8_avx2vnni", small: true, tiles: 1, ns: [5.6, 6.9, 9.4, 12.4, 16.0, 18.6] },
    Gemm { version: "gemm_q8_avx2vnni", small: true, tiles: 2, ns: [8.6, 12.5, 18.6, 24.8, 31.0, 37.2] },
    Gemm { version: "gemm_q8_avx2vnni", small: false, tiles: 1, ns: [5.8, 7.2, 9.8, 13.0, 16.6, 19.4] },
    Gemm { version: "gemm_q8_avx2vnni", small: false, tiles: 2, ns: [9.0, 13.2, 19.4, 25.8, 32.3, 38.8] },
    Gemm { version: "gemm_q8_avx2", small: true, tiles: 1, ns: [6.0, 9.3, 13.5, 17.3, 21.0, 25.1] },
    Gemm { version: "gemm_q8_avx2", small: true, tiles: 2, ns: [12.0, 18.5, 27.0, 34.6, 42.0, 50.2] },
    Gemm { version: "gemm_q8_avx2", small: false, tiles: 1, ns: [9.2, 15.1, 21.1, 27.8, 34.4, 40.9] },
    Gemm { version: "gemm_q8_avx2", small: false, tiles: 2, ns: [19.7, 30.7, 42.3, 55.6, 68.9, 81.9] },
    Gemm { version: "cranelift_128_vnni", small: true, tiles: 1, ns: [21.2, 40.8, 65.8, 81.5, 102.6, 127.1] },
    Gemm { version: "cranelift_128_vnni", small: true, tiles: 2, ns: [42.0, 81.7, 133.6, 166.6, 209.5, 254.8] },
    Gemm { version: "cranelift_128_vnni", small: false, tiles: 1, ns: [21.1, 41.2, 66.2, 83.1, 104.2, 128.7] },
    Gemm { version: "cranelift_128_vnni", small: false, tiles: 2, ns: [42.3, 82.5, 134.7, 167.8, 211.6, 258.0] },
    Gemm { version: "cranelift_128", small: true, tiles: 1, ns: [20.0, 40.3, 61.7, 81.9, 104.4, 122.2] },
    Gemm { version: "cranelift_128", small: true, tiles: 2, ns: [40.1, 81.3, 124.3, 164.7, 203.3, 243.9] },
    Gemm { version: "cranelift_128", small: false, tiles: 1, ns: [44.1, 87.1, 133.0, 177.0, 220.8, 265.2] },
    Gemm { version: "cranelift_128", small: false, tiles: 2, ns: [88.1, 175.4, 267.6, 357.5, 444.3, 530.5] },
];

/// Name of a version; the 128-bit one has two, with and without `vpdpbusd`.
pub fn version_name(version: Option<&'static AsmKernel>, vnni: bool) -> &'static str {
    match version {
        Some(wide) => wide.name,
        None if vnni => "cranelift_128_vnni",
        None => "cranelift_128",
    }
}

/// `gemm_q8_avx512vnni_adds` beside `gemm_q8_avx512vnni`: 30.1 ns against 32.5 for two tiles by six tokens on the EPYC, where additions do not wait for the
/// multipliers. For the Xeon, where they do, from the instructions of a block and two tokens: 22 against 20.
const ADDS: &str = "gemm_q8_avx512vnni_adds";

fn adds_factor(tuning: Tuning) -> f64 {
    match tuning {
        Tuning::Amd | Tuning::Zen5 => 0.93,
        Tuning::Intel => 1.1,
        Tuning::Generic => 1.0,
    }
}

/// What versions of `DotQ8x4` and `DotQ8` are called that fetch bytes as they lie, into L1, and the same otherwise.
const LINEAR: &str = "_linear";

/// Those beside the others. Of adjacent tiles, weights coming from memory: on a Zen 5 the order by itself has 1.04 of a read's rate beside 0.86, micro-kernels of mxfp4 have
/// 0.98 beside 0.9 and of int8 1.00 beside 0.95 (`benches/runs/2026-11-23-zen5.md`). Others were measured one tile at a time while such micro-kernels fetched into L2: 22 GB/s
/// beside 25 a thread on the EPYC, and plain reads from one place 16 beside 26 on the Xeon. Of one tile from cache, because panels are compared with that: on a Zen 5 no slower,
/// and from memory up to 2.5 times as fast; fetching into L1 was slower on the EPYC, while it was done in bursts.
fn linear_factor(ukernel: MicroKernel, tuning: Tuning) -> f64 {
    match (ukernel, tuning) {
        (MicroKernel::DotQ8 { .. }, Tuning::Zen5) => 0.98,
        (MicroKernel::DotQ8 { .. }, _) => 1.1,
        (_, Tuning::Zen5) => 0.85,
        (_, Tuning::Amd) => 1.15,
        (_, Tuning::Intel) => 1.6,
        (_, Tuning::Generic) => 1.3,
    }
}

/// ns for a block (of all tiles) of a micro-kernel in the version of that name; `None` where there is no number.
pub fn ns_per_block(ukernel: MicroKernel, version: &str, tuning: Tuning) -> Option<f64> {
    if version == ADDS {
        return Some(ns_per_block(ukernel, "gemm_q8_avx512vnni", tuning)? * adds_factor(tuning));
    }
    if let Some(version) = version.strip_suffix(LINEAR) {
        return Some(ns_per_block(ukernel, version, tuning)? * linear_factor(ukernel, tuning));
    }
    match ukernel {
        MicroKernel::DotQ8 { format, tokens, .. } => {
            let place = [1, 2, 3, 4, 8].iter().position(|size| *size == tokens)?;
            let row = DOTS.iter().find(|row| row.version == version && row.format == format)?;
            Some(row.ns[place])
        }
        // Of each tile the arithmetic is that of a tile by itself.
        MicroKernel::DotQ8x4 { format, k, tokens, .. } => ns_per_block(
            MicroKernel::DotQ8 { format, k, tokens },
            &version.replace("dot_adjacent", "dot_q8"),
            tuning,
        ),
        MicroKernel::Decode { format } => {
            let place = [Mxfp4, Int8, Int4].iter().position(|other| *other == format)?;
            Some(DECODES.iter().find(|row| row.version == version)?.ns[place])
        }
        MicroKernel::DecodeWords => WORDS.iter().find(|(name, _)| *name == version).map(|(_, ns)| *ns),
        MicroKernel::GemmQ8 { weights, tiles, tokens } => {
            let wanted =
                |row: &&Gemm| row.version == version && row.small == weights.is_small() && row.tiles == tiles;
            Some(GEMMS.iter().find(wanted)?.ns[tokens - 1])
        }
        // What it decodes beside takes no time of its own; versions differ as they do without.
        MicroKernel::GemmDecode(Overlap { tokens, .. }) => ns_per_block(
            MicroKernel::GemmQ8 { weights: Decoded::U8Max24Pow2, tiles: 2, tokens },
            version,
            tuning,
        ),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use kernmill_kernels_gen::ukernel::Order;
    use kernmill_kernels_gen::ukernel::gemm_q8::DotStep;
    use kernmill_kernels_gen::{asm, isa};
    use kernmill_plan::target::Level;

    #[test]
    fn every_version_of_every_q8_ukernel_has_its_number() {
        for level in Level::ALL {
            for format in [Mxfp4, Int8, Int4] {
                let dots = MicroKernel::dot_tokens(true).iter().map(|t| MicroKernel::DotQ8 {
                    format,
                    k: 64,
                    tokens: *t,
                });
                let adjacent = [1, 2].map(|tokens| MicroKernel::DotQ8x4 {
                    format,
                    k: 64,
                    tokens,
                    order: Order::Straight,
                });
                let weights = DotStep::at(level).decoded(format);
                let gemms = (1..=2).flat_map(|tiles| {
                    (1..=GROUP).map(move |tokens| MicroKernel::GemmQ8 { weights, tiles, tokens })
                });
                for ukernel in
                    dots.chain(adjacent).chain(gemms).chain([MicroKernel::decoding(weights, format)])
                {
                    for version in asm::candidates(ukernel, level).map(Some).chain([None]) {
                        let name = version_name(version, isa::has_vnni(level));
                        let ns = Tuning::ALL.map(|tuning| ns_per_block(ukernel, name, tuning));
                        assert!(ns.iter().all(|ns| ns.is_some_and(|ns| ns > 0.0)), "{ukernel}: {name}");
                    }
                }
            }
        }
    }
}
