//! Requests that cannot be served: exit status 2, before any work.

use super::{Sandbox, kernmill};
use kernmill_plan::target::Level;

#[test]
fn token_ids_must_be_a_list_of_ids_of_the_vocabulary() {
    let sandbox = Sandbox::of("gptoss-base");
    for (ids, parts) in [
        ("[1, 96]", &["ids.json", "token 1 is 96", "below 96"][..]),
        ("[-1]", &["token 0 is -1"]),
        ("[0.5]", &["token 0 is 0.5"]),
        ("[\"one\"]", &["token 0 is \"one\""]),
        ("{}", &["expected a JSON list of token ids"]),
        ("[1, 2", &["expected a JSON list of token ids"]),
        ("[]", &["the prompt has no tokens"]),
    ] {
        sandbox.write("ids.json", ids);
        sandbox.refuses(&[], parts);
        let run = ["run", "--spec", "spec.toml", "--weights", ".", "--tokens", "ids.json"];
        sandbox.run(&run).refused(parts);
    }
    std::fs::remove_file(sandbox.path("ids.json")).unwrap();
    sandbox.refuses(&[], &["ids.json", "No such file"]);
}

#[test]
fn a_prompt_must_fit_the_context() {
    let sandbox = Sandbox::of("gptoss-base");
    let ids = vec!["1"; 200_000].join(",");
    sandbox.write("ids.json", format!("[{ids}]"));
    sandbox.refuses(&[], &["the prompt has 200000 tokens, the context holds"]);
    let run = ["run", "--spec", "spec.toml", "--weights", ".", "--tokens", "ids.json"];
    sandbox.run(&run).refused(&["the prompt has 200000 tokens, the context holds"]);

    kernmill(&["run", "--prompt", "one two three four", "--context", "3"]).refused(&["the context holds 3"]);
    let long = "x ".repeat(4000);
    kernmill(&["run", "--prompt", &long])
        .refused(&["the context holds 2048, the model's longest: shorten it"]);
    let shorter = ["run", "--prompt", &long, "--context", "99"];
    kernmill(&shorter).refused(&["8000 bytes", "raise --context (at most 2048, the model's longest)"]);
    let some = "x ".repeat(400);
    kernmill(&["run", "--prompt", &some, "--context", "99"])
        .refused(&["tokens, the context holds 99: shorten it, or raise --context"]);
    kernmill(&["run", "--context", "0"]).refused(&["--context is 0, expected 1 to 2048"]);
    kernmill(&["run", "--context", "2049"]).refused(&["--context is 2049, expected 1 to 2048"]);
    kernmill(&["bench", "--pp", "2049"]).refused(&["--pp 2049", "at most 2048"]);
    kernmill(&["bench", "--depth", "0,2000", "--tg", "49"])
        .refused(&["--depth 2000 and --tg 49", "together at most 2048"]);
}

#[test]
fn memory_and_disk_are_checked_before_the_work() {
    kernmill(&["run", "--max-memory", "1M"]).refused(&["not enough memory", " needed", "1.00 MB allowed"]);
    let sandbox = Sandbox::of("gptoss-base");
    sandbox.refuses(&["--max-memory", "1K"], &["not enough memory"]);
    // A file system without any room.
    sandbox.run(&["synth", "spec.toml", "-o", "/proc"]).refused(&["/proc", "bytes needed, 0 free"]);
    let logits = ["logits", "--tokens", "ids.json", "--out", "/proc/out.safetensors"];
    sandbox.run(&logits).refused(&["/proc", "not enough disk space"]);
}

#[test]
fn a_target_that_this_cpu_lacks_is_refused_by_the_features_name() {
    for level in Level::ALL.into_iter().filter(|level| !level.missing().is_empty()) {
        let missing = level.missing();
        kernmill(&["run", "--target", level.name()]).refused(&["this CPU lacks", missing[0], level.name()]);
        let explain = kernmill(&["explain", "model-specs/nano/nano.toml", "--target", level.name()]);
        assert!(explain.text().contains(level.name()), "explaining needs no CPU");
    }
    kernmill(&["run", "--target", "x86-64-v9"]).refused(&["x86-64-v9", "x86-64-v3, "]);
}

#[test]
fn text_needs_a_tokenizer_and_a_prompt() {
    let sandbox = Sandbox::of("gptoss-base");
    let run =
        |more: &[&str]| sandbox.run(&[&["run", "--spec", "spec.toml", "--weights", "."], more].concat());
    run(&["--prompt", "text"]).refused(&["no tokenizer.json", "--tokens"]);
    run(&[]).refused(&["--prompt", "--tokens"]);
    run(&["--tokens", "ids.json", "--stop", "x"]).refused(&["--stop needs a tokenizer.json"]);
    run(&["--prompt-file", "no-such-file"]).refused(&["no-such-file"]);
    kernmill(&["run", "--prompt", "a", "--tokens", "ids.json"]).refused(&["cannot be used with"]);
    kernmill(&["run", "--spec", "spec.toml"]).refused(&["spec.toml", "No such file"]);
    sandbox.run(&["run", "--spec", "spec.toml"]).refused(&["--weights is missing", "kernmill synth"]);
}

#[test]
fn sampling_parameters_must_be_in_range() {
    for (args, parts) in [
        (["--temp", "nan"], &["--temp", "at least 0"][..]),
        (["--temp", "-1"], &["invalid value '-1'", "--temp", "at least 0"]),
        (["--seed", "-2"], &["--seed", "-1 for any"]),
        (["-n", "-2"], &["--max-tokens", "-1 for as many as fit"]),
        (["--top-k", "-1"], &["--top-k", "0 for all tokens"]),
        (["--context", "-1"], &["--context"]),
        (["--top-p", "0"], &["--top-p", "more than 0 and at most 1"]),
        (["--min-p", "1.5"], &["--min-p", "0 to 1"]),
        (["--repeat-penalty", "0"], &["--repeat-penalty", "more than 0"]),
        (["--logit-bias", "3072=1"], &["token 3072", "less than 3072"]),
        (["--logit-bias", "some=1"], &["expected ID=BIAS"]),
        (["--max-memory", "lots"], &["expected a number of bytes"]),
        (["--threads", "0"], &["--threads", "1..="]),
        (["--chunk", "0"], &["--chunk", "1..="]),
        (["--preset", "fastest"], &["fastest", "exact, faithful"]),
    ] {
        kernmill(&[&["run"], &args[..]].concat()).refused(parts);
    }
}
