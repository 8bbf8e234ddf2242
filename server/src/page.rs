//! The page at `/`, which is part of the program.

use crate::error::ApiError;
use axum::http::{HeaderValue, header};
use axum::response::{IntoResponse, Response};

/// What the page may do: nothing but what comes from this server.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

const HTML: &str = "text/html; charset=utf-8";
const SCRIPT: &str = "text/javascript; charset=utf-8";
const STYLE: &str = "text/css; charset=utf-8";

/// A file of `server/page/`, at the path of its name.
macro_rules! file {
    ($name:literal, $kind:expr) => {
        (concat!("/", $name), $kind, include_bytes!(concat!("../page/", $name)))
    };
}

/// Path, type and contents of every file.
const FILES: [(&str, &str, &[u8]); 11] = [
    ("/", HTML, include_bytes!("../page/index.html")),
    file!("style.css", STYLE),
    file!("main.js", SCRIPT),
    file!("api.js", SCRIPT),
    file!("chat.js", SCRIPT),
    file!("dom.js", SCRIPT),
    file!("markdown.js", SCRIPT),
    file!("settings.js", SCRIPT),
    file!("status.js", SCRIPT),
    file!("store.js", SCRIPT),
    file!("view.js", SCRIPT),
];

/// Whether the page has a file at a path.
pub fn is_there(path: &str) -> bool {
    FILES.iter().any(|(own, ..)| *own == path)
}

/// A file of the page.
///
/// # Errors
/// When there is none at the path.
pub fn file(path: &str) -> Result<Response, ApiError> {
    let found = FILES.iter().find(|(own, ..)| *own == path);
    let (_, kind, bytes) = found.ok_or_else(|| ApiError::not_found(format!("there is nothing at {path}")))?;
    let mut response = (*bytes).into_response();
    let headers = response.headers_mut();
    let fixed = [
        (header::CONTENT_TYPE, *kind),
        (header::CONTENT_SECURITY_POLICY, POLICY),
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (header::REFERRER_POLICY, "no-referrer"),
        (header::CACHE_CONTROL, "no-cache"),
    ];
    for (name, value) in fixed {
        headers.insert(name, HeaderValue::from_static(value));
    }
    Ok(response)
}
