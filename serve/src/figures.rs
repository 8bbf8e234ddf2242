//! Figures of an engine's KV cache, and of the process's memory: lines, and JSON.

use crate::error::Result;
use crate::thread::ServingThread;
use kernmill_kv_store::StoreStats;
use kernmill_os::text::size;
use kernmill_plan::kv::LayerKind;
use kernmill_runtime::measure::peak_resident;
use kernmill_runtime::{DraftStats, Engine, KvUsage, PrefixStats};
use serde_json::{Value, json};
use std::fmt::Write;

/// Counts of drafts in one line, without an end of line.
pub fn drafts_line(drafts: DraftStats) -> String {
    format!("drafts: {} tokens were checked, {} were right", drafts.tokens, drafts.accepted)
}

/// Counts of drafts as JSON.
pub fn drafts_json(drafts: DraftStats) -> Value {
    json!({ "tokens": drafts.tokens, "accepted": drafts.accepted })
}

/// The state of an engine's memory.
#[derive(Clone, Copy, Debug)]
pub struct EngineFigures {
    /// Blocks of the KV cache, by layer kind.
    pub kv: KvUsage,
    /// Counts of the prefix cache.
    pub prefix: PrefixStats,
    /// Contents and counts of the store on disk, if there is one.
    pub disk: Option<StoreStats>,
}

/// Names of the layer kinds, as [`LayerKind::index`] orders them.
const KINDS: [(LayerKind, &str); 2] = [(LayerKind::Full, "full"), (LayerKind::Sliding, "sliding")];

impl EngineFigures {
    /// The state of an engine.
    pub fn of(engine: &Engine) -> EngineFigures {
        EngineFigures { kv: engine.kv(), prefix: engine.prefix_stats(), disk: engine.disk_stats() }
    }

    /// The state of the engine of a thread.
    ///
    /// # Errors
    /// When the thread has ended.
    pub fn now(thread: &ServingThread) -> Result<EngineFigures> {
        thread.run(|serving| EngineFigures::of(serving.engine()))
    }

    /// Blocks of a kind: all, those of sequences, those that are only cached, free ones.
    fn blocks(&self, kind: LayerKind) -> [usize; 4] {
        let at = kind.index();
        let (all, free, cached) = (self.kv.blocks[at], self.kv.free[at], self.kv.cached[at]);
        [all, all - free, cached, free - cached]
    }

    /// The state in some lines, each with its end.
    pub fn lines(&self) -> String {
        let mut text = String::new();
        for (kind, name) in KINDS {
            let [all, used, cached, free] = self.blocks(kind);
            let bytes = self.kv.block_bytes[kind.index()];
            let of = |blocks: usize| size(blocks as u64 * bytes);
            if all > 0 {
                // Writing to a String cannot fail.
                let _ = writeln!(
                    text,
                    "KV blocks of {name} layers: {used} used, {cached} cached ({}), {free} free, {all} in all ({})",
                    of(cached),
                    of(all)
                );
            }
        }
        let PrefixStats { asked_tokens, found_tokens, evicted_blocks, evicted_checkpoints, .. } = self.prefix;
        let _ = writeln!(
            text,
            "prefix cache: {found_tokens} of {asked_tokens} prompt tokens; evicted {evicted_blocks} blocks \
             and {evicted_checkpoints} checkpoints"
        );
        if let Some(StoreStats { blocks, bytes, written, evicted, dropped, refused, damaged, .. }) = self.disk
        {
            let (found, kept) = (self.prefix.disk_tokens, size(bytes));
            let lost = dropped + refused;
            let _ = writeln!(
                text,
                "KV blocks on disk: {blocks} ({kept}); {found} prompt tokens came back; {written} blocks \
                 written, {evicted} gave way, {lost} were not taken, {damaged} were damaged"
            );
        }
        let _ = writeln!(text, "peak memory: {}", size(peak_resident().unwrap_or(0)));
        text
    }

    /// The blocks as a JSON object, by layer kind.
    pub fn kv_json(&self) -> Value {
        let of = |kind: LayerKind| {
            let [all, used, cached, free] = self.blocks(kind);
            let bytes = self.kv.block_bytes[kind.index()];
            json!({ "blocks": all, "used": used, "cached": cached, "free": free, "block_bytes": bytes })
        };
        json!({ "full": of(LayerKind::Full), "sliding": of(LayerKind::Sliding) })
    }

    /// Contents and counts of the store on disk as a JSON object; null without one.
    pub fn disk_json(&self) -> Value {
        self.disk.map_or(Value::Null, |disk| {
            json!({
                "found_tokens": self.prefix.disk_tokens,
                "blocks": disk.blocks,
                "bytes": disk.bytes,
                "written": disk.written,
                "evicted": disk.evicted,
                "dropped": disk.dropped,
                "refused": disk.refused,
                "damaged": disk.damaged,
            })
        })
    }

    /// Counts of the prefix cache as a JSON object.
    pub fn prefix_json(&self) -> Value {
        json!({
            "asked_tokens": self.prefix.asked_tokens,
            "found_tokens": self.prefix.found_tokens,
            "evicted_blocks": self.prefix.evicted_blocks,
            "evicted_checkpoints": self.prefix.evicted_checkpoints,
        })
    }
}
