//! What kernel a group's members make: its prologue, its matrices, and the steps of its epilogues. A group that makes none
//! is refused here, with the reason, whatever the rule's guards say.

use super::group::{Group, GroupKind};
use super::rule::Template;
use crate::graph::{Graph, Node, NodeId, Op, OpKind, Rows, Type, Uses, ValueId};
use kernmill_kernels::expr::{Binary, Expr};
use kernmill_kernels::kernel::KvPlane;
use kernmill_kernels::leaf::map::MAX_INPUTS;
use kernmill_plan::format::BLOCK;

/// A kernel in terms of the graph.
#[derive(Clone, Debug, PartialEq)]
pub enum Composition {
    /// Row-wise nodes, in order, over the same rows.
    Rows(Vec<NodeId>),
    /// Dense matrices that read `input`.
    Matmul {
        /// What they read.
        input: ValueId,
        /// Matrices whose results meet, and what becomes of them.
        parts: Vec<Part>,
    },
    /// Matrices of the experts that `routing` chose.
    Experts {
        /// What they read.
        input: ValueId,
        /// Chosen experts.
        routing: ValueId,
        /// The matrices, and what becomes of their results.
        part: Part,
    },
    /// Matrix of the chosen experts, weighted sum, residual.
    ExpertDown {
        /// The matrix product.
        root: NodeId,
        /// Added to the sum.
        residual: Option<ValueId>,
        /// Where the result goes.
        out: ValueId,
    },
    /// Attention.
    Attention {
        /// The attention.
        root: NodeId,
        /// Where the result goes: q8 or f32.
        out: ValueId,
        /// Where it goes in f32 besides.
        kept: Option<ValueId>,
    },
    /// The A of adapters at matrices that read `input`.
    Shrink {
        /// What they read.
        input: ValueId,
        /// Chosen experts, whose matrices they are.
        routing: Option<ValueId>,
    },
}

/// Matrices whose results meet in an epilogue.
#[derive(Clone, Debug, PartialEq)]
pub struct Part {
    /// The matrix products, in the rule's order.
    pub roots: Vec<NodeId>,
    /// What becomes of their results, in order.
    pub steps: Vec<Step>,
}

/// A step of an epilogue. It works on one unit of results: at first one for each root, after the first expression one in all.
#[derive(Clone, Debug, PartialEq)]
pub enum Step {
    /// An expression: variables are the units, then `inputs`.
    Map {
        /// The expression.
        expr: Expr,
        /// The same rows and columns of other values.
        inputs: Vec<ValueId>,
    },
    /// Rotates heads.
    Rope {
        /// Index into [`Graph::ropes`].
        rope: u32,
        /// Elements of a head.
        head_dim: usize,
    },
    /// Stores f32.
    Store(ValueId),
    /// Stores q8.
    Quantize(ValueId),
    /// Stores bf16.
    Bf16Cast(ValueId),
    /// Stores f16.
    KvCast(ValueId),
    /// Stores into the KV cache, rounded to its element type.
    KvWrite(KvPlane),
}

/// Whether an op is computed row by row, each from the same row of its inputs (or, of experts and wanted rows, from that row's).
pub fn is_stage(op: &Op) -> bool {
    !matches!(
        op,
        Op::Linear
            | Op::QuantLinear
            | Op::ExpertLinear
            | Op::QuantExpertLinear
            | Op::Bf16ExpertLinear
            | Op::Attention(_)
            | Op::LoraShrink { .. }
    )
}

/// The kernel of a group that a rule made.
///
/// # Errors
/// Why its members make none.
pub fn compose(graph: &Graph, uses: &Uses, group: &Group) -> Result<Composition, String> {
    let GroupKind::Fused(template) = group.kind else {
        return Err("a node by itself is not composed".into());
    };
    let compose = Compose { graph, uses, group };
    compose.prologue()?;
    let composition = match template {
        Template::Rows => compose.rows()?,
        Template::Matmul => compose.matmul()?,
        Template::Experts => compose.experts()?,
        Template::ExpertDown => compose.expert_down()?,
        Template::Attention => compose.attention()?,
        Template::Shrink => compose.shrink()?,
    };
    if group.kv_write.is_some() && !matches!(composition, Composition::Matmul { .. }) {
        return Err("only a matmul kernel writes the KV cache".into());
    }
    Ok(composition)
}

/// A step of a row-wise kernel.
#[derive(Clone, Debug, PartialEq)]
pub enum RowStep {
    /// A node that is not elementwise.
    Node(NodeId),
    /// Elementwise nodes as one expression.
    Map {
        /// The last of them, whose value it is.
        last: NodeId,
        /// The expression; variable i is input i.
        expr: Expr,
        /// What it reads.
        inputs: Vec<ValueId>,
    },
}

/// Row-wise nodes as steps. An elementwise node that one other elementwise node alone reads becomes part of its expression, as long as a
/// leaf takes so many inputs.
pub fn row_steps(graph: &Graph, uses: &Uses, nodes: &[NodeId], outputs: &[ValueId]) -> Vec<RowStep> {
    let mut steps: Vec<RowStep> = Vec::with_capacity(nodes.len());
    for id in nodes {
        let node = graph.node(*id);
        let Some(mut expr) = elementwise(&node.op) else {
            steps.push(RowStep::Node(*id));
            continue;
        };
        let mut inputs = node.inputs.clone();
        let mut at = 0;
        while at < steps.len() {
            let merged = match &steps[at] {
                RowStep::Map { last, expr: inner, inputs: read } => {
                    let value = graph.node(*last).output;
                    let alone = uses.users(value) == [*id] && !outputs.contains(&value);
                    alone.then(|| merge(&expr, &inputs, value, inner, read)).flatten()
                }
                RowStep::Node(_) => None,
            };
            match merged {
                Some(merged) => {
                    (expr, inputs) = merged;
                    steps.remove(at);
                    at = 0;
                }
                None => at += 1,
            }
        }
        steps.push(RowStep::Map { last: *id, expr, inputs });
    }
    steps
}

/// The expression of an elementwise op.
fn elementwise(op: &Op) -> Option<Expr> {
    let binary = |op| Some(Expr::Binary(op, Box::new(Expr::Var(0)), Box::new(Expr::Var(1))));
    match op {
        Op::Glu { expr } | Op::Elementwise { expr } => Some(expr.clone()),
        Op::Add => binary(Binary::Add),
        Op::Mul => binary(Binary::Mul),
        _ => None,
    }
}

/// `outer` of `inputs` with `inner` of `read` in place of `value`.
fn merge(
    outer: &Expr,
    inputs: &[ValueId],
    value: ValueId,
    inner: &Expr,
    read: &[ValueId],
) -> Option<(Expr, Vec<ValueId>)> {
    if !inputs.contains(&value) {
        return None;
    }
    let mut all: Vec<ValueId> = Vec::new();
    for other in inputs.iter().filter(|other| **other != value).chain(read) {
        if !all.contains(other) {
            all.push(*other);
        }
    }
    let var = |of: &ValueId| Expr::Var(all.iter().position(|other| other == of).unwrap_or(0));
    let inner = inner.substitute(&read.iter().map(var).collect::<Vec<_>>());
    let arguments: Vec<Expr> =
        inputs.iter().map(|input| if *input == value { inner.clone() } else { var(input) }).collect();
    let expr = outer.substitute(&arguments);
    (all.len() <= MAX_INPUTS && expr.operators() <= MAX_OPERATORS).then_some((expr, all))
}

struct Compose<'a> {
    graph: &'a Graph,
    uses: &'a Uses,
    group: &'a Group,
}

impl Compose<'_> {
    fn name(&self, value: ValueId) -> String {
        super::guard::name(self.graph, value)
    }

    fn ty(&self, value: ValueId) -> Type {
        self.graph.value(value).ty
    }

    fn is_member(&self, value: ValueId) -> bool {
        self.uses.producer(value).is_some_and(|id| self.group.members().contains(&id))
    }

    /// Row-wise nodes on the same rows as `rows`, and small matrices where `matrices` are allowed.
    fn row_wise(&self, nodes: &[NodeId], rows: Rows, matrices: bool) -> Result<(), String> {
        for id in nodes {
            let node = self.graph.node(*id);
            let name = self.name(node.output);
            if !(is_stage(&node.op) || matrices && node.op == Op::Linear) {
                return Err(format!("{name} is not computed row by row: {}", node.op.kind()));
            }
            if self.ty(node.output).rows() != rows {
                return Err(format!("the rows of {name} are not those of the kernel"));
            }
            if matches!(node.op, Op::ExpertSum | Op::SelectRows) && self.is_member(node.inputs[0]) {
                return Err(format!("{name} reads other rows of a member"));
            }
        }
        Ok(())
    }

    fn prologue(&self) -> Result<(), String> {
        let Some(first) = self.group.roots.first() else { return Err("it has no root".into()) };
        let root = self.graph.node(*first);
        match self.group.kind {
            _ if self.group.prologue.is_empty() => Ok(()),
            GroupKind::Fused(Template::Matmul | Template::Experts | Template::Shrink) => {
                self.row_wise(&self.group.prologue, self.ty(root.inputs[0]).rows(), true)
            }
            _ => Err("this kind of kernel has no prologue".into()),
        }
    }

    fn rows(&self) -> Result<Composition, String> {
        let members = self.group.members();
        let rows = self.ty(self.graph.node(members[0]).output).rows();
        self.row_wise(&members, rows, false)?;
        Ok(Composition::Rows(members))
    }

    /// What all roots read: input 0 and, of experts, the routing.
    fn shared_inputs(&self, kinds: &[OpKind]) -> Result<&Node, String> {
        let first = self.graph.node(self.group.roots[0]);
        for id in &self.group.roots {
            let node = self.graph.node(*id);
            if !kinds.contains(&node.op.kind()) {
                return Err(format!(
                    "{} is no root of this kind of kernel: {}",
                    self.name(node.output),
                    node.op.kind()
                ));
            }
            // Adapter branches are each root's own.
            if node.base_inputs() != first.base_inputs() {
                let (a, b) = (self.name(first.output), self.name(node.output));
                return Err(format!("{a} and {b} read different values"));
            }
            if node.op.kind() != first.op.kind() {
                return Err(format!(
                    "{} is another op than {}",
                    self.name(node.output),
                    self.name(first.output)
                ));
            }
        }
        Ok(first)
    }

    fn matmul(&self) -> Result<Composition, String> {
        let first = self.shared_inputs(&[OpKind::Linear, OpKind::QuantLinear])?;
        let parts = self.components()?;
        let parts = parts.into_iter().map(|(roots, epilogue)| self.part(roots, &epilogue));
        let parts = parts.collect::<Result<Vec<_>, _>>()?;
        self.one_head_size(&parts)?;
        Ok(Composition::Matmul { input: first.inputs[0], parts })
    }

    /// A work item is a head where heads are rotated or written to the cache: the same for all parts.
    fn one_head_size(&self, parts: &[Part]) -> Result<(), String> {
        let sizes: Vec<usize> =
            parts.iter().flat_map(|part| &part.steps).filter_map(|step| self.head(step)).collect();
        match sizes.iter().find(|size| **size != sizes[0]) {
            Some(other) => Err(format!("heads of {} and of {other} elements", sizes[0])),
            None => Ok(()),
        }
    }

    /// Elements of the heads that a step works on.
    fn head(&self, step: &Step) -> Option<usize> {
        match step {
            Step::Rope { head_dim, .. } => Some(*head_dim),
            Step::KvWrite(_) => self.group.kv_write.and_then(|id| match &self.graph.node(id).op {
                Op::Attention(a) => Some(a.head_dim),
                _ => None,
            }),
            _ => None,
        }
    }

    fn experts(&self) -> Result<Composition, String> {
        let kinds = [OpKind::ExpertLinear, OpKind::QuantExpertLinear, OpKind::Bf16ExpertLinear];
        let first = self.shared_inputs(&kinds)?;
        let mut parts = self.components()?;
        if parts.len() != 1 {
            return Err("results of grouped matrices that do not meet need kernels of their own".into());
        }
        let (roots, epilogue) = parts.swap_remove(0);
        let part = self.part(roots, &epilogue)?;
        Ok(Composition::Experts { input: first.inputs[0], routing: first.inputs[1], part })
    }

    fn expert_down(&self) -> Result<Composition, String> {
        let kinds = [OpKind::ExpertLinear, OpKind::QuantExpertLinear, OpKind::Bf16ExpertLinear];
        let root = self.shared_inputs(&kinds)?;
        if !matches!(self.ty(root.inputs[0]).rows(), Rows::Slots(_)) {
            return Err(format!("{} is one row per token, not per chosen expert", self.name(root.inputs[0])));
        }
        let nodes: Vec<&Node> = self.group.epilogue.iter().map(|id| self.graph.node(*id)).collect();
        let (sum, add) = match nodes.as_slice() {
            [sum] => (sum, None),
            [sum, add] if add.op == Op::Add && add.inputs.contains(&sum.output) => (sum, Some(add)),
            _ => return Err("its epilogue is not a weighted sum and an addition".into()),
        };
        if self.group.roots.len() != 1
            || sum.op != Op::ExpertSum
            || sum.inputs != [root.output, root.inputs[1]]
        {
            return Err("its epilogue is not the weighted sum of its one root's results".into());
        }
        let residual = add.map(|add| if add.inputs[0] == sum.output { add.inputs[1] } else { add.inputs[0] });
        if residual == Some(sum.output) {
            return Err("it adds the sum to itself".into());
        }
        let out = add.map_or(sum.output, |add| add.output);
        self.only_output(out)?;
        Ok(Composition::ExpertDown { root: self.group.roots[0], residual, out })
    }

    fn attention(&self) -> Result<Composition, String> {
        let root = self.group.roots[0];
        let node = self.graph.node(root);
        let (Op::Attention(a), 1) = (&node.op, self.group.roots.len()) else {
            return Err("its root is not one attention".into());
        };
        let out = match self.group.epilogue.as_slice() {
            [] => node.output,
            [quant] if self.graph.node(*quant).op == Op::QuantizeQ8 => {
                let columns = a.heads / a.kv_heads * a.head_dim;
                if !columns.is_multiple_of(BLOCK) {
                    return Err(format!(
                        "the queries of a KV head have {columns} columns, not whole blocks of {BLOCK}"
                    ));
                }
                self.graph.node(*quant).output
            }
            _ => return Err("its epilogue is not a quantisation".into()),
        };
        let kept = Some(node.output).filter(|value| *value != out && self.group.outputs.contains(value));
        if kept.is_none() {
            self.only_output(out)?;
        }
        Ok(Composition::Attention { root, out, kept })
    }

    fn shrink(&self) -> Result<Composition, String> {
        let first = self.shared_inputs(&[OpKind::LoraShrink])?;
        if !self.group.epilogue.is_empty() {
            return Err("this kind of kernel has no epilogue".into());
        }
        let shrunk =
            |value: &ValueId| self.uses.producer(*value).is_some_and(|id| self.group.roots.contains(&id));
        if let Some(other) = self.group.outputs.iter().find(|value| !shrunk(value)) {
            return Err(format!("the kernel does not store {}", self.name(*other)));
        }
        Ok(Composition::Shrink { input: first.inputs[0], routing: first.inputs.get(1).copied() })
    }

    fn only_output(&self, out: ValueId) -> Result<(), String> {
        match self.group.outputs.iter().find(|other| **other != out) {
            Some(other) => Err(format!("the kernel does not store {}", self.name(*other))),
            None => Ok(()),
        }
    }

    /// Roots whose results meet in the epilogue, with the epilogue's nodes that they meet in; in the order of the first roots.
    fn components(&self) -> Result<Vec<(Vec<NodeId>, Vec<NodeId>)>, String> {
        let mut parts: Vec<(Vec<NodeId>, Vec<NodeId>)> =
            self.group.roots.iter().map(|root| (vec![*root], Vec::new())).collect();
        for id in &self.group.epilogue {
            let inputs = &self.graph.node(*id).inputs;
            let reads = |(roots, nodes): &(Vec<NodeId>, Vec<NodeId>)| {
                roots.iter().chain(nodes).any(|member| inputs.contains(&self.graph.node(*member).output))
            };
            let mut reading: Vec<usize> = (0..parts.len()).filter(|i| reads(&parts[*i])).collect();
            let Some(first) = reading.first().copied() else {
                let name = self.name(self.graph.node(*id).output);
                return Err(format!("{name} of the epilogue reads no result of the matrices"));
            };
            while reading.len() > 1 {
                let (roots, nodes) = parts.remove(reading.pop().unwrap_or(first));
                parts[first].0.extend(roots);
                parts[first].1.extend(nodes);
            }
            parts[first].1.push(*id);
        }
        let place = |root: &NodeId| self.group.roots.iter().position(|other| other == root);
        for (roots, nodes) in &mut parts {
            roots.sort_by_key(place);
            nodes.sort();
        }
        Ok(parts)
    }

    fn part(&self, roots: Vec<NodeId>, epilogue: &[NodeId]) -> Result<Part, String> {
        let outputs: Vec<ValueId> = roots.iter().map(|id| self.graph.node(*id).output).collect();
        if let Some(other) = outputs.iter().find(|value| self.ty(**value) != self.ty(outputs[0])) {
            let (a, b) = (self.name(outputs[0]), self.name(*other));
            return Err(format!("{a} and {b} meet but have different columns"));
        }
        let live = outputs.iter().enumerate().map(|(i, value)| (*value, Expr::Var(i))).collect();
        let mut steps = Steps {
            of: self,
            units: roots.len(),
            live,
            inputs: Vec::new(),
            steps: Vec::new(),
            left: epilogue,
        };
        for value in &outputs {
            steps.hand_out(*value)?;
        }
        for (done, id) in epilogue.iter().enumerate() {
            steps.left = &epilogue[done + 1..];
            steps.node(self.graph.node(*id))?;
        }
        let steps = steps.steps;
        if steps.is_empty() {
            return Err(format!("nothing reads {}", self.name(outputs[0])));
        }
        Ok(Part { roots, steps })
    }
}

/// The steps of an epilogue in the making.
struct Steps<'c, 'a> {
    of: &'c Compose<'a>,
    /// Units of results.
    units: usize,
    /// Values at hand, as expressions of the units and `inputs`.
    live: Vec<(ValueId, Expr)>,
    /// Other values that the expressions read.
    inputs: Vec<ValueId>,
    steps: Vec<Step>,
    /// Nodes to come.
    left: &'c [NodeId],
}

/// Operators of an epilogue's expression at most: a value that is read twice counts twice.
const MAX_OPERATORS: usize = 1024;

impl Steps<'_, '_> {
    fn node(&mut self, node: &Node) -> Result<(), String> {
        let out = node.output;
        if let Some(expr) = elementwise(&node.op) {
            self.map(node, &expr)?;
            return self.hand_out(out);
        }
        match &node.op {
            Op::Rope { rope, head_dim } => {
                self.settle(node.inputs[0])?;
                self.steps.push(Step::Rope { rope: *rope, head_dim: *head_dim });
                self.live = vec![(out, Expr::Var(0))];
            }
            Op::KvCast if self.plane(out).is_some() => {
                // The cache's own rounding is the same.
                self.settle(node.inputs[0])?;
                self.live = vec![(out, Expr::Var(0))];
            }
            Op::QuantizeQ8 => return self.last(node, Step::Quantize(out)),
            Op::Bf16Cast => return self.last(node, Step::Bf16Cast(out)),
            Op::KvCast => return self.last(node, Step::KvCast(out)),
            op => return Err(format!("{} cannot be in an epilogue: {}", self.of.name(out), op.kind())),
        }
        self.hand_out(out)
    }

    fn map(&mut self, node: &Node, expr: &Expr) -> Result<(), String> {
        let mut arguments = Vec::with_capacity(node.inputs.len());
        for value in &node.inputs {
            let known = self.live.iter().find(|(live, _)| live == value).map(|(_, expr)| expr.clone());
            arguments.push(match known {
                Some(expr) => expr,
                None if self.in_epilogue(*value) => return Err(self.gone(*value)),
                None => {
                    let known = self.inputs.iter().position(|input| input == value);
                    let index = known.unwrap_or_else(|| {
                        self.inputs.push(*value);
                        self.inputs.len() - 1
                    });
                    Expr::Var(self.units + index)
                }
            });
        }
        let expr = expr.substitute(&arguments);
        if expr.operators() > MAX_OPERATORS {
            return Err(format!(
                "the expression of {} has more than {MAX_OPERATORS} operators",
                self.of.name(node.output)
            ));
        }
        self.live.push((node.output, expr));
        Ok(())
    }

    /// A rounding, behind which nothing comes.
    fn last(&mut self, node: &Node, step: Step) -> Result<(), String> {
        self.settle(node.inputs[0])?;
        self.steps.push(step);
        self.live.clear();
        let users = self.of.uses.users(node.output);
        match self.left.iter().find(|id| users.contains(id)) {
            Some(id) => {
                Err(format!("{} reads a rounded result", self.of.name(self.of.graph.node(*id).output)))
            }
            None => Ok(()),
        }
    }

    /// Stores the value if it is one that leaves the group.
    fn hand_out(&mut self, value: ValueId) -> Result<(), String> {
        if !self.of.group.outputs.contains(&value) {
            return Ok(());
        }
        self.settle(value)?;
        self.steps.push(match self.plane(value) {
            Some(plane) => Step::KvWrite(plane),
            None => Step::Store(value),
        });
        Ok(())
    }

    /// Makes `value` the one unit of results; no other value at hand may be needed later.
    fn settle(&mut self, value: ValueId) -> Result<(), String> {
        let Some((_, expr)) = self.live.iter().find(|(live, _)| *live == value).cloned() else {
            return Err(self.gone(value));
        };
        if self.units == 1 && self.live.len() == 1 && expr == Expr::Var(0) {
            return Ok(());
        }
        let needed = |other: ValueId| {
            let users = self.of.uses.users(other);
            other != value && self.left.iter().any(|id| users.contains(id))
        };
        if let Some((other, _)) = self.live.iter().find(|(live, _)| needed(*live)) {
            let (a, b) = (self.of.name(*other), self.of.name(value));
            return Err(format!("{a} is needed after {b} has been stored or rotated"));
        }
        if self.units > 1 || expr != Expr::Var(0) {
            self.steps.push(Step::Map { expr, inputs: std::mem::take(&mut self.inputs) });
        }
        self.units = 1;
        self.live = vec![(value, Expr::Var(0))];
        Ok(())
    }

    /// The plane of the cache that a value goes to.
    fn plane(&self, value: ValueId) -> Option<KvPlane> {
        let attention = self.of.graph.node(self.of.group.kv_write?);
        match attention.inputs.iter().position(|input| *input == value) {
            Some(1) => Some(KvPlane::K),
            Some(2) => Some(KvPlane::V),
            _ => None,
        }
    }

    fn in_epilogue(&self, value: ValueId) -> bool {
        let group = self.of.group;
        let producer = self.of.uses.producer(value);
        producer.is_some_and(|id| group.roots.contains(&id) || group.epilogue.contains(&id))
    }

    fn gone(&self, value: ValueId) -> String {
        format!("{} is no longer at hand", self.of.name(value))
    }
}
