//! Sets of token ids.

/// Which tokens may come next: a bit for each of the model's logits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mask {
    words: Vec<u64>,
    width: usize,
}

impl Mask {
    /// A mask of `width` bits that allows nothing.
    pub(crate) fn new(width: usize) -> Mask {
        Mask { words: vec![0; width.div_ceil(64)], width }
    }

    /// Takes over bits, 32 to a word; those past the width are left out.
    pub(crate) fn assign(&mut self, halves: &[u32]) {
        for (word, pair) in self.words.iter_mut().zip(halves.chunks(2)) {
            *word = u64::from(pair[0]) | pair.get(1).map_or(0, |high| u64::from(*high) << 32);
        }
        if !self.width.is_multiple_of(64) {
            *self.words.last_mut().expect("a width that is not 0 has a word") &= (1 << (self.width % 64)) - 1;
        }
    }

    /// Allows nothing any more.
    pub(crate) fn clear(&mut self) {
        self.words.fill(0);
    }

    /// Allows a token below the width.
    pub(crate) fn allow(&mut self, id: u32) {
        self.words[id as usize / 64] |= 1 << (id % 64);
    }

    /// Whether a token may come next. No id from the width on may.
    pub fn allows(&self, id: u32) -> bool {
        self.words.get(id as usize / 64).is_some_and(|word| word >> (id % 64) & 1 == 1)
    }

    /// The bits, 64 to a word, the lowest id in the lowest bit. Bits from the width on are 0.
    pub fn words(&self) -> &[u64] {
        &self.words
    }

    /// Number of the model's logits.
    pub fn width(&self) -> usize {
        self.width
    }

    /// The tokens that may come next, ascending.
    pub fn ids(&self) -> impl Iterator<Item = u32> + '_ {
        (0..).zip(&self.words).flat_map(|(index, word)| {
            (0..64).filter(move |bit| word >> bit & 1 == 1).map(move |bit| index * 64 + bit)
        })
    }
}
