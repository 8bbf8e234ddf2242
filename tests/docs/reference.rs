//! `docs/user/cli.md` is what the program's help says, as Markdown. `UPDATE_EXPECT=1 cargo test --test main
//! docs::reference` blesses changes.

use super::commands::{help, listed};
use expect_test::expect_file;

/// Options that all commands have.
const LOGGING: &str = "Logging";

const HEAD: &str = "\
# Command line

Every command and option, from the program's own help. The tests write this page; do not edit it.

Every option has a variable of the environment that is its default. Its name is `KERNMILL_` and the name
of the option in capitals, such as `KERNMILL_MAX_TOKENS` for `--max-tokens`. MODEL has `KERNMILL_MODEL`.

`kernmill help` and `kernmill help COMMAND` print the same texts.
";

/// What stands in brackets behind an option's text, and its name in a table.
const NOTES: [(&str, &str); 3] =
    [("[env: ", ""), ("[default: ", "Default: "), ("[possible values: ", "Values: ")];

/// An option, argument or command, and what it does.
struct Row {
    name: String,
    text: String,
}

impl Row {
    /// The option as a row of a table.
    fn markdown(&self) -> String {
        let (mut text, mut notes) = (self.text.clone(), String::new());
        for (start, title) in NOTES {
            let Some(at) = text.find(start) else { continue };
            let end = at + text[at..].find(']').expect("the bracket is closed");
            if !title.is_empty() {
                notes += &format!(" {title}`{}`.", &text[at + start.len()..end]);
            }
            text.replace_range(at..=end, "");
        }
        let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
        // A list of values, one on each line of the help.
        let text = match text.split_once(" Possible values: - ") {
            Some((what, values)) => format!("{what}. Values: {}", values.replace(" - ", "; ")),
            None => text,
        };
        let end = if text.ends_with(['.', ':']) { "" } else { "." };
        let cell = |text: &str| text.replace('|', "\\|").replace('<', "&lt;").replace('*', "\\*");
        format!("| `{}` | {}{end}{} |", self.name.replace('|', "\\|"), cell(&text), notes.replace('|', "\\|"))
    }
}

/// Part of a help text.
enum Part {
    /// Lines of prose.
    Prose(Vec<String>),
    /// Lines that are indented below a heading which names no options.
    Block(String, Vec<String>),
    /// A heading, and rows.
    Rows(String, Vec<Row>),
}

/// A line that begins an option, an argument or a command.
fn row(line: &str) -> Option<Row> {
    let body = line.trim_start();
    let indent = line.len() - body.len();
    let starts = matches!(indent, 2 | 6) && !body.starts_with("kernmill") && !body.is_empty();
    let (name, text) = body.split_once("  ").unwrap_or((body, ""));
    starts.then(|| Row { name: name.trim().to_owned(), text: text.trim().to_owned() })
}

/// Cuts a help text into its parts. Its usage line is left out.
fn parts(help: &str) -> Vec<Part> {
    let mut parts: Vec<Part> = Vec::new();
    for line in help.lines().filter(|line| !line.starts_with("Usage: ")) {
        let is_text = !line.is_empty() && !line.starts_with(' ');
        match parts.last_mut() {
            _ if is_text && line.ends_with(':') && line.len() < 40 => {
                parts.push(Part::Block(line.trim_end_matches(':').to_owned(), Vec::new()));
            }
            Some(Part::Prose(lines)) if is_text => lines.push(line.to_owned()),
            _ if is_text => parts.push(Part::Prose(vec![line.to_owned()])),
            Some(Part::Prose(lines)) if line.is_empty() => lines.push(String::new()),
            Some(Part::Block(heading, lines)) => match row(line) {
                Some(row) if heading != "Examples" && lines.is_empty() => {
                    let heading = std::mem::take(heading);
                    *parts.last_mut().expect("a part") = Part::Rows(heading, vec![row]);
                }
                _ => lines.push(line.to_owned()),
            },
            Some(Part::Rows(_, rows)) => match row(line) {
                Some(row) => rows.push(row),
                None => rows.last_mut().expect("a row").text += &format!(" {}", line.trim()),
            },
            _ => {}
        }
    }
    parts
}

/// Words of some lines, in lines of at most 110 columns.
fn wrapped(lines: &[String]) -> String {
    let mut text = String::new();
    for paragraph in lines.join("\n").split("\n\n").filter(|paragraph| !paragraph.trim().is_empty()) {
        let mut column = 0;
        for word in paragraph.split_whitespace() {
            let space = column > 0 && column + 1 + word.len() <= 110;
            text += if space {
                " "
            } else if column > 0 {
                "\n"
            } else {
                ""
            };
            column = if space { column + 1 + word.len() } else { word.len() };
            text += word;
        }
        text += if paragraph.trim_end().ends_with(['.', ':']) { "\n\n" } else { ".\n\n" };
    }
    text
}

/// Rows but those that every command has; nothing if there are no others.
fn table(heading: &str, rows: &[Row]) -> String {
    let own = rows.iter().filter(|row| !row.name.contains("--help") && row.name != "help");
    let lines: String = own.map(|row| format!("{}\n", row.markdown())).collect();
    if lines.is_empty() { lines } else { format!("| {} | |\n|---|---|\n{lines}\n", heading.to_lowercase()) }
}

/// A command and those below it, as sections.
fn section(command: &[String], text: &mut String) {
    let mut args: Vec<&str> = command.iter().map(String::as_str).collect();
    args.push("--help");
    let help = help(&args);
    let level = "#".repeat(command.len() + 1);
    *text += &format!("\n{level} kernmill {}\n\n", command.join(" "));
    for part in parts(&help) {
        match part {
            Part::Prose(lines) => *text += &wrapped(&lines),
            Part::Block(heading, lines) => {
                *text += &format!("{heading}:\n\n```text\n{}\n```\n\n", lines.join("\n").trim_end());
            }
            Part::Rows(heading, rows) if heading != LOGGING => *text += &table(&heading, &rows),
            Part::Rows(..) => {}
        }
    }
    *text = format!("{}\n", text.trim_end());
    for name in listed(&help) {
        section(&[command, &[name]].concat(), text);
    }
}

#[test]
fn the_command_reference_is_the_programs_help() {
    let top = help(&["--help"]);
    let mut text = format!("{HEAD}\n");
    for part in parts(&top) {
        if let Part::Rows(heading, rows) = part
            && heading == LOGGING
        {
            text += &table("Every command", &rows);
        }
    }
    text = format!("{}\n", text.trim_end());
    for name in listed(&top) {
        section(&[name], &mut text);
    }
    assert!(text.contains("| `-n, --max-tokens <N>` |"), "{text}");
    expect_file![format!("{}/docs/user/cli.md", env!("CARGO_MANIFEST_DIR"))].assert_eq(&text);
}

#[test]
fn help_is_cut_into_its_parts() {
    let help = "About\n\nUsage: x\n\nOptions:\n  -a, --all <N>\n          First\n          second\n\n          [env: A]\n          [default: 3]\n\nExamples:\n  x  y\nLast.";
    let parts = parts(help);
    assert_eq!(parts.len(), 4);
    let Part::Rows(heading, rows) = &parts[1] else { panic!("the options are rows") };
    assert_eq!((heading.as_str(), rows.len()), ("Options", 1));
    assert_eq!(rows[0].markdown(), "| `-a, --all <N>` | First second. Default: `3`. |");
}
