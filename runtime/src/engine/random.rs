//! Sequences whose keys and values are random numbers, for measuring: a long context in no time.

use super::shelf::apply;
use super::{Engine, EngineError, SeqId};
use crate::kv::BlockChange;
use fastrand::Rng;
use kernmill_plan::kv::{BLOCK_TOKENS, KvElements, KvGeometry, KvPlane, LayerKind, store_plane};

/// Different blocks; they are written over and over.
const BLOCKS: usize = 8;

impl Engine {
    /// Starts a sequence of `tokens` tokens whose keys and values are random numbers, the same for the same
    /// seed, in the formats of the cache. Nothing is computed: it is for measuring at a depth, and what
    /// follows in the sequence means nothing.
    ///
    /// # Errors
    /// When all sequences are in use, the context is shorter, or there are not enough KV blocks.
    pub fn create_random(&mut self, tokens: u32, seed: u64) -> Result<SeqId, EngineError> {
        let id = self.create()?;
        let filled = self.fill_random(id.number, tokens, seed);
        if filled.is_err() {
            self.drop_sequence(id);
        }
        filled.map(|()| id)
    }

    fn fill_random(&mut self, number: u32, tokens: u32, seed: u64) -> Result<(), EngineError> {
        let mut rng = Rng::with_seed(seed);
        let kinds = [LayerKind::Full, LayerKind::Sliding];
        let blocks = kinds.map(|kind| {
            let geometry = self.model.kv.geometry(kind);
            (0..BLOCKS).map(|_| random_block(geometry, &mut rng)).collect::<Vec<_>>()
        });
        let nothing = vec![0; self.shape.chunk as usize];
        let mut length = 0;
        while length < tokens {
            let piece = (tokens - length).min(self.shape.chunk);
            let Engine { tables, executor, disk, .. } = self;
            let on_change = &mut |change: BlockChange<'_>| apply(change, executor, disk.as_mut());
            tables.reserve(&[(number, piece)], on_change).map_err(|(_, error)| error)?;
            // A block that two pieces share is written twice: it is the sequence's own.
            let written = length as usize / BLOCK_TOKENS..((length + piece) as usize).div_ceil(BLOCK_TOKENS);
            for kind in kinds.into_iter().filter(|kind| self.model.kv.layers.iter().any(|l| l.kind == *kind))
            {
                let (table, stride) = self.tables.table(kind);
                let own = &table[number as usize * stride as usize..];
                for index in written.clone() {
                    self.executor.write_block(kind, own[index], &blocks[kind.index()][index % BLOCKS]);
                }
            }
            // The sequence takes no part in the prefix cache, which alone looks at tokens.
            self.tables.advance(number, &nothing[..piece as usize]);
            length += piece;
        }
        Ok(())
    }
}

fn random_block(geometry: &KvGeometry, rng: &mut Rng) -> Vec<u8> {
    let mut block = vec![0; geometry.block_bytes()];
    for head in 0..geometry.kv_heads {
        for plane in [KvPlane::K, KvPlane::V] {
            let format = geometry.format(plane);
            let head_dim = geometry.head_dim(plane);
            let mut token = || {
                let elements: Vec<f32> = (0..head_dim).map(|_| rng.f32() * 2.0 - 1.0).collect();
                format.round(&elements)
            };
            let tokens: Vec<KvElements> = (0..BLOCK_TOKENS).map(|_| token()).collect();
            let bytes = store_plane(format, plane, head_dim, &tokens);
            block[geometry.offset(plane, head)..][..bytes.len()].copy_from_slice(&bytes);
        }
    }
    block
}
