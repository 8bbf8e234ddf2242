//! Requests to a hub. Redirects are followed here: the user's token goes to the hub itself, and to no other
//! host.

use super::place::{HubAccess, origin};
use crate::error::{Error, Result};
use std::fmt::Display;
use std::sync::Arc;
use std::time::Duration;
use ureq::http::Response;
use ureq::tls::{Certificate, PemItem, RootCerts, TlsConfig, parse_pem};
use ureq::{Agent, Body, BodyReader};

/// Redirects of one request at most.
const REDIRECTS: usize = 8;
/// How long a connection may take, and an answer to begin.
const CONNECT: Duration = Duration::from_secs(20);
/// How long nothing may come.
const SILENCE: Duration = Duration::from_secs(60);
/// Bytes of a hub's list of files at most.
const LIST_BYTES: u64 = 64 << 20;

/// Why there is no answer.
#[derive(Debug)]
pub(super) enum HubFault {
    /// The connection, or a server that is out of order: another try may go well.
    Lost(String),
    /// Another try would end the same way.
    Final(Error),
}

impl From<HubFault> for Error {
    fn from(fault: HubFault) -> Error {
        match fault {
            HubFault::Lost(what) => Error::failed(what),
            HubFault::Final(error) => error,
        }
    }
}

/// A hub, as the user's environment names it.
pub(super) struct HubClient {
    agent: Agent,
    place: HubAccess,
    /// The model that is asked for, as messages name it.
    model: String,
}

/// The beginning of an answer.
pub(super) struct HubResponse {
    /// The status: 200, 206 or 416.
    pub(super) status: u16,
    /// The header Content-Range, if there is one.
    pub(super) range: Option<String>,
    /// The contents.
    pub(super) body: BodyReader<'static>,
}

impl HubClient {
    pub(super) fn new(place: HubAccess, model: String) -> Result<HubClient> {
        let mut tls = TlsConfig::builder();
        if let Some(path) = std::env::var_os("SSL_CERT_FILE").filter(|path| !path.is_empty()) {
            let pem = std::fs::read(&path).map_err(Error::read(path.as_ref()))?;
            let items = parse_pem(&pem).filter_map(|item| match item {
                Ok(PemItem::Certificate(one)) => Some(one),
                _ => None,
            });
            let roots: Vec<Certificate<'static>> = items.collect();
            if roots.is_empty() {
                return Err(Error::input(
                    path.as_ref(),
                    "no certificate is in this file, which SSL_CERT_FILE names",
                ));
            }
            tls = tls.root_certs(RootCerts::Specific(Arc::new(roots)));
        }
        let config = Agent::config_builder()
            .http_status_as_error(false)
            .max_redirects(0)
            .timeout_connect(Some(CONNECT))
            .timeout_resolve(Some(CONNECT))
            .timeout_recv_response(Some(SILENCE))
            .timeout_per_read(Some(SILENCE))
            .user_agent(concat!("kernmill/", env!("CARGO_PKG_VERSION")))
            .tls_config(tls.build())
            .build();
        Ok(HubClient { agent: config.into(), place, model })
    }

    /// The hub's description of the model at `main`: commit, files, their sizes and sums.
    pub(super) fn list(&self, repository: &str) -> Result<Vec<u8>> {
        let url = format!("{}/api/models/{repository}/revision/main?blobs=true", self.place.endpoint);
        let answer = self.get(url, 0, false)?;
        let body = std::io::Read::take(answer.body, LIST_BYTES + 1);
        let read = kernmill_os::files::read_all(body, LIST_BYTES);
        read.map_err(|error| Error::failed(self.says(format!("the list of files: {error}"))))
    }

    /// A file of a commit, from byte `from` on.
    pub(super) fn file(
        &self,
        repository: &str,
        commit: &str,
        path: &str,
        from: u64,
    ) -> std::result::Result<HubResponse, HubFault> {
        let url = format!("{}/{repository}/resolve/{commit}/{}", self.place.endpoint, escaped(path));
        self.get(url, from, true)
    }

    /// Asks for `url`. Where it `leaves` the hub, other hosts are asked without the token.
    fn get(&self, mut url: String, from: u64, leaves: bool) -> std::result::Result<HubResponse, HubFault> {
        for _ in 0..=REDIRECTS {
            let is_own = origin(&url).is_some_and(|origin| self.place.is_at(origin));
            let mut request = self.agent.get(&url).header("Accept-Encoding", "identity");
            if from > 0 {
                request = request.header("Range", format!("bytes={from}-"));
            }
            let token = self.place.token.as_ref().filter(|_| is_own);
            if let Some(token) = token {
                request = request.header("Authorization", format!("Bearer {token}"));
            }
            let lost = |error| HubFault::Lost(self.says(format!("{}: {error}", shown(&url))));
            let response = request.call().map_err(lost)?;
            let header = |name: &str| response.headers().get(name).and_then(|value| value.to_str().ok());
            match response.status().as_u16() {
                200 | 206 | 416 => {
                    let range = header("Content-Range").map(str::to_owned);
                    let status = response.status().as_u16();
                    return Ok(HubResponse { status, range, body: response.into_body().into_reader() });
                }
                301 | 302 | 303 | 307 | 308 => {
                    let to = header("Location").unwrap_or_default();
                    url = self.follow(&url, to, leaves).map_err(HubFault::Final)?;
                }
                _ => return Err(self.refused(&response, &url, is_own, token.is_some())),
            }
        }
        Err(HubFault::Final(Error::failed(self.says(format!("{} redirects again and again", shown(&url))))))
    }

    /// Where a redirect leads, if that may be followed.
    fn follow(&self, from: &str, to: &str, leaves: bool) -> Result<String> {
        let refuse = |what: String| Err(Error::failed(self.says(what)));
        let here = origin(from).unwrap_or_default();
        let url = match to {
            to if to.starts_with('/') && !to.starts_with("//") => format!("{here}{to}"),
            to => to.to_owned(),
        };
        let Some(there) = origin(&url) else {
            return refuse(format!("{} redirects to no address that can be asked", shown(from)));
        };
        if here.starts_with("https:") && !there.starts_with("https:") {
            return refuse(format!(
                "{} redirects to {there}, which is not encrypted: it is not asked",
                shown(from)
            ));
        }
        if self.place.token.as_ref().is_some_and(|token| url.contains(token.as_str())) {
            return refuse(format!(
                "{} redirects to {there} with the token in the address: it is not asked",
                shown(from)
            ));
        }
        if !leaves && !self.place.is_at(there) {
            return refuse(format!(
                "{} redirects to {there}, where the token and the list of files do not belong: it is not asked; \
                 HF_ENDPOINT says which hub is",
                shown(from)
            ));
        }
        Ok(url)
    }

    /// The error of a status other than success.
    fn refused(&self, response: &Response<Body>, url: &str, is_own: bool, has_token: bool) -> HubFault {
        let header = |name: &str| response.headers().get(name).and_then(|value| value.to_str().ok());
        let (endpoint, model) = (&self.place.endpoint, &self.model);
        let repository = model.split(':').next().unwrap_or(model);
        let is_gated = header("X-Error-Code") == Some("GatedRepo");
        let status = response.status().as_u16();
        let what = match status {
            _ if !is_own => format!("{} answers {status}", shown(url)),
            401 | 403 if is_gated && !has_token => format!(
                "it is gated ({status}): accept its terms at {endpoint}/{repository}, and give a token of \
                 that account in HF_TOKEN"
            ),
            401 | 403 if is_gated => format!(
                "it is gated, and the token's account may not read it ({status}): accept its terms at \
                 {endpoint}/{repository}"
            ),
            401 if has_token => {
                format!("{endpoint} does not take the token ({status}): give another one in HF_TOKEN")
            }
            401 => format!(
                "{endpoint} has no such model, or shows it to its owner only ({status}): look at the name, \
                 or give a token in HF_TOKEN"
            ),
            403 => format!(
                "{endpoint} refuses access ({status}): its page {endpoint}/{repository} may say what is needed"
            ),
            404 => match header("X-Error-Code") {
                Some("EntryNotFound") => format!("{} is not there any more ({status})", shown(url)),
                _ => format!("{endpoint} has no such model ({status})"),
            },
            429 => {
                let wait =
                    header("Retry-After").filter(|wait| wait.bytes().all(|byte| byte.is_ascii_digit()));
                let wait = wait.map_or("some minutes".to_owned(), |wait| format!("{wait} seconds"));
                let token = if has_token { "" } else { ", or give a token in HF_TOKEN" };
                format!("{endpoint} limits how often it is asked ({status}): try again after {wait}{token}")
            }
            _ => format!("{} answers {status}", shown(url)),
        };
        match status {
            500.. => HubFault::Lost(self.says(what)),
            401 | 403 | 404 if is_own => HubFault::Final(Error::bad_input(self.says(what))),
            _ => HubFault::Final(Error::failed(self.says(what))),
        }
    }

    /// A message about the model.
    pub(super) fn says(&self, what: impl Display) -> String {
        format!("{}: {what}", self.model)
    }
}

/// An address without its query, which may have secrets in it.
fn shown(url: &str) -> &str {
    url.split(['?', '#']).next().unwrap_or(url)
}

/// A path as a part of an address.
fn escaped(path: &str) -> String {
    path.bytes().fold(String::new(), |mut text, byte| {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'_' | b'.' | b'~' | b'/' => {
                text.push(char::from(byte))
            }
            other => text.push_str(&format!("%{other:02X}")),
        }
        text
    })
}
