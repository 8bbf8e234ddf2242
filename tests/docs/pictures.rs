//! The picture of a terminal shows what the program says.

use super::root;
use crate::harness::program;
use std::fs;
use std::io::Write;
use std::process::Stdio;

#[test]
fn the_terminal_in_the_readme_shows_what_chat_says() {
    let picture = fs::read_to_string(root().join("docs/user/chat.svg")).unwrap();
    let texts = picture.lines().filter_map(|line| line.strip_prefix("<text ")?.split_once('>'));
    let texts: Vec<String> = texts
        .map(|(_, text)| text.trim_end_matches("</text>").replace("&gt;", ">").replace("&amp;", "&"))
        .collect();
    assert_eq!(texts[0], "$ kernmill chat");
    let typed: Vec<&str> = texts.iter().filter_map(|text| text.strip_prefix("> ")).collect();
    assert!(typed.len() > 1, "{texts:?}");

    let mut chat = program();
    chat.arg("chat").stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut chat = chat.spawn().unwrap();
    chat.stdin.take().unwrap().write_all((typed.join("\n") + "\n").as_bytes()).unwrap();
    let said = chat.wait_with_output().unwrap().stdout;
    let said = String::from_utf8(said).unwrap();
    let said: Vec<&str> = said.lines().map(|line| line.trim_start_matches("[reasoning] ")).collect();
    let said: Vec<&str> = said.into_iter().filter(|line| !line.is_empty()).collect();
    let shown = texts.iter().skip(1).filter(|text| !text.starts_with("> ") && !text.starts_with("/help"));
    assert_eq!(shown.collect::<Vec<_>>(), said, "tools/pictures/terminal.py draws it anew");
}
