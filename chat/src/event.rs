//! The parts of a generated text, piece by piece.

/// A piece of what a model generates. Parts do not overlap: each begins, has deltas, and ends.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// A part begins.
    Begin(AnswerPart),
    /// More of the part's content: valid UTF-8, never empty.
    Delta(String),
    /// The part ends.
    End {
        /// Whether the model ended it; otherwise generation was cut off.
        is_complete: bool,
    },
}

/// A part of a generated text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AnswerPart {
    /// Reasoning, which is not part of the answer.
    Reasoning,
    /// Words to the user before a call.
    Preamble,
    /// The answer.
    Answer,
    /// A call of a tool. The content is its arguments.
    Call {
        /// Name of the function, or of a builtin tool with its function.
        name: String,
        /// Whether the tool is one of the model's own.
        is_builtin: bool,
    },
}

/// Deviations of a generated text from its format, counted.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Anomalies {
    counts: [u32; Anomaly::ALL.len()],
}

impl Anomalies {
    /// Counts one more.
    pub(crate) fn add(&mut self, anomaly: Anomaly) {
        let count = &mut self.counts[anomaly as usize];
        *count = count.saturating_add(1);
    }

    /// How often a deviation was seen.
    pub fn count(&self, anomaly: Anomaly) -> u32 {
        self.counts[anomaly as usize]
    }

    /// The deviations that were seen, with how often.
    pub fn seen(&self) -> impl Iterator<Item = (Anomaly, u32)> + '_ {
        Anomaly::ALL.into_iter().zip(self.counts).filter(|(_, count)| *count > 0)
    }
}

/// A deviation of a generated text from its format.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Anomaly {
    /// A text without a header: part of the answer.
    NoHeader,
    /// A header without a start token.
    NoStart,
    /// A header without a channel.
    NoChannel,
    /// A header without a content.
    NoContent,
    /// A header that generation cut off.
    CutHeader,
    /// An author who is not the model.
    OtherAuthor,
    /// A channel with an unknown name.
    UnknownChannel,
    /// A header with several channels: the last one holds.
    SeveralChannels,
    /// Words in a header that mean nothing there.
    StrayWords,
    /// A function's name without its namespace.
    BareFunction,
    /// A call of a tool that was not declared.
    UnknownTool,
    /// A message without its end token, or with one for another kind.
    WrongEnd,
    /// An end token where no message is.
    StrayEnd,
    /// A special token where it means nothing.
    StrayToken,
    /// An id without text.
    UnknownId,
    /// A call that cannot be read: its text is part of the answer.
    BadCall,
}

impl Anomaly {
    /// All deviations, in the order of their numbers.
    pub const ALL: [Anomaly; 16] = [
        Anomaly::NoHeader,
        Anomaly::NoStart,
        Anomaly::NoChannel,
        Anomaly::NoContent,
        Anomaly::CutHeader,
        Anomaly::OtherAuthor,
        Anomaly::UnknownChannel,
        Anomaly::SeveralChannels,
        Anomaly::StrayWords,
        Anomaly::BareFunction,
        Anomaly::UnknownTool,
        Anomaly::WrongEnd,
        Anomaly::StrayEnd,
        Anomaly::StrayToken,
        Anomaly::UnknownId,
        Anomaly::BadCall,
    ];

    /// Name for metrics.
    pub fn name(self) -> &'static str {
        match self {
            Anomaly::NoHeader => "no_header",
            Anomaly::NoStart => "no_start",
            Anomaly::NoChannel => "no_channel",
            Anomaly::NoContent => "no_content",
            Anomaly::CutHeader => "cut_header",
            Anomaly::OtherAuthor => "other_author",
            Anomaly::UnknownChannel => "unknown_channel",
            Anomaly::SeveralChannels => "several_channels",
            Anomaly::StrayWords => "stray_words",
            Anomaly::BareFunction => "bare_function",
            Anomaly::UnknownTool => "unknown_tool",
            Anomaly::WrongEnd => "wrong_end",
            Anomaly::StrayEnd => "stray_end",
            Anomaly::StrayToken => "stray_token",
            Anomaly::UnknownId => "unknown_id",
            Anomaly::BadCall => "bad_call",
        }
    }
}
