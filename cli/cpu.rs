//! `kernmill cpu`: what this machine offers.

use crate::failure::Result;
use crate::options::size;
use crate::output;
use crate::version;
use kernmill::tools::cpu::{Measured, json, text};
use kernmill_runtime::pool::MAX_THREADS;

/// Shows which targets this CPU can run, what it lacks for the others, and the cores and memory there are
#[derive(Debug, clap::Args)]
#[command(after_help = "\
--measure reads memory that no cache holds, in the widest loads of the CPU's best target, and multiplies int8 values in registers with that \
target's instructions: the limits that `kernmill bench` compares with. It takes a few seconds.

Examples:
  kernmill cpu
  kernmill cpu --measure
  kernmill cpu --json")]
pub struct Cpu {
    /// Measures memory bandwidth and integer peak as well, of one thread and of all
    #[arg(long)]
    measure: bool,
    /// Threads that --measure calls all; by default one for each physical core that this process may use
    #[arg(long, value_name = "N", requires = "measure", value_parser = clap::value_parser!(u16).range(1..=MAX_THREADS as i64))]
    threads: Option<u16>,
    /// Bytes that --measure reads each time
    #[arg(long, value_name = "SIZE", requires = "measure", default_value = "4G", value_parser = size)]
    read: u64,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

impl Cpu {
    /// Runs the command.
    pub fn execute(self) -> Result<()> {
        let threads = self.threads.map(usize::from);
        let measured = if self.measure { Measured::all(threads, self.read)? } else { Vec::new() };
        match self.json {
            true => output::print(version::report("kernmill.cpu/1", json(&measured))),
            false => output::print(text(&measured)),
        }
    }
}
