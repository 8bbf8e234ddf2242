//! Bytes to text, piece by piece.

/// Turns bytes that come in pieces into pieces of valid text. An unfinished character waits for the rest of
/// its bytes; bytes that are no character become U+FFFD, as in `String::from_utf8_lossy` of the whole.
#[derive(Clone, Debug, Default)]
pub struct Utf8Stream {
    /// Bytes of an unfinished character, at most 3.
    held: Vec<u8>,
}

impl Utf8Stream {
    /// Appends the text that `bytes` complete to `text`.
    pub fn push(&mut self, bytes: &[u8], text: &mut String) {
        self.held.extend_from_slice(bytes);
        let held = std::mem::take(&mut self.held);
        let mut chunks = held.utf8_chunks().peekable();
        while let Some(chunk) = chunks.next() {
            text.push_str(chunk.valid());
            let rest = chunk.invalid();
            if chunks.peek().is_none() && is_unfinished(rest) {
                self.held = rest.to_vec();
            } else if !rest.is_empty() {
                text.push(char::REPLACEMENT_CHARACTER);
            }
        }
    }

    /// Ends the text: an unfinished character becomes U+FFFD.
    pub fn finish(&mut self, text: &mut String) {
        if !std::mem::take(&mut self.held).is_empty() {
            text.push(char::REPLACEMENT_CHARACTER);
        }
    }
}

/// Whether more bytes could make a character of these, which end a text.
fn is_unfinished(bytes: &[u8]) -> bool {
    std::str::from_utf8(bytes).is_err_and(|error| error.error_len().is_none())
}

#[cfg(test)]
mod tests {
    use super::Utf8Stream;

    #[test]
    fn pieces_make_the_lossy_text_of_the_whole() {
        let mut rng = fastrand::Rng::with_seed(1);
        let samples: Vec<u8> = "aé€😀".bytes().chain([0x80, 0xff, 0xc0, 0xed, 0xf4, 0x90]).collect();
        for _ in 0..20_000 {
            let bytes: Vec<u8> =
                (0..rng.usize(0..12)).map(|_| samples[rng.usize(0..samples.len())]).collect();
            let (mut stream, mut text) = (Utf8Stream::default(), String::new());
            let mut rest = &bytes[..];
            while !rest.is_empty() {
                let (piece, others) = rest.split_at(rng.usize(1..=rest.len()));
                stream.push(piece, &mut text);
                rest = others;
            }
            stream.finish(&mut text);
            assert_eq!(text, String::from_utf8_lossy(&bytes), "{bytes:x?}");
        }
    }
}
