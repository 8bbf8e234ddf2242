//! The stand-in for a build without the feature `otlp`: it reports that.

use crate::trace::Ended;
use axum::http::HeaderMap;
use std::convert::Infallible;
use std::io;
use std::time::Duration;

/// A tracer that cannot exist.
#[derive(Clone, Debug)]
pub struct Tracer(Infallible);

/// A span that cannot exist.
#[derive(Debug)]
pub struct RequestSpan(Infallible);

impl Tracer {
    /// Says that this build has no traces, where a collector is named.
    ///
    /// # Errors
    /// When one is.
    pub fn new(endpoint: Option<&str>) -> io::Result<Option<Tracer>> {
        match endpoint {
            None => Ok(None),
            Some(_) => Err(io::Error::new(
                io::ErrorKind::Unsupported,
                "this kernmill is built without traces; build it with `--features otlp`",
            )),
        }
    }

    /// Cannot be called.
    pub fn begin(&self, _: &'static str, _: &HeaderMap) -> Option<RequestSpan> {
        match self.0 {}
    }

    /// Cannot be called.
    pub fn finish(&self, _: Duration) {
        match self.0 {}
    }
}

impl RequestSpan {
    /// Cannot be called.
    pub fn end(&self, _: &Ended<'_>) -> String {
        match self.0 {}
    }
}

#[cfg(test)]
mod tests {
    use super::Tracer;

    #[test]
    fn a_collector_is_refused_with_what_helps() {
        let error = Tracer::new(Some("http://127.0.0.1:4318")).unwrap_err().to_string();
        assert!(error.contains("--features otlp") && error.lines().count() == 1, "{error}");
        assert!(Tracer::new(None).unwrap().is_none());
    }
}
