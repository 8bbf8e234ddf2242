//! How a turn begins: what a format makes of a conversation.

use super::options::{TurnError, TurnOptions};
use crate::conversation::{Conversation, Effort, Item};
use crate::event::{AnswerPart, Event};
use crate::format::{AnswerReader, Format, Refused};
use crate::grammar::{Thoughts, ToolChoice, TurnGrammar};
use crate::harmony;
use crate::template::Written;
use kernmill_constrain::{Error, Rule};
use kernmill_text::Vocabulary;
use std::collections::BTreeMap;

/// The beginning of a turn.
pub(super) struct TurnStart {
    /// Ids of the prompt.
    pub prompt: Vec<u32>,
    /// Rule that the text is held to.
    pub rule: Option<Rule>,
    /// Form of the answer, which is part of the rule.
    pub form: Option<Rule>,
    /// Parser of the text.
    pub reader: AnswerReader,
    /// Events of what the prompt has begun.
    pub events: Vec<Event>,
}

/// The beginning of the turn that answers a conversation.
///
/// # Errors
/// When the format refuses the conversation, or cannot be held to what is asked for.
pub(super) fn begin(
    vocabulary: &dyn Vocabulary,
    format: &Format,
    conversation: &Conversation,
    known: &BTreeMap<usize, Vec<u32>>,
    options: &TurnOptions,
) -> Result<TurnStart, TurnError> {
    let mut grammar = TurnGrammar::of(conversation, options.choice.clone());
    grammar.answer = options.form.clone().or(grammar.answer);
    (grammar.allowed, grammar.one_call) = (options.allowed.clone(), options.one_call);
    let unfinished = options.continues.then(|| unfinished(conversation, &mut grammar)).transpose()?;
    let conversation = unfinished.as_ref().map_or(conversation, |(before, _)| before);
    let mut events = Vec::new();
    let (prompt, rule, reader) = match format {
        Format::Harmony => {
            let prompt = format.prompt(vocabulary, conversation, known)?;
            let parser = harmony::HarmonyParser::new(vocabulary, conversation, &mut events);
            let parser = parser.map_err(|error| Refused(error.to_string()))?;
            (prompt, grammar.harmony().map(Some), AnswerReader::Harmony(Box::new(parser)))
        }
        Format::Template(templates) => {
            let template = templates.of(conversation);
            let written = template.begin(vocabulary, conversation);
            let Written { prompt, thoughts, calls } = written.map_err(|error| Refused(error.to_string()))?;
            grammar.thought_marks = template.thought_marks();
            grammar.thoughts = if unfinished.is_some() { Thoughts::None } else { thoughts };
            if unfinished.is_some() && thoughts == Thoughts::Begun {
                let what = "the model begins its answers with thoughts, so that none can be gone on in: end \
                            with a message of the user";
                return Err(Refused(what.to_owned()).into());
            }
            let reader = AnswerReader::Text(Box::new(grammar.reader(calls, vocabulary)));
            (prompt.ids, grammar.text(calls, vocabulary), reader)
        }
        Format::Unusable(why) => return Err(Refused(why.clone()).into()),
        Format::Plain { .. } => {
            let prompt = format.prompt(vocabulary, conversation, known)?;
            // Nothing tells the model of functions: a turn can be held to a form, not to a call.
            grammar.tools.clear();
            if grammar.choice.is_required() {
                let what = "this model has no chat template, so that nothing tells it of tools: leave the \
                            choice of tools out, or give a template with --chat-template";
                return Err(TurnError::Choice(what.to_owned()));
            }
            (prompt, grammar.text(None, vocabulary), AnswerReader::Plain { has_begun: false })
        }
    };
    let rule = rule.map_err(|error| at_fault(&grammar.choice, &error))?;
    let mut begun = TurnStart { prompt, rule, form: grammar.answer, reader, events };
    if let Some((before, text)) = &unfinished {
        begun.go_on(vocabulary, format, before, text)?;
    }
    Ok(begun)
}

impl TurnStart {
    /// Makes what was said of the answer part of the prompt.
    fn go_on(
        &mut self,
        vocabulary: &dyn Vocabulary,
        format: &Format,
        before: &Conversation,
        text: &str,
    ) -> Result<(), TurnError> {
        let wrong = |error: kernmill_text::VocabularyError| Refused(error.to_string());
        let mut said = Vec::new();
        if matches!(format, Format::Harmony) && !before.begins_answer() {
            said = vocabulary.encode_marked("<|channel|>final<|message|>").map_err(wrong)?;
        }
        let is_plain = matches!(format, Format::Plain { .. });
        let text = if is_plain { format!(" {text}") } else { text.to_owned() };
        said.extend(vocabulary.encode_ordinary(&text).map_err(wrong)?);
        let mut events = Vec::new();
        said.iter().for_each(|id| self.reader.push(vocabulary, *id, &mut events));
        self.reader.text(&text, &mut events);
        // The text is there already: only that it has begun is new.
        self.events.extend(events.into_iter().filter(|event| *event == Event::Begin(AnswerPart::Answer)));
        self.prompt.extend(said);
        Ok(())
    }
}

/// The items before an answer that is not finished, and its text. Only text can follow it.
fn unfinished(
    conversation: &Conversation,
    grammar: &mut TurnGrammar,
) -> Result<(Conversation, String), TurnError> {
    let mut before = conversation.clone();
    let Some(Item::Answer(text)) = before.items.pop() else {
        let what = "the last message is no answer of the model, so that it cannot be gone on in";
        return Err(Refused(what.to_owned()).into());
    };
    if grammar.choice.is_required() {
        let what = "an answer that is gone on in cannot become a call: leave the choice of tools out";
        return Err(TurnError::Choice(what.to_owned()));
    }
    if grammar.answer.is_some() {
        let what = "an answer that is gone on in cannot be held to a form: leave the form out";
        return Err(TurnError::Form(what.to_owned()));
    }
    (grammar.choice, grammar.effort) = (ToolChoice::None, Effort::None);
    grammar.tools.clear();
    grammar.builtin.clear();
    Ok((before, text))
}

/// The error of a turn whose grammar cannot be made.
fn at_fault(choice: &ToolChoice, error: &Error) -> TurnError {
    let message = error.to_string();
    if message.contains("the function `") {
        TurnError::Function(message)
    } else if choice.is_required() {
        TurnError::Choice(message)
    } else {
        TurnError::Form(message)
    }
}
