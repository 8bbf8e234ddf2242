//! `--emit obj` and `--emit hashes`: the machine code by itself.

use super::{Sandbox, kernmill, kernmill_in};
use kernmill_compiler::front::spec::{Spec, lower};
use kernmill_compiler::passes::quant::Preset;
use kernmill_compiler::passes::quant::choose::FormatChoices;
use kernmill_compiler::pipeline::{CompilerOptions, compile};
use kernmill_plan::program::Program;
use kernmill_plan::target::Level;
use object::{Object, ObjectSection, ObjectSymbol};
use serde_json::Value;
use std::fs;
use std::process::Command;

const NANO: &str = "model-specs/nano/nano.toml";

fn program(spec: &str, preset: Preset, level: Level) -> Program {
    let text = fs::read_to_string(spec).unwrap();
    let graph = lower(&Spec::parse(spec, &text).unwrap()).unwrap();
    let choices = Some(FormatChoices::assumed(&graph));
    compile(&graph, &CompilerOptions { preset, choices, ..CompilerOptions::new(level) }).unwrap().program
}

/// The object file must have the program's code, function by function.
fn assert_has_code(file: &[u8], program: &Program) {
    let file = object::File::parse(file).unwrap();
    let text = file.section_by_name(".text").unwrap();
    assert_eq!((text.align(), text.relocations().count()), (64, 0));
    assert!(text.data().unwrap() == program.code.bytes);
    assert!(!file.symbols().any(|symbol| symbol.is_undefined()), "it refers to nothing outside");
    let functions = file.symbols().filter(|symbol| symbol.is_global());
    let functions: Vec<_> = functions.map(|one| (one.name().unwrap(), one.address(), one.size())).collect();
    let expected = program.code.symbols.iter();
    let expected: Vec<_> = expected.map(|one| (one.name.as_str(), one.offset, one.size)).collect();
    assert_eq!(functions, expected);
    assert!(functions.len() > 10 && functions.iter().all(|(_, address, _)| address % 64 == 0));
}

#[test]
fn an_object_file_has_the_code_of_the_program() {
    let sandbox = Sandbox::of("gptoss-base");
    let path = sandbox.path("nano.o");
    for (preset, level) in
        [(Preset::Faithful, Level::V3), (Preset::Exact, Level::V4Vnni), (Preset::Bf16, Level::Amx)]
    {
        let options = ["--preset", preset.name(), "--target", level.name()];
        let command = ["compile", NANO, "--emit", "obj", "-o", path.to_str().unwrap()];
        assert_eq!(kernmill(&[&command[..], &options].concat()).text(), "");
        assert_has_code(&fs::read(&path).unwrap(), &program(NANO, preset, level));
    }
    // Of a plan it is the plan's own code, and there is no other way to one of preset fast without the
    // weights.
    let compile = ["compile", "spec.toml", "--weights", ".", "--preset", "fast", "--target", "native"];
    sandbox.run(&[&compile[..], &["-o", "a.plan"]].concat()).text();
    sandbox.run(&[&compile[..], &["--emit", "obj", "-o", "a.o"]].concat()).text();
    let run =
        ["run", "a.plan", "--tokens", "ids.json", "-n", "1", "-q", "--emit", "obj", "--emit-dir", "stages"];
    sandbox.run(&run).text();
    let ours = fs::read(sandbox.path("a.o")).unwrap();
    assert!(ours == fs::read(sandbox.path("stages/code.o")).unwrap());
}

#[test]
fn a_linker_takes_an_object_file() {
    let sandbox = Sandbox::of("gptoss-base");
    sandbox.run(&["compile", "spec.toml", "--target", "x86-64-v3", "--emit", "obj", "-o", "a.o"]).text();
    let mut link = Command::new("cc");
    link.args(["-shared", "-nostdlib", "-Wl,--no-undefined", "-Wl,--fatal-warnings", "-o", "a.so", "a.o"]);
    let output = link.current_dir(sandbox.dir.path()).output();
    let output = output.unwrap_or_else(|error| {
        panic!("`cc` does not run ({error}): the tests need a C compiler, as building kernmill does")
    });
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let linked = fs::read(sandbox.path("a.so")).unwrap();
    let file = object::File::parse(&*linked).unwrap();
    let expected = program(sandbox.path("spec.toml").to_str().unwrap(), Preset::Faithful, Level::V3);
    let text = file.section_by_name(".text").unwrap().data().unwrap();
    assert!(text.starts_with(&expected.code.bytes), "linking changes nothing");
    assert_eq!(
        file.dynamic_symbols().filter(|symbol| symbol.is_definition()).count(),
        expected.code.symbols.len()
    );
}

#[test]
fn hashes_are_of_the_programs_code() {
    let hashes = |more: &[&str]| {
        let usual = ["compile", NANO, "--target", "x86-64-v4,x86-64-v3", "--emit", "hashes"];
        kernmill(&[&usual[..], more].concat()).text()
    };
    let json: Value = serde_json::from_str(&hashes(&["--json"])).unwrap();
    // Another schema would need another reader there.
    let reader = include_str!("../../tools/compare-code");
    assert!(
        reader.contains(&format!("SCHEMA = {}", json["schema"])),
        "tools/compare-code reads another schema"
    );
    let json = json["targets"].as_array().unwrap();
    assert_eq!(json.len(), 2);
    let text = hashes(&[]);
    for (json, level) in json.iter().zip([Level::V3, Level::V4]) {
        assert_eq!((&json["level"], &json["model"]), (&level.name().into(), &"nano".into()));
        let code = program(NANO, Preset::Faithful, level).code;
        assert_eq!(json["code"], blake3::hash(&code.bytes).to_hex().as_str());
        let functions = json["functions"].as_array().unwrap();
        assert_eq!(functions.len(), code.symbols.len());
        for (function, symbol) in functions.iter().zip(&code.symbols) {
            let bytes = &code.bytes[symbol.offset as usize..][..symbol.size as usize];
            let hash = blake3::hash(bytes).to_hex();
            assert_eq!(
                (&function["name"], &function["hash"]),
                (&symbol.name.as_str().into(), &hash.as_str().into())
            );
            assert_eq!(
                function["classes"].as_array().unwrap().is_empty(),
                symbol.contract.is_none(),
                "{}",
                symbol.name
            );
            assert!(text.contains(&format!("  {hash} {}, {} bytes, ", symbol.name, symbol.size)));
        }
    }
    assert_eq!(text, hashes(&[]));
    assert_ne!(text, hashes(&["--preset", "exact"]));
}

#[test]
fn code_for_a_named_target_is_the_same_wherever_it_is_compiled() {
    let hashes = |tune: &[&str]| {
        let usual = ["compile", NANO, "--target", "x86-64-v4-vnni", "--emit", "hashes"];
        kernmill(&[&usual[..], tune].concat()).text()
    };
    assert_eq!(hashes(&[]), hashes(&["--tune", "generic"]));
    assert_ne!(hashes(&[]), hashes(&["--tune", "zen5"]));
}

#[test]
fn what_cannot_be_emitted_is_refused_before_the_work() {
    let sandbox = Sandbox::of("gptoss-base");
    let before = sandbox.files();
    let refused = |args: &[&str], parts: &[&str]| {
        kernmill_in(sandbox.dir.path(), &[&["compile", "spec.toml"], args].concat()).refused(parts);
        assert_eq!(sandbox.files(), before);
    };
    let several = ["--target", "x86-64-v3,x86-64-v4", "--emit", "obj", "-o", "a.o"];
    refused(&several, &["one target's code", "--target is x86-64-v3, x86-64-v4: choose one"]);
    refused(&["--emit", "obj"], &["an object file is not printed", "-o FILE.o"]);
    refused(&["--emit", "obj", "-o", "none/a.o"], &["none/a.o", "No such file"]);
    refused(&["--emit", "hashes", "--preset", "fast"], &["--weights is missing: preset fast"]);
    refused(&["-o", "a.plan"], &["--weights is missing: a plan"]);
    refused(&["--dry-run", "--merge-lora", "a=b"], &["--weights is missing"]);
    refused(&["--dry-run", "--context", "0"], &["--context is 0, expected 1 to"]);
    refused(&["--json", "-o", "a.plan"], &["--json: expected --dry-run or --emit hashes"]);
    refused(&["--json", "--dry-run", "--emit", "graph"], &["--emit: with --json and --dry-run"]);
    refused(&["--emit", "asm", "--json"], &["expected --dry-run or --emit hashes"]);
    sandbox.run(&["explain", "spec.toml", "--emit", "obj"]).refused(&["--emit-dir DIR"]);
    sandbox.run(&["run", "--emit", "obj"]).refused(&["--emit-dir DIR"]);
    sandbox.run(&["compile", "spec.toml", "--json"]).misused("--output");
}
