//! Errors in a spec, shown with the source line they are about.

use annotate_snippets::{AnnotationKind, Level, Renderer, Snippet};
use std::fmt;
use std::ops::Range;
use std::sync::Arc;

/// Something from a file and where it stands.
#[derive(Clone, Debug)]
pub struct Spanned<T> {
    /// The thing.
    pub value: T,
    /// Bytes of the thing in the file.
    pub span: Range<usize>,
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
