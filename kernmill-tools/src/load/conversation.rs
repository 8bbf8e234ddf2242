//! Requests that follow each other.

use std::time::Duration;

/// A request of a conversation.
#[derive(Clone, Debug, PartialEq)]
pub struct ConversationRequest {
    /// The earliest time of the request, from the start of the load.
    pub at: Duration,
    /// Time between the answer before and this request, at least.
    pub pause: Duration,
    /// Tokens that the prompt has behind all that was said before.
    pub new: Vec<u32>,
    /// Tokens of the answer.
    pub answer: u32,
}

/// Requests that follow each other: each prompt continues all that was said before it.
#[derive(Clone, Debug, PartialEq)]
pub struct LoadConversation {
    /// Whose it is; from 1.
    pub tenant: u64,
    /// The adapter that all turns use.
    pub adapter: Option<String>,
    /// The turns, at least one.
    pub turns: Vec<ConversationRequest>,
}

impl LoadConversation {
    /// Tokens of all prompts and answers, at most.
    pub fn tokens(&self) -> u32 {
        let of = |turn: &ConversationRequest| (turn.new.len() as u32).saturating_add(turn.answer);
        self.turns.iter().map(of).fold(0, u32::saturating_add)
    }
}
