//! Which hub is asked, and with which token: what the environment says to all of Hugging Face's tools.

use crate::error::{Error, Result};
use crate::hub;
use kernmill_os::files::read_regular_text;
use std::path::PathBuf;

/// The hub that is asked unless HF_ENDPOINT names another one.
const ENDPOINT: &str = "https://huggingface.co";
/// Bytes of a file with a token.
const TOKEN_BYTES: u64 = 4096;

/// A hub and the token for it.
#[derive(Clone, Debug)]
pub(super) struct HubAccess {
    /// Address of the hub, without a slash at the end.
    pub(super) endpoint: String,
    /// The user's token.
    pub(super) token: Option<String>,
}

impl HubAccess {
    /// The hub of HF_ENDPOINT and the token of HF_TOKEN, or of the file in which Hugging Face's tools keep
    /// one.
    pub(super) fn of_user() -> Result<HubAccess> {
        if is_offline() {
            return Err(Error::bad_input("HF_HUB_OFFLINE is set: no hub is asked".to_owned()));
        }
        let endpoint = variable("HF_ENDPOINT").unwrap_or_else(|| ENDPOINT.to_owned());
        let endpoint = endpoint.trim_end_matches('/').to_owned();
        let Some(own) = origin(&endpoint) else {
            return Err(Error::bad_input(format!(
                "HF_ENDPOINT is `{endpoint}`, expected an address such as {ENDPOINT}"
            )));
        };
        let token = match variable("HF_TOKEN") {
            Some(token) => Some(token),
            None => token_file().and_then(|file| read_regular_text(&file, TOKEN_BYTES).ok()),
        };
        let token = token.map(|token| token.trim().to_owned()).filter(|token| !token.is_empty());
        if token.as_ref().is_some_and(|token| !token.bytes().all(|byte| byte.is_ascii_graphic())) {
            return Err(Error::bad_input("HF_TOKEN has characters that no token has".to_owned()));
        }
        // Anybody on the way could read it.
        let token = token.filter(|_| own.starts_with("https:") || is_loopback(own));
        Ok(HubAccess { endpoint, token })
    }

    /// Whether an address with this origin is the hub's own.
    pub(super) fn is_at(&self, other: &str) -> bool {
        origin(&self.endpoint).is_some_and(|own| own.eq_ignore_ascii_case(other))
    }
}

/// Scheme, host and port of an address of HTTP; `None` of any other, and of one that has a password.
pub(super) fn origin(url: &str) -> Option<&str> {
    let rest = url.strip_prefix("https://").or_else(|| url.strip_prefix("http://"))?;
    let host = rest.split(['/', '?', '#']).next().unwrap_or_default();
    let is_host = !host.is_empty()
        && host.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-._:[]".contains(&byte));
    is_host.then(|| &url[..url.len() - rest.len() + host.len()])
}

/// Where Hugging Face's tools keep the token that `hf auth login` was given.
fn token_file() -> Option<PathBuf> {
    let given = variable("HF_TOKEN_PATH").map(PathBuf::from);
    given.or_else(|| Some(hub::home_of_user()?.join("token")))
}

fn variable(name: &str) -> Option<String> {
    std::env::var(name).ok().filter(|value| !value.is_empty())
}

fn is_loopback(origin: &str) -> bool {
    let host = origin.split_once("://").map_or(origin, |(_, host)| host);
    ["localhost", "127.0.0.1", "[::1]"]
        .iter()
        .any(|own| host.strip_prefix(own).is_some_and(|rest| rest.is_empty() || rest.starts_with(':')))
}

/// Whether the environment says that no hub may be asked.
pub(super) fn is_offline() -> bool {
    let is_on =
        |value: String| ["1", "on", "yes", "true"].iter().any(|word| value.eq_ignore_ascii_case(word));
    variable("HF_HUB_OFFLINE").is_some_and(is_on)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hub_is_told_from_other_hosts() {
        let place = HubAccess { endpoint: "https://hub.example/mirror".to_owned(), token: None };
        for (url, is) in [
            ("https://hub.example/x", true),
            ("https://HUB.example", true),
            ("https://hub.example.evil/x", false),
            ("http://hub.example/x", false),
            ("https://hub.example:444/x", false),
        ] {
            assert_eq!(origin(url).is_some_and(|origin| place.is_at(origin)), is, "{url}");
        }
        for url in ["ftp://x", "https://", "https://user:pw@hub.example/", "//hub.example/x", "hub.example"] {
            assert_eq!(origin(url), None, "{url}");
        }
        assert!(
            is_loopback("http://127.0.0.1:80")
                && is_loopback("http://localhost")
                && is_loopback("http://[::1]:8")
        );
        assert!(!is_loopback("http://127.0.0.1.evil") && !is_loopback("http://hub"));
    }
}
