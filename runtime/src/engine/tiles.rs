//! Which tiles of the unembedding a step needs, where forms leave few tokens.

use crate::sampler::TokenMask;
use kernmill_plan::format::TILE_ROWS;

/// Where more than one tile of so many is needed, all are computed: whole runs of them come faster from
/// memory.
const FEW: usize = 2;

/// Tiles of 16 tokens whose logits a step needs. The list is used again, so that a step allocates nothing.
pub(super) struct LogitTiles {
    /// Ascending.
    list: Vec<u32>,
    /// All tiles are needed, or so many that all are computed.
    all: bool,
}

impl LogitTiles {
    /// Room for the tiles of so many tokens.
    pub(super) fn new(vocab: u32) -> LogitTiles {
        LogitTiles { list: Vec::with_capacity(tiles(vocab)), all: true }
    }

    /// Takes the tiles that the masks of a batch's wanted rows need, entry by entry; an entry without masks
    /// needs all.
    pub(super) fn take<'m, E>(&mut self, entries: impl Fn() -> E, vocab: u32)
    where
        E: Iterator<Item = &'m [&'m TokenMask]>,
    {
        self.list.clear();
        self.all = entries().any(<[_]>::is_empty);
        if self.all {
            return;
        }
        let masks = || entries().flatten();
        let word = |at: usize| masks().filter_map(|mask| mask.words().get(at)).fold(0, |a, b| a | b);
        let (most, per_word) = (tiles(vocab) / FEW, u64::BITS as usize / TILE_ROWS);
        for at in 0..(vocab as usize).div_ceil(u64::BITS as usize) {
            let word = word(at);
            let tiles = (0..per_word).filter(|tile| word >> (tile * TILE_ROWS) as u32 & 0xffff != 0);
            self.list.extend(tiles.map(|tile| (at * per_word + tile) as u32));
            if self.list.len() > most {
                self.all = true;
                return;
            }
        }
        // A mask may have bits behind the vocabulary.
        self.list.truncate(self.list.partition_point(|tile| (*tile as usize) < tiles(vocab)));
    }

    /// The tiles, if not all are to be computed.
    pub(super) fn list(&self) -> Option<&[u32]> {
        (!self.all).then_some(&self.list)
    }
}

fn tiles(vocab: u32) -> usize {
    (vocab as usize).div_ceil(TILE_ROWS)
}
