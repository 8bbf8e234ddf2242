//! Compiled models that are kept as plans, so that the next start neither compiles nor packs weights.

use super::compile::{owner_alone_writes, with_writer, write};
use super::source::SourceModel;
use crate::error::{Error, ErrorKind, Result};
use crate::options::Options;
use crate::plan::PlanModel;
use kernmill_os::memory::{available_memory, free_space};
use kernmill_os::output::NewFile;
use kernmill_os::text::size;
use kernmill_plan::abi::ABI_VERSION;
use kernmill_plan::target::Level;
use kernmill_runtime::UntrustedReason;
use std::fs::{self, DirBuilder, File, FileTimes, TryLockError};
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::time::{Instant, SystemTime};

/// Bytes of a model's name that the name of its plan repeats.
const NAME_BYTES: usize = 64;
/// Digits of a plan's name that tell what it depends on.
const KEY_DIGITS: usize = 24;
/// Bytes of the disk that stay free where nobody asked for plans to be kept.
const RESERVE: u64 = 10_000_000_000;

/// The plan of `model` in `options.compile.plan_cache`, whether it is there or not; `None` without such a
/// directory, and for a model that is not worth it.
/// The name tells everything apart that a plan depends on: the version, what was asked of the compiler, and
/// the files, which count as the same while their size and time of change are.
pub(crate) fn place(model: &SourceModel, level: Level, options: &Options) -> Result<Option<PathBuf>> {
    let least = options.compile.plan_cache_least.unwrap_or(0);
    let is_kept = !model.embedded && model.graph.weights() >= least;
    let Some(dir) = options.compile.plan_cache.as_deref().filter(|_| is_kept) else { return Ok(None) };
    let mut key = blake3::Hasher::new();
    let mut add = |text: &str| {
        key.update(&(text.len() as u64).to_le_bytes());
        key.update(text.as_bytes());
    };
    let compile = &options.compile;
    add(options.compile.producer);
    add(&ABI_VERSION.to_string());
    add(level.name());
    add(compile.preset.name());
    add(&compile.kv.of(compile.preset.kv_formats()).to_string());
    add(compile.tuning().name());
    if let Some(machine) = &compile.machine {
        add(&format!("{:?}", machine.costs()));
    }
    add(&format!("{} {} {}", model.graph.chunk(options.chunk, [level]), compile.fuse, compile.adapters));
    add(&model.source.text);
    for spec in model.source.fused.specs() {
        add(&spec.name.value);
        add(spec.source.text());
    }
    for file in model.checkpoint.files().map(Path::to_owned).chain(model.texts.files()) {
        add(&identity(&file).map_err(Error::read(&file))?);
    }
    let safe = |c: char| if c.is_ascii_alphanumeric() || "-_.".contains(c) { c } else { '_' };
    let name: String = model.graph.name.chars().map(safe).take(NAME_BYTES).collect();
    let key = key.finalize().to_hex();
    Ok(Some(dir.join(format!("{}-{}.plan", name.trim_start_matches('.'), &key[..KEY_DIGITS]))))
}

/// The identity of a file: it differs between files, and after a change.
fn identity(path: &Path) -> io::Result<String> {
    let path = fs::canonicalize(path)?;
    let data = fs::metadata(&path)?;
    let changed = (data.mtime(), data.mtime_nsec());
    Ok(format!("{} {} {} {} {changed:?}", path.display(), data.dev(), data.ino(), data.len()))
}

/// The plan at `path`, if it is there and of use. A plan that is damaged, or that somebody else could have
/// written, is told of and made anew.
pub(crate) fn open(path: &Path, options: &Options) -> Option<PlanModel> {
    if !path.exists() {
        return None;
    }
    match PlanModel::open(path, options) {
        Ok(plan) => {
            // Not all file systems keep the time of a reading by themselves.
            let now = FileTimes::new().set_accessed(SystemTime::now());
            let _ = File::open(path).and_then(|file| file.set_times(now));
            Some(plan)
        }
        Err(error) => {
            options.observer.note(&format!("{error}; it is compiled anew"));
            None
        }
    }
}

/// Compiles a model to the plan at `path`, and opens it; `None`, and a note that says why, if it is not kept.
pub(crate) fn fill(
    model: &SourceModel,
    level: Level,
    path: &Path,
    options: &Options,
) -> Result<Option<PlanModel>> {
    let start = Instant::now();
    let is_asked = options.compile.plan_cache_least.is_none();
    let why_not = match keep(model, level, path, options) {
        Err(error) if is_asked || error.kind() != ErrorKind::Work => return Err(error),
        Err(error) => Some(error.to_string()),
        Ok(why_not) => why_not,
    };
    if let Some(why) = why_not {
        options.observer.note(&format!("{why}; this start keeps no plan of the model"));
        return Ok(None);
    }
    if !is_asked {
        options.observer.note(&format!(
            "the model was packed in {:.0} s, and {} keeps that ({}) for the next start; --no-plan-cache keeps nothing",
            start.elapsed().as_secs_f64(),
            path.display(),
            size(path.metadata().map_or(0, |plan| plan.len()))
        ));
    }
    PlanModel::open(path, options).map(Some)
}

/// Writes the plan at `path`. If it cannot be used there, or must not take the room, a sentence says so.
fn keep(model: &SourceModel, level: Level, path: &Path, options: &Options) -> Result<Option<String>> {
    let dir = path.parent().unwrap_or(path);
    let compile = &options.compile;
    let (mode, reserve) = compile.plan_cache_least.map_or((0o777, 0), |_| (0o700, RESERVE));
    DirBuilder::new().recursive(true).mode(mode).create(dir).map_err(Error::write(dir))?;
    let lock = File::open(dir).map_err(Error::write(dir))?;
    // One process at a time makes room and packs. The others do not wait for it.
    if let Err(TryLockError::WouldBlock) = lock.try_lock() {
        return Ok(Some(format!("{}: another process writes a plan there", dir.display())));
    }
    // The plan is kept with the model's own templates: a given one is for this start.
    let own = Options { chat_template: None, ..options.clone() };
    with_writer(model, &[level], &own, |writer| {
        let (bytes, limit) = (writer.bytes(), compile.plan_cache_limit);
        // Weights that memory does not hold are refused, as without a cache: they would be read from the
        // disk for every token.
        let left = available_memory().filter(|left| reserve > 0 && *left < writer.weight_bytes());
        if let Some(left) = left {
            let what =
                format!("{} of weights, but {} of memory are left", size(writer.weight_bytes()), size(left));
            return Ok(Some(what));
        }
        let is_limited = reserve > 0 || limit < u64::MAX;
        if is_limited && !make_room(dir, bytes, limit, reserve).map_err(Error::write(dir))? {
            let what = format!("{}: no room for a plan of {}", dir.display(), size(bytes));
            let free = (reserve > 0).then(|| format!(", and {} of the disk stay free", size(reserve)));
            let free = free.unwrap_or_default();
            return Ok(Some(format!("{what}: plans take {} at most{free}", size(limit))));
        }
        let file = NewFile::create_file(path).map_err(Error::write(path))?;
        owner_alone_writes(file.file()).map_err(Error::write(path))?;
        if let Some(reason) = UntrustedReason::of(file.file()).map_err(Error::write(path))? {
            return Ok(Some(format!("{}: {reason}", path.display())));
        }
        write(model, writer, &own, file).map(|()| None)
    })
}

/// Makes room for a plan of `bytes`: all of them take at most `limit`, and `reserve` bytes of the disk stay
/// free. Those used longest ago go first. `false`, and nothing goes, if that is not enough.
fn make_room(dir: &Path, bytes: u64, limit: u64, reserve: u64) -> io::Result<bool> {
    let mut plans = Vec::new();
    for entry in fs::read_dir(dir)?.flatten() {
        // Other processes rename what they have written.
        let Ok(data) = entry.metadata() else { continue };
        let path = entry.path();
        let name = entry.file_name();
        let name = name.to_str().unwrap_or_default();
        // Nobody but the process that has the lock writes plans of such names.
        let unfinished =
            name.strip_prefix('.').and_then(|name| name.rsplit_once(".plan.")).map(|(name, _)| name);
        if unfinished.is_some_and(is_own) && name.ends_with(".unfinished") {
            fs::remove_file(&path)?;
        } else if data.is_file() && name.strip_suffix(".plan").is_some_and(is_own) {
            plans.push((data.accessed()?, path, data.len()));
        }
    }
    let mut taken: u64 = plans.iter().map(|(_, _, bytes)| bytes).sum();
    let most = limit.min(free_space(dir)?.saturating_add(taken).saturating_sub(reserve));
    if bytes > most {
        return Ok(false);
    }
    plans.sort();
    for (_, path, bytes_of_it) in plans {
        if taken + bytes <= most {
            break;
        }
        // A process that runs it keeps its mapping.
        fs::remove_file(path)?;
        taken -= bytes_of_it;
    }
    Ok(reserve == 0 || free_space(dir)? >= bytes)
}

/// Whether a name without its end is that of a plan that is kept: NAME-KEY.
fn is_own(name: &str) -> bool {
    name.rsplit_once('-').is_some_and(|(_, key)| {
        key.len() == KEY_DIGITS && key.bytes().all(|digit| matches!(digit, b'0'..=b'9' | b'a'..=b'f'))
    })
}

#[cfg(test)]
mod tests {
    use super::make_room;
    use crate::{ErrorKind, Model, Options, Result, Sampling};
    use std::fs::{self, File, FileTimes};
    use std::path::{Path, PathBuf};
    use std::sync::{Arc, Mutex};
    use std::time::{Duration, SystemTime};

    #[derive(Default)]
    struct Notes(Mutex<Vec<String>>);

    impl crate::observe::Observer for Notes {
        fn note(&self, text: &str) {
            self.0.lock().unwrap().push(text.to_owned());
        }
    }

    fn plans(dir: &Path) -> Vec<PathBuf> {
        let mut plans: Vec<PathBuf> = fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().path()).collect();
        plans.sort();
        plans
    }

    fn text(model: &Path, options: &Options) -> Result<String> {
        let sampling = Sampling::greedy().max_tokens(12);
        Ok(Model::open_with(model, options, None)?.generate("A slice is", &sampling)?.whole()?.text)
    }

    /// The embedded model as files.
    fn files(dir: &Path) {
        fs::write(dir.join("kernmill.toml"), crate::nano::SPEC).unwrap();
        fs::write(dir.join("model.safetensors"), super::super::nano::WEIGHTS).unwrap();
        fs::write(dir.join("tokenizer.json"), super::super::nano::TOKENIZER).unwrap();
    }

    #[test]
    fn a_plan_makes_way_only_for_others_and_only_if_that_helps() {
        let dir = tempfile::tempdir().unwrap();
        let key = "0123456789abcdef01234567";
        let names = [format!("a-{key}.plan"), format!("b-{key}.plan"), "mine.plan".to_owned()];
        let put = |name: &str, seconds: u64| {
            let file = File::create(dir.path().join(name)).unwrap();
            file.set_len(1000).unwrap();
            let time = SystemTime::UNIX_EPOCH + Duration::from_secs(seconds);
            file.set_times(FileTimes::new().set_accessed(time)).unwrap();
        };
        put(&names[0], 200);
        put(&names[1], 100);
        put(&names[2], 1);
        put(&format!(".c-{key}.plan.99.1.unfinished"), 300);
        put(".mine.plan.99.1.unfinished", 300);
        let left =
            || plans(dir.path()).iter().map(|path| path.file_name().unwrap().to_owned()).collect::<Vec<_>>();
        // A plan that is larger than all of the room drives no other one out.
        assert!(!make_room(dir.path(), 2001, 2000, 0).unwrap());
        assert!(!make_room(dir.path(), 1, u64::MAX, u64::MAX).unwrap());
        assert_eq!(left(), [".mine.plan.99.1.unfinished", &names[0], &names[1], &names[2]]);
        assert!(make_room(dir.path(), 1000, 3000, 0).unwrap());
        assert_eq!(left().len(), 4);
        assert!(make_room(dir.path(), 1000, 2000, 0).unwrap());
        assert_eq!(left(), [".mine.plan.99.1.unfinished", &names[0], &names[2]]);
        assert!(make_room(dir.path(), 2000, 2000, 0).unwrap());
        assert_eq!(left(), [".mine.plan.99.1.unfinished", "mine.plan"]);
    }

    #[test]
    fn what_cannot_be_kept_is_packed_in_memory_with_a_note() {
        let (dir, cache) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        files(dir.path());
        let expected = text(dir.path(), &Options::default()).unwrap();
        let notes = Arc::new(Notes::default());
        let told = || notes.0.lock().unwrap().drain(..).collect::<Vec<_>>().join("\n");
        let mut options = Options { observer: notes.clone(), ..Options::default() };
        options.compile.plan_cache = Some(cache.path().to_owned());
        options.compile.plan_cache_limit = 1000;
        assert_eq!(text(dir.path(), &options).unwrap(), expected);
        assert!(told().contains("no room for a plan of"));
        options.compile.plan_cache_limit = u64::MAX;

        // Another process has the lock.
        let lock = File::open(cache.path()).unwrap();
        lock.lock().unwrap();
        assert_eq!(text(dir.path(), &options).unwrap(), expected);
        assert!(told().contains("another process writes a plan there"));
        drop(lock);
        assert!(plans(cache.path()).is_empty());

        // A file in the directory's place is an error where plans were asked for.
        options.compile.plan_cache = Some(dir.path().join("tokenizer.json/plans"));
        assert_eq!(text(dir.path(), &options).unwrap_err().kind(), ErrorKind::Work);
        options.compile.plan_cache_least = Some(1);
        assert_eq!(text(dir.path(), &options).unwrap(), expected);
        assert!(told().contains("tokenizer.json/plans: "));

        // Models that are worth it are kept, others are not.
        options.compile.plan_cache = Some(cache.path().to_owned());
        options.compile.plan_cache_least = Some(u64::MAX);
        assert_eq!(text(dir.path(), &options).unwrap(), expected);
        assert!(plans(cache.path()).is_empty() && told().is_empty());
    }

    #[test]
    fn a_model_is_compiled_once_for_each_way_and_each_state_of_its_files() {
        let (dir, cache) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        files(dir.path());
        let notes = Arc::new(Notes::default());
        let place = cache.path().join("plans");
        let mut options = Options { observer: notes.clone(), ..Options::default() };
        options.compile.plan_cache = Some(place.clone());
        let expected = text(dir.path(), &Options::default()).unwrap();
        assert_eq!(text(dir.path(), &options).unwrap(), expected);
        let first = plans(&place);
        assert_eq!(first.len(), 1, "{first:?}");
        let written = fs::metadata(&first[0]).unwrap().modified().unwrap();
        assert_eq!(text(dir.path(), &options).unwrap(), expected);
        assert_eq!(
            fs::metadata(&first[0]).unwrap().modified().unwrap(),
            written,
            "it is used, not written again"
        );

        // Another chunk is another plan.
        options.chunk = Some(32);
        assert_eq!(text(dir.path(), &options).unwrap(), expected);
        assert_eq!(plans(&place).len(), 2);
        options.chunk = None;

        // Changed files are others.
        fs::write(dir.path().join("kernmill.toml"), format!("# changed\n{}", crate::nano::SPEC)).unwrap();
        assert_eq!(text(dir.path(), &options).unwrap(), expected);
        assert_eq!(plans(&place).len(), 3);

        // A damaged plan is told of and made anew.
        files(dir.path());
        let newest = |known: &[PathBuf]| plans(&place).into_iter().find(|plan| !known.contains(plan));
        let known = plans(&place);
        assert_eq!(text(dir.path(), &options).unwrap(), expected);
        let plan = newest(&known).expect("files that were written again count as others");
        fs::write(&plan, "no plan").unwrap();
        assert!(notes.0.lock().unwrap().is_empty());
        assert_eq!(text(dir.path(), &options).unwrap(), expected);
        let told = notes.0.lock().unwrap().join("\n");
        assert!(told.contains(plan.to_str().unwrap()) && told.contains("compiled anew"), "{told}");
        assert!(fs::metadata(&plan).unwrap().len() > 1000);
    }
}
