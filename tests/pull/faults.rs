//! A hub, a connection or a disk out of order: each ends in one line, and nothing half-made looks like a
//! model.

use super::hub::{Asked, Fault, Hub, certificate_file, list};
use super::{Files, MODEL, PullDir, Ran, SHARD, TOKEN, checkpoint, shell, sound};
use serde_json::{Value, json};
use std::path::Path;

const INDEX: &str = "model.safetensors.index.json";

/// Fetches from a hub with this fault: exit status 2 where the name or the rights are wrong, otherwise 1.
#[track_caller]
fn fails(
    fault: impl Fn(&Asked) -> Option<Fault> + Send + Sync + 'static,
    status: i32,
    parts: &[&str],
) -> Hub {
    let (files, place) = (checkpoint(), PullDir::new());
    let hub = Hub::start(&files, move |asked, _| fault(asked));
    place.run(&hub, &["pull", "-q", MODEL]).failed(status, parts);
    place.is_left_clean(&files);
    hub
}

fn is_list(asked: &Asked) -> bool {
    asked.path.starts_with("/api/")
}

fn of_list(status: u16, headers: &'static str) -> impl Fn(&Asked) -> Option<Fault> + Send + Sync {
    move |asked| is_list(asked).then(|| Fault::Status(status, headers.to_owned()))
}

fn of_shard(fault: impl Fn(&Asked) -> Fault + Send + Sync) -> impl Fn(&Asked) -> Option<Fault> + Send + Sync {
    move |asked| (asked.at_store && asked.path.contains(SHARD)).then(|| fault(asked))
}

/// A list of files that `change` has changed.
fn changed(change: &dyn Fn(&mut Value)) -> impl Fn(&Asked) -> Option<Fault> + Send + Sync + use<> {
    let mut text = list(&checkpoint());
    change(&mut text);
    let text = text.to_string().into_bytes();
    move |asked| is_list(asked).then(|| Fault::Contents(text.clone()))
}

#[test]
fn refusals_of_the_hub_say_what_helps() {
    fails(
        of_list(401, ""),
        2,
        &["acme/tiny: http://127.0.0.1:", "does not take the token (401)", "HF_TOKEN"],
    );
    fails(of_list(403, ""), 2, &["refuses access (403)", "/acme/tiny"]);
    let gated = of_list(403, "X-Error-Code: GatedRepo\r\n");
    fails(
        gated,
        2,
        &["it is gated", "the token's account may not read it (403)", "accept its terms at http://"],
    );
    fails(of_list(404, ""), 2, &["has no such model (404)"]);
    let limited = of_list(429, "Retry-After: 120\r\n");
    fails(limited, 1, &["limits how often it is asked (429)", "try again after 120 seconds"]);
    fails(of_list(500, ""), 1, &["answers 500"]);
    fails(
        of_shard(|_| Fault::Status(403, String::new())),
        1,
        &["/store/model-00001-of-00002.safetensors answers 403"],
    );
}

#[test]
fn without_a_token_it_says_that_one_may_help() {
    for (headers, parts) in [
        ("", ["has no such model, or shows it to its owner only (401)", "give a token in HF_TOKEN"]),
        ("X-Error-Code: GatedRepo\r\n", ["it is gated (401)", "a token of that account in HF_TOKEN"]),
    ] {
        let (files, place) = (checkpoint(), PullDir::new());
        let hub = Hub::start(&files, move |asked, _| of_list(401, headers)(asked));
        let mut command = place.with(shell("\"$0\" pull -q acme/tiny"), &hub);
        command.env_remove("HF_TOKEN").env("HF_HOME", place.path("home"));
        Ran::of(command.output().unwrap()).failed(2, &parts);
        assert_eq!(hub.asked()[0].token, None);
    }
}

#[test]
fn the_token_of_hugging_faces_tools_is_taken() {
    let (files, place) = (checkpoint(), PullDir::new());
    let hub = Hub::start(&files, sound);
    std::fs::create_dir(place.path("home")).unwrap();
    std::fs::write(place.path("home/token"), "hf_of_a_file\n").unwrap();
    let mut command = place.with(shell("\"$0\" pull -q acme/tiny"), &hub);
    command.env_remove("HF_TOKEN").env("HF_HOME", place.path("home"));
    Ran::of(command.output().unwrap()).text();
    assert_eq!(hub.asked()[0].token.as_deref(), Some("Bearer hf_of_a_file"));
}

#[test]
fn a_wrong_sum_is_not_kept() {
    for path in [SHARD, "config.json"] {
        let other = move |asked: &Asked| {
            let is_it = asked.path.contains(path) && (asked.at_store || path == "config.json");
            is_it.then(|| Fault::Contents(checkpoint()[path].iter().map(|byte| byte ^ 1).collect()))
        };
        let (files, place) = (checkpoint(), PullDir::new());
        let hub = Hub::start(&files, move |asked, _| other(asked));
        place.run(&hub, &["pull", "-q", MODEL]).failed(1, &[path, "expected ", "is not kept"]);
        place.is_left_clean(&files);
        assert!(place.entries("blobs").iter().all(|name| !name.ends_with(".incomplete")));
    }
}

#[test]
fn redirects_do_not_lead_the_token_away() {
    let away = "Location: http://127.0.0.2:9/api\r\n";
    let hub = fails(of_list(307, away), 1, &["redirects to http://127.0.0.2:9", "it is not asked"]);
    assert_eq!(hub.asked().len(), 1);
    // The hub itself tells it to the other host.
    let told = move |asked: &Asked| {
        let is_it = !asked.at_store && asked.path.contains(SHARD);
        let to = format!("Location: http://127.0.0.2:9/x?token={TOKEN}\r\n");
        is_it.then_some(Fault::Status(302, to))
    };
    fails(told, 1, &["with the token in the address: it is not asked"]);
    fails(of_list(302, "Location: /api/again\r\n"), 1, &["redirects again and again"]);
    fails(of_list(302, "Location: ftp://x\r\n"), 1, &["redirects to no address"]);
    fails(of_list(302, ""), 1, &["redirects to no address"]);
}

#[test]
fn encryption_is_held_to_certificates_and_not_left() {
    let files = checkpoint();
    let pull = |hub: &Hub, certificate: &Path| {
        let place = PullDir::new();
        let mut command = place.with(shell("\"$0\" pull -q acme/tiny"), hub);
        command.env("HF_ENDPOINT", format!("https://localhost:{}", hub.address.port()));
        let ran = Ran::of(command.env("SSL_CERT_FILE", certificate).output().unwrap());
        (ran, place)
    };
    let hub = Hub::encrypted(&files, |_, _| None);
    pull(&hub, &certificate_file()).0.text();
    assert_eq!(hub.asked()[0].token, Some(format!("Bearer {TOKEN}")));
    // Without it, the certificates that are built in count.
    pull(&hub, Path::new("")).0.failed(1, &["/api/models/acme/tiny/revision/main", "certificate"]);
    let manifest = Path::new(env!("CARGO_MANIFEST_DIR")).join("Cargo.toml");
    pull(&hub, &manifest)
        .0
        .failed(2, &["Cargo.toml: no certificate is in this file, which SSL_CERT_FILE names"]);
    let hub = Hub::encrypted(&files, |asked, _| {
        let is_it = !asked.at_store && asked.path.contains(SHARD);
        is_it.then(|| Fault::Status(302, "Location: http://127.0.0.1:9/x\r\n".to_owned()))
    });
    let (ran, place) = pull(&hub, &certificate_file());
    ran.failed(1, &["redirects to http://127.0.0.1:9, which is not encrypted: it is not asked"]);
    place.is_left_clean(&files);
}

#[test]
fn names_that_lead_out_of_the_directory_are_refused() {
    for name in ["../../../tmp/config.json", "a/../../config.json", "/etc/config.json"] {
        let list = changed(&|list| list["siblings"][0]["rfilename"] = json!(name));
        fails(
            list,
            1,
            &["acme/tiny: the hub's list of files: it names `", "leads out of the model's directory"],
        );
    }
    // An index, by the hub's own sums and by others.
    let astray = br#"{"weight_map": {"a": "../x"}}"#;
    let files: Files = [(INDEX, &astray[..]), ("config.json", b"{}")]
        .map(|(name, text)| (name.to_owned(), text.to_vec()))
        .into();
    let (place, hub) = (PullDir::new(), Hub::start(&files, sound));
    place
        .run(&hub, &["pull", "-q", MODEL])
        .failed(2, &[INDEX, "it names shard `../x`, which the hub does not have"]);
    place.is_left_clean(&files);
    let other = |asked: &Asked| asked.path.ends_with(INDEX).then(|| Fault::Contents(astray.to_vec()));
    fails(other, 1, &[INDEX, "the hub sends nothing from byte 29 on"]);
    for (field, value) in [("sha", "../../x"), ("sha", "main")] {
        fails(changed(&|list| list[field] = json!(value)), 1, &["its commit is none"]);
    }
    let place = PullDir::new();
    let hub = Hub::start(&Files::new(), sound);
    for name in ["acme/..", "../tiny", "acme/tiny:../x", "tiny", "acme/tiny/x", "-q"] {
        let ran = place.run(&hub, &["pull", "-q", "--", name]);
        ran.failed(2, &[name, "expected the name of a model on a hub, ORG/NAME"]);
    }
    assert!(hub.asked().is_empty());
}

#[test]
fn a_list_that_is_none_is_refused() {
    let of = |text: &'static str| {
        move |asked: &Asked| is_list(asked).then(|| Fault::Contents(text.as_bytes().to_vec()))
    };
    fails(of("<html>"), 1, &["the hub's list of files: expected value"]);
    fails(of("{}"), 1, &["the hub's list of files: missing field"]);
}

#[test]
fn a_full_disk_is_seen_before_and_while() {
    let large = changed(&|list| {
        let files = list["siblings"].as_array_mut().unwrap();
        let shard = files.iter_mut().find(|file| file["rfilename"] == SHARD).unwrap();
        shard["lfs"]["size"] = json!(1_000_000_000_000_000u64);
    });
    let hub = fails(large, 2, &["not enough disk space: 1000 TB needed"]);
    assert!(hub.asked().iter().all(|asked| !asked.at_store), "nothing large was asked for");
    // Files may not grow past 8 blocks of 512 bytes: a write fails as on a full disk.
    let (files, place) = (checkpoint(), PullDir::new());
    let hub = Hub::start(&files, sound);
    let command = place.with(shell("ulimit -f 8; \"$0\" pull -q acme/tiny"), &hub);
    let mut command = command;
    Ran::of(command.output().unwrap()).failed(1, &[".incomplete: File too large"]);
    place.is_left_clean(&files);
    // Bytes that were written are not fetched again.
    place.run(&hub, &["pull", "-q", MODEL]).text();
}

#[test]
fn a_connection_that_is_lost_keeps_what_came() {
    let (files, place) = (checkpoint(), PullDir::new());
    let hub = Hub::start(&files, |asked, _| {
        of_shard(|asked| if asked.from == 0 { Fault::Cut(1000) } else { Fault::Status(503, String::new()) })(
            asked,
        )
    });
    let ran = place.run(&hub, &["pull", "-q", MODEL]);
    ran.failed(
        1,
        &["answers 503", "1000 bytes of model-00001-of-00002.safetensors are kept", "goes on there"],
    );
    place.is_left_clean(&files);
    let hub = Hub::start(&files, sound);
    place.run(&hub, &["pull", "-q", MODEL]).text();
    assert!(hub.asked().iter().any(|asked| asked.at_store && asked.from == 1000));
}

#[test]
fn a_hub_that_cannot_go_on_begins_anew() {
    let (files, place) = (checkpoint(), PullDir::new());
    let hub = Hub::start(&files, |asked, _| {
        of_shard(|asked| if asked.from == 0 { Fault::Cut(1000) } else { Fault::Whole })(asked)
    });
    place.run(&hub, &["pull", "-q", MODEL]).text();
    let never = of_shard(|_| Fault::Status(416, String::new()));
    fails(never, 1, &["the hub does not send it from byte 0 on"]);
}

#[test]
fn a_variable_that_is_wrong_is_named() {
    let place = PullDir::new();
    let hub = Hub::start(&checkpoint(), sound);
    for (name, value, status, part) in [
        ("HF_ENDPOINT", "hub.example", 2, "HF_ENDPOINT is `hub.example`"),
        ("HF_TOKEN", "two words", 2, "HF_TOKEN has characters"),
        ("HF_HUB_OFFLINE", "1", 2, "HF_HUB_OFFLINE is set"),
        ("HF_ENDPOINT", "http://127.0.0.1:9", 1, "acme/tiny: http://127.0.0.1:9/api/models/acme/tiny"),
    ] {
        let mut command = place.with(shell("\"$0\" pull -q acme/tiny"), &hub);
        Ran::of(command.env(name, value).output().unwrap()).failed(status, &[part]);
    }
    assert!(hub.asked().is_empty() && !place.model().exists());
}
