//! Texts that are held to rules.

#[path = "../../constrain/tests/constrain/random.rs"]
mod random;

use super::*;
use kernmill_constrain::{Constraint, Lexicon, Rule};
use kernmill_runtime::profile::Detail;

/// Rules of several kinds, with a check that knows nothing of how they are followed.
struct Ruled {
    rule: Rule,
    check: Box<dyn Fn(&str) -> bool>,
}

fn ruled(n: u64) -> Ruled {
    match n % 4 {
        0 => {
            let pattern = [
                "(yes|no), because the [a-z]{3,9} is (small|large)\\.",
                "[A-Z]{2}-[0-9]{3,5}(; [a-z]+ of the same kind){1,2}!",
            ];
            let pattern = pattern[n as usize / 4 % 2];
            let whole = fancy_regex::Regex::new(&format!("^(?:{pattern})$")).unwrap();
            let check = move |text: &str| whole.is_match(text).unwrap();
            Ruled { rule: Rule::Regex(pattern.to_owned()), check: Box::new(check) }
        }
        1 => {
            let grammar = "start: \"let \" NAME \": \" kind \" = Default::default();\"\nNAME: /[a-z_]{1,9}/\n\
                           kind: \"Vec<\" kind \">\" | \"u8\" | \"String\"\n";
            let check = |text: &str| {
                let inner =
                    text.strip_prefix("let ").and_then(|rest| rest.strip_suffix(" = Default::default();"));
                let (name, kind) = inner.unwrap().split_once(": ").unwrap();
                let levels = kind.matches("Vec<").count();
                let core = kind.trim_start_matches("Vec<").trim_end_matches('>');
                let closed = kind.matches('>').count();
                name.chars().all(|c| c.is_ascii_lowercase() || c == '_')
                    && (core == "u8" || core == "String")
                    && levels == closed
            };
            Ruled { rule: Rule::Lark(grammar.to_owned()), check: Box::new(check) }
        }
        _ => {
            let schema = random::schema(&mut fastrand::Rng::with_seed(n));
            let rule = Rule::JsonSchema(schema.clone());
            let check = move |text: &str| {
                let value = serde_json::from_str(text);
                value.is_ok_and(|value| random::describes(&schema, &schema, &value))
            };
            Ruled { rule, check: Box::new(check) }
        }
    }
}

/// The lexicon that holds texts of nano to rules.
fn lexicon() -> &'static Lexicon {
    static LEXICON: LazyLock<Lexicon> =
        LazyLock::new(|| kernmill::lexicon(Some(tokenizer()), 3072, &[]).unwrap());
    &LEXICON
}

/// Requests whose texts are held to rules, among others that are not. Most texts come to an end: tokens that
/// close something are made likelier.
fn ruled_requests(count: u64) -> Vec<Request> {
    let closers = ["\"", "}", "]", "."].map(|text| encode(text, false));
    let bias: Vec<(u32, f32)> =
        closers.iter().filter(|ids| ids.len() == 1).map(|ids| (ids[0], 6.0)).collect();
    let hold = |(n, request): (usize, Request)| {
        if n % 5 == 4 {
            return request;
        }
        let constraint = Constraint::new(lexicon(), &ruled(n as u64).rule).unwrap();
        let sampler = SamplerParams {
            logit_bias: bias.clone(),
            repetition_penalty: if n % 3 == 0 { 1.2 } else { 1.0 },
            ..request.sampler
        };
        let max_tokens = if n % 7 == 6 { 9 } else { 120 };
        let stop = if n % 6 == 5 { ["u8", "o", "e", "in"].map(str::to_owned).to_vec() } else { Vec::new() };
        Request { constraint: Some(constraint), sampler, max_tokens, stop, ..request }
    };
    requests(count).into_iter().enumerate().map(hold).collect()
}

#[test]
fn texts_held_to_rules_do_not_depend_on_what_runs_beside_them() {
    let mut solo = engine(256, 1, None);
    let requests = ruled_requests(40);
    let (mut complete, mut cut, mut stopped) = (0, 0, 0);
    for (n, request) in requests.iter().enumerate().filter(|(_, request)| request.constraint.is_some()) {
        let Alone { text, tokens, finish } = alone(&mut solo, request);
        match &finish {
            Finish::Complete => {
                complete += 1;
                assert!((ruled(n as u64).check)(&text), "{n}: {text} {:?}", ruled(n as u64).rule);
            }
            Finish::MaxTokens => {
                cut += 1;
                assert_eq!(tokens.len(), request.max_tokens as usize);
            }
            Finish::Text(stop) => {
                stopped += 1;
                assert!(request.stop.contains(stop) && !text.contains(stop.as_str()), "{n}: {text}");
            }
            other => panic!("{n}: {other:?}: {text}"),
        }
    }
    assert!(complete > 15 && cut > 1 && stopped > 1, "{complete} {cut} {stopped}");
    // In a crowd; in small pieces, so that forced tokens take several steps; with little memory.
    let config = SchedulerConfig { max_sequences: 6, ..SchedulerConfig::default() };
    let small = SchedulerConfig { max_batch_tokens: 7, max_forced: 1, ..config.clone() };
    let tight = SchedulerConfig { growth: 8, ..config.clone() };
    let twice = [&requests[..], &requests[..]].concat();
    for (config, memory) in [(config, None), (small, None), (tight, Some(engine_bytes() * 3 / 2))] {
        let serving = serve_on(engine(256, 6, memory), config);
        let stats = same_as_alone(serving, &twice);
        assert!(stats.hits > 0 && stats.steps < stats.generated / 2, "{stats:?}");
        assert!(stats.drafts.accepted > 0, "{stats:?}");
    }
}

/// Texts of digits and words of a list, among others that are held to rules.
fn narrow_requests(count: u64) -> Vec<Request> {
    let schema = serde_json::json!({
        "type": "object",
        "properties": {
            "kind": { "enum": ["slice", "vector", "array", "string", "iterator"] },
            "counts": { "type": "array", "items": { "type": "integer", "maximum": 9999 }, "maxItems": 4 },
            "ratio": { "type": "number", "minimum": 0, "maximum": 1 }
        },
        "required": ["kind", "counts", "ratio"],
        "additionalProperties": false
    });
    let narrow = Constraint::new(lexicon(), &Rule::JsonSchema(schema)).unwrap();
    let hold = |(n, request): (usize, Request)| match n % 4 {
        3 => request,
        _ => Request { constraint: Some(narrow.clone()), max_tokens: 60, ..request },
    };
    ruled_requests(count).into_iter().enumerate().map(hold).collect()
}

/// Logits of tokens that no form allows are not computed unless log-probabilities are asked for, which are
/// those of whole rows: no text changes.
#[test]
fn texts_are_those_of_whole_rows_although_steps_read_less() {
    let run = |logprobs: Option<u32>, sequences: u32| {
        let mut serving = serve_on(engine(256, sequences, None), SchedulerConfig::default());
        serving.engine().start_meter(Detail::Totals);
        let requests = narrow_requests(60).into_iter().map(|one| Request { logprobs, ..one });
        let ids: Vec<RequestId> = requests.map(|one| serving.submit(one).unwrap()).collect();
        let mut texts = BTreeMap::new();
        while !serving.is_empty() {
            let mut take = |id: RequestId, event| {
                if let RequestEvent::Done(answer) = event {
                    texts.insert(id, (answer.tokens, answer.finish));
                }
            };
            serving.tick(&mut take).unwrap();
        }
        let texts: Vec<_> = ids.iter().map(|id| texts.remove(id).unwrap()).collect();
        let steps = serving.stats().steps;
        (texts, serving.engine().stop_meter().total.weight_bytes as f64 / steps as f64)
    };
    // One after another, and together: what the forms of several texts leave out is less.
    for (sequences, less) in [(1, 0.95), (4, 0.99)] {
        let (expected, whole) = run(Some(0), sequences);
        let (texts, read) = run(None, sequences);
        assert_eq!(texts, expected);
        assert!(read < less * whole, "{sequences} sequences: {read} of {whole} bytes for a step");
    }
}

/// Forced tokens run in one step with the token before them.
#[test]
fn tokens_without_a_choice_take_no_steps_of_their_own() {
    let mut serving = serve_on(engine(256, 1, None), SchedulerConfig::default());
    let rule =
        Rule::Regex("(yes|no), that is what the documentation of the standard library says\\.".to_owned());
    let constraint = Constraint::new(lexicon(), &rule).unwrap();
    let request = Request { constraint: Some(constraint), ..Request::greedy(vec![5, 6, 7], 100) };
    let mut seen = 0;
    serving.submit(request.clone()).unwrap();
    while !serving.is_empty() {
        serving.tick(&mut |_, event| seen += u32::from(matches!(event, RequestEvent::Token(_)))).unwrap();
    }
    let stats = serving.stats();
    assert_eq!(u64::from(seen), stats.generated, "every token is told of");
    assert!(stats.generated > 12 && stats.steps <= 3, "{stats:?}");
    // The limit of tokens falls among the forced ones.
    for max_tokens in 1..seen {
        let ends = in_turn(&mut serving, &[Request { max_tokens, ..request.clone() }]);
        assert_eq!(ends, [Finish::MaxTokens]);
    }
    let ends = in_turn(&mut serving, &[Request { max_tokens: seen, ..request.clone() }]);
    assert_eq!(ends, [Finish::Complete], "the last token completes the text");
    // The context ends among them too.
    let short = serve_on(engine(12, 1, None), SchedulerConfig::default());
    same_as_alone(short, &[request]);
}

/// A constraint that cannot be followed, or is another model's, is its own request's trouble.
#[test]
fn a_constraint_that_fails_ends_its_request_alone() {
    let mut serving = serve_on(engine(256, 2, None), SchedulerConfig::default());
    // Every letter makes the automaton larger, until it is too much work.
    let heavy = Rule::Lark("start: /(.*a.{200}){1,50}b/\n".to_owned());
    let refused = Constraint::new(lexicon(), &Rule::Regex("(".to_owned())).unwrap_err().to_string();
    assert!(refused.starts_with("the regular expression cannot be followed"), "{refused}");
    let heavy = Constraint::new(lexicon(), &heavy).unwrap();
    let a = encode("a", false)[0];
    let sampler = SamplerParams { logit_bias: vec![(a, 50.0)], ..SamplerParams::default() };
    let held = Request { constraint: Some(heavy), sampler, ..Request::greedy(vec![1, 2], 200) };
    let ends = crowd(&mut serving, &[held, Request::greedy(vec![3, 4], 60)]);
    let Finish::Astray(why) = &ends[0] else { panic!("{ends:?}") };
    assert!(why.starts_with("the constraint cannot be followed any further") && !why.contains('\n'), "{why}");
    assert_eq!(ends[1], Finish::MaxTokens);
    let kv = serving.engine().kv();
    assert_eq!(kv.free, kv.blocks);

    let other = kernmill::lexicon(Some(tokenizer()), 3000, &[]).unwrap();
    let other = Constraint::new(&other, &Rule::JsonObject).unwrap();
    let wrong = Request { constraint: Some(other), ..Request::greedy(vec![1], 5) };
    let error = serving.submit(wrong).unwrap_err().to_string();
    assert_eq!(error, "the constraint is for a model of 3000 logits, this one has 3072");
    let nothing = Constraint::new(lexicon(), &Rule::Regex(String::new())).unwrap();
    let nothing = Request { constraint: Some(nothing), ..Request::greedy(vec![1], 5) };
    let error = serving.submit(nothing).unwrap_err().to_string();
    assert_eq!(error, "the form of the text allows only the empty text");
    // Where all that may come is forbidden besides.
    let one = Constraint::new(lexicon(), &Rule::Regex("a".to_owned())).unwrap();
    let sampler = SamplerParams { logit_bias: vec![(a, f32::NEG_INFINITY)], ..SamplerParams::default() };
    let barred = Request { constraint: Some(one), sampler, ..Request::greedy(vec![1], 5) };
    let Finish::Astray(why) = &crowd(&mut serving, &[barred])[0] else { panic!() };
    assert!(why.contains("every logit that is allowed is minus infinity"), "{why}");
}

/// Requests together, and how they ended, in their order.
fn crowd(serving: &mut Serving, requests: &[Request]) -> Vec<Finish> {
    let ids: Vec<RequestId> = requests.iter().map(|one| serving.submit(one.clone()).unwrap()).collect();
    let mut ends = BTreeMap::new();
    while !serving.is_empty() {
        serving
            .tick(&mut |id, event| {
                if let RequestEvent::Done(answer) = event {
                    ends.insert(id, answer.finish);
                }
            })
            .unwrap();
    }
    ids.iter().map(|id| ends[id].clone()).collect()
}

/// A stop string that is the text of a special token stops at the token, whether or not it is shown.
#[test]
fn a_stop_string_that_is_a_special_token_stops_there() {
    let mut serving = serve_on(engine(64, 1, None), SchedulerConfig::default());
    let end = tokenizer().get().unwrap().special_token_id("<|end|>").unwrap();
    let sampler = SamplerParams { logit_bias: vec![(end, 1000.0)], ..SamplerParams::default() };
    let request = Request { sampler, ..Request::greedy(vec![5, 6, 7], 5) };
    let mut run = |stop: &[&str], shows_special| {
        let stop = stop.iter().map(|text| (*text).to_owned()).collect();
        let request = Request { stop, shows_special, ..request.clone() };
        let Answer { text, finish, .. } = answers_in_turn(&mut serving, &[request]).remove(0);
        (text, finish)
    };
    assert_eq!(run(&[], false), (String::new(), Finish::MaxTokens));
    assert_eq!(run(&[], true), ("<|end|>".repeat(5), Finish::MaxTokens));
    assert_eq!(run(&["|><|"], true), ("<|end".to_owned(), Finish::Text("|><|".to_owned())));
    for shows_special in [false, true] {
        assert_eq!(run(&["<|end|>"], shows_special), (String::new(), Finish::Text("<|end|>".to_owned())));
    }
    // A start of a stop string that the end cuts short is text.
    assert_eq!(run(&["<|end|><|end|><|end|><|end|><|end|><"], true).0, "<|end|>".repeat(5));
}
