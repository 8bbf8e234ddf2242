//! Reads the text form of a graph.

use super::cursor::{LineCursor, unknown};
use super::{
    Graph, Node, Role, RopeParameters, RopeScaling, RowSelect, Tensor, TensorId, TensorSource, Type, Value,
    ValueId,
};
use crate::ir::ops;
use kernmill_kernels_gen::row_op::RopePairs;
use kernmill_plan::vectors::{Pooling, VectorForm};
use std::collections::HashMap;
use std::str::FromStr;

/// Why a text is not a graph.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("line {line}: {message}")]
pub struct ParseError {
    /// Line, counted from 1.
    pub line: usize,
    /// The expected text.
    pub message: String,
}

type Result<T> = std::result::Result<T, String>;

impl FromStr for Graph {
    type Err = ParseError;

    /// Parses and verifies. Empty lines and lines that start with `#` are skipped.
    fn from_str(text: &str) -> std::result::Result<Graph, ParseError> {
        let mut reader = GraphReader::default();
        let mut last = 0;
        for (i, line) in text.lines().enumerate() {
            last = i + 1;
            if !line.trim().is_empty() && !line.starts_with('#') {
                reader.line(line).map_err(|message| ParseError { line: last, message })?;
            }
        }
        let error = |message| ParseError { line: last, message };
        let graph = reader.finish().map_err(error)?;
        graph.verify().map_err(|e| error(e.to_string()))?;
        Ok(graph)
    }
}

#[derive(Default)]
struct GraphReader {
    header: Option<(String, usize, usize)>,
    values: Vec<Value>,
    value_ids: HashMap<String, ValueId>,
    left_out: Vec<String>,
    tensors: Vec<Tensor>,
    tensor_ids: HashMap<String, TensorId>,
    nodes: Vec<Node>,
    ropes: Vec<RopeParameters>,
    output: Option<ValueId>,
    vectors: Option<VectorForm>,
}

impl GraphReader {
    fn finish(self) -> Result<Graph> {
        let (name, vocab, max_context) = self.header.ok_or("no `model` line")?;
        let output = self.output.ok_or("no `output` line")?;
        let GraphReader { values, left_out, tensors, nodes, ropes, vectors, .. } = self;
        Ok(Graph { name, vocab, max_context, left_out, values, tensors, nodes, ropes, output, vectors })
    }

    fn line(&mut self, line: &str) -> Result<()> {
        let mut at = LineCursor::new(line);
        if line.starts_with('%') {
            self.node(&mut at)?;
        } else {
            match at.word()? {
                "model" => self.model(&mut at)?,
                "left_out" => self.left_out.push(at.string()?),
                "rope" => self.rope(&mut at)?,
                "tensor" => self.tensor(&mut at)?,
                "input" => {
                    let name = at.name('%')?;
                    at.expect(":")?;
                    let ty = at.ty()?;
                    self.define(name, ty)?;
                }
                "output" => {
                    self.output = Some(self.value(at.name('%')?)?);
                    if at.eat("vectors") {
                        let word = at.word()?;
                        let pooling = Pooling::from_name(word).ok_or_else(|| unknown("pooling", word))?;
                        self.vectors = Some(VectorForm { pooling, normalise: at.eat("normalised") });
                    }
                }
                other => {
                    return Err(format!(
                        "expected model, left_out, rope, tensor, input, output or a node, found `{other}`"
                    ));
                }
            }
        }
        at.end()
    }

    fn model(&mut self, at: &mut LineCursor) -> Result<()> {
        let name = at.string()?;
        at.expect("vocab")?;
        let vocab = at.number()?;
        at.expect("context")?;
        self.header = Some((name, vocab, at.number()?));
        Ok(())
    }

    fn rope(&mut self, at: &mut LineCursor) -> Result<()> {
        let index: usize = at.number()?;
        if index != self.ropes.len() {
            return Err(format!("expected rope {}, found {index}", self.ropes.len()));
        }
        let head_dim = at.field("head_dim")?;
        let theta = at.field("theta")?;
        let scaling = match at.word()? {
            "plain" => RopeScaling::Plain,
            "linear" => RopeScaling::Linear { factor: at.field("factor")? },
            "yarn" => RopeScaling::Yarn {
                factor: at.field("factor")?,
                beta_fast: at.field("beta_fast")?,
                beta_slow: at.field("beta_slow")?,
                original_context: at.field("original_context")?,
                truncate: at.field("truncate")?,
            },
            "llama3" => RopeScaling::Llama3 {
                factor: at.field("factor")?,
                low_freq_factor: at.field("low_freq_factor")?,
                high_freq_factor: at.field("high_freq_factor")?,
                original_context: at.field("original_context")?,
            },
            other => return Err(format!("expected plain, linear, yarn or llama3, found `{other}`")),
        };
        let mut rope = RopeParameters::new(head_dim, theta, scaling);
        if at.eat("rotary_dim") {
            rope.head.rotary_dim = at.number()?;
        }
        if at.eat("neighbours") {
            rope.head.pairs = RopePairs::Neighbours;
        }
        if at.eat("factors") {
            at.expect("[")?;
            rope.factors.push(at.number()?);
            while at.eat(",") {
                rope.factors.push(at.number()?);
            }
            at.expect("]")?;
        }
        if at.eat("attention_factor") {
            rope.attention_factor = Some(at.number()?);
        }
        self.ropes.push(rope);
        Ok(())
    }

    fn tensor(&mut self, at: &mut LineCursor) -> Result<()> {
        let name = at.name('@')?.to_string();
        let role = at.word()?;
        let role = Role::ALL.into_iter().find(|r| r.name() == role).ok_or_else(|| unknown("role", role))?;
        let format = at.format()?;
        at.expect("[")?;
        let mut shape = vec![at.number()?];
        while at.eat(",") {
            shape.push(at.number()?);
        }
        at.expect("]")?;
        let stored = if at.eat("stored") { at.format()? } else { format };
        at.expect("from")?;
        let source_name = at.string()?;
        let scales = if at.eat("scales") { Some(at.string()?) } else { None };
        let rows = match if at.eat("rows") { at.word()? } else { "all" } {
            "all" => RowSelect::ALL,
            "even" => RowSelect::EVEN,
            "odd" => RowSelect::ODD,
            other => {
                let wrong = || unknown("row selection", other);
                let (first, end) = other.split_once("..").ok_or_else(wrong)?;
                let take = first.parse().map_err(|_| wrong())?..end.parse().map_err(|_| wrong())?;
                RowSelect::new(at.field("of")?, take).ok_or_else(wrong)?
            }
        };
        let transposed = at.eat("transposed");
        let plus = if at.eat("plus") { at.number()? } else { 0.0 };
        let id = TensorId(self.tensors.len() as u32);
        if self.tensor_ids.insert(name.clone(), id).is_some() {
            return Err(format!("@{name} is defined twice"));
        }
        let source = TensorSource { name: source_name, scales, rows, transposed };
        self.tensors.push(Tensor { name, role, shape, stored, format, plus, source });
        Ok(())
    }

    fn node(&mut self, at: &mut LineCursor) -> Result<()> {
        let name = at.name('%')?;
        at.expect("=")?;
        let op = ops::parse(at)?;
        let (mut inputs, mut tensors) = (Vec::new(), Vec::new());
        loop {
            if at.peek('%') {
                inputs.push(self.value(at.name('%')?)?);
            } else {
                let name = at.name('@')?;
                let id = self.tensor_ids.get(name);
                tensors.push(*id.ok_or_else(|| format!("@{name} is not defined"))?);
            }
            if !at.eat(",") {
                break;
            }
        }
        at.expect(":")?;
        let stated = at.ty()?;
        let types: Vec<Type> = inputs.iter().map(|value| self.values[value.0 as usize].ty).collect();
        let operands: Vec<&Tensor> = tensors.iter().map(|tensor| &self.tensors[tensor.0 as usize]).collect();
        let ty = ops::infer(&op, &types, &operands, &self.ropes)?;
        if ty != stated {
            return Err(format!("the output is {}, stated as {}", ty.text(), stated.text()));
        }
        let output = self.define(name, ty)?;
        self.nodes.push(Node { op, inputs, tensors, output });
        Ok(())
    }

    fn define(&mut self, name: &str, ty: Type) -> Result<ValueId> {
        let id = ValueId(self.values.len() as u32);
        if self.value_ids.insert(name.into(), id).is_some() {
            return Err(format!("%{name} is defined twice"));
        }
        self.values.push(Value { name: name.into(), ty });
        Ok(id)
    }

    fn value(&self, name: &str) -> Result<ValueId> {
        self.value_ids.get(name).copied().ok_or_else(|| format!("%{name} is not defined before its use"))
    }
}
