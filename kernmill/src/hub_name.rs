//! Names of models, as users of hubs and of other programs write them: `ORG/NAME`, behind a colon which of
//! its GGUF files, `NAME:TAG`, a bare name, or an address.

use std::fmt;

/// The model that is fetched most. Ollama has another name for it.
const EXAMPLE: (&str, &str) = ("openai", "gpt-oss-20b");

/// Hosts whose addresses name a model, with its owner or without.
const HUBS: [&str; 5] = [
    "huggingface.co/",
    "www.huggingface.co/",
    "hf.co/",
    "ollama.com/library/",
    "registry.ollama.ai/library/",
];

/// Beginnings of addresses.
const SCHEMES: [&str; 3] = ["https://", "http://", "hf://"];

/// Ends of names that files have.
const ENDS: [&str; 15] = [
    "bin",
    "ckpt",
    "gguf",
    "gz",
    "h5",
    "jinja",
    "json",
    "jsonl",
    "onnx",
    "plan",
    "pt",
    "pth",
    "safetensors",
    "toml",
    "zip",
];

/// A model's name on a hub.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct HubName {
    /// Whose it is on Hugging Face's hub, where the text tells it.
    pub owner: Option<String>,
    /// The model. Of an address elsewhere all of it.
    pub name: String,
    /// A file of it, or the type that a GGUF file has behind its name, such as `Q4_K_M`. Of a name without an
    /// owner what another program calls a tag.
    pub file: Option<String>,
    /// Whether the text cannot be a path that was mistyped: an address, or a name with a colon.
    pub is_certain: bool,
}

impl HubName {
    /// Reads a text that may be the name of a model, whether or not a file has that name too.
    pub(crate) fn of(text: &str) -> Option<HubName> {
        let scheme = SCHEMES.iter().find_map(|scheme| text.strip_prefix(scheme));
        let plain = scheme.unwrap_or(text);
        let on_hub = HUBS.iter().find_map(|hub| plain.strip_prefix(hub));
        let named = |owner: Option<&str>, name: &str, file: Option<&str>, is_certain| {
            let (owner, file) = (owner.map(str::to_owned), file.map(str::to_owned));
            Some(HubName { owner, name: name.to_owned(), file, is_certain })
        };
        if scheme.is_some() && on_hub.is_none() && !text.starts_with("hf://") {
            // It stands between quotes in what is shown.
            let is_plain = !text.chars().any(|c| c.is_control() || c.is_whitespace() || c == '\'');
            return is_plain.then(|| named(None, text, None, true)).flatten();
        }
        let is_address = scheme.or(on_hub).is_some();
        let path = on_hub.unwrap_or(plain);
        let path = if is_address { path.split(['?', '#']).next()?.trim_end_matches('/') } else { path };
        let (path, file) = match path.split_once(':') {
            Some((path, file)) => (path, Some(file)),
            None => (path, None),
        };
        let is_certain = is_address || file.is_some();
        if matches!((path, file), ("gpt-oss" | "gpt-oss-20b", None | Some("20b" | "latest"))) {
            return named(Some(EXAMPLE.0), EXAMPLE.1, None, is_certain);
        }
        let parts: Vec<&str> = path.split('/').collect();
        let (owner, name, file) = match &parts[..] {
            [name] => (None, *name, file),
            [owner, name] => (Some(*owner), *name, file),
            // Behind the name an address may have a branch and a file.
            [owner, name, "blob" | "resolve", "main", inner @ ..] if is_address => {
                let inner = path.len() - inner.join("/").len();
                (Some(*owner), *name, Some(&path[inner..]).filter(|inner| gguf_stem(inner).is_some()))
            }
            [owner, name, ..] if is_address => (Some(*owner), *name, None),
            _ => return None,
        };
        let is_right = owner.is_none_or(is_part)
            && is_part(name)
            && (is_certain || !names_file(name))
            && file.is_none_or(|file| is_plain_path(file) && file.chars().all(is_of_file));
        is_right.then(|| named(owner, name, file.filter(|file| *file != "latest"), is_certain)).flatten()
    }

    /// Owner and name, without a file.
    pub(crate) fn repository(&self) -> String {
        let owner = self.owner.as_ref().map_or(String::new(), |owner| format!("{owner}/"));
        owner + &self.name
    }

    /// How the model comes here, as the end of a sentence.
    pub(crate) fn how_to_fetch(&self) -> String {
        let name = &self.name;
        let whose = if self.owner.is_none() { " with the name's owner for ORG" } else { "" };
        if SCHEMES.iter().any(|scheme| name.starts_with(scheme)) {
            return format!(
                "only Hugging Face's hub is known here; `curl -LO '{name}'` downloads the file, which can be given then"
            );
        }
        if cfg!(feature = "pull") {
            let full = self.owner.as_ref().map_or_else(|| format!("ORG/{name}"), |_| self.to_string());
            return format!("`kernmill pull {full}`{whose} fetches it; nothing is downloaded unasked");
        }
        let owner = self.owner.as_deref().unwrap_or("ORG");
        let (files, what) = match &self.file {
            _ if !name.to_ascii_lowercase().ends_with("gguf") => (String::new(), "the directory"),
            None => (" --include '*.gguf'".to_owned(), "a file in the directory"),
            Some(file) => (format!(" --include '*{file}*'"), "a file in the directory"),
        };
        let cache = match cfg!(feature = "compiler") {
            true => "; --hf-cache finds one that the hub's tools have in their cache",
            false => "",
        };
        format!(
            "kernmill downloads nothing; fetch its files first, for example by \
             `hf download {owner}/{name}{files} --local-dir {name}`{whose}, and give {what} {name}{cache}"
        )
    }
}

impl fmt::Display for HubName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.repository())?;
        self.file.as_ref().map_or(Ok(()), |file| write!(f, ":{file}"))
    }
}

/// Whether a text can be a part of a name on a hub.
fn is_part(part: &str) -> bool {
    part.chars().all(|c| c.is_ascii_alphanumeric() || "-_.".contains(c))
        && part.starts_with(|c: char| c.is_ascii_alphanumeric())
        && !part.contains("..")
        && !part.contains("--")
}

/// Whether a letter may be in the path of a model's file.
fn is_of_file(c: char) -> bool {
    c.is_ascii_alphanumeric() || "-_.+/".contains(c)
}

/// Whether a name ends like that of a file: `model.onnx`, but not `Llama-3.2-1B`.
fn names_file(name: &str) -> bool {
    name.rsplit_once('.').is_some_and(|(_, end)| ENDS.contains(&end.to_ascii_lowercase().as_str()))
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
    fn every_spelling_of_a_name_is_told_from_paths() {
        for (text, owner, name, file, is_certain) in [
            ("openai/gpt-oss-20b", Some("openai"), "gpt-oss-20b", None, false),
            ("acme/tiny-GGUF:Q4_K_M", Some("acme"), "tiny-GGUF", Some("Q4_K_M"), true),
            ("acme/tiny:sub/tiny-Q4_0.gguf", Some("acme"), "tiny", Some("sub/tiny-Q4_0.gguf"), true),
            ("acme/tiny:latest", Some("acme"), "tiny", None, true),
            ("hf.co/acme/tiny-GGUF:Q8_0", Some("acme"), "tiny-GGUF", Some("Q8_0"), true),
            ("https://huggingface.co/acme/tiny.v1/", Some("acme"), "tiny.v1", None, true),
            ("https://huggingface.co/acme/tiny.bin", Some("acme"), "tiny.bin", None, true),
            ("https://huggingface.co/acme/tiny/tree/main", Some("acme"), "tiny", None, true),
            (
                "https://huggingface.co/acme/tiny/blob/main/a/b.gguf",
                Some("acme"),
                "tiny",
                Some("a/b.gguf"),
                true,
            ),
            ("hf.co/acme/tiny/resolve/main/b.gguf?download=true", Some("acme"), "tiny", Some("b.gguf"), true),
            ("https://huggingface.co/acme/tiny/blob/main/README.md", Some("acme"), "tiny", None, true),
            ("https://huggingface.co/acme/tiny/blob/old/a.gguf", Some("acme"), "tiny", None, true),
            ("hf://acme/tiny", Some("acme"), "tiny", None, true),
            ("gpt-oss:20b", Some("openai"), "gpt-oss-20b", None, true),
            ("gpt-oss", Some("openai"), "gpt-oss-20b", None, false),
            ("llama3.2:1b", None, "llama3.2", Some("1b"), true),
            ("Llama-3.2-1B", None, "Llama-3.2-1B", None, false),
            ("https://a.example/m.gguf", None, "https://a.example/m.gguf", None, true),
            ("https://ollama.com/library/qwen2.5", None, "qwen2.5", None, true),
        ] {
            let (owner, name, file) = (owner.map(str::to_owned), name.to_owned(), file.map(str::to_owned));
            assert_eq!(HubName::of(text), Some(HubName { owner, name, file, is_certain }), "{text}");
        }
        for text in [
            "",
            "nano.plan",
            "model.onnx",
            "models/tiny.gguf",
            "a/b/c",
            "./a/b",
            "../a",
            "../x",
            "/models/tiny",
            "a/..",
            "a/b..c",
            "a/b--c",
            "a/b:",
            "a/b:../c.gguf",
            "a/b:/c.gguf",
            "a/b:c\n",
            "a/b:';c'",
            "a/-b",
            "hf.co/a/b/blob/main/../c.gguf",
            "https://a.example/';x'",
            "Why is the sky blue?",
            "C:\\m",
        ] {
            assert_eq!(HubName::of(text), None, "{text}");
        }
        assert_eq!(HubName::of("hf.co/acme/tiny:Q8_0").unwrap().to_string(), "acme/tiny:Q8_0");
    }

    #[test]
    fn how_a_model_comes_here_is_a_command() {
        let with_pull = [
            ("openai/gpt-oss-20b", "`kernmill pull openai/gpt-oss-20b` fetches it"),
            ("hf.co/acme/tiny-GGUF:Q4_K_M", "`kernmill pull acme/tiny-GGUF:Q4_K_M` fetches it"),
            ("llama3.2:1b", "`kernmill pull ORG/llama3.2` with the name's owner for ORG fetches it"),
        ];
        let without = [
            ("openai/gpt-oss-20b", "`hf download openai/gpt-oss-20b --local-dir gpt-oss-20b`, and give"),
            ("hf.co/acme/tiny-GGUF:Q4_K_M", "acme/tiny-GGUF --include '*Q4_K_M*' --local-dir tiny-GGUF`"),
            ("acme/tiny-gguf", "--include '*.gguf'"),
            ("llama3.2:1b", "`hf download ORG/llama3.2 --local-dir llama3.2` with the name's owner"),
        ];
        let of_build: &[_] = if cfg!(feature = "pull") { &with_pull } else { &without };
        let elsewhere = [("https://a.example/m.gguf", "`curl -LO 'https://a.example/m.gguf'`")];
        for (text, part) in of_build.iter().chain(&elsewhere) {
            let says = HubName::of(text).unwrap().how_to_fetch();
            assert!(says.contains(part) && says.contains("download") && !says.contains('\n'), "{says}");
        }
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
