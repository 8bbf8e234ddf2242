//! Where the parts of a `tokenizer.json` lie, found without building anything of them.

use std::ops::Range;

/// The keys of the outermost object and the bytes of their values; `None` if the text is no such object.
pub(super) fn parts(json: &[u8]) -> Option<Vec<(String, Range<usize>)>> {
    let mut at = spaces(json, 0);
    let mut parts = Vec::new();
    if *json.get(at)? != b'{' {
        return None;
    }
    at = spaces(json, at + 1);
    while *json.get(at)? != b'}' {
        let key_end = string(json, at)?;
        let key = serde_json::from_slice(&json[at..key_end]).ok()?;
        at = spaces(json, key_end);
        if *json.get(at)? != b':' {
            return None;
        }
        let start = spaces(json, at + 1);
        let end = value(json, start)?;
        parts.push((key, start..end));
        at = spaces(json, end);
        match *json.get(at)? {
            b',' => at = spaces(json, at + 1),
            b'}' => {}
            _ => return None,
        }
    }
    Some(parts)
}

fn spaces(json: &[u8], at: usize) -> usize {
    let blank = |byte: &u8| matches!(byte, b' ' | b'\t' | b'\n' | b'\r');
    json[at..].iter().position(|byte| !blank(byte)).map_or(json.len(), |count| at + count)
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
        if depth == 0 && matches!(json.get(at), Some(b',' | b'}' | b' ' | b'\n' | b'\r' | b'\t')) {
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
            .map(|(key, range)| (key, String::from_utf8(json[range].to_vec()).unwrap()))
            .collect();
        let expected = [("a", r#"[1,{"x":"}\"]"}]"#), ("bc", r#""q,\\""#), ("d", "null"), ("e", "-1e5")];
        assert_eq!(found, expected.map(|(key, value)| (key.to_owned(), value.to_owned())));
        assert_eq!(parts(b"{}"), Some(Vec::new()));
    }

    #[test]
    fn what_is_no_object_has_no_parts() {
        for json in ["", "[1]", "{", r#"{"a"#, r#"{"a":"#, r#"{"a":"b"#, r#"{"a":1"#, r#"{"a":1 2}"#, "{1:2}"]
        {
            assert_eq!(parts(json.as_bytes()), None, "{json}");
        }
    }
}
