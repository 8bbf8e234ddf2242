//! The kernel that a group's members make: its prologue, its matrices, and the steps of its epilogues. A
//! group that makes none is refused here, with the reason, whatever the rule's guards say.

mod group;
mod steps;

use super::composition::{ComposedPart, Composition};

use super::group::Group;
use crate::ir::RowKind;
use crate::ir::ops;
use crate::ir::ops::places::{KernelTemplate, MemberRole};
use crate::ir::{Graph, GraphRowOp, Node, NodeId, Round, Rows, Type, Uses, ValueId};
use group::Compose;
use kernmill_kernels_gen::kernel::KvPlane;
use kernmill_plan::format::BLOCK;
use steps::EpilogueSteps;

/// The kernel of that kind that a group with a root makes. The group's own composition is not looked at.
///
/// # Errors
/// Why its members make none.
pub(super) fn compose(
    graph: &Graph,
    uses: &Uses,
    group: &Group,
    template: KernelTemplate,
) -> Result<Composition, String> {
    let compose = Compose { graph, uses, group };
    compose.legal(template)?;
    compose.prologue()?;
    let composition = match template {
        KernelTemplate::Rows => compose.rows()?,
        KernelTemplate::Matmul => compose.matmul()?,
        KernelTemplate::Experts => compose.experts()?,
        KernelTemplate::ExpertDown => compose.expert_down()?,
        KernelTemplate::Attention => compose.attention()?,
        KernelTemplate::Shrink => compose.shrink()?,
    };
    match (group.kv_write, &composition) {
        (Some(attention), Composition::Matmul { parts, .. }) => compose.cached(attention, parts)?,
        (Some(_), _) => {
            return Err(format!(
                "a `{}` kernel cannot write the KV cache, only a `matmul` kernel can",
                template.name()
            ));
        }
        (None, _) => {}
    }
    Ok(composition)
}

/// Roots, and the epilogue's nodes that their results meet in.
type Component = (Vec<NodeId>, Vec<NodeId>);

impl Compose<'_> {
    fn ty(&self, value: ValueId) -> Type {
        self.graph.value(value).ty
    }

    /// Every member's op may be where it is. Of specs the reader has checked it.
    fn legal(&self, template: KernelTemplate) -> Result<(), String> {
        let Group { prologue, roots, epilogue, .. } = self.group;
        for (nodes, part) in
            [(prologue, MemberRole::Prologue), (roots, MemberRole::Root), (epilogue, MemberRole::Epilogue)]
        {
            for node in nodes.iter().map(|id| self.graph.node(*id)) {
                let op = node.kind();
                if !ops::legal(template, part).contains(&op) {
                    let (name, part, template) = (self.name(node.output), part.name(), template.name());
                    return Err(format!("{name}: `{op}` cannot be in the {part} of a `{template}` kernel"));
                }
            }
        }
        Ok(())
    }

    /// The results of nodes are such rows. So no node that changes the kind of rows reads one of the others.
    fn row_wise(&self, nodes: &[NodeId], rows: Rows) -> Result<(), String> {
        for id in nodes {
            let value = self.graph.node(*id).output;
            let found = self.ty(value).rows();
            if found != rows {
                let [found, rows] =
                    [found, rows].map(|rows| format!("{} ({})", RowKind::of(rows).name(), rows.text()));
                let name = self.name(value);
                return Err(format!("the rows of {name} are {found}, not {rows} as those of the kernel"));
            }
        }
        Ok(())
    }

    /// The prologue is computed before the matrices, on the rows that they read.
    fn prologue(&self) -> Result<(), String> {
        let Group { prologue, roots, epilogue, .. } = self.group;
        let later = |value: &&ValueId| {
            self.uses.producer(**value).is_some_and(|id| roots.contains(&id) || epilogue.contains(&id))
        };
        for node in prologue.iter().map(|id| self.graph.node(*id)) {
            if let Some(value) = node.inputs.iter().find(later) {
                let (name, value) = (self.name(node.output), self.name(*value));
                return Err(format!("{name} of the prologue reads {value}, which the kernel computes later"));
            }
        }
        self.row_wise(prologue, self.ty(self.graph.node(roots[0]).inputs[0]).rows())
    }

    fn rows(&self) -> Result<Composition, String> {
        let members = self.group.members();
        let rows = self.ty(self.graph.node(members[0]).output).rows();
        self.row_wise(&members, rows)?;
        Ok(Composition::Rows(members))
    }

    /// The first root; all others read its input 0 and, of experts, its routing too, so they are of its op.
    fn shared_inputs(&self) -> Result<&Node, String> {
        let first = self.graph.node(self.group.roots[0]);
        for id in &self.group.roots {
            let node = self.graph.node(*id);
            // Adapter branches are each root's own.
            if node.base_inputs() != first.base_inputs() {
                let reads = |node: &Node| {
                    let inputs: Vec<String> = node.base_inputs().iter().map(|x| self.name(*x)).collect();
                    format!("{} reads {}", self.name(node.output), inputs.join(", "))
                };
                let (first, node) = (reads(first), reads(node));
                return Err(format!("{first}, but {node}: roots of one kernel read the same"));
            }
        }
        Ok(first)
    }

    fn matmul(&self) -> Result<Composition, String> {
        let first = self.shared_inputs()?;
        let parts = self.components()?;
        let parts = parts.into_iter().map(|(roots, epilogue)| self.part(roots, &epilogue));
        let parts = parts.collect::<Result<Vec<_>, _>>()?;
        self.one_head_size(&parts)?;
        self.whole_blocks(&parts)?;
        Ok(Composition::Matmul { input: first.inputs[0], parts })
    }

    /// Keys and values both go to the cache: nothing else writes them there.
    fn cached(&self, attention: NodeId, parts: &[ComposedPart]) -> Result<(), String> {
        let inputs = &self.graph.node(attention).inputs;
        for (plane, value) in [(KvPlane::K, inputs[1]), (KvPlane::V, inputs[2])] {
            if parts.iter().flat_map(|part| &part.steps).any(|step| step.facts().cached == Some(plane)) {
                continue;
            }
            let name = self.name(value);
            return Err(match inputs[1] == inputs[2] {
                true => {
                    format!("{name} is keys and values at once, and goes to the KV cache as one of them only")
                }
                false => format!("{name} is no result of the matrices, and only those go to the KV cache"),
            });
        }
        Ok(())
    }

    /// A work item is a head where heads are rotated or written to the cache: the same for all parts.
    fn one_head_size(&self, parts: &[ComposedPart]) -> Result<(), String> {
        let sizes: Vec<usize> =
            parts.iter().flat_map(|part| &part.steps).filter_map(|step| step.facts().head_dim).collect();
        match sizes.iter().find(|size| **size != sizes[0]) {
            Some(other) => {
                Err(format!("its heads have {} and {other} elements, expected one size", sizes[0]))
            }
            None => Ok(()),
        }
    }

    /// Where a work item is a head, it rounds the head's columns, which must be whole blocks.
    fn whole_blocks(&self, parts: &[ComposedPart]) -> Result<(), String> {
        for part in parts {
            let head = part.steps.iter().find_map(|step| step.facts().head_dim);
            let blocks = part.steps.iter().map(GraphRowOp::facts).find(|step| step.is_by_blocks);
            if let (Some(head), Some(value)) = (head, blocks.and_then(|step| step.out))
                && !head.is_multiple_of(BLOCK)
            {
                let name = self.name(*value);
                return Err(format!("the heads of {name} have {head} columns, not whole blocks of {BLOCK}"));
            }
        }
        Ok(())
    }

    fn experts(&self) -> Result<Composition, String> {
        let first = self.shared_inputs()?;
        let mut parts = self.components()?;
        if let [(a, _), (b, _), ..] = parts.as_slice() {
            let [a, b] = [a, b].map(|roots| self.name(self.graph.node(roots[0]).output));
            return Err(format!("{a} and {b} do not meet: such matrices of experts need a kernel each"));
        }
        let (roots, epilogue) = parts.swap_remove(0);
        let part = self.part(roots, &epilogue)?;
        Ok(Composition::Experts { input: first.inputs[0], routing: first.inputs[1], part })
    }

    fn expert_down(&self) -> Result<Composition, String> {
        let root = self.shared_inputs()?;
        if !matches!(self.ty(root.inputs[0]).rows(), Rows::Slots(_)) {
            return Err(format!("{} is one row per token, not per chosen expert", self.name(root.inputs[0])));
        }
        let nodes: Vec<&Node> = self.group.epilogue.iter().map(|id| self.graph.node(*id)).collect();
        let is_sum = |node: &Node| node.op.is_expert_sum() && node.inputs == [root.output, root.inputs[1]];
        let (sum, add) = match nodes.as_slice() {
            [sum] if is_sum(sum) => (sum, None),
            [sum, add] if is_sum(sum) && add.is_add() && add.inputs.contains(&sum.output) => (sum, Some(add)),
            _ => {
                let name = self.name(root.output);
                return Err(format!("its epilogue is not the `expert_sum` of {name}, then perhaps `add`"));
            }
        };
        if let Some(other) = self.group.roots.get(1) {
            let (a, b) = (self.name(root.output), self.name(self.graph.node(*other).output));
            return Err(format!("{a} and {b} are two matrices, expected one"));
        }
        let residual = add.map(|add| if add.inputs[0] == sum.output { add.inputs[1] } else { add.inputs[0] });
        if residual == Some(sum.output) {
            return Err(format!("{} is added to itself, expected another value", self.name(sum.output)));
        }
        let out = add.map_or(sum.output, |add| add.output);
        self.only_outputs(&[out])?;
        Ok(Composition::ExpertDown { root: self.group.roots[0], residual, out })
    }

    fn attention(&self) -> Result<Composition, String> {
        let root = self.group.roots[0];
        let node = self.graph.node(root);
        let a = node.op.attention().expect("`legal` allows no other root");
        if let Some(other) = self.group.roots.get(1) {
            let (a, b) = (self.name(node.output), self.name(self.graph.node(*other).output));
            return Err(format!("{a} and {b} are two attentions, expected one"));
        }
        let out = match self.group.epilogue.as_slice() {
            [] => node.output,
            [quant] if self.quantises(*quant, node.output) => {
                let columns = a.heads / a.kv_heads * a.v_head_dim;
                if !columns.is_multiple_of(BLOCK) {
                    return Err(format!(
                        "the queries of a KV head have {columns} columns, not whole blocks of {BLOCK}"
                    ));
                }
                self.graph.node(*quant).output
            }
            _ => {
                let name = self.name(node.output);
                return Err(format!("its epilogue is not one quantisation of {name}"));
            }
        };
        let lora_input =
            Some(node.output).filter(|value| *value != out && self.group.outputs.contains(value));
        Ok(Composition::Attention { root, out, lora_input })
    }

    /// Whether a node rounds that value to q8 of one term.
    fn quantises(&self, node: NodeId, value: ValueId) -> bool {
        let node = self.graph.node(node);
        node.inputs == [value] && node.op.rounding() == Some(Round::Q8)
    }

    fn shrink(&self) -> Result<Composition, String> {
        let first = self.shared_inputs()?;
        let roots: Vec<ValueId> = self.group.roots.iter().map(|id| self.graph.node(*id).output).collect();
        self.only_outputs(&roots)?;
        Ok(Composition::Shrink { input: first.inputs[0], routing: first.inputs.get(1).copied() })
    }

    fn only_outputs(&self, stored: &[ValueId]) -> Result<(), String> {
        match self.group.outputs.iter().find(|value| !stored.contains(value)) {
            Some(other) => {
                Err(format!("{} is used outside, but such a kernel does not store it", self.name(*other)))
            }
            None => Ok(()),
        }
    }

    /// Roots whose results meet in the epilogue, with the epilogue's nodes that they meet in; in the order of
    /// the first roots.
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
                return Err(format!("{name} of the epilogue reads no result of the roots"));
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

    /// Results that meet have the same columns: what an epilogue's op reads and makes has.
    fn part(&self, roots: Vec<NodeId>, epilogue: &[NodeId]) -> Result<ComposedPart, String> {
        let outputs: Vec<ValueId> = roots.iter().map(|id| self.graph.node(*id).output).collect();
        let mut steps = EpilogueSteps::new(self, &roots, epilogue);
        for value in &outputs {
            steps.hand_out(*value)?;
        }
        for (done, id) in epilogue.iter().enumerate() {
            steps.node(self.graph.node(*id), &epilogue[done + 1..])?;
        }
        let steps = steps.done();
        if steps.is_empty() {
            return Err(format!("nothing that comes of {} is used", self.name(outputs[0])));
        }
        Ok(ComposedPart { roots, steps })
    }
}
