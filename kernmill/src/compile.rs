//! Writing plans: a model compiled once, which starts at once from then on.

use crate::error::{Error, Result};
use crate::memory::check_space;
use crate::observe::{Observer, Unit};
use kernmill_checkpoint::CheckpointError;
use kernmill_compiler::pack::WeightSource;
use kernmill_compiler::plan_file::{PlanWriteError, PlanWriter};
use kernmill_os::output::NewFile;
use std::fs::File;
use std::os::unix::fs::PermissionsExt;

/// Writes a plan, packing its weights with that many threads. The file appears when it is whole, and nobody but its owner may write it.
///
/// # Errors
/// When a weight is unusable, the disk has no room, or the system refuses to write.
pub fn write_plan(
    file: NewFile,
    writer: &PlanWriter<'_>,
    weights: &impl WeightSource<Error = CheckpointError>,
    threads: usize,
    observer: &dyn Observer,
) -> Result<()> {
    let path = file.path().to_owned();
    check_space(&path, writer.bytes())?;
    owner_alone_writes(file.file()).map_err(Error::write(&path))?;
    let packing = observer.begin("packing weights", Unit::Bytes, writer.weight_bytes());
    let written = writer.write(file.file(), weights, threads, &|bytes| packing.advance(bytes));
    drop(packing);
    written.map_err(|error| match error {
        PlanWriteError::Pack(error) => error.into(),
        PlanWriteError::Write(error) => Error::write(&path)(error),
    })?;
    let _writing = observer.begin("writing to the disk", Unit::Unknown, 0);
    file.finish_synced().map_err(Error::write(&path))
}

/// Whatever the user's umask: code that others could write would not be run.
fn owner_alone_writes(file: &File) -> std::io::Result<()> {
    const OTHERS_WRITE: u32 = 0o022;
    let mut permissions = file.metadata()?.permissions();
    permissions.set_mode(permissions.mode() & !OTHERS_WRITE);
    file.set_permissions(permissions)
}
