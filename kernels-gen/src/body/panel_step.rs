//! Panels of a batch, filled by all workers together for the kernel of the next step.

use crate::body::expert_groups::{ExpertRouting, GroupScratch, group};
use crate::body::panels::PanelFill;
use crate::cx::Cx;
use crate::emit::Emit;
use crate::kernel::{Domain, OperandId, Tiling, ValId};
use crate::panel_kind::PanelKind;
use crate::scratch::Scratch;

/// Bytes of the body's scratch.
pub fn scratch_bytes(routed: Option<(ValId, usize, usize)>, max_rows: usize) -> usize {
    let mut scratch = Scratch::default();
    if let Some((_, experts, _)) = routed {
        GroupScratch::take(&mut scratch, experts, max_rows);
    }
    scratch.used()
}

/// Workers share the rows, in the order in which panels have them.
pub fn emit(
    e: &mut Emit,
    cx: &Cx,
    (domain, input): (Domain, ValId),
    routed: Option<(ValId, usize, usize)>,
    panels: &[(OperandId, PanelKind)],
    (max_rows, tiling): (usize, Tiling),
) {
    let fills: Vec<(OperandId, PanelFill)> = panels
        .iter()
        .map(|(operand, kind)| (*operand, PanelFill::new(*kind, cx.len(input), tiling)))
        .collect();
    let Some((routing, experts, top_k)) = routed else {
        let (rows, list) = (cx.rows(e, domain), cx.list(e));
        let share = cx.share(e, rows);
        e.for_range(share.0, share.1, 1, |e, row| {
            let (source, entry) = (cx.row(e, input, row), e.at(list, row, 8));
            e.store(source, entry, 0);
        });
        for (operand, fill) in fills {
            let panel = cx.operand(e, operand);
            fill.rows(e, panel, list, rows, share);
        }
        return;
    };
    let routed = ExpertRouting { routing, experts, top_k };
    let areas = GroupScratch::take(&mut Scratch::default(), experts, max_rows);
    let input_slots = matches!(domain, Domain::Slots(_));
    let slots = cx.rows(e, Domain::Slots(top_k));
    let share = cx.share(e, slots);
    for (operand, fill) in fills {
        let groups = group(e, cx, routed, &areas, (input, input_slots), fill.group_rows());
        let base = cx.operand(e, operand);
        groups.fill(e, cx, fill, base, share);
    }
}
