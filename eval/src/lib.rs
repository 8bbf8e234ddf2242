//! `kernmill eval`: how good a model is, and what a preset, a format or an adapter costs, with statistics.
//!
//! The commands are generic over the arguments by which the program opens models. Everything that is
//! measured comes from logits, which have the same bits on every CPU: a figure can be had again anywhere.

#![warn(clippy::missing_errors_doc, clippy::missing_panics_doc)]

pub mod base;
mod choice;
mod code;
mod command;
mod compare;
mod distance;
mod generate;
mod given;
mod kl;
mod lm_eval;
mod made;
mod measured;
mod prompts;
mod report;
mod resume;
pub mod sandbox;
pub mod stats;
pub mod tasks;
mod text;
mod texts;

pub use command::EvalCommand;
pub use report::{Outcome, Told};
