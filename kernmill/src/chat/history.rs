//! The items of a conversation.

use kernmill_chat::Conversation;
use std::collections::BTreeMap;

/// The items of a conversation.
#[derive(Clone, Default)]
pub(super) struct ConversationItems {
    pub(super) conversation: Conversation,
    /// Ids of answers, by the place of their item, of formats that continue with what was generated.
    pub(super) answers: BTreeMap<usize, Vec<u32>>,
}

impl ConversationItems {
    /// Takes away all items from one on.
    pub(super) fn cut(&mut self, at: usize) {
        self.conversation.items.truncate(at);
        self.answers.split_off(&at);
    }
}
