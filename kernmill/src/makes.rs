//! Texts or vectors: what a model is compiled to make.

use kernmill_plan::vectors::Pooling;
use std::str::FromStr;

/// What a model that is compiled here is to make.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ModelMakes {
    /// What its files say: vectors if they are those of a model for vectors.
    #[default]
    AsFiles,
    /// Texts, whatever its files say.
    Texts,
    /// Vectors, pooled so; `None` is as its files say, or else by the last token.
    Vectors(Option<Pooling>),
}

impl FromStr for ModelMakes {
    type Err = String;

    /// The name of a pooling, or `none` for texts.
    fn from_str(text: &str) -> Result<ModelMakes, String> {
        match Pooling::from_name(text) {
            Some(pooling) => Ok(ModelMakes::Vectors(Some(pooling))),
            None if text == "none" => Ok(ModelMakes::Texts),
            None => Err(format!("expected {}, or none for texts", Pooling::NAMES.join(", "))),
        }
    }
}
