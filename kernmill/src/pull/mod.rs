//! Fetches models from a hub into the cache that Hugging Face's tools share: only the files that are needed,
//! on from where they were cut, and held to the sums that the hub has of them.

mod client;
mod list;
mod place;
mod sum;
mod transfer;

use crate::error::{Error, Result};
use crate::hub::{self, Cache, HubName};
use crate::memory::check_space;
use crate::observe::{Observer, Silent, Unit};
use client::HubClient;
use kernmill_checkpoint::INDEX_FILE;
use kernmill_os::output::NewFile;
use kernmill_os::text::size;
use list::{FileList, HubFile, WantedFiles};
use place::HubAccess;
use std::fs;
use std::io::{ErrorKind, Write};
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use transfer::Transfer;

/// Fetches the model that `text` names, in any spelling that tells the owner:
/// `ORG/NAME`, or `ORG/NAME:TYPE` for one of several GGUF files.
/// HF_ENDPOINT and HF_TOKEN say which hub is asked, and as whom; HF_HOME and HF_HUB_CACHE where the cache is.
///
/// The result is the path to give as a model, a checkpoint's directory or a GGUF file, and a line that says
/// what was done, and what comes next.
///
/// # Errors
/// When the text is no such name, the hub does not give the model, or it cannot be written. The part that was
/// fetched until then stays, so that the next call goes on there; nothing that looks like the model does.
pub fn pull(text: &str, observer: &dyn Observer) -> Result<(PathBuf, String)> {
    let name = HubName::of(text).filter(|name| name.owner.is_some()).ok_or_else(|| {
        let what = "expected the name of a model on a hub, ORG/NAME, such as openai/gpt-oss-20b; or \
            ORG/NAME:TYPE for a GGUF file of that type";
        Error::bad_input(format!("{text}: {what}"))
    })?;
    let place = HubAccess::of_user()?;
    let endpoint = place.endpoint.clone();
    let client = HubClient::new(place, name.to_string())?;
    let list = FileList::of(&client, &name)?;
    let wanted = list.wanted(&name)?;
    let cache = Cache::of_user()?;
    let (repository, locks) = (cache.repository(&name), cache.locks(&name));
    let blobs = repository.join("blobs");
    for dir in [&blobs, &locks] {
        fs::create_dir_all(dir).map_err(Error::write(dir))?;
    }
    let transfer = Transfer {
        client: &client,
        repository: &name.repository(),
        commit: &list.commit,
        blobs: &blobs,
        locks: &locks,
    };
    let (mut files, is_gguf) = match wanted {
        WantedFiles::Checkpoint(files) => (files, false),
        WantedFiles::Gguf(files) => (files, true),
    };
    let kept: u64 = files.iter().map(|file| transfer.present(file)).sum();
    let mut kept_of_shards = 0;
    if let Some(index) = files.iter().find(|file| file.path == INDEX_FILE).cloned() {
        check_space(&transfer.blob(&index), index.bytes)?;
        transfer.fetch(&index, &Silent, observer)?;
        let blob = transfer.blob(&index);
        let text = fs::read(&blob).map_err(Error::read(&blob))?;
        let wrong = |what| Error::bad_input(client.says(format!("{INDEX_FILE}: {what}")));
        let shards = list.shards(&text).map_err(wrong)?;
        kept_of_shards = shards.iter().map(|shard| transfer.present(shard)).sum();
        files.extend(shards);
    }
    let bytes: u64 = files.iter().map(|file| file.bytes).sum();
    let missing = bytes - files.iter().map(|file| transfer.present(file)).sum::<u64>();
    check_space(&transfer.blob(&files[0]), missing)?;
    let is_there = kept + kept_of_shards == bytes;
    if !is_there {
        let kept = match kept + kept_of_shards {
            0 => String::new(),
            kept => format!(", {} of it are there", size(kept)),
        };
        observer.note(&format!(
            "{name}: {} files, {}{kept}, from {endpoint} to {}",
            files.len(),
            size(bytes),
            repository.display()
        ));
    }
    let progress = observer.begin("fetching", Unit::Bytes, bytes);
    files.iter().try_for_each(|file| transfer.fetch(file, &*progress, observer))?;
    drop(progress);
    let snapshot = repository.join("snapshots").join(&list.commit);
    files.iter().try_for_each(|file| link(&snapshot, file))?;
    write_reference(&repository.join("refs/main"), &list.commit)?;
    let path = if is_gguf { snapshot.join(&files[0].path) } else { snapshot };
    let did = if is_there { "it is there already:" } else { "fetched" };
    let closing =
        format!("{name}: {did} {} files, {}; `kernmill chat {name}` talks with it", files.len(), size(bytes));
    Ok((path, closing))
}

/// The model at `path`. If there is nothing at it and `path` is a name on a hub, the model is looked for in
/// the user's cache; and if it is not there either, it is fetched when the observer says yes to the question.
/// It is not asked if `is_offline`, or the environment says so.
///
/// # Errors
/// When the model cannot be fetched.
pub fn resolve(path: &Path, is_offline: bool, observer: &dyn Observer) -> Result<PathBuf> {
    let Some(name) = hub::named(path) else { return Ok(path.to_owned()) };
    if let Ok(found) = Cache::of_user().and_then(|cache| cache.find(&name)) {
        return Ok(found);
    }
    if is_offline || place::is_offline() {
        return Ok(path.to_owned());
    }
    let endpoint = HubAccess::of_user()?.endpoint;
    match observer.asks(&format!("{name} is not here. Fetch it from {endpoint}?")) {
        true => Ok(pull(&name.to_string(), observer)?.0),
        false => Ok(path.to_owned()),
    }
}

/// Gives a file in the cache its name in the snapshot of a commit, as a link from there.
fn link(snapshot: &Path, file: &HubFile) -> Result<()> {
    let path = snapshot.join(&file.path);
    let depth = file.path.split('/').count() + 1;
    let target = PathBuf::from("../".repeat(depth)).join("blobs").join(file.sum.digits());
    let dir = path.parent().unwrap_or(snapshot);
    fs::create_dir_all(dir).map_err(Error::write(dir))?;
    let is_right = || fs::read_link(&path).is_ok_and(|found| found == target);
    match symlink(&target, &path) {
        Err(error) if error.kind() == ErrorKind::AlreadyExists && is_right() => Ok(()),
        Err(error) if error.kind() == ErrorKind::AlreadyExists => {
            let new = dir.join(format!(".{}.{}", file.sum.digits(), std::process::id()));
            symlink(&target, &new).and_then(|()| fs::rename(&new, &path)).map_err(Error::write(&path))
        }
        made => made.map_err(Error::write(&path)),
    }
}

/// Writes which commit a branch is at.
fn write_reference(path: &Path, commit: &str) -> Result<()> {
    let dir = path.parent().unwrap_or(path);
    fs::create_dir_all(dir).map_err(Error::write(dir))?;
    let file = NewFile::create_file(path).map_err(Error::write(path))?;
    file.file().write_all(commit.as_bytes()).map_err(Error::write(path))?;
    file.finish().map_err(Error::write(path))
}
