//! Files that commands are given.

use kernmill::Error;
use kernmill_plan::file::check::FileError;
use kernmill_runtime::{Plan, PlanError};

/// A part of a plan cannot be read.
pub fn in_plan(plan: &Plan, source: FileError) -> Error {
    PlanError::File { path: plan.path().to_owned(), source }.into()
}

/// Options of `kernmill serve` that are about clients, or that the first stage tells the others.
pub const OF_THE_FIRST_STAGE: [&str; 16] = [
    "grpc-port",
    "api-keys",
    "tls-certificate",
    "tls-key",
    "allowed-host",
    "cors-origin",
    "parallel",
    "context",
    "name",
    "alias",
    "allow-grammars",
    "max-wait",
    "lora-dir",
    "session-dir",
    "script",
    "kv-memory",
];
