//! Reads the text form of a graph.

use super::infer::{MAX_INPUTS, infer};
use super::text::GLU_VARS;
use super::{
    Activations, Attention, Graph, Node, Op, OpKind, Role, Rope, RopeScaling, RowSelect, Rows, Source,
    Tensor, TensorId, Type, Value, ValueId,
};
use crate::expr;
use kernmill_kernels_gen::expr::Expr;
use kernmill_plan::format::WeightFormat;
use kernmill_plan::kv::KvElem;
use std::collections::HashMap;
use std::str::FromStr;

/// Why a text is not a graph.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("line {line}: {message}")]
pub struct ParseError {
    /// Line, counted from 1.
    pub line: usize,
    /// What was expected.
    pub message: String,
}

type Result<T> = std::result::Result<T, String>;

impl FromStr for Graph {
    type Err = ParseError;

    /// Parses and verifies. Empty lines and lines that start with `#` are skipped.
    fn from_str(text: &str) -> std::result::Result<Graph, ParseError> {
        let mut reader = Reader::default();
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
struct Reader {
    header: Option<(String, usize, usize)>,
    values: Vec<Value>,
    value_ids: HashMap<String, ValueId>,
    tensors: Vec<Tensor>,
    tensor_ids: HashMap<String, TensorId>,
    nodes: Vec<Node>,
    ropes: Vec<Rope>,
    output: Option<ValueId>,
}

impl Reader {
    fn finish(self) -> Result<Graph> {
        let (name, vocab, max_context) = self.header.ok_or("no `model` line")?;
        let output = self.output.ok_or("no `output` line")?;
        let Reader { values, tensors, nodes, ropes, .. } = self;
        Ok(Graph { name, vocab, max_context, values, tensors, nodes, ropes, output })
    }

    fn line(&mut self, line: &str) -> Result<()> {
        let mut at = Cursor { rest: line };
        if line.starts_with('%') {
            self.node(&mut at)?;
        } else {
            match at.word()? {
                "model" => self.model(&mut at)?,
                "rope" => self.rope(&mut at)?,
                "tensor" => self.tensor(&mut at)?,
                "input" => {
                    let name = at.name('%')?;
                    at.expect(":")?;
                    let ty = at.ty()?;
                    self.define(name, ty)?;
                }
                "output" => self.output = Some(self.value(at.name('%')?)?),
                other => {
                    return Err(format!(
                        "expected model, rope, tensor, input, output or a node, found `{other}`"
                    ));
                }
            }
        }
        at.end()
    }

    fn model(&mut self, at: &mut Cursor) -> Result<()> {
        let name = at.string()?;
        at.expect("vocab")?;
        let vocab = at.number()?;
        at.expect("context")?;
        self.header = Some((name, vocab, at.number()?));
        Ok(())
    }

    fn rope(&mut self, at: &mut Cursor) -> Result<()> {
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
        self.ropes.push(Rope { head_dim, theta, scaling });
        Ok(())
    }

    fn tensor(&mut self, at: &mut Cursor) -> Result<()> {
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
            "all" => RowSelect::All,
            "even" => RowSelect::Even,
            "odd" => RowSelect::Odd,
            other => return Err(unknown("row selection", other)),
        };
        let transposed = at.eat("transposed");
        let id = TensorId(self.tensors.len() as u32);
        if self.tensor_ids.insert(name.clone(), id).is_some() {
            return Err(format!("@{name} is defined twice"));
        }
        let source = Source { name: source_name, scales, rows, transposed };
        self.tensors.push(Tensor { name, role, shape, stored, format, source });
        Ok(())
    }

    fn node(&mut self, at: &mut Cursor) -> Result<()> {
        let name = at.name('%')?;
        at.expect("=")?;
        let op = at.op()?;
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
        let ty = infer(&op, &types, &operands, &self.ropes)?;
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

fn unknown(what: &str, found: &str) -> String {
    format!("unknown {what} `{found}`")
}

struct Cursor<'t> {
    rest: &'t str,
}

impl<'t> Cursor<'t> {
    fn take_while(&mut self, keep: impl Fn(char) -> bool) -> &'t str {
        self.rest = self.rest.trim_start();
        let end = self.rest.find(|c| !keep(c)).unwrap_or(self.rest.len());
        let (taken, rest) = self.rest.split_at(end);
        self.rest = rest;
        taken
    }

    fn word(&mut self) -> Result<&'t str> {
        let word = self.take_while(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '.' | '-' | '+'));
        if word.is_empty() { Err(format!("expected a word at `{}`", self.rest)) } else { Ok(word) }
    }

    fn number<T: FromStr>(&mut self) -> Result<T> {
        let word = self.word()?;
        word.parse().map_err(|_| format!("expected a {}, found `{word}`", std::any::type_name::<T>()))
    }

    fn peek(&mut self, c: char) -> bool {
        self.rest = self.rest.trim_start();
        self.rest.starts_with(c)
    }

    fn eat(&mut self, token: &str) -> bool {
        self.rest = self.rest.trim_start();
        match self.rest.strip_prefix(token) {
            Some(rest) => {
                self.rest = rest;
                true
            }
            None => false,
        }
    }

    fn expect(&mut self, token: &str) -> Result<()> {
        if self.eat(token) { Ok(()) } else { Err(format!("expected `{token}` at `{}`", self.rest)) }
    }

    /// `name value`
    fn field<T: FromStr>(&mut self, name: &str) -> Result<T> {
        self.expect(name)?;
        self.number()
    }

    /// `name=value`
    fn attribute<T: FromStr>(&mut self, name: &str) -> Result<T> {
        self.expect(name)?;
        self.expect("=")?;
        self.number()
    }

    fn name(&mut self, sigil: char) -> Result<&'t str> {
        self.expect(sigil.encode_utf8(&mut [0; 4]))?;
        self.word()
    }

    fn string(&mut self) -> Result<String> {
        self.expect("\"")?;
        let mut text = String::new();
        let mut chars = self.rest.char_indices();
        while let Some((i, c)) = chars.next() {
            match c {
                '"' => {
                    self.rest = &self.rest[i + 1..];
                    return Ok(text);
                }
                '\\' => match chars.next() {
                    Some((_, 'n')) => text.push('\n'),
                    Some((_, c)) => text.push(c),
                    None => break,
                },
                _ => text.push(c),
            }
        }
        Err("expected `\"` at the end of the string".into())
    }

    fn format(&mut self) -> Result<WeightFormat> {
        let word = self.word()?;
        WeightFormat::from_name(word).ok_or_else(|| unknown("format", word))
    }

    fn ty(&mut self) -> Result<Type> {
        let kind = self.word()?;
        self.expect("[")?;
        let rows = match self.word()? {
            "T" if self.eat("*") => Rows::Slots(self.number()?),
            "T" => Rows::Tokens,
            "R" => Rows::LogitRows,
            other => return Err(format!("expected rows T, T*k or R, found `{other}`")),
        };
        let cols = if self.eat(",") { Some(self.number()?) } else { None };
        self.expect("]")?;
        match (kind, rows, cols) {
            ("ids", Rows::Tokens, None) => Ok(Type::TokenIds),
            ("f32", _, Some(cols)) => Ok(Type::F32(rows, cols)),
            ("q8", _, Some(cols)) => Ok(Type::Q8(rows, cols)),
            ("f16", _, Some(cols)) => Ok(Type::F16(rows, cols)),
            ("bf16", _, Some(cols)) => Ok(Type::Bf16(rows, cols)),
            ("routing", Rows::Tokens, Some(k)) => {
                u32::try_from(k).map(Type::Routing).map_err(|_| "routing too wide".to_string())
            }
            _ => Err(unknown("type", kind)),
        }
    }

    fn op(&mut self) -> Result<Op> {
        let word = self.word()?;
        let kind = OpKind::from_name(word).ok_or_else(|| unknown("op", word))?;
        let has_attributes = self.eat("(");
        let op = match kind {
            OpKind::Embed => Op::Embed,
            OpKind::RmsNorm => Op::RmsNorm { eps: self.attribute("eps")? },
            OpKind::Linear if has_attributes => {
                self.expect("activations=f32")?;
                Op::Linear(Activations::F32)
            }
            OpKind::Linear => Op::Linear(Activations::AsPreset),
            OpKind::QuantLinear => Op::QuantLinear,
            OpKind::QuantizeQ8 => Op::QuantizeQ8,
            OpKind::Bf16Cast => Op::Bf16Cast,
            OpKind::Rope => {
                let rope = self.attribute("rope")?;
                self.expect(",")?;
                Op::Rope { rope, head_dim: self.attribute("head_dim")? }
            }
            OpKind::KvCast => Op::KvCast,
            OpKind::Attention => Op::Attention(self.attention()?),
            OpKind::RouterTopk => Op::RouterTopk { k: self.attribute("k")? },
            OpKind::ExpertLinear => Op::ExpertLinear,
            OpKind::QuantExpertLinear => Op::QuantExpertLinear,
            OpKind::Bf16ExpertLinear => Op::Bf16ExpertLinear,
            OpKind::ExpertSum => Op::ExpertSum,
            OpKind::Glu => Op::Glu { expr: self.expr(&GLU_VARS)? },
            OpKind::Elementwise => {
                let vars: Vec<String> = (0..MAX_INPUTS).map(|i| format!("x{i}")).collect();
                let vars: Vec<&str> = vars.iter().map(String::as_str).collect();
                Op::Elementwise { expr: self.expr(&vars)? }
            }
            OpKind::Add => Op::Add,
            OpKind::Mul => Op::Mul,
            OpKind::SelectRows => Op::SelectRows,
            OpKind::LoraShrink => {
                let lora_target = self.attribute("site")?;
                self.expect(",")?;
                self.expect("format")?;
                self.expect("=")?;
                Op::LoraShrink { lora_target, format: self.format()? }
            }
        };
        if has_attributes {
            self.expect(")")?;
        }
        Ok(op)
    }

    fn attention(&mut self) -> Result<Attention> {
        let layer = self.attribute("layer")?;
        self.expect(",")?;
        let heads = self.attribute("heads")?;
        self.expect(",")?;
        let kv_heads = self.attribute("kv_heads")?;
        self.expect(",")?;
        let head_dim = self.attribute("head_dim")?;
        self.expect(",")?;
        let scale = self.attribute("scale")?;
        self.expect(",")?;
        let mut window = None;
        if self.peek('w') {
            window = Some(self.attribute("window")?);
            self.expect(",")?;
        }
        self.expect("kv")?;
        self.expect("=")?;
        let kv = match self.word()? {
            "f16" => KvElem::F16,
            "f32" => KvElem::F32,
            other => return Err(unknown("KV element type", other)),
        };
        Ok(Attention { layer, heads, kv_heads, head_dim, scale, window, kv })
    }

    fn expr(&mut self, vars: &[&str]) -> Result<Expr> {
        expr::parse(&self.string()?, vars).map_err(|error| format!("expression: {error}"))
    }

    fn end(&mut self) -> Result<()> {
        let rest = self.rest.trim();
        if rest.is_empty() { Ok(()) } else { Err(format!("expected the end of the line at `{rest}`")) }
    }
}
