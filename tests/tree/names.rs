//! A type's name finds one type: few names are declared more than once in the workspace.

use super::{Sources, modules, sources};
use std::collections::BTreeMap;

/// Names at most that several types share. The rest are names that every crate has, such as `Result`.
const SHARED: usize = 20;

/// Kinds of types, as they are declared.
const KINDS: [&str; 5] = ["enum", "struct", "trait", "type", "union"];

/// The name of the type that a line at the left margin declares. An alias for a type of the same name, whose
/// parameters it fills in, is not counted as another type.
fn declared(line: &str) -> Option<&str> {
    let line = match line.strip_prefix("pub") {
        Some(rest) if rest.starts_with('(') => rest.split_once(") ")?.1,
        Some(rest) => rest.trim_start(),
        None => line,
    };
    let (kind, rest) = line.strip_prefix("unsafe ").unwrap_or(line).split_once(' ')?;
    let name = rest.split(|c: char| !c.is_alphanumeric() && c != '_').next()?;
    let names_itself = kind == "type" && rest.contains(&format!("::{name}<"));
    (KINDS.contains(&kind) && name.starts_with(char::is_uppercase) && !names_itself).then_some(name)
}

/// Where each name is declared. Tests are left out, and so is what stands in for a module that another build
/// has: both forms are one item to their users.
fn places() -> BTreeMap<String, Vec<String>> {
    let mut places: BTreeMap<String, Vec<String>> = BTreeMap::new();
    let outside = ["the tests", "the Python module"];
    for Sources { name, dir } in sources().into_iter().filter(|one| !outside.contains(&one.name.as_str())) {
        let modules = modules(&dir);
        let is_left_out = |path: &[String]| path.last().is_some_and(|last| last == "without");
        for (path, text) in modules.iter().filter(|(path, _)| !is_left_out(path)) {
            let production = text.split("#[cfg(test)]\nmod tests {").next().unwrap_or("");
            for declared in production.lines().filter_map(declared) {
                places.entry(declared.to_owned()).or_default().push(format!("{name}::{}", path.join("::")));
            }
        }
    }
    places
}

#[test]
fn few_names_are_shared_by_several_types() {
    let places = places();
    let shared: Vec<String> = places
        .iter()
        .filter(|(_, places)| places.len() > 1)
        .map(|(name, places)| format!("{name}: {}", places.join(", ")))
        .collect();
    println!("{} of {} names of types are shared:\n{}", shared.len(), places.len(), shared.join("\n"));
    assert!(places.len() > 1000, "{} names are seen", places.len());
    assert!(
        shared.len() <= SHARED,
        "{} names are shared by several types, at most {SHARED} may be; say what each is, such as `MatrixPart` for \
         a `Part`:\n{}",
        shared.len(),
        shared.join("\n")
    );
}

#[test]
fn declarations_are_seen() {
    let seen = [
        "struct Own;",
        "pub struct Open<'a> {",
        "pub(in crate::kv) enum Inner {",
        "pub unsafe trait Trusted {}",
        "type Result<T> = std::result::Result<T, Error>;",
    ];
    let others = [
        "pub(crate) type Scope = scope::Scope<Value>;",
        "    type Item = u8;",
        "pub fn make() -> Own {",
        "use super::Own;",
        "const WIDE: usize = 1;",
    ];
    let names: Vec<&str> = seen.into_iter().filter_map(declared).collect();
    assert_eq!(names, ["Own", "Open", "Inner", "Trusted"]);
    assert!(others.into_iter().all(|line| declared(line).is_none()), "{others:?}");
}
