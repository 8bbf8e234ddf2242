//! Generated ids to events.

use super::header::PartialHeader;
use super::{HarmonyTokens, NoToken};
use crate::conversation::Conversation;
use crate::event::{Anomalies, Anomaly, AnswerPart, Event};
use kernmill_text::Utf8Stream;
use kernmill_text::Vocabulary;

/// A parser of what a model generates in Harmony.
///
/// Any sequence of ids has a meaning: nothing is refused, and every byte of a content is given out once, in
/// order. Deviations from the format are read as what was most likely meant, and counted.
#[derive(Clone, Debug)]
pub struct HarmonyParser {
    tokens: HarmonyTokens,
    /// Special tokens without a meaning in Harmony, ascending: never a text.
    others: Vec<u32>,
    /// Names of declared functions.
    declared: Vec<String>,
    state: HarmonyState,
    anomalies: Anomalies,
}

#[derive(Clone, Debug)]
enum HarmonyState {
    /// A header. At its beginning only the author is known.
    Header(PartialHeader),
    /// A message has ended.
    Between(PartialHeader),
    /// The content of a message.
    Content(PartialContent),
}

/// A content so far.
#[derive(Clone, Debug)]
struct PartialContent {
    part: AnswerPart,
    utf8: Utf8Stream,
    /// Arguments of a function as long as they may be none: nothing, or null. `None` from then on.
    held: Option<String>,
}

impl HarmonyParser {
    /// A parser of what follows the conversation's prompt. Begins the answer if the prompt does.
    ///
    /// # Errors
    /// When the vocabulary lacks Harmony's tokens.
    pub fn new(
        vocabulary: &dyn Vocabulary,
        conversation: &Conversation,
        events: &mut Vec<Event>,
    ) -> Result<HarmonyParser, NoToken> {
        let tokens = HarmonyTokens::of(vocabulary)?;
        let mut others: Vec<u32> = vocabulary.added_tokens().into_iter().map(|token| token.id).collect();
        others.sort_unstable();
        let declared = conversation.tools.iter().map(|tool| tool.name.clone()).collect();
        let state = HarmonyState::Header(PartialHeader::default());
        let mut parser = HarmonyParser { tokens, others, declared, state, anomalies: Anomalies::default() };
        if conversation.begins_answer() {
            parser.begin(AnswerPart::Answer, events);
        }
        Ok(parser)
    }

    /// Deviations so far.
    pub fn anomalies(&self) -> &Anomalies {
        &self.anomalies
    }

    /// Takes one more id. Events that became certain by it are appended to `events`.
    pub fn push(&mut self, vocabulary: &dyn Vocabulary, id: u32, events: &mut Vec<Event>) {
        let tokens = self.tokens;
        if id == tokens.start {
            self.close(Anomaly::WrongEnd, events);
            self.state = HarmonyState::Header(PartialHeader::after_start());
        } else if id == tokens.channel {
            self.on_channel(events);
        } else if id == tokens.message {
            self.on_message(events);
        } else if id == tokens.constrain {
            self.on_constrain();
        } else if [tokens.end, tokens.return_, tokens.call].contains(&id) || tokens.end_of_text == Some(id) {
            self.on_end(id, events);
        } else if self.others.binary_search(&id).is_ok() {
            self.anomalies.add(Anomaly::StrayToken);
        } else if let Some(bytes) = vocabulary.bytes(id) {
            self.on_text(&bytes, events);
        } else {
            self.anomalies.add(Anomaly::UnknownId);
        }
    }

    /// Ends the text. A header that was cut off is nothing.
    pub fn finish(&mut self, events: &mut Vec<Event>) {
        let state = std::mem::replace(&mut self.state, HarmonyState::Between(PartialHeader::default()));
        match state {
            HarmonyState::Content(content) => content.end(false, events),
            HarmonyState::Header(_) => self.anomalies.add(Anomaly::CutHeader),
            HarmonyState::Between(header) if header.is_empty() => {}
            HarmonyState::Between(_) => self.anomalies.add(Anomaly::CutHeader),
        }
    }

    fn begin(&mut self, part: AnswerPart, events: &mut Vec<Event>) {
        events.push(Event::Begin(part.clone()));
        let is_function = matches!(part, AnswerPart::Call { is_builtin: false, .. });
        let held = is_function.then(String::new);
        self.state = HarmonyState::Content(PartialContent { part, utf8: Utf8Stream::default(), held });
    }

    fn on_text(&mut self, bytes: &[u8], events: &mut Vec<Event>) {
        match &mut self.state {
            HarmonyState::Content(content) => content.push(bytes, events),
            HarmonyState::Header(header) | HarmonyState::Between(header) => {
                header.push(bytes);
                if header.is_text() {
                    self.anomalies.add(Anomaly::NoHeader);
                    self.recover(events);
                }
            }
        }
    }

    fn on_channel(&mut self, events: &mut Vec<Event>) {
        match &mut self.state {
            HarmonyState::Header(header) => header.channel(),
            HarmonyState::Between(header) => {
                self.anomalies.add(Anomaly::NoStart);
                let mut header = std::mem::take(header);
                header.channel();
                self.state = HarmonyState::Header(header);
            }
            HarmonyState::Content(_) => {
                self.close(Anomaly::WrongEnd, events);
                let mut header = PartialHeader::default();
                header.channel();
                self.state = HarmonyState::Header(header);
            }
        }
    }

    fn on_constrain(&mut self) {
        match &mut self.state {
            HarmonyState::Header(header) => header.constrain(),
            HarmonyState::Between(header) => {
                self.anomalies.add(Anomaly::NoStart);
                let mut header = std::mem::take(header);
                header.constrain();
                self.state = HarmonyState::Header(header);
            }
            HarmonyState::Content(_) => self.anomalies.add(Anomaly::StrayToken),
        }
    }

    fn on_message(&mut self, events: &mut Vec<Event>) {
        let header = match &mut self.state {
            HarmonyState::Header(header) => std::mem::take(header),
            HarmonyState::Between(header) => {
                self.anomalies.add(Anomaly::NoStart);
                std::mem::take(header)
            }
            HarmonyState::Content(_) => return self.anomalies.add(Anomaly::StrayToken),
        };
        let part = header.read(&self.declared, &mut self.anomalies);
        self.begin(part, events);
    }

    fn on_end(&mut self, id: u32, events: &mut Vec<Event>) {
        let is_stray = match &self.state {
            HarmonyState::Between(header) => header.is_empty(),
            HarmonyState::Header(header) => header.is_empty() && !header.has_start,
            HarmonyState::Content(content) => {
                let is_call = matches!(content.part, AnswerPart::Call { .. });
                if is_call != (id == self.tokens.call) {
                    self.anomalies.add(Anomaly::WrongEnd);
                }
                false
            }
        };
        if is_stray {
            self.anomalies.add(Anomaly::StrayEnd);
        } else {
            self.close(Anomaly::NoContent, events);
        }
        self.state = HarmonyState::Between(PartialHeader::default());
    }

    /// Ends what is open: a content, or a header without one, whose text is kept. Counts `anomaly` if there
    /// was no end where one belongs.
    fn close(&mut self, anomaly: Anomaly, events: &mut Vec<Event>) {
        match &self.state {
            HarmonyState::Between(header) if header.is_empty() => return,
            HarmonyState::Header(header) if header.is_empty() && !header.has_start => return,
            HarmonyState::Header(_) | HarmonyState::Between(_) => {
                self.anomalies.add(Anomaly::NoContent);
                self.recover(events);
            }
            HarmonyState::Content(_) if anomaly == Anomaly::WrongEnd => self.anomalies.add(anomaly),
            HarmonyState::Content(_) => {}
        }
        let state = std::mem::replace(&mut self.state, HarmonyState::Between(PartialHeader::default()));
        if let HarmonyState::Content(content) = state {
            content.end(true, events);
        }
    }

    /// Makes a message of a header that has no content: its text is the content. A call needs none.
    fn recover(&mut self, events: &mut Vec<Event>) {
        let (HarmonyState::Header(header) | HarmonyState::Between(header)) = &mut self.state else { return };
        let header = std::mem::take(header);
        let said = header.recover(&self.declared, &mut self.anomalies);
        if said.rest.is_empty() && !matches!(said.part, AnswerPart::Call { .. }) {
            return;
        }
        self.begin(said.part, events);
        if let HarmonyState::Content(content) = &mut self.state {
            content.push(said.rest.as_bytes(), events);
        }
    }
}

impl PartialContent {
    fn push(&mut self, bytes: &[u8], events: &mut Vec<Event>) {
        let mut text = String::new();
        self.utf8.push(bytes, &mut text);
        self.give(text, events);
    }

    fn give(&mut self, text: String, events: &mut Vec<Event>) {
        let (may_be_none, text) = match self.held.take() {
            Some(held) => (true, held + &text),
            None => (false, text),
        };
        if may_be_none && "null".starts_with(text.trim()) {
            self.held = Some(text);
        } else if !text.is_empty() {
            events.push(Event::Delta(text));
        }
    }

    /// Ends the content. A function that is called without arguments has an object of none.
    fn end(mut self, is_complete: bool, events: &mut Vec<Event>) {
        let mut text = String::new();
        self.utf8.finish(&mut text);
        self.give(text, events);
        match self.held.take() {
            Some(held) if is_complete && matches!(held.trim(), "" | "null") => {
                events.push(Event::Delta("{}".to_owned()));
            }
            Some(held) if !held.is_empty() => events.push(Event::Delta(held)),
            _ => {}
        }
        events.push(Event::End { is_complete });
    }
}
