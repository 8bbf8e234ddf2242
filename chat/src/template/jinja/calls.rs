//! Calls: functions that every template has, macros, methods, loops.

use super::arguments::GivenArguments;
use super::ast::{self, Name, StatementLine, TemplateExpr};
use super::budget::{Budget, Result, TemplateFault, failed};
use super::methods;
use super::text::TextBuilder;
use super::value::{Definition, Dict, Loop, Namespace, Scope, Value, deepest, equal, range_length};
use std::rc::Rc;
use std::sync::Arc;

/// Services of a run that calls need.
pub(super) trait Runner {
    fn budget(&self) -> &Budget;

    /// Text of the time in a form.
    fn time(&self, format: &str) -> String;

    /// Keeps what may hold itself to the end of the run.
    fn keep_namespace(&self, space: &Rc<Namespace>);

    fn keep_loop(&self, state: &Rc<Loop>);

    fn value(&self, expression: &TemplateExpr, scope: &Rc<Scope>) -> Result<Value>;

    fn write(&self, body: &[StatementLine], scope: &Rc<Scope>, out: &mut TextBuilder) -> Result<()>;

    /// Runs a loop, which may be inside of itself `level` times.
    fn repeat(
        &self,
        definition: &Arc<ast::ForLoop>,
        items: &Value,
        scope: &Rc<Scope>,
        level: usize,
        out: &mut TextBuilder,
    ) -> Result<()>;
}

/// Most numbers of a range.
const RANGE: usize = 100_000;

const FUNCTIONS: [&str; 7] =
    ["range", "dict", "namespace", "cycler", "joiner", "raise_exception", "strftime_now"];

/// The function of a name, if there is one.
pub(super) fn function(name: &str) -> Option<Value> {
    FUNCTIONS.iter().find(|known| **known == name).map(|name| Value::Function(name))
}

/// The result of a call. `caller` is the block of a `call` statement.
pub(super) fn call(
    run: &dyn Runner,
    value: &Value,
    given: GivenArguments,
    caller: Option<Value>,
) -> Result<Value> {
    let budget = run.budget();
    budget.steps(1)?;
    match value {
        Value::Macro(definition) => budget.deeper(|| expand(run, definition, given, caller)),
        Value::Method(method) => match (&method.0, &*method.1) {
            (Value::Loop(state), "cycle") => {
                let (at, count) = (state.at.get(), given.positional.len());
                match given.positional.into_iter().nth(at % count.max(1)) {
                    Some(value) => Ok(value),
                    None => failed("`loop.cycle` needs a value"),
                }
            }
            (Value::Loop(state), _) => {
                run.keep_loop(state);
                Ok(Value::Bool(changed(state, budget, given.positional)?))
            }
            (Value::Cycler(cycler), name) => {
                let at = cycler.1.get();
                cycler.1.set(if name == "next" { (at + 1) % cycler.0.len() } else { 0 });
                Ok(if name == "next" { cycler.0[at].clone() } else { Value::None })
            }
            (value, _) => methods::call(budget, value, &method.1, given),
        },
        Value::Loop(state) if state.definition.is_recursive => {
            let given = given.bind("loop", ["items"])?;
            let mut out = TextBuilder::new(budget);
            let items = given.need(0)?;
            run.repeat(&state.definition, items, &state.scope, state.level + 1, &mut out)?;
            Ok(Value::Text(out.finish()))
        }
        Value::Joiner(joiner) => {
            Ok(if joiner.1.replace(true) { Value::Text(joiner.0.clone()) } else { Value::text("") })
        }
        Value::Function(name) => builtin(run, name, given),
        Value::Undefined(what) => failed(what.to_string()),
        other => failed(format!("a value of type {} cannot be called", other.type_name())),
    }
}

fn builtin(run: &dyn Runner, name: &str, given: GivenArguments) -> Result<Value> {
    let budget = run.budget();
    match name {
        "range" => {
            let given = given.bind(name, ["start", "stop", "step"])?;
            given.need(0)?;
            let (first, step) = (given.int(0, 0)?, given.int(2, 1)?);
            let bounds =
                if given.get(1).is_some() { [first, given.int(1, 0)?, step] } else { [0, first, step] };
            if step == 0 {
                return failed("`range` has a step of zero");
            }
            if range_length(&bounds) > RANGE {
                return failed(format!("`range` has more than {RANGE} numbers"));
            }
            Ok(Value::Range(Rc::new(bounds)))
        }
        "dict" => Ok(Value::Dict(Rc::new(entries(run, name, given)?))),
        "namespace" => {
            let space = Rc::new(Namespace::default());
            for (key, value) in entries(run, name, given)?.entries() {
                let Some(key) = key.as_str() else { return failed("`namespace` needs names") };
                if key.starts_with('_') {
                    return failed(format!("an attribute of a namespace begins with `_`: `{key}`"));
                }
                space.set(&key.into(), value.clone());
            }
            run.keep_namespace(&space);
            Ok(Value::Namespace(space))
        }
        "cycler" => {
            if given.positional.is_empty() {
                return failed("`cycler` needs a value");
            }
            let depth = deepest(budget, given.positional.iter())?;
            Ok(Value::Cycler(Rc::new((given.positional, 0.into(), depth))))
        }
        "joiner" => {
            let given = given.bind(name, ["sep"])?;
            let text = match given.get(0) {
                Some(text) => super::write::text(budget, text)?,
                None => super::text::TemplateText::of_template(", "),
            };
            Ok(Value::Joiner(Rc::new((text, false.into()))))
        }
        "raise_exception" => {
            let given = given.bind(name, ["message"])?;
            let message = super::write::text(budget, given.need(0)?)?;
            Err(Box::new(TemplateFault::Refused(message.as_str().to_owned())))
        }
        _ => {
            let given = given.bind(name, ["format"])?;
            let format = given.need_text(0)?.as_str();
            budget.spend(format.len().saturating_mul(16))?;
            Ok(Value::text(run.time(format)))
        }
    }
}

/// Entries of a dictionary that are given as one, as pairs, or as named arguments.
fn entries(run: &dyn Runner, name: &str, given: GivenArguments) -> Result<Dict> {
    let budget = run.budget();
    let GivenArguments { mut positional, named } = given;
    if positional.len() > 1 {
        return failed(format!("`{name}` takes one value and named ones"));
    }
    let mut entries = Vec::new();
    match positional.pop() {
        None => {}
        Some(Value::Dict(dict)) => entries.extend(dict.entries().iter().cloned()),
        Some(value) => {
            for pair in value.items(budget)? {
                let mut pair = pair.items(budget)?;
                match (pair.pop(), pair.pop(), pair.is_empty()) {
                    (Some(value), Some(key), true) => entries.push((key, value)),
                    _ => return failed(format!("`{name}` takes pairs of keys and values")),
                }
            }
        }
    }
    entries.extend(named.into_iter().map(|(name, value)| (Value::text(name), value)));
    Dict::of(budget, entries)
}

/// The text of a macro.
fn expand(
    run: &dyn Runner,
    macro_: &Rc<Definition>,
    given: GivenArguments,
    caller: Option<Value>,
) -> Result<Value> {
    let (definition, budget) = (&macro_.definition, run.budget());
    let scope = Scope::new(Some(macro_.scope.clone()));
    let GivenArguments { positional, mut named } = given;
    let mut positional = positional.into_iter();
    let mut missing = Vec::new();
    for (name, default) in &definition.parameters {
        let by_name = named.iter().position(|(known, _)| known == name).map(|at| named.remove(at).1);
        match (positional.next(), by_name) {
            (Some(_), Some(_)) => {
                return failed(format!("`{}` has the argument `{name}` twice", definition.name));
            }
            (Some(value), None) | (None, Some(value)) => scope.set(name, value),
            (None, None) => missing.push((name, default)),
        }
    }
    let mut caller = caller;
    if let Some(at) = named.iter().position(|(name, _)| &**name == "caller") {
        caller = Some(named.remove(at).1);
    }
    // Defaults may use the parameters before them.
    for (name, default) in missing {
        let value = match default {
            Some(default) => run.value(default, &scope)?,
            None => Value::undefined(format!("the parameter `{name}` of `{}` is not given", definition.name)),
        };
        scope.set(name, value);
    }
    let more: Vec<Value> = positional.collect();
    if definition.takes_more {
        scope.set(&Name::from("varargs"), Value::tuple(budget, more)?);
    } else if !more.is_empty() {
        let most = definition.parameters.len();
        return failed(format!("`{}` has more than {most} arguments", definition.name));
    }
    if definition.takes_more_named {
        scope.set(&Name::from("kwargs"), GivenArguments::named_dict(budget, named)?);
    } else if let Some((name, _)) = named.first() {
        return failed(format!("`{}` has no argument `{name}`", definition.name));
    }
    if definition.takes_caller {
        let none = || Value::undefined("there is no block that calls");
        scope.set(&Name::from("caller"), caller.unwrap_or_else(none));
    } else if caller.is_some() {
        return failed(format!("`{}` does not use `caller`", definition.name));
    }
    let mut out = TextBuilder::new(budget);
    run.write(&definition.body, &scope, &mut out)?;
    Ok(Value::Text(out.finish()))
}

/// Whether `loop.changed` was given something else the last time.
fn changed(state: &Loop, budget: &Budget, values: Vec<Value>) -> Result<bool> {
    deepest(budget, values.iter())?;
    let mut last = state.last.borrow_mut();
    let is_same = match &*last {
        Some(last) if last.len() == values.len() => {
            let mut is_same = true;
            for (last, value) in last.iter().zip(&values) {
                is_same = is_same && equal(budget, last, value)?;
            }
            is_same
        }
        _ => false,
    };
    *last = Some(values);
    Ok(!is_same)
}
