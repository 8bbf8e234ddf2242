//! Tokens to a tree: expressions.

use super::ast::{Arguments, Binary, Compare, Expr, Literal, Step, Unary};
use super::lexer::{Token, Wrong};
use super::parse::Parser;

type Parsed<T> = Result<T, Wrong>;

/// Operators of one rank, from those that bind least.
const RANKS: [&[(&str, Binary)]; 3] = [
    &[("+", Binary::Add), ("-", Binary::Subtract)],
    &[("*", Binary::Multiply), ("/", Binary::Divide), ("//", Binary::FloorDivide), ("%", Binary::Modulo)],
    &[("**", Binary::Power)],
];

const COMPARES: [(&str, Compare); 6] = [
    ("==", Compare::Equal),
    ("!=", Compare::Unequal),
    ("<", Compare::Less),
    ("<=", Compare::LessEqual),
    (">", Compare::Greater),
    (">=", Compare::GreaterEqual),
];

/// Conditions without `else` that may follow each other.
const CONDITIONS: usize = 64;

impl Parser {
    /// An expression, or several with commas between them. `has_if` says whether they may be conditional.
    pub fn tuple(&mut self, has_if: bool) -> Parsed<Expr> {
        let (mut items, mut is_tuple) = (Vec::new(), false);
        loop {
            if matches!(self.peek(), Token::Tag(_)) || self.is_sign(")") {
                break;
            }
            items.push(if has_if { self.expression()? } else { self.deeper(Parser::or)? });
            if !self.skip(",") {
                break;
            }
            is_tuple = true;
        }
        match items.pop() {
            Some(item) if !is_tuple => Ok(item),
            None => self.unexpected("an expression"),
            last => {
                items.extend(last);
                Ok(Expr::Tuple(items))
            }
        }
    }

    /// An expression, which may be conditional.
    pub fn expression(&mut self) -> Parsed<Expr> {
        self.deeper(|parser| {
            let mut value = parser.or()?;
            let mut conditions = 0;
            while parser.skip_name("if") {
                // Each condition is around those before it.
                conditions += 1;
                if conditions > CONDITIONS {
                    return parser.wrong(format!("more than {CONDITIONS} conditions follow each other"));
                }
                let condition = parser.or()?;
                let otherwise = match parser.skip_name("else") {
                    true => Some(Box::new(parser.expression()?)),
                    false => None,
                };
                value = Expr::If(Box::new([condition, value]), otherwise);
            }
            Ok(value)
        })
    }

    fn or(&mut self) -> Parsed<Expr> {
        self.words("or", |parser| parser.words("and", Parser::not, Expr::And), Expr::Or)
    }

    /// Operands with a word between them.
    fn words(
        &mut self,
        word: &str,
        operand: impl Fn(&mut Parser) -> Parsed<Expr>,
        join: impl Fn(Vec<Expr>) -> Expr,
    ) -> Parsed<Expr> {
        let first = operand(self)?;
        let mut all = vec![first];
        while self.skip_name(word) {
            all.push(operand(self)?);
        }
        Ok(if all.len() == 1 { all.remove(0) } else { join(all) })
    }

    fn not(&mut self) -> Parsed<Expr> {
        let mut signs = Vec::new();
        while self.skip_name("not") {
            signs.push(Unary::Not);
        }
        let value = self.compare()?;
        Ok(if signs.is_empty() { value } else { Expr::Unary(signs, Box::new(value)) })
    }

    fn compare(&mut self) -> Parsed<Expr> {
        let first = self.binary(0)?;
        let mut others = Vec::new();
        loop {
            let found = COMPARES.iter().find(|(sign, _)| self.is_sign(sign)).map(|(_, compare)| *compare);
            let is_not_in =
                self.is_name("not") && matches!(self.peek_second(), Token::Name(n) if &**n == "in");
            let compare = match found {
                Some(compare) => compare,
                None if self.is_name("in") => Compare::In,
                None if is_not_in => {
                    self.next();
                    Compare::NotIn
                }
                None => break,
            };
            self.next();
            others.push((compare, self.binary(0)?));
        }
        Ok(if others.is_empty() { first } else { Expr::Compare(Box::new(first), others) })
    }

    fn binary(&mut self, rank: usize) -> Parsed<Expr> {
        let Some(operators) = RANKS.get(rank) else { return self.unary() };
        // Joining binds between sums and products.
        let operand = |parser: &mut Parser| if rank == 0 { parser.joined() } else { parser.binary(rank + 1) };
        let first = operand(self)?;
        let mut others = Vec::new();
        while let Some((sign, operator)) = operators.iter().find(|(sign, _)| self.is_sign(sign)) {
            self.skip(sign);
            others.push((*operator, operand(self)?));
        }
        Ok(if others.is_empty() { first } else { Expr::Binary(Box::new(first), others) })
    }

    fn joined(&mut self) -> Parsed<Expr> {
        let mut all = vec![self.binary(1)?];
        while self.skip("~") {
            all.push(self.binary(1)?);
        }
        Ok(if all.len() == 1 { all.remove(0) } else { Expr::Concat(all) })
    }

    fn unary(&mut self) -> Parsed<Expr> {
        let mut signs = Vec::new();
        loop {
            if self.skip("-") {
                signs.push(Unary::Minus);
            } else if self.skip("+") {
                signs.push(Unary::Plus);
            } else {
                break;
            }
        }
        let primary = self.primary()?;
        let mut value = self.steps(primary, signs.is_empty())?;
        if !signs.is_empty() {
            // Filters and tests apply to the number with its sign, attributes to the number without.
            signs.reverse();
            value = Expr::Unary(signs, Box::new(value));
            value = self.steps(value, true)?;
        }
        Ok(value)
    }

    fn primary(&mut self) -> Parsed<Expr> {
        let value = match self.peek().clone() {
            Token::Name(name) => match &*name {
                "true" | "True" => Expr::Literal(Literal::Bool(true)),
                "false" | "False" => Expr::Literal(Literal::Bool(false)),
                "none" | "None" => Expr::Literal(Literal::None),
                _ => Expr::Name(name),
            },
            Token::Text(text) => {
                let mut text = text.to_string();
                while let Token::Text(more) = self.peek_second() {
                    text.push_str(more);
                    self.next();
                }
                Expr::Literal(Literal::Text(text.into()))
            }
            Token::Int(number) => Expr::Literal(Literal::Int(number)),
            Token::Float(number) => Expr::Literal(Literal::Float(number)),
            Token::Sign("(") => {
                self.next();
                if self.skip(")") {
                    return Ok(Expr::Tuple(Vec::new()));
                }
                let value = self.tuple(true)?;
                self.expect(")")?;
                return Ok(value);
            }
            Token::Sign("[") => {
                self.next();
                return Ok(Expr::List(self.items("]", Parser::expression)?));
            }
            Token::Sign("{") => {
                self.next();
                let member = |parser: &mut Parser| {
                    let key = parser.expression()?;
                    parser.expect(":")?;
                    Ok((key, parser.expression()?))
                };
                return Ok(Expr::Dict(self.items("}", member)?));
            }
            _ => return self.unexpected("an expression"),
        };
        self.next();
        Ok(value)
    }

    /// Items with commas between them, up to a sign.
    fn items<T>(&mut self, end: &str, item: impl Fn(&mut Parser) -> Parsed<T>) -> Parsed<Vec<T>> {
        let mut items = Vec::new();
        while !self.skip(end) {
            if !items.is_empty() {
                self.expect(",")?;
                if self.skip(end) {
                    break;
                }
            }
            items.push(item(self)?);
        }
        Ok(items)
    }

    /// What is done with an operand. Behind the first filter or test there are neither attributes nor items.
    fn steps(&mut self, value: Expr, has_filters: bool) -> Parsed<Expr> {
        let (mut steps, mut is_filtered) = (Vec::new(), false);
        loop {
            if self.is_sign("(") {
                steps.push(Step::Call(self.arguments()?));
            } else if !is_filtered && self.skip(".") {
                steps.push(match self.peek().clone() {
                    Token::Int(number) => {
                        self.next();
                        Step::Item(Expr::Literal(Literal::Int(number)))
                    }
                    _ => Step::Attribute(self.name()?),
                });
            } else if !is_filtered && self.skip("[") {
                steps.push(self.subscript()?);
            } else if has_filters && self.skip("|") {
                is_filtered = true;
                let name = self.dotted()?;
                let arguments = if self.is_sign("(") { self.arguments()? } else { Arguments::default() };
                steps.push(Step::Filter(name, arguments));
            } else if has_filters && self.skip_name("is") {
                is_filtered = true;
                steps.push(self.test()?);
            } else {
                break;
            }
        }
        Ok(if steps.is_empty() { value } else { Expr::Steps(Box::new(value), steps) })
    }

    fn test(&mut self) -> Parsed<Step> {
        let is_negated = self.skip_name("not");
        let name = self.dotted()?;
        let has_argument = match self.peek() {
            Token::Name(word) => !matches!(&**word, "else" | "or" | "and" | "is" | "if" | "in" | "not"),
            Token::Text(_) | Token::Int(_) | Token::Float(_) | Token::Sign("[" | "{") => true,
            _ => false,
        };
        let arguments = if self.is_sign("(") {
            self.arguments()?
        } else if has_argument {
            let primary = self.primary()?;
            Arguments { positional: vec![self.steps(primary, false)?], ..Arguments::default() }
        } else {
            Arguments::default()
        };
        Ok(Step::Test(name, arguments, is_negated))
    }

    /// What is between square brackets behind a value.
    fn subscript(&mut self) -> Parsed<Step> {
        let mut parts: [Option<Expr>; 3] = [None, None, None];
        let (mut at, mut is_slice) = (0, false);
        loop {
            if self.skip(":") {
                is_slice = true;
                at += 1;
                if at > 2 {
                    return self.unexpected("`]`");
                }
            } else if self.skip("]") {
                break;
            } else if parts[at].is_some() {
                return self.unexpected("`]`");
            } else {
                parts[at] = Some(self.expression()?);
            }
        }
        match parts {
            [Some(item), None, None] if !is_slice => Ok(Step::Item(item)),
            parts if is_slice => Ok(Step::Slice(Box::new(parts))),
            _ => self.unexpected("an expression"),
        }
    }

    /// Arguments in brackets.
    pub fn arguments(&mut self) -> Parsed<Arguments> {
        self.expect("(")?;
        let mut arguments = Arguments::default();
        let mut is_first = true;
        while !self.skip(")") {
            if !std::mem::take(&mut is_first) {
                self.expect(",")?;
                if self.skip(")") {
                    break;
                }
            }
            let is_named = *self.peek_second() == Token::Sign("=");
            if self.skip("**") {
                arguments.more_named = Some(Box::new(self.expression()?));
            } else if self.skip("*") {
                arguments.more = Some(Box::new(self.expression()?));
            } else if is_named {
                let name = self.name()?;
                self.expect("=")?;
                arguments.named.push((name, self.expression()?));
            } else if arguments.named.is_empty() {
                arguments.positional.push(self.expression()?);
            } else {
                return self.wrong("an argument without a name follows one with a name");
            }
        }
        Ok(arguments)
    }
}
