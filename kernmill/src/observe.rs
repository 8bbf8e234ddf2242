//! Following long work: notes and progress.

/// The unit in which a [`Progress`] counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    /// Bytes.
    Bytes,
    /// Pieces of work, such as kernels or weights.
    Count,
    /// The amount of work is not known: the total is 0, and [`Progress::advance`] is not called.
    Unknown,
}

/// The progress of one piece of work, such as a bar on a terminal. The work ends when the value is dropped.
/// Several threads may advance it at once.
pub trait Progress: Send + Sync {
    /// Adds `amount` units to what has been done.
    fn advance(&self, amount: u64);
}

/// Receives what a user may want to know while a model is opened: notes and progress. Every method does
/// nothing by default.
///
/// ```
/// use kernmill::observe::Observer;
///
/// struct Notes;
///
/// impl Observer for Notes {
///     fn note(&self, text: &str) {
///         eprintln!("note: {text}");
///     }
/// }
///
/// let options = kernmill::Options::default().with(|it| it.observer = std::sync::Arc::new(Notes));
/// ```
pub trait Observer: Send + Sync {
    /// Receives a note about something that the user may not have meant: one sentence without its full stop.
    fn note(&self, text: &str) {
        let _ = text;
    }

    /// Asks the user a question, whose answer is yes or no.
    fn asks(&self, question: &str) -> bool {
        let _ = question;
        false
    }

    /// Is called when work of `total` units begins; `work` says what is done. The value that it returns is
    /// dropped at the end.
    fn begin(&self, work: &str, unit: Unit, total: u64) -> Box<dyn Progress + '_> {
        let _ = (work, unit, total);
        Box::new(Silent)
    }
}

/// An observer that shows nothing.
#[derive(Clone, Copy, Debug, Default)]
pub struct Silent;

impl Observer for Silent {}

impl Progress for Silent {
    fn advance(&self, _amount: u64) {}
}
