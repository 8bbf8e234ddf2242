//! Ops that stand for nodes: where a spec names one, it gets the nodes, with its own names in them. Nothing
//! behind the reader knows such ops, so that they mean what their nodes mean.

use super::section::{SpannedValue, SpecSection, check_name, scalar, string};
use super::{NodeArg, NodeDef, Result, Scalar, ScalarText, Spanned, SpecError, SpecText};
use std::collections::BTreeMap;
use std::ops::Range;

/// An op that stands for nodes.
#[derive(Clone, Debug)]
pub struct ExpandedOp {
    /// Name of the op.
    pub name: Spanned<String>,
    /// The computation, in words.
    pub doc: String,
    /// Keys that name values, in order.
    pub inputs: Vec<String>,
    /// Keys that name tensors.
    pub tensors: Vec<String>,
    /// Keys that hold numbers.
    pub numbers: Vec<String>,
    /// The nodes that it stands for; the last one computes its result.
    pub nodes: Vec<NodeDef>,
}

/// The replacement of a name of an op's nodes, and the place where the use of the op gives it.
enum Stands {
    Name(Spanned<String>),
    Number(Scalar),
}

impl Stands {
    fn span(&self) -> Range<usize> {
        match self {
            Stands::Name(name) => name.span.clone(),
            Stands::Number(number) => number.span.clone(),
        }
    }
}

impl ExpandedOp {
    /// The nodes of a use of the op; `name` is where the use names it.
    pub(super) fn expand(
        &self,
        source: &SpecText,
        item: &SpannedValue<'_>,
        name: &Spanned<String>,
    ) -> Result<Vec<NodeDef>> {
        let keys = || self.inputs.iter().chain(&self.tensors).chain(&self.numbers).map(String::as_str);
        let known: Vec<&str> = ["op", "out"].into_iter().chain(keys()).collect();
        let section =
            SpecSection::new(source, item, &format!("this `{}` node", self.name.value))?.only(&known)?;
        let out = string(source, section.require("out")?)?;
        check_name(source, &out)?;
        let mut stands = BTreeMap::new();
        for key in self.inputs.iter().chain(&self.tensors) {
            stands.insert(key.as_str(), Stands::Name(string(source, section.require(key)?)?));
        }
        for key in &self.numbers {
            stands.insert(key, Stands::Number(scalar(source, section.require(key)?)?));
        }
        let last = self.nodes.len() - 1;
        for (i, node) in self.nodes.iter().enumerate() {
            let own = if i == last { out.value.clone() } else { format!("{}_{}", out.value, node.out.value) };
            let own = Spanned { value: own, span: name.span.clone() };
            stands.insert(&node.out.value, Stands::Name(own));
        }
        self.nodes.iter().map(|node| self.node(source, node, &stands, name, &out)).collect()
    }

    fn node(
        &self,
        source: &SpecText,
        node: &NodeDef,
        stands: &BTreeMap<&str, Stands>,
        name: &Spanned<String>,
        out: &Spanned<String>,
    ) -> Result<NodeDef> {
        let rename = |text: &str| match stands.get(text) {
            Some(Stands::Name(name)) => name.value.clone(),
            _ => text.to_owned(),
        };
        let place = |text: &str| stands.get(text).map_or_else(|| name.span.clone(), Stands::span);
        let mut args = BTreeMap::new();
        for (key, arg) in &node.args {
            let span = match &arg.value {
                NodeArg::Text(text) | NodeArg::Scalar(ScalarText::Expr(text)) => place(text),
                _ => name.span.clone(),
            };
            let value = match &arg.value {
                NodeArg::Texts(texts) => {
                    let rename = |text: &Spanned<String>| Spanned {
                        value: rename(&text.value),
                        span: place(&text.value),
                    };
                    NodeArg::Texts(texts.iter().map(rename).collect())
                }
                NodeArg::Scalar(ScalarText::Expr(text)) => match stands.get(text.as_str()) {
                    Some(Stands::Number(number)) => NodeArg::Scalar(number.value.clone()),
                    _ => NodeArg::Scalar(ScalarText::Expr(text.clone())),
                },
                NodeArg::Text(text) if matches!(*key, "expr" | "activation") => {
                    // Of a glu, `gate` and `up` are the expression's own names.
                    let fixed = node.op.name != "elementwise";
                    NodeArg::Text(self.expression(source, text, stands, fixed, name)?)
                }
                NodeArg::Text(text) if !node.op.names(key) => NodeArg::Text(text.clone()),
                NodeArg::Text(text) => NodeArg::Text(rename(text)),
                scalar => scalar.clone(),
            };
            args.insert(*key, Spanned { value, span });
        }
        let out = Spanned { value: rename(&node.out.value), span: out.span.clone() };
        Ok(NodeDef { op: node.op, op_span: name.span.clone(), out, args })
    }

    /// An expression with the use's names and numbers; where the expression's variables are `fixed`, only
    /// with its numbers.
    fn expression(
        &self,
        source: &SpecText,
        text: &str,
        stands: &BTreeMap<&str, Stands>,
        fixed: bool,
        name: &Spanned<String>,
    ) -> Result<String> {
        let mut result = String::with_capacity(text.len());
        let mut rest = text;
        while let Some(c) = rest.chars().next() {
            let is_word = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '.');
            let len = rest.find(|c| !is_word(c)).unwrap_or(rest.len()).max(c.len_utf8());
            let (word, after) = rest.split_at(len);
            match stands.get(word) {
                Some(Stands::Name(name)) if !fixed => result.push_str(&name.value),
                Some(Stands::Number(Spanned { value: ScalarText::Number(number), .. })) => {
                    result.push_str(&format!("({number})"));
                }
                Some(Stands::Number(number)) => {
                    let message = format!("`{word}` of `{}` stands in an expression", self.name.value);
                    let error =
                        SpecError::new(source, number.span.clone(), message, "expected a plain number");
                    return Err(error.help(format!("`{}` is used here", name.value)));
                }
                _ => result.push_str(word),
            }
            rest = after;
        }
        Ok(result)
    }
}
