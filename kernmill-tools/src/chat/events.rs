//! Events of an answer, as text for people or as JSON lines.

use super::markdown::{DIM, Markdown, NORMAL};
use kernmill::chat::Answered;
use kernmill_chat::{AnswerPart, Event};
use kernmill_serve::Finish;
use serde_json::{Value, json};

/// How answers are shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AnswerStyle {
    /// As text. Reasoning has its name before it.
    Plain,
    /// As text with reasoning dimmed and Markdown in styles, for a terminal that can.
    Styled,
    /// As JSON lines.
    Json,
}

impl AnswerStyle {
    /// JSON lines if they are asked for; text with styles where `has_styles` says that there may be some.
    pub fn of(json: bool, has_styles: bool) -> AnswerStyle {
        match (json, has_styles) {
            (true, _) => AnswerStyle::Json,
            (false, true) => AnswerStyle::Styled,
            (false, false) => AnswerStyle::Plain,
        }
    }
}

/// Shows events one after the other.
#[derive(Debug)]
pub struct AnswerDisplay {
    look: AnswerStyle,
    /// Whether reasoning is only a line that says how long it is.
    folds: bool,
    /// Bytes of the reasoning that is not shown, while there is one.
    folded: Option<usize>,
    /// Whether the part that has begun is the answer.
    is_answer: bool,
    /// Whether the last character was an end of line.
    at_start: bool,
    markdown: Markdown,
}

impl AnswerDisplay {
    /// An answer that begins. `folds` says that reasoning is not shown, but for a line that says how long it
    /// is; JSON lines have it all the same.
    pub fn new(look: AnswerStyle, folds: bool) -> AnswerDisplay {
        let markdown = Markdown::new();
        AnswerDisplay { look, folds, folded: None, is_answer: true, at_start: true, markdown }
    }

    /// The output that an event adds.
    pub fn event(&mut self, event: &Event) -> String {
        if self.look == AnswerStyle::Json {
            return line(&json_of(event));
        }
        if let Some(folded) = self.fold(event) {
            return folded;
        }
        match event {
            Event::Begin(part) => {
                self.is_answer = *part == AnswerPart::Answer;
                let title = match part {
                    AnswerPart::Answer | AnswerPart::Preamble => String::new(),
                    AnswerPart::Reasoning => "[reasoning] ".to_owned(),
                    AnswerPart::Call { name, .. } => format!("[call of {name}] "),
                };
                let title = if self.look == AnswerStyle::Styled && *part == AnswerPart::Reasoning {
                    ""
                } else {
                    &title
                };
                let dim = if self.is_dim() { DIM } else { "" };
                self.at_start = title.is_empty();
                format!("{dim}{title}")
            }
            Event::Delta(text) => {
                self.at_start = text.ends_with('\n');
                match self.look == AnswerStyle::Styled && self.is_answer {
                    true => self.markdown.push(text),
                    false => text.clone(),
                }
            }
            Event::End { .. } => {
                let rest = self.markdown.finish();
                let normal = if self.is_dim() { NORMAL } else { &rest };
                let end = if self.at_start { "" } else { "\n" };
                // A blank line parts what is not the answer from it.
                let gap = if self.is_answer { "" } else { "\n" };
                self.at_start = true;
                format!("{normal}{end}{gap}")
            }
        }
    }

    /// The text for an event of reasoning where that is folded; `None` for others.
    fn fold(&mut self, event: &Event) -> Option<String> {
        match event {
            Event::Begin(AnswerPart::Reasoning) if self.folds => self.folded = Some(0),
            Event::Delta(text) => *self.folded.as_mut()? += text.len(),
            Event::End { .. } => {
                let bytes = self.folded.take()?;
                let (dim, normal) = if self.look == AnswerStyle::Styled { (DIM, NORMAL) } else { ("", "") };
                return Some(format!("{dim}[reasoning of {bytes} bytes: /reasoning shows it]{normal}\n\n"));
            }
            Event::Begin(_) => return None,
        }
        Some(String::new())
    }

    fn is_dim(&self) -> bool {
        self.look == AnswerStyle::Styled && !self.is_answer
    }
}

/// A value on a separate line.
pub(super) fn line(value: &Value) -> String {
    format!("{value}\n")
}

fn json_of(event: &Event) -> Value {
    match event {
        Event::Begin(part) => match part {
            AnswerPart::Reasoning => json!({ "event": "begin", "part": "reasoning" }),
            AnswerPart::Preamble => json!({ "event": "begin", "part": "preamble" }),
            AnswerPart::Answer => json!({ "event": "begin", "part": "answer" }),
            AnswerPart::Call { name, .. } => json!({ "event": "begin", "part": "call", "name": name }),
        },
        Event::Delta(text) => json!({ "event": "delta", "text": text }),
        Event::End { is_complete } => json!({ "event": "end", "is_complete": is_complete }),
    }
}

/// Why a turn ended, in a word.
fn end(turn: &Answered) -> &'static str {
    match &turn.finish {
        Finish::MaxTokens => "max_tokens",
        Finish::Context => "context",
        finish if finish.is_complete() => "complete",
        _ => "interrupt",
    }
}

/// A turn as an object of JSON.
pub(super) fn turn_json(turn: &Answered) -> Value {
    json!({
        "event": "turn",
        "prompt_tokens": turn.prompt_tokens,
        "cached_tokens": turn.cached_tokens,
        "tokens": turn.tokens,
        "stop": end(turn),
        "seed": turn.seed,
        "prefill_seconds": turn.prefill_seconds,
        "decode_seconds": turn.decode_seconds,
    })
}

/// A turn in one line.
pub(super) fn turn_line(turn: &Answered) -> String {
    let new = turn.prompt_tokens - turn.cached_tokens;
    let decode = if turn.decoded == 0 { 0.0 } else { f64::from(turn.decoded) / turn.decode_seconds };
    format!(
        "{} prompt tokens, {} of them cached and {new} computed in {:.2} s; {} tokens at {decode:.1} \
         tokens/s; ended by {}; seed {}",
        turn.prompt_tokens,
        turn.cached_tokens,
        turn.prefill_seconds,
        turn.tokens.len(),
        end(turn),
        turn.seed
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(look: AnswerStyle) -> String {
        shown_folded(look, false)
    }

    fn shown_folded(look: AnswerStyle, folds: bool) -> String {
        let delta = |text: &str| Event::Delta(text.to_owned());
        let end = Event::End { is_complete: true };
        let call = AnswerPart::Call { name: "f".to_owned(), is_builtin: false };
        let events = [
            Event::Begin(AnswerPart::Reasoning),
            delta("So"),
            delta("."),
            end.clone(),
            Event::Begin(call),
            delta("{}"),
            end.clone(),
            Event::Begin(AnswerPart::Answer),
            delta("Yes\n"),
            end,
        ];
        let mut shown = AnswerDisplay::new(look, folds);
        events.iter().map(|event| shown.event(event)).collect()
    }

    #[test]
    fn folded_reasoning_says_how_long_it_is() {
        let folded = "[reasoning of 3 bytes: /reasoning shows it]\n\n[call of f] {}\n\nYes\n";
        assert_eq!(shown_folded(AnswerStyle::Plain, true), folded);
        assert_eq!(shown_folded(AnswerStyle::Json, true), shown(AnswerStyle::Json));
    }

    #[test]
    fn reasoning_is_told_apart_from_answers() {
        assert_eq!(shown(AnswerStyle::Plain), "[reasoning] So.\n\n[call of f] {}\n\nYes\n");
        let styled = "\u{1b}[2mSo.\u{1b}[0m\n\n\u{1b}[2m[call of f] {}\u{1b}[0m\n\nYes\n";
        assert_eq!(shown(AnswerStyle::Styled), styled);
        let json = shown(AnswerStyle::Json);
        assert_eq!(json.lines().count(), 10);
        for line in json.lines() {
            let event: Value = serde_json::from_str(line).unwrap();
            assert!(["begin", "delta", "end"].contains(&event["event"].as_str().unwrap()), "{line}");
        }
    }
}
