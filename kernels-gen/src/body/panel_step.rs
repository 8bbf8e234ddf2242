//! Panels of a batch, filled by all workers together for the kernel of the next step.

use crate::body::expert_groups::{ExpertRouting, GroupScratch, group};
use crate::body::panels::PanelFill;
use crate::body::term_lists::TermLists;
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
    panels: &[(OperandId, PanelKind, usize)],
    (max_rows, tiling): (usize, Tiling),
) {
    let k = cx.len(input);
    let Some((routing, experts, top_k)) = routed else {
        let rows = cx.rows(e, domain);
        let (lists, share) = (TermLists::new(cx, input, max_rows), cx.share(e, rows));
        lists.fill(e, cx, share);
        for (operand, kind, terms) in panels {
            let (fill, panel) = (PanelFill::new(*kind, k, tiling), cx.operand(e, *operand));
            for term in 0..*terms {
                let offset = term * kind.most_groups(max_rows, 1) * fill.group_bytes();
                let (panel, list) = (e.add_imm(panel, offset as i64), lists.list(e, cx, term));
                fill.rows(e, panel, list, rows, share);
            }
        }
        return;
    };
    let routed = ExpertRouting { routing, experts, top_k };
    let areas = GroupScratch::take(&mut Scratch::default(), experts, max_rows);
    let input_slots = matches!(domain, Domain::Slots(_));
    let slots = cx.rows(e, Domain::Slots(top_k));
    let share = cx.share(e, slots);
    for (operand, kind, _) in panels {
        let (operand, fill) = (*operand, PanelFill::new(*kind, k, tiling));
        let groups = group(e, cx, routed, &areas, (input, input_slots), fill.group_rows());
        let base = cx.operand(e, operand);
        groups.fill(e, cx, fill, base, share);
    }
}
