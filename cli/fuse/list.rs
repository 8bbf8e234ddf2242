//! `kernmill fuse list`: the built-in rules, in the order in which they are tried.

use crate::failure::Result;
use crate::output;
use kernmill_compiler::fuse::{FusedSet, Place};

/// Prints every built-in spec: priority, name, kind of kernel, doc line.
pub fn execute() -> Result<()> {
    let set = FusedSet::builtin();
    let lines = set.specs().map(|spec| {
        let priority = match spec.place {
            Some(Place::Priority(priority)) => priority.to_string(),
            _ => String::new(),
        };
        let kernel = spec.rule.as_ref().map_or("", |rule| rule.template.name());
        format!("{priority:>4}  {:<16} {kernel:<12} {}\n", spec.name.value, spec.doc)
    });
    output::show(lines.collect::<String>())
}
