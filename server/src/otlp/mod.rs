//! Traces: a span for each request that makes texts, sent to a collector over OTLP in batches. Calls never
//! wait for the collector: a full queue drops spans.

mod client;
mod names;
#[cfg(test)]
mod tests;

use crate::trace::Ended;
use axum::http::{HeaderMap, Uri};
use client::CollectorClient;
use opentelemetry::propagation::TextMapPropagator;
use opentelemetry::trace::{Span, SpanBuilder, SpanKind, Tracer as _, TracerProvider};
use opentelemetry::{Context, Key, KeyValue};
use opentelemetry_http::HeaderExtractor;
use opentelemetry_otlp::{Protocol, SpanExporter, WithExportConfig, WithHttpConfig};
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::propagation::TraceContextPropagator;
use opentelemetry_sdk::trace::{SdkTracer, SdkTracerProvider};
use std::io;
use std::time::Duration;

/// Path of a collector behind its address.
const PATH: &str = "/v1/traces";

/// Where spans go.
#[derive(Clone, Debug)]
pub struct Tracer {
    provider: SdkTracerProvider,
    tracer: SdkTracer,
}

/// The span of a request that has come. It is made when the request ends.
#[derive(Debug)]
pub struct RequestSpan {
    tracer: Tracer,
    operation: &'static str,
    parent: Context,
}

impl Tracer {
    /// Sends spans to the collector at `endpoint`, or where that is `None`, to the one that the environment
    /// names; `None` if that names none.
    ///
    /// # Errors
    /// When the address is not valid, or the environment asks for something that is not supported.
    pub fn new(endpoint: Option<&str>) -> io::Result<Option<Tracer>> {
        let Some(endpoint) = named(endpoint, |name| std::env::var(name).ok())? else { return Ok(None) };
        Tracer::to(&endpoint).map(Some)
    }

    fn to(endpoint: &str) -> io::Result<Tracer> {
        let exporter = SpanExporter::builder()
            .with_http()
            .with_http_client(CollectorClient::default())
            .with_protocol(Protocol::HttpBinary)
            .with_endpoint(endpoint)
            .build();
        let exporter =
            exporter.map_err(|error| io::Error::new(io::ErrorKind::InvalidInput, error.to_string()))?;
        let provider =
            SdkTracerProvider::builder().with_resource(resource()).with_batch_exporter(exporter).build();
        Ok(Tracer { tracer: provider.tracer("kernmill"), provider })
    }

    /// The span of a request with these headers; `None` if its route makes no text.
    pub fn begin(&self, route: &'static str, headers: &HeaderMap) -> Option<RequestSpan> {
        let operation = names::operation(route)?;
        let parent =
            TraceContextPropagator::new().extract_with_context(&Context::new(), &HeaderExtractor(headers));
        Some(RequestSpan { tracer: self.clone(), operation, parent })
    }

    /// Sends what has not been sent, and takes no more spans. It waits for the collector, as long as `limit`.
    pub fn finish(&self, limit: Duration) {
        if let Err(error) = self.provider.shutdown_with_timeout(limit) {
            tracing::warn!("the last spans may be lost: {error}");
        }
    }
}

impl RequestSpan {
    /// Makes the span of a request that has ended; the id of its trace.
    pub fn end(&self, ended: &Ended<'_>) -> String {
        let tracer = &self.tracer.tracer;
        let builder = SpanBuilder::from_name(names::span(self.operation, ended))
            .with_kind(SpanKind::Server)
            .with_start_time(ended.began)
            .with_attributes(names::attributes(self.operation, ended))
            .with_events(names::events(ended));
        let mut span = tracer.build_with_context(builder, &self.parent);
        span.set_status(names::status(ended));
        span.end_with_timestamp(ended.began + ended.total);
        span.span_context().trace_id().to_string()
    }
}

/// The collector's address for traces: that of the option, or of OpenTelemetry's variables.
fn named(option: Option<&str>, variable: impl Fn(&str) -> Option<String>) -> io::Result<Option<String>> {
    let variable = |name: &str| variable(name).filter(|value| !value.is_empty());
    let (source, address) = if let Some(address) = option {
        ("--otlp", address.to_owned())
    } else if variable("OTEL_SDK_DISABLED").is_some_and(|value| value.eq_ignore_ascii_case("true")) {
        return Ok(None);
    } else if let Some(address) = variable("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT") {
        // This one is whole by OpenTelemetry's rules.
        return check("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", &address).map(|()| Some(address));
    } else if let Some(address) = variable("OTEL_EXPORTER_OTLP_ENDPOINT") {
        ("OTEL_EXPORTER_OTLP_ENDPOINT", address)
    } else {
        return Ok(None);
    };
    check(source, &address)?;
    Ok(Some(format!("{}{PATH}", address.trim_end_matches('/'))))
}

/// Checks that an address can be sent to.
fn check(source: &str, address: &str) -> io::Result<()> {
    let wrong = |what: &str| {
        let message = format!("{source} {address}: {what}, expected http://HOST:PORT");
        Err(io::Error::new(io::ErrorKind::InvalidInput, message))
    };
    let Ok(uri) = address.parse::<Uri>() else { return wrong("no address") };
    match (uri.scheme_str(), uri.host()) {
        (Some("https"), _) => wrong("TLS is not supported here (a collector on this machine sends on)"),
        (Some("http"), Some(host)) if !host.is_empty() && uri.query().is_none() => Ok(()),
        _ => wrong("no address"),
    }
}

/// The attributes of this process in spans: those of the environment, and the program's name if these have no
/// name.
fn resource() -> Resource {
    let builder = || {
        let version = KeyValue::new("service.version", env!("CARGO_PKG_VERSION"));
        Resource::builder().with_attribute(version)
    };
    let found = builder().build();
    let name = found.get(&Key::from_static_str("service.name"));
    match name.is_some_and(|name| !name.as_str().starts_with("unknown_service")) {
        true => found,
        false => builder().with_service_name("kernmill").build(),
    }
}
