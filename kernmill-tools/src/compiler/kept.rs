//! Which models the program keeps as plans, and where.

use kernmill::CompileOptions;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

/// Weights that a model has at least if its plan is kept unasked: two cores take seconds to pack so many
/// (`benches/runs/2026-11-29-new-users.md`).
const LEAST: u64 = 1_000_000_000;
/// Most bytes that plans which were kept unasked take together.
const LIMIT: u64 = 50_000_000_000;

/// Says in `options` where plans are kept: every model in `dir`, or without it large ones in the user's
/// cache, unless that `is_off`. All of them take at most `limit`.
pub fn keep_plans(options: &mut CompileOptions, dir: Option<&Path>, is_off: bool, limit: Option<u64>) {
    let of_user = || of_user(&|name| std::env::var_os(name)).filter(|_| !is_off);
    options.plan_cache = dir.map(Path::to_owned).or_else(of_user);
    options.plan_cache_least = dir.is_none().then_some(LEAST);
    options.plan_cache_limit = limit.unwrap_or(if dir.is_some() { u64::MAX } else { LIMIT });
}

/// Leaves in `options` what is about the machine: a model beside another one has the usual preset, and no
/// branches for adapters.
pub fn compile_as_usual(options: &mut CompileOptions) {
    let usual = CompileOptions::default();
    (options.preset, options.kv, options.adapters) = (usual.preset, usual.kv, false);
}

/// The user's cache of plans, if a variable says where it is; a relative path says nothing.
fn of_user(variable: &dyn Fn(&str) -> Option<OsString>) -> Option<PathBuf> {
    let absolute = |name| variable(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let caches = absolute("XDG_CACHE_HOME").or_else(|| absolute("HOME").map(|home| home.join(".cache")));
    caches.map(|caches| caches.join("kernmill/plans"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_users_cache_is_where_variables_say() {
        let of = |cache: Option<&str>, home: Option<&str>| {
            of_user(&|name| if name == "HOME" { home } else { cache }.map(OsString::from))
        };
        let at = |path: &str| Some(PathBuf::from(path));
        assert_eq!(of(None, Some("/home/a")), at("/home/a/.cache/kernmill/plans"));
        assert_eq!(of(Some("/var/cache"), Some("/home/a")), at("/var/cache/kernmill/plans"));
        assert_eq!(of(Some("cache"), Some("/home/a")), at("/home/a/.cache/kernmill/plans"));
        assert_eq!((of(Some(""), Some("")), of(None, None)), (None, None));
    }

    #[test]
    fn large_models_are_kept_unless_that_is_off() {
        let kept = |dir: Option<&str>, is_off| {
            let mut options = CompileOptions::default();
            keep_plans(&mut options, dir.map(Path::new), is_off, None);
            (options.plan_cache, options.plan_cache_least, options.plan_cache_limit)
        };
        assert_eq!(kept(None, true).0, None);
        assert_eq!(kept(None, false).1, Some(LEAST));
        assert_eq!(kept(Some("plans"), false), (Some(PathBuf::from("plans")), None, u64::MAX));
    }
}
