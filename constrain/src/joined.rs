//! Regular expressions that one text must match together.
//!
//! To see whether any text matches several expressions, all ways on of one are tried with all ways on of
//! the others, before any work is counted. How many these are at most is estimated here, from the sets of
//! bytes in the expressions, and bounded.

use crate::error::Error;
use llguidance::derivre::raw::ExprSet;
use llguidance::derivre::{ExprRef, RegexAst, RegexBuilder};
use llguidance::regex_to_lark;
use serde_json::Value;
use std::collections::{BTreeMap, HashMap, HashSet};

/// Ways on that are tried together at most, over all bytes.
const WAYS: u64 = 100_000;

/// Parts of expressions that are looked at, to find the ways on.
const PARTS: usize = 300_000;

/// Schemas that are looked at, references followed.
const SCHEMAS: usize = 100_000;

/// For each byte, how many ways on an expression may have at once.
type Ways = [u32; 256];

/// Checks the expressions of a schema that one text must match together. `what` names it in errors. The
/// schema has at most `depth` levels, and references are followed as far.
///
/// # Errors
/// When there are too many, or it cannot be found out.
pub(crate) fn check_schema(what: &str, schema: &Value, depth: usize) -> Result<(), Error> {
    let mut left = PARTS;
    let mut check = |patterns: &[&str]| {
        let mut builder = RegexBuilder::new();
        let mut ways = Vec::new();
        for pattern in patterns.iter().collect::<HashSet<_>>() {
            // Mistakes are found later, and named.
            let Ok(expression) = builder.mk(&RegexAst::SearchRegex(regex_to_lark(pattern, "dw"))) else {
                return Ok(());
            };
            ways.push(ways_of(builder.exprset(), expression, &mut left));
        }
        if left > 0 && product(&ways) <= WAYS {
            return Ok(());
        }
        Err(format!(
            "a text must match {} of its patterns together (`allOf`), whose ways on multiply to more than \
             {WAYS}: fewer or simpler ones help",
            ways.len()
        ))
    };
    let checked = ExpressionJoiner::new(schema, depth).read(&mut check);
    checked.map_err(|reason| Error::Rule { what: what.to_owned(), reason })
}

/// Checks the expressions of a lexer that are joined.
///
/// # Errors
/// When there are too many ways on.
pub(crate) fn check_lexer(expressions: &ExprSet) -> Result<(), String> {
    let mut left = PARTS;
    for id in 1..expressions.len() as u32 {
        let id = ExprRef::new(id);
        if format!("{:?}", expressions.get_tag(id)) != "And" {
            continue;
        }
        let parts = expressions.get_args(id).iter();
        let ways: Vec<Ways> = parts.map(|part| ways_of(expressions, *part, &mut left)).collect();
        if left == 0 || product(&ways) > WAYS {
            return Err(format!(
                "{} expressions are joined by `&` whose ways on multiply to more than {WAYS}: fewer or \
                 simpler ones help",
                ways.len()
            ));
        }
    }
    Ok(())
}

/// How many ways on are tried together, over all bytes.
fn product(ways: &[Ways]) -> u64 {
    let at = |byte: usize| ways.iter().fold(1u64, |all, ways| all.saturating_mul(u64::from(ways[byte])));
    (0..256).map(at).fold(0, u64::saturating_add)
}

/// How many ways on an expression may have at once: sets of bytes in it that have the byte. `left` counts
/// down with the parts that are looked at.
fn ways_of(expressions: &ExprSet, root: ExprRef, left: &mut usize) -> Ways {
    // All sets with one byte are one.
    let mut ways = [1; 256];
    let (mut seen, mut todo) = (HashSet::from([root]), vec![root]);
    while let Some(id) = todo.pop() {
        *left = left.saturating_sub(1);
        if *left == 0 {
            break;
        }
        let parts = expressions.get_args(id);
        todo.extend(parts.iter().filter(|part| seen.insert(**part)));
        if parts.is_empty() {
            let expression = expressions.get(id);
            let bytes: Vec<u8> = (0..=u8::MAX).filter(|byte| !expression.surely_no_match(*byte)).collect();
            if bytes.len() > 1 {
                bytes.iter().for_each(|byte| ways[usize::from(*byte)] += 1);
            }
        }
    }
    ways
}

/// A part of a value: a member by its name, or any.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum ValueMember<'a> {
    Any,
    Named(&'a str),
}

/// Finds the expressions that hold for the same text.
struct ExpressionJoiner<'a> {
    root: &'a Value,
    /// Number of expressions in each schema, by its address.
    counts: HashMap<*const Value, usize>,
    /// Schemas that may still be looked at.
    left: usize,
    /// Steps from a schema to one that holds for the same value.
    depth: usize,
}

impl<'a> ExpressionJoiner<'a> {
    fn new(root: &'a Value, depth: usize) -> ExpressionJoiner<'a> {
        let mut reader = ExpressionJoiner { root, counts: HashMap::new(), left: SCHEMAS, depth };
        reader.count(root);
        reader
    }

    /// Counts the expressions in a value.
    fn count(&mut self, value: &'a Value) -> usize {
        let count = match value {
            Value::Object(members) => members.iter().fold(0, |sum, (name, value)| {
                sum + usize::from(name == "pattern" && value.is_string()) + self.count(value)
            }),
            Value::Array(values) => values.iter().fold(0, |sum, value| sum + self.count(value)),
            _ => 0,
        };
        self.counts.insert(value, count);
        count
    }

    /// Gives `check` the expressions that one text must match, wherever these are several.
    fn read(mut self, check: &mut impl FnMut(&[&str]) -> Result<(), String>) -> Result<(), String> {
        // Without two expressions, no text must match several.
        let is_one = self.counts.get(&(&raw const *self.root)).is_none_or(|count| *count < 2);
        let mut todo = if is_one { Vec::new() } else { vec![vec![self.root]] };
        let mut seen = HashSet::new();
        while let Some(schemas) = todo.pop() {
            if !seen.insert(schemas.iter().map(|schema| &raw const **schema).collect::<Vec<_>>()) {
                continue;
            }
            let (mut patterns, mut parts) = (Vec::new(), Vec::new());
            for schema in &schemas {
                self.patterns(schema, 0, &mut patterns);
                self.parts(schema, 0, &mut parts);
            }
            if self.left == 0 {
                return Err(format!("its references lead to more than {SCHEMAS} schemas, expected fewer"));
            }
            if patterns.len() > 1 {
                check(&patterns)?;
            }
            // Each alternative is looked at by itself, too.
            todo.extend(schemas.iter().flat_map(|schema| alternatives(schema)).map(|schema| vec![schema]));
            let any: Vec<&Value> =
                parts.iter().filter(|part| part.0 == ValueMember::Any).map(|part| part.1).collect();
            let mut groups = BTreeMap::new();
            for (part, schema) in parts {
                groups.entry(part).or_insert_with(Vec::new).push(schema);
            }
            todo.extend(groups.into_iter().map(|(part, mut schemas)| {
                if part != ValueMember::Any {
                    schemas.extend(&any);
                }
                schemas
            }));
        }
        Ok(())
    }

    /// Adds the expressions that a text of a schema matches itself.
    fn patterns(&mut self, schema: &'a Value, depth: usize, found: &mut Vec<&'a str>) {
        if !self.goes_on(depth) {
            return;
        }
        found.extend(schema.get("pattern").and_then(Value::as_str));
        for schema in all_of(schema).chain(self.referred(schema)) {
            self.patterns(schema, depth + 1, found);
        }
        for alternatives in choices(schema) {
            let mut most = Vec::new();
            for schema in alternatives {
                let mut found = Vec::new();
                self.patterns(schema, depth + 1, &mut found);
                most = if found.len() > most.len() { found } else { most };
            }
            found.extend(most);
        }
    }

    /// Adds the schemas of the parts of a value that a schema describes.
    fn parts(&mut self, schema: &'a Value, depth: usize, found: &mut Vec<(ValueMember<'a>, &'a Value)>) {
        if !self.goes_on(depth) {
            return;
        }
        let named = schema.get("properties").and_then(Value::as_object).into_iter().flatten();
        found.extend(named.map(|(name, schema)| (ValueMember::Named(name), schema)));
        let patterned = schema.get("patternProperties").and_then(Value::as_object).into_iter().flatten();
        let listed = schema.get("prefixItems").and_then(Value::as_array).into_iter().flatten();
        let rest = ["additionalProperties", "items"].into_iter().filter_map(|name| schema.get(name));
        found.extend(
            patterned
                .map(|(_, schema)| schema)
                .chain(listed)
                .chain(rest)
                .map(|schema| (ValueMember::Any, schema)),
        );
        for schema in all_of(schema).chain(self.referred(schema)) {
            self.parts(schema, depth + 1, found);
        }
        for alternatives in choices(schema) {
            // The one with the most expressions stands for all.
            let mut most: BTreeMap<ValueMember, &Value> = BTreeMap::new();
            for schema in alternatives {
                let mut found = Vec::new();
                self.parts(schema, depth + 1, &mut found);
                for (part, schema) in found {
                    let kept = most.entry(part).or_insert(schema);
                    if self.counts.get(&(&raw const *schema)) > self.counts.get(&(&raw const **kept)) {
                        *kept = schema;
                    }
                }
            }
            found.extend(most);
        }
    }

    /// Counts a schema that is looked at; whether it may be.
    fn goes_on(&mut self, depth: usize) -> bool {
        self.left = self.left.saturating_sub(1);
        self.left > 0 && depth < self.depth
    }

    /// The schema that a schema refers to.
    fn referred(&self, schema: &Value) -> Option<&'a Value> {
        self.root.pointer(schema.get("$ref")?.as_str()?.strip_prefix('#')?)
    }
}

fn all_of(schema: &Value) -> impl Iterator<Item = &Value> {
    schema.get("allOf").and_then(Value::as_array).into_iter().flatten()
}

/// The alternatives of a schema's `anyOf` and of its `oneOf`.
fn choices(schema: &Value) -> impl Iterator<Item = &Vec<Value>> {
    ["anyOf", "oneOf"].into_iter().filter_map(|name| schema.get(name)?.as_array())
}

fn alternatives(schema: &Value) -> impl Iterator<Item = &Value> {
    choices(schema).flatten()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    /// Expressions with two ways on at the letter `a`.
    fn search(n: usize) -> Value {
        json!({ "type": "string", "pattern": format!(".*a.{{{n}}}b.*") })
    }

    #[test]
    fn many_expressions_for_one_text_are_refused_wherever_they_come_from() {
        let many = || (0..20).map(search).collect::<Vec<_>>();
        let within =
            |name: &str| many().into_iter().map(|schema| json!({ name: schema })).collect::<Vec<_>>();
        let named = many().into_iter().map(|schema| json!({ "properties": { "a": schema } }));
        let chosen = many().into_iter().map(|schema| json!({ "anyOf": [schema, { "type": "string" }] }));
        let defined: Value =
            many().into_iter().enumerate().map(|(n, schema)| (n.to_string(), schema)).collect();
        let referring = (0..20).map(|n| json!({ "$ref": format!("#/$defs/{n}") }));
        for schema in [
            json!({ "allOf": many() }),
            json!({ "properties": { "x": { "anyOf": [{}, { "allOf": many() }] } } }),
            json!({ "allOf": within("items") }),
            json!({ "allOf": within("additionalProperties") }),
            json!({ "allOf": named.collect::<Vec<_>>() }),
            json!({ "allOf": chosen.collect::<Vec<_>>() }),
            json!({ "$defs": defined, "allOf": referring.collect::<Vec<_>>() }),
        ] {
            let error = check_schema("the schema", &schema, 64).expect_err(&schema.to_string()).to_string();
            assert!(
                error.starts_with("the schema: a text must match 20 of its patterns together"),
                "{error}"
            );
        }
    }

    #[test]
    fn what_schemas_have_is_taken() {
        let password = ["[a-z]", "[A-Z]", "[0-9]", "^.{8,64}$"].map(|pattern| json!({ "pattern": pattern }));
        let record = |n: usize| json!({ "properties": { format!("field_{n}"): search(n) } });
        let tree = json!({
            "$defs": { "node": { "properties": {
                "name": { "pattern": "^[a-z]+$" },
                "left": { "$ref": "#/$defs/node" },
                "right": { "allOf": [{ "$ref": "#/$defs/node" }] },
            } } },
            "$ref": "#/$defs/node",
        });
        for schema in [
            json!({ "allOf": password }),
            json!({ "allOf": (0..100).map(record).collect::<Vec<_>>() }),
            json!({ "anyOf": (0..100).map(search).collect::<Vec<_>>() }),
            json!({ "properties": { "a": search(1), "b": search(2), "allOf": search(3) } }),
            tree,
        ] {
            assert_eq!(check_schema("the schema", &schema, 64), Ok(()), "{schema}");
        }
    }
}
