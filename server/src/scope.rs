//! What the reading of a request depends on besides its body.

use crate::backend::Facts;
use crate::error::ApiError;
use crate::fields::Fields;
use crate::record::Record;
use kernmill::chat::Date;
use kernmill::runtime::AdapterUse;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

/// What a request is read with: for one of a client, and for a line of a batch.
pub struct Scope<'a> {
    /// The model.
    pub facts: &'a Facts,
    /// Other names of the model and of adapters.
    pub aliases: &'a BTreeMap<String, String>,
    /// Names of the adapters that are loaded.
    pub adapters: Vec<String>,
    /// Whose share of the machine is used.
    pub tenant: u64,
    /// What the log says of the request, if it is one of a client.
    pub record: Option<Arc<Record>>,
    /// The day that conversations are told.
    pub date: Option<Date>,
    /// Time after which an answer is cut.
    pub within: Option<Duration>,
    /// Whether a request may bring a regular expression or a grammar along.
    pub grammars: bool,
}

impl Scope<'_> {
    /// The model that is asked for: its name as the request has it, and the adapters that it stands for.
    ///
    /// # Errors
    /// When none is named, or there is no such model.
    pub fn model(&self, fields: &mut Fields) -> Result<(String, Vec<AdapterUse>), ApiError> {
        let name = fields.text("model")?.filter(|name| !name.is_empty());
        let name = name.ok_or_else(|| {
            let known = self.names().join(", ");
            ApiError::field("model", format!("`model` is missing, expected one of: {known}"))
        })?;
        let meant = self.aliases.get(&name).unwrap_or(&name);
        let adapter = self.adapters.iter().find(|adapter| *adapter == meant);
        if *meant != self.facts.model && adapter.is_none() {
            return Err(ApiError::model(&name, &self.names()));
        }
        // Names of models alone go into the log: any other may be a client's text.
        if let Some(record) = &self.record {
            record.model(&name);
        }
        let uses = adapter.into_iter().map(AdapterUse::of).collect();
        Ok((name, uses))
    }

    /// Names that a request may have in `model`.
    fn names(&self) -> Vec<String> {
        let own = std::iter::once(&self.facts.model).chain(&self.adapters);
        own.chain(self.aliases.keys()).cloned().collect()
    }
}
