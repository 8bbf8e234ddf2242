//! The JSON schema of fused-op specs, for editors: made of the same tables as the reader.

use super::define::{FUNCTION_KEYS, OP_KEYS};
use super::guard::Quantity;
use super::read::{KEYS, NODE_KEYS, SCHEDULE_KEYS};
use super::read_guard::GUARDS;
use super::repeat::MAX_REPEAT;
use crate::ir::RowKind;
use crate::ir::ops::places::{KernelTemplate, MemberRole};
use crate::ir::ops::{pattern_ops, spec_ops};
use kernmill_plan::format::WeightFormat;
use kernmill_plan::target::Level;
use serde_json::{Map, Value, json};

/// The schema.
pub fn schema() -> Value {
    let properties = properties(&KEYS, &|key| match key {
        "name" => described(name(), "unique name; kernels and listings have it"),
        "doc" => described(text(), "one line on what it is for"),
        "priority" => described(
            json!({"type": "integer"}),
            "specs of higher priority come first; the built-in ones have 90 to 800",
        ),
        "before" => described(text(), "directly before the spec of that name"),
        "after" => described(text(), "directly behind the spec of that name"),
        "kernel" => described(
            one_of(KernelTemplate::NAMED.map(|(name, _)| name)),
            "kind of kernel that a match becomes",
        ),
        "match" => described(array(node()), "the ops to match"),
        "outputs" => described(names(), "nodes whose values may be read outside of the kernel"),
        "kv_write" => described(names(), "keys and values that go to the KV cache only"),
        "guard" => described(array(guard()), "conditions on a match"),
        "schedule" => schedule(),
        "function" => described(array(function()), "functions that expressions may call"),
        _ => described(array(op()), "ops that stand for nodes"),
    });
    json!({
        "$schema": "http://json-schema.org/draft-07/schema#",
        "title": "kernmill fused-op spec",
        "type": "object",
        "properties": properties,
        "required": ["name", "doc"],
        "additionalProperties": false,
    })
}

fn properties(keys: &[&str], of: &dyn Fn(&str) -> Value) -> Value {
    Value::Object(keys.iter().map(|key| ((*key).to_owned(), of(key))).collect::<Map<_, _>>())
}

fn object(keys: &[&str], required: &[&str], of: &dyn Fn(&str) -> Value) -> Value {
    json!({
        "type": "object",
        "properties": properties(keys, of),
        "required": required,
        "additionalProperties": false,
    })
}

fn described(mut schema: Value, description: &str) -> Value {
    schema["description"] = description.into();
    schema
}

fn text() -> Value {
    json!({"type": "string", "minLength": 1})
}

fn name() -> Value {
    json!({"type": "string", "pattern": "^[A-Za-z_][A-Za-z0-9_]*$"})
}

fn names() -> Value {
    json!({"anyOf": [name(), {"type": "array", "items": name()}]})
}

fn one_of<'a>(names: impl IntoIterator<Item = &'a str>) -> Value {
    json!({"enum": names.into_iter().collect::<Vec<_>>()})
}

fn some_of<'a>(names: impl IntoIterator<Item = &'a str>) -> Value {
    let one = one_of(names);
    json!({"anyOf": [one, {"type": "array", "items": one}]})
}

fn array(items: Value) -> Value {
    json!({"type": "array", "items": items})
}

fn node() -> Value {
    object(&NODE_KEYS, &["name", "op", "inputs", "part"], &|key| match key {
        "name" => described(name(), "name of the matched node"),
        "op" => {
            let known = pattern_ops().map(|(name, _)| name).collect::<Vec<_>>();
            let own = json!({"anyOf": [{"enum": known}, name()]});
            described(
                json!({"anyOf": [own, {"type": "array", "items": own}]}),
                "ops that fit, or one [[op]] of this file",
            )
        }
        "inputs" => described(names(), "nodes of the pattern, or names of outside values"),
        "part" => {
            described(one_of(MemberRole::NAMED.map(|(name, _)| name)), "what the node is to the kernel")
        }
        "expr" => described(text(), "the expression that a glu or elementwise op must have"),
        "optional" => described(
            json!({"type": "boolean"}),
            "whether it may be absent; its first input stands for it then",
        ),
        "repeat" => described(
            json!({"type": "integer", "minimum": 2, "maximum": MAX_REPEAT}),
            "of a root: how many nodes it stands for at most; a match has as many as fit",
        ),
        _ => described(json!({"type": "boolean"}), "whether inputs match in any order"),
    })
}

fn guard() -> Value {
    let mut keys = vec!["check", "when", "why"];
    keys.extend(Quantity::NAMED.map(|(name, _)| name));
    keys.extend(GUARDS.iter().flat_map(|(_, keys)| *keys));
    keys.sort_unstable();
    keys.dedup();
    object(&keys, &["check", "why"], &|key| match key {
        "check" => described(one_of(GUARDS.map(|(name, _)| name)), "what is checked"),
        "why" => described(text(), "why the kernel needs it"),
        "by" | "min" | "max" => json!({"type": "integer", "minimum": 0}),
        "of" => names(),
        "is" => {
            let rows = RowKind::NAMED.map(|(name, _)| name);
            some_of(WeightFormat::ALL.map(|format| format.name()).into_iter().chain(rows))
        }
        "has" => {
            let mut known: Vec<&str> = Level::ALL.iter().flat_map(|level| level.features().names()).collect();
            known.sort_unstable();
            known.dedup();
            some_of(known)
        }
        "when" => described(name(), "only when this optional node is there"),
        _ => name(),
    })
}

fn schedule() -> Value {
    object(&SCHEDULE_KEYS, &[], &|key| match key {
        "prologue" => {
            described(one_of(["workers", "step"]), "computed by every worker for itself, or a step before")
        }
        "tiling" => described(one_of(["panels", "dots"]), "how matrices are multiplied"),
        _ => described(json!({"enum": [16, 32]}), "output rows per work item"),
    })
}

fn function() -> Value {
    object(&FUNCTION_KEYS, &FUNCTION_KEYS, &|key| match key {
        "name" => name(),
        "params" => names(),
        "expr" => described(text(), "an elementwise expression of the parameters"),
        _ => text(),
    })
}

fn op() -> Value {
    let mut params: Vec<&str> = spec_ops().flat_map(|op| op.params).map(|param| param.name).collect();
    params.extend(["op", "out"]);
    params.sort_unstable();
    params.dedup();
    object(&OP_KEYS, &["name", "doc", "inputs", "node"], &|key| match key {
        "name" => name(),
        "doc" => text(),
        "node" => {
            let any = json!({"type": ["string", "number", "array"]});
            let node = json!({"type": "object", "properties": properties(&params, &|_| any.clone()),
                "required": ["op", "out"]});
            described(array(node), "nodes as in a model spec; the last one computes the result")
        }
        _ => names(),
    })
}
