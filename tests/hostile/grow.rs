//! Documents that grow: each element of a list, each entry of a map, each text in turn becomes a thousand.

use serde_json::Value;

/// How often something is repeated.
pub const TIMES: usize = 1000;
/// Bytes that a grown part adds at most: fewer repetitions of what is large show the same.
const MAX_BYTES: usize = 2 << 20;
/// Elements of a long list that are tried.
const TRIED: usize = 40;

/// A value of JSON or TOML, in which a map may have a key twice.
#[derive(Clone, Debug)]
pub enum Node {
    /// A number, a truth, or null, as it is written.
    Plain(String),
    Text(String),
    List(Vec<Node>),
    Map(Vec<(String, Node)>),
}

impl From<&Value> for Node {
    fn from(value: &Value) -> Node {
        match value {
            Value::String(text) => Node::Text(text.clone()),
            Value::Array(list) => Node::List(list.iter().map(Node::from).collect()),
            Value::Object(map) => {
                Node::Map(map.iter().map(|(key, value)| (key.clone(), value.into())).collect())
            }
            other => Node::Plain(other.to_string()),
        }
    }
}

impl From<&toml::Value> for Node {
    fn from(value: &toml::Value) -> Node {
        match value {
            toml::Value::String(text) => Node::Text(text.clone()),
            toml::Value::Array(list) => Node::List(list.iter().map(Node::from).collect()),
            toml::Value::Table(map) => {
                Node::Map(map.iter().map(|(key, value)| (key.clone(), value.into())).collect())
            }
            other => Node::Plain(other.to_string()),
        }
    }
}

impl Node {
    /// Writes the document as JSON.
    pub fn json(&self, out: &mut String) {
        self.write(out, ':');
    }

    /// The document as TOML: every entry of it on a separate line, everything below inline.
    pub fn toml(&self) -> String {
        let Node::Map(entries) = self else { panic!("a document is a table") };
        let mut out = String::new();
        for (key, value) in entries {
            out += &quoted(key);
            out += " = ";
            value.write(&mut out, '=');
            out.push('\n');
        }
        out
    }

    fn write(&self, out: &mut String, between: char) {
        match self {
            Node::Plain(text) => out.push_str(text),
            Node::Text(text) => out.push_str(&quoted(text)),
            Node::List(list) => {
                out.push('[');
                for (n, element) in list.iter().enumerate() {
                    out.push_str(if n > 0 { "," } else { "" });
                    element.write(out, between);
                }
                out.push(']');
            }
            Node::Map(entries) => {
                out.push('{');
                for (n, (key, value)) in entries.iter().enumerate() {
                    out.push_str(if n > 0 { "," } else { "" });
                    out.push_str(&quoted(key));
                    out.push(between);
                    value.write(out, between);
                }
                out.push('}');
            }
        }
    }

    fn bytes(&self) -> usize {
        let mut text = String::new();
        self.json(&mut text);
        text.len()
    }

    fn times(&self) -> usize {
        times(self.bytes())
    }

    /// Gives `out` every document in which one part of this one has grown. `twice`: also those in which a key
    /// occurs many times.
    pub fn grown(&self, twice: bool, out: &mut dyn FnMut(Node)) {
        match self {
            Node::Plain(_) => {}
            Node::Text(text) => out(Node::Text(long(text))),
            Node::List(list) => {
                for at in tried(list.len()) {
                    let repeated = std::iter::repeat_n(list[at].clone(), list[at].times());
                    let mut more = list.clone();
                    more.splice(at..at, repeated);
                    out(Node::List(more));
                    list[at].grown(twice, &mut |element| {
                        let mut list = list.clone();
                        list[at] = element;
                        out(Node::List(list));
                    });
                }
            }
            Node::Map(entries) => {
                for at in tried(entries.len()) {
                    let (key, value) = &entries[at];
                    let mut more = entries.clone();
                    more.extend((0..value.times()).map(|n| (format!("{key}{n}"), value.clone())));
                    out(Node::Map(more));
                    if twice {
                        let mut more = entries.clone();
                        more.extend(std::iter::repeat_n((key.clone(), value.clone()), value.times()));
                        out(Node::Map(more));
                    }
                    let mut named = entries.clone();
                    named[at].0 = long(key);
                    out(Node::Map(named));
                    value.grown(twice, &mut |value| {
                        let mut entries = entries.clone();
                        entries[at].1 = value;
                        out(Node::Map(entries));
                    });
                }
            }
        }
    }
}

/// How often something of so many bytes is repeated.
pub fn times(bytes: usize) -> usize {
    TIMES.min(MAX_BYTES / bytes.max(1)).max(2)
}

/// A thousand times the text.
pub fn long(text: &str) -> String {
    match text.is_empty() {
        true => "x".repeat(TIMES),
        false => text.repeat(times(text.len())),
    }
}

/// Which of so many parts are tried: all, or those at both ends.
pub fn tried(count: usize) -> impl Iterator<Item = usize> {
    (0..count).filter(move |at| *at < TRIED / 2 || *at + TRIED / 2 >= count)
}

/// A string of JSON, which TOML reads too.
fn quoted(text: &str) -> String {
    serde_json::to_string(text).expect("a text")
}

/// Gives `out` every text in which a line or a word of this one is there a thousand times, side by side or
/// apart.
pub fn grown_text(text: &str, out: &mut dyn FnMut(String)) {
    let lines: Vec<&str> = text.lines().collect();
    for at in tried(lines.len()) {
        let mut more = lines.clone();
        more.splice(at..at, std::iter::repeat_n(lines[at], times(lines[at].len())));
        out(more.join("\n"));
    }
    // Where a word begins or ends.
    let is_word = |c: char| c.is_alphanumeric() || c == '_' || c == '.';
    let mut words: Vec<&str> = Vec::new();
    let mut start = 0;
    for (at, pair) in text.char_indices().zip(text.chars().skip(1)) {
        let next = at.0 + at.1.len_utf8();
        if !(is_word(at.1) && is_word(pair)) {
            words.push(&text[start..next]);
            start = next;
        }
    }
    words.push(&text[start..]);
    for at in tried(words.len()) {
        for between in ["", " "] {
            let grown = vec![words[at]; times(words[at].len() + 1)].join(between);
            let mut more = words.clone();
            more[at] = &grown;
            out(more.concat());
        }
    }
}
