//! Whether a rule's guards hold for a match.

use super::guard::{GuardCheck, Quantity};
use super::matcher::{Match, Plain};
use crate::ir::RowKind;
use crate::ir::{Graph, Uses, ValueId};
use kernmill_plan::format::WeightFormat;
use kernmill_plan::target::Level;

/// A whole match that guards look at.
pub(super) struct Matched<'m> {
    pub graph: &'m Graph,
    pub uses: &'m Uses,
    pub level: Level,
    pub form: &'m Plain<'m>,
    pub found: &'m Match,
}

impl Matched<'_> {
    /// Checks every guard.
    ///
    /// # Errors
    /// The first that does not hold, with its reason.
    pub fn check(&self) -> Result<(), String> {
        for guard in &self.form.rule.guards {
            let absent = |name: &String| self.form.absent.contains(&name.as_str());
            if !guard.when.as_ref().is_some_and(absent) {
                self.one(&guard.check).map_err(|reason| format!("{reason} ({})", guard.why))?;
            }
        }
        Ok(())
    }

    fn one(&self, check: &GuardCheck) -> Result<(), String> {
        match check {
            GuardCheck::UsedOnlyBy { value: name, user } => {
                let (Some(value), Some(user)) = (self.value(name), self.found.node(self.form.rule, user))
                else {
                    return Ok(());
                };
                if value == self.graph.output {
                    return Err(format!("value {} is the graph's output", self.name(value)));
                }
                match self.uses.users(value).iter().find(|other| **other != user) {
                    Some(&other) => Err(also_used(self.graph, value, other)),
                    None => Ok(()),
                }
            }
            GuardCheck::IsOutput { value } => match self.value(value) {
                Some(value) if value != self.graph.output => {
                    Err(format!("value {} is not the graph's output", self.name(value)))
                }
                _ => Ok(()),
            },
            GuardCheck::MultipleOf { quantity, divisor } => match self.quantity(quantity) {
                Some((what, n)) if n % divisor != 0 => {
                    Err(format!("{what} = {n} is not a multiple of {divisor}"))
                }
                _ => Ok(()),
            },
            GuardCheck::Between { quantity, min, max } => match self.quantity(quantity) {
                Some((what, n)) if n < *min => Err(format!("{what} = {n} is less than {min}")),
                Some((what, n)) if n > *max => Err(format!("{what} = {n} is more than {max}")),
                _ => Ok(()),
            },
            GuardCheck::SameCols { of } => {
                let values: Vec<ValueId> = of.iter().filter_map(|name| self.value(name)).collect();
                let cols = |v: ValueId| self.graph.value(v).ty.cols();
                match values.iter().find(|v| cols(**v) != cols(values[0])) {
                    Some(&v) => Err(format!(
                        "{} has {} columns and {} has {}",
                        self.name(values[0]),
                        cols(values[0]),
                        self.name(v),
                        cols(v)
                    )),
                    None => Ok(()),
                }
            }
            GuardCheck::Format { of, formats } => match self.matrix(of) {
                Some((name, format)) if !formats.contains(&format) => {
                    let allowed: Vec<&str> = formats.iter().map(|format| format.name()).collect();
                    Err(format!("@{name} is {}, not {}", format.name(), allowed.join(" or ")))
                }
                _ => Ok(()),
            },
            GuardCheck::RowsOf { of, rows } => match self.value(of) {
                Some(value) if RowKind::of(self.graph.value(value).ty.rows()) != *rows => {
                    let found = RowKind::of(self.graph.value(value).ty.rows()).name();
                    Err(format!("the rows of {} are {found}, not {}", self.name(value), rows.name()))
                }
                _ => Ok(()),
            },
            GuardCheck::Features { names } => {
                match names
                    .iter()
                    .find(|name| !self.level.features().names().any(|known| known == name.as_str()))
                {
                    Some(name) => Err(format!("{} has no {name}", self.level.name())),
                    None => Ok(()),
                }
            }
        }
    }

    fn quantity(&self, quantity: &Quantity) -> Option<(String, usize)> {
        match quantity {
            Quantity::Cols(name) => {
                let value = self.value(name)?;
                Some((format!("columns of {}", self.name(value)), self.graph.value(value).ty.cols()))
            }
            Quantity::GroupCols(name) => {
                let a = self.node(name)?.op.attention()?;
                Some(("heads / kv_heads * v_head_dim".into(), a.heads / a.kv_heads * a.v_head_dim))
            }
            Quantity::Inner(name) => {
                let tensor = self.graph.tensor(*self.node(name)?.tensors.first()?);
                Some((format!("columns of @{}", tensor.name), *tensor.shape.last()?))
            }
        }
    }

    fn matrix(&self, capture: &str) -> Option<(&str, WeightFormat)> {
        let tensor = self.graph.tensor(*self.node(capture)?.tensors.first()?);
        Some((&tensor.name, tensor.format))
    }

    fn node(&self, capture: &str) -> Option<&crate::ir::Node> {
        self.found.node(self.form.rule, capture).map(|id| self.graph.node(id))
    }

    fn value(&self, capture: &str) -> Option<ValueId> {
        self.form.value_of(self.graph, self.found, capture)
    }

    fn name(&self, value: ValueId) -> String {
        name(self.graph, value)
    }
}

/// A value as reasons show it.
pub(super) fn name(graph: &Graph, value: ValueId) -> String {
    format!("%{}", graph.value(value).name)
}

/// The reason that `user` reads `value` as well.
pub(super) fn also_used(graph: &Graph, value: ValueId, user: crate::ir::NodeId) -> String {
    format!("value {} is also used by {}", name(graph, value), name(graph, graph.node(user).output))
}
