//! Styles for Markdown that comes piece by piece. No character of it is lost: styles go around the marks.

/// Begins bold text.
const BOLD: &str = "\u{1b}[1m";
/// Begins code.
const CODE: &str = "\u{1b}[36m";
/// Dims what follows.
pub(super) const DIM: &str = "\u{1b}[2m";
/// Ends all styles.
pub(super) const NORMAL: &str = "\u{1b}[0m";
/// Begins and ends a block of code, at the beginning of a line.
const FENCE: &str = "```";
/// Levels of headings.
const HEADINGS: usize = 6;

/// Puts styles into a text of Markdown: headings, bold text, code within lines and in blocks.
#[derive(Debug)]
pub(super) struct Markdown {
    /// Characters of a mark that may go on.
    pending: String,
    /// The character before `pending`.
    before: char,
    /// Whether nothing but `pending` came since the end of a line.
    at_start: bool,
    /// Whether the text is within a block of code.
    in_block: bool,
    /// Whether the line is a fence.
    is_fence: bool,
    is_bold: bool,
    is_code: bool,
}

impl Markdown {
    /// A text that begins.
    pub(super) fn new() -> Markdown {
        Markdown {
            pending: String::new(),
            before: '\n',
            at_start: true,
            in_block: false,
            is_fence: false,
            is_bold: false,
            is_code: false,
        }
    }

    /// More of the text, with styles. A possible beginning of a mark comes later.
    pub(super) fn push(&mut self, text: &str) -> String {
        let mut out = String::new();
        text.chars().for_each(|c| self.add(c, &mut out));
        out
    }

    /// The rest, and the end of all styles.
    pub(super) fn finish(&mut self) -> String {
        let mut out = std::mem::take(&mut self.pending);
        if self.is_bold || self.is_code || self.in_block || self.is_fence {
            out.push_str(NORMAL);
        }
        *self = Markdown::new();
        out
    }

    fn add(&mut self, c: char, out: &mut String) {
        let is_mark = match self.pending.chars().next() {
            // A line that begins with these may be a heading or a fence.
            None if self.at_start && !self.in_block => matches!(c, '#' | '`' | '*'),
            None if self.at_start => c == '`',
            None => c == '*' && !self.in_block && !self.is_code && !self.is_fence,
            Some('#') => c == '#' && self.pending.len() < HEADINGS,
            Some('`') => c == '`' && self.pending.len() < FENCE.len(),
            Some(_) => c == '*' && self.pending.len() < 2,
        };
        if is_mark {
            return self.pending.push(c);
        }
        self.mark(c, out);
        self.plain(c, out);
    }

    /// Gives out the mark that has ended before `next`.
    fn mark(&mut self, next: char, out: &mut String) {
        let mark = std::mem::take(&mut self.pending);
        if mark.is_empty() {
            return;
        }
        if mark == FENCE && self.at_start {
            self.is_fence = true;
            out.push_str(NORMAL);
            out.push_str(DIM);
            out.push_str(&mark);
        } else if mark.starts_with('#') && next == ' ' {
            self.is_bold = true;
            out.push_str(BOLD);
            out.push_str(&mark);
        } else if mark == "**" && self.is_bold && !self.before.is_whitespace() {
            self.is_bold = false;
            out.push_str(&mark);
            out.push_str(NORMAL);
        } else if mark == "**" && !self.is_bold && !self.before.is_alphanumeric() && !next.is_whitespace() {
            self.is_bold = true;
            out.push_str(BOLD);
            out.push_str(&mark);
        } else if mark.starts_with('`') && !self.in_block {
            mark.chars().for_each(|c| self.tick(c, out));
        } else {
            out.push_str(&mark);
        }
        self.before = mark.chars().last().unwrap_or(self.before);
        self.at_start = false;
    }

    fn plain(&mut self, c: char, out: &mut String) {
        if c == '\n' {
            self.end_line(out);
        } else if c == '`' && !self.in_block && !self.is_fence {
            self.tick(c, out);
            self.at_start = false;
        } else {
            out.push(c);
            // A fence may stand behind blanks.
            self.at_start &= c == ' ';
        }
        self.before = c;
    }

    fn tick(&mut self, c: char, out: &mut String) {
        self.is_code = !self.is_code;
        if self.is_code {
            out.push_str(CODE);
        }
        out.push(c);
        if !self.is_code {
            out.push_str(NORMAL);
            if self.is_bold {
                out.push_str(BOLD);
            }
        }
    }

    fn end_line(&mut self, out: &mut String) {
        if self.is_bold || self.is_code || self.is_fence {
            out.push_str(NORMAL);
        }
        out.push('\n');
        if self.is_fence {
            self.in_block = !self.in_block;
            if self.in_block {
                out.push_str(CODE);
            }
        }
        (self.is_bold, self.is_code, self.is_fence, self.at_start) = (false, false, false, true);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The text with styles as letters: B, C, D begin, N ends. Pieces of every length give the same.
    fn styled(text: &str) -> String {
        let of = |length: usize| {
            let mut markdown = Markdown::new();
            let chars: Vec<char> = text.chars().collect();
            let mut out: String =
                chars.chunks(length).map(|piece| markdown.push(&piece.iter().collect::<String>())).collect();
            out.push_str(&markdown.finish());
            out
        };
        let whole = of(usize::MAX);
        (1..6).for_each(|length| assert_eq!(of(length), whole, "{text}"));
        let letters = [(BOLD, "<B>"), (CODE, "<C>"), (DIM, "<D>"), (NORMAL, "<N>")];
        letters.iter().fold(whole, |text, (style, letter)| text.replace(style, letter))
    }

    #[test]
    fn marks_get_styles() {
        assert_eq!(styled("# Title\nText"), "<B># Title<N>\nText");
        assert_eq!(styled("a **bold** word"), "a <B>**bold**<N> word");
        assert_eq!(styled("call `f(x)` now"), "call <C>`f(x)`<N> now");
        assert_eq!(
            styled("```rust\nlet a = b ** c;\n```\nend"),
            "<N><D>```rust<N>\n<C>let a = b ** c;\n<N><D>```<N>\nend"
        );
        assert_eq!(styled("**a `b` c**\n"), "<B>**a <C>`b`<N><B> c**<N>\n");
    }

    #[test]
    fn what_is_no_mark_stays_as_it_is() {
        for text in ["2**3 = 8", "a * b ** c", "#tag", "* item\n- item\n", "####### seven", "5 #6"] {
            assert_eq!(styled(text), text);
        }
    }

    #[test]
    fn nothing_is_lost_and_styles_end() {
        for text in ["**open", "`open", "```\nopen", "``", "*", "# ", "a\n#", "```", "~ é `ü", "***x***"] {
            let shown = styled(text);
            let plain =
                ["<B>", "<C>", "<D>", "<N>"].iter().fold(shown.clone(), |text, l| text.replace(l, ""));
            assert_eq!(plain, text);
            let last = shown.rfind('<').map_or("", |at| &shown[at..at + 3]);
            assert!(last.is_empty() || last == "<N>", "{text}: {shown}");
        }
    }
}
