//! The grammar of a turn in the texts of models with templates: thoughts, then the answer or calls of tools.

use super::{Thoughts, ToolChoice, TurnGrammar, arguments, check_name, wrong_choice};
use crate::calls::{ArgumentStyle, BARE_KEYS, CallFormat, ThoughtMarks};
use crate::conversation::Tool;
use kernmill_constrain::{Composed, Error, Rule, Vocabulary};

/// The rule of a turn; `None` where it may be any text.
///
/// # Errors
/// When a schema is too large, a function has a name that no grammar can quote, or no tool can be called
/// where one must be.
pub(super) fn rule(
    turn: &TurnGrammar,
    calls: Option<&'static CallFormat>,
    vocabulary: &dyn Vocabulary,
) -> Result<Option<Rule>, Error> {
    let callable: Vec<&Tool> = turn.callable().collect();
    let must_call = turn.choice.is_required();
    if must_call && callable.is_empty() {
        return Err(wrong_choice("a tool shall be called, but no such tool is declared"));
    }
    let Some(format) = calls.filter(|_| !turn.tools.is_empty()) else {
        if must_call {
            let what = "how this model writes calls is not known: its chat template has no marks of calls";
            return Err(wrong_choice(what));
        }
        return answer_alone(turn, vocabulary);
    };
    let is_held = turn.answer.is_some()
        || turn.choice != ToolChoice::Auto
        || callable.len() < turn.tools.len()
        || callable.iter().any(|tool| tool.strict);
    if !is_held {
        return Ok(None);
    }
    let mut text = TextGrammar::new(vocabulary);
    let mut last = Vec::new();
    if !callable.is_empty() {
        text.calls(turn, format, &callable)?;
        last.push("calls");
    }
    match &turn.answer {
        _ if must_call => {}
        Some(form) => {
            text.grammar.form("answer", "the answer", form)?;
            last.push("answer");
        }
        None => {
            text.answer(turn, format, !callable.is_empty());
            last.push("ANSWER");
            if !callable.is_empty() {
                // The model's words before its calls, with the mark that opens them.
                text.until("said", "ANSWER", format.opens.first().copied().unwrap_or_default());
                last.push("said more");
            }
        }
    }
    Ok(Some(text.turn(turn.thoughts, turn.thought_marks, &last.join(" | "))))
}

/// The rule of a turn without calls.
fn answer_alone(turn: &TurnGrammar, vocabulary: &dyn Vocabulary) -> Result<Option<Rule>, Error> {
    let Some(form) = &turn.answer else { return Ok(None) };
    if turn.thoughts == Thoughts::None {
        return Ok(Some(form.clone()));
    }
    let mut text = TextGrammar::new(vocabulary);
    text.grammar.form("answer", "the answer", form)?;
    Ok(Some(text.turn(turn.thoughts, turn.thought_marks, "answer")))
}

/// A mark in a text.
enum GrammarMark {
    /// A token that is never part of a text.
    Special(u32),
    /// A token that a text may have, too.
    Token(u32),
    /// Characters.
    Plain,
}

/// The grammar of a text, so far.
pub(super) struct TextGrammar<'a> {
    vocabulary: &'a dyn Vocabulary,
    pub grammar: Composed,
}

impl TextGrammar<'_> {
    fn new(vocabulary: &dyn Vocabulary) -> TextGrammar<'_> {
        let mut grammar = Composed::default();
        grammar.rule("ANY", r"/(.|\n)*/");
        // Unbounded, a model may write new lines without end.
        grammar.rule("SPACE", r"/[ \t\r\n]{1,8}/");
        TextGrammar { vocabulary, grammar }
    }

    fn mark(&self, text: &str) -> GrammarMark {
        match self.vocabulary.added_tokens().into_iter().find(|token| token.text == text) {
            Some(token) if token.is_special => GrammarMark::Special(token.id),
            Some(token) => GrammarMark::Token(token.id),
            None => GrammarMark::Plain,
        }
    }

    /// Symbols of a text with marks in it. A mark is the token that the model was trained to write, if it has
    /// one.
    pub fn symbols(&self, format: &CallFormat, text: &str) -> String {
        let (mut symbols, mut rest) = (Vec::new(), text);
        let mut plain = String::new();
        while let Some(c) = rest.chars().next() {
            let mark = format.marks().find(|mark| rest.starts_with(mark));
            match mark.map(|mark| (mark, self.mark(mark))) {
                Some((mark, GrammarMark::Special(id) | GrammarMark::Token(id))) => {
                    symbols.extend((!plain.is_empty()).then(|| quoted(&plain)));
                    symbols.push(format!("<[{id}]>"));
                    plain.clear();
                    rest = &rest[mark.len()..];
                }
                _ => {
                    plain.push(c);
                    rest = &rest[c.len_utf8()..];
                }
            }
        }
        symbols.extend((!plain.is_empty()).then(|| quoted(&plain)));
        symbols.join(" ")
    }

    /// Adds the rule of a text up to the first of a mark, with the mark. `body` are the terminals of the
    /// text.
    pub fn until(&mut self, name: &str, body: &str, mark: &str) {
        let (terminal, text) = (name.to_uppercase(), quoted(mark));
        match self.mark(mark) {
            GrammarMark::Special(id) => {
                self.grammar.rule(&terminal, &format!("{body} & ~(ANY {text} ANY)"));
                self.grammar.rule(name, &format!("{terminal} <[{id}]>"));
            }
            // The first mark ends it, whether it is a token or spelled.
            GrammarMark::Token(_) | GrammarMark::Plain => {
                self.grammar.rule(&format!("{name}[suffix={text}]"), body);
            }
        }
    }

    /// Adds the calls of a turn: `calls` are all of them, `more` are they without the mark that opens them.
    fn calls(&mut self, turn: &TurnGrammar, format: &CallFormat, callable: &[&Tool]) -> Result<(), Error> {
        let spelling = format.spelling;
        let mut calls = Vec::new();
        for (index, tool) in callable.iter().enumerate() {
            let name = format!("args_{index}");
            check_name(tool)?;
            match format.arguments {
                ArgumentStyle::Object => arguments(&mut self.grammar, &name, tool)?,
                ArgumentStyle::Pairs(marks) => self.pairs(format, &marks, &name, tool)?,
                ArgumentStyle::Keywords => self.keywords(&name, tool)?,
            }
            calls.push((format!("{}{}", tool.name, spelling.middle), format!("args_{index}")));
        }
        let after = self.symbols(format, spelling.after);
        let either = |text: &Self, before: &str| {
            let call = |(head, arguments): &(String, String)| {
                format!("{} {arguments} {after}", text.symbols(format, &format!("{before}{head}")))
            };
            calls.iter().map(call).collect::<Vec<_>>().join(" | ")
        };
        // A model that is to call one function calls it once.
        let is_one = turn.one_call || matches!(turn.choice, ToolChoice::Function(_));
        let rest = if is_one { "" } else { "next*" };
        let close = self.symbols(format, spelling.close);
        let begin = format!("{}{}", spelling.open, spelling.before);
        let mark = format.opens.iter().find(|mark| begin.starts_with(**mark));
        let mut first = either(self, &begin);
        let opened = either(self, mark.map_or(&begin, |mark| &begin[mark.len()..]));
        let next = either(self, &format!("{}{}", spelling.between, spelling.before));
        if format.has_bare {
            // Space before a call is part of its first terminal: an answer may begin with space, too.
            for (index, (head, _)) in calls.iter().enumerate() {
                let head = quoted(&format!("{begin}{head}"));
                self.grammar.rule(&format!("HEAD_{index}"), &format!("SPACE? {head}"));
            }
            let bare = calls.iter().enumerate();
            let bare = bare.map(|(index, (_, arguments))| format!("HEAD_{index} {arguments} {after}"));
            first = bare.collect::<Vec<_>>().join(" | ");
        }
        self.grammar.rule("next", &next);
        self.grammar.rule("more", &format!("({opened}) {rest} {close}"));
        self.grammar.rule("calls", &format!("({first}) {rest} {close}"));
        Ok(())
    }

    /// Adds the terminal of an answer, which neither begins with thoughts nor has a call in it.
    fn answer(&mut self, turn: &TurnGrammar, format: &CallFormat, may_call: bool) {
        let opens = format.opens.iter().map(|mark| format!("~(ANY {} ANY)", quoted(mark)));
        let mut limits: Vec<String> = opens.collect();
        limits.push(format!(r"~(/\s*/ {} ANY)", quoted(turn.thought_marks.open)));
        if format.has_bare && format.arguments == ArgumentStyle::Keywords {
            let names: Vec<String> = turn.tools.iter().map(|tool| quoted(&tool.name)).collect();
            limits.extend(
                (!names.is_empty()).then(|| format!(r"~(/\s*\[\s*/ ({}) /\s*\(/ ANY)", names.join(" | "))),
            );
        } else if format.has_bare && may_call {
            let keys = BARE_KEYS.join("|");
            limits.push(format!(r#"~(/\s*\{{\s*"({keys})"/ ANY)"#));
        } else if format.has_bare {
            // Only what would be a call if one were allowed.
            let names: Vec<String> =
                turn.tools.iter().map(|tool| quoted(&format!("\"{}\"", tool.name))).collect();
            let key = r#"/\s*\{\s*("type"\s*:\s*"function"\s*,\s*)?"(name|function)"\s*:\s*/"#;
            limits.push(format!("~({key} ({}) ANY)", names.join(" | ")));
        }
        self.grammar.rule("ANSWER", &format!("ANY & {}", limits.join(" & ")));
    }

    /// The rule of a turn whose last part is `last`.
    fn turn(mut self, thoughts: Thoughts, marks: ThoughtMarks, last: &str) -> Rule {
        self.grammar.rule("last", last);
        let ThoughtMarks { open, close } = marks;
        match (thoughts, self.mark(open)) {
            (Thoughts::None, _) => self.grammar.rule("start", "last"),
            (Thoughts::Begun, _) => {
                self.until("thoughts", "ANY", close);
                self.grammar.rule("start", "thoughts SPACE? last");
            }
            (Thoughts::Optional, GrammarMark::Special(id)) => {
                self.until("thoughts", "ANY", close);
                self.grammar.rule("start", &format!("(SPACE? <[{id}]> thoughts SPACE?)? last"));
            }
            (Thoughts::Optional, GrammarMark::Token(_) | GrammarMark::Plain) => {
                let open = format!(r"/\s*/ {}", quoted(open));
                self.grammar.rule("THINK", &open);
                self.until("thoughts", "THINK ANY", close);
                self.grammar.rule("start", "(thoughts SPACE?)? last");
            }
        }
        Rule::Composed(self.grammar)
    }
}

/// A text in quotes, as Lark has it.
pub(super) fn quoted(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}
