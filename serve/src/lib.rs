//! The one loop that makes texts: requests go in, the scheduler decides, the engine runs, texts come out.
//!
//! [`Serving`] is plain and synchronous: [`Serving::tick`] plans and runs one step. [`ServingThread`] runs it
//! on a separate thread, and takes requests between steps; a [`Text`] is one of them as an iterator. The
//! text of a request is the one that it gets alone: what runs beside it, in which order, and what is cached
//! change no bit.
//!
//! ```no_run
//! # fn show(engine: kernmill_runtime::Engine) -> Result<(), kernmill_serve::Error> {
//! use kernmill_serve::{SchedulerConfig, Request, Serving, ServingThread};
//!
//! let thread = ServingThread::anywhere(Serving::new(engine, SchedulerConfig::default())?);
//! let first = thread.text(Request::greedy(vec![1, 2, 3], 5))?;
//! let second = thread.text(Request::greedy(vec![4, 5], 5))?;
//! // Both are made at the same time.
//! assert_eq!(first.answer()?.tokens.len() + second.answer()?.tokens.len(), 10);
//! # Ok(())
//! # }
//! ```

#![warn(clippy::missing_errors_doc, clippy::missing_panics_doc)]

mod active;
mod adapters;
mod alone;
mod error;
mod event;
mod figures;
mod finish;
mod flight;
mod guide;
mod histories;
mod request;
mod run;
mod saved;
mod scoring;
mod serving;
mod stats;
mod text;
mod text_maker;
mod thread;
mod turns;
mod values;
mod view;

pub use adapters::AdapterQueue;
pub use error::{Error, Result};
pub use event::{RequestEvent, Tick, Token};
pub use figures::{EngineFigures, drafts_json, drafts_line};
pub use finish::Finish;
pub use guide::token_mask;
pub use kernmill_scheduler::{
    Class, EndReason, Refusal, RefusalReason, RequestId, SchedulerConfig, SchedulerStats,
};
pub use request::{Answer, Request, cache_of};
pub use saved::{Restored, SavedText};
pub use saved::{SavedTokens, read_session};
pub use scoring::Scoring;
pub use serving::{Clock, Serving};
pub use stats::{ServeStats, WidthStats};
pub use text::Text;
pub use thread::{Listener, ServingThread, Ticket};
pub use turns::StepTurns;
pub use values::Wanted;
