//! How models write calls of tools and thoughts, as data.

/// Marks around the calls of tools in a model's texts.
///
/// A body is an object with the function's name and arguments, several of them in a list or after each other,
/// or a name with the arguments behind it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CallFormat {
    /// Name of the format.
    pub name: &'static str,
    /// Texts that begin calls.
    pub opens: &'static [&'static str],
    /// Text that ends calls; empty if they go on to the end.
    pub close: &'static str,
    /// Texts between a name and its arguments; none if bodies are objects.
    pub after_name: &'static [&'static str],
    /// Whether a text that begins with an object may be a call without a mark.
    pub has_bare: bool,
}

/// The formats, in the order in which templates are searched for their marks.
pub const FORMATS: [CallFormat; 4] = [
    CallFormat {
        name: "mistral",
        opens: &["[TOOL_CALLS]"],
        close: "",
        after_name: &["[ARGS]"],
        has_bare: false,
    },
    CallFormat {
        name: "hermes",
        opens: &["<tool_call>"],
        close: "</tool_call>",
        after_name: &[],
        has_bare: false,
    },
    CallFormat {
        name: "function",
        opens: &["<function="],
        close: "</function>",
        after_name: &[">"],
        has_bare: false,
    },
    CallFormat { name: "llama3", opens: &["<|python_tag|>"], close: "", after_name: &[], has_bare: true },
];

impl CallFormat {
    /// The format that a template uses, by its marks.
    pub fn of_template(source: &str) -> Option<&'static CallFormat> {
        let has_mark = |format: &&CallFormat| format.opens.iter().any(|mark| source.contains(mark));
        // Llama's templates ask for bare objects, and write the mark only before calls of builtin tools.
        let is_llama = source.contains("<|start_header_id|>") && source.contains("\"parameters\":");
        FORMATS.iter().find(has_mark).or_else(|| FORMATS.iter().find(|format| format.has_bare && is_llama))
    }
}

/// Keys of a function's name in an object.
pub(super) const NAMES: [&str; 2] = ["name", "function"];

/// Keys of a function's arguments in an object.
pub(super) const ARGUMENTS: [&str; 2] = ["arguments", "parameters"];

/// Marks around reasoning.
pub(super) const THOUGHTS: [&str; 2] = ["<think>", "</think>"];
