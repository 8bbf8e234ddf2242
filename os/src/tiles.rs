//! Permission to use AMX tiles.

use std::io;

/// From `asm/prctl.h`: asks for the use of an extended state component.
const ARCH_REQ_XCOMP_PERM: libc::c_int = 0x1023;
/// The component of tile data.
const XFEATURE_XTILEDATA: libc::c_ulong = 18;

/// Asks the kernel to let this process use tiles; its threads share the permission, later ones too. Asking
/// again is harmless. Loading a program for the level `amx` asks.
///
/// # Errors
/// When the CPU or the kernel has no tiles, or a thread's signal stack is too small for them.
pub fn request() -> io::Result<()> {
    // SAFETY: the call changes nothing but the permission.
    let result = unsafe { libc::syscall(libc::SYS_arch_prctl, ARCH_REQ_XCOMP_PERM, XFEATURE_XTILEDATA) };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

#[cfg(test)]
mod tests {
    use crate::cpu::host_has;

    #[test]
    fn tiles_are_granted_only_where_the_cpu_has_them() {
        // A kernel older than 5.16 does not know the request, but does not enable tiles either.
        assert_eq!(super::request().is_ok(), host_has("amx_tile"));
    }
}
