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
use std::sync::atomic::AtomicU64;
use std::time::Duration;

/// Upper ends of times, in seconds.
const SECONDS: [f64; 16] =
    [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 20.0, 40.0, 80.0, 160.0, 640.0];

type Labels = Vec<(String, String)>;

/// Figures that grow with the requests.
pub struct Metrics {
    requests: Family<Labels, Counter>,
    finished: Family<Labels, Counter>,
    anomalies: Family<Labels, Counter>,
    first_token: Histogram,
    token: Histogram,
    took: Histogram,
    tokens: Counter,
}

impl Metrics {
    pub(crate) fn new() -> Metrics {
        let times = || Histogram::new(SECONDS);
        Metrics {
            requests: Family::default(),
            finished: Family::default(),
            anomalies: Family::default(),
            first_token: times(),
            token: times(),
            took: times(),
            tokens: Counter::default(),
        }
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
        let mut registry = Registry::default();
        let gauge = |value: f64| {
            let gauge = Gauge::<f64, AtomicU64>::default();
            gauge.set(value);
            gauge
        };
        let counter = |value: u64| {
            let counter: Counter = Counter::default();
            counter.inc_by(value);
            counter
        };
        let all = |counts: [u32; 3]| f64::from(counts.iter().sum::<u32>());
        let [total, used, cached] = load.kv_bytes;
        let part = if total > 0 { used as f64 / total as f64 } else { 0.0 };
        registry.register("vllm:num_requests_running", "Requests that run", gauge(all(load.running)));
        registry.register("vllm:num_requests_waiting", "Requests that wait", gauge(all(load.waiting)));
        registry.register(
            "vllm:kv_cache_usage_perc",
            "Part of the KV cache that requests use, 1 is all",
            gauge(part),
        );
        registry.register(
            "vllm:num_preemptions",
            "Sequences that lost their place",
            counter(load.preemptions),
        );
        registry.register("vllm:prompt_tokens", "Tokens of prompts", counter(load.prompt_tokens));
        registry.register("vllm:generation_tokens", "Tokens generated", counter(load.generated_tokens));
        registry.register(
            "vllm:prefix_cache_queries",
            "Tokens that were looked up",
            counter(load.prompt_tokens),
        );
        registry.register("vllm:prefix_cache_hits", "Tokens that were cached", counter(load.cached_tokens));
        registry.register("vllm:request_success", "Answers by how they ended", self.finished.clone());
        registry.register(
            "vllm:time_to_first_token_seconds",
            "From the arrival to the first token",
            self.first_token.clone(),
        );
        registry.register(
            "vllm:request_time_per_output_token_seconds",
            "Between tokens of an answer, in the mean",
            self.token.clone(),
        );
        registry.register(
            "vllm:e2e_request_latency_seconds",
            "From the arrival to the end",
            self.took.clone(),
        );
        registry.register("kernmill_http_responses", "Responses by route and status", self.requests.clone());
        registry.register(
            "kernmill_format_anomalies",
            "Deviations of answers from their format",
            self.anomalies.clone(),
        );
        registry.register("kernmill_answer_tokens", "Tokens of answers that have ended", self.tokens.clone());
        registry.register(
            "kernmill_kv_cached_bytes",
            "Bytes that only the prefix cache uses",
            gauge(cached as f64),
        );
        registry.register("kernmill_kv_bytes", "Bytes of the KV cache", gauge(total as f64));
        registry.register("kernmill_steps", "Steps of the engine", counter(load.steps));
        registry.register(
            "kernmill_busy_seconds",
            "Seconds in which the engine ran",
            gauge(load.busy_seconds),
        );
        registry.register(
            "kernmill_last_step_seconds",
            "Seconds of the last step",
            gauge(load.last_step_seconds),
        );
        let mut text = String::new();
        // Writing to a string does not fail.
        let _ = encode(&mut text, &registry);
        text
    }
}
