//! Tokens to a tree: statements.

use super::ast::{
    Arguments, AssignTarget, ForLoop, Macro, Name, Postfix, Statement, StatementLine, TemplateExpr,
};
use super::lexer::{TemplateToken, Wrong, tokens};
use std::sync::Arc;

/// Deepest nesting of brackets and blocks.
const DEPTH: usize = 64;

/// The statements of a template.
pub(super) fn parse(source: &str) -> Result<Vec<StatementLine>, Wrong> {
    let mut parser = TemplateParser { tokens: tokens(source)?, at: 0, depth: 0, loops: 0 };
    let body = parser.block(&[])?;
    match parser.peek() {
        TemplateToken::End => Ok(body),
        _ => parser.wrong("unexpected end of a block"),
    }
}

pub(super) struct TemplateParser {
    tokens: Vec<(TemplateToken, u32)>,
    at: usize,
    depth: usize,
    /// Loops around the statement.
    loops: usize,
}

type Parsed<T> = Result<T, Wrong>;

impl TemplateParser {
    pub fn peek(&self) -> &TemplateToken {
        &self.tokens[self.at].0
    }

    pub fn peek_second(&self) -> &TemplateToken {
        &self.tokens[(self.at + 1).min(self.tokens.len() - 1)].0
    }

    fn line(&self) -> u32 {
        self.tokens[self.at].1
    }

    pub fn next(&mut self) -> TemplateToken {
        let token = self.tokens[self.at].0.clone();
        self.at = (self.at + 1).min(self.tokens.len() - 1);
        token
    }

    pub fn wrong<T>(&self, message: impl Into<String>) -> Parsed<T> {
        Err((message.into(), self.line()))
    }

    pub fn unexpected<T>(&self, wanted: &str) -> Parsed<T> {
        let found = match self.peek() {
            TemplateToken::Data(_) => "text".to_owned(),
            TemplateToken::Tag(sign) | TemplateToken::Sign(sign) => format!("`{sign}`"),
            TemplateToken::Name(name) => format!("`{name}`"),
            TemplateToken::Text(_) => "a quoted text".to_owned(),
            TemplateToken::Int(_) | TemplateToken::Float(_) => "a number".to_owned(),
            TemplateToken::End => "the end of the template".to_owned(),
        };
        self.wrong(format!("unexpected {found}, expected {wanted}"))
    }

    pub fn is_sign(&self, sign: &str) -> bool {
        matches!(self.peek(), TemplateToken::Sign(found) if *found == sign)
    }

    pub fn is_name(&self, name: &str) -> bool {
        matches!(self.peek(), TemplateToken::Name(found) if &**found == name)
    }

    /// Takes a sign if it is next.
    pub fn skip(&mut self, sign: &str) -> bool {
        let is_next = self.is_sign(sign);
        if is_next {
            self.next();
        }
        is_next
    }

    /// Takes a name if it is next.
    pub fn skip_name(&mut self, name: &str) -> bool {
        let is_next = self.is_name(name);
        if is_next {
            self.next();
        }
        is_next
    }

    pub fn expect(&mut self, sign: &str) -> Parsed<()> {
        if self.skip(sign) { Ok(()) } else { self.unexpected(&format!("`{sign}`")) }
    }

    pub fn name(&mut self) -> Parsed<Name> {
        match self.peek().clone() {
            TemplateToken::Name(name) => {
                self.next();
                Ok(name)
            }
            _ => self.unexpected("a name"),
        }
    }

    /// Parses what is one level deeper.
    pub fn deeper<T>(&mut self, parse: impl FnOnce(&mut TemplateParser) -> Parsed<T>) -> Parsed<T> {
        if self.depth >= DEPTH {
            return self.wrong(format!("brackets and blocks nest deeper than {DEPTH}"));
        }
        self.depth += 1;
        let parsed = parse(self);
        self.depth -= 1;
        parsed
    }

    fn tag_end(&mut self, end: &'static str) -> Parsed<()> {
        if *self.peek() == TemplateToken::Tag(end) {
            self.next();
            return Ok(());
        }
        self.unexpected(&format!("`{end}`"))
    }

    /// Statements up to a tag with one of some names, whose name is next then.
    fn block(&mut self, ends: &[&str]) -> Parsed<Vec<StatementLine>> {
        let mut lines = Vec::new();
        loop {
            let line = self.line();
            match self.peek().clone() {
                TemplateToken::Data(text) => {
                    self.next();
                    lines.push((Statement::Data(text), line));
                }
                TemplateToken::Tag("{{") => {
                    self.next();
                    let value = self.tuple(true)?;
                    self.tag_end("}}")?;
                    lines.push((Statement::Output(value), line));
                }
                TemplateToken::Tag(_) => {
                    self.next();
                    if ends.iter().any(|end| self.is_name(end)) {
                        return Ok(lines);
                    }
                    let statement = self.deeper(TemplateParser::statement)?;
                    lines.extend(statement.map(|statement| (statement, line)));
                }
                _ if ends.is_empty() => return Ok(lines),
                _ => return self.unexpected(&format!("`{}`", ends[ends.len() - 1])),
            }
        }
    }

    /// A block with its end.
    fn body(&mut self, end: &str) -> Parsed<Vec<StatementLine>> {
        self.tag_end("%}")?;
        let body = self.block(&[end])?;
        self.next();
        Ok(body)
    }

    /// A statement without the beginning of its tag; `None` for one that does nothing.
    fn statement(&mut self) -> Parsed<Option<Statement>> {
        let TemplateToken::Name(word) = self.peek().clone() else { return self.unexpected("a statement") };
        self.next();
        let statement = match &*word {
            "set" => self.set()?,
            "if" => self.condition()?,
            "for" => self.for_loop()?,
            "macro" => {
                let name = self.name()?;
                let parameters = self.parameters()?;
                Statement::Macro(self.definition(name, parameters, "endmacro")?)
            }
            "call" => {
                let parameters = if self.is_sign("(") { self.parameters()? } else { Vec::new() };
                let call = self.expression()?;
                if !matches!(&call, TemplateExpr::Steps(_, steps) if matches!(steps.last(), Some(Postfix::Call(_))))
                {
                    return self.wrong("`call` needs a call");
                }
                Statement::Call(call, self.definition("caller".into(), parameters, "endcall")?)
            }
            "filter" => {
                let filters = self.filters(true)?;
                Statement::Filter(filters, self.body("endfilter")?)
            }
            "with" => {
                let mut values = Vec::new();
                while *self.peek() != TemplateToken::Tag("%}") {
                    if !values.is_empty() {
                        self.expect(",")?;
                    }
                    let target = self.target(false)?;
                    self.expect("=")?;
                    values.push((target, self.expression()?));
                }
                Statement::With(values, self.body("endwith")?)
            }
            // The block around what is generated matters for training alone; there is nothing to inherit.
            "generation" => Statement::With(Vec::new(), self.body("endgeneration")?),
            "block" => {
                self.name()?;
                let body = self.body("endblock")?;
                if let TemplateToken::Name(_) = self.peek() {
                    self.next();
                }
                Statement::With(Vec::new(), body)
            }
            "break" | "continue" if self.loops == 0 => {
                return self.wrong(format!("`{word}` is outside of a loop"));
            }
            "break" => Statement::Break,
            "continue" => Statement::Continue,
            "include" | "import" | "from" | "extends" => {
                return self.wrong(format!("`{word}` needs another template, and there is none"));
            }
            _ => return self.wrong(format!("unknown statement `{word}`")),
        };
        self.tag_end("%}")?;
        Ok(Some(statement))
    }

    fn set(&mut self) -> Parsed<Statement> {
        let target = self.target(true)?;
        if self.skip("=") {
            return Ok(Statement::Set(target, self.tuple(true)?));
        }
        let filters = self.filters(false)?;
        Ok(Statement::SetBlock(target, filters, self.body("endset")?))
    }

    fn condition(&mut self) -> Parsed<Statement> {
        let mut branches = Vec::new();
        let mut condition = Some(self.tuple(false)?);
        loop {
            self.tag_end("%}")?;
            let ends = if condition.is_some() { &["elif", "else", "endif"][..] } else { &["endif"] };
            let body = self.block(ends)?;
            let Some(condition_before) = condition.take() else {
                self.next();
                return Ok(Statement::If(branches, body));
            };
            branches.push((condition_before, body));
            if self.skip_name("elif") {
                condition = Some(self.tuple(false)?);
            } else if !self.skip_name("else") {
                self.next();
                return Ok(Statement::If(branches, Vec::new()));
            }
        }
    }

    fn for_loop(&mut self) -> Parsed<Statement> {
        let target = self.target(false)?;
        if !self.skip_name("in") {
            return self.unexpected("`in`");
        }
        let items = self.tuple(false)?;
        let condition = if self.skip_name("if") { Some(self.expression()?) } else { None };
        let is_recursive = self.skip_name("recursive");
        self.tag_end("%}")?;
        self.loops += 1;
        let body = self.block(&["else", "endfor"]);
        self.loops -= 1;
        let body = body?;
        let mut otherwise = Vec::new();
        if self.skip_name("else") {
            otherwise = self.body("endfor")?;
        } else {
            self.next();
        }
        Ok(Statement::For(Arc::new(ForLoop { target, items, condition, is_recursive, body, otherwise })))
    }

    /// Filters of a block. Only before the first one may there be no bar.
    fn filters(&mut self, mut has_bar: bool) -> Parsed<Vec<Postfix>> {
        let mut filters = Vec::new();
        while has_bar || self.skip("|") {
            has_bar = false;
            let name = self.dotted()?;
            let arguments = if self.is_sign("(") { self.arguments()? } else { Arguments::default() };
            filters.push(Postfix::Filter(name, arguments));
        }
        Ok(filters)
    }

    /// A name with dots.
    pub fn dotted(&mut self) -> Parsed<Name> {
        let mut name = self.name()?;
        while self.skip(".") {
            name = format!("{name}.{}", self.name()?).into();
        }
        Ok(name)
    }

    fn parameters(&mut self) -> Parsed<Vec<(Name, Option<TemplateExpr>)>> {
        self.expect("(")?;
        let mut parameters = Vec::new();
        while !self.skip(")") {
            if !parameters.is_empty() {
                self.expect(",")?;
            }
            let name = self.name()?;
            let default = if self.skip("=") { Some(self.expression()?) } else { None };
            parameters.push((name, default));
        }
        Ok(parameters)
    }

    fn definition(
        &mut self,
        name: Name,
        parameters: Vec<(Name, Option<TemplateExpr>)>,
        end: &str,
    ) -> Parsed<Arc<Macro>> {
        let (start, loops) = (self.at, std::mem::take(&mut self.loops));
        let body = self.body(end)?;
        self.loops = loops;
        let uses = |name: &str| {
            self.tokens[start..self.at]
                .iter()
                .any(|(token, _)| matches!(token, TemplateToken::Name(n) if &**n == name))
        };
        Ok(Arc::new(Macro {
            name,
            parameters,
            takes_more: uses("varargs"),
            takes_more_named: uses("kwargs"),
            takes_caller: uses("caller"),
            body,
        }))
    }

    fn target(&mut self, has_attributes: bool) -> Parsed<AssignTarget> {
        let mut targets = Vec::new();
        let mut is_tuple = false;
        loop {
            if self.skip("(") {
                let inner = self.deeper(|parser| parser.target(false))?;
                self.expect(")")?;
                targets.push(inner);
            } else {
                let name = self.name()?;
                if has_attributes && self.skip(".") {
                    targets.push(AssignTarget::Attribute(name, self.name()?));
                } else {
                    targets.push(AssignTarget::Name(name));
                }
            }
            if !self.skip(",") {
                break;
            }
            is_tuple = true;
            if self.is_sign("=") || self.is_name("in") {
                break;
            }
        }
        match targets.pop() {
            Some(target) if !is_tuple => Ok(target),
            last => {
                targets.extend(last);
                Ok(AssignTarget::Tuple(targets))
            }
        }
    }
}
