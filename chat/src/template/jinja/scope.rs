//! Names and their values, and what outlives the block that made it.

use super::ast;
use super::budget::{Budget, Result};
use super::value::{Value, deepest};
use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::sync::Arc;

/// Names of a block, before those of the block around it.
#[derive(Default)]
pub(super) struct Scope {
    names: RefCell<Vec<(ast::Name, Value)>>,
    parent: Option<Rc<Scope>>,
}

impl Scope {
    pub fn new(parent: Option<Rc<Scope>>) -> Rc<Scope> {
        Rc::new(Scope { names: RefCell::default(), parent })
    }

    pub fn get(&self, name: &str) -> Option<Value> {
        let mut scope = self;
        loop {
            if let Some((_, value)) = scope.names.borrow().iter().find(|(known, _)| &**known == name) {
                return Some(value.clone());
            }
            scope = scope.parent.as_deref()?;
        }
    }

    pub fn set(&self, name: &ast::Name, value: Value) {
        set(&mut self.names.borrow_mut(), name, value);
    }

    /// Forgets all names.
    pub fn clear(&self) {
        let names = std::mem::take(&mut *self.names.borrow_mut());
        drop(names);
    }
}

fn set(names: &mut Vec<(ast::Name, Value)>, name: &ast::Name, value: Value) {
    match names.iter_mut().find(|(known, _)| known == name) {
        Some((_, known)) => *known = value,
        None => names.push((name.clone(), value)),
    }
}

/// Names with values that a template may change from inside of loops.
#[derive(Default)]
pub(in crate::template) struct Namespace(RefCell<Vec<(ast::Name, Value)>>);

impl Namespace {
    pub fn get(&self, name: &str) -> Option<Value> {
        self.0.borrow().iter().find(|(known, _)| &**known == name).map(|(_, value)| value.clone())
    }

    pub fn set(&self, name: &ast::Name, value: Value) {
        set(&mut self.0.borrow_mut(), name, value);
    }

    pub fn clear(&self) {
        let names = std::mem::take(&mut *self.0.borrow_mut());
        drop(names);
    }
}

/// A macro with the scope that it was defined in.
pub(in crate::template) struct Definition {
    pub(super) definition: Arc<ast::Macro>,
    pub(super) scope: Rc<Scope>,
}

/// The state of a loop, which templates have as `loop`.
pub(in crate::template) struct Loop {
    pub(super) items: Rc<Vec<Value>>,
    pub(super) at: Cell<usize>,
    /// How many loops call each other, from 0.
    pub(super) level: usize,
    /// What `loop.changed` was given last.
    pub(super) last: RefCell<Option<Vec<Value>>>,
    pub(super) definition: Arc<ast::Loop>,
    pub(super) scope: Rc<Scope>,
    /// How deep the items nest.
    pub(super) depth: u32,
}

impl Loop {
    /// An attribute of the loop, if it has one of the name.
    pub fn attribute(&self, budget: &Budget, name: &str) -> Result<Option<Value>> {
        let (at, count) = (self.at.get(), self.items.len());
        let number = |n: usize| Value::Int(n as i64);
        let item = |at: Option<usize>, what: &str| {
            at.and_then(|at| self.items.get(at)).cloned().unwrap_or_else(|| Value::undefined(what))
        };
        budget.spend(8)?;
        Ok(Some(match name {
            "index" => number(at + 1),
            "index0" => number(at),
            "revindex" => number(count.saturating_sub(at)),
            "revindex0" => number(count.saturating_sub(at + 1)),
            "first" => Value::Bool(at == 0),
            "last" => Value::Bool(at + 1 == count),
            "length" => number(count),
            "depth" => number(self.level + 1),
            "depth0" => number(self.level),
            "previtem" => item(at.checked_sub(1), "there is no previous item"),
            "nextitem" => item(Some(at + 1), "there is no next item"),
            _ => return Ok(None),
        }))
    }

    /// Whether `loop.changed` was given something else the last time.
    pub fn changed(&self, budget: &Budget, values: Vec<Value>) -> Result<bool> {
        deepest(budget, values.iter())?;
        let mut last = self.last.borrow_mut();
        let is_same = match &*last {
            Some(last) if last.len() == values.len() => {
                let mut is_same = true;
                for (last, value) in last.iter().zip(&values) {
                    is_same = is_same && super::compare::equal(budget, last, value)?;
                }
                is_same
            }
            _ => false,
        };
        *last = Some(values);
        Ok(!is_same)
    }
}
