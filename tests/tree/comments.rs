//! Comments are narrow enough to be read beside each other, doc comments can be read alone, and no comment is
//! a question in place of a sentence.

use super::size::{named, rust};

/// Columns of a comment.
const COLUMNS: usize = 110;

/// Words that begin a question. A comment names the thing instead: `Inputs of a step.` for `What a step is
/// about.`
const QUESTIONS: [&str; 2] = ["What", "Who"];

/// Beginnings of doc comments that need the item before to be understood: rendered docs show one item alone.
const LEANING: [&str; 14] = [
    "And ", "As [", "As `", "It ", "Its ", "Nobody", "Nor ", "Of ", "That ", "The same", "Their ", "They ",
    "Those ", "Whoever",
];

#[test]
fn comments_are_narrow() {
    let mut wide = Vec::new();
    for (path, lines) in rust() {
        let is_wide = |line: &&String| line.trim_start().starts_with("//") && line.chars().count() > COLUMNS;
        // An address or a row of a table cannot be broken.
        let is_whole = |line: &str| {
            let text = line.trim_start().trim_start_matches(['/', '!']).trim_start();
            text.starts_with('|') || !text.contains(' ')
        };
        for (n, line) in lines.iter().enumerate().filter(|(_, line)| is_wide(line) && !is_whole(line)) {
            wide.push(format!("{}:{}: {} columns", named(&path), n + 1, line.chars().count()));
        }
    }
    assert!(wide.is_empty(), "{} comments over {COLUMNS} columns:\n{}", wide.len(), wide.join("\n"));
}

/// Numbers and texts of the first lines of doc comments.
fn starts(lines: &[String]) -> Vec<(usize, &str)> {
    let is_doc = |n: usize| lines[n].trim_start().starts_with("///");
    let is_start = |n: &usize| is_doc(*n) && (*n == 0 || !is_doc(*n - 1));
    (0..lines.len()).filter(is_start).map(|n| (n + 1, lines[n].trim_start()[3..].trim())).collect()
}

/// Whether a doc comment with this first line leans on what stands before it.
fn leans(start: &str) -> bool {
    LEANING.iter().any(|leaning| start.starts_with(leaning))
}

#[test]
fn doc_comments_stand_alone() {
    let (mut all, mut leaning) = (0, Vec::new());
    for (path, lines) in rust() {
        for (n, start) in starts(&lines) {
            all += 1;
            if leans(start) {
                leaning.push(format!("{}:{n}: {start}", named(&path)));
            }
        }
    }
    assert!(all > 1000, "{all} doc comments are seen");
    assert!(
        leaning.is_empty(),
        "{} doc comments lean on the item before; begin with what they are about, such as `Name of the tensor.` for \
         `Its name.`:\n{}",
        leaning.len(),
        leaning.join("\n")
    );
}

#[test]
fn a_leaning_comment_is_found() {
    let text = "/// Tensor.\nstruct Tensor {\n    /// Its name.\n    name: String,\n    /// Bytes.\n    /// \
        Of a row.\n}";
    let lines: Vec<String> = text.lines().map(str::to_owned).collect();
    assert_eq!(starts(&lines), [(1, "Tensor."), (3, "Its name."), (5, "Bytes.")]);
    let found: Vec<&str> = ["Its name.", "Of a row.", "The same as JSON.", "As [`f`], twice.", "It ends."]
        .into_iter()
        .filter(|start| !leans(start))
        .collect();
    assert!(found.is_empty(), "{found:?}");
    let fine = ["Item of a list.", "Offset.", "As many rows as fit.", "The sum.", "A tensor and its name."];
    assert!(!fine.into_iter().any(leans));
}

/// Numbers of the first lines of all comments, and their texts as one line.
fn whole(lines: &[String]) -> Vec<(usize, String)> {
    let marked = |n: usize| -> Option<(&str, &str)> {
        let line: &str = lines.get(n)?;
        let at = line.find("//").filter(|at| line[..*at].trim().is_empty())?;
        let text = line[at..].trim_start_matches(['/', '!']);
        Some((&line[..line.len() - text.len()], text.trim()))
    };
    let mut comments: Vec<(usize, String)> = Vec::new();
    for n in 0..lines.len() {
        let Some((marks, text)) = marked(n) else { continue };
        match comments
            .last_mut()
            .filter(|_| n > 0 && marked(n - 1).is_some_and(|(before, _)| before == marks))
        {
            Some((_, comment)) => comment.extend([" ", text]),
            None => comments.push((n + 1, text.to_owned())),
        }
    }
    comments
}

/// Whether a comment begins with a question, or has a stilted form: the thing that "is" and then "none".
fn is_riddle(comment: &str) -> bool {
    let words: Vec<&str> = comment.split(|c: char| !c.is_alphanumeric() && c != '_').collect();
    let is_none = |pair: &[&str]| ["is", "are"].contains(&pair[0]) && pair[1] == "none";
    QUESTIONS.contains(&words[0]) || words.windows(2).any(is_none)
}

#[test]
fn comments_are_no_riddles() {
    let (mut all, mut riddles) = (0, Vec::new());
    for (path, lines) in rust() {
        let comments = whole(&lines);
        all += comments.len();
        let found = comments.into_iter().filter(|(_, comment)| is_riddle(comment));
        riddles.extend(found.map(|(n, comment)| format!("{}:{n}: {comment}", named(&path))));
    }
    assert!(all > 10_000, "{all} comments are seen");
    assert!(
        riddles.is_empty(),
        "{} comments begin with What or Who, or have `is none`; say what the thing is:\n{}",
        riddles.len(),
        riddles.join("\n")
    );
}

#[test]
fn a_riddle_is_found() {
    let text = "// What a step\n// is about.\nfn f() {\n    /// Slot, 0 is\n    /// none.\n    let a = \
        1;\n    // Whole.\n}";
    let lines: Vec<String> = text.lines().map(str::to_owned).collect();
    let comments = whole(&lines);
    let texts: Vec<(usize, &str)> = comments.iter().map(|(n, text)| (*n, text.as_str())).collect();
    assert_eq!(texts, [(1, "What a step is about."), (4, "Slot, 0 is none."), (7, "Whole.")]);
    let found: Vec<bool> = comments.iter().map(|(_, text)| is_riddle(text)).collect();
    assert_eq!(found, [true, true, false]);
    assert!(!is_riddle("Whose it is: nonexistent ones are left out."));
}
