//! Tokens to a tree: expressions.

use super::ast::{Arguments, BinaryOperator, Comparison, Literal, Postfix, TemplateExpr, UnaryOperator};
use super::lexer::{TemplateToken, Wrong};
use super::parse::TemplateParser;

type Parsed<T> = Result<T, Wrong>;

/// Operators of one rank, from those that bind least.
const RANKS: [&[(&str, BinaryOperator)]; 3] = [
    &[("+", BinaryOperator::Add), ("-", BinaryOperator::Subtract)],
    &[
        ("*", BinaryOperator::Multiply),
        ("/", BinaryOperator::Divide),
        ("//", BinaryOperator::FloorDivide),
        ("%", BinaryOperator::Modulo),
    ],
    &[("**", BinaryOperator::Power)],
];

const COMPARES: [(&str, Comparison); 6] = [
    ("==", Comparison::Equal),
    ("!=", Comparison::Unequal),
    ("<", Comparison::Less),
    ("<=", Comparison::LessEqual),
    (">", Comparison::Greater),
    (">=", Comparison::GreaterEqual),
];

/// Conditions without `else` that may follow each other.
const CONDITIONS: usize = 64;

impl TemplateParser {
    /// An expression, or several with commas between them. `has_if` says whether they may be conditional.
    pub fn tuple(&mut self, has_if: bool) -> Parsed<TemplateExpr> {
        let (mut items, mut is_tuple) = (Vec::new(), false);
        loop {
            if matches!(self.peek(), TemplateToken::Tag(_)) || self.is_sign(")") {
                break;
            }
            items.push(if has_if { self.expression()? } else { self.deeper(TemplateParser::or)? });
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
                Ok(TemplateExpr::Tuple(items))
            }
        }
    }

    /// An expression, which may be conditional.
    pub fn expression(&mut self) -> Parsed<TemplateExpr> {
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
                value = TemplateExpr::If(Box::new([condition, value]), otherwise);
            }
            Ok(value)
        })
    }

    fn or(&mut self) -> Parsed<TemplateExpr> {
        self.words(
            "or",
            |parser| parser.words("and", TemplateParser::not, TemplateExpr::And),
            TemplateExpr::Or,
        )
    }

    /// Operands with a word between them.
    fn words(
        &mut self,
        word: &str,
        operand: impl Fn(&mut TemplateParser) -> Parsed<TemplateExpr>,
        join: impl Fn(Vec<TemplateExpr>) -> TemplateExpr,
    ) -> Parsed<TemplateExpr> {
        let first = operand(self)?;
        let mut all = vec![first];
        while self.skip_name(word) {
            all.push(operand(self)?);
        }
        Ok(if all.len() == 1 { all.remove(0) } else { join(all) })
    }

    fn not(&mut self) -> Parsed<TemplateExpr> {
        let mut signs = Vec::new();
        while self.skip_name("not") {
            signs.push(UnaryOperator::Not);
        }
        let value = self.compare()?;
        Ok(if signs.is_empty() { value } else { TemplateExpr::Unary(signs, Box::new(value)) })
    }

    fn compare(&mut self) -> Parsed<TemplateExpr> {
        let first = self.binary(0)?;
        let mut others = Vec::new();
        loop {
            let found = COMPARES.iter().find(|(sign, _)| self.is_sign(sign)).map(|(_, compare)| *compare);
            let is_not_in =
                self.is_name("not") && matches!(self.peek_second(), TemplateToken::Name(n) if &**n == "in");
            let compare = match found {
                Some(compare) => compare,
                None if self.is_name("in") => Comparison::In,
                None if is_not_in => {
                    self.next();
                    Comparison::NotIn
                }
                None => break,
            };
            self.next();
            others.push((compare, self.binary(0)?));
        }
        Ok(if others.is_empty() { first } else { TemplateExpr::Compare(Box::new(first), others) })
    }

    fn binary(&mut self, rank: usize) -> Parsed<TemplateExpr> {
        let Some(operators) = RANKS.get(rank) else { return self.unary() };
        // Joining binds between sums and products.
        let operand =
            |parser: &mut TemplateParser| if rank == 0 { parser.joined() } else { parser.binary(rank + 1) };
        let first = operand(self)?;
        let mut others = Vec::new();
        while let Some((sign, operator)) = operators.iter().find(|(sign, _)| self.is_sign(sign)) {
            self.skip(sign);
            others.push((*operator, operand(self)?));
        }
        Ok(if others.is_empty() { first } else { TemplateExpr::Binary(Box::new(first), others) })
    }

    fn joined(&mut self) -> Parsed<TemplateExpr> {
        let mut all = vec![self.binary(1)?];
        while self.skip("~") {
            all.push(self.binary(1)?);
        }
        Ok(if all.len() == 1 { all.remove(0) } else { TemplateExpr::Concat(all) })
    }

    fn unary(&mut self) -> Parsed<TemplateExpr> {
        let mut signs = Vec::new();
        loop {
            if self.skip("-") {
                signs.push(UnaryOperator::Minus);
            } else if self.skip("+") {
                signs.push(UnaryOperator::Plus);
            } else {
                break;
            }
        }
        let primary = self.primary()?;
        let mut value = self.steps(primary, signs.is_empty())?;
        if !signs.is_empty() {
            // Filters and tests apply to the number with its sign, attributes to the number without.
            signs.reverse();
            value = TemplateExpr::Unary(signs, Box::new(value));
            value = self.steps(value, true)?;
        }
        Ok(value)
    }

    fn primary(&mut self) -> Parsed<TemplateExpr> {
        let value = match self.peek().clone() {
            TemplateToken::Name(name) => match &*name {
                "true" | "True" => TemplateExpr::Literal(Literal::Bool(true)),
                "false" | "False" => TemplateExpr::Literal(Literal::Bool(false)),
                "none" | "None" => TemplateExpr::Literal(Literal::None),
                _ => TemplateExpr::Name(name),
            },
            TemplateToken::Text(text) => {
                let mut text = text.to_string();
                while let TemplateToken::Text(more) = self.peek_second() {
                    text.push_str(more);
                    self.next();
                }
                TemplateExpr::Literal(Literal::Text(text.into()))
            }
            TemplateToken::Int(number) => TemplateExpr::Literal(Literal::Int(number)),
            TemplateToken::Float(number) => TemplateExpr::Literal(Literal::Float(number)),
            TemplateToken::Sign("(") => {
                self.next();
                if self.skip(")") {
                    return Ok(TemplateExpr::Tuple(Vec::new()));
                }
                let value = self.tuple(true)?;
                self.expect(")")?;
                return Ok(value);
            }
            TemplateToken::Sign("[") => {
                self.next();
                return Ok(TemplateExpr::List(self.items("]", TemplateParser::expression)?));
            }
            TemplateToken::Sign("{") => {
                self.next();
                let member = |parser: &mut TemplateParser| {
                    let key = parser.expression()?;
                    parser.expect(":")?;
                    Ok((key, parser.expression()?))
                };
                return Ok(TemplateExpr::Dict(self.items("}", member)?));
            }
            _ => return self.unexpected("an expression"),
        };
        self.next();
        Ok(value)
    }

    /// Items with commas between them, up to a sign.
    fn items<T>(&mut self, end: &str, item: impl Fn(&mut TemplateParser) -> Parsed<T>) -> Parsed<Vec<T>> {
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

    /// The operations behind an operand. Behind the first filter or test there are neither attributes nor
    /// items.
    fn steps(&mut self, value: TemplateExpr, has_filters: bool) -> Parsed<TemplateExpr> {
        let (mut steps, mut is_filtered) = (Vec::new(), false);
        loop {
            if self.is_sign("(") {
                steps.push(Postfix::Call(self.arguments()?));
            } else if !is_filtered && self.skip(".") {
                steps.push(match self.peek().clone() {
                    TemplateToken::Int(number) => {
                        self.next();
                        Postfix::Item(TemplateExpr::Literal(Literal::Int(number)))
                    }
                    _ => Postfix::Attribute(self.name()?),
                });
            } else if !is_filtered && self.skip("[") {
                steps.push(self.subscript()?);
            } else if has_filters && self.skip("|") {
                is_filtered = true;
                let name = self.dotted()?;
                let arguments = if self.is_sign("(") { self.arguments()? } else { Arguments::default() };
                steps.push(Postfix::Filter(name, arguments));
            } else if has_filters && self.skip_name("is") {
                is_filtered = true;
                steps.push(self.test()?);
            } else {
                break;
            }
        }
        Ok(if steps.is_empty() { value } else { TemplateExpr::Steps(Box::new(value), steps) })
    }

    fn test(&mut self) -> Parsed<Postfix> {
        let is_negated = self.skip_name("not");
        let name = self.dotted()?;
        let has_argument = match self.peek() {
            TemplateToken::Name(word) => {
                !matches!(&**word, "else" | "or" | "and" | "is" | "if" | "in" | "not")
            }
            TemplateToken::Text(_)
            | TemplateToken::Int(_)
            | TemplateToken::Float(_)
            | TemplateToken::Sign("[" | "{") => true,
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
        Ok(Postfix::Test(name, arguments, is_negated))
    }

    /// The subscript in square brackets behind a value.
    fn subscript(&mut self) -> Parsed<Postfix> {
        let mut parts: [Option<TemplateExpr>; 3] = [None, None, None];
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
            [Some(item), None, None] if !is_slice => Ok(Postfix::Item(item)),
            parts if is_slice => Ok(Postfix::Slice(Box::new(parts))),
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
            let is_named = *self.peek_second() == TemplateToken::Sign("=");
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
