//! Load on an engine as a server gets it: many requests, at times that nobody knows before.
//!
//! A load is made before it runs ([`Mix`], [`LoadTrace`], [`Load`]): the same seed gives the same one.
//! [`drive`] puts it on a [`LoadTarget`] and notes what happens when. [`LoadReport`] makes figures of that,
//! and a picture.

mod conversation;
mod drive;
mod endpoint;
mod mix;
mod plan;
mod report;
mod svg;
mod target;
mod trace;

pub use conversation::{ConversationRequest, LoadConversation};
pub use drive::{LatencyLimits, LoadOutcome, LoadSample, Served, drive};
pub use endpoint::{Endpoint, EndpointFacts, EndpointTarget, Reached};
pub use mix::{Length, Mix};
pub use plan::{Arrivals, DEFAULT_CLIENTS, Load, LoadOptions};
pub use report::LoadReport;
pub use target::{EngineTarget, LoadRequest, LoadTarget, OnNews, RequestUpdate, Totals};
pub use trace::LoadTrace;
