//! The floating-point environment that results are defined in ([`FloatEnv`]).

use std::arch::asm;
use std::marker::PhantomData;

/// MXCSR as docs/dev/numerics.md takes it: rounds to nearest even, keeps subnormal numbers (neither FTZ nor
/// DAZ), masks all exceptions.
const STANDARD: u32 = 0x1f80;
/// Bits of MXCSR that say what has happened, not what is to happen.
const FLAGS: u32 = 0x3f;

/// Gives the calling thread the standard floating-point environment until it is dropped, then the one it had
/// before.
///
/// A host program may have set other rounding, or flush subnormal numbers to zero, for the thread that calls
/// kernmill. All arithmetic that results depend on runs under this guard. Threads that are started under it
/// inherit the standard environment.
///
/// ```
/// let _env = kernmill_os::float_env::FloatEnv::standard();
/// assert!(f32::MIN_POSITIVE / 2.0 > 0.0);
/// ```
#[must_use = "the environment is restored when this is dropped"]
pub struct FloatEnv {
    /// The state to restore; `None` where nothing was changed.
    before: Option<u32>,
    /// The environment is the thread's: this value stays there.
    thread: PhantomData<*const ()>,
}

impl FloatEnv {
    /// Sets the standard environment.
    pub fn standard() -> FloatEnv {
        let before = mxcsr();
        if before & !FLAGS == STANDARD {
            return FloatEnv { before: None, thread: PhantomData };
        }
        set_mxcsr(STANDARD);
        FloatEnv { before: Some(before), thread: PhantomData }
    }
}

impl Drop for FloatEnv {
    fn drop(&mut self) {
        if let Some(before) = self.before {
            set_mxcsr(before);
        }
    }
}

fn mxcsr() -> u32 {
    let mut value = 0u32;
    // SAFETY: the instruction stores four bytes, in `value`.
    unsafe { asm!("stmxcsr [{}]", in(reg) &raw mut value, options(nostack, preserves_flags)) };
    value
}

/// `value` is [`STANDARD`] or was read by [`mxcsr`], so that no reserved bit is set.
fn set_mxcsr(value: u32) {
    // SAFETY: the instruction loads four bytes, from `value`. The compiler takes the standard environment for
    // granted, which this sets; another one is set only where the host program had it before.
    unsafe { asm!("ldmxcsr [{}]", in(reg) &raw const value, options(nostack)) };
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::hint::black_box;

    /// FTZ, DAZ, and rounding towards zero.
    const ODD: u32 = STANDARD | 1 << 15 | 1 << 6 | 0b11 << 13;

    /// On a separate thread, whose environment is `mxcsr`.
    fn under(value: u32, work: impl FnOnce() + Send) {
        std::thread::scope(|scope| {
            scope.spawn(|| {
                set_mxcsr(value);
                work();
                set_mxcsr(STANDARD);
            });
        });
    }

    fn subnormal_sum() -> f32 {
        black_box(1e-40f32) + black_box(1e-40f32)
    }

    #[test]
    fn subnormal_numbers_count_under_the_guard_and_the_host_has_its_own_environment_afterwards() {
        under(ODD, || {
            assert_eq!(subnormal_sum(), 0.0, "the test's environment flushes");
            {
                let _env = FloatEnv::standard();
                assert_eq!(subnormal_sum().to_bits(), 2 * 1e-40f32.to_bits());
                let inherited = std::thread::scope(|scope| scope.spawn(mxcsr).join().expect("no panic"));
                assert_eq!(inherited & !FLAGS, STANDARD);
                // A second guard restores what the first one set.
                drop(FloatEnv::standard());
                assert_eq!(mxcsr() & !FLAGS, STANDARD);
            }
            assert_eq!(mxcsr() & !FLAGS, ODD);
            assert_eq!(subnormal_sum(), 0.0);
        });
    }

    #[test]
    fn a_standard_environment_stays_and_keeps_its_flags() {
        under(STANDARD, || {
            let _inexact = black_box(1.0f32) / black_box(3.0);
            let before = mxcsr();
            drop(FloatEnv::standard());
            assert_eq!(mxcsr(), before);
        });
    }
}
