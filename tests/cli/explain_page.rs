//! `kernmill explain --html`: one file with what `--json --all` prints, held to what `--emit` prints.

use super::{Sandbox, kernmill};
use crate::harness::machine;
use kernmill_compiler::front::spec::{Spec, lower};
use kernmill_compiler::pipeline::{Compiled, CompilerOptions, compile};
use kernmill_plan::target::Level;
use serde_json::Value;
use std::fs;

const NANO: &str = "model-specs/nano/nano.toml";

fn explain(spec: &str, more: &[&str]) -> String {
    kernmill(&[&["explain", spec, "-q", "--target", "x86-64-v3"], more].concat()).text()
}

/// The page of a spec. Nothing is printed besides.
fn page(sandbox: &Sandbox, spec: &str, more: &[&str]) -> String {
    let path = sandbox.path("page.html");
    let printed = explain(spec, &[more, &["--html", path.to_str().unwrap()]].concat());
    assert_eq!(printed, "");
    sandbox.read("page.html")
}

/// The report in a page, as a browser reads it: up to the end of the element.
fn embedded(page: &str) -> &str {
    let start = page.split("<script type=\"application/json\" id=\"report\">").nth(1).expect("a report");
    start.split("</script>").next().unwrap()
}

fn compiled(spec: &str) -> Compiled {
    let text = fs::read_to_string(spec).unwrap();
    let graph = lower(&Spec::parse(spec, &text).unwrap()).unwrap();
    compile(&graph, &CompilerOptions::new(Level::V3)).unwrap()
}

fn list<'a>(value: &'a Value, name: &str) -> &'a [Value] {
    value[name].as_array().unwrap_or_else(|| panic!("`{name}` is no list"))
}

#[test]
fn a_page_holds_the_whole_report() {
    let sandbox = Sandbox::of("gptoss-base");
    // With a described machine, the report does not depend on the memory that this one has left.
    let machine = &machine("many_cores");
    let page = page(&sandbox, NANO, &["--machine", machine]);
    let report = explain(NANO, &["--machine", machine, "--json", "--all"]);
    assert_eq!(embedded(&page).replace("\\u003c", "<"), report);
    assert!(page.ends_with("</html>\n"));
}

#[test]
fn the_code_in_a_report_is_what_emit_prints() {
    let report: Value = serde_json::from_str(&explain(NANO, &["--json", "--all"])).unwrap();
    let functions = list(&report, "functions");
    let joined = |field: &str| {
        let texts = functions.iter().map(|one| one[field].as_str().expect("text"));
        texts.collect::<Vec<_>>().join("\n")
    };
    assert_eq!(joined("clif"), explain(NANO, &["--emit", "clif"]));
    assert_eq!(joined("assembly"), explain(NANO, &["--emit", "asm"]));
    // Without --all there are the functions, and no code.
    let short: Value = serde_json::from_str(&explain(NANO, &["--json"])).unwrap();
    assert_eq!(list(&short, "functions").len(), functions.len());
    assert!(list(&short, "functions").iter().all(|one| one["clif"].is_null() && one["assembly"].is_null()));
}

#[test]
fn what_is_drawn_is_the_program() {
    let report: Value = serde_json::from_str(&explain(NANO, &["--json", "--all"])).unwrap();
    let Compiled { fused, program, .. } = compiled(NANO);
    let functions = list(&report, "functions");
    let sizes: Vec<_> = functions.iter().map(|one| (one["name"].as_str().unwrap(), &one["bytes"])).collect();
    let symbols: Vec<_> = program.code.symbols.iter().map(|one| (one.name.as_str(), one.size)).collect();
    assert_eq!(sizes.len(), symbols.len());
    assert!(sizes.iter().zip(&symbols).all(|(one, other)| one.0 == other.0 && *one.1 == other.1));
    // Kernels are described, and call functions that are there; micro-kernels have a version.
    for (one, symbol) in functions.iter().zip(&program.code.symbols) {
        let is_kernel = symbol.contract.is_some();
        assert_eq!(one["description"].as_str().is_some_and(|text| !text.is_empty()), is_kernel, "{one}");
        assert_eq!(one["version"].is_string(), !is_kernel, "{one}");
        let called = list(one, "calls").iter();
        assert!(called.clone().all(|name| functions.iter().any(|other| other["name"] == *name)));
        assert!(is_kernel || called.count() == 0);
    }

    // Every group of a layer is drawn for the layer's kind, and every layer has one kind.
    let groups = list(&report, "groups");
    assert_eq!(groups.len(), fused.groups.len());
    let mut layers: Vec<u64> = Vec::new();
    for kind in list(&report, "layer_kinds") {
        let own: Vec<u64> = list(kind, "layers").iter().map(|layer| layer.as_u64().unwrap()).collect();
        for layer in &own {
            let drawn = list(kind, "groups").len();
            assert_eq!(groups.iter().filter(|group| group["layer"] == *layer).count(), drawn);
        }
        // Nano's layers have a window in turn.
        assert!(own.iter().all(|layer| kind["window"].is_null() == (layer % 2 == 1)), "{kind}");
        layers.extend(own);
    }
    layers.sort_unstable();
    assert_eq!(layers, [0, 1, 2, 3]);
    for (group, own) in groups.iter().zip(&fused.groups) {
        assert_eq!(list(group, "ops").len(), own.members().len());
        let carried = list(group, "inputs").iter().chain(list(group, "outputs"));
        for value in carried {
            assert!(list(&report, "values").iter().any(|one| one["name"] == *value), "{value}");
        }
    }

    // The arena of every class, and steps that say their group.
    for (arena, class) in list(&report, "arenas").iter().zip(&program.classes) {
        assert_eq!(arena["class"], class.max_tokens);
        let steps = list(&report, "steps").iter().filter(|step| step["class"] == class.max_tokens);
        assert_eq!(steps.count(), class.steps.len() + class.logit_steps.len());
        for (buffer, own) in list(arena, "buffers").iter().zip(&class.buffers) {
            let found = ["offset", "bytes", "first", "last"].map(|name| buffer[name].as_u64().unwrap());
            assert_eq!(found, [own.offset, own.bytes, own.first.into(), own.last.into()]);
            assert!(own.offset + own.bytes <= arena["bytes"].as_u64().unwrap());
        }
        assert_eq!(list(arena, "buffers").len(), class.buffers.len());
    }
    assert_eq!(list(&report, "arenas").len(), program.classes.len());
    let grouped = |step: &Value| step["group"].as_u64().is_some_and(|group| (group as usize) < groups.len());
    assert!(list(&report, "steps").iter().all(grouped));
}

#[test]
fn no_name_of_a_spec_is_markup() {
    let sandbox = Sandbox::of("gptoss-base");
    let hostile = "</script><script>alert(1)</script><!--";
    let spec = fs::read_to_string(NANO).unwrap();
    let named = spec.replacen("\"nano\"", &format!("'{hostile}'"), 1);
    assert_ne!(spec, named);
    sandbox.write("hostile.toml", named);
    let hostile_page = page(&sandbox, sandbox.path("hostile.toml").to_str().unwrap(), &[]);
    let report: Value = serde_json::from_str(embedded(&hostile_page)).unwrap();
    assert_eq!(report["model"], hostile);
    // As many elements as with a harmless name.
    let harmless = page(&sandbox, NANO, &[]);
    for mark in ["<", "<script", "</script>", "<!--"] {
        assert_eq!(hostile_page.matches(mark).count(), harmless.matches(mark).count(), "{mark}");
    }
}

#[test]
fn a_page_is_there_whole_or_not_at_all() {
    let sandbox = Sandbox::of("gptoss-base");
    sandbox.write("page.html", "old");
    fs::create_dir(sandbox.path("below")).unwrap();
    let before = sandbox.files();
    let html = |more: &[&str]| sandbox.run(&[&["explain", "-q"], more].concat());
    html(&["spec.toml", "--html", "below"]).refused(&["below: it is a directory"]);
    html(&["spec.toml", "--html", "none/page.html"]).refused(&["none"]);
    // The place is looked at before the work: this spec is not read.
    html(&["none.toml", "--html", "below"]).refused(&["below: it is a directory"]);
    html(&["spec.toml", "--context", "9999999", "--html", "page.html"]).refused(&["9999999"]);
    for other in [&["--json"][..], &["--all"], &["--emit", "graph"]] {
        html(&[&["spec.toml", "--html", "page.html"], other].concat()).misused("--html");
    }
    assert_eq!(sandbox.files(), before);
    assert_eq!(sandbox.read("page.html"), "old");
    html(&["spec.toml", "--html", "page.html"]).text();
    assert_eq!(sandbox.files(), before);
    assert!(sandbox.read("page.html").ends_with("</html>\n"));
}
