//! Streamed text is the whole text: random sequences of ids of each kind of tokenizer, against texts that are
//! made here from the vocabulary's bytes, and against what the `tokenizers` crate decodes.
//!
//! `KERNMILL_STREAMS` says how many sequences each vocabulary is tried with, `KERNMILL_SEED` where they
//! begin.

mod vocabularies;

use fastrand::Rng;
use kernmill_runtime::Tokenizer;
use kernmill_runtime::tokenizer::TextStream;
use vocabularies::{Piece, Text, Vocabulary};

/// Sequences that the test suite tries of each vocabulary.
const SEQUENCES: u64 = 2000;

fn number(name: &str) -> Option<u64> {
    std::env::var(name).ok().and_then(|text| text.parse().ok())
}

/// Ids by how they are chosen.
struct Ids {
    all: Vec<u32>,
    /// Ids whose bytes are no text by themselves, so that they cut characters.
    cut: Vec<u32>,
    /// Ids of few bytes.
    short: Vec<u32>,
    /// Ids that are shown on request only.
    special: Vec<u32>,
}

impl Ids {
    fn of(vocabulary: &Vocabulary) -> Ids {
        let choose = |wanted: &dyn Fn(&Piece) -> bool| -> Vec<u32> {
            (0u32..).zip(&vocabulary.pieces).filter(|(_, piece)| wanted(piece)).map(|(id, _)| id).collect()
        };
        Ids {
            // The first one past the vocabulary has no text.
            all: (0..=vocabulary.pieces.len() as u32).collect(),
            cut: choose(&|piece| piece.is_byte || std::str::from_utf8(&piece.bytes).is_err()),
            short: choose(&|piece| !piece.is_special && piece.bytes.len() <= 2),
            special: choose(&|piece| piece.is_special),
        }
    }

    /// A sequence: mostly some dozens of ids, sometimes none or hundreds. Some sequences cut many characters,
    /// others none.
    fn sequence(&self, rng: &mut Rng) -> Vec<u32> {
        let longest = if rng.usize(..100) == 0 { 400 } else { 40 };
        let share = rng.usize(..8);
        let mut one = || {
            let from = match rng.usize(..8) {
                n if n < share => &self.cut,
                n if n % 4 == 0 => &self.short,
                _ if rng.usize(..12) == 0 => &self.special,
                _ => &self.all,
            };
            from[rng.usize(..from.len())]
        };
        let ids: Vec<u32> = (0..longest).map(|_| one()).collect();
        ids[..rng.usize(..=longest)].to_vec()
    }
}

/// Compares random sequences, each with special tokens hidden and shown.
fn check(vocabulary: &Vocabulary) {
    let ids = Ids::of(vocabulary);
    assert!(ids.cut.len() > 100, "{} tokens are no whole characters", ids.cut.len());
    assert!(ids.short.len() > 100 && !ids.special.is_empty());
    let (first, count) =
        (number("KERNMILL_SEED").unwrap_or(0), number("KERNMILL_STREAMS").unwrap_or(SEQUENCES));
    let (mut tokens, mut cut, mut by_library, mut continued) = (0, 0, 0, 0);
    for seed in first..first + count {
        let mut rng = Rng::with_seed(seed);
        let sequence = ids.sequence(&mut rng);
        tokens += sequence.len();
        for shows_special in [false, true] {
            let text = vocabulary.text(&sequence, shows_special);
            streams(vocabulary, &sequence, shows_special, &text.shown);
            cut += usize::from(text.shown.contains('\u{fffd}'));
            if text.is_agreed {
                let library = vocabulary.library.decode(&sequence, !shows_special).unwrap();
                assert_eq!(library, text.shown, "seed {seed}, {sequence:?}");
                by_library += 1;
            }
            continued += usize::from(continues(vocabulary, &sequence, shows_special, &mut rng));
        }
        assert_eq!(vocabulary.tokenizer.decode(&sequence).unwrap(), vocabulary.text(&sequence, false).shown);
    }
    let name = vocabulary.name;
    eprintln!(
        "{name}: {count} sequences of {tokens} ids from seed {first} on, each with special tokens hidden and \
         shown: {cut} with broken characters, {by_library} decoded by the library too, {continued} continued \
         a prompt"
    );
    assert!(
        count < 1000
            || cut as u64 * 4 > count && by_library as u64 * 4 > count && continued as u64 * 4 > count
    );
}

fn stream(shows_special: bool) -> TextStream {
    if shows_special { TextStream::new().with_special() } else { TextStream::new() }
}

fn push(stream: &mut TextStream, tokenizer: &Tokenizer, ids: &[u32]) -> String {
    ids.iter().map(|id| stream.push(tokenizer, *id).unwrap()).collect()
}

/// The pieces of a stream are `expected`, and each comes as soon as its bytes are certain.
fn streams(vocabulary: &Vocabulary, ids: &[u32], shows_special: bool, expected: &str) {
    let tokenizer = &vocabulary.tokenizer;
    let (mut stream, mut text) = (stream(shows_special), String::new());
    for (index, id) in ids.iter().enumerate() {
        text += &stream.push(tokenizer, *id).unwrap();
        assert!(expected.starts_with(&text), "{ids:?}: {text:?}");
        // At most 3 bytes of an unfinished character wait.
        if ids.len() <= 40 || index % 50 == 0 {
            let so_far = vocabulary.text(&ids[..=index], shows_special).shown;
            assert!(text.chars().count() + 3 >= so_far.chars().count(), "{ids:?}: {text:?} of {so_far:?}");
        }
    }
    text += &stream.finish(tokenizer).unwrap();
    assert_eq!(text, expected, "{ids:?}");
}

/// A stream that continues a prompt which ends with a whole character gives what comes behind it, the first
/// space included. Whether there is such a prompt.
fn continues(vocabulary: &Vocabulary, ids: &[u32], shows_special: bool, rng: &mut Rng) -> bool {
    let (prompt, rest) = ids.split_at(rng.usize(..=ids.len()));
    let before = vocabulary.text(prompt, shows_special);
    if before.is_unfinished {
        return false;
    }
    let tokenizer = &vocabulary.tokenizer;
    let mut stream = stream(shows_special);
    stream.skip(tokenizer, prompt).unwrap();
    let text = push(&mut stream, tokenizer, rest) + &stream.finish(tokenizer).unwrap();
    let Text { whole, .. } = vocabulary.text(ids, shows_special);
    let expected = match before.whole.is_empty() {
        // Nothing of the prompt was text: decoding takes the first space away as at the beginning.
        true => vocabulary.text(ids, shows_special).shown,
        false => whole[before.whole.len()..].to_owned(),
    };
    assert_eq!(text, expected, "{prompt:?} then {rest:?}");
    true
}

#[test]
fn streams_of_nano_are_its_bytes() {
    check(&vocabularies::nano());
}

#[test]
fn streams_of_o200k_are_its_bytes() {
    check(&vocabularies::o200k());
}

#[test]
fn streams_of_smollm2_are_its_bytes() {
    let Some(path) = crate::smollm2::model("streams::streams_of_smollm2_are_its_bytes") else { return };
    check(&vocabularies::smollm2(&path));
}

#[test]
fn streams_of_sentencepiece_are_its_pieces() {
    check(&vocabularies::sentencepiece(true));
    check(&vocabularies::sentencepiece(false));
}
