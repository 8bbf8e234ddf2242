//! Commands that documents and help texts show.

use super::{call, files, root};
use crate::harness::program;
use std::fs;

#[test]
fn commands_in_documents_parse() {
    let mut count = 0;
    for document in files(root(), &["md"]) {
        let text = fs::read_to_string(&document).unwrap();
        for block in text.split("```sh").skip(1) {
            for line in block.split("```").next().unwrap().lines() {
                if let Some(call) = call(line) {
                    assert_parses(call, &document.display().to_string());
                    count += 1;
                }
            }
        }
    }
    assert!(count > 10, "found only {count} commands");
}

#[test]
fn examples_in_help_texts_parse() {
    let general = help(&["--help"]);
    let commands: Vec<&str> = general
        .lines()
        .skip_while(|line| *line != "Commands:")
        .skip(1)
        .take_while(|line| !line.is_empty())
        .filter(|line| line.starts_with("  ") && !line.starts_with("   "))
        .filter_map(|line| line.split_whitespace().next())
        .filter(|command| *command != "help")
        .collect();
    assert!(commands.len() >= 7, "{commands:?}");
    let readme = fs::read_to_string(root().join("README.md")).unwrap();
    for command in commands {
        assert!(
            readme.contains(&format!("| `kernmill {command}` |")),
            "README.md does not list `kernmill {command}`"
        );
        let text = help(&[command, "--help"]);
        let examples: Vec<&str> = text.lines().filter_map(|line| line.strip_prefix("  kernmill ")).collect();
        assert!(!examples.is_empty(), "`kernmill {command} --help` has no examples");
        for example in examples {
            assert_parses(example.split("   ").next().unwrap(), command);
        }
    }
}

#[test]
fn the_readmes_test_command_is_the_one_that_ci_runs() {
    let readme = fs::read_to_string(root().join("README.md")).unwrap();
    let ci = fs::read_to_string(root().join(".ci/run")).unwrap();
    let command = ci.lines().last().unwrap().strip_prefix("step ").unwrap();
    assert!(command.starts_with("cargo test"), "{command}");
    assert!(readme.contains(&format!("```sh\n{command}\n```")), "README.md does not have `{command}`");
}

fn help(args: &[&str]) -> String {
    // Examples stand on one line each where there is room.
    let output = program().args(args).env("COLUMNS", "200").output().unwrap();
    assert!(output.status.success(), "{args:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

/// Arguments are parsed up to the `--help` behind them, which then does nothing but print.
fn assert_parses(line: &str, place: &str) {
    // What follows is for the shell.
    let mut args = words(line.split(['>', '|']).next().unwrap());
    if args.first().is_some_and(|first| first == "help") {
        args.remove(0);
    }
    args.push("--help".to_owned());
    let output = program().args(&args).output().unwrap();
    assert!(
        output.status.success(),
        "{place}: `kernmill {line}`: {}",
        String::from_utf8_lossy(&output.stderr)
    );
}

/// Words of a shell command; quotes are all it may have.
pub fn words(line: &str) -> Vec<String> {
    let mut words = Vec::new();
    let mut word = None::<String>;
    let mut quote = None;
    for c in line.chars() {
        match (quote, c) {
            (Some(open), c) if c == open => quote = None,
            (None, '\'' | '"') => {
                quote = Some(c);
                word.get_or_insert_default();
            }
            (None, c) if c.is_whitespace() => words.extend(word.take()),
            (_, c) => word.get_or_insert_default().push(c),
        }
    }
    words.extend(word);
    words
}
