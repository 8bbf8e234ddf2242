//! Callers: their keys, what these may do, and how much.

use crate::error::ApiError;
use crate::record::Record;
use axum::http::HeaderMap;
use blake3::Hash;
use kernmill_os::files::read_named_text;
use std::collections::HashMap;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Bytes of a keys file at most: some ten thousand keys.
const MOST_BYTES: u64 = 1 << 20;

/// A key of a keys file. The key itself is not kept, only its hash.
#[derive(Clone, Debug, PartialEq)]
pub struct ApiKey {
    /// Name of the key, for the log and the figures.
    pub name: String,
    hash: Hash,
    /// Whether the key may load adapters and drain the server.
    pub is_admin: bool,
    /// Tokens of prompts and answers in a minute at most.
    pub tokens_per_minute: Option<u64>,
}

/// The keys of a server.
#[derive(Debug, Default)]
pub struct Keys {
    keys: Vec<ApiKey>,
    used: Mutex<HashMap<usize, Bucket>>,
}

/// Tokens that a key may still use.
#[derive(Clone, Copy, Debug)]
struct Bucket {
    left: f64,
    at: Instant,
}

/// The sender of a request.
#[derive(Clone, Debug, Default)]
pub struct Caller {
    /// Number of the key; `None` where no keys are needed.
    key: Option<usize>,
    /// Whose share of the machine is used, and whose cached prompts are found. 0 where no keys are needed.
    pub tenant: u64,
    /// Whether adapters may be loaded and the server drained.
    pub is_admin: bool,
    /// The log's record of the request.
    pub record: Option<Arc<Record>>,
}

impl Keys {
    /// Reads the lines of a keys file: `NAME KEY`, then `admin` and `tokens-per-minute=N` where they apply. A
    /// key may be given as `blake3:` and its hash in hexadecimal digits. Lines that begin with `#` and empty
    /// ones mean nothing.
    ///
    /// # Errors
    /// When a line has another form, a key is shorter than 16 characters, or a name or key occurs twice. The
    /// error names the line and no key.
    pub fn read(text: &str) -> Result<Keys, String> {
        let mut keys: Vec<ApiKey> = Vec::new();
        for (at, line) in text.lines().enumerate() {
            let number = at + 1;
            let line = line.trim();
            if line.is_empty() || line.starts_with('#') {
                continue;
            }
            let mut words = line.split_whitespace();
            let (Some(name), Some(secret)) = (words.next(), words.next()) else {
                return Err(format!("line {number} has no key, expected NAME KEY"));
            };
            let hash = match secret.strip_prefix("blake3:") {
                Some(hex) => Hash::from_hex(hex)
                    .map_err(|_| format!("line {number}: `blake3:` needs 64 hexadecimal digits"))?,
                None if secret.len() < 16 => {
                    return Err(format!("line {number}: the key is shorter than 16 characters"));
                }
                None => blake3::hash(secret.as_bytes()),
            };
            let mut key = ApiKey { name: name.to_owned(), hash, is_admin: false, tokens_per_minute: None };
            for word in words {
                match word.strip_prefix("tokens-per-minute=").map(str::parse) {
                    Some(Ok(tokens)) if tokens > 0 => key.tokens_per_minute = Some(tokens),
                    None if word == "admin" => key.is_admin = true,
                    _ => {
                        return Err(format!(
                            "line {number}: `{word}`, expected admin or tokens-per-minute=N"
                        ));
                    }
                }
            }
            if keys.iter().any(|other| other.name == key.name || other.hash == key.hash) {
                return Err(format!("line {number}: another line has this name or key"));
            }
            keys.push(key);
        }
        Ok(Keys { keys, used: Mutex::default() })
    }

    /// Reads a keys file ([`Keys::read`]).
    ///
    /// # Errors
    /// When the file cannot be read, or a line is wrong.
    pub fn open(path: &Path) -> Result<Keys, kernmill::Error> {
        let text = read_named_text(path, MOST_BYTES).map_err(kernmill::Error::read(path))?;
        Keys::read(&text).map_err(|what| kernmill::Error::input(path, what))
    }

    /// Whether no key is needed.
    pub fn is_empty(&self) -> bool {
        self.keys.is_empty()
    }

    /// The sender of a request with these headers.
    ///
    /// # Errors
    /// When keys are needed and none of them is there.
    pub fn caller(&self, headers: &HeaderMap) -> Result<Caller, ApiError> {
        if self.keys.is_empty() {
            return Ok(Caller { is_admin: true, ..Caller::default() });
        }
        let text = |name: &str| headers.get(name).and_then(|value| value.to_str().ok());
        let bearer = text("authorization").and_then(|value| {
            let (scheme, key) = value.split_once(' ')?;
            scheme.eq_ignore_ascii_case("bearer").then_some(key.trim())
        });
        // Anthropic's clients send the key in a separate header.
        let Some(secret) = bearer.or_else(|| text("x-api-key")) else { return Err(ApiError::unauthorized()) };
        let hash = blake3::hash(secret.as_bytes());
        // Hashes are compared in constant time, and all of them are.
        let found = self.keys.iter().enumerate().fold(
            None,
            |found, (at, key)| {
                if key.hash == hash { Some(at) } else { found }
            },
        );
        let at = found.ok_or_else(ApiError::unauthorized)?;
        let key = &self.keys[at];
        Ok(Caller { key: Some(at), tenant: tenant(&key.name), is_admin: key.is_admin, record: None })
    }

    /// Takes tokens off what a caller may use in a minute.
    ///
    /// # Errors
    /// When there is nothing left. The rest may be less than the charge: then the caller waits for longer the
    /// next time.
    pub fn charge(&self, caller: &Caller, tokens: u64, now: Instant) -> Result<(), ApiError> {
        let Some((at, most)) = caller.key.and_then(|at| Some((at, self.keys.get(at)?.tokens_per_minute?)))
        else {
            return Ok(());
        };
        let most = most as f64;
        let mut used = self.used.lock().unwrap_or_else(PoisonError::into_inner);
        let bucket = used.entry(at).or_insert(Bucket { left: most, at: now });
        bucket.fill(most, now);
        if bucket.left <= 0.0 {
            return Err(ApiError::quota(Duration::from_secs_f64((1.0 - bucket.left) * 60.0 / most)));
        }
        bucket.left -= tokens as f64;
        Ok(())
    }
}

impl Keys {
    /// Name of a caller's key, if there are keys.
    pub fn name(&self, caller: &Caller) -> Option<&str> {
        Some(&self.keys.get(caller.key?)?.name)
    }

    /// Takes tokens that were generated off what a tenant may use in a minute.
    pub fn spend(&self, of: u64, tokens: u64, now: Instant) {
        let found = self.keys.iter().enumerate().find(|(_, key)| tenant(&key.name) == of);
        let Some((at, most)) = found.and_then(|(at, key)| Some((at, key.tokens_per_minute?))) else { return };
        let most = most as f64;
        let mut used = self.used.lock().unwrap_or_else(PoisonError::into_inner);
        let bucket = used.entry(at).or_insert(Bucket { left: most, at: now });
        bucket.fill(most, now);
        bucket.left -= tokens as f64;
    }
}

impl Bucket {
    /// Adds what the time since the last look gives.
    fn fill(&mut self, most: f64, now: Instant) {
        let seconds = now.saturating_duration_since(self.at).as_secs_f64();
        self.left = (self.left + seconds * most / 60.0).min(most);
        self.at = now;
    }
}

/// The number of a key's name: the same after every start, so that what is on disk is found again.
fn tenant(name: &str) -> u64 {
    let hash = blake3::hash(name.as_bytes());
    let mut bytes = [0; 8];
    bytes.copy_from_slice(&hash.as_bytes()[..8]);
    // Tenant 0 is everybody.
    u64::from_le_bytes(bytes).max(1)
}

#[cfg(test)]
mod tests {
    use super::{Caller, Keys};
    use axum::http::{HeaderMap, HeaderValue};
    use std::time::{Duration, Instant};

    fn headers(name: &'static str, value: &str) -> HeaderMap {
        HeaderMap::from_iter([(name.parse().unwrap(), HeaderValue::from_str(value).unwrap())])
    }

    #[test]
    fn keys_are_found_by_their_hash() {
        let hash = blake3::hash(b"another-secret-key").to_hex();
        let text =
            format!("# keys\nann secret-key-of-ann admin\n\nbob blake3:{hash} tokens-per-minute=600\n");
        let keys = Keys::read(&text).unwrap();
        let ann = keys.caller(&headers("authorization", "Bearer secret-key-of-ann")).unwrap();
        let bob = keys.caller(&headers("x-api-key", "another-secret-key")).unwrap();
        assert!(ann.is_admin && !bob.is_admin && ann.tenant != bob.tenant && bob.tenant != 0);
        for wrong in ["Bearer secret-key-of-an", "Bearer ", "Basic secret-key-of-ann", "secret-key-of-ann"] {
            assert_eq!(keys.caller(&headers("authorization", wrong)).unwrap_err().status(), 401, "{wrong}");
        }
        assert_eq!(keys.caller(&HeaderMap::new()).unwrap_err().status(), 401);
        assert!(!format!("{keys:?}").contains("secret-key-of-ann"));
        assert_eq!(Keys::default().caller(&HeaderMap::new()).unwrap().tenant, 0);
    }

    #[test]
    fn wrong_lines_are_named_and_no_key_is_shown() {
        let of = |text: &str| Keys::read(text).unwrap_err();
        assert_eq!(of("ann"), "line 1 has no key, expected NAME KEY");
        assert_eq!(of("\nann short"), "line 2: the key is shorter than 16 characters");
        assert_eq!(of("ann blake3:12"), "line 1: `blake3:` needs 64 hexadecimal digits");
        assert_eq!(of("ann 0123456789abcdef root"), "line 1: `root`, expected admin or tokens-per-minute=N");
        let twice = of("ann 0123456789abcdef\nbob 0123456789abcdef");
        assert_eq!(twice, "line 2: another line has this name or key");
    }

    #[test]
    fn a_quota_fills_up_again() {
        let keys = Keys::read("ann 0123456789abcdef tokens-per-minute=60").unwrap();
        let ann = keys.caller(&headers("x-api-key", "0123456789abcdef")).unwrap();
        let start = Instant::now();
        keys.charge(&ann, 90, start).unwrap();
        assert_eq!(keys.charge(&ann, 1, start).unwrap_err().status(), 429);
        assert_eq!(keys.charge(&ann, 1, start + Duration::from_secs(29)).unwrap_err().status(), 429);
        keys.charge(&ann, 1, start + Duration::from_secs(32)).unwrap();
        // An answer counts as its prompt does.
        keys.spend(ann.tenant, 200, start + Duration::from_secs(32));
        assert_eq!(keys.charge(&ann, 1, start + Duration::from_secs(200)).unwrap_err().status(), 429);
        keys.charge(&Caller::default(), u64::MAX, start).unwrap();
        keys.spend(0, u64::MAX, start);
    }
}
