//! Plans that do not fit: on the disk, or in memory. The files of these tests are sparse: they are large, and
//! take no space.

use super::Sandbox;
use crate::hostile::targets::plan::sign_plan;
use kernmill_os::memory::{available_memory, free_space, lies_in_memory};
use kernmill_plan::file::check::PlanFile;
use kernmill_plan::file::{ENTRY_BYTES, Metadata, SectionKind, TABLE_OFFSET};
use std::fs::{self, File, Permissions};
use std::io::Write;
use std::os::fd::{AsRawFd, FromRawFd};
use std::os::unix::fs::{FileExt, PermissionsExt};
use std::path::Path;
use tempfile::TempDir;

/// A model of nothing but an embedding table, which is its unembedding too.
fn table_spec(vocab: u64) -> String {
    format!(
        "[model]\nname = \"table\"\nvocab = {vocab}\nmax_context = 64\n\
         [tensors]\nembed = {{ from = \"e\", shape = [{vocab}, 4096], format = \"f32\" }}\n\
         unembed = {{ from = \"e\", shape = [{vocab}, 4096], format = \"f32\" }}\n\
         [before]\nnode = [{{ out = \"x\", op = \"embed\", table = \"embed\" }}]\n\
         [after]\nnode = [{{ out = \"rows\", op = \"select_rows\", input = \"x\" }}, \
         {{ out = \"logits\", op = \"logits\", input = \"rows\", weight = \"unembed\" }}]\n"
    )
}

#[test]
fn a_plan_that_the_disk_has_no_room_for_is_refused_before_the_work() {
    let sandbox = Sandbox { dir: TempDir::new().unwrap() };
    // Its table alone is twice of what is free, and a plan holds it at least once.
    let free = free_space(sandbox.dir.path()).unwrap();
    let vocab = (2 * free / (4096 * 4)).next_multiple_of(16).max(1 << 10);
    sandbox.write("spec.toml", table_spec(vocab));
    let bytes = vocab * 4096 * 4;
    let header = format!(r#"{{"e":{{"dtype":"F32","shape":[{vocab},4096],"data_offsets":[0,{bytes}]}}}}"#);
    let mut file = File::create(sandbox.path("model.safetensors")).unwrap();
    file.write_all(&(header.len() as u64).to_le_bytes()).unwrap();
    file.write_all(header.as_bytes()).unwrap();
    file.set_len(8 + header.len() as u64 + bytes).unwrap();
    let before = sandbox.files();
    let compile = ["compile", "spec.toml", "--weights", ".", "-o", "a.plan"];
    sandbox.run(&compile).refused(&["not enough disk space: ", " needed, ", " free"]);
    assert_eq!(sandbox.files(), before);
}

/// Makes a plan say that it has `bytes` of weights, and its file as long: what is new is a hole.
fn enlarge(file: &File, bytes: u64) {
    let plan = PlanFile::open(file.try_clone().unwrap()).unwrap();
    let mut metadata = plan.metadata().clone();
    let section = plan.sections()[0];
    assert_eq!(section.kind, SectionKind::Metadata);
    metadata.weight_bytes = bytes;
    let encoded = |metadata: &Metadata| postcard::to_allocvec(metadata).unwrap();
    // The section keeps its size: a shorter name of its writer makes room for the longer number.
    while encoded(&metadata).len() as u64 > section.bytes {
        metadata.producer.pop().unwrap();
    }
    let encoded = encoded(&metadata);
    assert_eq!(encoded.len() as u64, section.bytes);
    file.write_all_at(&encoded, section.offset).unwrap();
    let weights = *plan.weights();
    let entry = TABLE_OFFSET + (plan.sections().len() - 1) * ENTRY_BYTES;
    file.write_all_at(&bytes.to_le_bytes(), entry as u64 + 16).unwrap();
    file.write_all_at(&(weights.offset + bytes).to_le_bytes(), 16).unwrap();
    let mut front = vec![0; weights.offset as usize];
    file.read_exact_at(&mut front, 0).unwrap();
    sign_plan(&mut front);
    file.write_all_at(&front, 0).unwrap();
    file.set_len(weights.offset + bytes).unwrap();
}

/// Standard error of a run of a plan, which must go well.
fn run(sandbox: &Sandbox, plan: &str, more: &[&str]) -> String {
    let ran = sandbox.run(&[&["run", plan, "--tokens", "ids.json", "-n", "1"], more].concat());
    assert_eq!(ran.status, Some(0), "{}", ran.stderr);
    ran.stderr
}

const NOTE: &str = "of memory are left for them: they will be read from the disk again and again";

#[test]
fn weights_that_exceed_the_memory_are_noted() {
    let mut sandbox = Sandbox::of("gptoss-base");
    sandbox.run(&["compile", "spec.toml", "--weights", ".", "-o", "a.plan", "-q"]).text();
    let (plan, ids) = (fs::read(sandbox.path("a.plan")).unwrap(), sandbox.read("ids.json"));
    let large = 4 * available_memory().unwrap();
    // The build's directory: temporary ones are in memory on some systems.
    sandbox.dir = TempDir::new_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    sandbox.write("ids.json", ids);
    sandbox.write("a.plan", &plan);
    assert!(!run(&sandbox, "a.plan", &[]).contains("note:"), "these weights fit");
    let file = File::options().read(true).write(true).open(sandbox.path("a.plan")).unwrap();
    enlarge(&file, large);
    let noted = run(&sandbox, "a.plan", &[]);
    assert_eq!(noted.contains(NOTE), !lies_in_memory(&file), "{noted}");
    assert!(!run(&sandbox, "a.plan", &["-q"]).contains("note:"), "-q is quiet about it");

    // SAFETY: the name is a string that ends with a NUL; the call makes a new descriptor, which nothing else
    // owns.
    let file = unsafe { File::from_raw_fd(libc::memfd_create(c"plan".as_ptr(), 0)) };
    assert!(lies_in_memory(&file));
    file.set_permissions(Permissions::from_mode(0o600)).unwrap();
    file.write_all_at(&plan, 0).unwrap();
    enlarge(&file, large);
    // The descriptor is inherited.
    let path = format!("/proc/self/fd/{}", file.as_raw_fd());
    assert!(Path::new(&path).exists());
    let noted = run(&sandbox, &path, &[]);
    assert!(!noted.contains(NOTE), "what lies in memory already is not read from a disk: {noted}");
}
