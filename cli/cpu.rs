//! `kernmill cpu`: what this machine offers.

use crate::failure::Result;
use crate::output;
use kernmill_plan::memory::available_memory;
use kernmill_plan::target::{Level, host_has};
use kernmill_runtime::pool::default_threads;
use serde_json::json;
use std::collections::BTreeSet;
use std::fmt::Write;

/// Shows which targets this CPU can run, what it lacks for the others, and the cores and memory there are
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  kernmill cpu
  kernmill cpu --json")]
pub struct Cpu {
    /// As JSON
    #[arg(long)]
    json: bool,
}

impl Cpu {
    /// Runs the command.
    pub fn execute(self) -> Result<()> {
        output::print(&if self.json { json_text() } else { text() })
    }
}

fn text() -> String {
    let mut text = String::new();
    // Writing to a String cannot fail.
    let _ = writeln!(text, "{}", model_name());
    let native = Level::supported().last().copied();
    for level in Level::ALL {
        let missing = level.missing();
        let says = match (missing.is_empty(), native == Some(level)) {
            (true, true) => "yes (native)".to_owned(),
            (true, false) => "yes".to_owned(),
            (false, _) => format!("no: lacks {}", missing.join(", ")),
        };
        let _ = writeln!(text, "  {:16} {says}", level.name());
    }
    let _ = writeln!(text, "features: {}", features().join(" "));
    let _ = writeln!(text, "threads: {} by default, {} CPUs", default_threads(), cpus());
    if let Some(bytes) = available_memory() {
        let _ = writeln!(text, "memory: {:.1} GB available", bytes as f64 / 1e9);
    }
    text
}

fn json_text() -> String {
    let levels: Vec<_> = Level::ALL
        .into_iter()
        .map(|level| json!({ "name": level.name(), "supported": level.missing().is_empty(), "missing": level.missing() }))
        .collect();
    let report = json!({
        "cpu": model_name(),
        "native": Level::supported().last().map(|level| level.name()),
        "levels": levels,
        "features": features(),
        "cpus": cpus(),
        "default_threads": default_threads(),
        "available_memory": available_memory(),
    });
    format!("{report:#}\n")
}

/// Features that any level uses and this CPU has.
fn features() -> Vec<&'static str> {
    let known: BTreeSet<&str> = Level::ALL.iter().flat_map(|level| level.features()).copied().collect();
    known.into_iter().filter(|feature| host_has(feature)).collect()
}

fn cpus() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

fn model_name() -> String {
    let info = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let name = info.lines().find_map(|line| line.strip_prefix("model name")?.split_once(':'));
    name.map_or_else(|| "unknown x86-64 CPU".to_owned(), |(_, name)| name.trim().to_owned())
}
