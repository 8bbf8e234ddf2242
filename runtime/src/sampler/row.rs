//! A row of logits as the sampler sees it: the model's own, but for a few tokens that penalties change, and a
//! mask.

/// Tokens that are looked at together.
pub(super) const BLOCK: usize = 64;

/// Which tokens may be chosen: a bit for each token of a vocabulary.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TokenMask {
    words: Vec<u64>,
}

impl TokenMask {
    /// One that allows all of `vocab` tokens, or none.
    pub fn new(vocab: usize, allowed: bool) -> TokenMask {
        TokenMask { words: vec![if allowed { u64::MAX } else { 0 }; vocab.div_ceil(BLOCK)] }
    }

    /// One of bits, 64 to a word, the lowest token in the lowest bit. Tokens past the words are not allowed.
    pub fn from_words(words: Vec<u64>) -> TokenMask {
        TokenMask { words }
    }

    /// Allows a token, or does not. A token past the vocabulary changes nothing.
    pub fn set(&mut self, token: u32, allowed: bool) {
        let (word, bit) = (token as usize / BLOCK, 1 << (token as usize % BLOCK));
        if let Some(word) = self.words.get_mut(word) {
            *word = if allowed { *word | bit } else { *word & !bit };
        }
    }

    /// The bits, 64 to a word, the lowest token in the lowest bit.
    pub(crate) fn words(&self) -> &[u64] {
        &self.words
    }

    /// Whether a token is allowed.
    pub fn allows(&self, token: u32) -> bool {
        let word = self.words.get(token as usize / BLOCK).copied().unwrap_or(0);
        word >> (token as usize % BLOCK) & 1 == 1
    }
}

/// The row that is sampled from.
#[derive(Clone, Copy)]
pub(super) struct Row<'a> {
    logits: &'a [f32],
    /// Tokens with other logits, ascending.
    changed: &'a [(u32, f32)],
    allowed: Option<&'a TokenMask>,
}

impl<'a> Row<'a> {
    pub(super) fn new(
        logits: &'a [f32],
        changed: &'a [(u32, f32)],
        allowed: Option<&'a TokenMask>,
    ) -> Row<'a> {
        Row { logits, changed, allowed }
    }

    /// Tokens of the vocabulary.
    pub(super) fn len(&self) -> usize {
        self.logits.len()
    }

    /// How many blocks there are; the last one may be short.
    pub(super) fn blocks(&self) -> usize {
        self.logits.len().div_ceil(BLOCK)
    }

    /// Logits of a block; minus infinity behind the vocabulary's end, and where the mask forbids a token.
    /// They are the model's own where nothing changes them, else they are put together in `buffer`.
    #[inline(always)]
    pub(super) fn block<'b>(&'b self, block: usize, buffer: &'b mut [f32; BLOCK]) -> &'b [f32; BLOCK] {
        let start = block * BLOCK;
        let whole = self.logits[start..].first_chunk::<BLOCK>();
        match whole.filter(|_| self.changed.is_empty() && self.allowed.is_none()) {
            Some(whole) => whole,
            None => {
                self.put_together(block, buffer);
                buffer
            }
        }
    }

    #[inline(never)]
    fn put_together(&self, block: usize, out: &mut [f32; BLOCK]) {
        let start = block * BLOCK;
        let word = self.allowed.map_or(u64::MAX, |mask| mask.words.get(block).copied().unwrap_or(0));
        if word == 0 {
            return out.fill(f32::NEG_INFINITY);
        }
        let rest = &self.logits[start..];
        let own = rest.len().min(BLOCK);
        out[..own].copy_from_slice(&rest[..own]);
        out[own..].fill(f32::NEG_INFINITY);
        let first = self.changed.partition_point(|(token, _)| (*token as usize) < start);
        let here = self.changed[first..].iter().take_while(|(token, _)| (*token as usize) < start + BLOCK);
        here.for_each(|(token, logit)| out[*token as usize - start] = *logit);
        let forbidden = out.iter_mut().enumerate().filter(|(i, _)| word >> i & 1 == 0);
        forbidden.for_each(|(_, logit)| *logit = f32::NEG_INFINITY);
    }

    /// The first token with this logit, which is the largest of some block.
    pub(super) fn first_of(&self, logit: f32, maxima: &[f32]) -> u32 {
        let mut buffer = [0.0; BLOCK];
        let block = maxima.iter().position(|largest| *largest == logit).unwrap_or(0);
        let values = self.block(block, &mut buffer);
        let place = values.iter().position(|value| *value == logit).unwrap_or(0);
        (block * BLOCK + place) as u32
    }
}
