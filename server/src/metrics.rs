//! Figures for operators, in the text format of Prometheus. Names are vLLM's, so that its dashboards work,
//! and kernmill's own where vLLM has none.

use crate::backend::Load;
use kernmill::chat::Anomalies;
use prometheus_client::encoding::text::encode;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::Registry;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// Upper ends of times, in seconds.
const SECONDS: [f64; 16] =
    [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 20.0, 40.0, 80.0, 160.0, 640.0];

type Labels = Vec<(String, String)>;

/// Figures since the start, and those of the last look at the load.
pub struct Metrics {
    registry: Registry,
    requests: Family<Labels, Counter>,
    finished: Family<Labels, Counter>,
    anomalies: Family<Labels, Counter>,
    first_token: Histogram,
    token: Histogram,
    took: Histogram,
    tokens: Counter,
    /// In the order of [`gauges`].
    gauges: Vec<Gauge<f64, AtomicU64>>,
    /// In the order of [`counters`].
    counters: Vec<Counter>,
}

/// Names of figures that the load has, and what they are.
type Named<T, const N: usize> = [(&'static str, &'static str, T); N];

/// Figures of the load that go up and down.
fn gauges(load: &Load) -> Named<f64, 7> {
    let all = |counts: [u32; 3]| f64::from(counts.iter().sum::<u32>());
    let [total, used, cached] = load.kv_bytes;
    let part = if total > 0 { used as f64 / total as f64 } else { 0.0 };
    [
        ("vllm:num_requests_running", "Requests that run", all(load.running)),
        ("vllm:num_requests_waiting", "Requests that wait", all(load.waiting)),
        ("vllm:kv_cache_usage_perc", "Part of the KV cache that requests use, 1 is all", part),
        ("kernmill_kv_cached_bytes", "Bytes that only the prefix cache uses", cached as f64),
        ("kernmill_kv_bytes", "Bytes of the KV cache", total as f64),
        ("kernmill_busy_seconds", "Seconds in which the engine ran", load.busy_seconds),
        ("kernmill_last_step_seconds", "Seconds of the last step", load.last_step_seconds),
    ]
}

/// Figures of the load that only grow.
fn counters(load: &Load) -> Named<u64, 8> {
    [
        ("vllm:num_preemptions", "Sequences that lost their place", load.preemptions),
        ("vllm:prompt_tokens", "Tokens of prompts", load.prompt_tokens),
        ("vllm:generation_tokens", "Tokens generated", load.generated_tokens),
        ("vllm:prefix_cache_queries", "Tokens that were looked up", load.prompt_tokens),
        ("vllm:prefix_cache_hits", "Tokens that were cached", load.cached_tokens),
        ("vllm:spec_decode_num_draft_tokens", "Tokens of drafts that steps checked", load.drafts.tokens),
        ("vllm:spec_decode_num_accepted_tokens", "Tokens of drafts that were right", load.drafts.accepted),
        ("kernmill_steps", "Steps of the engine", load.steps),
    ]
}

impl Metrics {
    pub(crate) fn new() -> Metrics {
        let times = || Histogram::new(SECONDS);
        let mut metrics = Metrics {
            registry: Registry::default(),
            requests: Family::default(),
            finished: Family::default(),
            anomalies: Family::default(),
            first_token: times(),
            token: times(),
            took: times(),
            tokens: Counter::default(),
            gauges: Vec::new(),
            counters: Vec::new(),
        };
        let registry = &mut metrics.registry;
        for (name, about, _) in gauges(&Load::default()) {
            let gauge = Gauge::default();
            registry.register(name, about, gauge.clone());
            metrics.gauges.push(gauge);
        }
        for (name, about, _) in counters(&Load::default()) {
            let counter = Counter::default();
            registry.register(name, about, counter.clone());
            metrics.counters.push(counter);
        }
        for (name, about, histogram) in [
            ("vllm:time_to_first_token_seconds", "From the arrival to the first token", &metrics.first_token),
            (
                "vllm:request_time_per_output_token_seconds",
                "Between tokens of an answer, in the mean",
                &metrics.token,
            ),
            ("vllm:e2e_request_latency_seconds", "From the arrival to the end", &metrics.took),
        ] {
            registry.register(name, about, histogram.clone());
        }
        for (name, about, family) in [
            ("vllm:request_success", "Answers by how they ended", &metrics.finished),
            ("kernmill_http_responses", "Responses by route and status", &metrics.requests),
            ("kernmill_format_anomalies", "Deviations of answers from their format", &metrics.anomalies),
        ] {
            registry.register(name, about, family.clone());
        }
        let about = "Tokens of answers that have ended";
        registry.register("kernmill_answer_tokens", about, metrics.tokens.clone());
        metrics
    }

    /// Notes a response to a route of the server.
    pub(crate) fn responded(&self, route: &'static str, status: u16) {
        let labels = vec![("route".to_owned(), route.to_owned()), ("status".to_owned(), status.to_string())];
        self.requests.get_or_create(&labels).inc();
    }

    /// Notes an answer that has ended.
    pub(crate) fn ended(&self, reason: &str, tokens: usize, first_token: Option<Duration>, took: Duration) {
        self.finished.get_or_create(&vec![("finished_reason".to_owned(), reason.to_owned())]).inc();
        self.tokens.inc_by(tokens as u64);
        self.took.observe(took.as_secs_f64());
        let Some(first) = first_token else { return };
        self.first_token.observe(first.as_secs_f64());
        if tokens > 1 {
            self.token.observe(took.saturating_sub(first).as_secs_f64() / (tokens - 1) as f64);
        }
    }

    /// Notes deviations of an answer from its format.
    pub(crate) fn saw(&self, anomalies: &Anomalies) {
        for (kind, count) in anomalies.seen() {
            let labels = vec![("kind".to_owned(), kind.name().to_owned())];
            self.anomalies.get_or_create(&labels).inc_by(u64::from(count));
        }
    }

    /// All figures as text.
    pub(crate) fn text(&self, load: &Load) -> String {
        for (gauge, (_, _, value)) in self.gauges.iter().zip(gauges(load)) {
            gauge.set(value);
        }
        for (counter, (_, _, value)) in self.counters.iter().zip(counters(load)) {
            counter.inner().store(value, Ordering::Relaxed);
        }
        let mut text = String::new();
        // Writing to a string does not fail.
        let _ = encode(&mut text, &self.registry);
        text
    }
}
