//! Reports to Intel's VTune by its ITT and JIT interfaces: the names of kernels, and a task for each step.
//! VTune puts collectors into the environment of the processes that it starts. Without one nothing happens.

#[cfg(test)]
mod tests;

use ittapi::jit::{Jit, MethodLoadBuilder};
use ittapi::{Domain, StringHandle, Task};
use kernmill_plan::program::Symbol;
use std::cell::LazyCell;
use std::sync::{Mutex, OnceLock, PoisonError};

/// The variables that name the collectors of code and of tasks.
const COLLECTORS: [&str; 2] = ["INTEL_JIT_PROFILER64", "INTEL_LIBITTNOTIFY64"];

fn is_there(collector: &str) -> bool {
    std::env::var_os(collector).is_some_and(|path| !path.is_empty())
}

/// Tells the functions of a program whose code begins at `base`.
pub fn announce(base: usize, symbols: &[Symbol]) {
    // It is never dropped: its end would be the end of the profile.
    static JIT: OnceLock<Mutex<Jit>> = OnceLock::new();
    if !is_there(COLLECTORS[0]) {
        return;
    }
    let jit = JIT.get_or_init(Mutex::default).lock().unwrap_or_else(PoisonError::into_inner);
    for symbol in symbols {
        let begin = std::ptr::without_provenance(base + symbol.offset as usize);
        let name = format!("kernmill:{}", symbol.name);
        let method = MethodLoadBuilder::new(name, begin, symbol.size as usize);
        if let Err(error) = jit.load_method(method) {
            tracing::warn!("VTune is not told of {}: {error}", symbol.name);
        }
    }
}

thread_local! {
    /// The domain of the tasks, if there is a collector. It lives as long as the process.
    static DOMAIN: LazyCell<Option<&'static Domain>> = const {
        LazyCell::new(|| is_there(COLLECTORS[1]).then(|| &*Box::leak(Box::new(Domain::new("kernmill")))))
    };
}

/// A step that runs, until this is dropped.
pub struct VtuneStep {
    /// Tells of the end when it is dropped.
    _task: Option<Task<'static>>,
}

impl VtuneStep {
    /// Tells that a step of so many tokens begins on this thread. Steps of up to the next power of two have
    /// one name.
    pub fn begin(tokens: usize) -> VtuneStep {
        let domain = DOMAIN.with(|domain| **domain);
        let name = |tokens: usize| match tokens.next_power_of_two() {
            1 => StringHandle::new("step of 1 token"),
            most => StringHandle::new(&format!("step of up to {most} tokens")),
        };
        VtuneStep { _task: domain.map(|domain| Task::begin(domain, name(tokens))) }
    }
}
