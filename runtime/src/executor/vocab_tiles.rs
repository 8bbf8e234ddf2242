//! Logits of some tiles of 16 tokens: the last step may be given a list of those that it is to compute.

use crate::profile::WorkDone;
use kernmill_plan::abi::Args;
use kernmill_plan::format::TILE_ROWS;
use kernmill_plan::program::{ItemReads, Program, TokenClass};

/// The tiles of a class's last step of logits, whose kernel computes any of them alone.
pub(crate) struct VocabTiles {
    pub count: u32,
    /// Bytes of weights of each.
    bytes: u64,
}

impl VocabTiles {
    /// The tiles of a class of a checked program, if its last step's kernel knows of lists, and has the rows
    /// of the vocabulary and no others: no number of a list is past its matrix.
    pub(crate) fn of(class: &TokenClass, program: &Program) -> Option<VocabTiles> {
        let step = class.logit_steps.last()?;
        let contract = program.code.symbols[step.kernel as usize].contract.as_ref()?;
        let count = program.model.vocab.div_ceil(TILE_ROWS as u32);
        let of_part = |part: &ItemReads| {
            let of_item = part.operands.iter().map(|reads| reads.bytes.saturating_mul(reads.pieces.into()));
            of_item.fold(0, u64::saturating_add).saturating_mul(part.items.into())
        };
        let bytes = step.weight_reads.parts.iter().map(of_part).fold(0, u64::saturating_add);
        (contract.listed_tiles == count).then_some(VocabTiles { count, bytes: bytes / u64::from(count) })
    }

    /// The work of the step for `listed` tiles; `all` is the work for every tile.
    pub(super) fn work(&self, all: WorkDone, listed: usize) -> WorkDone {
        let (count, listed) = (u64::from(self.count), listed as u64);
        let left_out = self.bytes.saturating_mul(count.saturating_sub(listed));
        WorkDone {
            weight_bytes: all.weight_bytes.saturating_sub(left_out),
            macs: all.macs / count * listed,
            ..all
        }
    }
}

/// Arguments of a last step with a list of tiles, if there is one.
pub(super) fn with_tiles(args: &Args, tiles: Option<&[u32]>) -> Args {
    match tiles {
        Some(tiles) => Args { logit_tile_count: tiles.len() as u32, logit_tiles: tiles.as_ptr(), ..*args },
        None => *args,
    }
}
