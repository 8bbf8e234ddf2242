//! The page at `/`, which is part of the program.

use crate::error::ApiError;
use axum::http::{HeaderValue, header};
use axum::response::{IntoResponse, Response};

/// The permissions of the page: nothing but what comes from this server, and never HTML from text.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; font-src 'self'; connect-src \
    'self'; img-src 'self' data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; \
    require-trusted-types-for 'script'; trusted-types 'none'";

const HTML: &str = "text/html; charset=utf-8";
const SCRIPT: &str = "text/javascript; charset=utf-8";
const STYLE: &str = "text/css; charset=utf-8";
const FONT: &str = "font/woff2";

/// The page itself changes with the program, so browsers ask for it each time.
const ANEW: &str = "no-cache";
/// Libraries of others have their version in the path, so what is at a path stays.
const KEPT: &str = "public, max-age=31536000, immutable";

/// A file of `server/page/`, at the path of its name.
macro_rules! file {
    ($name:expr, $kind:expr, $cache:expr) => {
        (concat!("/", $name), $kind, $cache, include_bytes!(concat!("../page/", $name)))
    };
    ($name:expr, $kind:expr) => {
        file!($name, $kind, ANEW)
    };
}

/// A font of KaTeX.
macro_rules! font {
    ($name:literal) => {
        file!(concat!("katex-0.19.1/fonts/KaTeX_", $name, ".woff2"), FONT, KEPT)
    };
}

/// Path, type, caching and contents of every file.
const FILES: &[(&str, &str, &str, &[u8])] = &[
    ("/", HTML, ANEW, include_bytes!("../page/index.html")),
    file!("style.css", STYLE),
    file!("main.js", SCRIPT),
    file!("api.js", SCRIPT),
    file!("chat.js", SCRIPT),
    file!("dom.js", SCRIPT),
    file!("files.js", SCRIPT),
    file!("markdown.js", SCRIPT),
    file!("rich.js", SCRIPT),
    file!("settings.js", SCRIPT),
    file!("status.js", SCRIPT),
    file!("store.js", SCRIPT),
    file!("view.js", SCRIPT),
    file!("highlight-11.12.0/highlight.min.js", SCRIPT, KEPT),
    file!("katex-0.19.1/katex.min.js", SCRIPT, KEPT),
    file!("katex-0.19.1/katex.min.css", STYLE, KEPT),
    font!("AMS-Regular"),
    font!("Caligraphic-Bold"),
    font!("Caligraphic-Regular"),
    font!("Fraktur-Bold"),
    font!("Fraktur-Regular"),
    font!("Main-Bold"),
    font!("Main-BoldItalic"),
    font!("Main-Italic"),
    font!("Main-Regular"),
    font!("Math-BoldItalic"),
    font!("Math-Italic"),
    font!("SansSerif-Bold"),
    font!("SansSerif-Italic"),
    font!("SansSerif-Regular"),
    font!("Script-Regular"),
    font!("Size1-Regular"),
    font!("Size2-Regular"),
    font!("Size3-Regular"),
    font!("Size4-Regular"),
    font!("Typewriter-Regular"),
];

/// Whether the page has a file at a path.
pub fn is_there(path: &str) -> bool {
    FILES.iter().any(|(own, ..)| *own == path)
}

/// A file of the page.
///
/// # Errors
/// When no file is at the path.
pub fn file(path: &str) -> Result<Response, ApiError> {
    let found = FILES.iter().find(|(own, ..)| *own == path);
    let (_, kind, cache, bytes) =
        found.ok_or_else(|| ApiError::not_found(format!("there is nothing at {path}")))?;
    let mut response = (*bytes).into_response();
    let headers = response.headers_mut();
    let fixed = [
        (header::CONTENT_TYPE, *kind),
        (header::CONTENT_SECURITY_POLICY, POLICY),
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (header::REFERRER_POLICY, "no-referrer"),
        (header::CACHE_CONTROL, *cache),
    ];
    for (name, value) in fixed {
        headers.insert(name, HeaderValue::from_static(value));
    }
    Ok(response)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;
    use std::fs;
    use std::path::Path;

    fn text(path: &str) -> &'static str {
        let (.., bytes) = FILES.iter().find(|(own, ..)| *own == path).unwrap();
        str::from_utf8(bytes).unwrap()
    }

    /// Names below a directory, with slashes between, as paths of addresses have them.
    fn names(dir: &Path, before: &str, found: &mut BTreeSet<String>) {
        for entry in fs::read_dir(dir).unwrap() {
            let entry = entry.unwrap();
            let name = format!("{before}/{}", entry.file_name().to_str().unwrap());
            if entry.path().is_dir() {
                names(&entry.path(), &name, found);
            } else {
                found.insert(name);
            }
        }
    }

    #[test]
    fn every_file_of_the_page_is_served_but_the_licences() {
        let mut found = BTreeSet::new();
        names(Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/page")), "", &mut found);
        found.retain(|name| !name.ends_with("/LICENSE"));
        assert!(found.remove("/index.html") && found.insert("/".to_owned()));
        assert_eq!(FILES.iter().map(|(path, ..)| (*path).to_owned()).collect::<BTreeSet<_>>(), found);
    }

    #[test]
    fn what_the_page_asks_for_is_there() {
        let mut asked = vec!["/style.css".to_owned(), "/main.js".to_owned()];
        for (path, kind, ..) in FILES.iter().filter(|(path, ..)| path.matches('/').count() == 1) {
            if *kind == SCRIPT {
                let parts = text(path).split("from './").skip(1);
                asked.extend(parts.map(|part| format!("/{}", part.split('\'').next().unwrap())));
            }
        }
        assert!(asked.len() > 20, "{asked:?}");
        for library in ["./katex-0.19.1/katex.min", "./highlight-11.12.0/highlight.min.js"] {
            assert!(text("/rich.js").contains(&format!("'{library}'")), "rich.js lacks {library}");
        }
        let fonts = text("/katex-0.19.1/katex.min.css").split("url(").skip(1);
        let fonts: Vec<&str> = fonts.map(|part| part.split(')').next().unwrap()).collect();
        // Browsers that have none of the later forms cannot run the page.
        let fonts = fonts.iter().filter(|font| font.ends_with(".woff2"));
        asked.extend(fonts.map(|font| format!("/katex-0.19.1/{font}")));
        assert!(asked.len() > 40, "{asked:?}");
        for path in asked {
            assert!(is_there(&path), "{path}");
        }
    }

    #[test]
    fn only_what_has_its_version_in_its_path_is_kept() {
        for (path, _, cache, _) in FILES {
            let has_version = path.matches('/').count() > 1;
            assert_eq!(*cache == KEPT, has_version, "{path}");
            let response = file(path).unwrap();
            assert_eq!(response.headers()[header::CACHE_CONTROL], *cache);
        }
        assert!(file("/katex-0.19.1/LICENSE").is_err() && file("/katex-0.19.1/").is_err());
    }
}
