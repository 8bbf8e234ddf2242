//! Figures for operators, in the text format of Prometheus. Names are vLLM's, so that its dashboards work,
//! and kernmill's own where vLLM has none.

use crate::backend::{AdapterLoad, AnswerFigures, BackendLoad, CacheFacts};
use crate::pace::{StepHistograms, lengths, times};
use kernmill_chat::Anomalies;
use prometheus_client::encoding::text::encode;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::Registry;
use std::borrow::Cow;
use std::collections::BTreeSet;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

type Labels = Vec<(String, String)>;

/// Figures since the start, and those of the last look at the load.
#[derive(Debug)]
pub struct Metrics {
    /// Name of the model.
    model: String,
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
    ran: Histogram,
    prompt_length: Histogram,
    answer_length: Histogram,
    answers: Histogram,
    wanted: Histogram,
    longest: Histogram,
    accepted_at: Family<Labels, Counter>,
    sleep: Family<Labels, Gauge<f64, AtomicU64>>,
    adapters: Family<Labels, Gauge<f64, AtomicU64>>,
    tokens: Counter,
    /// In the order of [`gauges`].
    gauges: Vec<Gauge<f64, AtomicU64>>,
    /// In the order of [`counters`].
    counters: Vec<Counter>,
}

/// Names of figures that the load has, and what they are.
type NamedFigures<T, const N: usize> = [(&'static str, &'static str, T); N];

/// A text as the value of a label: the registry writes values as they are.
fn escaped(text: &str) -> String {
    text.replace('\\', r"\\").replace('"', r#"\""#).replace('\n', r"\n")
}

/// Labels of a series besides those that all have.
fn labels<const N: usize>(pairs: [(&str, String); N]) -> Labels {
    pairs.into_iter().map(|(name, value)| (name.to_owned(), value)).collect()
}

/// Figures of the load that go up and down.
fn gauges(load: &BackendLoad) -> NamedFigures<f64, 10> {
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
        (
            "kernmill_stage_lost",
            "Whether another stage is away, 1 or 0",
            f64::from(load.stage_lost.is_some()),
        ),
    ]
}

/// Figures of the load that only grow.
fn counters(load: &BackendLoad) -> NamedFigures<u64, 10> {
    [
        ("vllm:num_preemptions", "Sequences that lost their place", load.preemptions),
        ("vllm:prompt_tokens", "Tokens of prompts", load.prompt_tokens),
        ("vllm:prompt_tokens_cached", "Tokens of prompts that were cached", load.cached_tokens),
        ("vllm:generation_tokens", "Tokens generated", load.generated_tokens),
        ("vllm:prefix_cache_queries", "Tokens that were looked up", load.prompt_tokens),
        ("vllm:prefix_cache_hits", "Tokens that were cached", load.cached_tokens),
        ("vllm:spec_decode_num_drafts", "Drafts that steps checked", load.checked_drafts),
        ("vllm:spec_decode_num_draft_tokens", "Tokens of drafts that steps checked", load.drafts.tokens),
        ("vllm:spec_decode_num_accepted_tokens", "Tokens of drafts that were right", load.drafts.accepted),
        ("kernmill_steps", "Steps of the engine", load.steps),
    ]
}

impl Metrics {
    /// Figures of a model, whose name all series have: vLLM's dashboards choose by it, and by the number
    /// of its engine. A model has one engine, with this KV cache and these histograms of its steps.
    pub(crate) fn new(model: &str, cache: Option<&CacheFacts>, pace: &StepHistograms) -> Metrics {
        let common: [(Cow<'static, str>, Cow<'static, str>); 2] = [
            (Cow::Borrowed("model_name"), Cow::Owned(escaped(model))),
            (Cow::Borrowed("engine"), Cow::Borrowed("0")),
        ];
        let mut metrics = Metrics {
            model: model.to_owned(),
            registry: Registry::with_labels(common.into_iter()),
            requests: Family::default(),
            finished: Family::default(),
            anomalies: Family::default(),
            first_token: times(),
            token: times(),
            took: times(),
            queued: times(),
            prefill: times(),
            decode: times(),
            ran: times(),
            prompt_length: lengths(),
            answer_length: lengths(),
            answers: lengths(),
            wanted: lengths(),
            longest: lengths(),
            accepted_at: Family::default(),
            sleep: Family::default(),
            adapters: Family::default(),
            tokens: Counter::default(),
            gauges: Vec::new(),
            counters: Vec::new(),
        };
        let registry = &mut metrics.registry;
        for (name, about, _) in gauges(&BackendLoad::default()) {
            let gauge = Gauge::default();
            registry.register(name, about, gauge.clone());
            metrics.gauges.push(gauge);
        }
        for (name, about, _) in counters(&BackendLoad::default()) {
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
            ("vllm:request_inference_time_seconds", "From when it first ran to the end", &metrics.ran),
            ("vllm:inter_token_latency_seconds", "Between steps that gave a text tokens", &pace.between),
            ("vllm:iteration_tokens_total", "Tokens of a step", &pace.step_tokens),
            ("vllm:request_prompt_tokens", "Tokens of the prompt", &metrics.prompt_length),
            ("vllm:request_generation_tokens", "Tokens of the answer", &metrics.answer_length),
            ("vllm:request_params_n", "Answers to each prompt", &metrics.answers),
            ("vllm:request_params_max_tokens", "Tokens that an answer may have", &metrics.wanted),
            ("vllm:request_max_num_generation_tokens", "Tokens of the longest answer", &metrics.longest),
        ] {
            registry.register(name, about, histogram.clone());
        }
        for (name, about, family) in [
            ("vllm:request_success", "Answers by how they ended", &metrics.finished),
            ("kernmill_http_responses", "Responses by route and status", &metrics.requests),
            ("kernmill_format_anomalies", "Deviations of answers from their format", &metrics.anomalies),
            (
                "vllm:spec_decode_num_accepted_tokens_per_pos",
                "Drafts whose token at this position was right",
                &metrics.accepted_at,
            ),
        ] {
            registry.register(name, about, family.clone());
        }
        for (name, about, family) in [
            ("vllm:engine_sleep_state", "The state that the engine is in, 1 or 0", &metrics.sleep),
            (
                "vllm:lora_requests_info",
                "Adapters of requests that run and wait; the value is when this was so",
                &metrics.adapters,
            ),
        ] {
            registry.register(name, about, family.clone());
        }
        if let Some(cache) = cache {
            let info: Family<Labels, Gauge<f64, AtomicU64>> = Family::default();
            let described = labels([
                ("block_size", cache.block_tokens.to_string()),
                ("cache_dtype", escaped(&cache.format)),
                ("enable_prefix_caching", "True".to_owned()),
                ("num_gpu_blocks", cache.blocks.to_string()),
            ]);
            info.get_or_create(&described).set(1.0);
            registry.register("vllm:cache_config_info", "The KV cache", info);
        }
        let about = "Tokens of answers that have ended";
        registry.register("kernmill_answer_tokens", about, metrics.tokens.clone());
        metrics
    }

    /// Name of the model.
    pub(crate) fn model(&self) -> &str {
        &self.model
    }

    /// Notes a response to a route of the server.
    pub(crate) fn responded(&self, route: &'static str, status: u16) {
        let labels = labels([("route", route.to_owned()), ("status", status.to_string())]);
        self.requests.get_or_create(&labels).inc();
    }

    /// Notes an answer that has ended.
    pub(crate) fn ended(&self, reason: &str, tokens: usize, first_token: Option<Duration>, took: Duration) {
        self.finished.get_or_create(&labels([("finished_reason", reason.to_owned())])).inc();
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
    pub(crate) fn counted(&self, prompt_tokens: u64, figures: &AnswerFigures) {
        let Some(queued) = figures.queued else { return };
        self.queued.observe(queued.as_secs_f64());
        self.prompt_length.observe(prompt_tokens as f64);
        self.answer_length.observe(figures.tokens as f64);
        if let Some(first) = figures.first_token {
            self.prefill.observe(first.saturating_sub(queued).as_secs_f64());
        }
        if let Some(took) = figures.took {
            self.ran.observe(took.saturating_sub(queued).as_secs_f64());
        }
    }

    /// Notes a client's request whose answers have all ended: answers to each prompt, tokens that each may
    /// have, and tokens of the longest.
    pub(crate) fn asked(&self, answers: u64, wanted: u64, longest: u64) {
        self.answers.observe(answers as f64);
        self.wanted.observe(wanted as f64);
        self.longest.observe(longest as f64);
    }

    /// Sets what is told of drafts by position, of the engine's state, and of adapters.
    fn tell(&self, load: &BackendLoad) {
        // The first position is there before the first draft.
        for position in 0..load.accepted_at.len().max(1) {
            let counter = self.accepted_at.get_or_create_owned(&labels([("position", position.to_string())]));
            let count = load.accepted_at.get(position).copied().unwrap_or_default();
            counter.inner().store(count, Ordering::Relaxed);
        }
        // The weights always stay, so that an engine is awake or gone.
        let states = [("awake", !load.has_failed), ("weights_offloaded", false), ("discard_all", false)];
        for (state, is) in states {
            let gauge = self.sleep.get_or_create_owned(&labels([("sleep_state", state.to_owned())]));
            gauge.set(f64::from(is));
        }
        // Another state of the adapters is another series: only the present one is told.
        self.adapters.clear();
        if let Some(AdapterLoad { most, queue, at }) = &load.adapters {
            let names = |names: &BTreeSet<String>| {
                escaped(&names.iter().map(String::as_str).collect::<Vec<_>>().join(","))
            };
            let labels = labels([
                ("max_lora", most.to_string()),
                ("running_lora_adapters", names(&queue.running)),
                ("waiting_lora_adapters", names(&queue.waiting)),
            ]);
            self.adapters.get_or_create(&labels).set(*at as f64);
        }
    }

    /// Notes deviations of an answer from its format.
    pub(crate) fn saw(&self, anomalies: &Anomalies) {
        for (kind, count) in anomalies.seen() {
            let labels = labels([("kind", kind.name().to_owned())]);
            self.anomalies.get_or_create(&labels).inc_by(u64::from(count));
        }
    }

    /// All figures as text.
    pub(crate) fn text(&self, load: &BackendLoad) -> String {
        for (gauge, (_, _, value)) in self.gauges.iter().zip(gauges(load)) {
            gauge.set(value);
        }
        for (counter, (_, _, value)) in self.counters.iter().zip(counters(load)) {
            counter.inner().store(value, Ordering::Relaxed);
        }
        self.tell(load);
        let mut text = String::new();
        // Writing to a string does not fail.
        let _ = encode(&mut text, &self.registry);
        text
    }
}

/// The last line of a text.
const END: &str = "# EOF\n";

/// The figures of several models as one text. By the format, all series of a name stand together, behind the
/// lines that say what it is.
pub(crate) fn merged(texts: &[String]) -> String {
    let mut families: Vec<(&str, String)> = Vec::new();
    for text in texts {
        let mut present = 0;
        for line in text.split_inclusive('\n').filter(|line| *line != END) {
            if let Some(about) = line.strip_prefix("# ") {
                let name = about.split(' ').nth(1).unwrap_or_default();
                let found = families.iter().position(|(of, _)| *of == name);
                present = found.unwrap_or(families.len());
                if found.is_none() {
                    families.push((name, String::new()));
                }
                if families[present].1.contains(line) {
                    continue;
                }
            }
            if let Some((_, lines)) = families.get_mut(present) {
                lines.push_str(line);
            }
        }
    }
    families.into_iter().map(|(_, lines)| lines).collect::<String>() + END
}

#[cfg(test)]
mod tests {
    use super::{END, Metrics, merged};
    use crate::backend::{AdapterLoad, AnswerFigures, BackendLoad, CacheFacts};
    use crate::pace::StepHistograms;
    use kernmill_serve::AdapterQueue;
    use std::time::Duration;

    fn metrics(model: &str) -> Metrics {
        Metrics::new(model, None, &StepHistograms::default())
    }

    #[test]
    fn every_series_has_the_name_of_the_model() {
        let metrics = metrics("nano");
        metrics.responded("/ready", 503);
        metrics.ended("stop", 5, None, Duration::from_millis(100));
        let load = BackendLoad { is_draining: true, cached_tokens: 7, ..BackendLoad::default() };
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
        let text = metrics("a\"b\\c\nd").text(&BackendLoad::default());
        let line = r#"kernmill_steps_total{model_name="a\"b\\c\nd",engine="0"} 0"#;
        assert!(text.lines().any(|found| found == line), "{line} in {text}");
    }

    #[test]
    fn lengths_and_times_are_those_of_requests_that_have_ended() {
        let metrics = metrics("nano");
        let [queued, first, took] = [20, 60, 100].map(Duration::from_millis);
        let left = AnswerFigures { tokens: 2, ..AnswerFigures::default() };
        metrics.counted(1000, &left);
        let ended = AnswerFigures { tokens: 5, queued: Some(queued), first_token: Some(first), ..left };
        metrics.counted(30, &ended);
        metrics.ended("stop", 5, Some(first), took);
        let text = metrics.text(&BackendLoad::default());
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

    #[test]
    fn drafts_the_cache_and_adapters_are_told_by_labels() {
        let cache = CacheFacts { block_tokens: 16, blocks: 40, format: "f16".to_owned() };
        let metrics = Metrics::new("nano", Some(&cache), &StepHistograms::default());
        let of = |running: &[&str], waiting: &[&str], at| {
            let names = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
            let queue = AdapterQueue { running: names(running), waiting: names(waiting) };
            BackendLoad { adapters: Some(AdapterLoad { most: 4, queue, at }), ..BackendLoad::default() }
        };
        metrics.text(&of(&["poet"], &[], 1_700_000_000));
        let drafts = BackendLoad {
            checked_drafts: 5,
            accepted_at: vec![4, 1],
            has_failed: true,
            ..BackendLoad::default()
        };
        let adapters = of(&["terse", "poet"], &["b\"c"], 1_800_000_000);
        let text = metrics.text(&BackendLoad { adapters: adapters.adapters, ..drafts.clone() });
        for line in [
            r#"vllm:spec_decode_num_drafts_total{} 5"#,
            r#"vllm:spec_decode_num_accepted_tokens_per_pos_total{,position="0"} 4"#,
            r#"vllm:spec_decode_num_accepted_tokens_per_pos_total{,position="1"} 1"#,
            r#"vllm:engine_sleep_state{,sleep_state="awake"} 0.0"#,
            concat!(
                r#"vllm:cache_config_info{,block_size="16",cache_dtype="f16","#,
                r#"enable_prefix_caching="True",num_gpu_blocks="40"} 1.0"#,
            ),
            concat!(
                r#"vllm:lora_requests_info{,max_lora="4",running_lora_adapters="poet,terse","#,
                r#"waiting_lora_adapters="b\"c"} 1800000000.0"#,
            ),
        ] {
            let line = line.replacen('{', r#"{model_name="nano",engine="0""#, 1);
            assert!(text.lines().any(|found| found == line), "{line} in {text}");
        }
        assert_eq!(text.matches("vllm:lora_requests_info{").count(), 1, "{text}");
        assert!(!metrics.text(&drafts).contains("lora_requests_info{"), "no adapter is loaded");
    }

    #[test]
    fn series_of_several_models_stand_together() {
        let family = |name: &str, series: &str| format!("# HELP {name} It.\n# TYPE {name} gauge\n{series}");
        let first = [family("a", "a{m=\"x\"} 1\n"), family("b", ""), END.to_owned()].concat();
        let b = family("b", "b{m=\"y\"} 2\n");
        let second = [&*b, &*family("a", "a{m=\"y\"} 3\n"), &*family("c", "c 4\n"), END].concat();
        let expected = [&*family("a", "a{m=\"x\"} 1\na{m=\"y\"} 3\n"), &*b, &*family("c", "c 4\n"), END];
        assert_eq!(merged(std::slice::from_ref(&second)), second);
        assert_eq!(merged(&[first, second]), expected.concat());
    }

    /// The text behind the name of a histogram of one request.
    const COUNT: &str = r#"_count{model_name="nano",engine="0"} 1"#;
}
