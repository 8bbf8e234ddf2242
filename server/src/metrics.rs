//! Figures for operators, in the text format of Prometheus. Names are vLLM's, so that its dashboards work,
//! and kernmill's own where vLLM has none.

use crate::backend::{Figures, Load};
use kernmill::chat::Anomalies;
use prometheus_client::encoding::text::encode;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::Registry;
use std::borrow::Cow;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// Upper ends of times, in seconds.
const SECONDS: [f64; 16] =
    [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 20.0, 40.0, 80.0, 160.0, 640.0];

/// Upper ends of lengths, in tokens.
const LENGTHS: [f64; 16] =
    [1.0, 2.0, 5.0, 10.0, 20.0, 50.0, 100.0, 200.0, 500.0, 1e3, 2e3, 5e3, 1e4, 2e4, 5e4, 1e5];

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
    queued: Histogram,
    prefill: Histogram,
    decode: Histogram,
    prompt_length: Histogram,
    answer_length: Histogram,
    tokens: Counter,
    /// In the order of [`gauges`].
    gauges: Vec<Gauge<f64, AtomicU64>>,
    /// In the order of [`counters`].
    counters: Vec<Counter>,
}

/// Names of figures that the load has, and what they are.
type Named<T, const N: usize> = [(&'static str, &'static str, T); N];

/// A text as the value of a label: the registry writes values as they are.
fn escaped(text: &str) -> String {
    text.replace('\\', r"\\").replace('"', r#"\""#).replace('\n', r"\n")
}

/// Figures of the load that go up and down.
fn gauges(load: &Load) -> Named<f64, 9> {
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
        ("kernmill_draining", "Whether no more requests are taken up, 1 or 0", f64::from(load.is_draining)),
        ("kernmill_engine_failed", "Whether the engine has failed, 1 or 0", f64::from(load.has_failed)),
    ]
}

/// Figures of the load that only grow.
fn counters(load: &Load) -> Named<u64, 9> {
    [
        ("vllm:num_preemptions", "Sequences that lost their place", load.preemptions),
        ("vllm:prompt_tokens", "Tokens of prompts", load.prompt_tokens),
        ("vllm:prompt_tokens_cached", "Tokens of prompts that were cached", load.cached_tokens),
        ("vllm:generation_tokens", "Tokens generated", load.generated_tokens),
        ("vllm:prefix_cache_queries", "Tokens that were looked up", load.prompt_tokens),
        ("vllm:prefix_cache_hits", "Tokens that were cached", load.cached_tokens),
        ("vllm:spec_decode_num_draft_tokens", "Tokens of drafts that steps checked", load.drafts.tokens),
        ("vllm:spec_decode_num_accepted_tokens", "Tokens of drafts that were right", load.drafts.accepted),
        ("kernmill_steps", "Steps of the engine", load.steps),
    ]
}

impl Metrics {
    /// Figures of a model, whose name all series have: vLLM's dashboards choose by it, and by the number
    /// of the engine. There is one engine.
    pub(crate) fn new(model: &str) -> Metrics {
        let times = || Histogram::new(SECONDS);
        let lengths = || Histogram::new(LENGTHS);
        let labels: [(Cow<'static, str>, Cow<'static, str>); 2] = [
            (Cow::Borrowed("model_name"), Cow::Owned(escaped(model))),
            (Cow::Borrowed("engine"), Cow::Borrowed("0")),
        ];
        let mut metrics = Metrics {
            registry: Registry::with_labels(labels.into_iter()),
            requests: Family::default(),
            finished: Family::default(),
            anomalies: Family::default(),
            first_token: times(),
            token: times(),
            took: times(),
            queued: times(),
            prefill: times(),
            decode: times(),
            prompt_length: lengths(),
            answer_length: lengths(),
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
            ("vllm:request_queue_time_seconds", "From the arrival until it first ran", &metrics.queued),
            (
                "vllm:request_prefill_time_seconds",
                "From when it first ran to the first token",
                &metrics.prefill,
            ),
            ("vllm:request_decode_time_seconds", "From the first token to the end", &metrics.decode),
            ("vllm:request_prompt_tokens", "Tokens of the prompt", &metrics.prompt_length),
            ("vllm:request_generation_tokens", "Tokens of the answer", &metrics.answer_length),
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
        self.decode.observe(took.saturating_sub(first).as_secs_f64());
        if tokens > 1 {
            self.token.observe(took.saturating_sub(first).as_secs_f64() / (tokens - 1) as f64);
        }
    }

    /// Notes the figures of a request, if it has ended: of one whose client left they are not whole.
    pub(crate) fn counted(&self, prompt_tokens: u64, figures: &Figures) {
        let Some(queued) = figures.queued else { return };
        self.queued.observe(queued.as_secs_f64());
        self.prompt_length.observe(prompt_tokens as f64);
        self.answer_length.observe(figures.tokens as f64);
        if let Some(first) = figures.first_token {
            self.prefill.observe(first.saturating_sub(queued).as_secs_f64());
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

#[cfg(test)]
mod tests {
    use super::Metrics;
    use crate::backend::{Figures, Load};
    use std::time::Duration;

    #[test]
    fn every_series_has_the_name_of_the_model() {
        let metrics = Metrics::new("nano");
        metrics.responded("/ready", 503);
        metrics.ended("stop", 5, None, Duration::from_millis(100));
        let load = Load { is_draining: true, cached_tokens: 7, ..Load::default() };
        let text = metrics.text(&load);
        for line in text.lines().filter(|line| !line.starts_with('#')) {
            assert!(line.contains(r#"{model_name="nano",engine="0""#), "{line}");
        }
        for line in [
            r#"kernmill_draining{model_name="nano",engine="0"} 1.0"#,
            r#"kernmill_engine_failed{model_name="nano",engine="0"} 0.0"#,
            r#"vllm:prompt_tokens_cached_total{model_name="nano",engine="0"} 7"#,
            r#"_http_responses_total{model_name="nano",engine="0",route="/ready",status="503"} 1"#,
            r#"vllm:request_success_total{model_name="nano",engine="0",finished_reason="stop"} 1"#,
        ] {
            assert!(text.contains(line), "{line} in {text}");
        }
    }

    #[test]
    fn a_name_of_any_characters_stays_within_its_label() {
        let text = Metrics::new("a\"b\\c\nd").text(&Load::default());
        let line = r#"kernmill_steps_total{model_name="a\"b\\c\nd",engine="0"} 0"#;
        assert!(text.lines().any(|found| found == line), "{line} in {text}");
    }

    #[test]
    fn lengths_and_times_are_those_of_requests_that_have_ended() {
        let metrics = Metrics::new("nano");
        let [queued, first, took] = [20, 60, 100].map(Duration::from_millis);
        let left = Figures { tokens: 2, ..Figures::default() };
        metrics.counted(1000, &left);
        let ended = Figures { tokens: 5, queued: Some(queued), first_token: Some(first), ..left };
        metrics.counted(30, &ended);
        metrics.ended("stop", 5, Some(first), took);
        let text = metrics.text(&Load::default());
        for (name, sum) in [
            ("request_queue_time_seconds", "0.02"),
            ("request_prefill_time_seconds", "0.04"),
            ("request_decode_time_seconds", "0.04"),
            ("request_prompt_tokens", "30.0"),
            ("request_generation_tokens", "5.0"),
        ] {
            for line in [format!("_sum{{model_name=\"nano\",engine=\"0\"}} {sum}"), COUNT.to_owned()] {
                assert!(text.contains(&format!("vllm:{name}{line}\n")), "{name}{line} in {text}");
            }
        }
        for (end, count) in [("20.0", 0), ("50.0", 1)] {
            let labels = format!(r#"model_name="nano",engine="0",le="{end}""#);
            let line = format!("vllm:request_prompt_tokens_bucket{{{labels}}} {count}");
            assert!(text.contains(&line), "{line} in {text}");
        }
    }

    /// What follows the name of a histogram of one request.
    const COUNT: &str = r#"_count{model_name="nano",engine="0"} 1"#;
}
