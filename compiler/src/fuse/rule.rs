//! A fusion as plain data: what it matches, when it is allowed, and how its kernel is composed.

use super::GroupKind;
use crate::graph::OpKind;

/// A fusion rule. Names in it ("captures") are local to the rule.
#[derive(Clone, Debug, PartialEq)]
pub struct FusionRule {
    /// Unique name.
    pub name: String,
    /// One line on what the fused kernel does.
    pub doc: String,
    /// The kernel template that a match becomes.
    pub kind: GroupKind,
    /// The ops to match, any order; connected through [`PatternNode::inputs`].
    pub pattern: Vec<PatternNode>,
    /// Captures whose value may be read outside the group. An absent optional capture stands for its input.
    pub outputs: Vec<String>,
    /// Conditions on a structural match.
    pub guards: Vec<Guard>,
}

/// One op of a pattern.
#[derive(Clone, Debug, PartialEq)]
pub struct PatternNode {
    /// Name of the matched node, unique in the rule.
    pub capture: String,
    /// Ops that fit.
    pub ops: Vec<OpKind>,
    /// Names of the inputs in order: a capture is that node's output; any other name is a value from outside, the same
    /// value wherever the name recurs.
    pub inputs: Vec<String>,
    /// Whether inputs match in any order.
    pub commutative: bool,
    /// Whether the node may be absent; then its first input stands for its value.
    pub optional: bool,
    /// What it is to the kernel.
    pub part: Part,
}

/// What a member is to the fused kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Part {
    /// Prepares the roots' input.
    Prologue,
    /// The matrix products or the attention.
    Root,
    /// Works on the roots' results before they are stored.
    Epilogue,
    /// Must be there, but stays outside the group.
    Context,
}

/// A condition with the reason for it.
#[derive(Clone, Debug, PartialEq)]
pub struct Guard {
    /// What is checked.
    pub check: Check,
    /// Checked only when this optional capture is present.
    pub only_with: Option<String>,
    /// Why the kernel needs it; ends the refusal's message.
    pub why: String,
}

/// What a guard checks; captures by name, as in [`PatternNode::capture`].
#[derive(Clone, Debug, PartialEq)]
pub enum Check {
    /// The value is read by this one node only (and is not the graph's output).
    UsedOnlyBy {
        /// Capture whose value it is; absent optional captures stand for their input.
        value: String,
        /// The one reader.
        user: String,
    },
    /// The value is the graph's output.
    IsOutput {
        /// Capture.
        value: String,
    },
    /// A number is a multiple of another.
    MultipleOf {
        /// The number.
        quantity: Quantity,
        /// Its divisor.
        divisor: usize,
    },
    /// The captures' outputs have the same columns.
    SameCols {
        /// Captures.
        of: Vec<String>,
    },
}

/// A number that guards speak about.
#[derive(Clone, Debug, PartialEq)]
pub enum Quantity {
    /// Columns of a capture's output.
    Cols(String),
    /// `heads / kv_heads * head_dim` of an attention: columns of the queries that share a KV head.
    GroupCols(String),
}

impl FusionRule {
    /// An empty rule to fill in.
    pub fn new(name: &str, kind: GroupKind, doc: &str) -> FusionRule {
        FusionRule {
            name: name.into(),
            doc: doc.into(),
            kind,
            pattern: Vec::new(),
            outputs: Vec::new(),
            guards: Vec::new(),
        }
    }

    /// Adds a pattern node.
    pub fn node(mut self, part: Part, capture: &str, ops: &[OpKind], inputs: &[&str]) -> FusionRule {
        self.pattern.push(PatternNode {
            capture: capture.into(),
            ops: ops.to_vec(),
            inputs: inputs.iter().map(ToString::to_string).collect(),
            commutative: ops.iter().all(|op| matches!(op, OpKind::Add | OpKind::Mul)),
            optional: false,
            part,
        });
        self
    }

    /// Adds a pattern node that may be absent.
    pub fn optional(self, part: Part, capture: &str, ops: &[OpKind], inputs: &[&str]) -> FusionRule {
        let mut rule = self.node(part, capture, ops, inputs);
        if let Some(last) = rule.pattern.last_mut() {
            last.optional = true;
        }
        rule
    }

    /// Sets the captures whose values may be read outside.
    pub fn outputs(mut self, captures: &[&str]) -> FusionRule {
        self.outputs = captures.iter().map(ToString::to_string).collect();
        self
    }

    /// Adds a guard.
    pub fn guard(mut self, check: Check, why: &str) -> FusionRule {
        self.guards.push(Guard { check, only_with: None, why: why.into() });
        self
    }

    /// Adds a guard that holds only when the optional `capture` is present.
    pub fn guard_with(mut self, capture: &str, check: Check, why: &str) -> FusionRule {
        self.guards.push(Guard { check, only_with: Some(capture.into()), why: why.into() });
        self
    }

    /// The pattern node of that name.
    pub fn find(&self, capture: &str) -> Option<&PatternNode> {
        self.pattern.iter().find(|node| node.capture == capture)
    }
}

/// Why a rule is not a rule.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("fusion rule `{rule}`: {message}")]
pub struct RuleError {
    /// Rule.
    pub rule: String,
    /// What is wrong and what was expected.
    pub message: String,
}

impl FusionRule {
    /// Checks that the rule makes sense by itself.
    ///
    /// # Errors
    /// The first thing that is wrong.
    pub fn check(&self) -> Result<(), RuleError> {
        let fail = |message: String| Err(RuleError { rule: self.name.clone(), message });
        for (i, node) in self.pattern.iter().enumerate() {
            let name = &node.capture;
            if self.pattern[..i].iter().any(|other| other.capture == *name) {
                return fail(format!("capture `{name}` is defined twice"));
            }
            if node.ops.is_empty() {
                return fail(format!("capture `{name}` names no op"));
            }
            if node.inputs.is_empty() {
                return fail(format!("capture `{name}` names no input"));
            }
            if node.optional && matches!(node.part, Part::Root | Part::Context) {
                return fail(format!("capture `{name}` is a root or context and cannot be optional"));
            }
        }
        if !self.pattern.iter().any(|node| node.part == Part::Root) {
            return fail("it has no root".into());
        }
        if self.outputs.is_empty() {
            return fail("it lists no outputs".into());
        }
        let members = self.outputs.iter().chain(self.guards.iter().flat_map(Guard::captures));
        for name in members {
            if self.find(name).is_none() {
                return fail(format!("`{name}` is not a capture of the pattern"));
            }
        }
        for guard in &self.guards {
            if let Some(name) = &guard.only_with
                && self.find(name).is_none_or(|node| !node.optional)
            {
                return fail(format!("`only_with = {name}` must name an optional capture"));
            }
        }
        self.check_acyclic().or_else(fail)?;
        self.check_connected().or_else(fail)
    }

    fn check_acyclic(&self) -> Result<(), String> {
        let mut done: Vec<&str> = Vec::new();
        while done.len() < self.pattern.len() {
            let ready = self.pattern.iter().find(|node| {
                !done.contains(&node.capture.as_str())
                    && node.inputs.iter().all(|i| self.find(i).is_none() || done.contains(&i.as_str()))
            });
            match ready {
                Some(node) => done.push(&node.capture),
                None => return Err("the pattern has a cycle".into()),
            }
        }
        Ok(())
    }

    fn check_connected(&self) -> Result<(), String> {
        let mut names: Vec<&str> = vec![&self.pattern[0].capture];
        let mut seen = vec![false; self.pattern.len()];
        loop {
            let next = (0..self.pattern.len()).find(|&i| {
                let node = &self.pattern[i];
                !seen[i]
                    && (names.contains(&node.capture.as_str())
                        || node.inputs.iter().any(|input| names.contains(&input.as_str())))
            });
            let Some(i) = next else { break };
            seen[i] = true;
            names.push(&self.pattern[i].capture);
            names.extend(self.pattern[i].inputs.iter().map(String::as_str));
        }
        match seen.iter().position(|&seen| !seen) {
            None => Ok(()),
            Some(i) => Err(format!("capture `{}` is not connected to the rest", self.pattern[i].capture)),
        }
    }
}

impl Guard {
    /// Captures that the guard speaks about.
    pub fn captures(&self) -> Vec<&String> {
        match &self.check {
            Check::UsedOnlyBy { value, user } => vec![value, user],
            Check::IsOutput { value } => vec![value],
            Check::MultipleOf { quantity: Quantity::Cols(c) | Quantity::GroupCols(c), .. } => vec![c],
            Check::SameCols { of } => of.iter().collect(),
        }
    }
}
