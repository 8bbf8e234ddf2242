//! Models by their names on Hugging Face's hub: where its tools keep what they fetched, and how a model is
//! fetched. Nothing is downloaded here.

use crate::error::{Error, Result};
pub(crate) use crate::hub_name::HubName;
use crate::hub_name::is_gguf_of;
use kernmill_os::files::read_regular_text;
use std::env;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

/// Bytes of a file that names a revision.
const REVISION_BYTES: u64 = 1024;

/// The branch that tools fetch unless they are told another.
const BRANCH: &str = "refs/main";

/// The name on a hub that `path` is, with its owner, if there is nothing at it.
pub(crate) fn named(path: &Path) -> Option<HubName> {
    let name = path.to_str().and_then(HubName::of).filter(|name| name.owner.is_some());
    name.filter(|_| path.symlink_metadata().is_err())
}

/// Advice where nothing lies at `path`, as a sentence; `None` if it names no model.
pub(crate) fn instead_of_path(path: &Path) -> Option<String> {
    let name = path.to_str().and_then(HubName::of)?;
    // The beginning of a path that is there says that it is one.
    let is_path = |owner: &String| !name.is_certain && Path::new(owner).exists();
    (!name.owner.as_ref().is_some_and(is_path))
        .then(|| format!("If it is the name of a model on a hub: {}", name.how_to_fetch()))
}

/// How a model comes here whose name on a hub is `text`, as the end of a sentence; `None` if that is no name.
pub fn how_to_fetch(text: &str) -> Option<String> {
    HubName::of(text).map(|name| name.how_to_fetch())
}

/// How a model comes into the cache, as the end of a sentence.
fn how_to_cache(name: &HubName) -> String {
    match cfg!(feature = "pull") {
        true => name.how_to_fetch(),
        false => format!("kernmill downloads nothing; `hf download {}` puts it there", name.repository()),
    }
}

/// The model at `path`. If there is nothing at it, `path` is a name on a hub and `looks` is true, the model
/// is looked for in the user's cache.
///
/// # Errors
/// When the model is looked for and is not in the cache.
pub fn resolve(path: &Path, looks: bool) -> Result<PathBuf> {
    match named(path).filter(|_| looks) {
        Some(name) => Cache::of_user()?.find(&name),
        None => Ok(path.to_owned()),
    }
}

/// A cache of Hugging Face's tools: `models--OWNER--NAME/snapshots/REVISION` has the files of a model, as
/// links.
#[derive(Clone, Debug)]
pub(crate) struct Cache {
    dir: PathBuf,
}

impl Cache {
    /// The cache in the directory `dir`.
    pub(crate) fn at(dir: PathBuf) -> Cache {
        Cache { dir }
    }

    /// The cache that the tools of this user have: `HF_HUB_CACHE`, `hub` in `HF_HOME`, or
    /// `~/.cache/huggingface/hub`.
    ///
    /// # Errors
    /// When neither a variable nor the home directory says where it is.
    pub(crate) fn of_user() -> Result<Cache> {
        let dir = place(&of_environment);
        let missing = "--hf-cache: neither HF_HUB_CACHE, HF_HOME nor HOME says where the cache is";
        dir.map(Cache::at).ok_or_else(|| Error::bad_input(missing.to_owned()))
    }

    /// Where the files of a model are, and the notes about them.
    pub(crate) fn repository(&self, name: &HubName) -> PathBuf {
        self.dir.join(folder(name))
    }

    /// Where tools that fetch one of a model's files keep others from it.
    #[cfg(feature = "pull")]
    pub(crate) fn locks(&self, name: &HubName) -> PathBuf {
        self.dir.join(".locks").join(folder(name))
    }

    /// The files of a model: the directory of its revision `main`, or of the only one that there is. If the
    /// name has a GGUF file or its type, that file; or if a GGUF file is all that is there.
    ///
    /// # Errors
    /// When the model or the file is not there, or it has several revisions and none is `main`.
    pub(crate) fn find(&self, name: &HubName) -> Result<PathBuf> {
        let full = name.to_string();
        let repository = self.repository(name);
        let snapshots = repository.join("snapshots");
        let snapshot = match read_regular_text(&repository.join(BRANCH), REVISION_BYTES) {
            Ok(revision) => Some(snapshots.join(revision.trim())).filter(|dir| is_in(dir, &snapshots)),
            Err(_) => match &entries(&snapshots)[..] {
                [] => None,
                [one] => Some(one.clone()),
                [first, ..] => {
                    let what = format!(
                        "the cache has several revisions and no {BRANCH}: give the directory of one, such as {}",
                        first.display()
                    );
                    return Err(Error::input(Path::new(&full), what));
                }
            },
        };
        let snapshot = snapshot.filter(|dir| dir.is_dir()).ok_or_else(|| {
            let what = format!(
                "it is not in the cache of Hugging Face's tools, {}: {}",
                repository.display(),
                how_to_cache(name)
            );
            Error::input(Path::new(&full), what)
        })?;
        if let Some(file) = &name.file {
            let below = entries(&snapshot).into_iter().flat_map(|entry| match entry.is_dir() {
                true => entries(&entry),
                false => vec![entry],
            });
            let of = |path: &PathBuf| {
                let inner = path.strip_prefix(&snapshot).ok().and_then(Path::to_str);
                inner.is_some_and(|inner| is_gguf_of(inner, file))
            };
            return below.into_iter().find(of).ok_or_else(|| {
                let what = format!("no `{file}` is in {}: {}", snapshot.display(), how_to_cache(name));
                Error::input(Path::new(&full), what)
            });
        }
        let files = entries(&snapshot);
        let is_gguf = |file: &&PathBuf| file.extension().is_some_and(|end| end == "gguf");
        let describes = |file: &PathBuf| file.ends_with("config.json") || file.ends_with("kernmill.toml");
        let mut gguf = files.iter().filter(is_gguf);
        match (gguf.next(), gguf.next()) {
            (Some(file), None) if !files.iter().any(describes) => Ok(file.clone()),
            _ => Ok(snapshot),
        }
    }
}

/// The directory of a model in a cache.
fn folder(name: &HubName) -> String {
    format!("models--{}", name.repository().replace('/', "--"))
}

/// Where Hugging Face's tools keep things, if a variable or the home directory says it.
#[cfg(feature = "pull")]
pub(crate) fn home_of_user() -> Option<PathBuf> {
    home(&of_environment)
}

fn of_environment(name: &str) -> Option<OsString> {
    env::var_os(name).filter(|value| !value.is_empty())
}

/// Whether `dir` is a direct member of `parent`: a revision is a plain name.
fn is_in(dir: &Path, parent: &Path) -> bool {
    dir.parent() == Some(parent) && dir.file_name().is_some()
}

/// The entries of a directory, by name; empty if it cannot be read.
fn entries(dir: &Path) -> Vec<PathBuf> {
    let found = std::fs::read_dir(dir).into_iter().flatten().flatten();
    let mut found: Vec<PathBuf> = found.map(|entry| entry.path()).collect();
    found.sort();
    found
}

/// The directory of the cache by the variables that Hugging Face's tools read.
fn place(variable: &dyn Fn(&str) -> Option<OsString>) -> Option<PathBuf> {
    given(variable, "HF_HUB_CACHE")
        .or_else(|| given(variable, "HUGGINGFACE_HUB_CACHE"))
        .or_else(|| home(variable).map(|home| home.join("hub")))
}

/// The directory of everything that Hugging Face's tools keep.
fn home(variable: &dyn Fn(&str) -> Option<OsString>) -> Option<PathBuf> {
    given(variable, "HF_HOME")
        .or_else(|| given(variable, "XDG_CACHE_HOME").map(|cache| cache.join("huggingface")))
        .or_else(|| variable("HOME").map(|home| PathBuf::from(home).join(".cache/huggingface")))
}

/// The directory that a variable names; `~` is the home directory.
fn given(variable: &dyn Fn(&str) -> Option<OsString>, name: &str) -> Option<PathBuf> {
    let path = PathBuf::from(variable(name)?);
    match (path.strip_prefix("~"), variable("HOME")) {
        (Ok(rest), Some(home)) => Some(PathBuf::from(home).join(rest)),
        _ => Some(path),
    }
}

/// Name of the model whose snapshot in a cache the directory `dir` is, if it is one.
#[cfg_attr(not(feature = "compiler"), expect(dead_code, reason = "checkpoints alone are named so"))]
pub(crate) fn of_snapshot(dir: &Path) -> Option<String> {
    let snapshots = dir.parent().filter(|dir| dir.ends_with("snapshots"))?;
    let repository = snapshots.parent()?.file_name()?.to_str()?;
    let (_, name) = repository.strip_prefix("models--")?.split_once("--")?;
    Some(name.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::os::unix::fs::symlink;
    use tempfile::TempDir;

    /// A cache with revisions of `acme/tiny`, each with these files, which are links to blobs.
    fn cache(revisions: &[&str], main: Option<&str>, files: &[&str]) -> (TempDir, Cache) {
        let dir = tempfile::tempdir().unwrap();
        let repository = dir.path().join("models--acme--tiny");
        fs::create_dir_all(repository.join("blobs")).unwrap();
        for revision in revisions {
            let snapshot = repository.join("snapshots").join(revision);
            fs::create_dir_all(&snapshot).unwrap();
            for file in files {
                let blob = format!("{revision}-{}", file.len());
                fs::write(repository.join("blobs").join(&blob), file).unwrap();
                symlink(format!("../../blobs/{blob}"), snapshot.join(file)).unwrap();
            }
        }
        if let Some(main) = main {
            fs::create_dir(repository.join("refs")).unwrap();
            fs::write(repository.join(BRANCH), main).unwrap();
        }
        let cache = Cache::at(dir.path().to_owned());
        (dir, cache)
    }

    fn tiny(name: &str) -> HubName {
        HubName::of(name).unwrap()
    }

    const FILES: [&str; 2] = ["config.json", "model.safetensors"];

    #[test]
    fn the_revision_main_is_found_or_the_only_one() {
        let (dir, two) = cache(&["aa11", "bb22"], Some("bb22\n"), &FILES);
        let found = two.find(&tiny("acme/tiny")).unwrap();
        assert_eq!(found, dir.path().join("models--acme--tiny/snapshots/bb22"));
        assert_eq!(fs::read_to_string(found.join("config.json")).unwrap(), "config.json");
        assert_eq!(of_snapshot(&found).as_deref(), Some("tiny"));
        let (_dir, one) = cache(&["aa11"], None, &FILES);
        assert!(one.find(&tiny("acme/tiny")).unwrap().ends_with("aa11"));
        let (_dir, several) = cache(&["aa11", "bb22"], None, &FILES);
        let error = several.find(&tiny("acme/tiny")).unwrap_err().to_string();
        assert!(error.starts_with("acme/tiny: ") && error.contains("snapshots/aa11"), "{error}");
    }

    #[test]
    fn a_gguf_file_is_found_where_it_is_alone() {
        let (_dir, one) = cache(&["aa11"], Some("aa11"), &["README.md", "tiny-Q8_0.gguf"]);
        assert!(one.find(&tiny("acme/tiny")).unwrap().ends_with("aa11/tiny-Q8_0.gguf"));
        for files in [&["config.json", "tiny.gguf"][..], &["a.gguf", "bc.gguf"]] {
            let (_dir, other) = cache(&["aa11"], Some("aa11"), files);
            assert!(other.find(&tiny("acme/tiny")).unwrap().ends_with("aa11"), "{files:?}");
        }
        let (_dir, several) = cache(&["aa11"], Some("aa11"), &["tiny-Q4_0.gguf", "tiny.Q8_0.gguf"]);
        for (name, file) in
            [("acme/tiny:q8_0", "tiny.Q8_0.gguf"), ("acme/tiny:tiny-Q4_0.gguf", "tiny-Q4_0.gguf")]
        {
            assert!(several.find(&tiny(name)).unwrap().ends_with(file), "{name}");
        }
        let error = several.find(&tiny("acme/tiny:Q5_K")).unwrap_err().to_string();
        assert!(error.starts_with("acme/tiny:Q5_K: no `Q5_K` is in "), "{error}");
    }

    #[test]
    fn what_is_not_there_says_where_it_was_looked_for_and_how_it_comes_there() {
        for (revisions, main) in
            [(&[][..], None), (&["aa11"], Some("bb22")), (&["aa11"], Some("../../..")), (&["aa11"], Some(""))]
        {
            let (dir, cache) = cache(revisions, main, &FILES);
            let error = cache.find(&tiny("acme/tiny")).unwrap_err().to_string();
            let place = dir.path().join("models--acme--tiny").display().to_string();
            for part in ["acme/tiny: ", &place, &how_to_cache(&tiny("acme/tiny"))] {
                assert!(error.contains(part), "{main:?}: {error}");
            }
            assert!(!error.contains('\n'));
        }
    }

    #[test]
    fn a_path_goes_before_a_name() {
        let (dir, _cache) = cache(&["aa11"], None, &FILES);
        for path in [dir.path(), Path::new("nowhere.plan"), Path::new("a/b/c"), Path::new("./a/b")] {
            assert_eq!(resolve(path, true).unwrap(), path);
        }
        assert_eq!(resolve(Path::new("acme/tiny"), false).unwrap(), Path::new("acme/tiny"));
    }

    #[test]
    fn the_cache_is_where_the_tools_have_it() {
        let of = |variables: &[(&str, &str)]| {
            let value = |name: &str| {
                variables.iter().find(|(own, _)| *own == name).map(|(_, value)| OsString::from(*value))
            };
            place(&value).map(|place| place.display().to_string())
        };
        let home = ("HOME", "/home/ann");
        assert_eq!(of(&[home]).as_deref(), Some("/home/ann/.cache/huggingface/hub"));
        assert_eq!(of(&[home, ("XDG_CACHE_HOME", "/c")]).as_deref(), Some("/c/huggingface/hub"));
        assert_eq!(
            of(&[home, ("HF_HOME", "~/hf"), ("XDG_CACHE_HOME", "/c")]).as_deref(),
            Some("/home/ann/hf/hub")
        );
        assert_eq!(of(&[("HF_HOME", "/hf"), ("HF_HUB_CACHE", "/models")]).as_deref(), Some("/models"));
        assert_eq!(of(&[home, ("HUGGINGFACE_HUB_CACHE", "/old")]).as_deref(), Some("/old"));
        assert_eq!(of(&[]), None);
    }
}
