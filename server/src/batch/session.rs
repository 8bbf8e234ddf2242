//! Sessions: lines that are turns of one conversation.

use super::line::BatchLine;
use std::collections::VecDeque;

/// A line of a session, in the order of the input.
pub enum SessionLine {
    /// A request.
    Asked(BatchLine),
    /// A request that was answered before, and the tokens of its answer, if it has some.
    Answered(BatchLine, Option<Vec<u32>>),
    /// A line that is no request; the name of its answer.
    Unread(String),
}

/// The state of a conversation. A turn's prompt continues all tokens of the turns before, and their answers.
#[derive(Default)]
pub struct BatchSession {
    /// All tokens so far.
    pub said: Vec<u32>,
    /// Whether a turn waits or runs in the engine.
    pub is_running: bool,
    /// Why no turn can be answered any more.
    pub broken: Option<String>,
    /// Turns that wait for the ones before.
    pub turns: VecDeque<SessionLine>,
}
