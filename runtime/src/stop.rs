//! Stop strings in a stream of text.

/// Watches a stream for stop strings; text that may be the start of one is held back.
#[derive(Clone, Debug)]
pub struct StopMatcher {
    stops: Vec<String>,
    held: String,
}

/// What a piece of text leads to.
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
        let stops = stops.iter().filter(|stop| !stop.is_empty()).cloned().collect();
        StopMatcher { stops, held: String::new() }
    }

    /// Takes the next piece. After a stop, the matcher is spent.
    pub fn push(&mut self, piece: &str) -> Released {
        self.held.push_str(piece);
        let found = self.stops.iter().filter_map(|stop| Some((self.held.find(stop.as_str())?, stop))).min();
        if let Some((at, stop)) = found {
            let stop = Some(stop.clone());
            self.held.truncate(at);
            return Released { text: std::mem::take(&mut self.held), stop };
        }
        let safe = self.held.len() - self.longest_start();
        let rest = self.held.split_off(safe);
        Released { text: std::mem::replace(&mut self.held, rest), stop: None }
    }

    /// What is still held back when the stream ends.
    pub fn finish(&mut self) -> String {
        std::mem::take(&mut self.held)
    }

    /// Bytes of the longest end of the held text that starts a stop string.
    fn longest_start(&self) -> usize {
        let ends = self.held.char_indices().map(|(at, _)| &self.held[at..]);
        ends.filter(|end| self.stops.iter().any(|stop| stop.starts_with(end)))
            .map(str::len)
            .max()
            .unwrap_or(0)
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
    fn only_possible_starts_are_held_back() {
        let mut matcher = StopMatcher::new(&["stop".to_owned()]);
        assert_eq!(matcher.push("a st"), Released { text: "a ".to_owned(), stop: None });
        assert_eq!(matcher.push("art"), Released { text: "start".to_owned(), stop: None });
    }
}
