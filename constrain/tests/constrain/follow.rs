//! A model that knows nothing follows a constraint, over the vocabulary of GPT-OSS.

use super::o200k::O200k;
use kernmill_constrain::{Constraint, Lexicon, Vocabulary};
use std::sync::{Arc, LazyLock};

/// Logits of GPT-OSS.
pub const WIDTH: usize = 201_088;

/// The vocabulary of GPT-OSS.
pub static VOCABULARY: LazyLock<Arc<O200k>> = LazyLock::new(|| Arc::new(O200k::new()));

/// The end tokens are those of GPT-OSS.
pub static LEXICON: LazyLock<Lexicon> =
    LazyLock::new(|| Lexicon::new(VOCABULARY.clone(), WIDTH, &[200_002, 199_999, 200_012]).unwrap());

/// Texts that bring JSON nearer to its end.
pub const CLOSERS: [&str; 8] = ["\"", "}", "]", "\"}", "\"]", "\",", "}}", "]}"];

/// Ids that bring a text of GPT-OSS nearer to its end.
static CLOSING: LazyLock<Vec<Vec<u32>>> = LazyLock::new(|| {
    let texts = CLOSERS.iter().map(|text| VOCABULARY.encode_ordinary(text).unwrap());
    texts.chain((200_000..200_013).map(|id| vec![id])).collect()
});

/// How many random texts a test makes: `KERNMILL_CONSTRAINED`, or 200.
pub fn texts() -> u64 {
    let given = std::env::var("KERNMILL_CONSTRAINED").ok();
    given.map_or(200, |text| text.parse().expect("KERNMILL_CONSTRAINED is a number"))
}

/// Follows a constraint to its end with tokens from a model of random logits, which likes to come to an end.
/// Every other text takes the tokens that are forced together.
pub fn generate(constraint: Constraint, rng: &mut fastrand::Rng) -> Vec<u32> {
    generate_with(constraint, rng, &CLOSING)
}

/// Follows a constraint to its end, as [`generate`] does, with a model that likes to write the ids of `liked`
/// one after the other.
pub fn generate_with(mut constraint: Constraint, rng: &mut fastrand::Rng, liked: &[Vec<u32>]) -> Vec<u32> {
    let takes_forced = rng.bool();
    let (mut ids, mut next) = (Vec::new(), Vec::new());
    while !constraint.is_done() {
        assert!(ids.len() < 5000, "no end: {ids:?}");
        let forced = if takes_forced { constraint.forced() } else { Vec::new() };
        if let Some(first) = forced.first() {
            let mask = constraint.mask().unwrap();
            assert!(mask.allows(*first) && mask.ids().count() == 1, "{forced:?} after {ids:?}");
            for id in forced {
                constraint.accept(id).unwrap();
                ids.push(id);
            }
            next.clear();
            continue;
        }
        if next.is_empty() && rng.u8(..3) == 0 {
            next = liked[rng.usize(..liked.len())].iter().rev().copied().collect();
        }
        let width = constraint.width() as u32;
        let mask = constraint.mask().unwrap();
        let random = std::iter::repeat_with(|| rng.u32(..width)).take(50).collect::<Vec<_>>();
        let id = if let Some(id) = next.pop().filter(|id| mask.allows(*id)) {
            id
        } else if let Some(id) = random.into_iter().find(|id| mask.allows(*id)) {
            next.clear();
            id
        } else {
            next.clear();
            let allowed: Vec<u32> = mask.ids().collect();
            allowed[rng.usize(..allowed.len())]
        };
        constraint.accept(id).unwrap();
        ids.push(id);
    }
    ids
}

/// Text of ids, without a token that ends it.
pub fn text_of(ids: &[u32]) -> String {
    let texts = ids.iter().filter(|id| **id < 199_999);
    String::from_utf8_lossy(&texts.flat_map(|id| VOCABULARY.bytes(*id).unwrap()).collect::<Vec<u8>>())
        .into_owned()
}
