//! Figures of the work that waits, and of the work done.

use kernmill_serve::Serving;
use serde_json::{Value, json};

/// Figures of a serving, as an object.
pub fn json(serving: &mut Serving) -> Value {
    let (queue, stats, prefix) = (serving.queue(), serving.stats().clone(), serving.prefix_stats());
    let usage = serving.engine().kv();
    let sum = |blocks: [usize; 2]| blocks.iter().sum::<usize>();
    let bytes =
        |blocks: [usize; 2]| (0..2).map(|kind| blocks[kind] as u64 * usage.block_bytes[kind]).sum::<u64>();
    let used = [0, 1].map(|kind| usage.blocks[kind] - usage.free[kind]);
    json!({
        "waiting": queue.waiting.iter().sum::<u32>(),
        "running": queue.running.iter().sum::<u32>(),
        "kv_blocks": sum(usage.blocks),
        "kv_used_blocks": sum(used),
        "kv_cached_blocks": sum(usage.cached),
        "kv_bytes": bytes(usage.blocks),
        "kv_used_bytes": bytes(used),
        "kv_cached_bytes": bytes(usage.cached),
        "steps": stats.steps,
        "tokens": stats.tokens,
        "generated_tokens": stats.generated,
        "draft_tokens": stats.drafts.tokens,
        "accepted_tokens": stats.drafts.accepted,
        "preemptions": stats.preemptions,
        "busy_seconds": stats.busy.as_secs_f64(),
        "prefix_asked_tokens": prefix.asked_tokens,
        "prefix_found_tokens": prefix.found_tokens,
    })
}
