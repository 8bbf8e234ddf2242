//! The classes that are imported: what each is called, which keys it has, and its decoder.

mod class;
mod dense;
mod encoders;
mod gemma;
mod mixtures;

pub(super) use class::{DescribedModel, ModelClass};
pub(super) use encoders::EncoderClass;

/// All classes of decoders.
pub(super) fn classes() -> impl Iterator<Item = &'static ModelClass> {
    mixtures::CLASSES.iter().chain(dense::CLASSES).chain(gemma::CLASSES)
}
