//! The context of a request's reading, besides its body.

use crate::backend::BackendInfo;
use crate::error::ApiError;
use crate::fields::Fields;
use crate::fields::shape::{Shape, like, object, text};
use crate::record::Record;
use crate::sampling;
use kernmill_chat::Date;
use kernmill_runtime::AdapterUse;
use kernmill_serve::{Class, Request};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

/// Fields that say what model a request is for, and what is cached for whom.
pub const MODEL: Shape = object(&[
    text("model"),
    text("lora_path").about("Name of an adapter, where model has the model's own name"),
    like("cache_salt", || json!({ "type": ["string", "null"], "minLength": 1 }))
        .about("Cached prompts are shared by requests with the same salt alone"),
])
.named("ModelFields", &[]);

/// The facts by which a request is read: a client's, or a line of a batch.
pub struct RequestScope<'a> {
    /// The model.
    pub facts: &'a BackendInfo,
    /// Other names of the model and of adapters.
    pub aliases: &'a BTreeMap<String, String>,
    /// Names of the adapters that are loaded.
    pub adapters: Vec<String>,
    /// Names of the server's other models.
    pub others: &'a [String],
    /// Whose share of the machine is used.
    pub tenant: u64,
    /// The log's record of the request, if it is one of a client.
    pub record: Option<Arc<Record>>,
    /// The day that conversations are told.
    pub date: Option<Date>,
    /// Time after which an answer is cut.
    pub within: Option<Duration>,
    /// Tokens that a completion goes on behind: what its session has said so far.
    pub said: &'a [u32],
    /// Tokens that are generated at most where a request does not say how many; `None` for what the route's
    /// API says.
    pub max_tokens: Option<u32>,
    /// Whether a request may bring a regular expression or a grammar along.
    pub grammars: bool,
}

impl RequestScope<'_> {
    /// The model that is asked for: its name as the request has it, and the adapters that it stands for.
    ///
    /// A gateway may know the name of the model alone. Behind it, `lora_path` names the adapter.
    ///
    /// # Errors
    /// When none is named, there is no such model or adapter, or two adapters are named.
    pub fn model(&self, fields: &mut Fields) -> Result<(String, Vec<AdapterUse>), ApiError> {
        let (name, named) = self.find(fields.text("model")?)?;
        let Some(other) = fields.text("lora_path")?.filter(|other| !other.is_empty()) else {
            return Ok(self.meant(name, named));
        };
        let Some(adapter) = self.adapter(&other) else {
            let known = if self.adapters.is_empty() {
                "but none is loaded".to_owned()
            } else {
                format!("one of: {}", self.adapters.join(", "))
            };
            let expected = format!("the name of an adapter, {known}");
            return Err(fields.wrong("lora_path", &Value::from(other), &expected));
        };
        if let Some(named) = named.filter(|named| *named != adapter) {
            let expected = format!("`{named}`, the adapter that `model` names");
            return Err(fields.wrong("lora_path", &Value::from(other), &expected));
        }
        Ok(self.meant(other, Some(adapter)))
    }

    /// The model of this name, and the adapters that it stands for.
    ///
    /// # Errors
    /// When the name is missing or empty, or there is no such model.
    pub fn named(&self, name: Option<String>) -> Result<(String, Vec<AdapterUse>), ApiError> {
        let (name, adapter) = self.find(name)?;
        Ok(self.meant(name, adapter))
    }

    /// The text that a request asks for with these adapters, without what each API says of prompt and end.
    ///
    /// # Errors
    /// When a field is wrong.
    pub fn request(&self, fields: &mut Fields, adapters: Vec<AdapterUse>) -> Result<Request, ApiError> {
        Ok(Request {
            sampler: sampling::sampler(fields, self.facts.vocab)?,
            salt: salt(fields)?,
            class: class(fields)?,
            ..self.usual(adapters)
        })
    }

    /// A text with these adapters as whoever asks may have it.
    pub fn usual(&self, adapters: Vec<AdapterUse>) -> Request {
        Request { adapters, tenant: self.tenant, within: self.within, ..Request::greedy(Vec::new(), 1) }
    }

    /// A name that there must be, and the adapter that it stands for.
    fn find(&self, name: Option<String>) -> Result<(String, Option<&String>), ApiError> {
        let name = name.filter(|name| !name.is_empty()).ok_or_else(|| {
            let known = self.names().join(", ");
            ApiError::field("model", format!("`model` is missing, expected one of: {known}"))
        })?;
        let adapter = self.adapter(&name);
        if adapter.is_none() && self.meant_by(&name) != self.facts.model {
            return Err(ApiError::model(&name, &self.names()));
        }
        Ok((name, adapter))
    }

    /// The model and adapters of a request, by names that are known.
    fn meant(&self, name: String, adapter: Option<&String>) -> (String, Vec<AdapterUse>) {
        // Names of models alone go into the log: any other may be a client's text.
        if let Some(record) = &self.record {
            record.model(&name, adapter.map(String::as_str));
        }
        (name, adapter.into_iter().map(AdapterUse::of).collect())
    }

    /// The name of the model or adapter that a name or an alias stands for.
    pub fn meant_by<'n>(&'n self, name: &'n str) -> &'n str {
        self.aliases.get(name).map_or(name, String::as_str)
    }

    /// The adapter that a name or an alias stands for.
    pub fn adapter(&self, name: &str) -> Option<&String> {
        self.adapters.iter().find(|adapter| *adapter == self.meant_by(name))
    }

    /// Whether a request may have this name in `model`.
    pub fn knows(&self, name: &str) -> bool {
        self.served().iter().any(|served| served == name)
    }

    /// Names that mean a model or an adapter that is loaded.
    pub fn served(&self) -> Vec<String> {
        let is_there =
            |name: &String| self.meant_by(name) == self.facts.model || self.adapter(name).is_some();
        self.names().into_iter().filter(is_there).collect()
    }

    /// Names that a request may have in `model`.
    pub fn names(&self) -> Vec<String> {
        let own = std::iter::once(&self.facts.model).chain(&self.adapters);
        own.chain(self.aliases.keys()).chain(self.others).cloned().collect()
    }
}

/// The kind of work.
///
/// # Errors
/// When the field is no string.
pub fn class(fields: &mut Fields) -> Result<Class, ApiError> {
    Ok(match fields.text("service_tier")?.as_deref() {
        Some("flex" | "batch") => Class::Batch,
        _ => Class::Interactive,
    })
}

/// Name of the part of the prefix cache that a request asks for by its field `cache_salt`; zeros where it
/// asks for none.
///
/// # Errors
/// When the field is no string, or an empty one.
pub fn salt(fields: &mut Fields) -> Result<[u8; 16], ApiError> {
    let text = fields.text("cache_salt")?;
    if text.as_ref().is_some_and(String::is_empty) {
        return Err(fields.wrong("cache_salt", &Value::from(""), "a string that is not empty"));
    }
    Ok(text.map_or([0; 16], |text| salt_of(&text)))
}

/// Name of the part of the prefix cache that is for a salt.
pub fn salt_of(text: &str) -> [u8; 16] {
    let mut name = [0; 16];
    name.copy_from_slice(&blake3::hash(text.as_bytes()).as_bytes()[..16]);
    name
}

#[cfg(test)]
mod tests {
    use super::{MODEL, RequestScope, salt};
    use crate::backend::Backend;
    use crate::fields::Fields;
    use crate::scripted::Scripted;
    use kernmill_runtime::AdapterUse;
    use serde_json::{Value, json};
    use std::collections::BTreeMap;

    /// The meaning of a request with this body, or its error.
    fn meant(adapters: &[&str], body: Value) -> Result<(String, Vec<AdapterUse>), String> {
        let backend = Scripted::stops(&["Yes."]);
        let scope = RequestScope {
            facts: backend.facts(),
            aliases: &BTreeMap::from([("verse".to_owned(), "poet".to_owned())]),
            adapters: adapters.iter().map(|name| (*name).to_owned()).collect(),
            others: &[],
            tenant: 0,
            record: None,
            date: None,
            within: None,
            said: &[],
            max_tokens: None,
            grammars: false,
        };
        scope.model(&mut Fields::of(&MODEL, body, "").unwrap()).map_err(|error| error.message().to_owned())
    }

    #[test]
    fn an_adapter_is_named_by_the_model_or_beside_it() {
        let adapters = ["poet", "terse"];
        let poet = |name: &str| Ok((name.to_owned(), vec![AdapterUse::of("poet")]));
        assert_eq!(meant(&adapters, json!({ "model": "nano" })), Ok(("nano".to_owned(), Vec::new())));
        assert_eq!(meant(&adapters, json!({ "model": "nano", "lora_path": null })).unwrap().0, "nano");
        assert_eq!(meant(&adapters, json!({ "model": "nano", "lora_path": "" })).unwrap().0, "nano");
        assert_eq!(meant(&adapters, json!({ "model": "poet" })), poet("poet"));
        assert_eq!(meant(&adapters, json!({ "model": "nano", "lora_path": "poet" })), poet("poet"));
        assert_eq!(meant(&adapters, json!({ "model": "nano", "lora_path": "verse" })), poet("verse"));
        assert_eq!(meant(&adapters, json!({ "model": "verse", "lora_path": "poet" })), poet("poet"));
    }

    #[test]
    fn what_is_no_adapter_is_refused() {
        let adapters = ["poet", "terse"];
        let wrong = |adapters: &[&str], model: &str, path: Value| {
            meant(adapters, json!({ "model": model, "lora_path": path })).unwrap_err()
        };
        let unknown = wrong(&adapters, "nano", json!("prose"));
        assert!(unknown.contains("`lora_path`") && unknown.contains("one of: poet, terse"), "{unknown}");
        // The model's own name does not name an adapter.
        assert!(wrong(&adapters, "nano", json!("nano")).contains("one of: poet, terse"));
        assert!(wrong(&[], "nano", json!("poet")).contains("none is loaded"));
        let two = wrong(&adapters, "poet", json!("terse"));
        assert!(two.contains("`lora_path`") && two.contains("expected `poet`"), "{two}");
        assert!(wrong(&adapters, "prose", json!("poet")).contains("no model `prose`"));
        assert!(wrong(&adapters, "nano", json!(7)).contains("expected a string"));
    }

    #[test]
    fn a_salt_is_a_text() {
        let of = |value: Value| salt(&mut Fields::of(&MODEL, json!({ "cache_salt": value }), "").unwrap());
        assert_eq!(of(Value::Null).unwrap(), [0; 16]);
        assert_eq!(of(json!("one")).unwrap(), of(json!("one")).unwrap());
        let names = [json!(null), json!("one"), json!("One"), json!("two"), json!(" ")]
            .map(|value| of(value).unwrap());
        for (at, name) in names.iter().enumerate() {
            assert!(!names[..at].contains(name), "{at}");
        }
        let message = of(json!("")).unwrap_err().message().to_owned();
        assert_eq!(message, "`cache_salt` is \"\", expected a string that is not empty");
        assert!(of(json!(7)).unwrap_err().message().contains("`cache_salt` is 7, expected a string"));
    }
}
