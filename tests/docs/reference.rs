//! `docs/user/cli.md` is what the program's help says, as Markdown. `UPDATE_EXPECT=1 cargo test --test main
//! docs::reference` blesses changes.

use super::commands::{help, listed};
use expect_test::expect_file;
use std::collections::BTreeMap;

/// Options that all commands have.
const LOGGING: &str = "Logging";

const HEAD: &str = "\
# Command line

Every command and option, from the program's own help. The tests write this page; do not edit it.

Every option has a variable of the environment that is its default. Its name is `KERNMILL_` and the name
of the option in capitals, such as `KERNMILL_MAX_TOKENS` for `--max-tokens`. MODEL has `KERNMILL_MODEL`.

`kernmill help` and `kernmill help COMMAND` print the same texts, each with all options of the command, and
with examples. Here the options that several commands have stand once, at the end.
";

/// Headings of the options that several commands have, by the headings of the help.
const SHARED: [(&str, &str); 5] = [
    ("Arguments", "Which model"),
    ("Model", "How a model runs"),
    ("Sampling", "How tokens are chosen"),
    ("Options", "Other options of several commands"),
    ("Compiler stages", "Stages of the compiler"),
];

/// Options, as rows of tables, that more than one command has, by their headings.
type Shared = BTreeMap<String, Vec<Row>>;

/// The notes in brackets behind an option's text, and their names in a table.
const NOTES: [(&str, &str); 3] =
    [("[env: ", ""), ("[default: ", "Default: "), ("[possible values: ", "Values: ")];

/// An option, argument or command, and what it does.
#[derive(Clone)]
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

/// Whether a row is one of a command's own, and not one that every command has.
fn is_own(row: &Row) -> bool {
    !row.name.contains("--help") && row.name != "help"
}

/// Rows of a table; empty without rows.
fn table(heading: &str, rows: &[&Row]) -> String {
    let lines: String = rows.iter().map(|row| format!("{}\n", row.markdown())).collect();
    if lines.is_empty() { lines } else { format!("| {} | |\n|---|---|\n{lines}\n", heading.to_lowercase()) }
}

/// The name by which links reach a heading.
fn anchor(heading: &str) -> String {
    heading.to_lowercase().replace(' ', "-").replace(',', "")
}

/// Where those of `rows` are shown that other commands have too: a sentence for each heading.
fn elsewhere(rows: &[&Row], shared: &Shared) -> String {
    let mut text = String::new();
    for (heading, title) in SHARED {
        let Some(all) = shared.get(heading) else { continue };
        let there: Vec<&&Row> = rows.iter().filter(|row| has(all, row)).collect();
        let link = format!("[{title}](#{})", anchor(title));
        let name = |row: &&&Row| {
            let long =
                row.name.split([' ', '=']).find(|word| word.starts_with("--") || word.starts_with('['));
            format!("`{}`", long.unwrap_or(&row.name))
        };
        text += &match there.len() {
            0 => String::new(),
            some if some == all.len() => format!("All of {link}.\n\n"),
            _ => wrapped(&[format!("{link}: {}.", there.iter().map(name).collect::<Vec<_>>().join(", "))]),
        };
    }
    text
}

/// Whether a row is among others.
fn has(rows: &[Row], row: &Row) -> bool {
    rows.iter().any(|other| other.markdown() == row.markdown())
}

/// The words that the help of a command is asked by.
fn help_of(command: &[String]) -> String {
    let mut args: Vec<&str> = command.iter().map(String::as_str).collect();
    args.push("--help");
    help(&args)
}

/// Commands and those below them, each before its own.
fn all(names: Vec<String>, above: &[String]) -> Vec<Vec<String>> {
    let with_below = |name: String| {
        let command = [above, &[name]].concat();
        let below = all(listed(&help_of(&command)), &command);
        [vec![command], below].concat()
    };
    names.into_iter().flat_map(with_below).collect()
}

/// The options that more than one of these commands has, each under the first heading that it has.
fn shared(commands: &[Vec<String>]) -> Shared {
    let mut found: BTreeMap<String, Vec<(Row, usize)>> = BTreeMap::new();
    for part in commands.iter().flat_map(|command| parts(&help_of(command))) {
        let Part::Rows(heading, rows) = part else { continue };
        if SHARED.iter().all(|(name, _)| *name != heading) {
            continue;
        }
        for row in rows.into_iter().filter(is_own) {
            let known = found.values_mut().flatten().find(|(other, _)| other.markdown() == row.markdown());
            match known {
                Some((_, count)) => *count += 1,
                None => found.entry(heading.clone()).or_default().push((row, 1)),
            }
        }
    }
    let several = |rows: Vec<(Row, usize)>| {
        rows.into_iter().filter(|(_, count)| *count > 1).map(|(row, _)| row).collect()
    };
    found.into_iter().map(|(heading, rows)| (heading, several(rows))).collect()
}

/// A command, as a section.
fn section(command: &[String], shared: &Shared) -> String {
    let level = "#".repeat(command.len() + 1);
    let mut text = format!("\n{level} kernmill {}\n\n", command.join(" "));
    for part in parts(&help_of(command)) {
        match part {
            Part::Prose(lines) => text += &wrapped(&lines),
            Part::Block(heading, _) if heading == "Examples" => {}
            Part::Block(heading, lines) => {
                text += &format!("{heading}:\n\n```text\n{}\n```\n\n", lines.join("\n").trim_end());
            }
            Part::Rows(heading, rows) if heading != LOGGING => {
                let is_shared = |row: &&Row| shared.values().any(|rows| has(rows, row));
                let rows: Vec<&Row> = rows.iter().filter(|row| is_own(row)).collect();
                let (there, here): (Vec<&Row>, Vec<&Row>) = rows.into_iter().partition(is_shared);
                text += &table(&heading, &here);
                text += &elsewhere(&there, shared);
            }
            Part::Rows(..) => {}
        }
    }
    format!("{}\n", text.trim_end())
}

#[test]
fn the_command_reference_is_the_programs_help() {
    let top = help(&["--help"]);
    let mut text = format!("{HEAD}\n");
    for part in parts(&top) {
        if let Part::Rows(heading, rows) = part
            && heading == LOGGING
        {
            text += &table("Every command", &rows.iter().filter(|row| is_own(row)).collect::<Vec<_>>());
        }
    }
    text = format!("{}\n", text.trim_end());
    let commands = all(listed(&top), &[]);
    let shared = shared(&commands);
    commands.iter().for_each(|command| text += &section(command, &shared));
    for (heading, title) in SHARED {
        let rows = shared.get(heading).unwrap_or_else(|| panic!("{heading}: no command has it"));
        let rows = table(heading, &rows.iter().collect::<Vec<_>>());
        text += &format!("\n## {title}\n\n{}\n", rows.trim_end());
    }
    let words = text.split_whitespace().count();
    println!("the reference has {words} words");
    assert!(
        words < 260 * commands.len(),
        "{words} words of {} commands: options that several have stand once",
        commands.len()
    );
    assert!(text.contains("| `-n, --max-tokens <N>` |"), "{text}");
    expect_file![format!("{}/docs/user/cli.md", env!("CARGO_MANIFEST_DIR"))].assert_eq(&text);
}

#[test]
fn help_is_cut_into_its_parts() {
    let help = "About\n\nUsage: x\n\nOptions:\n  -a, --all <N>\n          First\n          \
        second\n\n          [env: A]\n          [default: 3]\n\nExamples:\n  x  y\nLast.";
    let parts = parts(help);
    assert_eq!(parts.len(), 4);
    let Part::Rows(heading, rows) = &parts[1] else { panic!("the options are rows") };
    assert_eq!((heading.as_str(), rows.len()), ("Options", 1));
    assert_eq!(rows[0].markdown(), "| `-a, --all <N>` | First second. Default: `3`. |");
}
