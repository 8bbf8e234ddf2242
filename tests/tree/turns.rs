//! A conversation's way to an answer is wired in one place, and one matcher looks for stop strings.

use super::{Sources, modules, sources};

/// Places in the sources, tests left out, where a text stands: crate and module.
fn places(text: &str) -> Vec<String> {
    let mut places = Vec::new();
    for Sources { name, dir } in sources() {
        for (path, module) in modules(&dir) {
            let production = module.split("#[cfg(test)]\nmod tests").next().unwrap_or("");
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

#[test]
fn a_turn_is_wired_in_one_place() {
    // `Format::messages` reads what was generated once more, for its ids.
    for (text, expected) in [
        ("harmony::Parser::new(", &["kernmill_chat: format", "kernmill_chat: turn::begin"][..]),
        ("TextParser::new(", &["kernmill_chat: grammar"]),
        ("fn push(&mut self, piece: &str) -> Released", &["kernmill_text: stop"]),
        ("StopMatcher::new(", &["kernmill_chat: turn", "kernmill_runtime: text_maker"]),
    ] {
        let mut found = places(text);
        found.sort_unstable();
        assert_eq!(found, expected, "{text}");
    }
}
