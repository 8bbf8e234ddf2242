//! Where the parts of a `tokenizer.json` lie, found without building anything of them.

use std::ops::Range;

/// A key of the outermost object.
#[derive(Debug)]
pub(super) struct TopLevelKey {
    pub(super) key: String,
    /// Where the key begins.
    start: usize,
    /// Bytes of its value.
    pub(super) value: Range<usize>,
}

/// The keys of the outermost object; `None` if the text is no such object.
pub(super) fn parts(json: &[u8]) -> Option<Vec<TopLevelKey>> {
    let mut at = spaces(json, 0);
    let mut parts = Vec::new();
    if *json.get(at)? != b'{' {
        return None;
    }
    at = spaces(json, at + 1);
    while *json.get(at)? != b'}' {
        let start = at;
        let key_end = string(json, at)?;
        let key = serde_json::from_slice(&json[at..key_end]).ok()?;
        at = spaces(json, key_end);
        if *json.get(at)? != b':' {
            return None;
        }
        at = spaces(json, at + 1);
        let end = value(json, at)?;
        parts.push(TopLevelKey { key, start, value: at..end });
        at = spaces(json, end);
        match *json.get(at)? {
            b',' => at = spaces(json, at + 1),
            b'}' => {}
            _ => return None,
        }
    }
    Some(parts)
}

impl TopLevelKey {
    /// The text without this key, its value, and the comma of one of its sides.
    pub(super) fn without(&self, json: &[u8]) -> Vec<u8> {
        let before = json[..self.start].iter().rposition(|byte| !is_space(*byte)).unwrap_or(0);
        let behind = spaces(json, self.value.end);
        let cut = match (json.get(behind), json[before]) {
            (Some(b','), _) => self.start..behind + 1,
            (_, b',') => before..self.value.end,
            _ => self.start..self.value.end,
        };
        [&json[..cut.start], &json[cut.end..]].concat()
    }
}

fn is_space(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | b'\n' | b'\r')
}

fn spaces(json: &[u8], at: usize) -> usize {
    json[at..].iter().position(|byte| !is_space(*byte)).map_or(json.len(), |count| at + count)
}

/// The end of the string that starts at `at`.
fn string(json: &[u8], at: usize) -> Option<usize> {
    if *json.get(at)? != b'"' {
        return None;
    }
    let mut at = at + 1;
    loop {
        match *json.get(at)? {
            b'"' => return Some(at + 1),
            b'\\' => at += 2,
            _ => at += 1,
        }
    }
}

/// The end of the value that starts at `at`.
fn value(json: &[u8], at: usize) -> Option<usize> {
    let mut depth = 0usize;
    let mut at = at;
    loop {
        match *json.get(at)? {
            b'"' => at = string(json, at)?,
            b'{' | b'[' => {
                depth += 1;
                at += 1;
            }
            b'}' | b']' => {
                if depth == 0 {
                    return Some(at);
                }
                depth -= 1;
                at += 1;
            }
            b',' if depth == 0 => return Some(at),
            _ => at += 1,
        }
        if depth == 0 && json.get(at).is_some_and(|byte| matches!(byte, b',' | b'}') || is_space(*byte)) {
            return Some(at);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_found_whatever_is_in_them() {
        let json = br#" {"a" : [1,{"x":"}\"]"}], "b\u0063":"q,\\", "d":null ,"e":-1e5}"#;
        let found: Vec<(String, String)> = parts(json)
            .unwrap()
            .into_iter()
            .map(|part| (part.key, String::from_utf8(json[part.value].to_vec()).unwrap()))
            .collect();
        let expected = [("a", r#"[1,{"x":"}\"]"}]"#), ("bc", r#""q,\\""#), ("d", "null"), ("e", "-1e5")];
        assert_eq!(found, expected.map(|(key, value)| (key.to_owned(), value.to_owned())));
        assert_eq!(parts(b"{}").map(|parts| parts.len()), Some(0));
    }

    #[test]
    fn a_key_is_cut_out_with_one_comma() {
        for (json, key, rest) in [
            (r#"{ "a" : [1, 2] , "b":2}"#, "a", r#"{  "b":2}"#),
            (r#"{"a":1, "b" :{"c":","}}"#, "b", r#"{"a":1}"#),
            (r#"{"a":1,"b":2,"c":3}"#, "b", r#"{"a":1,"c":3}"#),
            (r#"{"a":1}"#, "a", "{}"),
        ] {
            let part = parts(json.as_bytes()).unwrap().into_iter().find(|part| part.key == key).unwrap();
            assert_eq!(String::from_utf8(part.without(json.as_bytes())).unwrap(), rest);
        }
    }

    #[test]
    fn what_is_no_object_has_no_parts() {
        for json in ["", "[1]", "{", r#"{"a"#, r#"{"a":"#, r#"{"a":"b"#, r#"{"a":1"#, r#"{"a":1 2}"#, "{1:2}"]
        {
            assert!(parts(json.as_bytes()).is_none(), "{json}");
        }
    }
}
