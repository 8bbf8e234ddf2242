//! Errors in a spec, shown with the source line they are about.

use miette::{
    Diagnostic, GraphicalReportHandler, GraphicalTheme, LabeledSpan, NamedSource, SourceCode, SourceSpan,
    ThemeCharacters, ThemeStyles,
};
use std::fmt;
use std::ops::Range;
use std::sync::Arc;

/// The text of a spec and the name of its file.
#[derive(Clone, Debug)]
pub struct Source {
    text: Arc<NamedSource<String>>,
    name: Arc<str>,
}

impl Source {
    /// Text of the file called `name`.
    pub fn new(name: &str, text: &str) -> Source {
        let source = NamedSource::new(name, text.to_owned()).with_language("toml");
        Source { text: Arc::new(source), name: name.into() }
    }

    /// Name of the file.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The text.
    pub fn text(&self) -> &str {
        self.text.inner()
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
    source: Source,
    span: Range<usize>,
    label: String,
    help: Option<String>,
}

/// Result of reading and lowering specs.
pub type Result<T> = std::result::Result<T, SpecError>;

impl SpecError {
    /// `message` is the finding, `label` what was expected at `span`.
    pub fn new(
        source: &Source,
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

    /// The error with its place in the spec, on lines of their own: coloured if it may be, and drawn with
    /// letters that are no ASCII if these may be.
    pub fn excerpt(&self, coloured: bool, unicode: bool) -> String {
        let mut characters = if unicode { ThemeCharacters::unicode() } else { ThemeCharacters::ascii() };
        characters.error = "error:".to_owned();
        let styles = if coloured { ThemeStyles::rgb() } else { ThemeStyles::none() };
        let mut text = String::new();
        let handler = GraphicalReportHandler::new_themed(GraphicalTheme { characters, styles });
        match handler.render_report(&mut text, self) {
            Ok(()) => text.trim_start().to_owned(),
            Err(_) => format!("error: {self}\n"),
        }
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

impl Diagnostic for SpecError {
    fn help<'a>(&'a self) -> Option<Box<dyn fmt::Display + 'a>> {
        self.0.help.as_ref().map(|h| Box::new(h) as Box<dyn fmt::Display>)
    }

    fn source_code(&self) -> Option<&dyn SourceCode> {
        Some(&*self.0.source.text)
    }

    fn labels(&self) -> Option<Box<dyn Iterator<Item = LabeledSpan> + '_>> {
        let span = SourceSpan::from(self.0.span.clone());
        let label = (!self.0.label.is_empty()).then(|| self.0.label.clone());
        Some(Box::new(std::iter::once(LabeledSpan::new_primary_with_span(label, span))))
    }
}
