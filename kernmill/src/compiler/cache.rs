//! Compiled models that are kept as plans, so that the next start neither compiles nor packs weights.

use super::compile::compile_plan;
use super::source::SourceModel;
use crate::error::{Error, Result};
use crate::options::Options;
use crate::plan::PlanModel;
use kernmill_os::output::NewFile;
use kernmill_plan::abi::ABI_VERSION;
use kernmill_plan::target::Level;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// Bytes of a model's name that the name of its plan repeats.
const NAME_BYTES: usize = 64;

/// The plan of `model` in `options.compile.plan_cache`, whether it is there or not; `None` without such a
/// directory.
/// The name tells everything apart that a plan depends on: the version, what was asked of the compiler, and
/// the files, which count as the same while their size and time of change are.
pub(crate) fn place(model: &SourceModel, level: Level, options: &Options) -> Result<Option<PathBuf>> {
    let Some(dir) = options.compile.plan_cache.as_deref().filter(|_| !model.embedded) else {
        return Ok(None);
    };
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
    add(&format!("{} {} {}", options.chunk(), compile.fuse, compile.adapters));
    add(&model.source.text);
    for spec in model.source.fused.specs() {
        add(&spec.name.value);
        add(spec.source.text());
    }
    for file in model.checkpoint.files().map(Path::to_owned).chain(model.texts.files()) {
        add(&identity(&file).map_err(Error::read(&file))?);
    }
    let name = model
        .graph
        .name
        .chars()
        .map(|c| if c.is_ascii_alphanumeric() || "-_.".contains(c) { c } else { '_' });
    let name: String = name.take(NAME_BYTES).collect();
    let key = key.finalize().to_hex();
    Ok(Some(dir.join(format!("{}-{}.plan", name.trim_start_matches('.'), &key[..24]))))
}

/// The identity of a file: it differs between files, and after a change.
fn identity(path: &Path) -> std::io::Result<String> {
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
        Ok(plan) => Some(plan),
        Err(error) => {
            options.observer.note(&format!("{error}; it is compiled anew"));
            None
        }
    }
}

/// Compiles a model to the plan at `path`, and opens it.
pub(crate) fn fill(model: &SourceModel, level: Level, path: &Path, options: &Options) -> Result<PlanModel> {
    if let Some(dir) = path.parent() {
        fs::create_dir_all(dir).map_err(Error::write(dir))?;
    }
    let file = NewFile::create_file(path).map_err(Error::write(path))?;
    // The plan is kept with the model's own templates: a given one is for this start.
    let own = Options { chat_template: None, ..options.clone() };
    compile_plan(model, &[level], &own, file)?;
    PlanModel::open(path, options)
}

#[cfg(test)]
mod tests {
    use crate::{Model, Options, Result, Sampling};
    use std::fs;
    use std::path::{Path, PathBuf};
    use std::sync::{Arc, Mutex};

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
