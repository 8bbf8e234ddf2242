//! Names and their values, and what outlives the block that made it.

use super::ast;
use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::sync::Arc;

/// Names of a block, before those of the block around it.
pub(super) struct Scope<V> {
    names: RefCell<Vec<(ast::Name, V)>>,
    parent: Option<Rc<Scope<V>>>,
}

impl<V: Clone> Scope<V> {
    pub fn new(parent: Option<Rc<Scope<V>>>) -> Rc<Scope<V>> {
        Rc::new(Scope { names: RefCell::default(), parent })
    }

    pub fn get(&self, name: &str) -> Option<V> {
        let mut scope = self;
        loop {
            if let Some((_, value)) = scope.names.borrow().iter().find(|(known, _)| &**known == name) {
                return Some(value.clone());
            }
            scope = scope.parent.as_deref()?;
        }
    }

    pub fn set(&self, name: &ast::Name, value: V) {
        set(&mut self.names.borrow_mut(), name, value);
    }

    /// Forgets all names.
    pub fn clear(&self) {
        let names = std::mem::take(&mut *self.names.borrow_mut());
        drop(names);
    }
}

fn set<V>(names: &mut Vec<(ast::Name, V)>, name: &ast::Name, value: V) {
    match names.iter_mut().find(|(known, _)| known == name) {
        Some((_, known)) => *known = value,
        None => names.push((name.clone(), value)),
    }
}

/// Names with values that a template may change from inside of loops.
pub(in crate::template) struct Namespace<V>(RefCell<Vec<(ast::Name, V)>>);

impl<V> Default for Namespace<V> {
    fn default() -> Namespace<V> {
        Namespace(RefCell::default())
    }
}

impl<V: Clone> Namespace<V> {
    pub fn get(&self, name: &str) -> Option<V> {
        self.0.borrow().iter().find(|(known, _)| &**known == name).map(|(_, value)| value.clone())
    }

    pub fn set(&self, name: &ast::Name, value: V) {
        set(&mut self.0.borrow_mut(), name, value);
    }

    pub fn clear(&self) {
        let names = std::mem::take(&mut *self.0.borrow_mut());
        drop(names);
    }
}

/// A macro with the scope that it was defined in.
pub(in crate::template) struct Definition<V> {
    pub(super) definition: Arc<ast::Macro>,
    pub(super) scope: Rc<Scope<V>>,
}

/// The state of a loop, which templates have as `loop`.
pub(in crate::template) struct Loop<V> {
    pub(super) items: Rc<Vec<V>>,
    pub(super) at: Cell<usize>,
    /// How many loops call each other, from 0.
    pub(super) level: usize,
    /// The last arguments of `loop.changed`.
    pub(super) last: RefCell<Option<Vec<V>>>,
    pub(super) definition: Arc<ast::ForLoop>,
    pub(super) scope: Rc<Scope<V>>,
    /// How deep the items nest.
    pub(super) depth: u32,
}
