//! The spec language: a model as TOML. `docs/user/spec-language.md` is its reference.
//!
//! [`Spec::parse`] reads and checks everything that needs no shapes; [`lower`] makes the graph and checks the
//! rest. Every error shows the place in the file.
//!
//! Errors in a spec, shown with the source line they are about.

mod at;
mod expand;
mod lower;
mod lower_ops;
mod lower_tensors;
pub mod number;
pub mod ops;
mod read;
mod scope;
pub(crate) mod section;
#[cfg(test)]
mod tests;

use crate::expr::ExprFunction;
use crate::graph::RowSelect;
use annotate_snippets::{AnnotationKind, Level, Renderer, Snippet};
pub(crate) use at::LoweredNode;
pub use expand::ExpandedOp;
use kernmill_plan::format::WeightFormat;
pub use lower::lower;
pub(crate) use lower::show;
use number::Number;
use ops::OpInfo;
pub(crate) use read::nodes;
pub(crate) use scope::inner_span;
use std::collections::BTreeMap;
use std::fmt;
use std::ops::Range;
use std::sync::Arc;

/// Something from the file and where it stands.
#[derive(Clone, Debug)]
pub struct Spanned<T> {
    /// The thing.
    pub value: T,
    /// Bytes of the thing in the file.
    pub span: Range<usize>,
}

/// A spec as written: names resolved to nothing yet, dims evaluated.
#[derive(Clone, Debug)]
pub struct Spec {
    /// The text.
    pub source: SpecText,
    /// `[model]`.
    pub model: ModelSection,
    /// `[dims]`, evaluated.
    pub dims: BTreeMap<String, Number>,
    /// `[rope.NAME]`, in order of appearance.
    pub ropes: Vec<RopeDef>,
    /// `[tensors]`.
    pub tensors: Vec<TensorDef>,
    /// Nodes before the layers.
    pub before: Vec<NodeDef>,
    /// `[layer]`, if there is one.
    pub layer: Option<LayerDef>,
    /// Nodes after the layers.
    pub after: Vec<NodeDef>,
    /// Functions that expressions may call besides the built-in ones.
    pub functions: Vec<ExprFunction>,
}

/// `[model]`.
#[derive(Clone, Debug)]
pub struct ModelSection {
    /// Name of the model.
    pub name: Spanned<String>,
    /// Vocabulary size.
    pub vocab: Scalar,
    /// Longest context in tokens.
    pub max_context: Scalar,
}

/// A number as written.
pub type Scalar = Spanned<ScalarText>;

/// A literal, or an expression over dims and per-layer values.
#[derive(Clone, Debug)]
pub enum ScalarText {
    /// A literal.
    Number(Number),
    /// An expression.
    Expr(String),
}

/// `[rope.NAME]`.
#[derive(Clone, Debug)]
pub struct RopeDef {
    /// Name of the rope.
    pub name: Spanned<String>,
    /// Elements per head.
    pub head_dim: Scalar,
    /// Base.
    pub theta: Scalar,
    /// Name of the scaling, if any.
    pub scaling: Option<RopeScalingDef>,
}

/// `scaling = { ... }` of a rope.
#[derive(Clone, Debug)]
pub struct RopeScalingDef {
    /// Kind of the scaling.
    pub kind: RopeKind,
    /// Bytes of the whole scaling in the file.
    pub span: Range<usize>,
    /// Numbers of the scaling by key.
    pub numbers: BTreeMap<&'static str, Scalar>,
    /// YaRN's `truncate`.
    pub truncate: bool,
}

/// Kinds of long-context scaling.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum RopeKind {
    Linear,
    Dynamic,
    Yarn,
    Llama3,
}

/// A tensor: `name = { from = "...", shape = [...], format = "..." }`.
#[derive(Clone, Debug)]
pub struct TensorDef {
    /// Logical name.
    pub name: Spanned<String>,
    /// Checkpoint tensor; `{layer}` stands for the layer's number.
    pub from: Spanned<String>,
    /// Checkpoint tensor of MXFP4 scales.
    pub scales: Option<Spanned<String>>,
    /// Shape after row selection.
    pub shape: Spanned<Vec<Scalar>>,
    /// Format in the checkpoint.
    pub format: Spanned<WeightFormat>,
    /// Rows taken.
    pub rows: RowSelect,
    /// Where it says that the checkpoint stores the matrix the other way round, if it does.
    pub transposed: Option<Range<usize>>,
}

/// `[layer]`: a template that is repeated.
#[derive(Clone, Debug)]
pub struct LayerDef {
    /// How often.
    pub count: Scalar,
    /// Values handed on: name on entry -> name of the layer's value that has it on exit.
    pub carry: Vec<(Spanned<String>, Spanned<String>)>,
    /// Per-layer values.
    pub values: Vec<LayerValueDef>,
    /// `[layer.tensors]`.
    pub tensors: Vec<TensorDef>,
    /// Nodes of a layer.
    pub nodes: Vec<NodeDef>,
}

/// A per-layer value.
#[derive(Clone, Debug)]
pub struct LayerValueDef {
    /// Name of the value.
    pub name: Spanned<String>,
    /// Whether `items` repeat; else there is one per layer.
    pub cycle: bool,
    /// Numbers, or `"full"`.
    pub items: Spanned<Vec<Scalar>>,
}

/// A node.
#[derive(Clone, Debug)]
pub struct NodeDef {
    /// Operation.
    pub op: &'static OpInfo,
    /// Bytes of the operation's name.
    pub op_span: Range<usize>,
    /// Name of the value it computes.
    pub out: Spanned<String>,
    /// Other keys of the node, with what they hold.
    pub args: BTreeMap<&'static str, Spanned<NodeArg>>,
}

/// Additions of fused-op specs to the language.
#[derive(Clone, Debug, Default)]
pub struct Language {
    /// Functions of elementwise expressions.
    pub functions: Vec<ExprFunction>,
    /// Ops that stand for nodes.
    pub ops: Vec<ExpandedOp>,
}

/// The value of a node's key.
#[derive(Clone, Debug)]
pub enum NodeArg {
    /// A name (of a value, tensor or rope), or an elementwise expression.
    Text(String),
    /// Names.
    Texts(Vec<Spanned<String>>),
    /// A number.
    Scalar(ScalarText),
}

impl Spec {
    /// Reads a spec; `name` is its file's, for errors.
    ///
    /// # Errors
    /// The first thing that is wrong, with its place.
    pub fn parse(name: &str, text: &str) -> Result<Spec> {
        Spec::parse_with(name, text, &Language::default())
    }

    /// Parses a spec as [`Spec::parse`] does, in a language with more functions and ops.
    ///
    /// # Errors
    /// As [`Spec::parse`].
    pub fn parse_with(name: &str, text: &str, language: &Language) -> Result<Spec> {
        read::spec(&SpecText::new(name, text), language)
    }
}

/// The text of a spec and the name of its file.
#[derive(Clone, Debug)]
pub struct SpecText {
    text: Arc<str>,
    name: Arc<str>,
}

impl SpecText {
    /// Text of the file called `name`.
    pub fn new(name: &str, text: &str) -> SpecText {
        SpecText { text: text.into(), name: name.into() }
    }

    /// Name of the file.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The text.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Line and column (from 1, in characters) of byte `offset`.
    pub fn line_column(&self, offset: usize) -> (usize, usize) {
        let text = self.text();
        let before = &text[..text.floor_char_boundary(offset.min(text.len()))];
        let line_start = before.rfind('\n').map_or(0, |i| i + 1);
        (before.matches('\n').count() + 1, before[line_start..].chars().count() + 1)
    }
}

/// Something wrong in a spec: bad input.
#[derive(Clone)]
pub struct SpecError(Box<Inner>);

#[derive(Clone)]
struct Inner {
    message: String,
    source: SpecText,
    span: Range<usize>,
    label: String,
    help: Option<String>,
}

/// Result of reading and lowering specs.
pub type Result<T> = std::result::Result<T, SpecError>;

impl SpecError {
    /// `message` is the finding, `label` what was expected at `span`.
    pub fn new(
        source: &SpecText,
        span: Range<usize>,
        message: impl Into<String>,
        label: impl Into<String>,
    ) -> SpecError {
        SpecError(Box::new(Inner {
            message: message.into(),
            source: source.clone(),
            span,
            label: label.into(),
            help: None,
        }))
    }

    /// Adds a line of help.
    pub fn help(mut self, help: impl Into<String>) -> SpecError {
        self.0.help = Some(help.into());
        self
    }

    /// Adds `did you mean ...`, if there is something near.
    pub(crate) fn near<'a>(self, name: &str, candidates: impl IntoIterator<Item = &'a str>) -> SpecError {
        match kernmill_os::suggest::nearest(name, candidates) {
            Some(near) => self.help(format!("did you mean `{near}`?")),
            None => self,
        }
    }

    /// The finding.
    pub fn message(&self) -> &str {
        &self.0.message
    }

    /// The finding, the line of the spec that it is about with what was expected there, and the help, as
    /// compilers show them: several lines, with colours if `is_coloured`.
    pub fn excerpt(&self, is_coloured: bool) -> String {
        let Inner { message, source, span, label, help } = &*self.0;
        let text = source.text();
        let start = text.floor_char_boundary(span.start);
        let end = text.ceil_char_boundary(span.end.max(start));
        let place =
            AnnotationKind::Primary.span(start..end).label((!label.is_empty()).then_some(label.as_str()));
        let title = Level::ERROR.primary_title(message);
        let mut group = title.element(Snippet::source(text).path(source.name()).annotation(place));
        if let Some(help) = help {
            group = group.element(Level::HELP.message(help));
        }
        let renderer = if is_coloured { Renderer::styled() } else { Renderer::plain() };
        renderer.render(&[group]) + "\n"
    }

    /// Bytes of the source that the error is about.
    pub fn span(&self) -> Range<usize> {
        self.0.span.clone()
    }

    /// Line and column, from 1.
    pub fn line_column(&self) -> (usize, usize) {
        self.0.source.line_column(self.0.span.start)
    }
}

impl fmt::Display for SpecError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.message)
    }
}

impl fmt::Debug for SpecError {
    /// File, line, column, finding, expectation and help on one line.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (line, column) = self.line_column();
        write!(f, "{}:{line}:{column}: {} ({})", self.0.source.name(), self.0.message, self.0.label)?;
        self.0.help.iter().try_for_each(|help| write!(f, "; {help}"))
    }
}

impl std::error::Error for SpecError {}
