//! Plans: written, read, trusted or not, cut off, and what is left of them when something fails.

use super::{Ran, Sandbox};
use crate::harness::program;
use std::fs::{self, File, Permissions};
use std::io::{Read, Write};
use std::os::unix::fs::{FileExt, MetadataExt, PermissionsExt, chown, symlink};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::Path;
use std::process::Stdio;
use std::time::{Duration, Instant};

use kernmill_plan::target::{Level, Tuning};
use serde_json::Value;

impl Sandbox {
    /// Compiles the fixture.
    fn compile(&self, more: &[&str]) -> Ran {
        let usual = ["compile", "spec.toml", "--weights", ".", "-o", "a.plan"];
        self.run(&[&usual, more].concat())
    }

    /// The logits of `ids.json` by the plan.
    fn plan_logits(&self, more: &[&str]) -> Vec<u8> {
        let usual = ["logits", "a.plan", "--tokens", "ids.json", "--out", "plan.safetensors"];
        self.run(&[&usual, more].concat()).text();
        fs::read(self.path("plan.safetensors")).unwrap()
    }

    /// A compiled fixture.
    fn with_plan(more: &[&str]) -> Sandbox {
        let sandbox = Sandbox::of("gptoss-base");
        sandbox.compile(more).text();
        sandbox
    }
}

#[test]
fn a_plan_gives_the_bits_of_its_spec_at_every_level() {
    let sandbox = Sandbox::of("gptoss-base");
    for preset in ["exact", "faithful", "bf16", "fast"] {
        sandbox.logits(&["--preset", preset]).text();
        let expected = fs::read(sandbox.path("out.safetensors")).unwrap();
        sandbox.compile(&["--preset", preset, "--target", "all"]).text();
        let listing = sandbox.run(&["inspect", "a.plan"]).text();
        assert_eq!(listing.contains("amx"), preset == "bf16", "{preset}: {listing}");
        assert_eq!(sandbox.plan_logits(&[]), expected, "{preset}");
        assert_eq!(sandbox.plan_logits(&["--chunk", "2", "--threads", "3"]), expected, "{preset} in chunks");
        // Only preset bf16 has the target with tiles, which is then the one that runs above.
        for level in Level::supported().into_iter().filter(|level| !level.has_tiles()) {
            let target = ["--target", level.name()];
            assert_eq!(sandbox.plan_logits(&target), expected, "{preset}, {}", level.name());
            let regenerate = ["--regenerate", target[0], target[1]];
            assert_eq!(sandbox.plan_logits(&regenerate), expected, "{preset}, {} anew", level.name());
        }
    }
}

#[test]
fn a_plan_has_the_formats_of_keys_and_values_that_were_asked_for() {
    let sandbox = Sandbox::of("gptoss-base");
    let mut seen = Vec::new();
    let cases = [
        (&[][..], "f16"),
        (&["--kv-format", "int8"], "int8, sliding f16"),
        (&["--kv-format", "k=int8,sliding=int8"], "k=int8, v=f16, sliding int8"),
        (&["--preset", "exact", "--kv-format", "int8"], "int8, sliding f32"),
    ];
    for (given, formats) in cases {
        sandbox.logits(given).text();
        let expected = fs::read(sandbox.path("out.safetensors")).unwrap();
        sandbox.compile(given).text();
        assert_eq!(sandbox.plan_logits(&[]), expected, "{formats}");
        assert_eq!(sandbox.plan_logits(&["--regenerate"]), expected, "{formats} anew");
        let listing = sandbox.run(&["inspect", "a.plan"]).text();
        assert!(listing.contains(&format!("keys and values {formats}: ")), "{listing}");
        let json = sandbox.run(&["inspect", "a.plan", "--json"]).text();
        assert_eq!(serde_json::from_str::<Value>(&json).unwrap()["kv_format"], formats);
        assert!(!seen.contains(&expected), "{formats} rounds as another does");
        seen.push(expected);
    }
    sandbox.run(&["run", "a.plan", "--prompt", "a", "--kv-format", "int8"]).refused(&["--kv-format", "plan"]);
}

#[test]
fn compiling_twice_gives_the_same_bytes() {
    let sandbox = Sandbox::of("gptoss-base");
    let compiled = |more: &[&str]| {
        sandbox.compile(more).text();
        fs::read(sandbox.path("a.plan")).unwrap()
    };
    let first = compiled(&["--threads", "1", "--target", "x86-64-v4-vnni,x86-64-v3"]);
    assert!(first == compiled(&["--threads", "3", "--target", "x86-64-v3,x86-64-v4-vnni,x86-64-v3"]));
    assert!(first != compiled(&["--target", "x86-64-v3"]));
    assert!(!sandbox.files().iter().any(|file| file.contains("unfinished")));
}

#[test]
fn text_runs_from_a_plan_and_ends_where_the_model_does() {
    let sandbox = Sandbox::of("gptoss-base");
    sandbox.run(&["compile", "-o", "nano.plan", "--target", "all"]).text();
    let run = |more: &[&str]| {
        let usual = ["run", "nano.plan", "--prompt", "A slice is", "-n", "30", "--json"];
        let text = sandbox.run(&[&usual, more].concat()).text();
        serde_json::from_str::<Value>(&text).unwrap()
    };
    let report = run(&[]);
    assert!(report["text"].as_str().unwrap().len() > 10, "{report}");
    assert_eq!(report["seconds"]["compile"], 0.0);
    assert_eq!(run(&["--target", "x86-64-v3"])["text"], report["text"]);
    let bench = ["bench", "nano.plan", "--pp", "16", "--tg", "8", "--read", "1M", "--json"];
    let measured: Value = serde_json::from_str(&sandbox.run(&bench).text()).unwrap();
    assert_eq!(measured["model"], "nano");
}

#[test]
fn code_that_others_can_write_is_not_run() {
    let sandbox = Sandbox::with_plan(&[]);
    let trusted = sandbox.plan_logits(&[]);
    let arguments = ["logits", "a.plan", "--tokens", "ids.json", "--out", "out.safetensors"];
    let before = sandbox.files();
    for mode in [0o664, 0o646, 0o777] {
        fs::set_permissions(sandbox.path("a.plan"), Permissions::from_mode(mode)).unwrap();
        for command in [&arguments[..], &["run", "a.plan", "--tokens", "ids.json", "--quiet"]] {
            sandbox.run(command).refused(&[
                "a.plan: the plan's machine code is not used: others than its owner can write",
                "cp, chmod go-w",
                "--regenerate",
            ]);
        }
        assert_eq!(sandbox.files(), before);
        let inspected = sandbox.run(&["inspect", "a.plan"]).text();
        assert!(inspected.contains("the machine code is not trusted: others"), "{inspected}");
    }
    // Both ways out that the message names.
    sandbox.run(&[&arguments[..], &["--regenerate"]].concat()).text();
    assert_eq!(fs::read(sandbox.path("out.safetensors")).unwrap(), trusted);
    fs::set_permissions(sandbox.path("a.plan"), Permissions::from_mode(0o755)).unwrap();
    sandbox.run(&arguments).text();
    assert_eq!(fs::read(sandbox.path("out.safetensors")).unwrap(), trusted);
}

#[test]
fn code_of_other_users_is_not_run() {
    let sandbox = Sandbox::with_plan(&[]);
    let trusted = sandbox.plan_logits(&[]);
    if chown(sandbox.path("a.plan"), Some(1234), None).is_err() {
        // Nobody but root gives files away; for others, root's own are trusted, and the rule's tests have the
        // rest.
        return assert!(fs::metadata(sandbox.path("a.plan")).unwrap().uid() != 0);
    }
    let arguments = ["logits", "a.plan", "--tokens", "ids.json", "--out", "out.safetensors"];
    sandbox.run(&arguments).refused(&["the file belongs to user 1234, expected 0", "cp, chmod go-w"]);
    symlink("a.plan", sandbox.path("link.plan")).unwrap();
    sandbox.run(&["run", "link.plan", "--tokens", "ids.json"]).refused(&["link.plan: ", "user 1234"]);
    assert_eq!(sandbox.plan_logits(&["--regenerate"]), trusted);
    fs::copy(sandbox.path("a.plan"), sandbox.path("own.plan")).unwrap();
    fs::rename(sandbox.path("own.plan"), sandbox.path("a.plan")).unwrap();
    assert_eq!(sandbox.plan_logits(&[]), trusted);
}

#[test]
fn a_tuning_is_honoured_or_refused_for_plans() {
    let sandbox = Sandbox::of("gptoss-base");
    let spec = Path::new(env!("CARGO_MANIFEST_DIR")).join("model-specs/nano/nano.toml");
    let level = *Level::supported().iter().rfind(|level| !level.has_tiles()).unwrap();
    sandbox.run(&["compile", "-o", "nano.plan", "--target", level.name()]).text();
    let generate = ["run", "nano.plan", "--prompt", "A", "-n", "1", "-q", "--regenerate"];
    for tuning in Tuning::ALL {
        let how = ["--target", level.name(), "--tune", tuning.name(), "--emit", "asm"];
        let compiled = sandbox.run(&[&["compile", spec.to_str().unwrap()], &how[..]].concat()).text();
        let generated = sandbox.run(&[&generate[..], &how].concat()).text();
        // A token's text follows.
        assert!(generated.starts_with(&compiled) && !compiled.is_empty(), "{}", tuning.name());
    }
    let run = ["run", "nano.plan", "--prompt", "A"];
    for tuning in ["generic", "native"] {
        sandbox.run(&[&run[..], &["--tune", tuning]].concat()).refused(&["--tune: "]);
    }
}

#[test]
fn a_plan_is_written_so_that_its_code_runs_whatever_the_umask() {
    let sandbox = Sandbox::of("gptoss-base");
    let mut command = program();
    command.args(["compile", "spec.toml", "--weights", ".", "-o", "a.plan"]).current_dir(sandbox.dir.path());
    // SAFETY: umask may be called between fork and exec, and touches nothing of this process.
    unsafe {
        command.pre_exec(|| {
            libc::umask(0);
            Ok(())
        });
    }
    assert!(command.status().unwrap().success());
    assert_eq!(fs::metadata(sandbox.path("a.plan")).unwrap().permissions().mode() & 0o777, 0o644);
}

#[test]
fn inspect_shows_a_plan_in_several_ways() {
    let sandbox = Sandbox::with_plan(&["--target", "x86-64-v3,x86-64-v4-vnni"]);
    let text = sandbox.run(&["inspect", "a.plan", "--verify", "--target", "x86-64-v3"]).text();
    for part in [
        "preset faithful",
        "weight hashes",
        "layers.0.q ",
        "program for x86-64-v3",
        "class of up to",
        "every hash fits",
    ] {
        assert!(text.contains(part), "`{part}` is not in:\n{text}");
    }
    let json = sandbox.run(&["inspect", "a.plan", "--json"]).text();
    let json: Value = serde_json::from_str(&json).unwrap();
    assert_eq!(json["targets"][1]["level"], "x86-64-v4-vnni");
    for target in 0..2 {
        let kernels = json["targets"][target]["kernels"].as_array().unwrap();
        let embed = kernels.iter().filter(|kernel| {
            let needs = kernel["contract"]["operands"].as_array().unwrap();
            needs.iter().any(|need| need["Table"]["row_bytes"].as_u64().is_some_and(|bytes| bytes > 0))
        });
        assert_eq!(embed.count(), 1, "one kernel reads the table of embeddings");
    }
    let asks = text.lines().filter(|line| line.contains(" asks for ")).count();
    assert_eq!(asks, json["targets"][0]["kernels"].as_array().unwrap().len());
    assert_eq!(json["sections"].as_array().unwrap().last().unwrap()["section"], "weights");
    let code = sandbox.run(&["inspect", "a.plan", "--target", "x86-64-v3", "--disasm"]).text();
    assert!(code.lines().count() > 1000 && code.contains("vmovups"), "{}", &code[..200]);
    let symbol = code.split(':').next().unwrap();
    let one = sandbox.run(&["inspect", "a.plan", "--target", "x86-64-v3", "--disasm", symbol]).text();
    assert!(one.len() < code.len() && one.starts_with(symbol));
    sandbox.run(&["inspect", "a.plan", "--disasm", "no such"]).refused(&["no function's name contains it"]);
    sandbox
        .run(&["inspect", "a.plan", "--target", "x86-64-v4"])
        .refused(&["no target x86-64-v4; the plan has"]);
    let spec = ["run", "a.plan", "--tokens", "ids.json", "-n", "1", "-q", "--emit", "spec"];
    assert!(sandbox.run(&spec).text().starts_with(&sandbox.read("spec.toml")));
    let graph = ["run", "a.plan", "--tokens", "ids.json", "-n", "1", "--emit", "graph"];
    sandbox.run(&graph).refused(&["--emit graph: a plan has only spec, asm, plan and obj"]);
}

#[test]
fn perf_finds_every_kernels_name() {
    let sandbox = Sandbox::with_plan(&[]);
    let command = ["run", "a.plan", "--tokens", "ids.json", "-n", "1", "-q", "--perf-map"];
    let child = program().args(command).current_dir(sandbox.dir.path()).stdout(Stdio::null()).spawn();
    let mut child = child.unwrap();
    let path = format!("/tmp/perf-{}.map", child.id());
    assert!(child.wait().unwrap().success());
    let map = fs::read_to_string(&path).unwrap();
    fs::remove_file(path).unwrap();
    let listing = sandbox.run(&["inspect", "a.plan"]).text();
    let symbols = listing.split("\nsymbols\n").nth(1).unwrap().lines();
    let symbols: Vec<&str> = symbols.filter(|line| !line.contains(" asks for ")).collect();
    assert!(map.lines().count() == symbols.len() && symbols.len() > 10, "{map}");
    for (line, symbol) in map.lines().zip(symbols) {
        let name = symbol.split_whitespace().skip(3).collect::<Vec<_>>().join(" ");
        assert!(line.ends_with(&format!("kernmill:{name}")), "{line}: {symbol}");
    }
}

#[test]
fn a_dry_run_writes_nothing() {
    let sandbox = Sandbox::of("gptoss-base");
    let before = sandbox.files();
    let text = sandbox.run(&["compile", "spec.toml", "--weights", ".", "--dry-run"]).text();
    let alone = sandbox.run(&["compile", "spec.toml", "--dry-run", "--context", "9"]).text();
    for part in [
        "plan: ",
        "weights",
        "memory: ",
        "it fits, also with the model's longest",
        "tokens/s on this machine",
    ] {
        assert!(text.contains(part), "`{part}` is not in:\n{text}");
        assert!(alone.contains(part), "`{part}` is not in:\n{alone}");
    }
    assert!(alone.contains("a context of 9 tokens") && alone.contains("without weights at hand"), "{alone}");
    let fast = ["compile", "spec.toml", "--dry-run", "--json", "--preset", "fast"];
    let report: Value = serde_json::from_str(&sandbox.run(&fast).text()).unwrap();
    let number = |field: &str| report.pointer(field).and_then(Value::as_f64).unwrap();
    assert!(number("/plan_bytes") > number("/memory/weights") && number("/memory/kv") > 0.0, "{report:#}");
    assert!(report["notes"].to_string().contains("that may have 4 bits does"), "{report:#}");
    assert_eq!(sandbox.files(), before);
}

#[test]
fn what_is_no_plan_or_damaged_is_refused() {
    let sandbox = Sandbox::with_plan(&[]);
    let good = fs::read(sandbox.path("a.plan")).unwrap();
    let run = |more: &[&str]| sandbox.run(&[&["run", "a.plan", "--tokens", "ids.json"], more].concat());
    run(&["--preset", "exact"]).refused(&["--preset: a plan is compiled already"]);
    run(&["--weights", "."]).refused(&["--weights: a plan is compiled already"]);
    run(&["--max-memory", "1k"]).refused(&["not enough memory"]);
    run(&["--prompt", "x"]).misused("--prompt");
    sandbox.run(&["run", "a.plan", "--prompt", "x"]).refused(&["tokenizer"]);
    sandbox.run(&["run", "none.plan"]).refused(&["none.plan", "No such file"]);
    sandbox.run(&["run", "spec.toml"]).refused(&["spec.toml is a spec", "--weights"]);
    for length in [0, 7, 8, 4095, 4096, good.len() / 2, good.len() - 1] {
        sandbox.write("a.plan", &good[..length]);
        run(&[]).refused(&["a.plan: "]);
    }
    let mut damaged = good.clone();
    *damaged.last_mut().unwrap() ^= 1;
    sandbox.write("a.plan", &damaged);
    run(&["-n", "1"]).text();
    sandbox.run(&["inspect", "a.plan", "--verify"]).refused(&["weights are damaged: bytes", "lm_head"]);
    let other = Level::ALL.into_iter().find(|level| Some(level) != Level::supported().last()).unwrap();
    sandbox.write("a.plan", &good);
    run(&["--target", other.name()]).refused(&["no target", other.name(), "--regenerate"]);
}

#[test]
fn a_plan_that_is_cut_off_while_it_runs_ends_in_a_message() {
    let sandbox = Sandbox::of("gptoss-base");
    sandbox.run(&["compile", "-o", "nano.plan"]).text();
    let path = sandbox.path("nano.plan");
    // The weights are mapped before the prompt is read.
    let mut child = program()
        .args(["run", "nano.plan", "--prompt-file", "-"])
        .current_dir(sandbox.dir.path())
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let maps = format!("/proc/{}/maps", child.id());
    let start = Instant::now();
    while !fs::read_to_string(&maps).unwrap_or_default().contains("nano.plan") {
        assert!(start.elapsed() < Duration::from_secs(60), "the plan is never mapped");
        std::thread::sleep(Duration::from_millis(2));
    }
    File::options().write(true).open(&path).unwrap().set_len(2 << 20).unwrap();
    child.stdin.take().unwrap().write_all(b"A slice is").unwrap();
    let mut message = String::new();
    child.stderr.take().unwrap().read_to_string(&mut message).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(1), "{message}");
    assert!(message.contains("error: nano.plan: part of the file cannot be read any more"), "{message}");
}

#[test]
fn a_killed_compilation_leaves_nothing_that_loads() {
    let sandbox = Sandbox::of("gptoss-base");
    assert!(sandbox.read("config.json").contains("\"num_hidden_layers\": 2"));
    let before = sandbox.files();
    let start = Instant::now();
    sandbox.compile(&["-q"]).text();
    let whole = start.elapsed();
    fs::remove_file(sandbox.path("a.plan")).unwrap();
    let mut rng = fastrand::Rng::with_seed(7);
    let (mut killed, mut tries) = (0, 0);
    while killed < 20 {
        tries += 1;
        assert!(tries < 500, "only {killed} of the kills came before the end");
        let mut child = program()
            .args(["compile", "spec.toml", "--weights", ".", "-o", "a.plan", "-q"])
            .current_dir(sandbox.dir.path())
            .spawn()
            .unwrap();
        std::thread::sleep(whole.mul_f64(rng.f64()));
        child.kill().unwrap();
        killed += u32::from(child.wait().unwrap().signal() == Some(libc::SIGKILL));
        // A file under its name is whole: the process was killed after the renaming, or was done already.
        if sandbox.path("a.plan").exists() {
            sandbox.run(&["inspect", "a.plan", "--verify"]).text();
            fs::remove_file(sandbox.path("a.plan")).unwrap();
        }
        assert_eq!(sandbox.files(), before);
    }
    sandbox.write(".a.plan.4194999.0.unfinished", "left by a kill");
    sandbox.compile(&[]).text();
    sandbox.run(&["inspect", "a.plan", "--verify"]).text();
    fs::remove_file(sandbox.path("a.plan")).unwrap();
    assert_eq!(sandbox.files(), before);
}

#[test]
fn a_disk_that_takes_no_more_is_an_error_and_leaves_nothing() {
    let sandbox = Sandbox::with_plan(&[]);
    let good = fs::read(sandbox.path("a.plan")).unwrap();
    let before = sandbox.files();
    let mut command = program();
    command.args(["compile", "spec.toml", "--weights", ".", "-o", "a.plan"]).current_dir(sandbox.dir.path());
    let limit = libc::rlimit { rlim_cur: 1 << 20, rlim_max: 1 << 20 };
    // SAFETY: setrlimit may be called between fork and exec, and touches nothing of this process.
    let output = unsafe {
        command.pre_exec(move || match libc::setrlimit(libc::RLIMIT_FSIZE, &raw const limit) {
            0 => Ok(()),
            _ => Err(std::io::Error::last_os_error()),
        })
    };
    let output = output.output().unwrap();
    let message = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(1), "{message}");
    assert!(message.contains("a.plan: File too large"), "{message}");
    assert_eq!(sandbox.files(), before);
    assert!(fs::read(sandbox.path("a.plan")).unwrap() == good, "the plan of before is still there");
    sandbox.run(&["compile", "-o", "none/a.plan"]).refused(&["none/a.plan", "No such file"]);
    sandbox.run(&["compile", "-o", "."]).refused(&["is a directory"]);
    sandbox.run(&["compile"]).misused("--output");
}

#[test]
fn a_weight_that_cannot_be_packed_leaves_nothing() {
    let sandbox = Sandbox::of("gptoss-base");
    let path = sandbox.path("model.safetensors");
    let file = File::options().write(true).read(true).open(&path).unwrap();
    let length = file.metadata().unwrap().len();
    // NaN in bf16, whatever the tensor.
    file.write_all_at(&[0xff; 64], length - 64).unwrap();
    let before = sandbox.files();
    sandbox.compile(&[]).refused(&["checkpoint tensor"]);
    assert_eq!(sandbox.files(), before);
    assert!(!Path::new("a.plan").exists());
}

#[test]
fn processes_that_start_at_once_keep_one_whole_plan_and_have_one_text() {
    let sandbox = Sandbox::of("gptoss-base");
    let args = ["run", "spec.toml", "--weights", ".", "--tokens", "ids.json", "-n", "5", "--plan-cache", "p"];
    let expected =
        sandbox.run(&["run", "spec.toml", "--weights", ".", "--tokens", "ids.json", "-n", "5"]).text();
    let start = || {
        let mut command = program();
        command.args(args).current_dir(sandbox.dir.path()).stdin(Stdio::null());
        command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
    };
    for _ in 0..2 {
        let running = [start(), start(), start(), start()];
        for one in running {
            let ran = one.wait_with_output().unwrap();
            let told = String::from_utf8(ran.stderr).unwrap();
            assert!(ran.status.success(), "{told}");
            assert_eq!(String::from_utf8(ran.stdout).unwrap(), expected);
            let notes = told.lines().filter(|line| line.starts_with("note: "));
            assert!(notes.clone().all(|note| note.contains("another process writes a plan there")), "{told}");
        }
        let kept: Vec<_> =
            fs::read_dir(sandbox.path("p")).unwrap().map(|entry| entry.unwrap().path()).collect();
        assert_eq!(kept.len(), 1, "{kept:?}");
        sandbox.run(&["inspect", kept[0].to_str().unwrap(), "--verify"]).text();
    }
    let refused = sandbox.run(&[&args[..], &["--plan-cache-limit", "1k"]].concat());
    assert_eq!(refused.status, Some(0), "a plan that is there is used: {}", refused.stderr);
    sandbox.run(&[&args[..], &["--no-plan-cache"]].concat()).misused("--plan-cache");
}
