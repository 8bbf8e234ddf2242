//! Checks of a request before anything is done for it.

use crate::error::ApiError;
use crate::ollama;
use crate::state::ServerConfig;
use axum::http::header::{CONTENT_ENCODING, CONTENT_LENGTH, CONTENT_TYPE, HOST, ORIGIN, TRANSFER_ENCODING};
use axum::http::{HeaderMap, HeaderValue, Method, Uri};
use std::net::IpAddr;

/// Checks who a request was meant for, and which page sent it. A page elsewhere must reach the server neither
/// by a name that it has the machine's address under (DNS rebinding) nor by a form.
///
/// # Errors
/// When the header `Host` names another machine, a page elsewhere sent the request, or a body is no JSON, is
/// packed, or is announced to be larger than bodies may be.
pub fn check(config: &ServerConfig, method: &Method, uri: &Uri, headers: &HeaderMap) -> Result<(), ApiError> {
    check_source(config, uri, headers)?;
    let is_json = |value: &str| {
        let kind = value.split(';').next().unwrap_or_default().trim();
        kind.eq_ignore_ascii_case("application/json")
    };
    // Clients of Ollama name no type of a body, or that of forms, as curl does. A browser names where a
    // request comes from.
    let is_browser = headers.contains_key(ORIGIN) || headers.contains_key("sec-fetch-site");
    let is_post = method == Method::POST;
    if is_post && (is_browser || !uri.path().starts_with(ollama::PATH)) {
        let kind = headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok());
        // Without a body there is no type.
        let is_empty = headers.get(CONTENT_LENGTH).is_none_or(|length| length == "0")
            && headers.get(TRANSFER_ENCODING).is_none();
        if !kind.map_or(is_empty, is_json) {
            return Err(ApiError::media_type());
        }
    }
    if is_post {
        let is_packed = |coding: &HeaderValue| !coding.as_bytes().eq_ignore_ascii_case(b"identity");
        if headers.get_all(CONTENT_ENCODING).iter().any(is_packed) {
            return Err(ApiError::encoding());
        }
        let length = headers.get(CONTENT_LENGTH).and_then(|value| value.to_str().ok()?.parse::<u64>().ok());
        if length.is_some_and(|length| length > config.body_bytes as u64) {
            return Err(ApiError::too_large(config.body_bytes));
        }
    }
    Ok(())
}

/// Checks who a request was meant for, and which page sent it, whatever its body is.
///
/// # Errors
/// When the header `Host` or the address names another machine, there are several such headers, or a page
/// elsewhere sent the request.
pub fn check_source(config: &ServerConfig, uri: &Uri, headers: &HeaderMap) -> Result<(), ApiError> {
    if headers.get_all(HOST).iter().nth(1).is_some() {
        return Err(ApiError::invalid("the header `Host` comes more than once, expected once"));
    }
    // The host of a whole address goes before the header.
    let host = uri.authority().map(|host| host.as_str());
    let host = host.or_else(|| headers.get(HOST).and_then(|value| value.to_str().ok()));
    let host = host.ok_or_else(|| ApiError::invalid("the header `Host` is missing"))?;
    if !is_own(config, host) {
        let name = name_of(host);
        let message = format!("`Host: {name}` is not served here: the option --allowed-host permits it");
        return Err(ApiError::forbidden(message));
    }
    if let Some(origin) = headers.get(ORIGIN) {
        let origin = origin.to_str().unwrap_or_default();
        let is_same = origin.split_once("://").is_some_and(|(_, of)| of.eq_ignore_ascii_case(host));
        if !is_same && !config.origins.iter().any(|allowed| allowed == origin) {
            let message =
                "a page of another origin may not send requests: the option --cors-origin permits it";
            return Err(ApiError::forbidden(message));
        }
    }
    Ok(())
}

/// A host without its port.
fn name_of(host: &str) -> &str {
    match host.strip_prefix('[') {
        Some(rest) => rest.split(']').next().unwrap_or_default(),
        None => host.rsplit_once(':').map_or(host, |(name, _)| name),
    }
}

fn is_own(config: &ServerConfig, host: &str) -> bool {
    let name = name_of(host);
    let address = name.parse::<IpAddr>().ok();
    name.eq_ignore_ascii_case("localhost")
        || address.is_some_and(|address| address.is_loopback())
        // An address cannot be another's name.
        || (address.is_some() && !config.address.ip().is_loopback())
        || config.hosts.iter().any(|allowed| allowed == "*" || allowed.eq_ignore_ascii_case(name))
}

#[cfg(test)]
mod tests {
    use super::check;
    use crate::state::ServerConfig;
    use axum::http::{HeaderMap, HeaderName, HeaderValue, Method, Uri};

    fn status(config: &ServerConfig, method: &Method, headers: &[(&'static str, &str)]) -> u16 {
        status_of("/v1/models", config, method, headers)
    }

    fn status_of(
        path: &'static str,
        config: &ServerConfig,
        method: &Method,
        headers: &[(&'static str, &str)],
    ) -> u16 {
        let headers: HeaderMap = headers
            .iter()
            .map(|(name, value)| (HeaderName::from_static(name), HeaderValue::from_str(value).unwrap()))
            .collect();
        let checked = check(config, method, &Uri::from_static(path), &headers);
        checked.map_or_else(|error| error.status().as_u16(), |()| 200)
    }

    #[test]
    fn only_names_of_this_machine_are_served() {
        let mut config = ServerConfig::default();
        for host in ["localhost", "localhost:8080", "127.0.0.1:8080", "[::1]:8080", "LOCALHOST"] {
            assert_eq!(status(&config, &Method::GET, &[("host", host)]), 200, "{host}");
        }
        for host in ["evil.example:8080", "localhost.evil.example", "127.0.0.1.evil.example", "10.0.0.1", ""]
        {
            assert_eq!(status(&config, &Method::GET, &[("host", host)]), 403, "{host}");
        }
        assert_eq!(status(&config, &Method::GET, &[]), 400);
        config.hosts.push("models.example".to_owned());
        assert_eq!(status(&config, &Method::GET, &[("host", "models.example:80")]), 200);
    }

    #[test]
    fn a_request_is_meant_for_one_host() {
        let config = ServerConfig::default();
        let meant = |address: &'static str, hosts: &[&'static str]| {
            let mut headers = HeaderMap::new();
            for host in hosts {
                headers.append("host", HeaderValue::from_static(host));
            }
            let checked = check(&config, &Method::GET, &Uri::from_static(address), &headers);
            checked.map_or_else(|error| error.status().as_u16(), |()| 200)
        };
        assert_eq!(meant("/v1/models", &["localhost", "localhost"]), 400);
        assert_eq!(meant("/v1/models", &["localhost", "evil.example"]), 400);
        // RFC 9112, 3.2.2: the host of a whole address goes before the header.
        assert_eq!(meant("http://evil.example/v1/models", &["localhost"]), 403);
        assert_eq!(meant("http://localhost:8080/v1/models", &["localhost:8080"]), 200);
        assert_eq!(meant("http://localhost/v1/models", &["evil.example"]), 200);
    }

    #[test]
    fn packed_and_large_bodies_are_refused_before_they_come() {
        let config = ServerConfig { body_bytes: 1000, ..ServerConfig::default() };
        for path in ["/v1/messages", "/api/chat"] {
            let with = |name: &'static str, value: &str| {
                let json = ("content-type", "application/json");
                status_of(path, &config, &Method::POST, &[("host", "localhost"), json, (name, value)])
            };
            for coding in ["gzip", "br", "deflate, gzip", ""] {
                assert_eq!(with("content-encoding", coding), 415, "{path}: {coding}");
            }
            assert_eq!(with("content-encoding", "identity"), 200, "{path}");
            assert_eq!(
                (with("content-length", "1000"), with("content-length", "1001")),
                (200, 413),
                "{path}"
            );
            assert_eq!(with("content-length", "18446744073709551615"), 413, "{path}");
        }
    }

    #[test]
    fn pages_elsewhere_and_forms_are_refused() {
        let mut config = ServerConfig::default();
        let json = ("content-type", "application/json; charset=utf-8");
        let host = ("host", "localhost:8080");
        let of =
            |config: &ServerConfig, origin| status(config, &Method::POST, &[host, json, ("origin", origin)]);
        assert_eq!(of(&config, "http://localhost:8080"), 200);
        for origin in
            ["http://localhost:3000", "https://evil.example", "null", "http://localhost:8080.evil.example"]
        {
            assert_eq!(of(&config, origin), 403, "{origin}");
        }
        config.origins.push("https://app.example".to_owned());
        assert_eq!(of(&config, "https://app.example"), 200);
        for kind in ["text/plain", "application/x-www-form-urlencoded", "multipart/form-data; boundary=x"] {
            let headers = [host, ("content-type", kind), ("content-length", "2")];
            assert_eq!(status(&config, &Method::POST, &headers), 415, "{kind}");
        }
        assert_eq!(status(&config, &Method::POST, &[host, ("content-length", "2")]), 415);
        assert_eq!(status(&config, &Method::POST, &[host]), 200);
    }

    #[test]
    fn clients_of_ollama_need_no_type_and_pages_do() {
        let config = ServerConfig::default();
        let (host, length) = (("host", "localhost:8080"), ("content-length", "2"));
        let of = |more: &[(&'static str, &str)]| {
            status_of("/api/chat", &config, &Method::POST, &[&[host, length], more].concat())
        };
        let form = ("content-type", "application/x-www-form-urlencoded");
        assert_eq!((of(&[]), of(&[form])), (200, 200));
        for browser in [("sec-fetch-site", "cross-site"), ("origin", "http://localhost:8080")] {
            assert_eq!((of(&[browser]), of(&[form, browser])), (415, 415), "{browser:?}");
        }
        assert_eq!(of(&[("origin", "https://evil.example")]), 403);
    }
}
