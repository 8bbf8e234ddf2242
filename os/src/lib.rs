//! Services of the operating system and the CPU: memory maps, files that appear whole, threads, the
//! floating-point environment, CPU features. Nothing here knows of models or plans.

pub mod affinity;
pub mod bus;
pub mod cpu;
pub mod files;
pub mod float_env;
pub mod foreign;
pub mod memory;
pub mod numa;
pub mod output;
pub mod perf;
pub mod proc;
pub mod region;
pub mod signals;
pub mod sisters;
pub mod source;
pub mod stack;
pub mod suggest;
pub mod terminal;
pub mod text;
pub mod threads;
pub mod tiles;
