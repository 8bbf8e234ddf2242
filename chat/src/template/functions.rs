//! What templates call that the template language does not have of itself.

use super::taint::{plain, taint, untaint};
use minijinja::value::{Kwargs, Value, ValueKind};
use minijinja::{Error, ErrorKind};

/// A template refused the conversation.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub(super) struct Refusal(pub String);

/// `raise_exception` of templates.
pub(super) fn raise_exception(message: &str) -> Result<Value, Error> {
    let error = Error::new(ErrorKind::InvalidOperation, "the template refuses the conversation");
    Err(error.with_source(Refusal(plain(message))))
}

/// `tojson` as Python's `json.dumps` has it, without its ASCII form unless that is asked for.
pub(super) fn tojson(value: &Value, indent: Option<Value>, options: Kwargs) -> Result<Value, Error> {
    let given: Option<Value> = options.get("indent")?;
    let indent = match indent.or(given).filter(|value| !value.is_none() && !value.is_undefined()) {
        Some(width) => Some(match width.as_str() {
            Some(text) => text.to_owned(),
            None => " ".repeat(usize::try_from(width)?.min(64)),
        }),
        None => None,
    };
    let separators: Option<Vec<String>> = options.get("separators")?;
    let usual = if indent.is_some() { [",", ": "] } else { [", ", ": "] };
    let [item, key] = match separators.as_deref() {
        Some([item, key]) => [item.clone(), key.clone()],
        _ => usual.map(str::to_owned),
    };
    let writer = Writer {
        indent,
        item,
        key,
        is_ascii: options.get::<Option<bool>>("ensure_ascii")?.unwrap_or(false),
        is_sorted: options.get::<Option<bool>>("sort_keys")?.unwrap_or(false),
    };
    options.assert_all_used()?;
    let mut out = String::new();
    writer.write(value, 0, &mut out)?;
    Ok(out.into())
}

/// Deepest nesting of a value that is written.
const DEPTH: usize = 128;

struct Writer {
    indent: Option<String>,
    item: String,
    key: String,
    is_ascii: bool,
    is_sorted: bool,
}

impl Writer {
    fn write(&self, value: &Value, depth: usize, out: &mut String) -> Result<(), Error> {
        if depth > DEPTH {
            return Err(Error::new(ErrorKind::InvalidOperation, "a value for `tojson` is nested too deeply"));
        }
        match value.kind() {
            ValueKind::None => out.push_str("null"),
            ValueKind::Bool => out.push_str(if value.is_true() { "true" } else { "false" }),
            ValueKind::Number => out.push_str(&number(value)?),
            ValueKind::String => self.string(value.as_str().unwrap_or_default(), out),
            ValueKind::Seq | ValueKind::Iterable => {
                let items: Vec<Value> = value.try_iter()?.collect();
                let parts = items.iter().map(|item| (None, item.clone())).collect();
                self.parts(['[', ']'], parts, depth, out)?;
            }
            ValueKind::Map => {
                let mut keys: Vec<Value> = value.try_iter()?.collect();
                if self.is_sorted {
                    keys.sort_by_key(|key| plain(&key.to_string()));
                }
                let parts = keys.into_iter().map(|key| Ok((Some(key.clone()), value.get_item(&key)?)));
                self.parts(['{', '}'], parts.collect::<Result<_, Error>>()?, depth, out)?;
            }
            _ => {
                let what = if value.is_undefined() { "a value that is not there" } else { "this value" };
                return Err(Error::new(ErrorKind::InvalidOperation, format!("`tojson` cannot write {what}")));
            }
        }
        Ok(())
    }

    fn parts(
        &self,
        [open, close]: [char; 2],
        parts: Vec<(Option<Value>, Value)>,
        depth: usize,
        out: &mut String,
    ) -> Result<(), Error> {
        let line = |depth: usize, out: &mut String| {
            if let Some(indent) = &self.indent {
                out.push('\n');
                (0..depth).for_each(|_| out.push_str(indent));
            }
        };
        out.push(open);
        let is_empty = parts.is_empty();
        for (n, (key, value)) in parts.into_iter().enumerate() {
            if n > 0 {
                out.push_str(&self.item);
            }
            line(depth + 1, out);
            if let Some(key) = key {
                match key.as_str() {
                    Some(text) => self.string(text, out),
                    None => self.string(&key.to_string(), out),
                }
                out.push_str(&self.key);
            }
            self.write(&value, depth + 1, out)?;
        }
        if !is_empty {
            line(depth, out);
        }
        out.push(close);
        Ok(())
    }

    /// A quoted string. What stands for a character of the conversation comes from there too.
    fn string(&self, text: &str, out: &mut String) {
        out.push('"');
        for (c, is_template) in untaint(text) {
            let spelt = match c {
                '"' => "\\\"".to_owned(),
                '\\' => "\\\\".to_owned(),
                '\n' => "\\n".to_owned(),
                '\r' => "\\r".to_owned(),
                '\t' => "\\t".to_owned(),
                '\u{8}' => "\\b".to_owned(),
                '\u{c}' => "\\f".to_owned(),
                c if u32::from(c) < 0x20 || (self.is_ascii && !c.is_ascii()) => {
                    c.encode_utf16(&mut [0; 2]).iter().map(|unit| format!("\\u{unit:04x}")).collect()
                }
                c => c.to_string(),
            };
            if is_template { out.push_str(&spelt) } else { out.push_str(&taint(&spelt)) }
        }
        out.push('"');
    }
}

/// A number as Python writes it.
fn number(value: &Value) -> Result<String, Error> {
    if value.is_integer() {
        return Ok(value.to_string());
    }
    Ok(float(f64::try_from(value.clone())?))
}

/// The shortest decimal that is this number: with an exponent below 1e-4 and from 1e16 on.
fn float(x: f64) -> String {
    if x.is_nan() {
        return "NaN".to_owned();
    }
    if x.is_infinite() {
        return if x > 0.0 { "Infinity" } else { "-Infinity" }.to_owned();
    }
    let scientific = format!("{x:e}");
    let (digits, exponent) = scientific.split_once('e').unwrap_or((&scientific, "0"));
    match exponent.parse::<i32>().unwrap_or(0) {
        exponent if x != 0.0 && !(-4..16).contains(&exponent) => {
            let sign = if exponent < 0 { '-' } else { '+' };
            format!("{digits}e{sign}{:02}", exponent.unsigned_abs())
        }
        _ => format!("{x:?}"),
    }
}

/// A value as Python prints it inside a text, where that differs.
pub(super) fn printed(value: &Value) -> Option<&'static str> {
    match value.kind() {
        ValueKind::None => Some("None"),
        ValueKind::Bool => Some(if value.is_true() { "True" } else { "False" }),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::float;

    /// Texts that Python's `repr` gives.
    #[test]
    fn floats_are_pythons() {
        let cases = [
            (0.0, "0.0"),
            (-0.0, "-0.0"),
            (1.0, "1.0"),
            (0.1, "0.1"),
            (1e15, "1000000000000000.0"),
            (1e16, "1e+16"),
            (1.5e300, "1.5e+300"),
            (0.0001, "0.0001"),
            (0.00001, "1e-05"),
            (-2.5e-7, "-2.5e-07"),
            (123_456_789.123, "123456789.123"),
        ];
        for (x, text) in cases {
            assert_eq!(float(x), text);
        }
    }
}
