//! Text of a selection, for `--emit select`.

use super::candidate::tiling_text;
use super::{KernelUse, Selection};
use kernmill_kernels_gen::kernel::{Body, MatrixPart, RowOp, RowType, Tiling};
use kernmill_plan::kv::KvPair;
use std::fmt;

impl fmt::Display for Selection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "class of up to {} tokens", self.max_tokens)?;
        self.uses.iter().try_for_each(|one| writeln!(f, "  {one}"))
    }
}

impl fmt::Display for KernelUse {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: ", self.label)?;
        if !self.kernel.prologue.is_empty() {
            write!(f, "each worker [{}], then ", row_ops(&self.kernel.prologue))?;
        }
        self.body(f)?;
        match self.kernel.tiling {
            Tiling::Dot => Ok(()),
            panels => write!(f, "; {}", tiling_text(panels)),
        }
    }
}

impl KernelUse {
    fn body(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let row = |val: &usize| self.kernel.vals[*val].row;
        match &self.kernel.body {
            Body::Rows { domain, row_ops: list } => write!(f, "{domain:?} rows [{}]", row_ops(list)),
            Body::Matmul { domain, input, parts } => {
                write!(f, "matmul {domain:?} x {}", row_name(row(input)))?;
                parts.iter().try_for_each(|part| write!(f, " | {}", part_text(part)))
            }
            Body::Panels { domain, input, routed, panels } => {
                let kinds: Vec<String> = panels.iter().map(|(_, kind, _)| kind.name()).collect();
                write!(f, "panels of {domain:?} x {}: {}", row_name(row(input)), kinds.join(", "))?;
                routed.map_or(Ok(()), |(_, experts, top_k)| write!(f, ", {top_k} of {experts} experts"))
            }
            Body::Experts { input, experts, top_k, part, .. } => {
                write!(f, "experts {top_k} of {experts} x {} | {}", row_name(row(input)), part_text(part))
            }
            Body::ExpertDown { input, experts, top_k, mat, rows_per_item, .. } => write!(
                f,
                "experts {top_k} of {experts} x {} | {} [{}, {}] in units of {rows_per_item}: weighted sum, add",
                row_name(row(input)),
                mat.format.name(),
                mat.n,
                mat.k
            ),
            Body::Shrink { input, routed, lora_targets, row_ops: list, by_rows, .. } => {
                let by = if *by_rows { "rows" } else { "tiles" };
                write!(
                    f,
                    "shrink for {} LoRA targets x {} by {by}",
                    lora_targets.len(),
                    row_name(row(input))
                )?;
                if !list.is_empty() {
                    write!(f, ", each [{}]", row_ops(list))?;
                }
                routed.map_or(Ok(()), |(_, experts, top_k)| write!(f, ", {top_k} of {experts} experts"))
            }
            Body::Attention(a) => write!(
                f,
                "attention {} heads over {} of {}{} in {}, window {}{}, {} by {}, into {}",
                a.heads,
                a.geometry.kv_heads,
                a.geometry.head_dim,
                match a.geometry.v_head_dim {
                    values if values == a.geometry.head_dim => String::new(),
                    values => format!(" and {values}"),
                },
                kv_name(a.geometry.formats),
                a.window.map_or("none".to_owned(), |w| w.to_string()),
                if a.causal { "" } else { " on either side" },
                if a.by_runs { "runs" } else { "tokens" },
                a.tile_tokens,
                row_name(row(&a.out))
            ),
        }
    }
}

fn kv_name(formats: KvPair) -> String {
    match formats.k == formats.v {
        true => format!("{:?}", formats.k),
        false => format!("{:?} and {:?}", formats.k, formats.v),
    }
}

fn row_name(row: RowType) -> String {
    match row {
        RowType::F32(n) => format!("f32[{n}]"),
        RowType::Q8(n) => format!("q8[{n}]"),
        RowType::Q8x2(n) => format!("q8x2[{n}]"),
        RowType::F16(n) => format!("f16[{n}]"),
        RowType::Bf16(n) => format!("bf16[{n}]"),
        RowType::Kv(row, n) => format!("{row}[{n}]"),
        RowType::Routing(k) => format!("routing[{k}]"),
    }
}

fn part_text(part: &MatrixPart) -> String {
    let mats: Vec<String> =
        part.mats.iter().map(|mat| format!("{} [{}, {}]", mat.format.name(), mat.n, mat.k)).collect();
    let bias = if part.mats.iter().any(|mat| mat.bias.is_some()) { "bias, " } else { "" };
    format!("{} in units of {}: {bias}{}", mats.join(" and "), part.rows_per_item, row_ops(&part.epilogue))
}

fn row_ops(list: &[RowOp]) -> String {
    let names: Vec<&str> = list.iter().map(|op| op.facts().name).collect();
    names.join(", ")
}
