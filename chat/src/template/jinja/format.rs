//! Values in formats: Python's `%`, `str.format` and its fields.

use super::arguments::GivenArguments;
use super::budget::{Budget, Result, failed};
use super::text::{TemplateText, TextBuilder};
use super::value::{SequenceKind, Value};
use super::write::{float, print, represent};
use super::{operate, write};

/// Widest field, and most digits behind a point.
const WIDTH: usize = 1000;

/// How a field is written: `[[fill]align][sign][#][0][width][,][.precision][type]`.
#[derive(Clone, Copy, Default)]
struct FormatField {
    fill: Option<char>,
    align: Option<char>,
    sign: Option<char>,
    is_alternate: bool,
    has_zeros: bool,
    width: usize,
    grouping: Option<char>,
    precision: Option<usize>,
    kind: Option<char>,
}

impl FormatField {
    fn parse(text: &str) -> Result<FormatField> {
        let mut field = FormatField::default();
        let is_align = |c: char| matches!(c, '<' | '>' | '^' | '=');
        let mut rest = text.chars().peekable();
        let second = text.chars().nth(1);
        if second.is_some_and(is_align) {
            field.fill = rest.next();
            field.align = rest.next();
        } else {
            field.align = rest.next_if(|c| is_align(*c));
        }
        field.sign = rest.next_if(|c| matches!(c, '+' | '-' | ' '));
        field.is_alternate = rest.next_if_eq(&'#').is_some();
        field.has_zeros = rest.next_if_eq(&'0').is_some();
        let number = |rest: &mut std::iter::Peekable<std::str::Chars>| {
            let (mut number, mut has_digits) = (0usize, false);
            while let Some(digit) = rest.next_if(char::is_ascii_digit).and_then(|c| c.to_digit(10)) {
                number = number.saturating_mul(10).saturating_add(digit as usize);
                has_digits = true;
            }
            if number > WIDTH {
                return failed(format!("a format has a width of more than {WIDTH}"));
            }
            Ok(has_digits.then_some(number))
        };
        field.width = number(&mut rest)?.unwrap_or(0);
        field.grouping = rest.next_if(|c| matches!(c, ',' | '_'));
        if rest.next_if_eq(&'.').is_some() {
            field.precision = number(&mut rest)?;
            if field.precision.is_none() {
                return failed("a format has a point and no digits behind it");
            }
        }
        field.kind = rest.next();
        match rest.next() {
            None => Ok(field),
            Some(_) => failed(format!("`{text}` is no format")),
        }
    }

    /// Writes a value.
    fn write(&self, out: &mut TextBuilder, value: &Value) -> Result<()> {
        let budget = out.budget();
        let is_number = value.as_float().is_some() && !matches!((value, self.kind), (Value::Bool(_), None));
        match self.kind {
            None | Some('s') if !is_number => {
                let text = write::text(budget, value)?;
                let end = self.precision.and_then(|most| text.as_str().char_indices().nth(most));
                let text = text.slice(budget, 0..end.map_or(text.as_str().len(), |(at, _)| at))?;
                self.pad(out, &text, '<')
            }
            Some('s') => failed("a format of a text has a number"),
            _ if !is_number => failed(format!("a value of type {} has no such format", value.type_name())),
            kind => {
                let (sign, digits) = self.number(kind, value)?;
                let width = self.width.saturating_sub(sign.len());
                let zeros = self.align.is_none() && self.has_zeros || self.align == Some('=');
                if zeros {
                    let fill = self.fill.unwrap_or(if self.has_zeros { '0' } else { ' ' });
                    let missing = width.saturating_sub(digits.chars().count());
                    let fill: String = std::iter::repeat_n(fill, missing).collect();
                    return out.own(&format!("{sign}{fill}{digits}"));
                }
                self.pad(out, &TemplateText::of_template(sign + &digits), '>')
            }
        }
    }

    /// The sign of a number, and the rest.
    fn number(&self, kind: Option<char>, value: &Value) -> Result<(String, String)> {
        let number = value.as_float().unwrap_or(0.0);
        let whole = value.as_int();
        let precision = self.precision.unwrap_or(6);
        let is_negative = whole.map_or(number.is_sign_negative(), |whole| whole < 0);
        let size = number.abs();
        let magnitude = || match whole {
            Some(whole) => Ok(whole.unsigned_abs()),
            None => failed("a format of a whole number has another number"),
        };
        let prefix = |prefix: &str| if self.is_alternate { prefix.to_owned() } else { String::new() };
        let digits = match kind {
            None | Some('d' | 'n' | 'i' | 'u') if kind.is_some() || whole.is_some() => {
                magnitude()?.to_string()
            }
            Some('x') => prefix("0x") + &format!("{:x}", magnitude()?),
            Some('X') => prefix("0X") + &format!("{:X}", magnitude()?),
            Some('o') => prefix("0o") + &format!("{:o}", magnitude()?),
            Some('b') => prefix("0b") + &format!("{:b}", magnitude()?),
            Some('c') => match u32::try_from(magnitude()?).ok().and_then(char::from_u32) {
                Some(c) => return Ok((String::new(), c.to_string())),
                None => return failed("a number is no character"),
            },
            Some('f' | 'F') => format!("{size:.precision$}"),
            Some('%') => format!("{:.precision$}%", size * 100.0),
            Some('e') => exponent(size, precision),
            Some('E') => exponent(size, precision).to_uppercase(),
            Some('g') => general(size, precision.max(1)),
            Some('G') => general(size, precision.max(1)).to_uppercase(),
            None if self.precision.is_some() => {
                let text = general(size, precision.max(1));
                if text.contains(['.', 'e']) { text } else { text + ".0" }
            }
            None => float(size, ["nan", "inf", "-inf"]),
            Some(kind) => return failed(format!("`{kind}` is no format")),
        };
        let digits = match self.grouping {
            Some(mark) => grouped(&digits, mark),
            None => digits,
        };
        let sign = match (is_negative, self.sign) {
            (true, _) => "-",
            (false, Some('+')) => "+",
            (false, Some(' ')) => " ",
            _ => "",
        };
        Ok((sign.to_owned(), digits))
    }

    fn pad(&self, out: &mut TextBuilder, text: &TemplateText, usual: char) -> Result<()> {
        let missing = self.width.saturating_sub(text.as_str().chars().count());
        let before = match self.align.unwrap_or(usual) {
            '<' => 0,
            '^' => missing / 2,
            _ => missing,
        };
        let fill = TemplateText::of_template(self.fill.unwrap_or(' ').to_string());
        out.repeat(&fill, before)?;
        out.push_text(text)?;
        out.repeat(&fill, missing - before)
    }
}

fn exponent(size: f64, precision: usize) -> String {
    let text = format!("{size:.precision$e}");
    let (digits, exponent) = text.split_once('e').unwrap_or((&text, "0"));
    let exponent: i32 = exponent.parse().unwrap_or(0);
    format!("{digits}e{}{:02}", if exponent < 0 { '-' } else { '+' }, exponent.unsigned_abs())
}

fn general(size: f64, precision: usize) -> String {
    let text = exponent(size, precision - 1);
    let (digits, power) = text.split_once('e').unwrap_or((&text, "0"));
    let power: i64 = power.parse().unwrap_or(0);
    let short = |digits: &str| match digits.contains('.') {
        true => digits.trim_end_matches('0').trim_end_matches('.').to_owned(),
        false => digits.to_owned(),
    };
    if size != 0.0 && (power < -4 || power >= precision as i64) {
        return format!("{}e{}", short(digits), &text[digits.len() + 1..]);
    }
    let places = (precision as i64 - 1 - power).max(0) as usize;
    short(&format!("{size:.places$}"))
}

/// A number with a mark between every three digits of its whole part.
fn grouped(digits: &str, mark: char) -> String {
    let end = digits.find(|c: char| !c.is_ascii_digit()).unwrap_or(digits.len());
    let mut text = String::new();
    for (n, c) in digits[..end].chars().enumerate() {
        if n > 0 && (end - n) % 3 == 0 {
            text.push(mark);
        }
        text.push(c);
    }
    text + &digits[end..]
}

/// A text with fields such as `%s` and `%(name)02d`.
pub(super) fn percent(budget: &Budget, format: &TemplateText, values: &Value) -> Result<TemplateText> {
    let tuple = match values {
        Value::List(list) if matches!(list.kind, SequenceKind::Tuple | SequenceKind::Group) => {
            Some(&list.items[..])
        }
        _ => None,
    };
    let one = std::slice::from_ref(values);
    let mut given = tuple.unwrap_or(one).iter();
    let mut used_names = false;
    let (whole, mut out, mut at) = (format.as_str(), TextBuilder::new(budget), 0);
    while let Some(start) = whole[at..].find('%').map(|found| at + found) {
        out.push_part(format, at..start)?;
        let mut rest = &whole[start + 1..];
        let mut named = None;
        if let Some(name) = rest.strip_prefix('(') {
            let Some(end) = name.find(')') else { return failed("a format has a name without an end") };
            used_names = true;
            let key = Value::text(&name[..end]);
            named = match values {
                Value::Dict(dict) => dict.get(budget, &key)?.cloned(),
                _ => return failed("a format with names needs a dictionary"),
            };
            if named.is_none() {
                return failed(format!("a format has the name `{}`, which is not given", &name[..end]));
            }
            rest = &name[end + 1..];
        }
        let flags = rest.len() - rest.trim_start_matches(['-', '+', ' ', '0', '#']).len();
        let (flags, behind) = rest.split_at(flags);
        let length = behind.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(behind.len());
        let Some(kind) = behind[length..].chars().next() else { return failed("a format ends in a field") };
        at = whole.len() - behind.len() + length + kind.len_utf8();
        if kind == '%' {
            out.own("%")?;
            continue;
        }
        let mut field = FormatField::parse(&behind[..length])?;
        field.has_zeros = flags.contains('0') && !flags.contains('-');
        field.align = Some(if flags.contains('-') { '<' } else { '>' }).filter(|_| !field.has_zeros);
        field.sign = flags.chars().rev().find(|c| matches!(c, '+' | ' '));
        field.is_alternate = flags.contains('#');
        let value = match named {
            Some(value) => value,
            None => match given.next() {
                Some(value) => value.clone(),
                None => return failed("a format has more fields than values"),
            },
        };
        match kind {
            's' | 'r' | 'a' => {
                let mut text = TextBuilder::new(budget);
                if kind == 's' {
                    print(&mut text, &value)?
                } else {
                    represent(&mut text, &value)?
                }
                (field.has_zeros, field.kind) = (false, None);
                field.write(&mut out, &Value::Text(text.finish()))?;
            }
            kind => {
                field.kind = Some(kind);
                let value = match (kind, &value) {
                    ('d' | 'i' | 'u', Value::Float(number)) if number.abs() < 9e18 => {
                        Value::Int(*number as i64)
                    }
                    _ => value,
                };
                field.write(&mut out, &value)?;
            }
        }
    }
    out.push_part(format, at..whole.len())?;
    let is_rest_fine = used_names
        || tuple.is_none()
            && !matches!(
                values,
                Value::Text(_) | Value::Int(_) | Value::Float(_) | Value::Bool(_) | Value::None
            );
    if given.next().is_some() && !is_rest_fine {
        return failed("a format has fewer fields than values");
    }
    Ok(out.finish())
}

/// A text with fields such as `{}`, `{0.name!r:>8}` and `{name}`.
pub(super) fn braces(budget: &Budget, format: &TemplateText, given: &GivenArguments) -> Result<TemplateText> {
    let (whole, mut out, mut at, mut count) = (format.as_str(), TextBuilder::new(budget), 0, 0);
    while let Some(start) = whole[at..].find(['{', '}']).map(|found| at + found) {
        out.push_part(format, at..start)?;
        let brace = &whole[start..=start];
        if whole[start + 1..].starts_with(brace) {
            out.push_part(format, start..start + 1)?;
            at = start + 2;
            continue;
        }
        if brace == "}" {
            return failed("a format has a `}` alone");
        }
        let mut depth = 0;
        let end = whole[start..].char_indices().find(|(_, c)| {
            depth += i32::from(*c == '{') - i32::from(*c == '}');
            depth == 0
        });
        let Some((length, _)) = end else { return failed("a format has a `{` without an end") };
        let inner = &whole[start + 1..start + length];
        at = start + length + 1;
        let (target, spec) = inner.split_once(':').unwrap_or((inner, ""));
        let (target, conversion) = match target.split_once('!') {
            Some((target, conversion)) => (target, Some(conversion)),
            None => (target, None),
        };
        let mut value = looked_up(budget, target, given, &mut count)?;
        if let Some(conversion) = conversion {
            let mut text = TextBuilder::new(budget);
            if conversion == "s" {
                print(&mut text, &value)?
            } else {
                represent(&mut text, &value)?
            }
            value = Value::Text(text.finish());
        }
        // A format may have separate fields, of one level.
        let mut spec = spec.to_owned();
        while let (Some(open), Some(close)) = (spec.find('{'), spec.find('}')) {
            if open > close {
                break;
            }
            let inner = looked_up(budget, &spec[open + 1..close], given, &mut count)?;
            let inner = write::text(budget, &inner)?;
            spec.replace_range(open..=close, inner.as_str());
            budget.spend(spec.len())?;
        }
        FormatField::parse(&spec)?.write(&mut out, &value)?;
    }
    out.push_part(format, at..whole.len())?;
    Ok(out.finish())
}

/// The value that a field names: a number or a name, with attributes and items behind it.
fn looked_up(budget: &Budget, target: &str, given: &GivenArguments, count: &mut usize) -> Result<Value> {
    let end = target.find(['.', '[']).unwrap_or(target.len());
    let (name, mut rest) = target.split_at(end);
    let found = if name.is_empty() {
        *count += 1;
        given.positional.get(*count - 1)
    } else if let Ok(at) = name.parse::<usize>() {
        given.positional.get(at)
    } else {
        given.named.iter().find(|(known, _)| &**known == name).map(|(_, value)| value)
    };
    let Some(mut value) = found.cloned() else {
        return failed(format!("a format has the field `{name}`, which is not given"));
    };
    while !rest.is_empty() {
        if let Some(behind) = rest.strip_prefix('.') {
            let end = behind.find(['.', '[']).unwrap_or(behind.len());
            value = operate::attribute(budget, &value, &behind[..end].into())?;
            rest = &behind[end..];
        } else {
            let Some(end) = rest.find(']') else {
                return failed("a field of a format has a `[` without an end");
            };
            let key = &rest[1..end];
            let key = key.parse().map_or_else(|_| Value::text(key), Value::Int);
            value = operate::item(budget, &value, &key)?;
            rest = &rest[end + 1..];
        }
        if let Value::Undefined(what) = value {
            return failed(what.to_string());
        }
    }
    Ok(value)
}
