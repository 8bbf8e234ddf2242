//! The grammar of a turn in Harmony: reasoning and a preamble, if the model likes; then a call of a tool, or
//! the answer.

use super::{ToolChoice, TurnGrammar, arguments, check_name, wrong_choice};
use crate::conversation::{BuiltinTool, Effort};
use kernmill_constrain::{Composed, Error, Rule};

/// The rule of a turn.
///
/// # Errors
/// When a schema is too large, a function has a name that Harmony cannot write, or no tool can be called
/// where one must be.
pub(super) fn rule(turn: &TurnGrammar) -> Result<Rule, Error> {
    let mut grammar = Composed::default();
    grammar.rule("TEXT", "/(.|\\n)*/");
    match &turn.answer {
        None => grammar.rule("answer", "TEXT"),
        Some(form) => grammar.form("answer", "the answer", form)?,
    }
    let must_call = turn.choice.is_required();
    if !must_call && turn.effort == Effort::None && turn.tools.is_empty() && turn.builtin.is_empty() {
        // The prompt ends with the header of an answer: only its content follows.
        grammar.rule("start", "answer <|return|>");
        return Ok(Rule::Composed(grammar));
    }
    let mut last = calls(turn, &mut grammar)?;
    if must_call && last.is_empty() {
        return Err(wrong_choice("a tool shall be called, but no such tool is declared"));
    }
    if !must_call {
        last.push("final".to_owned());
        let is_json = matches!(turn.answer, Some(Rule::JsonSchema(_)));
        let kind = if is_json { "json_type? " } else { "" };
        grammar.rule("final", &format!("<|channel|> \"final\" {kind}<|message|> answer <|return|>"));
    }
    let next = "<|end|> <|start|> \"assistant\"";
    grammar.rule("json_type", "\" json\" | \" \" <|constrain|> \"json\"");
    grammar.rule("reasoning", &format!("<|channel|> \"analysis\" <|message|> TEXT {next}"));
    grammar.rule("preamble", &format!("<|channel|> \"commentary\" <|message|> TEXT {next}"));
    grammar.rule("last", &last.join(" | "));
    let reasoning = if turn.effort == Effort::None { "" } else { "reasoning? " };
    grammar.rule("start", &format!("{reasoning}preamble? last"));
    Ok(Rule::Composed(grammar))
}

/// Adds a rule for every tool that may be called, and gives their names.
fn calls(turn: &TurnGrammar, grammar: &mut Composed) -> Result<Vec<String>, Error> {
    let mut rules = Vec::new();
    for (index, tool) in turn.callable().enumerate() {
        let name = format!("args_{index}");
        check_name(tool)?;
        arguments(grammar, &name, tool)?;
        // The recipient may stand before or after the channel: models write both.
        let to = format!(" to=functions.{}", tool.name);
        let call = format!("call_{index}");
        grammar.rule(
            &call,
            &format!(
                "<|channel|> \"commentary{to}\" json_type <|message|> {name} <|call|> \
                 | \"{to}\" <|channel|> \"commentary\" json_type <|message|> {name} <|call|>"
            ),
        );
        rules.push(call);
    }
    let is_open = matches!(turn.choice, ToolChoice::Auto | ToolChoice::Required);
    for tool in turn.builtin.iter().filter(|_| is_open) {
        let (name, to) = match tool {
            BuiltinTool::Python => ("python", "to=python"),
            BuiltinTool::Browser => ("browser", "to=browser.\" (\"search\" | \"open\" | \"find\") \""),
        };
        if !turn.is_allowed(name) {
            continue;
        }
        let content = format!("in_{name}");
        match tool {
            BuiltinTool::Python => grammar.rule(&content, "TEXT"),
            BuiltinTool::Browser => grammar.form(&content, "the tool `browser`", &Rule::JsonObject)?,
        }
        grammar.rule(name, &format!("<|channel|> \"analysis {to} code\" <|message|> {content} <|call|>"));
        rules.push(name.to_owned());
    }
    Ok(rules)
}
