//! One loop makes texts, one thread has it, and few types say how a text is made and why it ended.

use super::{Sources, modules, sources};

/// Lines of the sources that hold, tests left out: crate, module, and the line.
fn lines(holds: impl Fn(&str) -> bool) -> Vec<String> {
    let mut lines = Vec::new();
    for Sources { name, dir } in sources() {
        for (path, module) in modules(&dir) {
            let production = module.split("#[cfg(test)]\nmod tests {").next().unwrap_or("");
            let is_test = name == "the tests" || path.iter().any(|part| part == "tests");
            let code = production.lines().map(str::trim).filter(|line| !is_test && !line.starts_with("//"));
            let found = code.filter(|line| holds(line));
            lines.extend(found.map(|line| format!("{name}: {}: {line}", path.join("::"))));
        }
    }
    lines.sort_unstable();
    lines
}

/// Places where a declaration of such a kind has a name with one of these endings.
fn declared(kind: &str, is_named: impl Fn(&str) -> bool) -> Vec<String> {
    let marker = format!("{kind} ");
    let name = move |line: &str| -> Option<String> {
        let rest = line.strip_prefix("pub").map_or(line, |rest| rest.trim_start_matches(|c| c != ' ').trim());
        let rest = rest.strip_prefix(&marker)?;
        Some(rest.chars().take_while(|c| c.is_alphanumeric()).collect())
    };
    lines(|line| name(line).is_some_and(|name| is_named(&name)))
}

#[track_caller]
fn count(what: &str, found: &[String], most: usize) {
    println!("{what}: {} (at most {most})\n{}", found.len(), found.join("\n"));
    assert!(found.len() <= most && !found.is_empty(), "{what}: {found:#?}");
}

#[test]
fn one_loop_makes_texts_on_one_thread() {
    let loops = lines(|line| line.contains("serving.tick("));
    count("decode loops", &loops, 1);
    let threads = lines(|line| line.contains("name(\"kernmill-engine\""));
    count("engine threads", &threads, 1);
    assert!(
        loops[0].starts_with("kernmill_serve: thread") && threads[0].starts_with("kernmill_serve: thread")
    );
    let begun = lines(|line| line.contains(".begin_step("));
    // A planned step, that of a request alone, and those of tools and checks.
    count("callers of the engine's steps", &begun, 3);
}

#[test]
fn few_types_say_why_a_text_ended_and_how_it_is_made() {
    let ends = declared("enum", |name| {
        ["EndReason", "Finish", "StopReason", "End", "TurnEnd", "AnswerEnd", "FinishReason"].contains(&name)
    });
    // A trial's process ends, too.
    let ends: Vec<String> = ends.into_iter().filter(|line| !line.contains("fuse_check")).collect();
    count("enums of ends", &ends, 2);
    // Parameters of a buffer, a cache, a session or a trace are not those of a text.
    let others = [
        "fuse_check",
        "load::",
        "kernmill_compiler",
        "kernmill_plan",
        "kernmill_scheduler",
        "sessions",
        "trace",
    ];
    let parameters = declared("struct", |name| {
        ["Params", "Sampling", "SamplingArgs", "Ask", "Completion", "Asked", "Body"].contains(&name)
            || name.ends_with("Params")
            || name.ends_with("Request")
    });
    let is_of_texts = |line: &String| !others.iter().any(|other| line.contains(other));
    // The Python module's request is one on its way.
    let parameters: Vec<String> = parameters
        .into_iter()
        .filter(|line| is_of_texts(line) && !line.starts_with("the Python module: request"))
        .collect();
    count("structs of a text's parameters", &parameters, 6);
}
