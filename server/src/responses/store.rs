//! Responses that were stored: a bounded number of them, in memory.

use crate::limits;
use kernmill_chat::Item;
use serde_json::Value;
use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Ids of answers, each with the place of the item that it begins with.
pub type GeneratedIds = Vec<(usize, Vec<u32>)>;

/// A response that was stored.
#[derive(Debug)]
pub struct StoredResponse {
    /// Name of the model that answered, whose ids these are.
    pub model: String,
    /// The response as it was sent.
    pub response: Value,
    /// Items that its request brought along.
    pub input: Vec<Value>,
    /// All that was said up to its end, without the instructions of the request.
    pub items: Vec<Item>,
    /// Ids of what the model said of it.
    pub generated: GeneratedIds,
}

impl StoredResponse {
    /// Ids of what the model said of it, if it is `model`: another one has other ids.
    pub fn generated_by(&self, model: &str) -> &[(usize, Vec<u32>)] {
        if self.model == model { &self.generated } else { &[] }
    }

    /// Ids of the items that were answered.
    fn output(&self) -> impl Iterator<Item = &str> {
        ids_of(self.response["output"].as_array().map_or(&[][..], Vec::as_slice))
    }
}

/// Ids of items.
fn ids_of(items: &[Value]) -> impl Iterator<Item = &str> {
    items.iter().filter_map(|item| item["id"].as_str())
}

/// Stored responses. Only its caller sees one. When they are too many or too large, the oldest go
/// first.
#[derive(Default)]
pub struct ResponseStore(Mutex<StoreContents>);

#[derive(Default)]
struct StoreContents {
    entries: HashMap<String, ResponseEntry>,
    /// Names from the oldest to the newest.
    order: VecDeque<String>,
    /// Responses that have an item, by its tenant and id.
    items: HashMap<(u64, String), String>,
    bytes: usize,
}

struct ResponseEntry {
    tenant: u64,
    bytes: usize,
    stored: Arc<StoredResponse>,
}

impl ResponseStore {
    /// Keeps a response of a tenant.
    pub fn insert(&self, tenant: u64, id: &str, stored: StoredResponse) {
        self.insert_within(tenant, id, stored, limits::RESPONSES, limits::RESPONSE_BYTES);
    }

    fn insert_within(&self, tenant: u64, id: &str, stored: StoredResponse, most: usize, most_bytes: usize) {
        let input: usize = stored.input.iter().map(|item| item.to_string().len()).sum();
        let items: usize = stored.items.iter().map(size).sum();
        let ids: usize = stored.generated.iter().map(|(_, ids)| size_of_val(&ids[..])).sum();
        let bytes = id.len() + ids + stored.response.to_string().len() + input + items;
        let mut kept = self.kept();
        kept.remove(id);
        kept.bytes += bytes;
        kept.order.push_back(id.to_owned());
        for item in stored.output() {
            kept.items.insert((tenant, item.to_owned()), id.to_owned());
        }
        for item in ids_of(&stored.input) {
            kept.items.entry((tenant, item.to_owned())).or_insert_with(|| id.to_owned());
        }
        kept.entries.insert(id.to_owned(), ResponseEntry { tenant, bytes, stored: Arc::new(stored) });
        while kept.entries.len() > most || kept.bytes > most_bytes {
            let Some(oldest) = kept.order.front().cloned() else { break };
            kept.remove(&oldest);
        }
    }

    /// A response of a tenant.
    pub fn get(&self, tenant: u64, id: &str) -> Option<Arc<StoredResponse>> {
        let kept = self.kept();
        let entry = kept.entries.get(id).filter(|entry| entry.tenant == tenant)?;
        Some(entry.stored.clone())
    }

    /// An item of one of a tenant's responses, with the ids that `model` gave its reasoning where they are
    /// known.
    pub fn item(&self, tenant: u64, id: &str, model: &str) -> Option<(Value, Option<Vec<u32>>)> {
        let response = self.kept().items.get(&(tenant, id.to_owned())).cloned()?;
        let stored = self.get(tenant, &response)?;
        let output = stored.response["output"].as_array().map_or(&[][..], Vec::as_slice);
        let Some(at) = output.iter().position(|item| item["id"] == id) else {
            return Some((stored.input.iter().find(|item| item["id"] == id)?.clone(), None));
        };
        // The answer stands last among all items.
        let place = (stored.items.len() + at).checked_sub(output.len())?;
        let ids = stored.generated_by(model).iter().find(|(begin, _)| *begin == place);
        let ids = ids.map(|(_, ids)| ids.clone());
        Some((output[at].clone(), ids))
    }

    /// Forgets a response of a tenant; whether there was one.
    pub fn remove(&self, tenant: u64, id: &str) -> bool {
        let mut kept = self.kept();
        let is_own = kept.entries.get(id).is_some_and(|entry| entry.tenant == tenant);
        if is_own {
            kept.remove(id);
        }
        is_own
    }

    fn kept(&self) -> MutexGuard<'_, StoreContents> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl StoreContents {
    fn remove(&mut self, id: &str) {
        if let Some(entry) = self.entries.remove(id) {
            self.bytes -= entry.bytes;
            let items = entry.stored.output().chain(ids_of(&entry.stored.input));
            for key in items.map(|item| (entry.tenant, item.to_owned())) {
                if self.items.get(&key).is_some_and(|response| response == id) {
                    self.items.remove(&key);
                }
            }
            self.order.retain(|other| other != id);
        }
    }
}

/// Bytes of an item's texts.
fn size(item: &Item) -> usize {
    match item {
        Item::Instructions(text) | Item::Reasoning(text) | Item::Preamble(text) | Item::Answer(text) => {
            text.len()
        }
        Item::User { name, text } => text.len() + name.as_ref().map_or(0, String::len),
        Item::Call(call) => call.id.len() + call.name.len() + call.arguments.len(),
        Item::Output(output) => output.id.len() + output.name.len() + output.text.len(),
    }
}

#[cfg(test)]
mod tests {
    use super::{ResponseStore, StoredResponse};
    use kernmill_chat::Item;
    use serde_json::json;

    fn stored(bytes: usize) -> StoredResponse {
        StoredResponse {
            model: "nano".to_owned(),
            response: json!({}),
            input: Vec::new(),
            items: vec![Item::Answer("a".repeat(bytes))],
            generated: Vec::new(),
        }
    }

    #[test]
    fn the_oldest_go_first_by_number_and_by_bytes() {
        let store = ResponseStore::default();
        let there = |ids: &[&str]| ids.iter().map(|id| store.get(1, id).is_some()).collect::<Vec<_>>();
        for id in ["a", "b", "c"] {
            store.insert_within(1, id, stored(10), 2, 1000);
        }
        assert_eq!(there(&["a", "b", "c"]), [false, true, true]);
        // Each has 3 bytes of its own besides the text.
        store.insert_within(1, "d", stored(20), 9, 23 + 13);
        assert_eq!(there(&["b", "c", "d"]), [false, true, true]);
        store.insert_within(1, "e", stored(100), 9, 50);
        assert_eq!(there(&["c", "d", "e"]), [false, false, false]);
        assert_eq!(store.kept().bytes, 0);
        assert!(store.kept().order.is_empty());
    }

    #[test]
    fn a_response_is_its_callers_alone() {
        let store = ResponseStore::default();
        store.insert(1, "a", stored(1));
        assert!(store.get(2, "a").is_none() && !store.remove(2, "a"));
        assert!(store.get(1, "a").is_some() && store.remove(1, "a") && !store.remove(1, "a"));
        assert!(store.get(1, "a").is_none());
    }

    #[test]
    fn items_are_there_as_long_as_their_response() {
        let store = ResponseStore::default();
        let of = |id: &str| StoredResponse {
            model: "nano".to_owned(),
            response: json!({ "output": [{ "id": format!("msg_{id}") }] }),
            input: vec![json!({ "id": format!("in_{id}") })],
            items: vec![Item::Answer(String::new())],
            generated: vec![(0, vec![7, 8])],
        };
        for id in ["a", "b", "c"] {
            store.insert_within(1, id, of(id), 2, 1000);
        }
        let there = |id: &str| store.item(1, id, "nano").is_some();
        assert_eq!(["msg_a", "in_a", "msg_b", "in_c"].map(there), [false, false, true, true]);
        assert_eq!(store.item(1, "msg_c", "nano"), Some((json!({ "id": "msg_c" }), Some(vec![7, 8]))));
        // Ids are those of the model that answered.
        assert_eq!(store.item(1, "msg_c", "other"), Some((json!({ "id": "msg_c" }), None)));
        assert_eq!(store.item(1, "in_c", "nano"), Some((json!({ "id": "in_c" }), None)));
        assert!(store.item(2, "msg_c", "nano").is_none());
        assert!(store.remove(1, "b") && store.remove(1, "c"));
        assert!(store.kept().items.is_empty());
    }
}
