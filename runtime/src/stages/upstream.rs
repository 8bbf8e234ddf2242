//! The first stage's side: batches go out, rows come back.

use super::hello::Wish;
use super::link::{Link, StageHealth, StageLost};
use super::tables::TablesCopy;
use super::wire::{BatchHeader, STEP};
use super::{StageShare, StagesConfig};
use crate::executor::{Batch, CutError, Cuts};
use crate::kv::{BlockTables, KvShape};
use kernmill_plan::kv::LayerKind;
use kernmill_plan::program::Program;
use std::io;
use std::time::Duration;

/// The next stage, and what it knows of the block tables.
pub(crate) struct Upstream {
    stages: u32,
    /// The part that the first stage itself holds.
    share: StageShare,
    link: Link,
    /// Number of the connection whose stages hold the KV cache's other layers.
    epoch: Option<u64>,
    known: TablesCopy,
    order: BatchHeader,
    bytes: Vec<u8>,
    /// Rows of the batch at the first cut.
    pub rows: Vec<u8>,
}

/// The state of the other stages since the last look.
pub(crate) enum StagesChange {
    /// No stage has changed.
    Same,
    /// Some stage has lost what it held, or cannot be reached.
    Lost(StageLost),
}

impl Upstream {
    /// Calls the next stage, which runs the program named `identity` from the second stage on.
    ///
    /// # Errors
    /// When no thread can be made for it.
    pub(crate) fn new(
        config: &StagesConfig,
        cuts: &Cuts,
        program: &Program,
        identity: [u8; 32],
        shape: KvShape,
    ) -> io::Result<Upstream> {
        let token_bytes: Vec<u32> = (1..=cuts.stages()).map(|stage| cuts.token_bytes(stage) as u32).collect();
        let most = shape.chunk as usize * token_bytes.last().copied().unwrap_or(0) as usize;
        let wish = Wish { identity, stage: 2, bounds: cuts.bounds().to_vec(), token_bytes, shape };
        Ok(Upstream {
            stages: config.stages,
            share: StageShare { layers: cuts.layers(1), weights: cuts.share(program, 1) },
            link: Link::start(&config.peer, config.key.clone(), wish, most.max(1 << 16))?,
            epoch: None,
            known: TablesCopy::new(&program.model.kv, shape),
            order: BatchHeader::default(),
            bytes: Vec::new(),
            rows: Vec::new(),
        })
    }

    /// Cuts a program as the configuration asks for.
    ///
    /// # Errors
    /// When it cannot be cut so.
    pub(crate) fn cuts(config: &StagesConfig, program: &Program) -> Result<Cuts, CutError> {
        Cuts::even(program, config.stages)
    }

    /// Number of stages, which is that of batches on their way at most.
    pub(crate) fn stages(&self) -> u32 {
        self.stages
    }

    /// The part that this process holds.
    pub(crate) fn first_share(&self) -> &StageShare {
        &self.share
    }

    /// Tells others whether the next stage is there.
    pub(crate) fn health(&self) -> StageHealth {
        self.link.health()
    }

    /// Waits until the next stage is there, for so long at most.
    ///
    /// # Errors
    /// When it is not.
    pub(crate) fn wait(&self, patience: Duration) -> Result<(), StageLost> {
        self.link.wait(patience).map(drop)
    }

    /// Looks up the state of the stages. Their sequences are gone where they are not the same; the caller
    /// must forget it too.
    pub(crate) fn look(&mut self) -> StagesChange {
        match (self.link.epoch(), self.epoch) {
            (Ok(epoch), Some(own)) if epoch == own => StagesChange::Same,
            (Ok(epoch), None) => {
                self.epoch = Some(epoch);
                StagesChange::Same
            }
            (Err(_), None) => StagesChange::Same,
            (Ok(_), Some(_)) => {
                self.forget();
                StagesChange::Lost(self.link.renewed())
            }
            (Err(lost), Some(_)) => {
                self.forget();
                StagesChange::Lost(lost)
            }
        }
    }

    /// Forgets what the other stages hold.
    pub(crate) fn forget(&mut self) {
        self.epoch = None;
        self.known.clear();
        self.order = BatchHeader::default();
    }

    /// Notes that a block is copied before the next batch.
    pub(crate) fn copy(&mut self, kind: LayerKind, from: u32, to: u32) {
        self.order.copies.push([kind.index() as u32, from, to]);
    }

    /// Sends a batch and its rows.
    ///
    /// # Errors
    /// When the stage is gone.
    pub(crate) fn send(
        &mut self,
        batch: &Batch,
        wanted: &[u32],
        tables: BlockTables<'_>,
    ) -> Result<(), StageLost> {
        let epoch = self.own_epoch()?;
        self.order.updates = self.known.differences(batch, tables);
        self.order.tokens.clone_from(&batch.token_ids);
        self.order.positions.clone_from(&batch.positions);
        self.order.sequences.clone_from(&batch.sequences);
        self.order.wanted.clear();
        self.order.wanted.extend_from_slice(wanted);
        self.bytes.clear();
        self.order.write(&mut self.bytes);
        self.order.copies.clear();
        self.link.send(epoch, STEP, &[&self.bytes, &self.rows])
    }

    /// Waits for the wanted rows of the oldest batch that was sent.
    ///
    /// # Errors
    /// When the stage is gone.
    pub(crate) fn receive(&mut self) -> Result<Vec<u8>, StageLost> {
        let epoch = self.own_epoch()?;
        self.link.receive(epoch)
    }

    /// The connection whose stages hold what this side thinks they hold.
    fn own_epoch(&mut self) -> Result<u64, StageLost> {
        if self.epoch.is_none() {
            // Nothing is held yet: any connection will do.
            self.epoch = Some(self.link.epoch()?);
        }
        self.epoch.map_or_else(|| self.link.epoch(), Ok)
    }
}
