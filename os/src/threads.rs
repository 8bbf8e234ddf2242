//! Work on several threads, of which the system may refuse any but the one that asks.

use std::thread::{Builder, Scope, scope};

/// Does `work` on up to `threads` threads, the caller's included, and returns when all of them are done.
///
/// Every call of `work` takes items from a common list until none is left. So where the system makes no more
/// threads (`ulimit -u`, a control group's `pids.max`), fewer of them do it all.
pub fn share(threads: usize, work: impl Fn() + Sync) {
    share_with(threads, Builder::new, &work);
}

/// Shares work as [`share`] does, with threads as `builder` makes them. Returns how many threads there were.
fn share_with(threads: usize, builder: impl Fn() -> Builder, work: &(dyn Fn() + Sync)) -> usize {
    scope(|scope| {
        let more = (1..threads).take_while(|_| start(scope, builder(), work)).count();
        work();
        1 + more
    })
}

/// Whether the system made the thread.
fn start<'scope>(
    scope: &'scope Scope<'scope, '_>,
    builder: Builder,
    work: &'scope (dyn Fn() + Sync),
) -> bool {
    builder.spawn_scoped(scope, work).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicUsize, Ordering};

    /// Threads that took part, and the sum of the numbers below `items` that they took.
    fn sum(threads: usize, items: usize, builder: impl Fn() -> Builder) -> (usize, usize) {
        let (next, total) = (AtomicUsize::new(0), AtomicUsize::new(0));
        let used = share_with(threads, builder, &|| {
            loop {
                let item = next.fetch_add(1, Ordering::Relaxed);
                if item >= items {
                    return;
                }
                total.fetch_add(item, Ordering::Relaxed);
            }
        });
        (used, total.into_inner())
    }

    #[test]
    fn the_work_is_done_by_as_many_threads_as_there_are() {
        assert_eq!(sum(3, 1000, Builder::new), (3, 499_500));
        assert_eq!(sum(1, 1000, Builder::new), (1, 499_500));
        assert_eq!(sum(0, 10, Builder::new), (1, 45));
        // No address space has room for such a stack.
        let refused = || Builder::new().stack_size(1 << 60);
        assert_eq!(sum(8, 1000, refused), (1, 499_500));
        let made = AtomicUsize::new(0);
        let one = || match made.fetch_add(1, Ordering::Relaxed) {
            0 => Builder::new(),
            _ => refused(),
        };
        assert_eq!(sum(8, 1000, one), (2, 499_500));
    }
}
