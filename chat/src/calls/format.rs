//! How models write calls of tools and thoughts, as data.

/// Marks around the calls of tools in a model's texts.
///
/// A body is an object with the function's name and arguments, several of them in a list or after each other,
/// or a name with the arguments behind it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CallFormat {
    /// Name of the format.
    pub name: &'static str,
    /// Texts that a template has which asks for calls in this format.
    pub signs: &'static [&'static str],
    /// Texts that begin calls.
    pub opens: &'static [&'static str],
    /// Text that ends calls; empty if they go on to the end.
    pub close: &'static str,
    /// Texts between a name and its arguments; none if bodies are objects.
    pub after_name: &'static [&'static str],
    /// Whether a text that begins with an object may be a call without a mark.
    pub has_bare: bool,
    /// How calls are written, where a text is held to them.
    pub spelling: Spelling,
}

/// The texts of calls, as a model was trained to write them. A reader takes others, too.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Spelling {
    /// Text before all calls of a turn.
    pub open: &'static str,
    /// Text before a name.
    pub before: &'static str,
    /// Text between a name and its arguments.
    pub middle: &'static str,
    /// Text behind arguments.
    pub after: &'static str,
    /// Text between two calls.
    pub between: &'static str,
    /// Text behind all calls of a turn.
    pub close: &'static str,
}

/// The formats, in the order in which templates are searched for their signs.
pub const FORMATS: [CallFormat; 5] = [
    CallFormat {
        name: "mistral",
        signs: &["[TOOL_CALLS]", "[ARGS]"],
        opens: &["[TOOL_CALLS]"],
        close: "",
        after_name: &["[CALL_ID]", "[ARGS]"],
        has_bare: false,
        spelling: Spelling {
            open: "",
            before: "[TOOL_CALLS]",
            middle: "[ARGS]",
            after: "",
            between: "",
            close: "",
        },
    },
    CallFormat {
        name: "mistral_list",
        signs: &["[TOOL_CALLS]"],
        opens: &["[TOOL_CALLS]"],
        close: "",
        after_name: &["[CALL_ID]", "[ARGS]"],
        has_bare: false,
        spelling: Spelling { open: "[TOOL_CALLS][", between: ", ", close: "]", ..OBJECT },
    },
    CallFormat::UNTOLD,
    CallFormat {
        name: "function",
        signs: &["<function="],
        opens: &["<function="],
        close: "</function>",
        after_name: &[">"],
        has_bare: false,
        spelling: Spelling {
            open: "",
            before: "<function=",
            middle: ">",
            after: "</function>",
            between: "\n",
            close: "",
        },
    },
    CallFormat {
        name: "llama3",
        signs: &["<|python_tag|>"],
        opens: &["<|python_tag|>"],
        close: "",
        after_name: &[],
        has_bare: true,
        spelling: Spelling { middle: "\", \"parameters\": ", between: "; ", ..OBJECT },
    },
];

/// An object of a name and arguments, without marks.
const OBJECT: Spelling = Spelling {
    open: "",
    before: "{\"name\": \"",
    middle: "\", \"arguments\": ",
    after: "}",
    between: "",
    close: "",
};

impl CallFormat {
    /// The format that a model is told of whose template has no place for functions.
    pub const UNTOLD: CallFormat = CallFormat {
        name: "hermes",
        signs: &["<tool_call>"],
        opens: &["<tool_call>"],
        close: "</tool_call>",
        after_name: &[],
        has_bare: false,
        spelling: Spelling {
            before: "<tool_call>\n{\"name\": \"",
            after: "}\n</tool_call>",
            between: "\n",
            ..OBJECT
        },
    };

    /// The format that a template uses, by its marks.
    pub fn of_template(source: &str) -> Option<&'static CallFormat> {
        let has_signs = |format: &&CallFormat| format.signs.iter().all(|sign| source.contains(sign));
        // Llama's templates ask for bare objects, and write the mark only before calls of builtin tools.
        let is_llama = source.contains("<|start_header_id|>") && source.contains("\"parameters\":");
        FORMATS.iter().find(has_signs).or_else(|| FORMATS.iter().find(|format| format.has_bare && is_llama))
    }

    /// All marks, which may be tokens of a vocabulary.
    pub(crate) fn marks(&self) -> impl Iterator<Item = &'static str> {
        let others = [self.close].into_iter().filter(|mark| !mark.is_empty());
        self.opens.iter().chain(self.after_name).copied().chain(others)
    }
}

/// Keys of a function's name in an object.
pub(super) const NAMES: [&str; 2] = ["name", "function"];

/// Keys of a function's arguments in an object.
pub(super) const ARGUMENTS: [&str; 2] = ["arguments", "parameters"];

/// Keys that a call without a mark begins with.
pub(crate) const BARE_KEYS: [&str; 3] = ["name", "function", "type"];

/// Marks around reasoning.
pub(crate) const THOUGHTS: [&str; 2] = ["<think>", "</think>"];
