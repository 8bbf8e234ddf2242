//! Values as texts: what Python prints, and JSON.

use super::budget::{Budget, Result, failed};
use super::compare::sort_by;
use super::text::{TemplateText, TextBuilder};
use super::value::{SequenceKind, Value};

/// A value as Python prints it.
pub(super) fn text(budget: &Budget, value: &Value) -> Result<TemplateText> {
    if let Value::Text(text) = value {
        return Ok(text.clone());
    }
    let mut out = TextBuilder::new(budget);
    print(&mut out, value)?;
    Ok(out.finish())
}

/// Writes a value as Python prints it.
pub(super) fn print(out: &mut TextBuilder, value: &Value) -> Result<()> {
    match value {
        Value::Undefined(_) => Ok(()),
        Value::Text(text) => out.push_text(text),
        other => represent(out, other),
    }
}

/// Values as texts with a text between them.
pub(super) fn join(budget: &Budget, values: &[Value], between: &TemplateText) -> Result<TemplateText> {
    let mut out = TextBuilder::new(budget);
    for (n, value) in values.iter().enumerate() {
        if n > 0 {
            out.push_text(between)?;
        }
        print(&mut out, value)?;
    }
    Ok(out.finish())
}

/// Writes a value as Python's `repr` does.
pub(super) fn represent(out: &mut TextBuilder, value: &Value) -> Result<()> {
    out.budget().spend(32)?;
    match value {
        Value::Undefined(_) => out.own("Undefined"),
        Value::None => out.own("None"),
        Value::Bool(true) => out.own("True"),
        Value::Bool(false) => out.own("False"),
        Value::Int(number) => out.own(&number.to_string()),
        Value::Float(number) => out.own(&float(*number, ["nan", "inf", "-inf"])),
        Value::Text(text) => quoted(out, text),
        Value::List(list) => {
            let (open, close) = match list.kind {
                SequenceKind::List => ("[".to_owned(), "]"),
                SequenceKind::Tuple | SequenceKind::Group => ("(".to_owned(), ")"),
                SequenceKind::View(name) => (format!("{name}(["), "])"),
            };
            out.own(&open)?;
            for (n, item) in list.items.iter().enumerate() {
                if n > 0 {
                    out.own(", ")?;
                }
                represent(out, item)?;
            }
            let is_single =
                list.items.len() == 1 && matches!(list.kind, SequenceKind::Tuple | SequenceKind::Group);
            out.own(if is_single { "," } else { "" })?;
            out.own(close)
        }
        Value::Dict(dict) => {
            out.own("{")?;
            for (n, (key, value)) in dict.entries().iter().enumerate() {
                if n > 0 {
                    out.own(", ")?;
                }
                represent(out, key)?;
                out.own(": ")?;
                represent(out, value)?;
            }
            out.own("}")
        }
        Value::Range(range) => {
            let [start, stop, step] = **range;
            let step = if step == 1 { String::new() } else { format!(", {step}") };
            out.own(&format!("range({start}, {stop}{step})"))
        }
        Value::Loop(state) => out.own(&format!("<LoopContext {}/{}>", state.at.get() + 1, state.items.len())),
        Value::Macro(definition) => out.own(&format!("<Macro '{}'>", definition.definition.name)),
        other => failed(format!("a value of type {} cannot be printed", other.type_name())),
    }
}

/// A quoted text as Python's `repr` writes it.
fn quoted(out: &mut TextBuilder, text: &TemplateText) -> Result<()> {
    let whole = text.as_str();
    let quote = if whole.contains('\'') && !whole.contains('"') { '"' } else { '\'' };
    out.own(quote.encode_utf8(&mut [0; 4]))?;
    for (run, is_template) in text.runs() {
        let mut spelt = String::with_capacity(run.len());
        for c in run.chars() {
            match c {
                '\n' => spelt.push_str("\\n"),
                '\r' => spelt.push_str("\\r"),
                '\t' => spelt.push_str("\\t"),
                '\\' => spelt.push_str("\\\\"),
                c if c == quote => spelt.extend(['\\', c]),
                c if is_printable(c) => spelt.push(c),
                c => spelt.push_str(&match u32::from(c) {
                    code @ ..=0xFF => format!("\\x{code:02x}"),
                    code @ ..=0xFFFF => format!("\\u{code:04x}"),
                    code => format!("\\U{code:08x}"),
                }),
            }
        }
        out.push(&spelt, is_template)?;
    }
    out.own(quote.encode_utf8(&mut [0; 4]))
}

/// Whether Python prints a character as it is: no control, no format, no space but the usual one, and none
/// that is for private use or for nothing.
pub(super) fn is_printable(c: char) -> bool {
    let code = u32::from(c);
    let is_format = matches!(code, 0xAD | 0x61C | 0x6DD | 0x70F | 0x180E | 0xFEFF | 0xFFF9..=0xFFFB
        | 0x200B..=0x200F | 0x202A..=0x202E | 0x2060..=0x206F | 0xE0001 | 0xE0020..=0xE007F);
    let is_private = matches!(code, 0xE000..=0xF8FF | 0xF_0000.. | 0xFFFE | 0xFFFF);
    c == ' ' || !(c.is_control() || c.is_whitespace() || is_format || is_private)
}

/// The shortest decimal that is this number, as Python writes it: with an exponent below 1e-4 and from 1e16
/// on. `names` are those of no number and of the infinities.
pub(super) fn float(x: f64, names: [&str; 3]) -> String {
    if x.is_nan() {
        return names[0].to_owned();
    }
    if x.is_infinite() {
        return names[if x > 0.0 { 1 } else { 2 }].to_owned();
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

/// How JSON is written.
pub(super) struct Json {
    /// Text of one level, where items have separate lines.
    pub indent: Option<String>,
    /// Text between items.
    pub item: TemplateText,
    /// Text behind keys.
    pub key: TemplateText,
    pub is_ascii: bool,
    pub is_sorted: bool,
}

impl Json {
    /// Writes a value as Python's `json.dumps` does.
    pub fn write(&self, out: &mut TextBuilder, value: &Value, depth: usize) -> Result<()> {
        out.budget().spend(32)?;
        match value {
            Value::None => out.own("null"),
            Value::Bool(true) => out.own("true"),
            Value::Bool(false) => out.own("false"),
            Value::Int(number) => out.own(&number.to_string()),
            Value::Float(number) => out.own(&float(*number, ["NaN", "Infinity", "-Infinity"])),
            Value::Text(text) => self.text(out, text),
            Value::List(list) if !matches!(list.kind, SequenceKind::View(_)) => {
                out.own("[")?;
                for (n, item) in list.items.iter().enumerate() {
                    self.between(out, n, depth)?;
                    self.write(out, item, depth + 1)?;
                }
                self.end(out, list.items.is_empty(), depth)?;
                out.own("]")
            }
            Value::Dict(dict) => {
                let mut entries: Vec<&(Value, Value)> = dict.entries().iter().collect();
                if self.is_sorted {
                    entries = sort_by(out.budget(), entries, &|entry: &&(Value, Value)| &entry.0)?;
                }
                out.own("{")?;
                for (n, (key, value)) in entries.into_iter().enumerate() {
                    self.between(out, n, depth)?;
                    match key {
                        Value::Text(text) => self.text(out, text)?,
                        Value::None | Value::Bool(_) | Value::Int(_) | Value::Float(_) => {
                            out.own("\"")?;
                            self.write(out, key, depth)?;
                            out.own("\"")?;
                        }
                        _ => return failed(format!("a key of type {} cannot be JSON", key.type_name())),
                    }
                    out.push_text(&self.key)?;
                    self.write(out, value, depth + 1)?;
                }
                self.end(out, dict.entries().is_empty(), depth)?;
                out.own("}")
            }
            other => failed(format!("a value of type {} cannot be JSON", other.type_name())),
        }
    }

    fn between(&self, out: &mut TextBuilder, n: usize, depth: usize) -> Result<()> {
        if n > 0 {
            out.push_text(&self.item)?;
        }
        self.line(out, depth + 1)
    }

    fn end(&self, out: &mut TextBuilder, is_empty: bool, depth: usize) -> Result<()> {
        if is_empty { Ok(()) } else { self.line(out, depth) }
    }

    fn line(&self, out: &mut TextBuilder, depth: usize) -> Result<()> {
        let Some(indent) = &self.indent else { return Ok(()) };
        out.own("\n")?;
        (0..depth).try_for_each(|_| out.own(indent))
    }

    fn text(&self, out: &mut TextBuilder, text: &TemplateText) -> Result<()> {
        out.own("\"")?;
        for (run, is_template) in text.runs() {
            let mut spelt = String::with_capacity(run.len());
            for c in run.chars() {
                match c {
                    '"' => spelt.push_str("\\\""),
                    '\\' => spelt.push_str("\\\\"),
                    '\n' => spelt.push_str("\\n"),
                    '\r' => spelt.push_str("\\r"),
                    '\t' => spelt.push_str("\\t"),
                    '\u{8}' => spelt.push_str("\\b"),
                    '\u{c}' => spelt.push_str("\\f"),
                    c if u32::from(c) < 0x20 || (self.is_ascii && !c.is_ascii()) => {
                        let units = c
                            .encode_utf16(&mut [0; 2])
                            .iter()
                            .map(|unit| format!("\\u{unit:04x}"))
                            .collect::<String>();
                        spelt.push_str(&units);
                    }
                    c => spelt.push(c),
                }
            }
            out.push(&spelt, is_template)?;
        }
        out.own("\"")
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
            assert_eq!(float(x, ["nan", "inf", "-inf"]), text);
        }
    }
}
