//! Conversations, in no model's format.

use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::str::FromStr;

/// A conversation: what the model is told about itself, its tools, and what was said.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Conversation {
    /// The items, in order.
    pub items: Vec<Item>,
    /// Functions that the model may call.
    pub tools: Vec<Tool>,
    /// Tools of the model's own that its host provides.
    pub builtin: Vec<BuiltinTool>,
    /// How long the model shall reason.
    pub effort: Effort,
    /// A form that the final answer shall have.
    pub format: Option<ResponseFormat>,
    /// The day that the model is told, if any.
    pub date: Option<Date>,
}

impl Conversation {
    /// Whether Harmony's prompt begins the answer, so that nothing else can follow: the model shall not
    /// reason, and has no tools to call.
    pub(crate) fn begins_answer(&self) -> bool {
        self.effort == Effort::None && self.tools.is_empty() && self.builtin.is_empty()
    }
}

/// One thing that was said. An answer of a model is often several: reasoning, a call, its output, the answer.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Item {
    /// Instructions of the operator. System and developer messages at the beginning make one text.
    Instructions(String),
    /// A message of the user.
    User {
        /// Name of the user, if there are several.
        name: Option<String>,
        /// Text of the message.
        text: String,
    },
    /// Reasoning of the model, which users do not see as part of the answer.
    Reasoning(String),
    /// The model's words to the user before it calls a tool.
    Preamble(String),
    /// The model calls a tool.
    Call(Call),
    /// The output of a tool.
    Output(Output),
    /// The model's answer.
    Answer(String),
}

/// A call of a tool.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Call {
    /// Identifier that the output refers to.
    pub id: String,
    /// Name of the function, or of a builtin tool with its function, such as `browser.search`.
    pub name: String,
    /// Arguments as the model wrote them: JSON for a function, code for `python`.
    pub arguments: String,
    /// Whether the tool is one of the model's own.
    #[serde(default)]
    pub is_builtin: bool,
}

/// Output of a tool.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Output {
    /// Identifier of the call.
    pub id: String,
    /// Name of the function that was called.
    pub name: String,
    /// Text that the tool gave back.
    pub text: String,
    /// Whether the tool is one of the model's own.
    #[serde(default)]
    pub is_builtin: bool,
}

/// A function that a model may call.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Tool {
    /// Name of the function.
    pub name: String,
    /// The purpose of the function.
    pub description: String,
    /// JSON schema of an object, whose members are the arguments; `None` for a function without any.
    pub parameters: Option<Value>,
    /// Whether calls follow the schema to the letter. Otherwise parts that no grammar can hold a call to are
    /// passed over.
    #[serde(default)]
    pub strict: bool,
}

/// A tool that a model was trained with.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum BuiltinTool {
    /// Searches, opens and searches pages.
    Browser,
    /// Runs Python.
    Python,
}

/// How long a model shall reason.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Effort {
    /// The model shall not reason.
    None,
    /// Little.
    Low,
    /// As usual.
    #[default]
    Medium,
    /// Long.
    High,
}

impl Effort {
    /// Name of the effort, as APIs have it.
    pub fn name(self) -> &'static str {
        match self {
            Effort::None => "none",
            Effort::Low => "low",
            Effort::Medium => "medium",
            Effort::High => "high",
        }
    }

    /// Effort by its name. Names of APIs for less than `low` or more than `high` mean these.
    pub fn named(name: &str) -> Option<Effort> {
        match name {
            "none" => Some(Effort::None),
            "minimal" | "low" => Some(Effort::Low),
            "medium" => Some(Effort::Medium),
            "high" | "xhigh" | "max" => Some(Effort::High),
            _ => None,
        }
    }
}

impl FromStr for Effort {
    type Err = String;

    fn from_str(name: &str) -> Result<Effort, String> {
        Effort::named(name).ok_or_else(|| "expected none, low, medium or high".to_owned())
    }
}

/// A form of the final answer.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ResponseFormat {
    /// Name of the form.
    pub name: String,
    /// The purpose of the form.
    pub description: Option<String>,
    /// JSON schema of the answer.
    pub schema: Value,
}

/// A day of the Gregorian calendar.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Date {
    year: u16,
    month: u8,
    day: u8,
}

impl Date {
    /// A day, if the calendar has it and its year is from 1 to 9999.
    pub fn new(year: u16, month: u8, day: u8) -> Option<Date> {
        let is_leap = year.is_multiple_of(4) && !year.is_multiple_of(100) || year.is_multiple_of(400);
        let days = match month {
            1 | 3 | 5 | 7 | 8 | 10 | 12 => 31,
            4 | 6 | 9 | 11 => 30,
            2 if is_leap => 29,
            2 => 28,
            _ => return None,
        };
        ((1..=9999).contains(&year) && (1..=days).contains(&day)).then_some(Date { year, month, day })
    }

    /// A day written `YYYY-MM-DD`.
    pub fn parse(text: &str) -> Option<Date> {
        let is_plain = |part: &&str| part.bytes().all(|b| b.is_ascii_digit());
        let parts: Vec<&str> = text.split('-').filter(is_plain).collect();
        let [year, month, day] = parts[..] else { return None };
        let has_width = [year.len(), month.len(), day.len()] == [4, 2, 2] && text.len() == 10;
        has_width.then_some(())?;
        Date::new(year.parse().ok()?, month.parse().ok()?, day.parse().ok()?)
    }

    /// The day that is `days` after 1970-01-01.
    pub fn from_unix_days(days: u32) -> Option<Date> {
        // Years begin in March here, so that the day of a leap year is the last.
        let days = i64::from(days) + 719_468;
        let (era, day_of_era) = (days / 146_097, days % 146_097);
        let year_of_era = (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
        let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
        let month = (5 * day_of_year + 2) / 153;
        let day = day_of_year - (153 * month + 2) / 5 + 1;
        let (month, wraps) = if month < 10 { (month + 3, 0) } else { (month - 9, 1) };
        Date::new(
            u16::try_from(era * 400 + year_of_era + wraps).ok()?,
            month.try_into().ok()?,
            day.try_into().ok()?,
        )
    }

    /// Year, month from 1 and day from 1.
    pub fn parts(self) -> (u16, u8, u8) {
        (self.year, self.month, self.day)
    }

    /// Days since the first of January of the year, from 0.
    fn day_of_year(self) -> u32 {
        let before = |month| (28..=31).rev().find(|day| Date::new(self.year, month, *day).is_some());
        (1..self.month).filter_map(before).map(u32::from).sum::<u32>() + u32::from(self.day) - 1
    }

    /// The day of the week, from Sunday as 0.
    fn weekday(self) -> u32 {
        let years = u32::from(self.year) - 1;
        (years * 365 + years / 4 - years / 100 + years / 400 + self.day_of_year() + 1) % 7
    }

    /// The day in the form of C's `strftime`, at midnight and in no time zone. As in the GNU library, a field
    /// may have a flag (`%-d`), and what is no field stays as it is.
    pub fn format(self, format: &str) -> String {
        let (mut text, mut rest) = (String::new(), format);
        while let Some(start) = rest.find('%') {
            text += &rest[..start];
            let field = &rest[start + 1..];
            let name = field.trim_start_matches(['-', '_', '0', '^', '#']);
            let flags = &field[..field.len() - name.len()];
            let Some(name) = name.chars().next() else {
                return text + &rest[start..];
            };
            let length = 1 + flags.len() + name.len_utf8();
            match self.field(name) {
                Some(value) => text += &flagged(value, flags, name),
                None => text += &rest[start..start + length],
            }
            rest = &rest[start + length..];
        }
        text + rest
    }

    /// A field of `strftime`, if there is one of the name.
    fn field(self, name: char) -> Option<String> {
        let weekday = self.weekday();
        let (day, month) = (DAYS[weekday as usize], MONTHS[usize::from(self.month) - 1]);
        // Weeks that begin on Sunday, or on Monday.
        let week = |first: u32| (self.day_of_year() + 7 - (weekday + 7 - first) % 7) / 7;
        Some(match name {
            'Y' => format!("{:04}", self.year),
            'C' => format!("{:02}", self.year / 100),
            'y' => format!("{:02}", self.year % 100),
            'm' => format!("{:02}", self.month),
            'd' => format!("{:02}", self.day),
            'e' => format!("{:2}", self.day),
            'j' => format!("{:03}", self.day_of_year() + 1),
            'B' => month.to_owned(),
            'b' | 'h' => month[..3].to_owned(),
            'A' => day.to_owned(),
            'a' => day[..3].to_owned(),
            'u' => (if weekday == 0 { 7 } else { weekday }).to_string(),
            'w' => weekday.to_string(),
            'U' => format!("{:02}", week(0)),
            'W' => format!("{:02}", week(1)),
            'F' => self.format("%Y-%m-%d"),
            'D' | 'x' => self.format("%m/%d/%y"),
            'c' => self.format("%a %b %e %H:%M:%S %Y"),
            'r' => self.format("%I:%M:%S %p"),
            'T' | 'X' => "00:00:00".to_owned(),
            'R' => "00:00".to_owned(),
            'H' | 'M' | 'S' => "00".to_owned(),
            'f' => "000000".to_owned(),
            'k' => " 0".to_owned(),
            'I' | 'l' => "12".to_owned(),
            'p' => "AM".to_owned(),
            'P' => "am".to_owned(),
            'Z' | 'z' => String::new(),
            'n' => "\n".to_owned(),
            't' => "\t".to_owned(),
            '%' => "%".to_owned(),
            _ => return None,
        })
    }
}

/// A field with the flags before its name: without padding, padded in another way, or in capitals.
fn flagged(value: String, flags: &str, name: char) -> String {
    let mut value = value;
    for flag in flags.chars() {
        let digits = value.trim_start_matches(['0', ' ']);
        // A zero keeps one digit.
        let digits = if digits.is_empty() {
            value.get(value.len().saturating_sub(1)..).unwrap_or_default()
        } else {
            digits
        };
        let is_number = value.trim_start().bytes().all(|b| b.is_ascii_digit()) && name != 'Y' && name != 'f';
        value = match flag {
            '-' if is_number => digits.to_owned(),
            '_' if is_number => format!("{digits:>width$}", width = value.len()),
            '0' if is_number => format!("{digits:0>width$}", width = value.len()),
            '^' => value.to_uppercase(),
            '#' if name == 'p' => value.to_lowercase(),
            '#' => value.to_uppercase(),
            _ => value,
        };
    }
    value
}

impl From<Date> for String {
    fn from(date: Date) -> String {
        format!("{:04}-{:02}-{:02}", date.year, date.month, date.day)
    }
}

impl TryFrom<String> for Date {
    type Error = String;

    fn try_from(text: String) -> Result<Date, String> {
        Date::parse(&text).ok_or_else(|| format!("`{text}` is no date, expected YYYY-MM-DD"))
    }
}

const DAYS: [&str; 7] = ["Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday"];

const MONTHS: [&str; 12] = [
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
];

#[cfg(test)]
mod tests {
    use super::Date;

    #[test]
    fn days_follow_each_other() {
        let mut before = Date::from_unix_days(0).unwrap();
        assert_eq!(before.format("%F %a %j"), "1970-01-01 Thu 001");
        let weekdays = ["Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"];
        for days in 1..200_000 {
            let day = Date::from_unix_days(days).unwrap();
            let (year, month, first) = before.parts();
            let next = Date::new(year, month, first + 1)
                .or_else(|| Date::new(year, month + 1, 1))
                .or_else(|| Date::new(year + 1, 1, 1));
            assert_eq!(Some(day), next);
            assert_eq!(day.format("%a"), weekdays[(days as usize + 4) % 7]);
            assert_eq!(Date::parse(&day.format("%Y-%m-%d")), Some(day));
            before = day;
        }
    }

    #[test]
    fn dates_have_their_forms() {
        let day = Date::parse("2024-02-29").unwrap();
        assert_eq!(day.format("%d %b %Y, %A %B, 100%%"), "29 Feb 2024, Thursday February, 100%");
        assert_eq!(day.format("%j"), "060");
        assert_eq!(day.format("%Q %"), "%Q %");
        for wrong in
            ["2023-02-29", "2024-13-01", "2024-00-01", "24-01-01", "2024-1-01", "2024-01-01x", "+024-01-01"]
        {
            assert_eq!(Date::parse(wrong), None, "{wrong}");
        }
    }
}
