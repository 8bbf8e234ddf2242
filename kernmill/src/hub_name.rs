//! Names of models on a hub, as people write them: `ORG/NAME`, and behind a colon which of its GGUF files.

use std::fmt;

/// What is fetched most, as an example.
pub(crate) const EXAMPLE: (&str, &str) = ("openai", "gpt-oss-20b");
/// What a hub's address may have in front of the name.
const PREFIXES: [&str; 3] = ["hf.co/", "huggingface.co/", "hf://"];

/// A model's name on a hub.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HubName {
    /// Whose it is.
    pub owner: String,
    /// The model.
    pub name: String,
    /// A file of it, or the type that a GGUF file has behind its name, such as `Q4_K_M`.
    pub file: Option<String>,
}

impl HubName {
    /// Reads `ORG/NAME`, perhaps with `:TYPE` or `:FILE` behind it and the hub's address before it.
    ///
    /// ```
    /// use kernmill::hub::HubName;
    /// let name = HubName::parse("https://huggingface.co/acme/tiny-GGUF:Q4_K_M").unwrap();
    /// assert_eq!(name.repository(), "acme/tiny-GGUF");
    /// assert_eq!(name.file.as_deref(), Some("Q4_K_M"));
    /// assert_eq!(HubName::parse("acme/../tiny"), None);
    /// ```
    pub fn parse(text: &str) -> Option<HubName> {
        let plain = text.strip_prefix("https://").unwrap_or(text);
        let plain = PREFIXES.iter().find_map(|prefix| plain.strip_prefix(prefix)).unwrap_or(plain);
        let (repository, file) = match plain.split_once(':') {
            Some((repository, file)) => (repository, Some(file)),
            None => (plain, None),
        };
        let (owner, name) = repository.split_once('/')?;
        let is_of_file = |c: char| c.is_ascii_alphanumeric() || "-_.+/".contains(c);
        let is_name = |part: &str| {
            let letters = part.chars().all(|c| c.is_ascii_alphanumeric() || "-_.".contains(c));
            letters
                && part.starts_with(|c: char| c.is_ascii_alphanumeric())
                && !part.contains("..")
                && !part.contains("--")
        };
        let is_right = is_name(owner)
            && is_name(name)
            && file.is_none_or(|file| is_plain_path(file) && file.chars().all(is_of_file));
        let file = file.map(str::to_owned);
        is_right.then(|| HubName { owner: owner.to_owned(), name: name.to_owned(), file })
    }

    /// The name that Ollama has for a model of a hub, such as `gpt-oss:20b`.
    pub(crate) fn of_ollama(text: &str) -> Option<HubName> {
        let (plain, tag) = text.split_once(':').unwrap_or((text, ""));
        let is_gpt_oss = matches!((plain, tag), ("gpt-oss" | "gpt-oss-20b", "" | "20b" | "latest"));
        let (owner, name) = EXAMPLE;
        is_gpt_oss.then(|| HubName { owner: owner.to_owned(), name: name.to_owned(), file: None })
    }

    /// Owner and name, without a file.
    pub fn repository(&self) -> String {
        format!("{}/{}", self.owner, self.name)
    }
}

impl fmt::Display for HubName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.owner, self.name)?;
        self.file.as_ref().map_or(Ok(()), |file| write!(f, ":{file}"))
    }
}

/// Whether a path leads nowhere but down, and can be shown.
pub(crate) fn is_plain_path(path: &str) -> bool {
    !path.contains('\\')
        && !path.chars().any(char::is_control)
        && path.split('/').all(|part| !matches!(part, "" | "." | ".."))
}

/// The path of a GGUF file without its end and without the number of a part.
pub(crate) fn gguf_stem(path: &str) -> Option<&str> {
    let at = path.len().checked_sub(5)?;
    let stem = path.get(..at).filter(|_| path[at..].eq_ignore_ascii_case(".gguf"))?;
    // -00001-of-00002
    let is_part = |tail: &str| {
        let digits = |text: &str| text.len() == 5 && text.bytes().all(|byte| byte.is_ascii_digit());
        tail.strip_prefix('-')
            .and_then(|tail| tail.split_once("-of-"))
            .is_some_and(|(part, of)| digits(part) && digits(of))
    };
    match stem.len().checked_sub(15).filter(|at| stem.is_char_boundary(*at)) {
        Some(at) if is_part(&stem[at..]) => Some(&stem[..at]),
        _ => Some(stem),
    }
}

/// The type that a GGUF file's name ends with, such as `Q4_K_M`: what stands behind the last `-` or `.`.
/// `None` of files that are no model by themselves, and no GGUF files.
pub(crate) fn gguf_type(path: &str) -> Option<&str> {
    let stem = gguf_stem(path)?;
    let file = stem.rsplit('/').next().unwrap_or(stem);
    let is_other = ["mmproj", "imatrix"].iter().any(|word| file.to_ascii_lowercase().contains(word));
    (!is_other).then(|| file.rsplit(['-', '.']).next().unwrap_or(file))
}

/// Whether `wanted` is the path of a GGUF file, the name of the file, or the type that its name ends with.
pub(crate) fn is_gguf_of(path: &str, wanted: &str) -> bool {
    let Some(stem) = gguf_stem(path) else { return false };
    let ends = |text: &str, before: &[char]| {
        let at = text.len().checked_sub(wanted.len()).filter(|at| text.is_char_boundary(*at));
        at.is_some_and(|at| {
            text[at..].eq_ignore_ascii_case(wanted) && (at == 0 || text[..at].ends_with(before))
        })
    };
    ends(path, &['/']) || gguf_type(path).is_some() && ends(stem, &['-', '.', '/'])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_told_from_paths() {
        for (text, shown) in [
            ("openai/gpt-oss-20b", Some("openai/gpt-oss-20b")),
            ("hf.co/acme/tiny:Q8_0", Some("acme/tiny:Q8_0")),
            ("https://huggingface.co/acme/tiny.v1", Some("acme/tiny.v1")),
            ("acme/tiny:sub/tiny-Q4_0.gguf", Some("acme/tiny:sub/tiny-Q4_0.gguf")),
            ("nano.plan", None),
            ("a/b/c", None),
            ("./a/b", None),
            ("../a", None),
            ("a/..", None),
            ("a/b..c", None),
            ("a/b--c", None),
            ("a/b:", None),
            ("a/b:../c.gguf", None),
            ("a/b:/c.gguf", None),
            ("a/b:c\n", None),
            ("a/b:';c'", None),
            ("a/-b", None),
        ] {
            assert_eq!(HubName::parse(text).map(|name| name.to_string()).as_deref(), shown, "{text}");
        }
        assert_eq!(HubName::of_ollama("gpt-oss:20b").unwrap().repository(), "openai/gpt-oss-20b");
        assert_eq!(HubName::of_ollama("llama3"), None);
    }

    #[test]
    fn types_of_gguf_files_end_their_names() {
        for (path, of) in [
            ("tiny-Q4_K_M.gguf", Some("Q4_K_M")),
            ("Tiny.Q8_0.GGUF", Some("Q8_0")),
            ("tiny-MXFP4-00001-of-00002.gguf", Some("MXFP4")),
            ("UD/tiny-UD-Q4_K_XL.gguf", Some("Q4_K_XL")),
            ("tiny.gguf", Some("tiny")),
            ("mmproj-F16.gguf", None),
            ("tiny.imatrix.gguf", None),
            ("model.safetensors", None),
            (".gguf", Some("")),
            ("gguf", None),
        ] {
            assert_eq!(gguf_type(path), of, "{path}");
        }
        for (path, wanted, is) in [
            ("tiny-Q4_K_M.gguf", "q4_k_m", true),
            ("tiny-Q4_K_M.gguf", "Q4_K", false),
            ("tiny-Q4_K_M.gguf", "K_M", false),
            ("tiny-UD-Q4_K_XL.gguf", "UD-Q4_K_XL", true),
            ("Q8_0/tiny-Q8_0-00002-of-00003.gguf", "Q8_0", true),
            ("sub/tiny-Q8_0.gguf", "tiny-Q8_0.gguf", true),
            ("sub/tiny-Q8_0.gguf", "iny-Q8_0.gguf", false),
            ("mmproj-F16.gguf", "F16", false),
            ("mmproj-F16.gguf", "mmproj-F16.gguf", true),
            ("model.safetensors", "model.safetensors", false),
        ] {
            assert_eq!(is_gguf_of(path, wanted), is, "{path} {wanted}");
        }
    }
}
