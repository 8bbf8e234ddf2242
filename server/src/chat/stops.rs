//! Stop strings in the answer alone: reasoning and calls do not end by them.

/// Looks for stop strings in a text that comes in pieces. What may be the beginning of one is held back.
#[derive(Clone, Debug, Default)]
pub struct StopFilter {
    stops: Vec<String>,
    held: String,
    found: Option<String>,
}

impl StopFilter {
    /// A filter of these strings.
    pub fn new(stops: Vec<String>) -> StopFilter {
        StopFilter { stops, held: String::new(), found: None }
    }

    /// Takes a piece; the text that no stop string can begin in, and whether one was found behind it.
    pub fn push(&mut self, piece: &str) -> (String, bool) {
        if self.stops.is_empty() {
            return (piece.to_owned(), false);
        }
        self.held.push_str(piece);
        let found = self.stops.iter().filter_map(|stop| Some((self.held.find(stop.as_str())?, stop))).min();
        if let Some((at, stop)) = found {
            self.found = Some(stop.clone());
            let text = self.held[..at].to_owned();
            self.held.clear();
            return (text, true);
        }
        let keep = self.stops.iter().map(|stop| overlap(&self.held, stop)).max().unwrap_or_default();
        let rest = self.held.split_off(self.held.len() - keep);
        (std::mem::replace(&mut self.held, rest), false)
    }

    /// The stop string that was found.
    pub fn found(&self) -> Option<&str> {
        self.found.as_deref()
    }

    /// What was held back, where no more follows.
    pub fn finish(&mut self) -> String {
        std::mem::take(&mut self.held)
    }
}

/// Bytes at the end of a text that are the beginning of `stop`.
fn overlap(text: &str, stop: &str) -> usize {
    let most = text.len().min(stop.len() - 1);
    (1..=most).rev().find(|length| text.as_bytes().ends_with(&stop.as_bytes()[..*length])).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::StopFilter;

    #[test]
    fn the_text_does_not_depend_on_its_pieces() {
        let mut rng = fastrand::Rng::with_seed(1);
        for _ in 0..2000 {
            let text: String = (0..rng.usize(0..30)).map(|_| rng.choice(['a', 'b', 'ä']).unwrap()).collect();
            let stops: Vec<String> = (0..rng.usize(0..3))
                .map(|_| (0..rng.usize(1..4)).map(|_| rng.choice(['a', 'b', 'ä']).unwrap()).collect())
                .collect();
            let end = stops.iter().filter_map(|stop| text.find(stop.as_str())).min();
            let mut filter = StopFilter::new(stops);
            let (mut shown, mut has_ended) = (String::new(), false);
            let mut rest = text.as_str();
            while !rest.is_empty() && !has_ended {
                let length = rng.usize(1..4).min(rest.chars().count());
                let bytes = rest.chars().take(length).map(char::len_utf8).sum();
                let (piece, left) = rest.split_at(bytes);
                rest = left;
                let (more, ended) = filter.push(piece);
                shown.push_str(&more);
                has_ended = ended;
            }
            if !has_ended {
                shown.push_str(&filter.finish());
            }
            // A longer stop string that begins earlier may end later: the first one that is whole counts.
            match end {
                Some(end) => {
                    assert!(has_ended && text[..].starts_with(&shown) && shown.len() >= end, "{text}")
                }
                None => assert_eq!((shown.as_str(), has_ended), (text.as_str(), false)),
            }
        }
    }
}
