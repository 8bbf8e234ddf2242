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
    let cases: [(&str, &str, &[&str]); 4] = [
        ("KERNMILL_THREADS", "many", &["--threads", "invalid value 'many'"]),
        ("KERNMILL_PRESET", "best", &["--preset", "faithful"]),
        ("KERNMILL_TEMP", "-1", &["--temp", "at least 0"]),
        ("KERNMILL_JSON", "perhaps", &["--json"]),
    ];
    for (variable, value, parts) in cases {
        with(&sandbox, &[model, (variable, value)], &["run", "--tokens", "ids.json"]).refused(parts);
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
