//! Texts that remember which of their characters come from a conversation.
//!
//! Every character of a conversation's text, spaces apart, is moved to a plane of Unicode that is private. A
//! template may join, cut and repeat such texts as it likes: what came from the conversation can be told from
//! what the template wrote.

/// Added to a character of the basic plane: planes 15 and 16 are private.
const TAINT: u32 = 0xF_0000;

/// Stands before a character that was in plane 15 itself, which is moved to plane 16.
const FROM_PLANE_15: char = '\u{10FFFE}';

/// Stands before a character that was in plane 16.
const FROM_PLANE_16: char = '\u{10FFFF}';

/// Whether a text has characters that are private here.
pub(super) fn is_private(text: &str) -> bool {
    text.chars().any(|c| u32::from(c) >= TAINT)
}

/// Moves a text's characters. Spaces stay, because templates strip and split at them, as do characters that
/// are in no plane for writing of their own, such as emoji.
pub(super) fn taint(text: &str) -> String {
    let mut tainted = String::with_capacity(text.len() * 4);
    text.chars().for_each(|c| push(c, &mut tainted));
    tainted
}

fn push(c: char, text: &mut String) {
    let code = u32::from(c);
    match code >> 16 {
        0 if !c.is_whitespace() => text.extend(char::from_u32(TAINT + code)),
        0xF => {
            text.push(FROM_PLANE_15);
            text.extend(char::from_u32(0x10_0000 + (code & 0xFFFF)));
        }
        0x10 => {
            text.push(FROM_PLANE_16);
            text.push(c);
        }
        _ => text.push(c),
    }
}

/// Characters as they were, each with whether the template wrote it.
pub(super) fn untaint(text: &str) -> Vec<(char, bool)> {
    let mut plain = Vec::with_capacity(text.len());
    let mut rest = text.chars();
    while let Some(c) = rest.next() {
        let marked = |next: Option<char>, plane: u32| {
            let low = u32::from(next.unwrap_or(char::REPLACEMENT_CHARACTER)) & 0xFFFF;
            (char::from_u32(plane + low).unwrap_or(char::REPLACEMENT_CHARACTER), false)
        };
        plain.push(match (c, u32::from(c)) {
            (FROM_PLANE_15, _) => marked(rest.next(), 0xF_0000),
            (FROM_PLANE_16, _) => marked(rest.next(), 0x10_0000),
            (_, code) if code >= TAINT => {
                (char::from_u32(code & 0xFFFF).unwrap_or(char::REPLACEMENT_CHARACTER), false)
            }
            _ => (c, true),
        });
    }
    plain
}

/// A text as it was.
pub(super) fn plain(text: &str) -> String {
    untaint(text).into_iter().map(|(c, _)| c).collect()
}

#[cfg(test)]
mod tests {
    use super::{plain, taint, untaint};

    #[test]
    fn every_character_comes_back() {
        let all: String = (0..=0x10_FFFF).filter_map(char::from_u32).collect();
        assert_eq!(plain(&taint(&all)), all);
        assert_eq!(plain("a<b"), "a<b");
    }

    #[test]
    fn what_the_template_wrote_is_known() {
        let text = format!("<{}>", taint("<a \u{f0041}>"));
        let marks: Vec<(char, bool)> = untaint(&text);
        let theirs = [('<', false), ('a', false), (' ', true), ('\u{f0041}', false), ('>', false)];
        assert_eq!(marks, [&[('<', true)][..], &theirs, &[('>', true)]].concat());
    }
}
