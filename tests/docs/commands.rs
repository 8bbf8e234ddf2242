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

/// Names of the commands that a help text lists.
pub fn listed(help: &str) -> Vec<String> {
    let list = help.lines().skip_while(|line| *line != "Commands:").skip(1);
    let list = list.take_while(|line| !line.is_empty());
    let names = list.filter(|line| line.starts_with("  ") && !line.starts_with("   "));
    let names = names.filter_map(|line| line.split_whitespace().next()).filter(|name| *name != "help");
    names.map(str::to_owned).collect()
}

/// Every command's examples: the words that its help is asked by, and what stands behind `kernmill` on the
/// lines of its help.
pub fn examples() -> Vec<(Vec<String>, Vec<String>)> {
    let (mut found, mut open) = (Vec::new(), vec![Vec::new()]);
    while let Some(command) = open.pop() {
        let mut args: Vec<&str> = command.iter().map(String::as_str).collect();
        args.push("--help");
        let text = help(&args);
        open.extend(listed(&text).into_iter().map(|name| [command.clone(), vec![name]].concat()));
        // A command may go on in the next line.
        let text = text.replace(" \\\n", "");
        let lines = text.lines().filter_map(|line| line.strip_prefix("  kernmill "));
        let lines = lines.map(str::to_owned).collect();
        found.push((command, lines));
    }
    found
}

#[test]
fn examples_in_help_texts_parse() {
    let readme = fs::read_to_string(root().join("README.md")).unwrap();
    let mut commands = 0;
    for (command, examples) in examples() {
        let name = command.join(" ");
        if let [command] = &command[..] {
            let row = format!("| `kernmill {command}` |");
            assert!(readme.contains(&row), "README.md does not list `kernmill {command}`");
            assert!(!examples.is_empty(), "`kernmill {command} --help` has no examples");
            commands += 1;
        }
        examples.iter().for_each(|example| assert_parses(example, &name));
    }
    assert!(commands >= 7, "found only {commands} commands");
}

#[test]
fn the_readmes_test_command_is_the_one_that_ci_runs() {
    let readme = fs::read_to_string(root().join("README.md")).unwrap();
    let ci = fs::read_to_string(root().join(".ci/run")).unwrap();
    let mut steps = ci.lines().filter_map(|line| line.strip_prefix("step "));
    let command = steps.rfind(|step| step.starts_with("cargo test")).expect("CI runs the tests");
    assert!(readme.contains(&format!("```sh\n{command}\n```")), "README.md does not have `{command}`");
}

pub fn help(args: &[&str]) -> String {
    // Examples stand on one line each where there is room.
    let output = program().args(args).env("COLUMNS", "200").output().unwrap();
    assert!(output.status.success(), "{args:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

/// Examples and other lines behind the options, at the width that most terminals have at least.
#[test]
fn help_texts_fit_80_columns() {
    for (command, _) in examples() {
        let mut args: Vec<&str> = command.iter().map(String::as_str).collect();
        args.push("--help");
        let output = program().args(&args).env("COLUMNS", "80").output().unwrap();
        let text = String::from_utf8(output.stdout).unwrap();
        // A value without a space in it cannot be broken.
        let is_wide = |line: &&str| line.chars().count() > 80 && line.trim().contains(' ');
        let wide: Vec<&str> = text.lines().filter(is_wide).collect();
        assert!(wide.is_empty(), "{command:?}: {wide:#?}");
        let source = root().join("cli/help").join(format!(
            "{}.txt",
            if command.is_empty() { "kernmill".to_owned() } else { command.join("-") }
        ));
        if let Ok(shown) = fs::read_to_string(source) {
            assert!(
                text.trim_end().ends_with(shown.trim_end()),
                "{command:?}: its examples are broken:\n{text}"
            );
        }
    }
}

/// Arguments are parsed up to the `--help` behind them, which then does nothing but print.
fn assert_parses(line: &str, place: &str) {
    // The rest of the line is for the shell.
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
