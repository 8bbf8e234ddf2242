//! The embedded model: a GPT-OSS in miniature, for a first run without any files.

/// The spec of the embedded model (TOML).
pub(crate) const SPEC: &str = include_str!("../../model-specs/nano/nano.toml");
/// A prompt that the embedded model continues well.
pub(crate) const PROMPT: &str = "# References and Borrowing\n\nA reference is";

/// A prompt for the model of a plan with this spec, if that is the embedded model.
pub(crate) fn example(spec: &str) -> Option<&'static str> {
    (spec == SPEC).then_some(PROMPT)
}
