//! Runs a template.

use super::arguments::Given;
use super::ast::{Arguments, Compare, Expr, Line, Literal, Name, Statement, Step, Target, Unary};
use super::budget::{Budget, Fault, Result, failed};
use super::calls::Runner;
use super::text::{Builder, Text};
use super::value::{Definition, Loop, Namespace, Scope, Value, deepest};
use super::{arithmetic, ast, calls, compare, filters, operate, tests};
use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;

/// Text of the time in a form.
pub(in crate::template) type Clock<'c> = &'c dyn Fn(&str) -> String;

/// A run of a template.
pub(in crate::template) struct Run<'r> {
    pub(super) budget: Budget,
    pub(super) clock: Clock<'r>,
    /// What may hold itself. It is emptied at the end of the run, as nothing else would free it.
    kept: RefCell<Kept>,
}

#[derive(Default)]
struct Kept {
    scopes: Vec<Rc<Scope>>,
    spaces: Vec<Rc<Namespace>>,
    loops: Vec<Rc<Loop>>,
}

/// How a block ends.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Flow {
    On,
    Break,
    Continue,
}

impl Drop for Run<'_> {
    fn drop(&mut self) {
        let Kept { scopes, spaces, loops } = &*self.kept.borrow();
        scopes.iter().for_each(|scope| scope.clear());
        spaces.iter().for_each(|space| space.clear());
        loops.iter().for_each(|state| drop(state.last.take()));
    }
}

impl<'r> Run<'r> {
    pub fn new(budget: Budget, clock: Clock<'r>) -> Run<'r> {
        Run { budget, clock, kept: RefCell::default() }
    }

    /// The text that a template writes with some values.
    pub fn text(&self, body: &[Line], values: Vec<(&str, Value)>) -> Result<Text> {
        let scope = Scope::new(None);
        self.keep_scope(&scope);
        for (name, value) in values {
            scope.set(&name.into(), value);
        }
        let mut out = Builder::new(&self.budget);
        self.block(body, &scope, &mut out)?;
        Ok(out.finish())
    }

    fn keep_scope(&self, scope: &Rc<Scope>) {
        self.kept.borrow_mut().scopes.push(scope.clone());
    }

    fn block(&self, body: &[Line], scope: &Rc<Scope>, out: &mut Builder) -> Result<Flow> {
        self.budget.deeper(|| {
            for (statement, line) in body {
                let flow = self.statement(statement, scope, out).map_err(|mut fault| {
                    // The innermost line says most.
                    if let Fault::Failed(_, place @ None) = &mut *fault {
                        *place = Some(*line);
                    }
                    fault
                })?;
                if flow != Flow::On {
                    return Ok(flow);
                }
            }
            Ok(Flow::On)
        })
    }

    fn statement(&self, statement: &Statement, scope: &Rc<Scope>, out: &mut Builder) -> Result<Flow> {
        self.budget.steps(1)?;
        match statement {
            Statement::Data(text) => out.own(text)?,
            Statement::Output(value) => {
                let value = self.value(value, scope)?;
                super::write::print(out, &value)?;
            }
            Statement::Set(target, value) => {
                let value = self.value(value, scope)?;
                self.assign(target, value, scope)?;
            }
            Statement::SetBlock(target, steps, body) => {
                let text = self.captured(body, scope)?;
                let value = self.filtered(Value::Text(text), steps, scope)?;
                self.assign(target, value, scope)?;
            }
            Statement::If(branches, otherwise) => {
                for (condition, body) in branches {
                    if self.value(condition, scope)?.is_true() {
                        return self.block(body, scope, out);
                    }
                }
                return self.block(otherwise, scope, out);
            }
            Statement::For(definition) => {
                let items = self.value(&definition.items, scope)?;
                self.repeat(definition, &items, scope, 0, out)?;
            }
            Statement::Macro(definition) => {
                let value = self.definition(definition, scope);
                scope.set(&definition.name, value);
            }
            Statement::Call(call, definition) => {
                let caller = self.definition(definition, scope);
                let value = self.called(call, caller, scope)?;
                super::write::print(out, &value)?;
            }
            Statement::Filter(steps, body) => {
                let text = self.captured(body, scope)?;
                let value = self.filtered(Value::Text(text), steps, scope)?;
                super::write::print(out, &value)?;
            }
            Statement::With(values, body) => {
                let inner = Scope::new(Some(scope.clone()));
                for (target, value) in values {
                    let value = self.value(value, scope)?;
                    self.assign(target, value, &inner)?;
                }
                return self.block(body, &inner, out);
            }
            Statement::Break => return Ok(Flow::Break),
            Statement::Continue => return Ok(Flow::Continue),
        }
        Ok(Flow::On)
    }

    /// What a block writes, in a scope of its own.
    fn captured(&self, body: &[Line], scope: &Rc<Scope>) -> Result<Text> {
        let mut out = Builder::new(&self.budget);
        self.block(body, &Scope::new(Some(scope.clone())), &mut out)?;
        Ok(out.finish())
    }

    fn definition(&self, definition: &Arc<ast::Macro>, scope: &Rc<Scope>) -> Value {
        self.keep_scope(scope);
        Value::Macro(Rc::new(Definition { definition: definition.clone(), scope: scope.clone() }))
    }

    fn assign(&self, target: &Target, value: Value, scope: &Rc<Scope>) -> Result<()> {
        match target {
            Target::Name(name) => scope.set(name, value),
            Target::Tuple(targets) => {
                let values = value.items(&self.budget)?;
                if values.len() != targets.len() {
                    return failed(format!("{} values for {} names", values.len(), targets.len()));
                }
                for (target, value) in targets.iter().zip(values) {
                    self.assign(target, value, scope)?;
                }
            }
            Target::Attribute(name, attribute) => match scope.get(name) {
                Some(Value::Namespace(_)) if attribute.starts_with('_') => {
                    return failed(format!("an attribute of a namespace begins with `_`: `{attribute}`"));
                }
                Some(Value::Namespace(space)) => space.set(attribute, value),
                _ => {
                    return failed(format!(
                        "`{name}` is no namespace, so that it has no `{attribute}` to set"
                    ));
                }
            },
        }
        Ok(())
    }

    fn named(&self, name: &Name, scope: &Rc<Scope>) -> Result<Value> {
        self.budget.steps(1)?;
        Ok(scope
            .get(name)
            .or_else(|| calls::function(name))
            .unwrap_or_else(|| Value::undefined(format!("`{name}` is undefined"))))
    }

    fn values(&self, expressions: &[Expr], scope: &Rc<Scope>) -> Result<Vec<Value>> {
        expressions.iter().map(|expression| self.value(expression, scope)).collect()
    }

    fn composed(&self, expression: &Expr, scope: &Rc<Scope>) -> Result<Value> {
        match expression {
            Expr::Literal(_) | Expr::Name(_) => self.value(expression, scope),
            Expr::List(items) => Value::list(&self.budget, self.values(items, scope)?),
            Expr::Tuple(items) => Value::tuple(&self.budget, self.values(items, scope)?),
            Expr::Dict(entries) => {
                let pair =
                    |(key, value): &(Expr, Expr)| Ok((self.value(key, scope)?, self.value(value, scope)?));
                let entries = entries.iter().map(pair).collect::<Result<Vec<_>>>()?;
                Value::dict(&self.budget, entries)
            }
            Expr::Unary(operators, value) => self.unary(operators, value, scope),
            Expr::Binary(first, others) => {
                let mut value = self.value(first, scope)?;
                for (operator, other) in others {
                    let other = self.value(other, scope)?;
                    value = arithmetic::binary(&self.budget, *operator, &value, &other)?;
                }
                Ok(value)
            }
            Expr::Compare(first, others) => self.compared(first, others, scope),
            Expr::And(all) | Expr::Or(all) => {
                let is_and = matches!(expression, Expr::And(_));
                let mut value = Value::Bool(is_and);
                for one in all {
                    value = self.value(one, scope)?;
                    if value.is_true() != is_and {
                        break;
                    }
                }
                Ok(value)
            }
            Expr::Concat(all) => {
                let values = self.values(all, scope)?;
                Ok(Value::Text(operate::joined(&self.budget, &values)?))
            }
            Expr::If(parts, otherwise) => {
                let [condition, value] = &**parts;
                if self.value(condition, scope)?.is_true() {
                    return self.value(value, scope);
                }
                match otherwise {
                    Some(otherwise) => self.value(otherwise, scope),
                    None => Ok(Value::undefined("the condition does not hold, and there is no `else`")),
                }
            }
            Expr::Steps(value, steps) => {
                let first = self.value(value, scope)?;
                self.stepped(first, value, steps, scope)
            }
        }
    }

    fn unary(&self, operators: &[Unary], value: &Expr, scope: &Rc<Scope>) -> Result<Value> {
        let mut value = self.value(value, scope)?;
        for operator in operators {
            self.budget.spend(8)?;
            value = arithmetic::unary(*operator, &value)?;
        }
        Ok(value)
    }

    fn compared(&self, first: &Expr, others: &[(Compare, Expr)], scope: &Rc<Scope>) -> Result<Value> {
        let mut left = self.value(first, scope)?;
        for (compare, right) in others {
            let right = self.value(right, scope)?;
            if !compare::compares(&self.budget, *compare, &left, &right)? {
                return Ok(Value::Bool(false));
            }
            left = right;
        }
        Ok(Value::Bool(true))
    }

    fn stepped(&self, mut value: Value, first: &Expr, steps: &[Step], scope: &Rc<Scope>) -> Result<Value> {
        for (n, step) in steps.iter().enumerate() {
            self.budget.spend(16)?;
            value = self.step(&value, step, scope)?;
            if let Value::Undefined(_) = value {
                // What is missing is named as the template has it.
                let shown = shown(first, &steps[..=n]);
                self.budget.spend(shown.len())?;
                value = Value::undefined(format!("`{shown}` is undefined"));
            }
        }
        Ok(value)
    }

    fn step(&self, value: &Value, step: &Step, scope: &Rc<Scope>) -> Result<Value> {
        match step {
            Step::Attribute(name) => operate::attribute(&self.budget, value, name),
            Step::Item(key) => {
                let key = self.value(key, scope)?;
                operate::item(&self.budget, value, &key)
            }
            Step::Slice(bounds) => {
                let bound = |bound: &Option<Expr>| match bound {
                    Some(bound) => self.value(bound, scope),
                    None => Ok(Value::None),
                };
                let [start, stop, step] = &**bounds;
                operate::slice(&self.budget, value, [bound(start)?, bound(stop)?, bound(step)?])
            }
            Step::Call(arguments) => {
                let given = self.given(arguments, scope)?;
                calls::call(self, value, given, None)
            }
            Step::Filter(name, arguments) => {
                let given = self.given(arguments, scope)?;
                filters::apply(&self.budget, name, value, given)
            }
            Step::Test(name, arguments, is_negated) => {
                let given = self.given(arguments, scope)?;
                Ok(Value::Bool(tests::passes(&self.budget, name, value, given)? != *is_negated))
            }
        }
    }

    fn filtered(&self, mut value: Value, steps: &[Step], scope: &Rc<Scope>) -> Result<Value> {
        for step in steps {
            value = self.step(&value, step, scope)?;
        }
        Ok(value)
    }

    /// A call with a block as its `caller`.
    fn called(&self, call: &Expr, caller: Value, scope: &Rc<Scope>) -> Result<Value> {
        let Expr::Steps(first, steps) = call else { return failed("`call` needs a call") };
        let Some((Step::Call(arguments), before)) = steps.split_last() else {
            return failed("`call` needs a call");
        };
        let value = self.value(first, scope)?;
        let value = self.stepped(value, first, before, scope)?;
        let given = self.given(arguments, scope)?;
        calls::call(self, &value, given, Some(caller))
    }

    fn given(&self, arguments: &Arguments, scope: &Rc<Scope>) -> Result<Given> {
        let mut given = Given { positional: self.values(&arguments.positional, scope)?, named: Vec::new() };
        for (name, value) in &arguments.named {
            given.named.push((name.clone(), self.value(value, scope)?));
        }
        if let Some(more) = &arguments.more {
            given.positional.extend(self.value(more, scope)?.items(&self.budget)?);
        }
        if let Some(more) = &arguments.more_named {
            let Value::Dict(dict) = self.value(more, scope)? else {
                return failed("`**` needs a dictionary");
            };
            for (key, value) in dict.entries() {
                let Some(key) = key.as_str() else { return failed("`**` needs names") };
                given.named.push((key.into(), value.clone()));
            }
        }
        Ok(given)
    }
}

impl Runner for Run<'_> {
    fn budget(&self) -> &Budget {
        &self.budget
    }

    fn time(&self, format: &str) -> String {
        (self.clock)(format)
    }

    fn keep_namespace(&self, space: &Rc<Namespace>) {
        self.kept.borrow_mut().spaces.push(space.clone());
    }

    fn keep_loop(&self, state: &Rc<Loop>) {
        self.kept.borrow_mut().loops.push(state.clone());
    }

    fn write(&self, body: &[Line], scope: &Rc<Scope>, out: &mut Builder) -> Result<()> {
        self.block(body, scope, out).map(drop)
    }

    fn repeat(
        &self,
        definition: &Arc<ast::Loop>,
        items: &Value,
        scope: &Rc<Scope>,
        level: usize,
        out: &mut Builder,
    ) -> Result<()> {
        let mut items = items.items(&self.budget)?;
        if let Some(condition) = &definition.condition {
            let mut chosen = Vec::new();
            for item in items {
                let inner = Scope::new(Some(scope.clone()));
                self.assign(&definition.target, item.clone(), &inner)?;
                if self.value(condition, &inner)?.is_true() {
                    chosen.push(item);
                }
            }
            items = chosen;
        }
        let depth = deepest(&self.budget, items.iter())?;
        let state = Rc::new(Loop {
            items: Rc::new(items),
            at: 0.into(),
            level,
            last: RefCell::default(),
            definition: definition.clone(),
            scope: scope.clone(),
            depth,
        });
        for (at, item) in state.items.iter().enumerate() {
            state.at.set(at);
            let inner = Scope::new(Some(scope.clone()));
            self.assign(&definition.target, item.clone(), &inner)?;
            inner.set(&"loop".into(), Value::Loop(state.clone()));
            if self.block(&definition.body, &inner, out)? == Flow::Break {
                break;
            }
        }
        if state.items.is_empty() {
            self.block(&definition.otherwise, &Scope::new(Some(scope.clone())), out)?;
        }
        Ok(())
    }

    fn value(&self, expression: &Expr, scope: &Rc<Scope>) -> Result<Value> {
        match expression {
            Expr::Literal(literal) => {
                self.budget.spend(8)?;
                Ok(match literal {
                    Literal::None => Value::None,
                    Literal::Bool(bool) => Value::Bool(*bool),
                    Literal::Int(number) => Value::Int(*number),
                    Literal::Float(number) => Value::Float(*number),
                    Literal::Text(text) => Value::text(text.clone()),
                })
            }
            Expr::Name(name) => self.named(name, scope),
            expression => self.budget.deeper(|| self.composed(expression, scope)),
        }
    }
}

/// A value as the template writes it, for messages.
fn shown(first: &Expr, steps: &[Step]) -> String {
    let mut text = match first {
        Expr::Name(name) => name.to_string(),
        _ => "(…)".to_owned(),
    };
    for step in steps {
        text += &match step {
            Step::Attribute(name) => format!(".{name}"),
            Step::Item(Expr::Literal(Literal::Int(number))) => format!("[{number}]"),
            Step::Item(Expr::Literal(Literal::Text(key))) => format!("['{key}']"),
            Step::Item(_) => "[…]".to_owned(),
            Step::Slice(_) => "[:]".to_owned(),
            Step::Call(_) => "(…)".to_owned(),
            Step::Filter(name, _) => format!(" | {name}"),
            Step::Test(name, ..) => format!(" is {name}"),
        };
    }
    text
}
