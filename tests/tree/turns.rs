//! A conversation's way to an answer is wired in one place, one matcher looks for stop strings, and a body of
//! a request has one reader.

use super::{Sources, modules, sources};

/// Places in the sources, tests left out, where a text stands: crate and module.
fn places(text: &str) -> Vec<String> {
    let mut places = Vec::new();
    for Sources { name, dir } in sources() {
        for (path, module) in modules(&dir) {
            let production = module.split("#[cfg(test)]\nmod tests {").next().unwrap_or("");
            let is_test = name == "the tests" || path.iter().any(|part| part == "tests");
            let count = production
                .lines()
                .filter(|line| !line.trim().starts_with("//"))
                .filter(|line| line.contains(text));
            places.extend(count.filter(|_| !is_test).map(|_| format!("{name}: {}", path.join("::"))));
        }
    }
    places
}

#[track_caller]
fn all_are_there(expected: &[(&str, &[&str])]) {
    for (text, expected) in expected {
        let mut found = places(text);
        found.sort_unstable();
        assert_eq!(found, *expected, "{text}");
    }
}

#[test]
fn a_turn_is_wired_in_one_place() {
    // `Format::messages` reads what was generated once more, for its ids.
    all_are_there(&[
        ("harmony::HarmonyParser::new(", &["kernmill_chat: format", "kernmill_chat: turn::begin"]),
        ("TextParser::new(", &["kernmill_chat: grammar"]),
        ("fn push(&mut self, piece: &str) -> Released", &["kernmill_text: stop"]),
        ("StopMatcher::new(", &["kernmill_chat: turn", "kernmill_serve: text_maker"]),
    ]);
}

/// A line of a batch has no reader and no writer of its own: those of the route serve it.
#[test]
fn a_body_is_read_and_answered_by_the_code_of_its_route() {
    all_are_there(&[
        (
            "fn take(scope: &RequestScope<'_>, mut fields: Fields)",
            &["kernmill_server: chat::request", "kernmill_server: completions::request"],
        ),
        ("completions::take(", &["kernmill_server: batch::draft"]),
        ("request::take(&worker", &["kernmill_server: completions::response"]),
        // The second makes the pieces of a stream.
        (".object(\"text_completion\"", &["kernmill_server: completions::response"; 2]),
        (".object(\"chat.completion\"", &["kernmill_server: chat::message"]),
    ]);
}
