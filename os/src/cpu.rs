//! Features that this CPU and its operating system offer.

/// Whether this CPU (and its operating system) offers a feature, by its Linux `/proc/cpuinfo` name.
pub fn host_has(feature: &str) -> bool {
    match feature {
        "avx2" => is_x86_feature_detected!("avx2"),
        "fma" => is_x86_feature_detected!("fma"),
        "f16c" => is_x86_feature_detected!("f16c"),
        "bmi1" => is_x86_feature_detected!("bmi1"),
        "bmi2" => is_x86_feature_detected!("bmi2"),
        "lzcnt" => is_x86_feature_detected!("lzcnt"),
        "popcnt" => is_x86_feature_detected!("popcnt"),
        "avx_vnni" => is_x86_feature_detected!("avxvnni"),
        "avx512f" => is_x86_feature_detected!("avx512f"),
        "avx512bw" => is_x86_feature_detected!("avx512bw"),
        "avx512cd" => is_x86_feature_detected!("avx512cd"),
        "avx512dq" => is_x86_feature_detected!("avx512dq"),
        "avx512vl" => is_x86_feature_detected!("avx512vl"),
        "avx512_vnni" => is_x86_feature_detected!("avx512vnni"),
        "avx512vbmi" => is_x86_feature_detected!("avx512vbmi"),
        "avx512_bf16" => is_x86_feature_detected!("avx512bf16"),
        "avx512_fp16" => is_x86_feature_detected!("avx512fp16"),
        // Every hypervisor says so in its guests, and no CPU by itself.
        "hypervisor" => std::arch::x86_64::__cpuid(1).ecx >> 31 & 1 == 1,
        "amx_tile" => edx_of_leaf_7(24) && tiles_enabled(),
        "amx_bf16" => edx_of_leaf_7(22) && tiles_enabled(),
        "amx_int8" => edx_of_leaf_7(25) && tiles_enabled(),
        _ => false,
    }
}

/// A feature bit that the standard library does not name.
fn edx_of_leaf_7(bit: u32) -> bool {
    std::arch::x86_64::__cpuid_count(7, 0).edx >> bit & 1 == 1
}

/// Whether the operating system saves tile configuration and tile data (XCR0 bits 17 and 18). A process must
/// still ask for permission to use them: the runtime does.
fn tiles_enabled() -> bool {
    const TILES: u64 = 0b11 << 17;
    // SAFETY: xgetbv is there when the CPU reports xsave and its use by the operating system, which this
    // macro asks for.
    is_x86_feature_detected!("xsave") && unsafe { xcr0() } & TILES == TILES
}

/// # Safety
/// The CPU must have xsave, enabled by the operating system.
#[target_feature(enable = "xsave")]
unsafe fn xcr0() -> u64 {
    // SAFETY: by this function's contract; register 0 always exists.
    unsafe { std::arch::x86_64::_xgetbv(0) }
}
