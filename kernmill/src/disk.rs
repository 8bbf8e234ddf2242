//! The KV cache's store on disk.

use crate::error::{Error, Result};
use crate::options::Options;
use kernmill_kv_store::Store;

/// Opens the store that the options ask for.
pub(crate) fn open(options: &Options) -> Result<Option<Store>> {
    let Some(dir) = &options.kv_disk else { return Ok(None) };
    let limits = kernmill_kv_store::StoreOptions { limit: options.kv_disk_limit, ..Default::default() };
    let opened = Store::open(dir, limits);
    opened.map(Some).map_err(|error| Error::told(format!("--kv-disk: {error}"), error))
}
