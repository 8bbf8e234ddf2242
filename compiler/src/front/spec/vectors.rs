//! The same model with another output: a spec that ends in logits becomes one that ends in vectors.

use super::section::{SpannedValue, SpecSection, array, string};
use super::{LayerNode, NodeArg, NodeDef, Result, Spec, SpecError};
use crate::ir::ops::keys::ParamKind;
use kernmill_plan::vectors::VectorForm;
use std::ops::Range;
use toml::de::DeTable;

/// Names of the ops that make a model's output.
const OUTPUTS: [&str; 2] = ["logits", "embedding"];

impl Spec {
    /// Whether the model's output is vectors.
    pub fn makes_vectors(&self) -> bool {
        self.after.iter().any(|node| node.op.name == "embedding")
    }

    /// The text of this spec, with vectors of that form as its output: an `embedding` node in place of the
    /// output's node, and none of the tensors that it alone has read.
    ///
    /// # Errors
    /// When no node of `[after]` makes an output, or what is to go is not written as `{ ... }`.
    pub fn with_vectors(&self, form: VectorForm) -> Result<String> {
        let source = &self.source;
        let Some(output) = self.after.iter().find(|node| OUTPUTS.contains(&node.op.name)) else {
            let span = self.model.name.span.clone();
            let error =
                SpecError::new(source, span, "no node of [after] makes logits", "expected in this model");
            return Err(error.help("write an `embedding` node where vectors are wanted"));
        };
        let document = DeTable::parse(source.text()).map_err(|error| {
            SpecError::new(source, 0..0, format!("not TOML: {}", error.message()), "here")
        })?;
        let root = SpecSection::root(source, document.get_ref(), "the spec");
        let after = SpecSection::new(source, root.require("after")?, "[after]")?;
        let nodes = array(source, after.require("node")?)?;
        let of_output = |item: &&SpannedValue<'_>| {
            let node = SpecSection::new(source, item, "this node");
            let out = node.and_then(|node| string(source, node.require("out")?));
            out.is_ok_and(|out| out.value == output.out.value)
        };
        let place = match nodes.iter().find(of_output) {
            Some(item) => self.braces(item.span())?,
            None => self.braces(output.op_span.clone())?,
        };
        let input = match output.args.get("input").map(|arg| &arg.value) {
            Some(NodeArg::Text(name)) => name.as_str(),
            _ => "",
        };
        let node = format!(
            "{{ out = \"{}\", op = \"embedding\", input = \"{input}\", pool = \"{}\", normalise = {} }}",
            output.out.value,
            form.pooling.name(),
            form.normalise
        );
        let mut edits = vec![(place, node)];
        // Nodes that change the logits go with them.
        let behind = nodes.iter().skip_while(|item| !of_output(item)).skip(1);
        for item in behind {
            edits.push((self.lines(self.braces(item.span())?), String::new()));
        }
        let others = || {
            let layers = self.layer.iter().flat_map(|layer| &layer.nodes).filter_map(|node| match node {
                LayerNode::Op(node) => Some(node),
                LayerNode::Block(_) => None,
            });
            let blocks = self.blocks.iter().flat_map(|block| &block.nodes);
            let all = self.before.iter().chain(layers).chain(blocks).chain(&self.after);
            all.filter(|node| node.out.span != output.out.span)
        };
        let gone = tensors(output).filter(|name| others().all(|node| tensors(node).all(|it| it != *name)));
        for name in gone {
            let Some(table) = root.get("tensors") else { continue };
            let entries = SpecSection::new(source, table, "[tensors]")?.entries();
            if let Some((key, item)) = entries.into_iter().find(|(key, _)| key.value == name) {
                let value = self.braces(item.span())?;
                edits.push((self.lines(key.span.start..value.end), String::new()));
            }
        }
        edits.sort_by_key(|(place, _)| std::cmp::Reverse(place.start));
        let mut text = source.text().to_owned();
        edits.into_iter().for_each(|(place, new)| text.replace_range(place, &new));
        Ok(text)
    }

    /// A part of the text that is an inline table.
    fn braces(&self, span: Range<usize>) -> Result<Range<usize>> {
        if self.source.text().get(span.clone()).is_some_and(|text| text.starts_with('{')) {
            return Ok(span);
        }
        let message = "the output is to be vectors, but this is no table on one line";
        Err(SpecError::new(&self.source, span, message, "expected `{ ... }`")
            .help("write an `embedding` node in place of `logits` yourself"))
    }

    /// The whole lines that a part of the text is on.
    fn lines(&self, span: Range<usize>) -> Range<usize> {
        let text = self.source.text();
        let start = text[..span.start].rfind('\n').map_or(0, |at| at + 1);
        start..text[span.end..].find('\n').map_or(text.len(), |at| span.end + at + 1)
    }
}

/// Names of the tensors that a node reads.
fn tensors(node: &NodeDef) -> impl Iterator<Item = &str> {
    let keys = node.op.params.iter().filter(|key| key.kind == ParamKind::Tensor);
    keys.filter_map(|key| match node.args.get(key.name).map(|arg| &arg.value) {
        Some(NodeArg::Text(name)) => Some(name.as_str()),
        _ => None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::front::spec::lower;
    use kernmill_plan::vectors::Pooling;

    const NANO: &str = include_str!("../../../../model-specs/nano/nano.toml");

    fn changed(text: &str, pooling: Pooling) -> String {
        let spec = Spec::parse("spec", text).unwrap();
        spec.with_vectors(VectorForm { pooling, normalise: true }).unwrap()
    }

    #[test]
    fn the_output_becomes_vectors() {
        let text = changed(NANO, Pooling::Mean);
        let end = "{ out = \"logits\", op = \"embedding\", input = \"normed\", pool = \"mean\", normalise = true },";
        assert!(text.contains(end), "{text}");
        assert!(!text.contains("lm_head"), "{text}");
        let graph = lower(&Spec::parse("spec", &text).unwrap()).unwrap();
        assert_eq!(graph.vectors, Some(VectorForm { pooling: Pooling::Mean, normalise: true }));
        assert_eq!(graph.value(graph.output).name, "normed");
        assert_eq!(graph.to_string().parse(), Ok(graph));
        assert_eq!(changed(&text, Pooling::Last), changed(NANO, Pooling::Last));
    }

    #[test]
    fn a_table_that_others_read_stays() {
        let text = NANO.replace("weight = \"lm_head\"", "weight = \"embed\"");
        assert!(changed(&text, Pooling::Last).contains("\nembed "));
    }

    #[test]
    fn other_ways_to_write_a_node_are_refused() {
        let (head, after) = NANO.split_once("[after]").unwrap();
        let nodes = after.lines().filter(|line| line.trim_start().starts_with('{'));
        let nodes = nodes.map(|line| {
            let keys = line.trim().trim_start_matches('{').trim_end_matches("},").replace("\", ", "\"\n");
            format!("[[after.node]]\n{keys}\n")
        });
        let text = format!("{head}{}", nodes.collect::<String>());
        let spec = Spec::parse("spec", &text).unwrap();
        let error = spec.with_vectors(VectorForm { pooling: Pooling::Last, normalise: true }).unwrap_err();
        assert!(error.to_string().contains("no table on one line"), "{error}");
    }
}
