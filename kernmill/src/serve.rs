//! Many texts at once: the crate `kernmill-serve`.

pub use kernmill_serve::*;

#[cfg(all(test, feature = "compiler"))]
mod tests;
