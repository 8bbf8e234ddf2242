//! Panels: rows of activations, laid out for micro-kernels that multiply many of them.
//!
//! Rows lie in groups, `[groups][blocks of 32 k]`, those of each expert in groups of their own. What a block
//! of a group has, the micro-kernels say.

use crate::ukernel::gemm_q8::DotStep;
use crate::ukernel::gemm_tiles::TileElement;
use crate::ukernel::{gemm_bf16, gemm_q8, gemm_tiles};
use kernmill_plan::format::{BLOCK, WeightFormat};

/// The layout of panels.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum PanelKind {
    /// q8 rows in groups of up to [`gemm_q8::GROUP`], for weights of a format.
    Q8 {
        /// The weights' format.
        format: WeightFormat,
        /// How micro-kernels add products up.
        products: DotStep,
    },
    /// bf16 rows in groups of [`gemm_bf16::PANEL_ROWS`].
    Bf16,
    /// q8 rows in groups of [`gemm_tiles::PANEL_ROWS`], for tiles of such elements.
    Tiles(TileElement),
}

impl PanelKind {
    /// Rows of a group at most.
    pub fn group_rows(self) -> usize {
        match self {
            PanelKind::Q8 { .. } => gemm_q8::GROUP,
            PanelKind::Bf16 => gemm_bf16::PANEL_ROWS,
            PanelKind::Tiles(_) => gemm_tiles::PANEL_ROWS,
        }
    }

    /// Bytes of a group's rows of `k`.
    pub fn group_bytes(self, k: usize) -> usize {
        let block = match self {
            PanelKind::Q8 { format, products } => products.decoded(format).panel().block,
            PanelKind::Bf16 => gemm_bf16::PANEL_BLOCK,
            PanelKind::Tiles(element) => element.panel_block(),
        };
        k / BLOCK * block
    }

    /// Groups at most of `rows` rows, each of one of `experts`; dense matrices count as one. There are most
    /// where every expert has one row more than whole groups.
    pub fn most_groups(self, rows: usize, experts: usize) -> usize {
        rows.checked_sub(experts).map_or(rows, |rest| experts + rest / self.group_rows())
    }

    /// Name in listings.
    pub fn name(self) -> String {
        match self {
            PanelKind::Q8 { format, .. } => format!("q8 for {}", format.name()),
            PanelKind::Bf16 => "bf16".to_owned(),
            PanelKind::Tiles(TileElement::Bf16) => "q8 for tiles of bf16".to_owned(),
            PanelKind::Tiles(TileElement::I8) => "q8 for tiles of int8".to_owned(),
        }
    }
}
