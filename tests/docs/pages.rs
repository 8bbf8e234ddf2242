//! Pages that show files of the repository, or what the program says: they are held to both.

use super::root;
use crate::equality::families;
use crate::harness::program;
use kernmill_compiler::front::spec::Spec;
use std::fs;
use std::path::Path;
use std::process::Output;
use tempfile::TempDir;

fn read(path: &str) -> String {
    fs::read_to_string(root().join(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
}

fn errors(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// The message of `kernmill import` about a model of this class: empty if the class is imported.
fn says_of(dir: &Path, class: &str) -> String {
    fs::write(dir.join("config.json"), format!("{{\"architectures\": [\"{class}\"]}}")).unwrap();
    errors(&program().arg("import").arg(dir).output().unwrap())
}

/// Rows of a document's tables below a heading: the spans of code in the first column, and the second column.
fn rows(document: &str, heading: &str) -> Vec<(Vec<String>, String)> {
    let section = document.split(&format!("\n## {heading}\n")).nth(1).expect("the heading is there");
    let section = section.split("\n## ").next().unwrap();
    let rows = section.lines().filter_map(|line| line.strip_prefix("| `"));
    rows.map(|row| {
        let (first, second) = row.split_once(" | ").expect("two columns");
        let names = format!("`{first}").split('`').skip(1).step_by(2).map(str::to_owned).collect();
        (names, second.trim_end_matches(" |").to_owned())
    })
    .collect()
}

#[test]
fn architectures_are_refused_for_the_reason_on_their_page() {
    let dir = TempDir::new().unwrap();
    let page = read("docs/user/architectures.md");
    let missing = rows(&page, "Not yet, and why");
    assert!(missing.len() >= 9, "found only {missing:?}");
    for (class, why) in missing.iter().flat_map(|(names, why)| names.iter().map(move |name| (name, why))) {
        let says = says_of(dir.path(), class);
        why.split("; ").for_each(|part| assert!(says.contains(part), "{class}: {part}: {says}"));
        assert!(says.contains("docs/user/architectures.md") && !says.contains("a spec"), "{says}");
    }
    for (names, _) in rows(&page, "By a spec that you write") {
        let says = says_of(dir.path(), &names[0]);
        assert!(says.contains("but a spec that you write can describe it"), "{says}");
    }
    for (names, _) in rows(&page, "Works") {
        let says = says_of(dir.path(), &names[0]);
        assert!(!says.contains("architecture"), "{} is imported: {says}", names[0]);
    }
}

/// Blocks of code in a document, by their language.
pub fn blocks<'a>(document: &'a str, language: &str) -> Vec<&'a str> {
    let start = format!("```{language}\n");
    let blocks = document.split(start.as_str()).skip(1);
    blocks.map(|block| block.split("```").next().unwrap()).collect()
}

/// The page's own text is the spec of a model that runs, and of its mistake.
#[test]
fn a_new_family_is_brought_by_the_text_of_its_page() {
    let page = read("docs/user/new-family.md");
    let spec = blocks(&page, "toml").concat();
    families::same_bits(&spec);
    let dir = TempDir::new().unwrap();
    fs::write(
        dir.path().join("lantern.toml"),
        spec.replacen("\"dense\", \"experts\"", "\"dense\", \"expert\"", 1),
    )
    .unwrap();
    let mut program = program();
    program.args(["explain", "lantern.toml"]).current_dir(dir.path()).env("LC_ALL", "C.UTF-8");
    assert_eq!(errors(&program.output().unwrap()), blocks(&page, "text")[0]);
    let config: serde_json::Value = serde_json::from_str(blocks(&page, "json")[0]).unwrap();
    let parsed = Spec::parse("lantern.toml", &spec).unwrap();
    for (key, dim) in [
        ("vocab_size", "vocab"),
        ("hidden_size", "hidden"),
        ("num_hidden_layers", "layers"),
        ("num_key_value_heads", "kv_heads"),
        ("sliding_window", "sliding_window"),
        ("intermediate_size", "inner"),
        ("moe_intermediate_size", "expert_inner"),
        ("num_experts_per_tok", "top_k"),
    ] {
        assert_eq!(config[key].as_f64(), Some(parsed.dims[dim].to_f64()), "{key}");
    }
}

#[test]
fn the_tutorial_shows_its_files_and_what_the_program_says_of_them() {
    let page = read("docs/user/spec-tutorial.md");
    let [spec, rule] =
        ["parallel", "parallel_block"].map(|name| read(&format!("model-specs/examples/paper/{name}.toml")));
    let shown = blocks(&page, "toml");
    let lines = spec.lines().chain(rule.lines()).filter(|line| !line.starts_with('#'));
    for line in lines {
        assert!(shown.iter().any(|block| block.lines().any(|own| own == line)), "the page lacks `{line}`");
    }
    for block in shown {
        assert!(spec.contains(block) || rule.contains(block), "no file has:\n{block}");
    }
    let texts = blocks(&page, "text");
    let dir = TempDir::new().unwrap();
    let path = dir.path().join("parallel.toml");
    fs::write(&path, spec.replace("weight = \"head\"", "weight = \"embed\"")).unwrap();
    let mut program = program();
    program.args(["explain", "parallel.toml"]).current_dir(dir.path()).env("LC_ALL", "C.UTF-8");
    let mistake = program.output().unwrap();
    assert_eq!(errors(&mistake), texts[0]);
    let explain = |more: &[&str]| {
        let all = ["explain", "model-specs/examples/paper/parallel.toml", "-q", "--target", "x86-64-v3"];
        let output = crate::harness::program().args(all).args(more).current_dir(root()).output().unwrap();
        assert!(output.status.success(), "{}", errors(&output));
        String::from_utf8(output.stdout).unwrap()
    };
    let (before, after) =
        (explain(&[]), explain(&["--fused", "model-specs/examples/paper/parallel_block.toml"]));
    assert!(before.contains(texts[1].trim_end()), "{before}");
    assert!(after.contains("parallel_block") && !after.contains("qkv_alone"), "{after}");
}
