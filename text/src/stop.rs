//! Stop strings in a stream of text.

/// Watches a stream for stop strings; text that may be the start of one is held back.
///
/// The first stop string to be complete ends the text, and of several that end with the same byte the
/// longest. So the result does not depend on how the text is cut into pieces, and a text takes time in
/// proportion to its length.
#[derive(Clone, Debug)]
pub struct StopMatcher {
    stops: Vec<Stop>,
    held: String,
    spent: bool,
}

/// The effect of a piece of text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Released {
    /// Text that is certainly not part of a stop string.
    pub text: String,
    /// The stop string that was completed; `text` ends before it.
    pub stop: Option<String>,
}

impl StopMatcher {
    /// A matcher of these strings; empty ones are ignored.
    pub fn new(stops: &[String]) -> StopMatcher {
        let stops = stops.iter().filter(|stop| !stop.is_empty()).map(|stop| Stop::new(stop)).collect();
        StopMatcher { stops, held: String::new(), spent: false }
    }

    /// Takes the next piece. After a stop, the matcher is spent.
    pub fn push(&mut self, piece: &str) -> Released {
        let before = self.held.len();
        self.held.push_str(piece);
        for (index, byte) in piece.bytes().enumerate() {
            let end = before + index + 1;
            self.stops.iter_mut().for_each(|stop| stop.step(byte));
            let whole = self.stops.iter().filter(|stop| stop.matched == stop.text.len());
            if let Some(stop) = whole.max_by_key(|stop| stop.text.len()) {
                self.held.truncate(end - stop.text.len());
                self.spent = true;
                return Released { text: std::mem::take(&mut self.held), stop: Some(stop.text.clone()) };
            }
        }
        let longest = self.stops.iter().map(|stop| stop.matched).max().unwrap_or(0);
        let rest = self.held.split_off(self.held.len() - longest);
        Released { text: std::mem::replace(&mut self.held, rest), stop: None }
    }

    /// Takes what is still held back when the stream ends. A text that follows is another one.
    pub fn finish(&mut self) -> String {
        self.stops.iter_mut().for_each(|stop| stop.matched = 0);
        std::mem::take(&mut self.held)
    }

    /// Whether a stop string was found.
    pub fn is_spent(&self) -> bool {
        self.spent
    }
}

/// A stop string, and how much of it the text so far ends with.
#[derive(Clone, Debug)]
struct Stop {
    text: String,
    /// By length of a start of the text: bytes of the longest shorter start that it ends with.
    shorter: Vec<usize>,
    matched: usize,
}

impl Stop {
    /// The table of Knuth, Morris and Pratt.
    fn new(text: &str) -> Stop {
        let bytes = text.as_bytes();
        let mut stop = Stop { text: text.to_owned(), shorter: vec![0; bytes.len() + 1], matched: 0 };
        for (index, byte) in bytes.iter().enumerate().skip(1) {
            stop.step(*byte);
            stop.shorter[index + 1] = stop.matched;
        }
        stop.matched = 0;
        stop
    }

    fn step(&mut self, byte: u8) {
        let bytes = self.text.as_bytes();
        while self.matched > 0 && bytes.get(self.matched) != Some(&byte) {
            self.matched = self.shorter[self.matched];
        }
        if bytes.get(self.matched) == Some(&byte) {
            self.matched += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(stops: &[&str], pieces: &[&str]) -> (String, Option<String>) {
        let stops: Vec<String> = stops.iter().map(ToString::to_string).collect();
        let mut matcher = StopMatcher::new(&stops);
        let mut text = String::new();
        for piece in pieces {
            let released = matcher.push(piece);
            text += &released.text;
            if released.stop.is_some() {
                return (text, released.stop);
            }
        }
        text += &matcher.finish();
        (text, None)
    }

    #[test]
    fn stops_across_pieces_are_found_and_not_shown() {
        assert_eq!(run(&["\n\nQ:"], &["a\n", "\n", "Q", ": b"]), ("a".to_owned(), Some("\n\nQ:".to_owned())));
        assert_eq!(run(&["ab", "xabc"], &["xab"]), ("x".to_owned(), Some("ab".to_owned())));
        assert_eq!(run(&["世界"], &["世", "世", "界"]), ("世".to_owned(), Some("世界".to_owned())));
    }

    #[test]
    fn false_starts_are_shown_in_the_end() {
        assert_eq!(run(&["aab", ""], &["a", "a", "a", "c", "aa"]), ("aaacaa".to_owned(), None));
    }

    #[test]
    fn how_the_text_is_cut_into_pieces_does_not_matter() {
        let text = "x aabaabaaab ababab 世世界 <|e<|end|>";
        for stops in
            [&["aaab", "baab"][..], &["ababa", "bab"], &["世界", "界"], &["<|end|>", "|>"], &["none"]]
        {
            let whole = run(stops, &[text]);
            let single: Vec<String> = text.chars().map(String::from).collect();
            assert_eq!(
                run(stops, &single.iter().map(String::as_str).collect::<Vec<_>>()),
                whole,
                "{stops:?}"
            );
        }
        assert_eq!(run(&["<|end|>", "|>"], &[text]).1, Some("<|end|>".to_owned()));
    }

    #[test]
    fn long_texts_and_stops_take_linear_time() {
        let stop = "a".repeat(100_000) + "b";
        let text = "a".repeat(300_000);
        let mut matcher = StopMatcher::new(&[stop]);
        let mut shown = 0;
        for _ in 0..10 {
            shown += matcher.push(&text[..30_000]).text.len();
        }
        assert_eq!((shown, matcher.finish().len()), (200_000, 100_000));
    }

    #[test]
    fn a_stop_string_lies_within_one_text() {
        let mut matcher = StopMatcher::new(&["ab".to_owned()]);
        assert_eq!((matcher.push("a").text, matcher.finish()), (String::new(), "a".to_owned()));
        assert_eq!(matcher.push("b"), Released { text: "b".to_owned(), stop: None });
    }

    #[test]
    fn only_possible_starts_are_held_back() {
        let mut matcher = StopMatcher::new(&["stop".to_owned()]);
        assert_eq!(matcher.push("a st"), Released { text: "a ".to_owned(), stop: None });
        assert_eq!(matcher.push("art"), Released { text: "start".to_owned(), stop: None });
    }
}
