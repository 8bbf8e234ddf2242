//! Contents that clients keep for the server: they cannot make or change one, and none is of use to another
//! key. Nothing in one is secret: a reasoning is shown beside it, a summary is the caller's own. So they are
//! plain bytes with a keyed hash (BLAKE3), whose key is made anew at every start.

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use blake3::Hash;
use std::fs::File;
use std::io::{self, Read};

/// The kind of a content.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SealedKind {
    /// Ids that the model generated.
    Ids = 1,
    /// A text: the summary of a conversation.
    Text = 2,
}

/// Seals contents and opens them.
#[derive(Clone)]
pub struct Seal {
    key: [u8; 32],
    /// The model whose ids are sealed.
    model: String,
}

/// Bytes of a hash.
const HASH: usize = 32;

/// Bytes of an id.
const ID: usize = 3;

impl Seal {
    /// A seal with a key of its own.
    ///
    /// # Errors
    /// When the system gives no random bytes.
    pub fn new() -> io::Result<Seal> {
        let mut key = [0; 32];
        File::open("/dev/urandom")?.read_exact(&mut key)?;
        Ok(Seal { key, model: String::new() })
    }

    /// This seal for ids of a model, which are of no use to another one.
    pub fn of_model(&self, model: &str) -> Seal {
        Seal { key: self.key, model: model.to_owned() }
    }

    fn hash(&self, kind: SealedKind, tenant: u64, bytes: &[u8]) -> Hash {
        let mut hasher = blake3::Hasher::new_keyed(&self.key);
        hasher.update(&[kind as u8]).update(&tenant.to_le_bytes()).update(bytes);
        if kind == SealedKind::Ids {
            hasher.update(self.model.as_bytes());
        }
        hasher.finalize()
    }

    fn close(&self, kind: SealedKind, tenant: u64, mut bytes: Vec<u8>) -> String {
        let hash = self.hash(kind, tenant, &bytes);
        bytes.extend(hash.as_bytes());
        URL_SAFE_NO_PAD.encode(bytes)
    }

    fn open(&self, kind: SealedKind, tenant: u64, sealed: &str) -> Option<Vec<u8>> {
        let mut bytes = URL_SAFE_NO_PAD.decode(sealed).ok()?;
        let hash = bytes.split_off(bytes.len().checked_sub(HASH)?);
        let hash: [u8; HASH] = hash.try_into().ok()?;
        // Hashes are compared in constant time.
        (self.hash(kind, tenant, &bytes) == Hash::from_bytes(hash)).then_some(bytes)
    }

    /// Ids of a tenant's answer, sealed.
    pub fn ids(&self, tenant: u64, ids: &[u32]) -> String {
        // A vocabulary has fewer than 2^24 tokens.
        let bytes = ids.iter().flat_map(|id| id.to_le_bytes().into_iter().take(ID)).collect();
        self.close(SealedKind::Ids, tenant, bytes)
    }

    /// Ids that were sealed for a tenant; `None` for anything else.
    pub fn open_ids(&self, tenant: u64, sealed: &str) -> Option<Vec<u32>> {
        let bytes = self.open(SealedKind::Ids, tenant, sealed)?;
        let id = |id: &[u8]| u32::from_le_bytes([id[0], id[1], id[2], 0]);
        Some(bytes.chunks_exact(ID).map(id).collect())
    }

    /// A text of a tenant, sealed.
    pub fn text(&self, tenant: u64, text: &str) -> String {
        self.close(SealedKind::Text, tenant, text.as_bytes().to_vec())
    }

    /// A text that was sealed for a tenant; `None` for anything else.
    pub fn open_text(&self, tenant: u64, sealed: &str) -> Option<String> {
        String::from_utf8(self.open(SealedKind::Text, tenant, sealed)?).ok()
    }
}

#[cfg(test)]
mod tests {
    use super::Seal;

    #[test]
    fn only_what_was_sealed_for_a_tenant_opens() {
        let seal = Seal::new().unwrap();
        let ids: Vec<u32> = (0..50).map(|n| n * 4099).collect();
        let sealed = seal.ids(7, &ids);
        assert_eq!(seal.open_ids(7, &sealed), Some(ids));
        assert_eq!(seal.open_ids(7, &seal.ids(7, &[])), Some(Vec::new()));
        assert_eq!(seal.open_ids(8, &sealed), None);
        assert_eq!(seal.open_text(7, &sealed), None);
        assert_eq!(Seal::new().unwrap().open_ids(7, &sealed), None);
        for at in 0..sealed.len() {
            let mut wrong = sealed.clone().into_bytes();
            wrong[at] = if wrong[at] == b'A' { b'B' } else { b'A' };
            assert_eq!(seal.open_ids(7, &String::from_utf8(wrong).unwrap()), None, "{at}");
        }
        for wrong in ["", "AAAA", "no base64!", &sealed[1..], &sealed[..sealed.len() - 1]] {
            assert_eq!(seal.open_ids(7, wrong), None, "{wrong}");
        }
        // Ids are a model's; what texts say, every model of the server may read.
        let other = seal.of_model("other");
        assert_eq!((other.open_ids(7, &sealed), seal.open_ids(7, &other.ids(7, &[1]))), (None, None));
        assert_eq!(other.open_text(7, &seal.text(7, "Grüße")).as_deref(), Some("Grüße"));
    }
}
