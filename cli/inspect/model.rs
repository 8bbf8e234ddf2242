//! What only a kernmill with the compiler shows: what a preset makes of a model's weights, and code as text.

use super::Inspect;
use crate::failure::{Failure, Result};
use crate::output;
use crate::progress::Terminal;
use crate::version;
use kernmill::locate::SourceFiles;
use kernmill::source::{SourceModel, SpecSource};
use kernmill::tools::tensors::TensorList;
use kernmill_compiler::fuse::FusedSet;
use kernmill_compiler::quant::Preset;
use kernmill_kernels_gen::disasm;
use kernmill_plan::program::Program;
use kernmill_runtime::pool::default_threads;

impl Inspect {
    pub(super) fn show_model(&self, given: &SourceFiles) -> Result<()> {
        let (graph, choices) = if given.lacks_weights() {
            let graph = SpecSource::of(given, FusedSet::builtin())?.graph()?;
            if self.preset == Preset::Fast {
                let because = "preset fast decides from the weights; give --weights, or another --preset";
                return Err(Failure::BadInput(format!("--weights is missing: {because}")));
            }
            (graph, None)
        } else {
            let model = SourceModel::open(given, FusedSet::builtin())?;
            let threads = self.threads.map_or_else(default_threads, usize::from);
            let choices = model.choices(self.preset, threads, &*Terminal::observer(self.quiet))?;
            (model.graph, choices)
        };
        let list = TensorList::new(&graph, self.preset, choices)?;
        match self.json {
            true => output::print(version::report("kernmill.inspect-model/1", list.json())),
            false => output::show(list.text()),
        }
    }
}

/// Text of the functions whose names contain `part`.
pub(super) fn disassembly(program: &Program, part: &str) -> Result<String> {
    let symbols = program.code.symbols.iter().filter(|symbol| symbol.name.contains(part));
    let functions: Vec<String> = symbols.map(|symbol| disasm::function(&program.code, symbol)).collect();
    if functions.is_empty() {
        return Err(Failure::BadInput(format!(
            "--disasm {part}: no function's name contains it; kernmill inspect lists the symbols"
        )));
    }
    Ok(functions.join("\n"))
}
