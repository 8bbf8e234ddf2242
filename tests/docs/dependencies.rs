//! Code of other people: its licences, where it comes from, and banned crates. `deny.toml` has the lists.

use super::root;
use serde_json::Value;
use std::fs;
use std::process::Command;
use toml::Table;

fn deny() -> Table {
    fs::read_to_string(root().join("deny.toml")).unwrap().parse().unwrap()
}

fn texts(value: &toml::Value) -> Vec<&str> {
    value.as_array().unwrap().iter().map(|text| text.as_str().unwrap()).collect()
}

/// Every package that is built for this system with any feature, tests' dependencies included, as the locked
/// versions have it. A release has features that are off by default: cargo fetches what is not there yet.
fn packages() -> Vec<Value> {
    let usual = ["metadata", "--locked", "--all-features", "--format-version", "1"];
    let mut cargo = Command::new(env!("CARGO"));
    cargo.args(usual).args(["--filter-platform", "x86_64-unknown-linux-gnu"]).current_dir(root());
    let output = cargo.output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let metadata: Value = serde_json::from_slice(&output.stdout).unwrap();
    let packages = metadata["packages"].as_array().unwrap().clone();
    assert!(packages.len() > 100, "{} packages", packages.len());
    packages
}

/// Whether one of the alternatives of a licence expression is allowed: `OR` and `/` part them, all of what
/// `AND` joins is needed.
fn is_allowed(expression: &str, allowed: &[&str]) -> bool {
    let expression = expression.replace('/', " OR ");
    let is_allowed = |licence: &str| allowed.contains(&licence.trim());
    if let Some((group, rest)) = expression.strip_prefix('(').and_then(|rest| rest.split_once(')')) {
        let rest = rest.trim().strip_prefix("AND ");
        return self::is_allowed(group, allowed) && rest.is_none_or(|rest| self::is_allowed(rest, allowed));
    }
    expression.split(" OR ").any(|one| one.split(" AND ").all(is_allowed))
}

#[test]
fn licences_are_those_of_the_list() {
    let deny = deny();
    let allowed = texts(&deny["licenses"]["allow"]);
    assert!(is_allowed("MIT/Apache-2.0", &allowed) && is_allowed("GPL-3.0-only OR MIT", &allowed));
    assert!(is_allowed("(MIT OR GPL-2.0) AND Unicode-3.0", &allowed));
    assert!(!is_allowed("GPL-3.0-only", &allowed) && !is_allowed("MIT AND GPL-2.0", &allowed));
    assert!(!is_allowed("(GPL-2.0 OR LGPL-2.1) AND MIT", &allowed) && !is_allowed("", &allowed));
    for package in packages() {
        let (name, licence) = (&package["name"], package["license"].as_str().unwrap_or_default());
        assert!(is_allowed(licence, &allowed), "{name}: licence `{licence}` is not in deny.toml");
    }
}

#[test]
fn sources_are_this_repository_and_the_registry() {
    let deny = deny();
    let registries: Vec<String> =
        texts(&deny["sources"]["allow-registry"]).iter().map(|url| format!("registry+{url}")).collect();
    for package in packages() {
        let name = package["name"].as_str().unwrap();
        match package["source"].as_str() {
            None => assert!(name.starts_with("kernmill"), "{name} comes from a directory"),
            Some(source) => assert!(registries.iter().any(|url| url == source), "{name} is from {source}"),
        }
    }
}

#[test]
fn what_is_banned_is_not_there() {
    let deny = deny();
    let banned = texts(&deny["bans"]["deny"]);
    assert!(banned.contains(&"capstone-sys"));
    for package in packages() {
        let name = package["name"].as_str().unwrap();
        assert!(!banned.contains(&name), "{name} is banned by deny.toml");
    }
}

#[test]
fn libraries_in_the_page_are_named_with_their_licences() {
    let deny = fs::read_to_string(root().join("deny.toml")).unwrap();
    let bill = fs::read_to_string(root().join("tools/release/sbom.py")).unwrap();
    let entries = fs::read_dir(root().join("server/page")).unwrap().map(|entry| entry.unwrap().path());
    let folders: Vec<_> = entries.filter(|path| path.is_dir()).collect();
    assert_eq!(folders.len(), 2, "{folders:?}");
    for folder in folders {
        let name = folder.file_name().unwrap().to_str().unwrap();
        let (library, _) = name.rsplit_once('-').unwrap();
        assert!(deny.contains(&format!("server/page/{name}/")), "deny.toml lacks {name}");
        assert!(bill.contains(&format!("\"{library}\": (")), "sbom.py lacks {library}");
        let licence = fs::read_to_string(folder.join("LICENSE")).unwrap();
        assert!(licence.contains("Copyright (c)"), "{name}: {licence}");
    }
    let fonts = fs::read_to_string(root().join("server/page/katex-0.19.1/fonts/LICENSE")).unwrap();
    assert!(fonts.contains("SIL OPEN FONT LICENSE Version 1.1"), "{fonts}");
}
