//! Formats of blocks that GGUF files have and that no f32 weights are rounded to: a file for each type, with
//! its parts and how a block of the file is taken apart.

pub mod iq4_nl;
pub mod iq4_xs;
pub mod nvfp4;
pub mod q2_k;
pub mod q3_k;
pub mod q4_1;
pub mod q4_k;
pub mod q5_0;
pub mod q5_1;
pub mod q5_k;
pub mod q6_k;
pub mod tq1_0;
pub mod tq2_0;
