//! Constraints over the vocabulary of GPT-OSS, followed by a model that knows nothing.

mod follow;
mod forms;
mod o200k;
mod random;
mod regular;
mod rules;
mod schemas;
