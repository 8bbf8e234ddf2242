//! The built-in fused-op specs as a list.

use kernmill_compiler::passes::fuse::{FusedSet, RuleOrder};

/// The built-in specs in the order in which they are tried, one a line: priority, name, kind of kernel, and
/// what it fuses.
pub fn builtin() -> String {
    let set = FusedSet::builtin();
    let lines = set.specs().map(|spec| {
        let priority = match spec.place {
            Some(RuleOrder::Priority(priority)) => priority.to_string(),
            _ => String::new(),
        };
        let kernel = spec.rule.as_ref().map_or("", |rule| rule.template.name());
        format!("{priority:>4}  {:<16} {kernel:<12} {}\n", spec.name.value, spec.doc)
    });
    lines.collect()
}
