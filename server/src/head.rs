//! Fields of all objects of an answer in OpenAI's APIs of completions and conversations.

use crate::backend::BackendInfo;
use crate::ids;
use serde_json::{Map, Value, json};

/// The fields of all objects of an answer.
#[derive(Clone)]
pub struct AnswerHead {
    id: String,
    created: u64,
    model: String,
    fingerprint: String,
}

impl AnswerHead {
    /// The head of an answer of `model`, whose id begins with `prefix`.
    pub fn new(prefix: &str, model: &str, facts: &BackendInfo) -> AnswerHead {
        AnswerHead {
            id: ids::new(prefix),
            created: ids::now(),
            model: model.to_owned(),
            fingerprint: facts.fingerprint.clone(),
        }
    }

    /// An object of this kind.
    pub fn object(&self, kind: &str, choices: Value) -> Map<String, Value> {
        let mut object = Map::new();
        object.insert("id".to_owned(), json!(self.id));
        object.insert("object".to_owned(), json!(kind));
        object.insert("created".to_owned(), json!(self.created));
        object.insert("model".to_owned(), json!(self.model));
        object.insert("system_fingerprint".to_owned(), json!(self.fingerprint));
        object.insert("choices".to_owned(), choices);
        object
    }
}
