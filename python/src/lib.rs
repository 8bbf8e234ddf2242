//! The native half of the Python package `kernmill`. The Python half, in `package/`, has the names that
//! programs use; this one has an engine on a thread, requests to it, and exceptions.

mod ask;
mod bell;
mod error;
mod figures;
mod llm;
mod logits;
mod mailbox;
mod model;
mod request;
mod tools;
mod wait;

use pyo3::prelude::*;

/// The module `kernmill._kernmill`.
#[pymodule]
mod _kernmill {
    use pyo3::prelude::*;

    #[pymodule_export]
    use crate::error::{Defect, InputError, Overloaded, Unsupported};
    #[pymodule_export]
    use crate::llm::Engine;
    #[pymodule_export]
    use crate::request::{PyBell, Request};
    #[pymodule_export]
    use crate::tools::{compile, explain, import_spec, inspect, read_session};

    #[pymodule_init]
    fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
        module.add("__version__", env!("CARGO_PKG_VERSION"))
    }
}
