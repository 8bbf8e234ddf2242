//! Handing out rows of logits on the workers, side by side.

use kernmill_plan::format::f32_row_stride;

/// Takes rows on the workers: the worker, the row's index among the wanted ones, and its logits.
pub(crate) type WorkersTake<'a> = dyn Fn(usize, usize, &[f32]) + Sync + 'a;

/// The rows of one slab, where the last step has written them.
#[derive(Clone, Copy)]
pub(super) struct Slab {
    /// The first row, in the arena.
    base: *const u8,
    /// Elements of a row.
    width: usize,
    /// Index of the first row among the wanted ones.
    first: usize,
    rows: usize,
}

// SAFETY: workers only read the rows, and only between the barrier after the step that writes them and the
// end of the dispatch.
unsafe impl Sync for Slab {}
// SAFETY: it owns nothing.
unsafe impl Send for Slab {}

impl Slab {
    /// `rows` rows at `base`, which must be `rows` times [`f32_row_stride`] bytes of the arena.
    pub(super) fn new(base: *const u8, width: usize, first: usize, rows: usize) -> Slab {
        Slab { base, width, first, rows }
    }

    /// Worker `index` of `count` hands out its share.
    ///
    /// # Safety
    /// The steps that write the rows have ended on every worker, and none is run before all workers have
    /// returned from here.
    pub(super) unsafe fn hand_out(
        &self,
        index: usize,
        count: usize,
        mut to: impl FnMut(usize, usize, &[f32]),
    ) {
        for row in (index..self.rows).step_by(count) {
            let at = self.base.wrapping_add(row * f32_row_stride(self.width)).cast::<f32>();
            // SAFETY: the row is inside the arena, aligned to 64 bytes, initialised, and nobody writes it
            // now, says the caller.
            to(index, self.first + row, unsafe { std::slice::from_raw_parts(at, self.width) });
        }
    }
}
