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
    /// Rows of q8 of each input row that there are panels of.
    pub terms: usize,
    /// Bytes of the panels of the largest batch.
    pub bytes: usize,
}

impl Kernel {
    /// The panels of the body's matrices, in their order; none where it multiplies by dots.
    pub fn panel_runs(&self) -> Vec<PanelRun> {
        let (input, experts, parts): (ValId, usize, Vec<(WeightFormat, usize)>) = match &self.body {
            Body::Matmul { input, parts, .. } => {
                (*input, 1, parts.iter().map(|part| (part.mats[0].format, part.terms())).collect())
            }
            Body::Experts { input, experts, part, .. } => (*input, *experts, vec![(part.mats[0].format, 1)]),
            Body::ExpertDown { input, experts, mat, .. } => (*input, *experts, vec![(mat.format, 1)]),
            _ => return Vec::new(),
        };
        let row = self.vals[input].row;
        let kinds = parts
            .into_iter()
            .map_while(|(format, terms)| self.tiling.panels(row, format).map(|kind| (kind, terms)));
        let kinds: Vec<(PanelKind, usize)> = kinds.collect();
        let run = |parts: &[(PanelKind, usize)]| {
            let (kind, k) = (parts[0].0, row.len());
            let terms = parts.iter().map(|(_, terms)| *terms).max().unwrap_or(1);
            let bytes = terms * kind.most_groups(self.max_rows, experts) * kind.group_bytes(k);
            PanelRun { kind, k, parts: parts.len(), terms, bytes }
        };
        kinds.chunk_by(|(a, _), (b, _)| a == b).map(run).collect()
    }
}
