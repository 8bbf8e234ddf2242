//! Lays out a spec as a person would.

use std::fmt::Write;

/// Comment on tensors of which one serves twice.
pub(super) const TIED: &str = "The embeddings serve as the unembedding too.";

/// TOML text being written.
#[derive(Default)]
pub(super) struct TomlWriter {
    text: String,
}

impl TomlWriter {
    /// A spec's first lines.
    pub(super) fn new(name: &str, what: &str) -> TomlWriter {
        let mut writer = TomlWriter::default();
        // A name may hold line breaks; a comment may not.
        let name: String = name.chars().filter(|c| !c.is_control()).collect();
        writer.line(&format!("# {name}: {what}."));
        writer.line("# docs/user/spec-language.md explains the language.");
        writer
    }

    pub(super) fn line(&mut self, line: &str) {
        self.text.push_str(line);
        self.text.push('\n');
    }

    /// `[header]` after an empty line, with comment lines above it.
    pub(super) fn section(&mut self, header: &str, comment: &str) {
        self.text.push('\n');
        comment.lines().for_each(|line| self.line(&format!("# {line}")));
        self.line(&format!("[{header}]"));
    }

    /// `key = value` lines, the equals signs in one column.
    pub(super) fn keys(&mut self, keys: &[(&str, String)]) {
        let width = keys.iter().map(|(key, _)| key.len()).max().unwrap_or(0);
        for (key, value) in keys {
            let _ = writeln!(self.text, "{key:width$} = {value}");
        }
    }

    /// A `node = [...]` array, one node a line.
    pub(super) fn nodes(&mut self, nodes: &[String]) {
        self.line("node = [");
        for node in nodes {
            self.line(&format!("  {{ {node} }},"));
        }
        self.line("]");
    }

    pub(super) fn finish(self) -> String {
        self.text
    }
}

/// `text` as a TOML string.
pub(super) fn quote(text: &str) -> String {
    toml::Value::String(text.to_owned()).to_string()
}

/// A tensor that the checkpoint stores in a format, or in one for each layer. `keys` are further ones, each
/// behind a comma.
pub(super) fn tensor(from: &str, shape: &str, keys: &str, formats: &[&str]) -> String {
    let shape = quoted(shape.split(' '));
    let format = match formats {
        [one] => format!("\"{one}\""),
        each => format!("[{}]", quoted(each.iter().copied())),
    };
    format!("{{ from = \"{from}\"{keys}, shape = [{shape}], format = {format} }}")
}

/// Names as the strings of an array.
fn quoted<'a>(names: impl Iterator<Item = &'a str>) -> String {
    names.map(|name| format!("\"{name}\"")).collect::<Vec<_>>().join(", ")
}

/// A key that is there or not.
pub(super) fn when(present: bool, key: &str) -> &str {
    if present { key } else { "" }
}

/// Per-layer values from one word per layer: the shortest cycle, or the list if nothing repeats.
pub(super) fn per_layer(words: &[&str]) -> String {
    let repeats = |period: usize| words.iter().enumerate().all(|(i, word)| *word == words[i % period]);
    let period = (1..=words.len() / 2).find(|&p| repeats(p));
    let (key, shown) = match period {
        Some(period) => ("cycle", &words[..period]),
        None => ("list", words),
    };
    format!("{{ {key} = [{}] }}", quoted(shown.iter().copied()))
}
