//! Targets of fuzzing: one function per reader of bytes from outside. A function may neither panic nor hang
//! nor take memory out of proportion, whatever the bytes; refusing them is fine.
//!
//! The fuzzing package (`fuzz/`) includes this module too: it uses nothing of its neighbours.

mod adapter;
#[path = "../../../compiler/tests/support/any_bytes.rs"]
mod any_bytes;
mod chat;
mod checkpoint;
mod edit;
mod eval;
mod form;
mod kv_store;
pub mod plan;
mod plan_fields;
mod program;
mod requests;
#[path = "../../../compiler/tests/support/small_model.rs"]
pub mod small_model;
pub mod sound;
mod text;
pub mod trial;

pub use adapter::adapter;
pub use chat::{chat_template, generated, reads_call};
pub use checkpoint::{
    gguf, imatrix, reads_gguf, reads_imatrix, reads_quantised, reads_safetensors, safetensors,
};
pub use eval::{eval_base, eval_task};
pub use form::form;
pub use kv_store::{kv_segment, kv_session, reads_kv_segment, reads_kv_session};
pub use plan::{plan, sign_plan};
pub use plan_fields::{Part, assemble, plan_fields, sound_parts};
pub use program::{check, program};
pub use requests::requests;
pub use sound::{sound_plan, sound_program, weights_of};
pub use text::{compile, config, expr, fused, graph, machine, reads_machine, spec, tokenizer};

/// A reader under test.
pub struct Target {
    /// Name of the target: `fuzz/corpus.tar` has its inputs in a directory of that name.
    pub name: &'static str,
    /// Gives it bytes.
    pub run: fn(&[u8]),
    /// Mutations that the test suite tries.
    pub mutations: usize,
}

/// Every target.
pub const TARGETS: [Target; 23] = [
    Target { name: "spec", run: spec, mutations: 1500 },
    Target { name: "config", run: config, mutations: 2000 },
    Target { name: "machine", run: machine, mutations: 3000 },
    Target { name: "safetensors", run: safetensors, mutations: 3000 },
    Target { name: "gguf", run: gguf, mutations: 2000 },
    Target { name: "imatrix", run: imatrix, mutations: 3000 },
    Target { name: "graph", run: graph, mutations: 1000 },
    Target { name: "expr", run: expr, mutations: 4000 },
    Target { name: "program", run: program, mutations: 2500 },
    Target { name: "tokenizer", run: tokenizer, mutations: 1000 },
    Target { name: "compile", run: compile, mutations: 400 },
    Target { name: "plan", run: plan, mutations: 500 },
    Target { name: "plan_fields", run: plan_fields, mutations: 500 },
    Target { name: "requests", run: requests, mutations: 500 },
    Target { name: "adapter", run: adapter, mutations: 4000 },
    Target { name: "fused", run: fused, mutations: 2000 },
    Target { name: "kv_segment", run: kv_segment, mutations: 3000 },
    Target { name: "kv_session", run: kv_session, mutations: 3000 },
    Target { name: "generated", run: generated, mutations: 4000 },
    Target { name: "chat_template", run: chat_template, mutations: 2000 },
    Target { name: "form", run: form, mutations: 1000 },
    Target { name: "eval_base", run: eval_base, mutations: 3000 },
    Target { name: "eval_task", run: eval_task, mutations: 2000 },
];
