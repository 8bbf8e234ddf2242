//! The functions of a compiled model as JSON: kernels, and the micro-kernels that they call.

use kernmill_compiler::passes::select::KernelUse;
use kernmill_compiler::pipeline::Compiled;
use kernmill_kernels_gen::{disasm, generate};
use serde_json::{Value, json};

/// Every function of the program, in the order of its code. If the IR was kept, it is there, and so is the
/// assembly.
pub fn functions(compiled: &Compiled) -> Vec<Value> {
    let blob = &compiled.program.code;
    let descriptions = descriptions(compiled);
    let function = |(index, symbol): (usize, &kernmill_plan::program::Symbol)| {
        let kernel = compiled.kernels.list.get(index);
        let called = kernel.map_or_else(Vec::new, |kernel| {
            generate::ukernels(std::slice::from_ref(kernel), compiled.model.level())
        });
        let version = compiled.ukernels.iter().find(|choice| choice.ukernel.to_string() == symbol.name);
        json!({
            "name": symbol.name,
            "bytes": symbol.size,
            "description": descriptions.get(index),
            "calls": called.iter().map(ToString::to_string).collect::<Vec<_>>(),
            "version": version.map(|choice| choice.versions[choice.pick].0),
            "clif": compiled.clif.get(index),
            "assembly": compiled.clif.get(index).map(|_| disasm::function(blob, symbol)),
        })
    };
    blob.symbols.iter().enumerate().map(function).collect()
}

/// The work of each kernel, in the order of the kernels.
fn descriptions(compiled: &Compiled) -> Vec<String> {
    let mut all = vec![String::new(); compiled.kernels.list.len()];
    for (selection, schedule) in compiled.selections.iter().zip(&compiled.schedules) {
        // The schedule has those of the slab behind the others, and otherwise their order.
        let of = |per_slab: bool| selection.uses.iter().filter(move |one| one.per_slab == per_slab);
        let steps = schedule.steps.iter().chain(&schedule.logit_steps);
        for (one, step) in of(false).chain(of(true)).zip(steps) {
            all[step.kernel as usize] = description(one);
        }
    }
    all
}

/// The work of a kernel, without the name of the step that it is shown for.
fn description(one: &KernelUse) -> String {
    let text = one.to_string();
    match text.strip_prefix(&one.label).and_then(|rest| rest.strip_prefix(": ")) {
        Some(rest) => rest.to_owned(),
        None => text,
    }
}
