//! Variables of the environment: every option has one, and each gives way to the command line.

use super::{Ran, Sandbox};
use crate::harness::program;
use std::process::Output;

/// Runs the program with variables.
fn with(sandbox: &Sandbox, variables: &[(&str, &str)], args: &[&str]) -> Ran {
    let mut program = program();
    program.args(args).envs(variables.iter().copied()).current_dir(sandbox.dir.path());
    let Output { status, stdout, stderr } = program.output().unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    Ran { status: status.code(), stdout: text(stdout), stderr: text(stderr) }
}

fn help(command: &[&str]) -> String {
    let mut program = program();
    program.args(command).arg("--help").env("COLUMNS", "140");
    String::from_utf8(program.output().unwrap().stdout).unwrap()
}

/// Commands that a help text lists.
fn commands(text: &str) -> Vec<String> {
    let list = text.lines().skip_while(|line| *line != "Commands:").skip(1);
    let list = list.take_while(|line| !line.is_empty());
    let names = list.filter(|line| line.starts_with("  ") && !line.starts_with("   "));
    let names = names.filter_map(|line| line.split_whitespace().next()).filter(|name| *name != "help");
    names.map(str::to_owned).collect()
}

#[test]
fn every_option_of_every_command_has_a_variable() {
    let mut options = 0;
    let mut open: Vec<Vec<String>> = vec![Vec::new()];
    while let Some(command) = open.pop() {
        let words: Vec<&str> = command.iter().map(String::as_str).collect();
        let text = help(&words);
        open.extend(commands(&text).into_iter().map(|name| [command.clone(), vec![name]].concat()));
        for line in text.lines().map(str::trim_start).filter(|line| line.starts_with('-')) {
            let Some(name) = line.split_whitespace().find_map(|word| word.strip_prefix("--")) else {
                continue;
            };
            let name = name.trim_end_matches([',', '.']);
            if matches!(name, "help" | "version") {
                continue;
            }
            let variable = format!("[env: KERNMILL_{}]", name.to_uppercase().replace('-', "_"));
            // A line end may stand before the name.
            let words = text.split_whitespace().collect::<Vec<_>>().join(" ");
            assert!(words.contains(&variable), "{command:?} --{name}: no {variable} in\n{text}");
            options += 1;
        }
        let short = String::from_utf8(program().args(&words).arg("-h").output().unwrap().stdout).unwrap();
        assert!(!short.contains("KERNMILL_"), "the short help is short: {short}");
    }
    assert!(options > 100, "found only {options} options");
}

#[test]
fn a_variable_is_the_default_and_the_command_line_goes_before_it() {
    let sandbox = Sandbox::of("gptoss-base");
    let tokens = |variables: &[(&str, &str)], args: &[&str]| {
        let ran =
            with(&sandbox, variables, &[&["run", "--tokens", "ids.json", "--ignore-end"], args].concat());
        ran.text().split_whitespace().count()
    };
    let model = ("KERNMILL_MODEL", ".");
    assert_eq!(tokens(&[model, ("KERNMILL_MAX_TOKENS", "4"), ("KERNMILL_QUIET", "1")], &[]), 4);
    assert_eq!(tokens(&[model, ("KERNMILL_MAX_TOKENS", "4")], &["-n", "2"]), 2);
    assert_eq!(tokens(&[("KERNMILL_MODEL", "nowhere"), ("KERNMILL_THREADS", "")], &[".", "-n", "3"]), 3);
    for (flag, is_json) in [("1", true), ("yes", true), ("0", false), ("off", false), ("", false)] {
        let ran =
            with(&sandbox, &[model, ("KERNMILL_JSON", flag)], &["run", "--tokens", "ids.json", "-n", "1"]);
        assert_eq!(ran.text().starts_with('{'), is_json, "{flag:?}");
    }
}

#[test]
fn a_variable_whose_value_is_at_fault_is_named() {
    let sandbox = Sandbox::of("gptoss-base");
    let model = ("KERNMILL_MODEL", ".");
    let run = ["run", "--tokens", "ids.json"];
    let cases: [(&str, &str, &[&str]); 5] = [
        ("KERNMILL_THREADS", "many", &["invalid value 'many' for 'KERNMILL_THREADS (--threads <N>)'"]),
        ("KERNMILL_PRESET", "best", &["'KERNMILL_PRESET (--preset <PRESET>)'", "faithful"]),
        ("KERNMILL_TEMP", "-1", &["'KERNMILL_TEMP (--temp <T>)'", "at least 0"]),
        ("KERNMILL_JSON", "perhaps", &["'KERNMILL_JSON (--json)'"]),
        ("KERNMILL_LORA", "poet", &["'KERNMILL_LORA (--lora <NAME=DIR[:SCALE]>)'", "expected NAME=DIR"]),
    ];
    for (variable, value, parts) in cases {
        with(&sandbox, &[model, (variable, value)], &run).refused(parts);
    }
    // A typed value is not blamed on a variable.
    let typed = [&run[..], &["--threads", "few"]].concat();
    for threads in ["many", "1"] {
        let ran = with(&sandbox, &[model, ("KERNMILL_THREADS", threads)], &typed);
        assert!(!ran.stderr.contains("KERNMILL_"), "{}", ran.stderr);
        ran.refused(&["invalid value 'few' for '--threads <N>'"]);
    }
}

#[test]
fn a_variable_that_does_not_apply_is_noted() {
    let sandbox = Sandbox::of("gptoss-base");
    sandbox.run(&["compile", ".", "-o", "a.plan", "-q"]).text();
    let run = ["run", "a.plan", "--tokens", "ids.json", "-n", "1"];
    for (variable, value) in
        [("KERNMILL_PRESET", "exact"), ("KERNMILL_WEIGHTS", "."), ("KERNMILL_NO_FUSE", "1")]
    {
        let ran = with(&sandbox, &[(variable, value)], &run);
        assert!(
            ran.stderr.contains(&format!("note: {variable} is not used: a plan is compiled")),
            "{}",
            ran.stderr
        );
        ran.text();
        let quiet = with(&sandbox, &[(variable, value)], &[&run[..], &["-q"]].concat());
        assert_eq!(quiet.stderr, "");
    }
    let other =
        with(&sandbox, &[("KERNMILL_WEIGHTS", "elsewhere")], &["inspect", ".", "-q", "--preset", "exact"]);
    other.text();
}

#[test]
fn a_variable_that_does_not_go_with_the_command_line_gives_way_to_it() {
    let sandbox = Sandbox::of("gptoss-base");
    sandbox.run(&["synth", "spec.toml", "-o", "lora", "--lora", "2", "-q"]).text();
    sandbox.write("mish.toml", include_bytes!("../../model-specs/examples/fused/mish.toml"));
    let run = ["run", ".", "--tokens", "ids.json", "-n", "1"];
    let ran = |variables: &[(&str, &str)], args: &[&str], parts: &[&str]| {
        let ran = with(&sandbox, variables, args);
        for part in parts {
            assert!(ran.stderr.contains(part), "`{part}` is not in:\n{}", ran.stderr);
        }
        ran.text();
    };
    ran(&[("KERNMILL_PROMPT", "x")], &run, &["KERNMILL_PROMPT is not used: --tokens is given"]);
    ran(&[("KERNMILL_PROMPT_FILE", "x"), ("KERNMILL_PROMPT", "y")], &run, &["_PROMPT_FILE is", "_PROMPT is"]);
    let without = [&run[..], &["--no-adapters"]].concat();
    ran(&[("KERNMILL_LORA", "a=lora")], &without, &["KERNMILL_LORA", "--no-adapters is given"]);
    ran(&[("KERNMILL_EMIT", "graph")], &["explain", ".", "--json"], &["KERNMILL_EMIT", "--json is given"]);
    ran(
        &[("KERNMILL_EMIT_DIR", "stages")],
        &run,
        &["KERNMILL_EMIT_DIR", "goes with --emit, which is not given"],
    );
    let synth = ["synth", "spec.toml", "-o", "new"];
    ran(&[("KERNMILL_TARGETS", "q"), ("KERNMILL_DORA", "1")], &synth, &["_TARGETS is", "_DORA is", "--lora"]);
    ran(
        &[("KERNMILL_READ", "1M"), ("KERNMILL_THREADS", "1")],
        &["cpu"],
        &["_READ is", "_THREADS is", "--measure"],
    );
    let check = ["fuse", "check", "mish.toml", "--samples", "1"];
    ran(&[("KERNMILL_PRESET", "exact")], &check, &["KERNMILL_PRESET is", "--spec"]);
    assert!(!sandbox.path("stages").exists());
    let quiet = with(&sandbox, &[("KERNMILL_PROMPT", "x")], &[&run[..], &["-q"]].concat());
    assert_eq!(quiet.stderr, "");
}

#[test]
fn variables_that_go_with_each_other_are_used_and_those_that_do_not_are_refused() {
    let sandbox = Sandbox::of("gptoss-base");
    let lora = [
        ("KERNMILL_LORA", "2"),
        ("KERNMILL_TARGETS", "q"),
        ("KERNMILL_OUTPUT", "lora"),
        ("KERNMILL_QUIET", "1"),
    ];
    assert_eq!(with(&sandbox, &lora, &["synth", "spec.toml"]).text(), "");
    assert!(sandbox.read("lora/adapter_config.json").contains("q_proj"));
    assert!(!sandbox.read("lora/adapter_config.json").contains("k_proj"));
    let both = [("KERNMILL_PROMPT", "x"), ("KERNMILL_TOKENS", "ids.json")];
    let variables = ["KERNMILL_PROMPT (--prompt <TEXT>)", "KERNMILL_TOKENS (--tokens <IDS.json>)"];
    with(&sandbox, &both, &["run", "."]).refused(&[variables[0], variables[1], "cannot be used with"]);
    // The command line's own faults stay what they are.
    let typed = ["run", ".", "--tokens", "ids.json", "--prompt", "x"];
    let ran = with(&sandbox, &both, &typed);
    assert!(!ran.stderr.contains("KERNMILL_"), "{}", ran.stderr);
    ran.refused(&["cannot be used with"]);
    with(&sandbox, &both, &["run", "--no-such-option"]).refused(&["--no-such-option"]);
}

#[test]
fn what_cargo_passes_on_to_the_program_sets_no_option() {
    let names = include_str!("../../build.rs").split("cargo:rustc-env=").skip(1);
    let names: Vec<&str> = names.filter_map(|rest| Some(rest.split_once('=')?.0)).collect();
    assert!(names.len() >= 2, "{names:?}");
    let mut command = program();
    names.iter().for_each(|name| {
        command.env(name, "of the build");
    });
    let output = command.args(["run", "-n", "2"]).output().unwrap();
    let notes = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && !notes.contains("is not used"), "{notes}");
}
