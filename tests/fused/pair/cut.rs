//! Rules cut out of a graph.

use super::RULE;
use kernmill_compiler::ir::{Graph, Node, NodeId, OpKind, Uses, ValueId};
use kernmill_compiler::passes::fuse::{KernelTemplate, MemberRole, edges};
use kernmill_compiler::testing::Rng;
use std::fmt::Write as _;

/// A node of the pattern in the making.
struct Line {
    id: NodeId,
    part: MemberRole,
    ops: Vec<&'static str>,
    inputs: Vec<String>,
    optional: bool,
}

struct Cut<'g> {
    graph: &'g Graph,
    uses: Uses,
    rng: &'g mut Rng,
    template: KernelTemplate,
    members: Vec<(NodeId, MemberRole)>,
    kv_write: Option<[ValueId; 2]>,
}

/// The text of a fused-op spec whose pattern is a stretch of the graph, quantised and with adapters as it is
/// compiled.
pub(super) fn rule(graph: &Graph, rng: &mut Rng) -> String {
    let root = anchor(graph, rng);
    let template = template(graph.node(root).kind(), rng);
    let mut cut = Cut { graph, uses: Uses::new(graph), rng, template, members: Vec::new(), kv_write: None };
    cut.roots(root);
    cut.before(root);
    cut.after();
    cut.cache();
    cut.text()
}

/// A node to begin with; one that is not row-wise where there is one, for the most part.
fn anchor(graph: &Graph, rng: &mut Rng) -> NodeId {
    let all: Vec<NodeId> = graph.nodes().map(|(id, _)| id).collect();
    let is = |id: &NodeId, kinds: &[&str]| kinds.contains(&graph.node(*id).kind().name);
    let kinds: &[&str] = match rng.below(10) {
        0 => return rng.pick(&all),
        1 => &["attention"],
        2 | 3 => &["lora_shrink", "expert_linear", "quant_expert_linear", "bf16_expert_linear"],
        _ => &["linear", "quant_linear"],
    };
    let fit: Vec<NodeId> = all.iter().copied().filter(|id| is(id, kinds)).collect();
    if fit.is_empty() { rng.pick(&all) } else { rng.pick(&fit) }
}

fn template(op: OpKind, rng: &mut Rng) -> KernelTemplate {
    match op.name {
        "linear" | "quant_linear" => KernelTemplate::Matmul,
        "expert_linear" | "quant_expert_linear" | "bf16_expert_linear" => {
            rng.pick(&[KernelTemplate::Experts, KernelTemplate::ExpertDown])
        }
        "attention" => KernelTemplate::Attention,
        "lora_shrink" => KernelTemplate::Shrink,
        _ => KernelTemplate::Rows,
    }
}

impl Cut<'_> {
    fn has(&self, id: NodeId) -> bool {
        self.members.iter().any(|(member, _)| *member == id)
    }

    fn node(&self, id: NodeId) -> &Node {
        self.graph.node(id)
    }

    fn legal(&self, id: NodeId, part: MemberRole) -> bool {
        kernmill_compiler::passes::fuse::legal_ops(self.template, part).contains(&self.node(id).kind())
    }

    /// The roots: those that read what `root` reads, in any order, or some of them.
    fn roots(&mut self, root: NodeId) {
        let first = self.node(root);
        let together = matches!(
            self.template,
            KernelTemplate::Matmul | KernelTemplate::Experts | KernelTemplate::Shrink
        );
        let alike = |node: &Node| {
            node.kind() == first.kind() && node.base_inputs() == first.base_inputs() && together
        };
        let mut roots: Vec<NodeId> =
            self.graph.nodes().filter(|(id, node)| *id == root || alike(node)).map(|(id, _)| id).collect();
        if self.rng.one_in(4) {
            roots.retain(|id| *id == root || self.rng.one_in(2));
        }
        if self.rng.one_in(4) {
            let by = self.rng.below(roots.len());
            roots.rotate_left(by);
        }
        self.members.extend(roots.into_iter().map(|id| (id, MemberRole::Root)));
    }

    /// Makes the steps before the roots, as far back as luck will have it.
    fn before(&mut self, root: NodeId) {
        let mut waiting: Vec<ValueId> = self.node(root).base_inputs().to_vec();
        while let Some(value) = waiting.pop() {
            let Some(id) = self.uses.producer(value) else { continue };
            if !self.has(id) && self.legal(id, MemberRole::Prologue) && !self.rng.one_in(6) {
                self.members.push((id, MemberRole::Prologue));
                waiting.extend(self.graph.node(id).base_inputs());
            }
        }
    }

    /// Makes the steps over the results, as far on as luck will have it.
    fn after(&mut self) {
        let stop = self.rng.pick(&[2, 6, 30]);
        for (id, node) in self.graph.nodes() {
            let reads = node.base_inputs().iter().any(|value| {
                let producer = self.uses.producer(*value);
                let part = self.members.iter().find(|(member, _)| Some(*member) == producer).map(|of| of.1);
                matches!(part, Some(MemberRole::Root | MemberRole::Epilogue))
            });
            if reads && !self.has(id) && self.legal(id, MemberRole::Epilogue) && !self.rng.one_in(stop) {
                self.members.push((id, MemberRole::Epilogue));
            }
        }
    }

    /// Keys and values go to the cache where the attention reads two members' results.
    fn cache(&mut self) {
        for (id, node) in self.graph.nodes() {
            let made = |value: &ValueId| self.uses.producer(*value).is_some_and(|id| self.has(id));
            if node.op.attention().is_some() && node.inputs[1..].iter().all(made) && !self.rng.one_in(4) {
                self.members.push((id, MemberRole::Context));
                self.kv_write = Some([node.inputs[1], node.inputs[2]]);
                return;
            }
        }
    }

    fn text(mut self) -> String {
        let inside: Vec<NodeId> =
            self.members.iter().filter(|(_, part)| *part != MemberRole::Context).map(|(id, _)| *id).collect();
        let (_, mut outputs) = edges(self.graph, &self.uses, &inside);
        let mut lines: Vec<Line> = Vec::with_capacity(self.members.len());
        for (id, part) in self.members.clone() {
            lines.push(self.line(id, part));
        }
        if self.rng.one_in(5) {
            self.spoil(&mut lines, &mut outputs);
        }
        let mut text = format!(
            "name = \"{RULE}\"\ndoc = \"cut out of a model\"\nkernel = \"{}\"\n",
            self.template.name()
        );
        match self.rng.below(8) {
            0 => text.push_str("before = \"qkv\"\n"),
            1 => text.push_str("priority = 750\n"),
            _ => {}
        }
        text.push_str("match = [\n");
        for line in &lines {
            let _ = writeln!(
                text,
                "  {{ name = \"{}\", op = {:?}, inputs = {:?}, part = \"{}\"{} }},",
                name(self.node(line.id).output),
                line.ops,
                line.inputs,
                line.part.name(),
                if line.optional { ", optional = true" } else { "" }
            );
        }
        let list =
            |values: &[ValueId]| format!("{:?}", values.iter().map(|id| name(*id)).collect::<Vec<_>>());
        let _ = writeln!(text, "]\noutputs = {}", list(&outputs));
        if let Some(written) = self.kv_write {
            let _ = writeln!(text, "kv_write = {}", list(&written));
        }
        self.hints(&mut text);
        text
    }

    fn line(&mut self, id: NodeId, part: MemberRole) -> Line {
        let node = self.graph.node(id);
        let mut ops = vec![node.kind().name];
        if node.kind().name == "quant_linear" && self.rng.one_in(2) {
            ops.push("linear");
        }
        let rounds = matches!(node.kind().name, "quantize_q8" | "bf16_cast" | "kv_cast");
        let optional =
            rounds && matches!(part, MemberRole::Prologue | MemberRole::Epilogue) && self.rng.one_in(3);
        let inputs = node.base_inputs().iter().map(|value| name(*value)).collect();
        Line { id, part, ops, inputs, optional }
    }

    /// Something that is not so.
    fn spoil(&mut self, lines: &mut Vec<Line>, outputs: &mut Vec<ValueId>) {
        let at = self.rng.below(lines.len());
        match self.rng.below(6) {
            0 => drop(lines.remove(at)),
            1 => {
                lines[at].part = self.rng.pick(&[
                    MemberRole::Prologue,
                    MemberRole::Root,
                    MemberRole::Epilogue,
                    MemberRole::Context,
                ])
            }
            2 => drop(outputs.pop()),
            3 => outputs.push(self.node(lines[at].id).output),
            4 => lines[at].inputs.reverse(),
            _ => lines[at].optional = true,
        }
    }

    /// Hints and guards that change no bit.
    fn hints(&mut self, text: &mut String) {
        let root = self.members[0].0;
        if self.rng.one_in(6) {
            let by = self.rng.pick(&[1, 16, 32]);
            let root = name(self.node(root).output);
            let _ = writeln!(
                text,
                "[[guard]]\ncheck = \"multiple_of\"\ncols = \"{root}\"\nby = {by}\nwhy = \"luck\""
            );
        }
        if self.rng.one_in(3) {
            let _ = writeln!(text, "[schedule]");
            for line in ["prologue = \"workers\"", "tiling = \"dots\"", "rows_per_item = 32"] {
                let line = match self.rng.below(3) {
                    0 => continue,
                    1 => line,
                    _ => match line {
                        "prologue = \"workers\"" => "prologue = \"step\"",
                        "tiling = \"dots\"" => "tiling = \"panels\"",
                        _ => "rows_per_item = 16",
                    },
                };
                let _ = writeln!(text, "{line}");
            }
        }
    }
}

fn name(value: ValueId) -> String {
    format!("v{}", value.0)
}
