//! Texts or vectors: what a model is compiled to make.

use kernmill_plan::vectors::Pooling;

/// The output that a model that is compiled here is to have.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ModelMakes {
    /// As its files say: vectors if they are those of a model for vectors.
    #[default]
    AsFiles,
    /// Texts, whatever its files say.
    Texts,
    /// Vectors, pooled so; `None` is as its files say, or else by the last token.
    Vectors(Option<Pooling>),
}
