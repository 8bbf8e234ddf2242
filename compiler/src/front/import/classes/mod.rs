//! The classes that are imported: what each is called, which keys it has, and its decoder.

mod class;
mod dense;
mod gemma;
mod mixtures;

pub(super) use class::{DescribedModel, ModelClass};

/// All classes.
pub(super) fn classes() -> impl Iterator<Item = &'static ModelClass> {
    mixtures::CLASSES.iter().chain(dense::CLASSES).chain(gemma::CLASSES)
}
