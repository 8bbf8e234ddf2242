//! Grammars as regular expressions, for texts inside of JSON: there a grammar's own rules would meet escaped
//! characters.

use crate::error::Error;
use crate::limits::{GRAMMAR_BYTES, check_text};
use crate::words::{GrammarWord, shown, tokens};
use std::collections::{HashMap, HashSet};

/// Characters that mean something in an expression.
const META: &str = r"\.+*?()|[]{}^$#&-~";

/// Levels of the deepest brackets in a rule.
const DEPTH: usize = 64;

/// Levels of the deepest rules within rules, with their brackets.
const LEVELS: usize = 256;

/// Bytes that are written in all.
const WRITTEN: usize = 1 << 20;

/// Terminals that Lark's grammar `common` has.
const COMMON: [(&str, &str); 20] = [
    ("DIGIT", "[0-9]"),
    ("HEXDIGIT", "[0-9A-Fa-f]"),
    ("INT", "[0-9]+"),
    ("SIGNED_INT", "[+-]?[0-9]+"),
    ("DECIMAL", r"(?:[0-9]+\.[0-9]*|\.[0-9]+)"),
    ("FLOAT", r"(?:[0-9]+[eE][+-]?[0-9]+|(?:[0-9]+\.[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?)"),
    ("SIGNED_FLOAT", r"[+-]?(?:[0-9]+[eE][+-]?[0-9]+|(?:[0-9]+\.[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?)"),
    ("NUMBER", r"(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?"),
    ("SIGNED_NUMBER", r"[+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?"),
    ("ESCAPED_STRING", r#""(?:[^"\\\n]|\\[^\n])*""#),
    ("LCASE_LETTER", "[a-z]"),
    ("UCASE_LETTER", "[A-Z]"),
    ("LETTER", "[A-Za-z]"),
    ("WORD", "[A-Za-z]+"),
    ("CNAME", "[A-Za-z_][A-Za-z0-9_]*"),
    ("WS_INLINE", r"[ \t]+"),
    ("WS", r"[ \t\f\r\n]+"),
    ("CR", r"\r"),
    ("LF", r"\n"),
    ("NEWLINE", r"(?:\r?\n)+"),
];

/// A regular expression that matches what a grammar in Lark's syntax describes, from beginning to end.
///
/// # Errors
/// When the grammar has a mistake, when a rule has itself inside, so that no expression can match it, or when
/// the expression would be too long.
pub fn regular(grammar: &str) -> Result<String, Error> {
    check_text("the grammar", grammar)?;
    let read = tokens(grammar).and_then(|tokens| GrammarReader { tokens, at: 0 }.grammar());
    let expression = read.and_then(|grammar| {
        let mut writing = ExpressionWriter {
            grammar: &grammar,
            known: HashMap::new(),
            open: HashSet::new(),
            level: 0,
            bytes: 0,
        };
        let ignored: Result<Vec<String>, String> =
            grammar.ignored.iter().map(|body| writing.choice(body, "")).collect();
        let ignored = ignored?;
        let skip = if ignored.is_empty() { String::new() } else { format!("(?:{})*", ignored.join("|")) };
        Ok(skip.clone() + &writing.named("start", &skip)?)
    });
    expression.map_err(|reason| Error::Rule { what: "the grammar".to_owned(), reason })
}

/// A rule's contents, in alternatives of sequences.
type Alternatives = Vec<Vec<RepeatedTerm>>;

#[derive(Debug)]
struct RepeatedTerm {
    what: What,
    /// How often it comes, as an expression has it; empty for once.
    times: String,
}

#[derive(Debug)]
enum What {
    /// An expression of characters.
    Characters(String),
    Named(String),
    Group(Alternatives),
}

#[derive(Debug, Default)]
struct Grammar {
    rules: HashMap<String, Alternatives>,
    /// The rules that may stand between the terminals of others.
    ignored: Vec<Alternatives>,
}

struct GrammarReader {
    tokens: Vec<GrammarWord>,
    at: usize,
}

impl GrammarReader {
    fn peek(&self) -> Option<&GrammarWord> {
        self.tokens.get(self.at)
    }

    fn next(&mut self) -> Option<GrammarWord> {
        self.at += 1;
        self.tokens.get(self.at - 1).cloned()
    }

    fn takes(&mut self, mark: char) -> bool {
        let is_next = self.peek() == Some(&GrammarWord::Mark(mark));
        self.at += usize::from(is_next);
        is_next
    }

    fn name(&mut self) -> Result<String, String> {
        match self.next() {
            Some(GrammarWord::Name(name)) => Ok(name),
            other => Err(format!("{} stands where a name is expected", shown(other.as_ref()))),
        }
    }

    fn grammar(mut self) -> Result<Grammar, String> {
        let mut grammar = Grammar::default();
        loop {
            match self.peek() {
                None => return Ok(grammar),
                Some(GrammarWord::Line) => self.at += 1,
                Some(GrammarWord::Mark('%')) => self.directive(&mut grammar)?,
                Some(_) => self.rule(&mut grammar)?,
            }
        }
    }

    fn directive(&mut self, grammar: &mut Grammar) -> Result<(), String> {
        self.at += 1;
        match self.name()?.as_str() {
            "ignore" => grammar.ignored.push(self.choice(0)?),
            "import" => self.import(grammar)?,
            other => return Err(format!("%{other} is not followed inside of a call")),
        }
        Ok(())
    }

    /// `common.LF`, `common.LF -> BREAK` or `common (LF, WS)`.
    fn import(&mut self, grammar: &mut Grammar) -> Result<(), String> {
        let from = self.name()?;
        if from != "common" {
            return Err(format!("%import has {from}, expected common"));
        }
        let mut names = Vec::new();
        if self.takes('(') {
            while !self.takes(')') {
                let name = self.name()?;
                names.push((name.clone(), name));
                self.takes(',');
            }
        } else {
            self.takes('.');
            let name = self.name()?;
            let is_renamed = self.peek() == Some(&GrammarWord::Arrow);
            self.at += usize::from(is_renamed);
            let own = if is_renamed { self.name()? } else { name.clone() };
            names.push((name, own));
        }
        for (name, own) in names {
            let found = COMMON.iter().find(|(common, _)| *common == name);
            let (_, expression) = found.ok_or_else(|| format!("common.{name} is not known"))?;
            let what = What::Characters(format!("(?:{expression})"));
            grammar.rules.insert(own, vec![vec![RepeatedTerm { what, times: String::new() }]]);
        }
        Ok(())
    }

    fn rule(&mut self, grammar: &mut Grammar) -> Result<(), String> {
        // How a parser shows what it found is of no matter.
        while self.takes('?') || self.takes('!') {}
        let name = self.name()?;
        if self.takes('.') {
            // Which terminal comes first is of no matter either.
            self.takes('-');
            self.at += 1;
        }
        if !self.takes(':') {
            return Err(format!("{} stands behind `{name}`, expected `:`", shown(self.peek())));
        }
        let choice = self.choice(0)?;
        match grammar.rules.insert(name.clone(), choice) {
            None => Ok(()),
            Some(_) => Err(format!("there are two rules `{name}`")),
        }
    }

    /// Alternatives up to the end of a rule, or to the bracket that ends them.
    fn choice(&mut self, depth: usize) -> Result<Alternatives, String> {
        if depth > DEPTH {
            return Err(format!("there are more than {DEPTH} levels of brackets"));
        }
        let mut choice = vec![Vec::new()];
        loop {
            match self.peek() {
                Some(GrammarWord::Line) => {
                    let begun = self.at;
                    while self.peek() == Some(&GrammarWord::Line) {
                        self.at += 1;
                    }
                    if depth == 0 && self.peek() != Some(&GrammarWord::Mark('|')) {
                        self.at = begun;
                        return Ok(choice);
                    }
                }
                Some(GrammarWord::Mark('|')) => {
                    self.at += 1;
                    choice.push(Vec::new());
                }
                Some(GrammarWord::Arrow) => {
                    self.at += 1;
                    self.name()?;
                }
                Some(GrammarWord::Mark(')' | ']')) if depth > 0 => return Ok(choice),
                None if depth == 0 => return Ok(choice),
                None => return Err("a bracket has no end".to_owned()),
                Some(_) => {
                    let part = self.part(depth)?;
                    if let Some(last) = choice.last_mut() {
                        last.push(part);
                    }
                }
            }
        }
    }

    fn part(&mut self, depth: usize) -> Result<RepeatedTerm, String> {
        let what = match self.next() {
            Some(GrammarWord::Name(name)) => What::Named(name),
            Some(GrammarWord::Expression(text)) => What::Characters(text),
            Some(GrammarWord::Text(from, _)) if self.peek() == Some(&GrammarWord::Range) => {
                self.at += 1;
                let (Some(GrammarWord::Text(to, _)), 1) = (self.next(), from.chars().count()) else {
                    return Err("a range has one character on each side".to_owned());
                };
                What::Characters(format!("[{}-{}]", escaped(&from), escaped(&to)))
            }
            Some(GrammarWord::Text(text, is_any_case)) => {
                let flags = if is_any_case { "i" } else { "" };
                What::Characters(format!("(?{flags}:{})", escaped(&text)))
            }
            Some(GrammarWord::Mark(open @ ('(' | '['))) => {
                let choice = self.choice(depth + 1)?;
                if !self.takes(if open == '(' { ')' } else { ']' }) {
                    return Err(format!("`{open}` is ended by {}", shown(self.peek())));
                }
                if open == '[' {
                    return Ok(RepeatedTerm { what: What::Group(choice), times: "?".to_owned() });
                }
                What::Group(choice)
            }
            other => {
                return Err(format!("{} stands where a part of a rule is expected", shown(other.as_ref())));
            }
        };
        Ok(RepeatedTerm { what, times: self.times()? })
    }

    fn times(&mut self) -> Result<String, String> {
        if let Some(mark) = ['?', '*', '+'].into_iter().find(|mark| self.takes(*mark)) {
            return Ok(mark.to_string());
        }
        if !self.takes('~') {
            return Ok(String::new());
        }
        let mut number = || match self.next() {
            Some(GrammarWord::Number(number)) => Ok(number),
            other => Err(format!("{} stands behind `~`, expected a number", shown(other.as_ref()))),
        };
        let least = number()?;
        if self.peek() != Some(&GrammarWord::Range) {
            return Ok(format!("{{{least}}}"));
        }
        self.at += 1;
        match self.next() {
            Some(GrammarWord::Number(most)) if most >= least => Ok(format!("{{{least},{most}}}")),
            other => Err(format!("{} ends a range of numbers from {least}", shown(other.as_ref()))),
        }
    }
}

fn escaped(text: &str) -> String {
    let mut written = String::new();
    for c in text.chars() {
        match c {
            '\n' => written.push_str("\\n"),
            '\r' => written.push_str("\\r"),
            '\t' => written.push_str("\\t"),
            c if META.contains(c) => written.extend(['\\', c]),
            c => written.push(c),
        }
    }
    written
}

struct ExpressionWriter<'a> {
    grammar: &'a Grammar,
    /// Expressions of rules, without what may be ignored inside of terminals.
    known: HashMap<String, String>,
    /// Rules that are being written.
    open: HashSet<String>,
    /// Levels of rules and brackets that are being written.
    level: usize,
    /// Bytes that were written.
    bytes: usize,
}

impl ExpressionWriter<'_> {
    /// The expression of a rule or terminal. `skip` is what may stand behind each terminal of a rule.
    fn named(&mut self, name: &str, skip: &str) -> Result<String, String> {
        let is_terminal = name.chars().all(|c| !c.is_ascii_lowercase());
        let inside = if is_terminal { "" } else { skip };
        if let Some(known) = self.known.get(name) {
            return Ok(format!("{known}{}", if is_terminal { skip } else { "" }));
        }
        let choice = self.grammar.rules.get(name).ok_or_else(|| format!("there is no rule `{name}`"))?;
        if !self.open.insert(name.to_owned()) {
            return Err(format!(
                "the rule `{name}` has itself inside, which a text inside of a call cannot be held to"
            ));
        }
        let written = self.choice(choice, inside)?;
        if written.len() > GRAMMAR_BYTES {
            return Err(format!("the rule `{name}` has more than {GRAMMAR_BYTES} bytes as one expression"));
        }
        self.open.remove(name);
        self.known.insert(name.to_owned(), written.clone());
        Ok(written + if is_terminal { skip } else { "" })
    }

    fn choice(&mut self, choice: &Alternatives, skip: &str) -> Result<String, String> {
        self.level += 1;
        if self.level > LEVELS {
            return Err(format!("its rules have more than {LEVELS} levels of others inside"));
        }
        let mut ways = Vec::new();
        for way in choice {
            let mut written = String::new();
            for part in way {
                let what = match &part.what {
                    What::Characters(expression) => format!("{expression}{skip}"),
                    What::Named(name) => self.named(name, skip)?,
                    What::Group(choice) => self.choice(choice, skip)?,
                };
                match part.times.as_str() {
                    "" => written.push_str(&what),
                    times => written.push_str(&format!("(?:{what}){times}")),
                }
                self.bytes += what.len();
                if written.len() > GRAMMAR_BYTES || self.bytes > WRITTEN {
                    return Err(format!("it has more than {GRAMMAR_BYTES} bytes as one expression"));
                }
            }
            ways.push(written);
        }
        self.level -= 1;
        Ok(match ways.as_slice() {
            [one] => one.clone(),
            several => format!("(?:{})", several.join("|")),
        })
    }
}
