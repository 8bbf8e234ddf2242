//! Following long work: notes and progress.

/// What the amounts of a [`Progress`] are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    /// Bytes.
    Bytes,
    /// Pieces of work.
    Count,
    /// Nothing that is known beforehand: the total is 0, and nothing advances.
    Unknown,
}

/// Progress of one piece of work, which ends when this is dropped. Threads share it.
pub trait Progress: Sync {
    /// So much more is done.
    fn advance(&self, amount: u64);
}

/// Is told what a user may want to know while a model is opened. Every method does nothing by default.
pub trait Observer: Send + Sync {
    /// Something that may not be meant, as a sentence without its full stop.
    fn note(&self, text: &str) {
        let _ = text;
    }

    /// Work of `total` units begins.
    fn begin(&self, work: &str, unit: Unit, total: u64) -> Box<dyn Progress + '_> {
        let _ = (work, unit, total);
        Box::new(Silent)
    }
}

/// Tells nobody.
#[derive(Clone, Copy, Debug, Default)]
pub struct Silent;

impl Observer for Silent {}

impl Progress for Silent {
    fn advance(&self, _amount: u64) {}
}
