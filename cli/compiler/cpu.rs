//! `kernmill cpu`: what this machine offers.

use crate::explicit::Explicit;
use crate::failure::Result;
use crate::options::{FormArgs, size, thread_count};
use crate::{output, version};
use kernmill_tools::cpu::{MeasuredMachine, json, text};
use kernmill_tools::machine::SCHEMA;
use std::path::PathBuf;

/// Shows which targets this CPU can run, what it lacks for the others, and the cores and memory there are
#[derive(Debug, clap::Args)]
#[command(after_help = include_str!("../help/cpu.txt"))]
pub struct Cpu {
    /// Measures memory bandwidth, integer peak, barriers and steps as well, by numbers of threads up to all
    #[arg(long)]
    measure: bool,
    /// Threads that --measure calls all; by default one for each physical core that this process may use
    #[arg(long, value_name = "N", requires = "measure", value_parser = thread_count())]
    threads: Option<u16>,
    /// Bytes that --measure reads each time
    #[arg(long, value_name = "SIZE", requires = "measure", default_value = "4G", value_parser = size)]
    read: u64,
    /// Write JSON to this file: a description of this machine
    #[arg(long, short, value_name = "FILE", requires = "measure")]
    output: Option<PathBuf>,
    #[command(flatten)]
    form: FormArgs,
}

impl Cpu {
    /// Runs the command.
    pub fn execute(self, explicit: &Explicit) -> Result<()> {
        self.output.as_deref().map_or(Ok(()), output::check)?;
        let all = || MeasuredMachine::all(self.threads, self.read, &explicit.aside());
        let measured = self.measure.then(all).transpose()?.unwrap_or_default();
        match &self.output {
            Some(path) => {
                explicit.aside().deliver(path, version::report(SCHEMA, json(&measured)), "for --machine")
            }
            None => version::show(self.form.json, SCHEMA, || json(&measured), || text(&measured)),
        }
    }
}
