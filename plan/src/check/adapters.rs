//! LoRA targets: their shapes, which tables and packed adapters are laid out by, and the weights that they
//! point to.

use super::CheckError;
use crate::adapter::{Adapters, LoraTarget, PackedAt, RANK_STEP};
use crate::format::{BLOCK, LINE, TILE_ROWS};
use crate::limit;

/// LoRA targets of a program at most.
const MAX_LORA_TARGETS: usize = 1 << 16;
/// Rows, columns and experts of a LoRA target at most: no size of a packed adapter overflows.
const MAX_DIM: u32 = limit::WIDTH as u32;

/// Checks a program's adapters.
pub(super) fn check(adapters: &Adapters, weight_bytes: u64) -> Result<(), CheckError> {
    let model = |what, found: String, expected: String| Err(CheckError::Model { what, found, expected });
    if adapters.format.is_blocked() {
        return model("adapter format", adapters.format.name().into(), "f32 or bf16".into());
    }
    if adapters.lora_targets.len() > MAX_LORA_TARGETS {
        return model(
            "LoRA targets",
            adapters.lora_targets.len().to_string(),
            format!("0..={MAX_LORA_TARGETS}"),
        );
    }
    for (index, lora_target) in adapters.lora_targets.iter().enumerate() {
        check_lora_target(lora_target, weight_bytes).map_err(|message| CheckError::LoraTarget {
            lora_target: index,
            name: lora_target.name.clone(),
            message,
        })?;
    }
    Ok(())
}

fn check_lora_target(lora_target: &LoraTarget, weight_bytes: u64) -> Result<(), String> {
    if lora_target.k == 0 || lora_target.k > MAX_DIM || !(lora_target.k as usize).is_multiple_of(RANK_STEP) {
        return Err(format!("{} columns, expected a multiple of {RANK_STEP} up to {MAX_DIM}", lora_target.k));
    }
    if lora_target.experts > MAX_DIM {
        return Err(format!("{} experts, expected at most {MAX_DIM}", lora_target.experts));
    }
    if !(1..=2).contains(&lora_target.outs.len()) {
        return Err(format!("{} matrices, expected 1 or 2", lora_target.outs.len()));
    }
    if let Some(out) = lora_target.outs.iter().find(|out| !(1..=MAX_DIM).contains(&out.rows)) {
        return Err(format!("`{}` has {} rows, expected 1 to {MAX_DIM}", out.name, out.rows));
    }
    let rows = lora_target.rows() as u64;
    for out in &lora_target.outs {
        if out.step == 0 {
            return Err(format!("`{}` takes row {} again and again", out.name, out.first));
        }
        let last = u64::from(out.first) + u64::from(out.rows - 1) * u64::from(out.step);
        if last >= rows {
            return Err(format!("`{}` takes row {last} of {rows}", out.name));
        }
        let end = end_of_weights(lora_target, out.rows as usize, &out.weights)
            .ok_or_else(|| format!("`{}` has no legal place in the weights", out.name))?;
        if end > weight_bytes {
            return Err(format!("`{}` ends at byte {end} of {weight_bytes} of weights", out.name));
        }
    }
    Ok(())
}

/// Byte behind a matrix's last tile; `None` when its place is not aligned, its tiles overlap, or a size
/// passes 64 bits.
fn end_of_weights(lora_target: &LoraTarget, rows: usize, at: &PackedAt) -> Option<u64> {
    let k = lora_target.k as usize;
    if at.format.is_blocked() && !k.is_multiple_of(BLOCK) {
        return None;
    }
    let tile = at.format.tile(k).bytes() as u64;
    let tiles = rows.div_ceil(TILE_ROWS) as u64;
    let experts = u64::from(lora_target.experts.max(1));
    let aligned = [at.offset, at.tile_stride, at.expert_stride].iter().all(|x| x.is_multiple_of(LINE as u64));
    if !aligned || at.tile_stride < tile {
        return None;
    }
    let matrix = (tiles - 1).checked_mul(at.tile_stride)?.checked_add(tile)?;
    (experts - 1).checked_mul(at.expert_stride)?.checked_add(matrix)?.checked_add(at.offset)
}
