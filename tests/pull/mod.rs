//! `kernmill pull` against a hub on the loopback: what it leaves in the cache, and what is said when the hub,
//! the connection or the disk is out of order.

mod faults;
pub mod hub;
mod offers;

use crate::harness::{oracle, program, shell};
use hub::{Asked, COMMIT, Fault, Hub, MODEL, sum};
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use tempfile::TempDir;

const TOKEN: &str = "hf_atokenofthetests";

type Files = BTreeMap<String, Vec<u8>>;

/// The files of a small checkpoint in two shards, and some that nobody needs.
fn checkpoint() -> Files {
    let file = |entry: fs::DirEntry| {
        let name = entry.file_name().into_string().unwrap();
        (name, fs::read(entry.path()).unwrap())
    };
    let mut files: Files =
        fs::read_dir(oracle("gptoss-sharded")).unwrap().map(|entry| file(entry.unwrap())).collect();
    files.remove("oracle.safetensors");
    files.insert("README.md".to_owned(), b"About it".to_vec());
    files.insert("original/model.safetensors".to_owned(), vec![1; 1000]);
    files.insert("pytorch_model.bin".to_owned(), vec![2; 1000]);
    files
}

/// A file of the checkpoint that is large.
const SHARD: &str = "model-00001-of-00002.safetensors";

/// A place to fetch to.
struct PullDir {
    dir: TempDir,
}

/// The outcome of a command.
struct Ran {
    status: Option<i32>,
    stdout: String,
    stderr: String,
}

impl PullDir {
    fn new() -> PullDir {
        PullDir { dir: TempDir::new().unwrap() }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    /// The directory of the model in the cache.
    fn model(&self) -> PathBuf {
        self.path("cache/models--acme--tiny")
    }

    /// Readies a command for a hub.
    fn with(&self, mut command: Command, hub: &Hub) -> Command {
        let names = std::env::vars_os().filter_map(|(name, _)| name.into_string().ok());
        for name in names.filter(|name| name.starts_with("HF_") || name.to_lowercase().ends_with("_proxy")) {
            command.env_remove(name);
        }
        let endpoint = format!("http://{}", hub.address);
        command.env("HF_ENDPOINT", endpoint).env("HF_TOKEN", TOKEN).env("HF_HUB_CACHE", self.path("cache"));
        command.current_dir(self.dir.path());
        command
    }

    fn run(&self, hub: &Hub, args: &[&str]) -> Ran {
        let mut command = program();
        command.args(args);
        Ran::of(self.with(command, hub).output().unwrap())
    }

    /// Names of the files in a directory of the model, in order.
    fn entries(&self, dir: &str) -> Vec<String> {
        let entries = fs::read_dir(self.model().join(dir)).into_iter().flatten();
        let mut names: Vec<String> =
            entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }

    /// Nothing looks like a model, or a part of one that is whole but not right.
    #[track_caller]
    fn is_left_clean(&self, files: &Files) {
        assert_eq!((self.entries("snapshots"), self.entries("refs")), (vec![], vec![]));
        let whole: Vec<String> = files.iter().map(|(path, bytes)| sum(path, bytes)).collect();
        for name in self.entries("blobs") {
            assert!(name.ends_with(".incomplete") || whole.contains(&name), "{name}");
        }
    }
}

impl Ran {
    fn of(output: Output) -> Ran {
        let text = |bytes| String::from_utf8(bytes).unwrap();
        Ran { status: output.status.code(), stdout: text(output.stdout), stderr: text(output.stderr) }
    }

    #[track_caller]
    fn text(self) -> String {
        assert_eq!(self.status, Some(0), "{}", self.stderr);
        self.stdout
    }

    /// The command failed with one line that has all of `parts`.
    #[track_caller]
    fn failed(&self, status: i32, parts: &[&str]) {
        let message = &self.stderr;
        assert_eq!((self.status, self.stdout.as_str()), (Some(status), ""), "{message}");
        assert!(message.starts_with("error: ") && message.lines().count() == 1, "{message}");
        parts.iter().for_each(|part| assert!(message.contains(part), "`{part}` is not in:\n{message}"));
        assert!(!message.contains(TOKEN) && !message.contains("secret"), "{message}");
    }
}

fn sound(_: &Asked, _: usize) -> Option<Fault> {
    None
}

#[test]
fn a_checkpoint_is_fetched_and_its_name_is_a_model() {
    let (files, place) = (checkpoint(), PullDir::new());
    let hub = Hub::start(&files, sound);
    let ran = place.run(&hub, &["pull", MODEL]);
    assert!(
        ran.stderr.contains("4 files, ") && ran.stderr.contains("`kernmill chat acme/tiny`"),
        "{}",
        ran.stderr
    );
    let path = ran.text();
    let snapshot = place.model().join("snapshots").join(COMMIT);
    assert_eq!(path, format!("{}\n", snapshot.display()));
    assert_eq!(fs::read_to_string(place.model().join("refs/main")).unwrap(), COMMIT);
    let wanted = ["config.json", SHARD, "model-00002-of-00002.safetensors", "model.safetensors.index.json"];
    assert_eq!(place.entries(&format!("snapshots/{COMMIT}")), wanted);
    for name in wanted {
        let blob = format!("../../blobs/{}", sum(name, &files[name]));
        assert_eq!(fs::read_link(snapshot.join(name)).unwrap(), Path::new(&blob));
        assert_eq!(fs::read(snapshot.join(name)).unwrap(), files[name], "{name}");
    }
    assert_eq!(place.entries("blobs").len(), wanted.len());
    // The token is the hub's alone.
    for asked in hub.asked() {
        let token = (!asked.at_store).then(|| format!("Bearer {TOKEN}"));
        assert_eq!(asked.token, token, "{asked:?}");
    }
    let count = hub.sent().len();
    let again = place.run(&hub, &["pull", &format!("https://huggingface.co/{MODEL}")]);
    assert!(again.stderr.contains("it is there already"), "{}", again.stderr);
    assert_eq!((again.text(), hub.sent().len()), (path, count));
    let before = hub.asked().len();
    fs::write(place.path("ids.json"), "[1, 2, 3]").unwrap();
    let ids = ["--tokens", "ids.json", "-n", "2", "-q", "--json"];
    for more in [&["--offline"][..], &["--hf-cache"]] {
        let json = place.run(&hub, &[&["run", MODEL], &ids[..], more].concat()).text();
        assert!(json.contains("\"model\": \"tiny\""), "{json}");
    }
    assert_eq!(hub.asked().len(), before, "a model that is there is not asked for");
}

#[test]
fn a_gguf_file_is_taken_by_its_type() {
    let small = || vec![7u8; 5000];
    let names = ["tiny-Q4_0.gguf", "sub/tiny-Q8_0-00001-of-00002.gguf", "sub/tiny-Q8_0-00002-of-00002.gguf"];
    let mut files: Files = names.map(|name| (name.to_owned(), [small(), name.into()].concat())).into();
    files.insert("config.json".to_owned(), b"{}".to_vec());
    let (place, hub) = (PullDir::new(), Hub::start(&files, sound));
    let several = place.run(&hub, &["pull", "-q", MODEL]);
    several.failed(2, &["it has Q8_0 (10.1 kB), Q4_0 (5.01 kB)", "such as `acme/tiny:"]);
    place.run(&hub, &["pull", "-q", "acme/tiny:Q5_K_M"]).failed(2, &["no GGUF file of it is a `Q5_K_M`"]);
    assert!(!place.model().exists());
    for (name, path) in [("acme/tiny:q8_0", names[1]), ("acme/tiny:tiny-Q4_0.gguf", names[0])] {
        let snapshot = place.model().join("snapshots").join(COMMIT);
        let printed = place.run(&hub, &["pull", "-q", name]).text();
        assert_eq!(printed, format!("{}\n", snapshot.join(path).display()));
        // The file that the name stands for is no model, and the message names it.
        let run = place.run(&hub, &["run", name]);
        assert!(run.stderr.contains(&format!("{path}: ")), "{}", run.stderr);
    }
    assert_eq!(
        hub.sent(),
        [names[1], names[2], names[0]]
            .map(|name| name.rsplit('/').next().unwrap().to_owned() + "?Signature=secret")
    );
}

#[test]
fn a_file_that_is_cut_goes_on() {
    let (files, place) = (checkpoint(), PullDir::new());
    let part = files[SHARD].len() / 21;
    let hub = Hub::start(&files, move |asked, _| {
        (asked.at_store && asked.path.contains(SHARD)).then_some(Fault::Cut(part))
    });
    place.run(&hub, &["pull", "-q", MODEL]).text();
    let asked = hub.asked().into_iter().filter(|asked| asked.at_store && asked.path.contains(SHARD));
    let from: Vec<usize> = asked.map(|asked| asked.from).collect();
    assert!(from.len() > 20, "{from:?}");
    assert!(from.iter().enumerate().all(|(at, from)| *from == at * part), "{from:?}");
}

#[test]
fn a_part_from_before_goes_on_if_it_is_of_the_file() {
    let files = checkpoint();
    let half = files[SHARD].len() / 2;
    let too_much = [&files[SHARD][..], b"more"].concat();
    let other = vec![9; half];
    let shown = [(&files[SHARD][..half], vec![half]), (&other, vec![half, 0]), (&too_much, vec![0])];
    for (part, expected) in shown {
        let place = PullDir::new();
        fs::create_dir_all(place.model().join("blobs")).unwrap();
        let name = format!("blobs/{}.incomplete", sum(SHARD, &files[SHARD]));
        fs::write(place.model().join(name), part).unwrap();
        let hub = Hub::start(&files, sound);
        place.run(&hub, &["pull", "-q", MODEL]).text();
        let asked = hub.asked().into_iter().filter(|asked| asked.at_store && asked.path.contains(SHARD));
        assert_eq!(asked.map(|asked| asked.from).collect::<Vec<_>>(), expected);
        assert_eq!(place.entries("blobs").len(), 4);
    }
}

#[test]
fn a_link_that_leads_elsewhere_is_made_anew() {
    let (files, place) = (checkpoint(), PullDir::new());
    let snapshot = place.model().join("snapshots").join(COMMIT);
    fs::create_dir_all(&snapshot).unwrap();
    std::os::unix::fs::symlink("nowhere", snapshot.join("config.json")).unwrap();
    let hub = Hub::start(&files, sound);
    place.run(&hub, &["pull", "-q", MODEL]).text();
    assert_eq!(fs::read(snapshot.join("config.json")).unwrap(), files["config.json"]);
    assert_eq!(place.entries(&format!("snapshots/{COMMIT}")).len(), 4);
}

#[test]
fn two_that_fetch_the_same_model_share_the_work() {
    let (files, place) = (checkpoint(), PullDir::new());
    let hub = Hub::start(&files, |asked, _| {
        std::thread::sleep(std::time::Duration::from_millis(if asked.at_store { 300 } else { 0 }));
        None
    });
    let start = || {
        let mut command = program();
        command.args(["pull", "-q", MODEL]);
        piped(place.with(command, &hub)).spawn().unwrap()
    };
    let both = [start(), start()].map(|child| Ran::of(child.wait_with_output().unwrap()).text());
    assert_eq!(both[0], both[1]);
    assert_eq!(hub.asked().iter().filter(|asked| asked.at_store).count(), 2, "each shard once");
}

fn piped(mut command: Command) -> Command {
    use std::process::Stdio;
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}
