//! kernmill's scheduler: decides which sequences run in the next step of an engine.
//!
//! It is a pure function: it has no clock, no threads and no input or output, and knows no text. Its inputs
//! are facts: requests that arrive or are cancelled, adapters that become ready, what the last step took, and
//! how many KV blocks there are. The same calls give the same plans, whatever the names of requests and
//! tenants. `docs/dev/scheduler.md` explains the policy.
//!
//! ```
//! use kernmill_scheduler::{Arrival, Class, SchedulerConfig, EntryOutcome, StepReport, Scheduler, Unlimited};
//! use kernmill_scheduler::{RequestId, TenantId};
//! use std::time::Duration;
//!
//! let mut scheduler = Scheduler::new(SchedulerConfig::default())?;
//! let mut now = Duration::ZERO;
//! let arrival = Arrival {
//!     id: RequestId(7),
//!     tenant: TenantId(1),
//!     class: Class::Interactive,
//!     priority: 0,
//!     deadline: None,
//!     adapter: None,
//!     prompt_tokens: 700,
//!     cached_tokens: 0,
//!     max_tokens: 2,
//! };
//! scheduler.arrive(now, &arrival)?;
//! let mut steps = Vec::new();
//! while !scheduler.is_empty() {
//!     let step = scheduler.plan(now, &Unlimited);
//!     steps.push(step.tokens());
//!     // An engine would run the entries here.
//!     let took = step.predicted;
//!     now += took;
//!     let outcomes = step.entries.iter().map(|entry| EntryOutcome {
//!         id: entry.id,
//!         tokens: u32::from(entry.samples),
//!         accepted: 0,
//!         drafts: 0,
//!         ended: false,
//!     });
//!     scheduler.report(now, &StepReport { took, outcomes: outcomes.collect(), fault: None });
//! }
//! // The prompt in two pieces, a second token, and a plan that ends the request.
//! assert_eq!(steps, [512, 188, 1, 0]);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod config;
mod costs;
mod estimate;
mod facts;
mod memory;
mod pace;
mod plan;
mod request;
mod scheduler;
mod shares;
mod state;
mod step;
mod view;

pub use config::{ConfigError, SchedulerConfig};
pub use costs::{Costs, StepLoad};
pub use facts::{AdapterId, Arrival, Class, EntryOutcome, RequestId, StepFault, StepReport, TenantId};
pub use memory::{BlockCounts, Demand, Memory, StartDemand, Unlimited};
pub use scheduler::Scheduler;
pub use step::{
    Admission, EndReason, EndedRequest, HeldRequest, HoldReason, PlannedStep, PreemptReason, Preempted,
    Refusal, RefusalReason, Started, StepEntry,
};
pub use view::{RequestView, SchedulerStats};
