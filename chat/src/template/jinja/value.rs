//! Values of templates, as Python has them. None but namespaces can be changed.

use super::ast;
use super::budget::{Budget, Result, VALUE_DEPTH, failed};
use super::scope;
use super::text::TemplateText;
use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::rc::Rc;
use std::sync::Arc;

/// A value in a template.
#[derive(Clone)]
pub(in crate::template) enum Value {
    /// Something that is not there, with a description of it.
    Undefined(Arc<str>),
    None,
    Bool(bool),
    Int(i64),
    Float(f64),
    Text(TemplateText),
    List(Rc<List>),
    Dict(Rc<Dict>),
    /// Start, stop and step.
    Range(Rc<[i64; 3]>),
    /// Values that can be gone through once, and how deep they nest.
    Stream(Rc<(RefCell<std::vec::IntoIter<Value>>, u32)>),
    Namespace(Rc<Namespace>),
    Loop(Rc<Loop>),
    Macro(Rc<Definition>),
    /// A function that every template has.
    Function(&'static str),
    /// A value and the name of its method.
    Method(Rc<(Value, ast::Name)>),
    /// Values that follow each other in a circle, the number of the next, and how deep they nest.
    Cycler(Rc<(Vec<Value>, Cell<usize>, u32)>),
    /// A text between items, and whether there was one.
    Joiner(Rc<(TemplateText, Cell<bool>)>),
}

pub(super) type Scope = scope::Scope<Value>;
pub(in crate::template) type Namespace = scope::Namespace<Value>;
pub(in crate::template) type Definition = scope::Definition<Value>;
pub(in crate::template) type Loop = scope::Loop<Value>;

/// The Python type of a list of values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SequenceKind {
    List,
    Tuple,
    /// A tuple with the names `grouper` and `list`.
    Group,
    /// The view that a method of a dictionary gives, by its name.
    View(&'static str),
}

/// Values in order.
pub(in crate::template) struct List {
    pub items: Vec<Value>,
    pub(super) kind: SequenceKind,
    depth: u32,
}

/// Values by keys, in the order in which the keys came.
#[derive(Default)]
pub(in crate::template) struct Dict {
    entries: Vec<(Value, Value)>,
    /// Places of keys that are texts.
    by_text: HashMap<Arc<str>, usize>,
    depth: u32,
}

impl Value {
    /// A text that the template wrote.
    pub fn text(text: impl Into<Arc<str>>) -> Value {
        Value::Text(TemplateText::of_template(text))
    }

    pub fn undefined(what: impl Into<Arc<str>>) -> Value {
        Value::Undefined(what.into())
    }

    pub fn list(budget: &Budget, items: Vec<Value>) -> Result<Value> {
        Value::sequence(budget, items, SequenceKind::List)
    }

    pub fn tuple(budget: &Budget, items: Vec<Value>) -> Result<Value> {
        Value::sequence(budget, items, SequenceKind::Tuple)
    }

    pub(super) fn sequence(budget: &Budget, items: Vec<Value>, kind: SequenceKind) -> Result<Value> {
        let depth = deepest(budget, items.iter())?;
        Ok(Value::List(Rc::new(List { items, kind, depth })))
    }

    pub fn stream(budget: &Budget, items: Vec<Value>) -> Result<Value> {
        let depth = deepest(budget, items.iter())?;
        Ok(Value::Stream(Rc::new((items.into_iter().into(), depth))))
    }

    pub fn method(budget: &Budget, receiver: &Value, name: &ast::Name) -> Result<Value> {
        deepest(budget, [receiver].into_iter())?;
        Ok(Value::Method(Rc::new((receiver.clone(), name.clone()))))
    }

    /// How deep values nest in this one.
    pub fn depth(&self) -> u32 {
        match self {
            Value::List(list) => list.depth,
            Value::Dict(dict) => dict.depth,
            Value::Stream(stream) => stream.1,
            Value::Loop(state) => state.depth,
            Value::Method(method) => method.0.depth() + 1,
            Value::Cycler(cycler) => cycler.2,
            _ => 0,
        }
    }

    /// Name of the value's type in Python.
    pub fn type_name(&self) -> &'static str {
        match self {
            Value::Undefined(_) => "undefined",
            Value::None => "None",
            Value::Bool(_) => "bool",
            Value::Int(_) => "int",
            Value::Float(_) => "float",
            Value::Text(_) => "str",
            Value::List(list) => match list.kind {
                SequenceKind::List => "list",
                SequenceKind::Tuple | SequenceKind::Group => "tuple",
                SequenceKind::View(name) => name,
            },
            Value::Dict(_) => "dict",
            Value::Range(_) => "range",
            Value::Stream(_) => "generator",
            Value::Namespace(_) => "Namespace",
            Value::Loop(_) => "LoopContext",
            Value::Macro(_) => "Macro",
            Value::Function(_) => "function",
            Value::Method(_) => "method",
            Value::Cycler(_) => "Cycler",
            Value::Joiner(_) => "Joiner",
        }
    }

    /// Whether Python takes the value as true.
    pub fn is_true(&self) -> bool {
        match self {
            Value::Undefined(_) | Value::None => false,
            Value::Bool(bool) => *bool,
            Value::Int(number) => *number != 0,
            Value::Float(number) => *number != 0.0,
            Value::Text(text) => !text.as_str().is_empty(),
            Value::List(list) => !list.items.is_empty(),
            Value::Dict(dict) => !dict.entries.is_empty(),
            Value::Range(range) => range_length(range) > 0,
            _ => true,
        }
    }

    pub fn is_sequence(&self) -> bool {
        matches!(self, Value::List(list) if !matches!(list.kind, SequenceKind::View(_)))
    }

    /// The value as a whole number, as which Python takes true and false too.
    pub fn as_int(&self) -> Option<i64> {
        match self {
            Value::Bool(bool) => Some(i64::from(*bool)),
            Value::Int(number) => Some(*number),
            _ => None,
        }
    }

    pub fn as_float(&self) -> Option<f64> {
        match self {
            Value::Float(number) => Some(*number),
            other => other.as_int().map(|number| number as f64),
        }
    }

    pub fn as_str(&self) -> Option<&str> {
        match self {
            Value::Text(text) => Some(text.as_str()),
            _ => None,
        }
    }

    /// The number of items, or of characters of a text.
    pub fn length(&self, budget: &Budget) -> Result<usize> {
        match self {
            Value::Undefined(_) => Ok(0),
            Value::Text(text) => {
                budget.spend(text.as_str().len() / 8)?;
                Ok(text.as_str().chars().count())
            }
            Value::List(list) => Ok(list.items.len()),
            Value::Dict(dict) => Ok(dict.entries.len()),
            Value::Range(range) => Ok(range_length(range)),
            Value::Loop(state) => Ok(state.items.len()),
            other => failed(format!("a value of type {} has no length", other.type_name())),
        }
    }

    /// Items of the value: characters of a text, keys of a dictionary.
    pub fn items(&self, budget: &Budget) -> Result<Vec<Value>> {
        Ok(match self {
            Value::Undefined(_) => Vec::new(),
            Value::Text(text) => {
                budget.steps(text.as_str().len())?;
                let runs = text.runs();
                let one = |text: String, is_template: bool| match is_template {
                    true => TemplateText::of_template(text),
                    false => TemplateText::of_conversation(text),
                };
                let chars = |(run, is_template): (&str, bool)| {
                    let texts = run.chars().map(|c| Value::Text(one(c.to_string(), is_template)));
                    texts.collect::<Vec<Value>>()
                };
                runs.flat_map(chars).collect()
            }
            Value::List(list) => {
                budget.steps(list.items.len())?;
                list.items.clone()
            }
            Value::Dict(dict) => {
                budget.steps(dict.entries.len())?;
                dict.entries.iter().map(|(key, _)| key.clone()).collect()
            }
            Value::Range(range) => {
                let length = range_length(range);
                budget.steps(length)?;
                (0..length as i64).map(|n| Value::Int(range[0] + n * range[2])).collect()
            }
            Value::Stream(stream) => {
                let items = std::mem::take(&mut *stream.0.borrow_mut());
                budget.steps(items.len())?;
                items.collect()
            }
            other => return failed(format!("a value of type {} has no items", other.type_name())),
        })
    }
}

/// How deep a value with such items is. Every item uses up a step.
pub(super) fn deepest<'v>(budget: &Budget, items: impl Iterator<Item = &'v Value>) -> Result<u32> {
    let (mut depth, mut count) = (0, 0);
    for item in items {
        depth = depth.max(item.depth());
        count += 1;
    }
    budget.steps(count + 1)?;
    if depth >= VALUE_DEPTH {
        return failed(format!("values nest deeper than {VALUE_DEPTH}"));
    }
    Ok(depth + 1)
}

/// How many numbers a range has.
pub(super) fn range_length([start, stop, step]: &[i64; 3]) -> usize {
    let (start, stop, step) = (i128::from(*start), i128::from(*stop), i128::from(*step));
    let distance = if step > 0 { stop - start } else { start - stop };
    usize::try_from((distance + step.abs() - 1) / step.abs().max(1)).unwrap_or(0)
}

impl Dict {
    /// A dictionary of keys and values. A later value replaces an earlier one.
    pub fn of(budget: &Budget, entries: impl IntoIterator<Item = (Value, Value)>) -> Result<Dict> {
        let mut dict = Dict::default();
        for (key, value) in entries {
            check_key(budget, &key)?;
            match dict.place(budget, &key)? {
                Some(at) => dict.entries[at].1 = value,
                None => {
                    if let Value::Text(text) = &key {
                        dict.by_text.insert(text.as_str().into(), dict.entries.len());
                    }
                    dict.entries.push((key, value));
                }
            }
        }
        dict.depth = deepest(budget, dict.entries.iter().flat_map(|(key, value)| [key, value]))?;
        Ok(dict)
    }

    pub fn entries(&self) -> &[(Value, Value)] {
        &self.entries
    }

    fn place(&self, budget: &Budget, key: &Value) -> Result<Option<usize>> {
        if let Value::Text(text) = key {
            budget.spend(text.as_str().len())?;
            return Ok(self.by_text.get(text.as_str()).copied());
        }
        if self.by_text.len() == self.entries.len() {
            return Ok(None);
        }
        for (at, (known, _)) in self.entries.iter().enumerate() {
            if equal(budget, known, key)? {
                return Ok(Some(at));
            }
        }
        Ok(None)
    }

    /// The value of a key.
    pub fn get(&self, budget: &Budget, key: &Value) -> Result<Option<&Value>> {
        Ok(self.place(budget, key)?.map(|at| &self.entries[at].1))
    }

    /// The value of a key that is a text.
    pub fn named(&self, key: &str) -> Option<&Value> {
        self.by_text.get(key).map(|at| &self.entries[*at].1)
    }
}

/// Refuses what Python cannot have as a key.
pub(super) fn check_key(budget: &Budget, key: &Value) -> Result<()> {
    match key {
        Value::List(list) if matches!(list.kind, SequenceKind::Tuple | SequenceKind::Group) => {
            budget.steps(1)?;
            list.items.iter().try_for_each(|item| check_key(budget, item))
        }
        Value::List(_) | Value::Dict(_) | Value::Namespace(_) => {
            failed(format!("a value of type {} is no key", key.type_name()))
        }
        _ => Ok(()),
    }
}

/// Whether two values are equal.
pub(super) fn equal(budget: &Budget, left: &Value, right: &Value) -> Result<bool> {
    budget.spend(32)?;
    Ok(match (left, right) {
        (Value::Text(left), Value::Text(right)) => {
            let (left, right) = (left.as_str(), right.as_str());
            left.len() == right.len() && {
                budget.spend(left.len() / 8)?;
                left == right
            }
        }
        (Value::List(left), Value::List(right)) => {
            let same = match (left.kind, right.kind) {
                (SequenceKind::Tuple | SequenceKind::Group, SequenceKind::Tuple | SequenceKind::Group) => {
                    true
                }
                (left, right) => left == right,
            };
            same && left.items.len() == right.items.len() && {
                for (left, right) in left.items.iter().zip(&right.items) {
                    if !equal(budget, left, right)? {
                        return Ok(false);
                    }
                }
                true
            }
        }
        (Value::Dict(left), Value::Dict(right)) => {
            left.entries().len() == right.entries().len() && {
                for (key, value) in left.entries() {
                    match right.get(budget, key)? {
                        Some(other) if equal(budget, value, other)? => {}
                        _ => return Ok(false),
                    }
                }
                true
            }
        }
        (Value::Range(left), Value::Range(right)) => left == right,
        (Value::None, Value::None) | (Value::Undefined(_), Value::Undefined(_)) => true,
        _ => match (left.as_int(), right.as_int()) {
            (Some(left), Some(right)) => left == right,
            _ => match (left.as_float(), right.as_float()) {
                (Some(left), Some(right)) => left == right,
                _ => same(left, right),
            },
        },
    })
}

/// Whether two values are the same object.
pub(super) fn same(left: &Value, right: &Value) -> bool {
    match (left, right) {
        (Value::None, Value::None) => true,
        (Value::Bool(left), Value::Bool(right)) => left == right,
        (Value::Int(left), Value::Int(right)) => left == right,
        (Value::List(left), Value::List(right)) => Rc::ptr_eq(left, right),
        (Value::Dict(left), Value::Dict(right)) => Rc::ptr_eq(left, right),
        (Value::Stream(left), Value::Stream(right)) => Rc::ptr_eq(left, right),
        (Value::Namespace(left), Value::Namespace(right)) => Rc::ptr_eq(left, right),
        (Value::Loop(left), Value::Loop(right)) => Rc::ptr_eq(left, right),
        (Value::Macro(left), Value::Macro(right)) => Rc::ptr_eq(left, right),
        (Value::Function(left), Value::Function(right)) => left == right,
        (Value::Text(left), Value::Text(right)) => std::ptr::eq(left.as_str(), right.as_str()),
        _ => false,
    }
}
