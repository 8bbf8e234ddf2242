//! The parser of a rule, whose work is bounded from its making to the end of a text.

use crate::ahead;
use crate::error::{Error, one_line};
use crate::joined;
use crate::lexicon::Lexicon;
use crate::limits::{FORCED_TOKENS, MAKING_TIME};
use crate::rule::Rule;
use kernmill_os::foreign::{self, Cancel, Watch};
use llguidance::api::{GrammarInit, StopReason, TopLevelGrammar};
use llguidance::earley::lexerspec::LexerSpec;
use llguidance::panic_utils::catch_unwind;
use llguidance::toktrie::SimpleVob;
use llguidance::{ParserFactory, TokenParser};
use std::fmt;
use std::panic::AssertUnwindSafe;

/// Follows the tokens of a text. After a failure it fails for ever.
#[derive(Clone)]
pub(crate) struct TokenMatcher {
    inner: TokenParser,
    /// Why it has failed, if it has.
    failed: Option<String>,
}

impl TokenMatcher {
    /// The parser of a rule, at the beginning of a text. It is made on a separate thread, whose stack holds
    /// rules that lead to other rules a few thousand times.
    ///
    /// # Errors
    /// When the rule has a mistake or is too much work, or nobody waits any more.
    pub(crate) fn new(lexicon: &Lexicon, rule: &Rule) -> Result<TokenMatcher, Error> {
        let grammar = rule.grammar()?;
        let factory = lexicon.factory.clone();
        let made = foreign::run("constraint", MAKING_TIME, &Cancel::default(), move |watch| {
            // A mistake in a schema must not end the program, whatever the reader makes of it.
            catch_unwind(AssertUnwindSafe(|| Ok(compile(&factory, grammar, watch))))
                .unwrap_or_else(|panic| Err(panic.to_string()))
        });
        let inner = made.unwrap_or_else(|stopped| Err(stopped.to_string())).map_err(|reason| {
            let what = format!("{} cannot be followed", rule.name());
            Error::Rule { what, reason: one_line(&reason) }
        })?;
        Ok(TokenMatcher { inner, failed: None })
    }

    /// Asks the parser. A panic of it is an error.
    fn ask<T>(&mut self, ask: impl FnOnce(&mut TokenParser) -> Result<T, String>) -> Result<T, Error> {
        let result = match &self.failed {
            Some(reason) => Err(reason.clone()),
            None => catch_unwind(AssertUnwindSafe(|| Ok(ask(&mut self.inner))))
                .unwrap_or_else(|panic| Err(panic.to_string())),
        };
        result.map_err(|reason| {
            let reason = self.failed.get_or_insert(reason);
            Error::Stuck(one_line(reason))
        })
    }

    /// The tokens that may come next; none if nothing can follow.
    pub(crate) fn mask(&mut self) -> Result<Option<SimpleVob>, Error> {
        self.ask(|inner| match inner.compute_mask() {
            Ok(bits) => Ok(Some(bits)),
            Err(_) if inner.stop_reason() == StopReason::NoExtensionBias => Ok(None),
            Err(error) => Err(error.to_string()),
        })
    }

    /// Whether the text may end here.
    pub(crate) fn may_end(&mut self) -> Result<bool, Error> {
        self.ask(|inner| Ok(inner.is_accepting()))
    }

    /// Takes a token, if it may come next; whether it may.
    pub(crate) fn accept(&mut self, id: u32) -> Result<bool, Error> {
        self.ask(|inner| {
            let may_come = inner.validate_token(id).map_err(reason)?;
            if let (false, Some(error)) = (may_come, inner.parser.get_error()) {
                return Err(error.message());
            }
            if may_come {
                inner.consume_token(id).map_err(reason)?;
                inner.check_stop().map_err(reason)?;
            }
            Ok(may_come)
        })
    }

    /// Whether nothing can follow.
    pub(crate) fn is_stopped(&self) -> bool {
        self.failed.is_some() || self.inner.stop_reason() != StopReason::NotStopped
    }

    /// Tokens that must come next after the token `last`, in order; the first of them, where they are many.
    pub(crate) fn forced(&mut self, last: Option<u32>) -> Result<Vec<u32>, Error> {
        let mut ahead = self.ask(|inner| Ok(ahead::forced(inner, last)))?;
        let mut ids = std::mem::take(&mut ahead.ids);
        if !ahead.is_before_special {
            return Ok(ids);
        }
        // No bytes spell a special token, so a copy of the parser looks behind it. A failure there comes
        // again when the text comes there.
        let mut copy = self.clone();
        let mut taken = 0;
        while ids.len() < FORCED_TOKENS {
            let follows = ids[taken..].iter().all(|id| copy.accept(*id).is_ok_and(|may_come| may_come));
            taken = ids.len();
            let mask = if follows && !copy.is_stopped() { copy.mask().ok().flatten() } else { None };
            let Some(id) = mask.as_ref().and_then(only) else { break };
            if !copy.accept(id).is_ok_and(|may_come| may_come) {
                break;
            }
            ids.push(id);
            taken += 1;
            let Ok(ahead) = copy.ask(|inner| Ok(ahead::forced(inner, Some(id)))) else { break };
            ids.extend(ahead.ids);
            if !ahead.is_before_special {
                break;
            }
        }
        Ok(ids)
    }
}

fn reason(error: impl fmt::Display) -> String {
    error.to_string()
}

/// The only member of a set.
fn only(set: &SimpleVob) -> Option<u32> {
    let mut members = set.iter();
    members.next().filter(|_| members.next().is_none())
}

/// The parser of a grammar.
fn compile(factory: &ParserFactory, grammar: TopLevelGrammar, watch: &Watch) -> Result<TokenParser, String> {
    let made = GrammarInit::Serialized(grammar)
        .to_internal(Some(factory.tok_env().clone()), factory.limits().clone());
    let (grammar, lexemes) = made.map_err(reason)?;
    watch.check().map_err(reason)?;
    joined::check_lexer(lexemes.regex_builder.exprset())?;
    try_first_bytes(factory, lexemes.clone(), watch)?;
    let init = GrammarInit::Internal(grammar, lexemes);
    let mut parser = factory.create_parser_from_init_default(init).map_err(reason)?;
    parser.start_without_prompt();
    Ok(parser)
}

/// Checks that a lexer with these lexemes can take a first byte. The lexer does the same when it is made,
/// but counts no work there.
fn try_first_bytes(factory: &ParserFactory, mut lexemes: LexerSpec, watch: &Watch) -> Result<(), String> {
    lexemes.add_extra_lexemes(&factory.extra_lexemes());
    let mut limits = factory.limits().clone();
    let mut lexer = lexemes.to_regex_vec(&mut limits).map_err(reason)?;
    // The rest of the fuel.
    lexer.set_fuel(limits.initial_lexer_fuel);
    lexer.set_max_states(limits.max_lexer_states);
    let first = lexer.initial_state(&lexemes.all_lexemes());
    for byte in 0..=u8::MAX {
        watch.check().map_err(reason)?;
        lexer.transition(first, byte);
        if let Some(error) = lexer.get_error() {
            return Err(error);
        }
    }
    Ok(())
}
