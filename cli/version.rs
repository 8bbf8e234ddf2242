//! Which kernmill this is: the same facts stand in `--version`, in plans, and in everything that is printed
//! as JSON.

#[cfg(feature = "compiler")]
use crate::{failure::Result, output};
use serde_json::{Value, json};

/// Version of the package.
pub const VERSION: &str = env!("CARGO_PKG_VERSION");
/// Commit that it was built from; `unknown` for a development build, or outside of a repository.
pub const COMMIT: &str = env!("BUILD_COMMIT");
/// Optional parts that it has, with `, ` between them.
pub const FEATURES: &str = env!("BUILD_FEATURES");

/// The name of the program that plans note.
#[cfg(feature = "compiler")]
pub const PRODUCER: &str =
    concat!("kernmill ", env!("CARGO_PKG_VERSION"), ", commit ", env!("BUILD_COMMIT"), ", features compiler");

/// On one line, for `-V`.
pub fn short() -> String {
    match COMMIT.get(..12) {
        Some(commit) => format!("{VERSION} ({commit})"),
        None => VERSION.to_owned(),
    }
}

/// All of it, for `--version`.
pub fn long() -> String {
    let features = if FEATURES.is_empty() { "none" } else { FEATURES };
    format!("{VERSION}\ncommit: {COMMIT}\nfeatures: {features}\ntarget: {}", env!("BUILD_TARGET"))
}

/// A report as JSON text: an object that says first what it is and which kernmill made it. `schema` is a name
/// and the number that grows when a field changes its meaning or goes, such as `kernmill.run/1`; new fields
/// may come without it.
pub fn report(schema: &str, report: Value) -> String {
    let parts: Vec<_> = FEATURES.split(", ").filter(|part| !part.is_empty()).collect();
    let mut all = json!({ "schema": schema, "version": VERSION, "commit": COMMIT, "built_with": parts });
    if let (Some(all), Value::Object(fields)) = (all.as_object_mut(), report) {
        all.extend(fields);
    }
    format!("{all:#}\n")
}

/// Prints a report, as JSON or as a text for people.
#[cfg(feature = "compiler")]
pub fn show(json: bool, schema: &str, value: impl Fn() -> Value, text: impl Fn() -> String) -> Result<()> {
    if json { output::print(report(schema, value())) } else { output::show(text()) }
}
