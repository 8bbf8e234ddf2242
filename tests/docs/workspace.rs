//! Which crate depends on which.

use super::root;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::process::Command;
use toml::{Table, Value};

/// Direct dependencies of every locked package, tests' dependencies included.
fn locked() -> BTreeMap<String, Vec<String>> {
    let lock: Table = fs::read_to_string(root().join("Cargo.lock")).unwrap().parse().unwrap();
    let text = |value: &Value| value.as_str().unwrap().split(' ').next().unwrap().to_owned();
    let packages = lock["package"].as_array().unwrap().iter();
    packages
        .map(|package| {
            let dependencies = package.get("dependencies").and_then(Value::as_array);
            (text(&package["name"]), dependencies.into_iter().flatten().map(text).collect())
        })
        .collect()
}

/// Everything that a package needs, however far away.
fn closure(package: &str) -> BTreeSet<String> {
    let locked = locked();
    let mut found = BTreeSet::new();
    let mut open = vec![package.to_owned()];
    while let Some(next) = open.pop() {
        for dependency in &locked[&next] {
            if found.insert(dependency.clone()) {
                open.push(dependency.clone());
            }
        }
    }
    found
}

fn own(package: &str) -> Vec<String> {
    closure(package).into_iter().filter(|name| name.starts_with("kernmill")).collect()
}

#[test]
fn the_runtime_carries_no_compiler() {
    let needs = closure("kernmill-runtime");
    assert!(needs.contains("kernmill-plan"));
    let compilers = ["kernmill-compiler", "kernmill-kernels-gen", "iced-x86"];
    let found: Vec<&String> = needs
        .iter()
        .filter(|name| compilers.contains(&name.as_str()) || name.starts_with("cranelift"))
        .collect();
    assert!(found.is_empty(), "the runtime depends on {found:?}");
}

#[test]
fn the_run_only_build_carries_no_compiler() {
    let tree = |arguments: &[&str]| {
        let usual = ["tree", "--offline", "--locked", "--edges", "normal,build", "--prefix", "none"];
        let mut cargo = Command::new(env!("CARGO"));
        let output = cargo.args(usual).args(arguments).current_dir(root()).output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap()
    };
    let compiler = |line: &&str| {
        ["cranelift", "iced", "kernmill-kernels-gen", "kernmill-compiler"]
            .iter()
            .any(|name| line.starts_with(name))
    };
    assert!(tree(&["--package", "kernmill-cli"]).lines().any(|line| compiler(&line)), "the names are right");
    for build in
        [["--package", "kernmill-cli", "--no-default-features"], ["--package", "kernmill-runtime", "-q"]]
    {
        let tree = tree(&build);
        assert!(tree.contains("kernmill-plan"), "{tree}");
        let found: Vec<&str> = tree.lines().filter(compiler).collect();
        assert!(found.is_empty(), "{build:?} has {found:?}");
    }
}

#[test]
fn crates_depend_in_one_direction() {
    let (os, plan, readers) = ("kernmill-os", "kernmill-plan", "kernmill-checkpoint");
    let (kernels, compiler, runtime) = ("kernmill-kernels-gen", "kernmill-compiler", "kernmill-runtime");
    assert_eq!(own(os), [""; 0]);
    assert_eq!(own("kernmill-scheduler"), [""; 0]);
    assert_eq!(own("kernmill-text"), [""; 0]);
    assert_eq!(own("kernmill-constrain"), [os, "kernmill-text"]);
    assert_eq!(own("kernmill-chat"), ["kernmill-constrain", os, "kernmill-text"]);
    assert_eq!(own(plan), [os]);
    assert_eq!(own("kernmill-kv-store"), [os]);
    assert_eq!(own(readers), [os, plan]);
    assert_eq!(own(kernels), [os, plan]);
    assert_eq!(own(runtime), [readers, "kernmill-kv-store", os, plan, "kernmill-text"]);
    let serves = [
        readers,
        "kernmill-constrain",
        "kernmill-kv-store",
        os,
        plan,
        runtime,
        "kernmill-scheduler",
        "kernmill-text",
    ];
    assert_eq!(own("kernmill-serve"), serves);
    assert_eq!(own(compiler), [readers, kernels, os, plan]);
    let all = [
        "kernmill-chat",
        readers,
        compiler,
        "kernmill-constrain",
        kernels,
        "kernmill-kv-store",
        os,
        plan,
        runtime,
        "kernmill-scheduler",
        "kernmill-serve",
        "kernmill-text",
    ];
    assert_eq!(own("kernmill"), all);
    let library = [&["kernmill"][..], &all].concat();
    assert_eq!(own("kernmill-server"), library);
    assert_eq!(own("kernmill-eval"), library);
    assert_eq!(own("kernmill-quantize"), library);
    let with_all = ["kernmill", "kernmill-eval", "kernmill-quantize", "kernmill-server"];
    let with_all: BTreeSet<String> = all.iter().chain(&with_all).map(|name| (*name).to_owned()).collect();
    assert_eq!(own("kernmill-tools"), Vec::from_iter(with_all));
}
