//! Headers of generated messages, whatever they look like.

use super::message::Channel;
use crate::event::{Anomalies, Anomaly, AnswerPart};

/// Bytes of the longest header. A longer one is taken for a text without header.
const HEADER_BYTES: usize = 512;

/// A header so far.
#[derive(Clone, Debug, Default)]
pub(super) struct PartialHeader {
    /// Whether a start token came before: an author follows. Otherwise the author may be known.
    pub has_start: bool,
    /// Text before a channel.
    author: Vec<u8>,
    /// Texts after channel tokens.
    channels: Vec<Vec<u8>>,
    /// Text after the constrain token.
    constraint: Option<Vec<u8>>,
}

/// The fields of a header.
#[derive(Debug)]
pub(super) struct HeaderFields {
    /// The kind of message.
    pub part: AnswerPart,
    /// Text at the end that is no part of a header.
    pub rest: String,
}

/// Content types, which may stand at the end of a header.
const TYPES: [&str; 4] = ["json", "code", "text", "plain"];

/// Authors that may stand at the beginning of a header.
const AUTHORS: [&str; 5] = ["assistant", "user", "system", "developer", "tool"];

impl PartialHeader {
    pub fn after_start() -> PartialHeader {
        PartialHeader { has_start: true, ..PartialHeader::default() }
    }

    pub fn is_empty(&self) -> bool {
        self.author.is_empty() && self.channels.is_empty() && self.constraint.is_none()
    }

    pub fn push(&mut self, bytes: &[u8]) {
        let open = self.constraint.as_mut().or(self.channels.last_mut()).unwrap_or(&mut self.author);
        open.extend_from_slice(bytes);
    }

    pub fn channel(&mut self) {
        self.constraint = None;
        self.channels.push(Vec::new());
    }

    pub fn constrain(&mut self) {
        self.constraint.get_or_insert_default();
    }

    /// Whether the header is one no more: its text is a content. That of an author alone is seen at once, so
    /// that a text without header need not wait for its end.
    pub fn is_text(&self) -> bool {
        let open = self.constraint.as_ref().or(self.channels.last()).unwrap_or(&self.author);
        if is_unfinished(open) {
            return false;
        }
        let bytes = self.author.len() + self.channels.iter().map(|text| text.len() + 1).sum::<usize>();
        if bytes + self.constraint.as_ref().map_or(0, Vec::len) > HEADER_BYTES {
            return true;
        }
        if !self.channels.is_empty() || self.constraint.is_some() {
            return false;
        }
        let author = String::from_utf8_lossy(&self.author);
        let author = author.trim_start();
        if self.has_start {
            // The first word names somebody.
            let end = author.find(char::is_whitespace).unwrap_or(author.len());
            return !begins_recipient(author[end..].trim_start());
        }
        match author.strip_prefix("assistant") {
            Some("") => false,
            Some(rest) => !rest.starts_with(char::is_whitespace) || !begins_recipient(rest.trim_start()),
            None => !"assistant".starts_with(author) && !begins_recipient(author),
        }
    }

    /// The fields of a header that a message token ended.
    pub fn read(&self, declared: &[String], anomalies: &mut Anomalies) -> AnswerPart {
        let said = self.said(declared, true, anomalies);
        if !said.rest.is_empty() {
            anomalies.add(Anomaly::StrayWords);
        }
        said.part
    }

    /// The fields of a header that another token ended: text that does not belong to a header is the content.
    pub fn recover(&self, declared: &[String], anomalies: &mut Anomalies) -> HeaderFields {
        self.said(declared, false, anomalies)
    }

    fn said(&self, declared: &[String], is_whole: bool, anomalies: &mut Anomalies) -> HeaderFields {
        let author = String::from_utf8_lossy(&self.author);
        let (mut recipient, mut rests) = (None, Vec::new());
        let mut read = |text: &str| {
            let (found, rest) = words(text, is_whole, is_whole || recipient.is_some());
            recipient = found.or(recipient.take());
            if !rest.trim().is_empty() {
                rests.push(rest);
            }
        };
        read(self.after_author(&author, anomalies));
        let mut channel = None;
        for text in &self.channels {
            let text = String::from_utf8_lossy(text);
            let (found, rest) = named_channel(&text);
            channel = Some(found);
            read(rest);
        }
        if let Some(text) = &self.constraint {
            read(&String::from_utf8_lossy(text));
        }
        if self.channels.len() > 1 {
            anomalies.add(Anomaly::SeveralChannels);
        }
        match channel {
            None => anomalies.add(Anomaly::NoChannel),
            Some(None) => anomalies.add(Anomaly::UnknownChannel),
            Some(_) => {}
        }
        let part = match recipient.and_then(|name| tool(name, declared, anomalies)) {
            Some(call) => call,
            None => match channel.map(|found| found.unwrap_or(Channel::Analysis)) {
                None | Some(Channel::Final) => AnswerPart::Answer,
                Some(Channel::Analysis) => AnswerPart::Reasoning,
                Some(Channel::Commentary) => AnswerPart::Preamble,
            },
        };
        HeaderFields { part, rest: rests.concat() }
    }

    /// The text after the author.
    fn after_author<'a>(&self, text: &'a str, anomalies: &mut Anomalies) -> &'a str {
        let trimmed = text.trim_start();
        let end = trimmed.find(char::is_whitespace).unwrap_or(trimmed.len());
        let (word, rest) = trimmed.split_at(end);
        let name = word.split(':').next().unwrap_or("");
        let is_author = AUTHORS.contains(&name) || name.starts_with("functions.");
        match (self.has_start, is_author) {
            (true, true) => {
                if name != "assistant" {
                    anomalies.add(Anomaly::OtherAuthor);
                }
                rest
            }
            // A word before a header is an author that does not exist; before anything else it is text.
            (true, false) if !name.starts_with("to=") => {
                anomalies.add(Anomaly::OtherAuthor);
                if self.channels.is_empty() && !rest.trim_start().starts_with("to=") { text } else { rest }
            }
            (false, true) if name == "assistant" => rest,
            _ => text,
        }
    }
}

/// Whether a text is, or may become, `to=` and a name.
fn begins_recipient(text: &str) -> bool {
    "to=".starts_with(text) || text.starts_with("to=")
}

/// Whether the last character of these bytes lacks some.
fn is_unfinished(bytes: &[u8]) -> bool {
    let end = bytes.utf8_chunks().last().map_or(&[][..], |chunk| chunk.invalid());
    std::str::from_utf8(end).is_err_and(|error| error.error_len().is_none())
}

/// The recipient among the words of a header, and what follows the header's words. Where the header is
/// `is_whole`, recipients are looked for after other words too. Types are words of a header if `has_types`,
/// and after a recipient.
fn words(text: &str, is_whole: bool, has_types: bool) -> (Option<String>, String) {
    let mut recipient = None;
    let mut rest = text;
    loop {
        let here = rest.trim_start();
        let end = here.find(char::is_whitespace).unwrap_or(here.len());
        if let Some(name) = here[..end].strip_prefix("to=") {
            recipient = Some(name.to_owned());
            rest = &here[end..];
            continue;
        }
        let of_type = TYPES.iter().find_map(|word| here.strip_prefix(word));
        let of_type = of_type.filter(|_| has_types || recipient.is_some());
        match of_type.filter(|after| !after.starts_with(|c: char| c.is_alphanumeric() || c == '_')) {
            Some(after) => rest = after,
            None => break,
        }
    }
    if is_whole {
        let later = rest.split_whitespace().filter_map(|word| word.strip_prefix("to=")).next_back();
        recipient = later.map(str::to_owned).or(recipient);
    }
    (recipient, rest.to_owned())
}

/// The channel that a text begins with, and what follows its name; the nearest if the name has too little or
/// too much.
fn named_channel(text: &str) -> (Option<Channel>, &str) {
    let text = text.trim_start();
    let all = [Channel::Analysis, Channel::Commentary, Channel::Final];
    if let Some(channel) = all.into_iter().find(|channel| text.starts_with(channel.name())) {
        return (Some(channel), &text[channel.name().len()..]);
    }
    let (word, rest) = text.split_at(text.find(char::is_whitespace).unwrap_or(text.len()));
    let near = |channel: &Channel| !word.is_empty() && channel.name().starts_with(word);
    let channel = all.into_iter().find(near);
    // A recipient in the place of a channel is one nevertheless.
    if channel.is_none() && word.starts_with("to=") { (None, text) } else { (channel, rest) }
}

/// The tool that a recipient is; `None` for everybody else.
fn tool(recipient: String, declared: &[String], anomalies: &mut Anomalies) -> Option<AnswerPart> {
    if matches!(recipient.as_str(), "" | "all") || AUTHORS.contains(&recipient.as_str()) {
        return None;
    }
    let is_builtin = ["browser", "python", "container"].iter().any(|tool| {
        recipient.strip_prefix(tool).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
    });
    let bare = recipient.strip_prefix("functions.");
    let name = bare.unwrap_or(&recipient).to_owned();
    let is_declared = declared.contains(&name);
    if is_declared && bare.is_none() {
        anomalies.add(Anomaly::BareFunction);
    }
    if !is_declared && !is_builtin {
        anomalies.add(Anomaly::UnknownTool);
    }
    Some(AnswerPart::Call { name, is_builtin: is_builtin && !is_declared })
}
