//! Explanations of a compiled model: on one screen, in full, as JSON, and as a page.
//! The page for a browser is one file that asks for nothing else.

mod code;
mod crowds;
mod everything;
mod explained;
mod facts;
mod json;
mod kinds;
mod layers;
mod subject;

pub use everything::times;
pub use explained::{ExplainOptions, Explained};
pub use kinds::{BatchShape, Limit, StepKind};
pub use subject::Subject;

/// Name and number of the JSON report. The number grows when a field changes its meaning or goes.
pub const SCHEMA: &str = "kernmill.explain/2";

/// The page's parts. Scripts are put together in this order.
const HEAD: &str = include_str!("page/head.html");
const BODY: &str = include_str!("page/body.html");
const STYLE: &str = include_str!("page/style.css");
const SCRIPT: &str = concat!(
    "\"use strict\";\n",
    include_str!("page/dom.js"),
    include_str!("page/facts.js"),
    include_str!("page/graph.js"),
    include_str!("page/arena.js"),
    include_str!("page/roofline.js"),
    include_str!("page/code.js"),
    include_str!("page/main.js"),
);

/// A page that shows `report`, the JSON text of an explained model with its code. The text is in it as it is,
/// but for `<`.
///
/// The policy allows the page's own script and style and nothing else. Their mark is a hash of the report, so
/// that no text of a model can bear it.
pub fn page(report: &str) -> String {
    let mark = blake3::hash(report.as_bytes()).to_hex();
    let policy = format!(
        "default-src 'none'; script-src 'nonce-{mark}'; style-src 'nonce-{mark}'; img-src data:; base-uri \
         'none'; form-action 'none'"
    );
    let data = escaped(report);
    format!(
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n<meta \
         http-equiv=\"Content-Security-Policy\" content=\"{policy}\">\n{HEAD}<style nonce=\"{mark}\">\n\
         {STYLE}</style>\n</head>\n{BODY}<script type=\"application/json\" id=\"report\">{data}</script>\n\
         <script nonce=\"{mark}\">\n{SCRIPT}</script>\n</body>\n</html>\n"
    )
}

/// JSON that a script element holds: without `<`, nothing in it ends or begins an element or a comment. It is
/// the same JSON, because `<` stands in strings only.
fn escaped(json: &str) -> String {
    json.replace('<', "\\u003c")
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    const HOSTILE: &str = "</script><script>alert(1)</script><!-- <![CDATA[ \u{2028} \\u003c & \"";

    /// The text of the element that holds the report.
    fn embedded(page: &str) -> &str {
        let start = page.split("<script type=\"application/json\" id=\"report\">").nth(1).unwrap();
        start.split("</script>").next().unwrap()
    }

    #[test]
    fn no_text_of_a_report_is_markup() {
        let report = json!({ "model": HOSTILE, HOSTILE: [HOSTILE] });
        let harmless = page(&json!({ "model": "a" }).to_string());
        for text in [report.to_string(), format!("{report:#}\n")] {
            let page = page(&text);
            assert_eq!(serde_json::from_str::<Value>(embedded(&page)).unwrap(), report);
            assert_eq!(embedded(&page).matches('<').count(), 0);
            // As many elements and comments as a page without such names has.
            assert_eq!(page.matches('<').count(), harmless.matches('<').count());
            assert!(!page.contains("<script>alert"));
        }
    }

    #[test]
    fn a_page_asks_for_nothing_and_its_parts_do_not_end_early() {
        let page = page("{}");
        for part in ["https:", "src=", "href=\"//", "@import"] {
            assert!(!page.contains(part), "{part}");
        }
        // SVG elements are made by the name of their namespace, which is no address that is asked.
        assert_eq!(page.matches("http:").count(), page.matches("http://www.w3.org/2000/svg\"").count());
        // Only parts of the page itself are referred to.
        assert_eq!(page.matches("url(").count(), page.matches("url(#").count());
        assert!(page.contains("content=\"default-src 'none'; script-src 'nonce-"));
        // The report's, and the page's own.
        assert_eq!(page.matches("<script").count(), 2);
        assert_eq!((page.matches("</script>").count(), page.matches("</style>").count()), (2, 1));
    }

    #[test]
    fn the_mark_of_the_script_follows_from_the_report() {
        let mark = |page: &str| {
            let start = page.split("script-src 'nonce-").nth(1).unwrap();
            start.split('\'').next().unwrap().to_owned()
        };
        let (a, b) = (page("{\"a\":1}"), page("{\"a\":2}"));
        assert_ne!(mark(&a), mark(&b));
        assert_eq!(a, page("{\"a\":1}"));
        assert_eq!(a.matches(&mark(&a)).count(), 4);
    }
}
