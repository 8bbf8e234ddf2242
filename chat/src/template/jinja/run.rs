//! Runs a template.

use super::arguments::GivenArguments;
use super::ast::{
    Arguments, AssignTarget, Comparison, Literal, Name, Postfix, Statement, StatementLine, TemplateExpr,
    UnaryOperator,
};
use super::budget::{Budget, Result, TemplateFault, failed};
use super::calls::Runner;
use super::text::{TemplateText, TextBuilder};
use super::value::{Definition, Loop, Namespace, Scope, Value, deepest};
use super::{arithmetic, ast, calls, compare, filters, operate, tests};
use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;

/// Text of the time in a form.
pub(in crate::template) type TimeFormatter<'c> = &'c dyn Fn(&str) -> String;

/// A run of a template.
pub(in crate::template) struct TemplateRun<'r> {
    pub(super) budget: Budget,
    pub(super) clock: TimeFormatter<'r>,
    /// Values that may hold themselves. They are dropped at the end of the run, as nothing else would free
    /// it.
    kept: RefCell<CyclicValues>,
}

#[derive(Default)]
struct CyclicValues {
    scopes: Vec<Rc<Scope>>,
    spaces: Vec<Rc<Namespace>>,
    loops: Vec<Rc<Loop>>,
}

/// How a block ends.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum BlockEnd {
    On,
    Break,
    Continue,
}

impl Drop for TemplateRun<'_> {
    fn drop(&mut self) {
        let CyclicValues { scopes, spaces, loops } = &*self.kept.borrow();
        scopes.iter().for_each(|scope| scope.clear());
        spaces.iter().for_each(|space| space.clear());
        loops.iter().for_each(|state| drop(state.last.take()));
    }
}

impl<'r> TemplateRun<'r> {
    pub fn new(budget: Budget, clock: TimeFormatter<'r>) -> TemplateRun<'r> {
        TemplateRun { budget, clock, kept: RefCell::default() }
    }

    /// The text that a template writes with some values.
    pub fn text(&self, body: &[StatementLine], values: Vec<(&str, Value)>) -> Result<TemplateText> {
        let scope = Scope::new(None);
        self.keep_scope(&scope);
        for (name, value) in values {
            scope.set(&name.into(), value);
        }
        let mut out = TextBuilder::new(&self.budget);
        self.block(body, &scope, &mut out)?;
        Ok(out.finish())
    }

    fn keep_scope(&self, scope: &Rc<Scope>) {
        self.kept.borrow_mut().scopes.push(scope.clone());
    }

    fn block(&self, body: &[StatementLine], scope: &Rc<Scope>, out: &mut TextBuilder) -> Result<BlockEnd> {
        self.budget.deeper(|| {
            for (statement, line) in body {
                let flow = self.statement(statement, scope, out).map_err(|mut fault| {
                    // The innermost line says most.
                    if let TemplateFault::Failed(_, place @ None) = &mut *fault {
                        *place = Some(*line);
                    }
                    fault
                })?;
                if flow != BlockEnd::On {
                    return Ok(flow);
                }
            }
            Ok(BlockEnd::On)
        })
    }

    fn statement(&self, statement: &Statement, scope: &Rc<Scope>, out: &mut TextBuilder) -> Result<BlockEnd> {
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
            Statement::Break => return Ok(BlockEnd::Break),
            Statement::Continue => return Ok(BlockEnd::Continue),
        }
        Ok(BlockEnd::On)
    }

    /// The text of a block, which has a separate scope.
    fn captured(&self, body: &[StatementLine], scope: &Rc<Scope>) -> Result<TemplateText> {
        let mut out = TextBuilder::new(&self.budget);
        self.block(body, &Scope::new(Some(scope.clone())), &mut out)?;
        Ok(out.finish())
    }

    fn definition(&self, definition: &Arc<ast::Macro>, scope: &Rc<Scope>) -> Value {
        self.keep_scope(scope);
        Value::Macro(Rc::new(Definition { definition: definition.clone(), scope: scope.clone() }))
    }

    fn assign(&self, target: &AssignTarget, value: Value, scope: &Rc<Scope>) -> Result<()> {
        match target {
            AssignTarget::Name(name) => scope.set(name, value),
            AssignTarget::Tuple(targets) => {
                let values = value.items(&self.budget)?;
                if values.len() != targets.len() {
                    return failed(format!("{} values for {} names", values.len(), targets.len()));
                }
                for (target, value) in targets.iter().zip(values) {
                    self.assign(target, value, scope)?;
                }
            }
            AssignTarget::Attribute(name, attribute) => match scope.get(name) {
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

    fn values(&self, expressions: &[TemplateExpr], scope: &Rc<Scope>) -> Result<Vec<Value>> {
        expressions.iter().map(|expression| self.value(expression, scope)).collect()
    }

    fn composed(&self, expression: &TemplateExpr, scope: &Rc<Scope>) -> Result<Value> {
        match expression {
            TemplateExpr::Literal(_) | TemplateExpr::Name(_) => self.value(expression, scope),
            TemplateExpr::List(items) => Value::list(&self.budget, self.values(items, scope)?),
            TemplateExpr::Tuple(items) => Value::tuple(&self.budget, self.values(items, scope)?),
            TemplateExpr::Dict(entries) => {
                let pair = |(key, value): &(TemplateExpr, TemplateExpr)| {
                    Ok((self.value(key, scope)?, self.value(value, scope)?))
                };
                let entries = entries.iter().map(pair).collect::<Result<Vec<_>>>()?;
                Value::dict(&self.budget, entries)
            }
            TemplateExpr::Unary(operators, value) => self.unary(operators, value, scope),
            TemplateExpr::Binary(first, others) => {
                let mut value = self.value(first, scope)?;
                for (operator, other) in others {
                    let other = self.value(other, scope)?;
                    value = arithmetic::binary(&self.budget, *operator, &value, &other)?;
                }
                Ok(value)
            }
            TemplateExpr::Compare(first, others) => self.compared(first, others, scope),
            TemplateExpr::And(all) | TemplateExpr::Or(all) => {
                let is_and = matches!(expression, TemplateExpr::And(_));
                let mut value = Value::Bool(is_and);
                for one in all {
                    value = self.value(one, scope)?;
                    if value.is_true() != is_and {
                        break;
                    }
                }
                Ok(value)
            }
            TemplateExpr::Concat(all) => {
                let values = self.values(all, scope)?;
                Ok(Value::Text(operate::joined(&self.budget, &values)?))
            }
            TemplateExpr::If(parts, otherwise) => {
                let [condition, value] = &**parts;
                if self.value(condition, scope)?.is_true() {
                    return self.value(value, scope);
                }
                match otherwise {
                    Some(otherwise) => self.value(otherwise, scope),
                    None => Ok(Value::undefined("the condition does not hold, and there is no `else`")),
                }
            }
            TemplateExpr::Steps(value, steps) => {
                let first = self.value(value, scope)?;
                self.stepped(first, value, steps, scope)
            }
        }
    }

    fn unary(&self, operators: &[UnaryOperator], value: &TemplateExpr, scope: &Rc<Scope>) -> Result<Value> {
        let mut value = self.value(value, scope)?;
        for operator in operators {
            self.budget.spend(8)?;
            value = arithmetic::unary(*operator, &value)?;
        }
        Ok(value)
    }

    fn compared(
        &self,
        first: &TemplateExpr,
        others: &[(Comparison, TemplateExpr)],
        scope: &Rc<Scope>,
    ) -> Result<Value> {
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

    fn stepped(
        &self,
        mut value: Value,
        first: &TemplateExpr,
        steps: &[Postfix],
        scope: &Rc<Scope>,
    ) -> Result<Value> {
        for (n, step) in steps.iter().enumerate() {
            self.budget.spend(16)?;
            value = self.step(&value, step, scope)?;
            if let Value::Undefined(_) = value {
                // A missing value is named as in the template.
                let shown = shown(first, &steps[..=n]);
                self.budget.spend(shown.len())?;
                value = Value::undefined(format!("`{shown}` is undefined"));
            }
        }
        Ok(value)
    }

    fn step(&self, value: &Value, step: &Postfix, scope: &Rc<Scope>) -> Result<Value> {
        match step {
            Postfix::Attribute(name) => operate::attribute(&self.budget, value, name),
            Postfix::Item(key) => {
                let key = self.value(key, scope)?;
                operate::item(&self.budget, value, &key)
            }
            Postfix::Slice(bounds) => {
                let bound = |bound: &Option<TemplateExpr>| match bound {
                    Some(bound) => self.value(bound, scope),
                    None => Ok(Value::None),
                };
                let [start, stop, step] = &**bounds;
                operate::slice(&self.budget, value, [bound(start)?, bound(stop)?, bound(step)?])
            }
            Postfix::Call(arguments) => {
                let given = self.given(arguments, scope)?;
                calls::call(self, value, given, None)
            }
            Postfix::Filter(name, arguments) => {
                let given = self.given(arguments, scope)?;
                filters::apply(&self.budget, name, value, given)
            }
            Postfix::Test(name, arguments, is_negated) => {
                let given = self.given(arguments, scope)?;
                Ok(Value::Bool(tests::passes(&self.budget, name, value, given)? != *is_negated))
            }
        }
    }

    fn filtered(&self, mut value: Value, steps: &[Postfix], scope: &Rc<Scope>) -> Result<Value> {
        for step in steps {
            value = self.step(&value, step, scope)?;
        }
        Ok(value)
    }

    /// A call with a block as its `caller`.
    fn called(&self, call: &TemplateExpr, caller: Value, scope: &Rc<Scope>) -> Result<Value> {
        let TemplateExpr::Steps(first, steps) = call else { return failed("`call` needs a call") };
        let Some((Postfix::Call(arguments), before)) = steps.split_last() else {
            return failed("`call` needs a call");
        };
        let value = self.value(first, scope)?;
        let value = self.stepped(value, first, before, scope)?;
        let given = self.given(arguments, scope)?;
        calls::call(self, &value, given, Some(caller))
    }

    fn given(&self, arguments: &Arguments, scope: &Rc<Scope>) -> Result<GivenArguments> {
        let mut given =
            GivenArguments { positional: self.values(&arguments.positional, scope)?, named: Vec::new() };
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

impl Runner for TemplateRun<'_> {
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

    fn write(&self, body: &[StatementLine], scope: &Rc<Scope>, out: &mut TextBuilder) -> Result<()> {
        self.block(body, scope, out).map(drop)
    }

    fn repeat(
        &self,
        definition: &Arc<ast::ForLoop>,
        items: &Value,
        scope: &Rc<Scope>,
        level: usize,
        out: &mut TextBuilder,
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
            if self.block(&definition.body, &inner, out)? == BlockEnd::Break {
                break;
            }
        }
        if state.items.is_empty() {
            self.block(&definition.otherwise, &Scope::new(Some(scope.clone())), out)?;
        }
        Ok(())
    }

    fn value(&self, expression: &TemplateExpr, scope: &Rc<Scope>) -> Result<Value> {
        match expression {
            TemplateExpr::Literal(literal) => {
                self.budget.spend(8)?;
                Ok(match literal {
                    Literal::None => Value::None,
                    Literal::Bool(bool) => Value::Bool(*bool),
                    Literal::Int(number) => Value::Int(*number),
                    Literal::Float(number) => Value::Float(*number),
                    Literal::Text(text) => Value::text(text.clone()),
                })
            }
            TemplateExpr::Name(name) => self.named(name, scope),
            expression => self.budget.deeper(|| self.composed(expression, scope)),
        }
    }
}

/// A value as the template writes it, for messages.
fn shown(first: &TemplateExpr, steps: &[Postfix]) -> String {
    let mut text = match first {
        TemplateExpr::Name(name) => name.to_string(),
        _ => "(…)".to_owned(),
    };
    for step in steps {
        text += &match step {
            Postfix::Attribute(name) => format!(".{name}"),
            Postfix::Item(TemplateExpr::Literal(Literal::Int(number))) => format!("[{number}]"),
            Postfix::Item(TemplateExpr::Literal(Literal::Text(key))) => format!("['{key}']"),
            Postfix::Item(_) => "[…]".to_owned(),
            Postfix::Slice(_) => "[:]".to_owned(),
            Postfix::Call(_) => "(…)".to_owned(),
            Postfix::Filter(name, _) => format!(" | {name}"),
            Postfix::Test(name, ..) => format!(" is {name}"),
        };
    }
    text
}
