//! Files of evaluations: stored references, and tasks.

use kernmill_eval::base;
use kernmill_eval::tasks::Task;

/// Records that are read at most: a small file may promise no more than it has.
const RECORDS: usize = 1 << 16;

/// Reads a stored reference.
pub fn eval_base(bytes: &[u8]) {
    let Ok(Some(mut base)) = base::read(bytes, bytes.len() as u64) else { return };
    let measured: usize = base.windows.iter().map(|window| window.measured().len()).sum();
    assert!(base.windows.iter().all(|window| window.from > 0 && window.from < window.ids.len()));
    let logits = vec![0.5; base.vocab];
    for _ in 0..measured.min(RECORDS) {
        let Ok(known) = base.next_known() else { return };
        known.distance(&logits, 0);
    }
}

/// Reads a task's file, as each of them.
pub fn eval_task(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    for task in Task::ALL {
        for item in task.items(text, "x_test", None).into_iter().flatten() {
            assert!(item.gold < item.pairs.len() && item.pairs.len() == item.lengths.len());
            task.name_of("x", &item);
        }
    }
}
