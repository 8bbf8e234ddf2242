//! The grammar of arguments that are written one by one.

use super::text::{TextGrammar, quoted};
use crate::calls::{CallFormat, Pairs, ValueStyle, is_keyword, resolved, writing};
use crate::conversation::Tool;
use kernmill_constrain::Error;
use serde_json::Value;

/// Characters of the longest text that is counted. A longer limit counts as none.
const COUNTED: u64 = 4096;

impl TextGrammar<'_> {
    /// Adds the rule `name` of all arguments of a function, in the order of its schema.
    ///
    /// # Errors
    /// When a schema is too large, or an argument that must be there has a name that cannot be written.
    pub(super) fn pairs(
        &mut self,
        format: &CallFormat,
        marks: &Pairs,
        name: &str,
        tool: &Tool,
    ) -> Result<(), Error> {
        let root = tool.parameters.as_ref().unwrap_or(&Value::Null);
        let required = root["required"].as_array().map(Vec::as_slice).unwrap_or_default();
        let mut symbols = Vec::new();
        for (index, (key, schema)) in root["properties"].as_object().into_iter().flatten().enumerate() {
            let must_be = required.iter().any(|required| required == key);
            let is_plain = key.trim() == key && !key.contains('\n') && !key.contains(marks.after_key[0]);
            if !can_be_written(is_plain, must_be, tool)? {
                continue;
            }
            let value = format!("{name}_{index}");
            self.value(format, marks, &value, (schema, root), tool)?;
            let before = [marks.before_key, key, &marks.after_key.join(marks.space), marks.margin].concat();
            let pair = format!("{}_pair", value);
            let before = self.symbols(format, &before);
            self.grammar.rule(&pair, &format!("{before} {value} {}", quoted(marks.space)));
            symbols.push(if must_be { pair } else { format!("{pair}?") });
        }
        let end = self.symbols(format, marks.end);
        self.grammar.rule(name, &format!("{} {end}", symbols.join(" ")));
        Ok(())
    }

    /// Adds the rule `name` of all arguments of a function by keyword, in the order of its schema.
    ///
    /// # Errors
    /// As [`TextGrammar::pairs`].
    pub(super) fn keywords(&mut self, name: &str, tool: &Tool) -> Result<(), Error> {
        let root = tool.parameters.as_ref().unwrap_or(&Value::Null);
        let required = root["required"].as_array().map(Vec::as_slice).unwrap_or_default();
        let mut written = Vec::new();
        for (index, (key, schema)) in root["properties"].as_object().into_iter().flatten().enumerate() {
            let must_be = required.iter().any(|required| required == key);
            if !can_be_written(is_keyword(key), must_be, tool)? {
                continue;
            }
            let (value, pair) = (format!("{name}_{index}"), format!("{name}_{index}_pair"));
            if is_boolean(resolved(schema, root)) {
                // Some models write them as JSON does.
                self.grammar.rule(&value, "\"True\" | \"False\" | \"true\" | \"false\"");
            } else {
                self.json(&value, (schema, root), tool)?;
            }
            self.grammar.rule(&pair, &format!("{} {value}", quoted(&format!("{key}="))));
            written.push((pair, must_be));
        }
        // Texts that may follow the pairs so far, and the beginnings of each: only later ones have a comma.
        let (mut rest, mut all) = (String::new(), String::new());
        for (index, (pair, must_be)) in written.iter().enumerate().rev() {
            let others = if *must_be || all.is_empty() { String::new() } else { format!(" | {all}") };
            all = format!("{pair} {rest}{others}");
            let more = format!("{name}_rest_{index}");
            self.grammar.rule(&more, &format!("(\", \" {pair}){} {rest}", if *must_be { "" } else { "?" }));
            rest = more;
        }
        let may_be_none = written.iter().all(|(_, must_be)| !must_be);
        let all = if may_be_none && !all.is_empty() { format!("({all})?") } else { all };
        self.grammar.rule(name, &all);
        Ok(())
    }

    /// Adds the rule `name` of a value as JSON. `schema` has the definitions of its root beside it.
    fn json(&mut self, name: &str, (schema, root): (&Value, &Value), tool: &Tool) -> Result<(), Error> {
        let mut schema = schema.clone();
        for definitions in ["$defs", "definitions"] {
            if let Some(found) = root.get(definitions) {
                schema[definitions] = found.clone();
            }
        }
        let what = format!("the schema of the function `{}`", tool.name);
        self.grammar.schema(name, &what, &schema, tool.strict)
    }

    /// Adds the rule `name` of a value with the mark behind it. `schema` has the definitions of its root
    /// beside it.
    fn value(
        &mut self,
        format: &CallFormat,
        marks: &Pairs,
        name: &str,
        (schema, root): (&Value, &Value),
        tool: &Tool,
    ) -> Result<(), Error> {
        let body = match writing(schema, root) {
            ValueStyle::Text => Some(body(resolved(schema, root), tool.strict)),
            ValueStyle::TextOrNull => Some("ANY".to_owned()),
            ValueStyle::Json => None,
        };
        if let Some(body) = body {
            let (mark, margin) = (quoted(marks.after_value), quoted(marks.margin));
            let terminal = format!("{}_TEXT", name.to_uppercase());
            self.grammar.rule(&terminal, &format!("({body}) & ~(ANY {mark} ANY)"));
            self.until(name, &format!("{terminal} {margin}"), marks.after_value);
            return Ok(());
        }
        let json = format!("{name}_json");
        self.json(&json, (schema, root), tool)?;
        let end = self.symbols(format, &format!("{}{}", marks.margin, marks.after_value));
        self.grammar.rule(name, &format!("{json} {end}"));
        Ok(())
    }
}

/// Whether an argument can be written, whose name is plain or not.
///
/// # Errors
/// When it cannot, and must be there.
fn can_be_written(is_plain: bool, must_be: bool, tool: &Tool) -> Result<bool, Error> {
    if !is_plain && must_be {
        let what = format!("the function `{}`", tool.name);
        let reason = "the name of an argument has characters that end it".to_owned();
        return Err(Error::Rule { what, reason });
    }
    Ok(is_plain)
}

/// Whether a schema is that of both constants of Python, which JSON spells otherwise.
fn is_boolean(schema: &Value) -> bool {
    let limits = ["enum", "const", "anyOf", "oneOf", "allOf", "not", "if", "$ref"];
    schema["type"] == "boolean" && limits.iter().all(|limit| schema.get(limit).is_none())
}

/// The terminals of a text that a schema of a string describes.
fn body(schema: &Value, is_strict: bool) -> String {
    let constant = schema.get("const").into_iter();
    let values = schema["enum"].as_array().into_iter().flatten().chain(constant);
    let values: Vec<String> = values.filter_map(Value::as_str).map(quoted).collect();
    if !values.is_empty() {
        return values.join(" | ");
    }
    let least = schema["minLength"].as_u64().unwrap_or(0).min(COUNTED);
    let most = schema["maxLength"].as_u64().filter(|most| (least..=COUNTED).contains(most));
    let most = most.map(|most| most.to_string()).unwrap_or_default();
    let mut limits = Vec::new();
    if least > 0 || !most.is_empty() {
        limits.push(format!(r"/(.|\n){{{least},{most}}}/"));
    }
    // A pattern with a mistake is no reason to refuse a function that need not be followed to the letter.
    if let Some(pattern) = schema["pattern"].as_str().filter(|_| is_strict) {
        let (begin, rest) = pattern.strip_prefix('^').map_or(("ANY ", pattern), |rest| ("", rest));
        let (rest, end) = rest.strip_suffix('$').map_or((rest, " ANY"), |rest| (rest, ""));
        let middle = if rest.is_empty() { "\"\"".to_owned() } else { format!("/({})/", slashed(rest)) };
        limits.push(format!("{begin}{middle}{end}"));
    }
    if limits.is_empty() { "ANY".to_owned() } else { limits.join(" & ") }
}

/// An expression as it stands between slashes.
fn slashed(pattern: &str) -> String {
    let (mut text, mut is_escaped) = (String::new(), false);
    for c in pattern.chars() {
        match c {
            '/' if !is_escaped => text.push_str("\\/"),
            '\n' if !is_escaped => text.push_str("\\n"),
            c => text.push(c),
        }
        is_escaped = c == '\\' && !is_escaped;
    }
    text
}
