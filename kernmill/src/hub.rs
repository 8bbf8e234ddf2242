//! Models by their names on Hugging Face's hub: where its tools keep what they fetched, and how a model is
//! fetched. Nothing is downloaded here.

use crate::error::{Error, Result};
use kernmill_os::files::read_regular_text;
use std::env;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

/// Bytes of a file that names a revision.
const REVISION_BYTES: u64 = 1024;

/// The branch that tools fetch unless they are told another.
const BRANCH: &str = "refs/main";

/// What is fetched most, as an example.
const EXAMPLE: &str = "openai/gpt-oss-20b";

/// Owner and name of a model, if `text` is a name on a hub: `owner/name`.
pub fn parts(text: &str) -> Option<(&str, &str)> {
    let is_name = |part: &&str| {
        let letters = part.chars().all(|c| c.is_ascii_alphanumeric() || "-_.".contains(c));
        letters && part.starts_with(|c: char| c.is_ascii_alphanumeric())
    };
    let (owner, name) = text.split_once('/')?;
    [owner, name].iter().all(is_name).then_some((owner, name))
}

/// The model at `path`. If there is nothing at it, `path` is a name on a hub and `looks` is true, the model
/// is looked for in the user's cache.
///
/// # Errors
/// When the model is looked for and is not in the cache.
pub fn resolve(path: &Path, looks: bool) -> Result<PathBuf> {
    match path.to_str().and_then(parts).filter(|_| looks && path.symlink_metadata().is_err()) {
        Some((owner, name)) => Cache::of_user()?.find(owner, name),
        None => Ok(path.to_owned()),
    }
}

/// A cache of Hugging Face's tools: `models--OWNER--NAME/snapshots/REVISION` has the files of a model, as
/// links.
#[derive(Clone, Debug)]
pub struct Cache {
    dir: PathBuf,
}

impl Cache {
    /// The cache in the directory `dir`.
    pub fn at(dir: PathBuf) -> Cache {
        Cache { dir }
    }

    /// The cache that the tools of this user have: `HF_HUB_CACHE`, `hub` in `HF_HOME`, or
    /// `~/.cache/huggingface/hub`.
    ///
    /// # Errors
    /// When neither a variable nor the home directory says where it is.
    pub fn of_user() -> Result<Cache> {
        let dir = place(&|name| env::var_os(name).filter(|value| !value.is_empty()));
        let missing = "--hf-cache: neither HF_HUB_CACHE, HF_HOME nor HOME says where the cache is";
        dir.map(Cache::at).ok_or_else(|| Error::BadInput(missing.to_owned()))
    }

    /// The files of a model: the directory of its revision `main`, or of the only one that there is. If a
    /// GGUF file is all that is in it, that file.
    ///
    /// # Errors
    /// When the model is not there, or has several revisions and none is `main`.
    pub fn find(&self, owner: &str, name: &str) -> Result<PathBuf> {
        let full = format!("{owner}/{name}");
        let repository = self.dir.join(format!("models--{owner}--{name}"));
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
                "it is not in the cache of Hugging Face's tools, {}: kernmill downloads nothing; \
                 `hf download {full}` puts it there",
                repository.display()
            );
            Error::input(Path::new(&full), what)
        })?;
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

/// Whether `dir` is a direct member of `parent`: a revision is a plain name.
fn is_in(dir: &Path, parent: &Path) -> bool {
    dir.parent() == Some(parent) && dir.file_name().is_some()
}

/// What is in a directory, by name; nothing if it cannot be read.
fn entries(dir: &Path) -> Vec<PathBuf> {
    let found = std::fs::read_dir(dir).into_iter().flatten().flatten();
    let mut found: Vec<PathBuf> = found.map(|entry| entry.path()).collect();
    found.sort();
    found
}

/// The directory of the cache by the variables that Hugging Face's tools read.
fn place(variable: &dyn Fn(&str) -> Option<OsString>) -> Option<PathBuf> {
    let home = variable("HOME").map(PathBuf::from);
    let given = |name: &str| {
        let path = PathBuf::from(variable(name)?);
        match (path.strip_prefix("~"), &home) {
            (Ok(rest), Some(home)) => Some(home.join(rest)),
            _ => Some(path),
        }
    };
    let in_home = |home: PathBuf| home.join("hub");
    given("HF_HUB_CACHE")
        .or_else(|| given("HUGGINGFACE_HUB_CACHE"))
        .or_else(|| given("HF_HOME").map(in_home))
        .or_else(|| given("XDG_CACHE_HOME").map(|cache| in_home(cache.join("huggingface"))))
        .or_else(|| home.map(|home| in_home(home.join(".cache/huggingface"))))
}

/// Name of the model whose snapshot in a cache the directory `dir` is, if it is one.
pub fn of_snapshot(dir: &Path) -> Option<String> {
    let snapshots = dir.parent().filter(|dir| dir.ends_with("snapshots"))?;
    let repository = snapshots.parent()?.file_name()?.to_str()?;
    let (_, name) = repository.strip_prefix("models--")?.split_once("--")?;
    Some(name.to_owned())
}

/// What is said to a command line that has a command of other programs, `pull`: the commands that do the job.
/// `None` for any other. `args` are the words behind the program's name.
pub fn instead_of(args: impl Iterator<Item = OsString>) -> Option<String> {
    let words = args.map(|word| word.to_string_lossy().into_owned());
    let mut words = words.filter(|word| !word.starts_with('-'));
    (words.next()? == "pull").then(|| instead_of_pull(&words.next().unwrap_or_default()))
}

fn instead_of_pull(name: &str) -> String {
    let plain = name.trim_start_matches("https://");
    let plain = ["hf.co/", "huggingface.co/"].iter().find_map(|hub| plain.strip_prefix(hub)).unwrap_or(plain);
    let (plain, tag) = plain.split_once(':').unwrap_or((plain, ""));
    // Ollama has a name of its own for these.
    let is_gpt_oss = matches!((plain, tag), ("gpt-oss" | "gpt-oss-20b", "" | "20b" | "latest"));
    let Some((owner, name)) = parts(if is_gpt_oss { EXAMPLE } else { plain }) else {
        return format!(
            "pull: kernmill downloads nothing; `hf download ORG/NAME --local-dir NAME` fetches a model by its name on \
             a hub, such as {EXAMPLE}, and `kernmill chat NAME` runs it then"
        );
    };
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
    let is_gguf = name.to_ascii_lowercase().ends_with("gguf");
    let (files, run) = match tag {
        _ if !is_gguf => (String::new(), name.to_owned()),
        tag if tag.is_empty() || tag == "latest" || !tag.chars().all(is_plain) => {
            (" --include '*.gguf'".to_owned(), format!("{name}/FILE.gguf"))
        }
        tag => (format!(" --include '*{tag}*.gguf'"), format!("{name}/FILE.gguf")),
    };
    format!(
        "pull: kernmill downloads nothing; `hf download {owner}/{name}{files} --local-dir {name}` fetches the model, \
         and `kernmill chat {run}` runs it then"
    )
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

    const FILES: [&str; 2] = ["config.json", "model.safetensors"];

    #[test]
    fn the_revision_main_is_found_or_the_only_one() {
        let (dir, two) = cache(&["aa11", "bb22"], Some("bb22\n"), &FILES);
        let found = two.find("acme", "tiny").unwrap();
        assert_eq!(found, dir.path().join("models--acme--tiny/snapshots/bb22"));
        assert_eq!(fs::read_to_string(found.join("config.json")).unwrap(), "config.json");
        assert_eq!(of_snapshot(&found).as_deref(), Some("tiny"));
        let (_dir, one) = cache(&["aa11"], None, &FILES);
        assert!(one.find("acme", "tiny").unwrap().ends_with("aa11"));
        let (_dir, several) = cache(&["aa11", "bb22"], None, &FILES);
        let error = several.find("acme", "tiny").unwrap_err().to_string();
        assert!(error.starts_with("acme/tiny: ") && error.contains("snapshots/aa11"), "{error}");
    }

    #[test]
    fn a_gguf_file_is_found_where_it_is_alone() {
        let (_dir, one) = cache(&["aa11"], Some("aa11"), &["README.md", "tiny-Q8_0.gguf"]);
        assert!(one.find("acme", "tiny").unwrap().ends_with("aa11/tiny-Q8_0.gguf"));
        for files in [&["config.json", "tiny.gguf"][..], &["a.gguf", "bc.gguf"]] {
            let (_dir, other) = cache(&["aa11"], Some("aa11"), files);
            assert!(other.find("acme", "tiny").unwrap().ends_with("aa11"), "{files:?}");
        }
    }

    #[test]
    fn what_is_not_there_says_where_it_was_looked_for_and_how_it_comes_there() {
        for (revisions, main) in
            [(&[][..], None), (&["aa11"], Some("bb22")), (&["aa11"], Some("../../..")), (&["aa11"], Some(""))]
        {
            let (dir, cache) = cache(revisions, main, &FILES);
            let error = cache.find("acme", "tiny").unwrap_err().to_string();
            let place = dir.path().join("models--acme--tiny").display().to_string();
            for part in ["acme/tiny: ", &place, "`hf download acme/tiny`"] {
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

    #[test]
    fn pull_says_which_commands_do_the_job() {
        let of = |words: &str| instead_of(words.split_whitespace().map(OsString::from));
        for (words, parts) in [
            (
                "pull openai/gpt-oss-20b",
                &["`hf download openai/gpt-oss-20b --local-dir gpt-oss-20b`", "`kernmill chat gpt-oss-20b`"]
                    [..],
            ),
            ("-v pull gpt-oss:20b", &["`hf download openai/gpt-oss-20b --local-dir gpt-oss-20b`"]),
            (
                "pull hf.co/acme/tiny-GGUF:Q4_K_M",
                &[
                    "acme/tiny-GGUF --include '*Q4_K_M*.gguf' --local-dir tiny-GGUF`",
                    "chat tiny-GGUF/FILE.gguf`",
                ],
            ),
            ("pull acme/tiny-gguf", &["--include '*.gguf'"]),
            ("pull acme/tiny-gguf:';x'", &["--include '*.gguf'"]),
            ("pull llama3.2", &["`hf download ORG/NAME --local-dir NAME`"]),
            ("pull", &["`hf download ORG/NAME --local-dir NAME`"]),
        ] {
            let says = of(words).unwrap();
            assert!(says.starts_with("pull: kernmill downloads nothing; ") && !says.contains('\n'), "{says}");
            parts.iter().for_each(|part| assert!(says.contains(part), "{words}: {says}"));
        }
        for words in ["", "run pull", "help pull", "pulled x"] {
            assert_eq!(of(words), None, "{words}");
        }
    }
}
