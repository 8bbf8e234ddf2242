//! What kernel a group's members make: its prologue, its matrices, and the steps of its epilogues. A group that makes none
//! is refused here, with the reason, whatever the rule's guards say.

mod steps;

use super::group::{Group, GroupKind};
use super::row_steps::is_stage;
use super::rule::Template;
use crate::graph::{Graph, Node, NodeId, Op, OpKind, Rows, Type, Uses, ValueId};
use kernmill_kernels::expr::Expr;
use kernmill_kernels::kernel::KvPlane;
use kernmill_plan::format::BLOCK;
use steps::Steps;

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

/// Roots, and the epilogue's nodes that their results meet in.
type Component = (Vec<NodeId>, Vec<NodeId>);

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
    fn components(&self) -> Result<Vec<Component>, String> {
        let mut parts: Vec<Component> =
            self.group.roots.iter().map(|root| (vec![*root], Vec::new())).collect();
        for id in &self.group.epilogue {
            let inputs = &self.graph.node(*id).inputs;
            let reads = |(roots, nodes): &Component| {
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
        let mut steps = Steps::new(self, &outputs, epilogue);
        for value in &outputs {
            steps.hand_out(*value)?;
        }
        for (done, id) in epilogue.iter().enumerate() {
            steps.node(self.graph.node(*id), &epilogue[done + 1..])?;
        }
        let steps = steps.done();
        if steps.is_empty() {
            return Err(format!("nothing reads {}", self.name(outputs[0])));
        }
        Ok(Part { roots, steps })
    }
}
