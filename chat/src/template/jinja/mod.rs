//! Jinja, as chat templates use it: a small interpreter.
//!
//! Templates come with models, and what models bring is read as if somebody meant harm. So nothing here is
//! recursive without a limit, every step and every byte that is made or looked at uses up a budget, and no
//! value can be changed but namespaces. Meanings are Python's and Jinja's, in the environment that
//! transformers has for templates. Texts know which of their characters the template wrote.

mod arguments;
mod arithmetic;
mod ast;
mod budget;
mod calls;
mod compare;
mod expression;
mod filters;
mod format;
mod lexer;
mod lists;
mod methods;
mod names;
mod operate;
mod parse;
mod run;
mod scope;
mod tests;
mod text;
mod value;
mod write;

pub(super) use budget::{Budget, Result, TemplateFault, stopped};
pub(super) use run::TimeFormatter;
pub(super) use text::TemplateText;
pub(super) use value::Value;

use ast::StatementLine;
use run::TemplateRun;
use std::rc::Rc;
use value::Dict;

/// A template that was read.
#[derive(Debug)]
pub(super) struct TemplateProgram(Vec<StatementLine>);

impl TemplateProgram {
    /// Reads a template. An error says what is wrong, and in which line from 1.
    pub fn parse(source: &str) -> std::result::Result<TemplateProgram, (String, u32)> {
        parse::parse(source).map(TemplateProgram)
    }

    /// The text that the template writes with some values, within a budget.
    pub fn text(
        &self,
        values: Vec<(&str, Value)>,
        budget: Budget,
        clock: TimeFormatter,
    ) -> Result<TemplateText> {
        TemplateRun::new(budget, clock).text(&self.0, values)
    }
}

impl Value {
    /// A dictionary.
    pub fn dict(budget: &Budget, entries: impl IntoIterator<Item = (Value, Value)>) -> Result<Value> {
        Ok(Value::Dict(Rc::new(Dict::of(budget, entries)?)))
    }

    /// A value of JSON. `text` makes its texts, and the keys of objects.
    pub fn of_json(
        json: &serde_json::Value,
        budget: &Budget,
        text: &dyn Fn(&str) -> TemplateText,
    ) -> Result<Value> {
        Ok(match json {
            serde_json::Value::Null => Value::None,
            serde_json::Value::Bool(bool) => Value::Bool(*bool),
            serde_json::Value::Number(number) => match number.as_i64() {
                Some(number) => Value::Int(number),
                None => Value::Float(number.as_f64().unwrap_or(f64::NAN)),
            },
            serde_json::Value::String(string) => Value::Text(text(string)),
            serde_json::Value::Array(items) => {
                let items = items.iter().map(|item| Value::of_json(item, budget, text));
                Value::list(budget, items.collect::<Result<_>>()?)?
            }
            serde_json::Value::Object(members) => {
                let member = |(key, value): (&String, &serde_json::Value)| {
                    Ok((Value::Text(text(key)), Value::of_json(value, budget, text)?))
                };
                let members = members.iter().map(member).collect::<Result<Vec<_>>>()?;
                Value::dict(budget, members)?
            }
        })
    }
}
