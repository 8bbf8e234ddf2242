//! Documents are easy to read: short sentences, and lines that fit a screen.

use super::{files, root};
use std::fs;
use std::path::Path;

/// Most words of a sentence in the mean of a file.
const MEAN: f64 = 18.0;
/// Most words of any sentence.
const MOST: usize = 40;
/// Most columns of a line of prose.
const COLUMNS: usize = 110;

/// Paragraphs and list items of a document, each as one line. Tables, headings, pictures and blocks of code
/// are left out.
fn paragraphs(text: &str) -> Vec<String> {
    let (mut found, mut open, mut in_code) = (Vec::new(), String::new(), false);
    for line in text.lines().chain([""]) {
        let line = line.trim();
        let is_fence = line.starts_with("```");
        let item = list_item(line);
        if is_fence || in_code || is_left_out(line) || item.is_some() {
            found.push(std::mem::take(&mut open));
        }
        in_code ^= is_fence;
        if !is_fence && !in_code && !is_left_out(line) {
            open += item.unwrap_or(line);
            open.push(' ');
        }
    }
    found.retain(|paragraph| !paragraph.trim().is_empty());
    found
}

/// Lines that are neither prose nor part of a list.
fn is_left_out(line: &str) -> bool {
    line.is_empty() || line.starts_with(['#', '|']) || line.starts_with("![")
}

/// The text of a list item behind its marker.
fn list_item(line: &str) -> Option<&str> {
    let digits = line.trim_start_matches(|c: char| c.is_ascii_digit());
    let numbered = digits.strip_prefix(". ").filter(|_| digits.len() < line.len());
    line.strip_prefix("- ").or_else(|| line.strip_prefix("* ")).or(numbered)
}

/// A text without the targets of its links; a span of code is one word.
fn plain(text: &str) -> String {
    let mut plain = String::new();
    for (n, part) in text.split('`').enumerate() {
        plain += if n % 2 == 0 { part } else { "code" };
    }
    let mut parts = plain.split("](");
    let mut result = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        result += part.split_once(')').map_or("", |(_, rest)| rest);
    }
    result.replace(['[', '*'], "")
}

/// Words of every sentence.
fn sentences(text: &str) -> Vec<(usize, String)> {
    let mut found = Vec::new();
    for paragraph in paragraphs(text) {
        let mut sentence = Vec::new();
        for word in plain(&paragraph).split_whitespace() {
            if word.contains(char::is_alphanumeric) {
                sentence.push(word.to_owned());
            }
            if word.trim_end_matches(['"', ')', '\'']).ends_with(['.', '!', '?']) {
                found.push(std::mem::take(&mut sentence));
            }
        }
        found.push(sentence);
    }
    found.retain(|sentence| !sentence.is_empty());
    found.into_iter().map(|words| (words.len(), words.join(" "))).collect()
}

fn name(path: &Path) -> String {
    path.strip_prefix(root()).unwrap_or(path).display().to_string()
}

#[test]
fn sentences_of_documents_for_users_are_short() {
    let mut documents = files(&root().join("docs/user"), &["md"]);
    documents.push(root().join("README.md"));
    let (mut all, mut count, mut wrong) = (0, 0, Vec::new());
    for document in &documents {
        let sentences = sentences(&fs::read_to_string(document).unwrap());
        let words: usize = sentences.iter().map(|(words, _)| words).sum();
        let mean = words as f64 / sentences.len().max(1) as f64;
        println!("{mean:5.1} words in the mean of {:3} sentences: {}", sentences.len(), name(document));
        if mean > MEAN {
            wrong.push(format!("{}: {mean:.1} words in the mean, at most {MEAN}", name(document)));
        }
        for (words, text) in sentences.iter().filter(|(words, _)| *words > MOST) {
            wrong.push(format!("{}: {words} words: {text}", name(document)));
        }
        (all, count) = (all + words, count + sentences.len());
    }
    println!("{:5.1} words in the mean of all", f64::from(all as u32) / f64::from(count as u32));
    assert!(count > 300, "found only {count} sentences");
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn lines_of_documents_fit_a_screen() {
    let mut documents = files(&root().join("docs"), &["md"]);
    documents.extend(["README.md", "ARCHITECTURE.md"].map(|name| root().join(name)));
    let mut wrong = Vec::new();
    for document in &documents {
        let mut in_code = false;
        for (n, line) in fs::read_to_string(document).unwrap().lines().enumerate() {
            let is_fence = line.trim_start().starts_with("```");
            in_code ^= is_fence;
            let is_prose = !in_code && !is_fence && !is_left_out(line.trim());
            // A link or a span of code cannot be broken.
            let is_one = list_item(line.trim()).unwrap_or(line.trim()).starts_with(['[', '`']);
            if is_prose && !is_one && line.chars().count() > COLUMNS {
                wrong.push(format!("{}:{}: {} columns", name(document), n + 1, line.chars().count()));
            }
        }
    }
    assert!(wrong.is_empty(), "at most {COLUMNS} columns:\n{}", wrong.join("\n"));
}

#[test]
fn sentences_are_counted_as_people_read_them() {
    let text = "# Head\n\nOne two\nthree. Four [five](a.md) `six seven`!\n\n- Eight nine\n- ten.\n\n| a | b \
        |\n\n```\ncode here.\n```\n1. Last one:\n";
    let counts: Vec<usize> = sentences(text).into_iter().map(|(words, _)| words).collect();
    assert_eq!(counts, [3, 3, 2, 1, 2]);
}
