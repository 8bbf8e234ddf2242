//! The panels that a kernel reads.

use crate::kernel::{Body, Kernel, ValId};
use crate::panel_kind::PanelKind;
use kernmill_plan::format::WeightFormat;

/// Consecutive parts of a matmul, or the only part of experts, that share panels.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PanelRun {
    /// The panels.
    pub kind: PanelKind,
    /// Elements of a row.
    pub k: usize,
    /// Number of parts.
    pub parts: usize,
    /// Bytes of the panels of the largest batch.
    pub bytes: usize,
}

impl Kernel {
    /// The panels of the body's matrices, in their order; none where it multiplies by dots.
    pub fn panel_runs(&self) -> Vec<PanelRun> {
        let (input, experts, formats): (ValId, usize, Vec<WeightFormat>) = match &self.body {
            Body::Matmul { input, parts, .. } => {
                (*input, 1, parts.iter().map(|part| part.mats[0].format).collect())
            }
            Body::Experts { input, experts, part, .. } => (*input, *experts, vec![part.mats[0].format]),
            Body::ExpertDown { input, experts, mat, .. } => (*input, *experts, vec![mat.format]),
            _ => return Vec::new(),
        };
        let row = self.vals[input].row;
        let kinds = formats.into_iter().map_while(|format| self.tiling.panels(row, format));
        let kinds: Vec<PanelKind> = kinds.collect();
        let run = |kinds: &[PanelKind]| {
            let (kind, k) = (kinds[0], row.len());
            let bytes = kind.most_groups(self.max_rows, experts) * kind.group_bytes(k);
            PanelRun { kind, k, parts: kinds.len(), bytes }
        };
        kinds.chunk_by(PartialEq::eq).map(run).collect()
    }
}
