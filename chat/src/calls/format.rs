//! How models write calls of tools and thoughts, as data.

/// Marks around the calls of tools in a model's texts.
///
/// A body is an object with the function's name and arguments, several of them in a list or after each other,
/// or a name with the arguments behind it, as an object or one by one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CallFormat {
    /// Name of the format.
    pub name: &'static str,
    /// Texts that a template has which asks for calls in this format.
    pub signs: &'static [&'static str],
    /// Texts that say the same in a template without the signs of any format.
    pub faint: &'static [&'static str],
    /// Texts that begin calls.
    pub opens: &'static [&'static str],
    /// Text that ends calls; empty if they go on to the end.
    pub close: &'static str,
    /// Text before a name, which is no part of it.
    pub before_name: &'static str,
    /// Texts between a name and its arguments; none if bodies are objects.
    pub after_name: &'static [&'static str],
    /// Texts between calls that mean nothing.
    pub passed_over: &'static [&'static str],
    /// How arguments are written.
    pub arguments: ArgumentStyle,
    /// Whether a text that begins with a call may be one without a mark.
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

/// How the arguments of a call are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ArgumentStyle {
    /// As a JSON object.
    Object,
    /// One by one, between marks.
    Pairs(Pairs),
    /// As in a call of Python, `key=value` with commas between them, in a list of calls.
    Keywords,
}

/// Marks around arguments that are written one by one: text where a string is asked for, JSON otherwise.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pairs {
    /// Text before a key.
    pub before_key: &'static str,
    /// Texts between a key and its value, perhaps with space between them.
    pub after_key: &'static [&'static str],
    /// Text behind a value.
    pub after_value: &'static str,
    /// Text between these marks and the value, on either side; empty, or one new line.
    pub margin: &'static str,
    /// Space behind a value and between a key and its value, as a model was trained to write it.
    pub space: &'static str,
    /// Text behind all arguments; empty if the mark that ends calls stands there.
    pub end: &'static str,
}

/// The formats, in the order in which templates are searched for their signs.
pub const FORMATS: [CallFormat; 23] = [
    CallFormat {
        name: "mistral",
        signs: &["[TOOL_CALLS]", "[ARGS]"],
        opens: &["[TOOL_CALLS]"],
        after_name: &["[CALL_ID]", "[ARGS]"],
        spelling: Spelling { before: "[TOOL_CALLS]", middle: "[ARGS]", ..EMPTY },
        ..BASE
    },
    CallFormat {
        name: "mistral_list",
        signs: &["[TOOL_CALLS]"],
        opens: &["[TOOL_CALLS]"],
        after_name: &["[CALL_ID]", "[ARGS]"],
        spelling: Spelling { open: "[TOOL_CALLS][", between: ", ", close: "]", ..OBJECT },
        ..BASE
    },
    CallFormat {
        name: "qwen3_coder",
        signs: &["<tool_call>", "<function=", "<parameter="],
        opens: &["<tool_call>", "<function="],
        close: "</tool_call>",
        after_name: &[">"],
        arguments: ArgumentStyle::Pairs(Pairs {
            before_key: "<parameter=",
            after_key: &[">"],
            after_value: "</parameter>",
            margin: "\n",
            space: "\n",
            end: "</function>",
        }),
        spelling: Spelling {
            before: "<tool_call>\n<function=",
            middle: ">\n",
            after: "\n</tool_call>",
            between: "\n",
            ..EMPTY
        },
        ..BASE
    },
    CallFormat {
        name: "seed",
        signs: &["<seed:tool_call>", "<function="],
        opens: &["<seed:tool_call>", "<function="],
        close: "</seed:tool_call>",
        after_name: &[">"],
        arguments: ArgumentStyle::Pairs(Pairs {
            before_key: "<parameter=",
            after_key: &[">"],
            after_value: "</parameter>",
            margin: "",
            space: "\n",
            end: "</function>",
        }),
        spelling: Spelling {
            before: "<seed:tool_call>\n<function=",
            middle: ">\n",
            after: "\n</seed:tool_call>",
            between: "\n",
            ..EMPTY
        },
        ..BASE
    },
    CallFormat {
        name: "minimax",
        signs: &["<minimax:tool_call>", "<invoke name="],
        opens: &["<minimax:tool_call>", "<invoke name=\""],
        close: "</minimax:tool_call>",
        after_name: &["\">"],
        arguments: ArgumentStyle::Pairs(Pairs {
            before_key: "<parameter name=\"",
            after_key: &["\">"],
            after_value: "</parameter>",
            margin: "",
            space: "\n",
            end: "</invoke>",
        }),
        spelling: Spelling {
            open: "<minimax:tool_call>\n",
            before: "<invoke name=\"",
            middle: "\">\n",
            between: "\n",
            close: "\n</minimax:tool_call>",
            ..EMPTY
        },
        ..BASE
    },
    CallFormat {
        name: "glm_inline",
        signs: &["<tool_call>", "</arg_key><arg_value>"],
        arguments: ArgumentStyle::Pairs(Pairs { space: "", ..GLM_PAIRS }),
        spelling: Spelling { middle: "", between: "", ..GLM.spelling },
        ..GLM
    },
    GLM,
    CallFormat {
        name: "nemotron",
        signs: &["<TOOLCALL>"],
        opens: &["<TOOLCALL>"],
        close: "</TOOLCALL>",
        spelling: Spelling { open: "<TOOLCALL>[", between: ", ", close: "]</TOOLCALL>", ..OBJECT },
        ..BASE
    },
    CallFormat {
        name: "apriel",
        signs: &["<tool_calls>["],
        opens: &["<tool_calls>"],
        close: "</tool_calls>",
        spelling: Spelling { open: "<tool_calls>[", between: ", ", close: "]</tool_calls>", ..OBJECT },
        ..BASE
    },
    CallFormat {
        name: "kimi",
        signs: &["<|tool_calls_section_begin|>"],
        opens: &["<|tool_calls_section_begin|>", "<|tool_call_begin|>"],
        close: "<|tool_calls_section_end|>",
        before_name: "functions.",
        after_name: &[":", "<|tool_call_argument_begin|>"],
        passed_over: &["<|tool_call_end|>"],
        spelling: Spelling {
            open: "<|tool_calls_section_begin|>",
            before: "<|tool_call_begin|>functions.",
            // The model counts its calls, which means nothing here.
            middle: ":0<|tool_call_argument_begin|>",
            after: "<|tool_call_end|>",
            close: "<|tool_calls_section_end|>",
            ..EMPTY
        },
        ..BASE
    },
    CallFormat {
        name: "command",
        signs: &["<|START_ACTION|>"],
        opens: &["<|START_ACTION|>"],
        close: "<|END_ACTION|>",
        spelling: Spelling {
            open: "<|START_ACTION|>[\n    ",
            // The model counts its calls, which means nothing here.
            before: "{\"tool_call_id\": \"0\", \"tool_name\": \"",
            middle: "\", \"parameters\": ",
            after: "}",
            between: ",\n    ",
            close: "\n]<|END_ACTION|>",
        },
        ..BASE
    },
    CallFormat {
        name: "lfm2",
        signs: &["<|tool_list_start|>"],
        // Templates without a place for calls have marks around functions only, or none at all.
        faint: &["<|tool_call_start|>", "List of tools: ["],
        opens: &["<|tool_call_start|>"],
        close: "<|tool_call_end|>",
        arguments: ArgumentStyle::Keywords,
        spelling: Spelling { open: "<|tool_call_start|>[", close: "]<|tool_call_end|>", ..KEYWORDS },
        ..BASE
    },
    CallFormat {
        name: "python",
        signs: &["[func_name1("],
        opens: &["<|python_start|>", "<|python_tag|>"],
        close: "<|python_end|>",
        arguments: ArgumentStyle::Keywords,
        has_bare: true,
        spelling: Spelling { open: "[", close: "]", ..KEYWORDS },
        ..BASE
    },
    CallFormat {
        name: "olmo3",
        signs: &["<function_calls>"],
        opens: &["<function_calls>"],
        close: "</function_calls>",
        arguments: ArgumentStyle::Keywords,
        spelling: Spelling {
            open: "<function_calls>",
            between: "\n",
            close: "</function_calls>",
            ..KEYWORDS
        },
        ..BASE
    },
    PHI4,
    CallFormat {
        // The model's own template shows functions only.
        name: "phi4_list",
        signs: &["<|tool|>"],
        spelling: Spelling { open: "<|tool_call|>[", between: ", ", close: "]<|/tool_call|>", ..OBJECT },
        ..PHI4
    },
    CallFormat {
        name: "functools",
        signs: &["functools["],
        opens: &["functools["],
        spelling: Spelling { open: "functools[", between: ", ", close: "]", ..OBJECT },
        ..BASE
    },
    CallFormat {
        name: "granite",
        signs: &["<|tool_call|>"],
        opens: &["<|tool_call|>"],
        spelling: Spelling { open: "<|tool_call|>[", between: ", ", close: "]", ..OBJECT },
        ..BASE
    },
    CallFormat {
        name: "deepseek_v3",
        signs: &["<｜tool▁calls▁begin｜>", "```json"],
        before_name: "function<｜tool▁sep｜>",
        after_name: &["\n```json"],
        spelling: Spelling {
            before: "<｜tool▁call▁begin｜>function<｜tool▁sep｜>",
            middle: "\n```json\n",
            after: "\n```<｜tool▁call▁end｜>",
            between: "\n",
            ..DEEPSEEK.spelling
        },
        ..DEEPSEEK
    },
    DEEPSEEK,
    CallFormat::UNTOLD,
    CallFormat {
        name: "function",
        signs: &["<function="],
        opens: &["<function="],
        close: "</function>",
        after_name: &[">"],
        spelling: Spelling {
            before: "<function=",
            middle: ">",
            after: "</function>",
            between: "\n",
            ..EMPTY
        },
        ..BASE
    },
    CallFormat {
        name: "llama3",
        signs: &["<|python_tag|>"],
        opens: &["<|python_tag|>"],
        has_bare: true,
        spelling: Spelling { middle: "\", \"parameters\": ", between: "; ", ..OBJECT },
        ..BASE
    },
];

/// A format without marks.
const BASE: CallFormat = CallFormat {
    name: "",
    signs: &[],
    faint: &[],
    opens: &[],
    close: "",
    before_name: "",
    after_name: &[],
    passed_over: &[],
    arguments: ArgumentStyle::Object,
    has_bare: false,
    spelling: EMPTY,
};

const GLM_PAIRS: Pairs = Pairs {
    before_key: "<arg_key>",
    after_key: &["</arg_key>", "<arg_value>"],
    after_value: "</arg_value>",
    margin: "",
    space: "\n",
    end: "",
};

const GLM: CallFormat = CallFormat {
    name: "glm",
    signs: &["<tool_call>", "<arg_key>"],
    opens: &["<tool_call>"],
    close: "</tool_call>",
    after_name: &["\n"],
    arguments: ArgumentStyle::Pairs(GLM_PAIRS),
    spelling: Spelling { before: "<tool_call>", middle: "\n", after: "</tool_call>", between: "\n", ..EMPTY },
    ..BASE
};

const PHI4: CallFormat = CallFormat {
    name: "phi4",
    signs: &["<|tool_call|>", "<|/tool_call|>"],
    opens: &["<|tool_call|>"],
    close: "<|/tool_call|>",
    spelling: Spelling { before: "<|tool_call|>{\"name\": \"", after: "}<|/tool_call|>", ..OBJECT },
    ..BASE
};

const DEEPSEEK: CallFormat = CallFormat {
    name: "deepseek",
    signs: &["<｜tool▁calls▁begin｜>"],
    opens: &["<｜tool▁calls▁begin｜>", "<｜tool▁call▁begin｜>"],
    close: "<｜tool▁calls▁end｜>",
    after_name: &["<｜tool▁sep｜>"],
    passed_over: &["<｜tool▁call▁end｜>", "<｜tool▁sep｜>", "```"],
    spelling: Spelling {
        open: "<｜tool▁calls▁begin｜>",
        before: "<｜tool▁call▁begin｜>",
        middle: "<｜tool▁sep｜>",
        after: "<｜tool▁call▁end｜>",
        between: "",
        close: "<｜tool▁calls▁end｜>",
    },
    ..BASE
};

const EMPTY: Spelling = Spelling { open: "", before: "", middle: "", after: "", between: "", close: "" };

/// An object of a name and arguments, without marks.
const OBJECT: Spelling =
    Spelling { before: "{\"name\": \"", middle: "\", \"arguments\": ", after: "}", ..EMPTY };

/// Calls of Python, one after the other.
const KEYWORDS: Spelling = Spelling { middle: "(", after: ")", between: ", ", ..EMPTY };

impl CallFormat {
    /// The format that a model is told of whose template has no place for functions.
    pub const UNTOLD: CallFormat = CallFormat {
        name: "hermes",
        signs: &["<tool_call>"],
        opens: &["<tool_call>"],
        close: "</tool_call>",
        spelling: Spelling {
            before: "<tool_call>\n{\"name\": \"",
            after: "}\n</tool_call>",
            between: "\n",
            ..OBJECT
        },
        ..BASE
    };

    /// The format that a template uses, by its marks.
    pub fn of_template(source: &str) -> Option<&'static CallFormat> {
        let has_signs = |format: &&CallFormat| format.signs.iter().all(|sign| source.contains(sign));
        // Llama's templates ask for bare objects, and write the mark only before calls of builtin tools.
        let headers = ["<|start_header_id|>", "<|header_start|>"];
        let is_llama =
            headers.iter().any(|header| source.contains(header)) && source.contains("\"parameters\":");
        let is_faint = |format: &&CallFormat| format.faint.iter().any(|sign| source.contains(sign));
        let is_bare = |format: &&CallFormat| format.name == "llama3" && is_llama;
        let found = FORMATS.iter().find(has_signs).or_else(|| FORMATS.iter().find(is_faint));
        found.or_else(|| FORMATS.iter().find(is_bare))
    }

    /// Marks around arguments that are written one by one.
    pub fn pairs(&self) -> Option<Pairs> {
        if let ArgumentStyle::Pairs(pairs) = self.arguments { Some(pairs) } else { None }
    }

    /// All marks, which may be tokens of a vocabulary.
    pub(crate) fn marks(&self) -> impl Iterator<Item = &'static str> {
        let pairs = self.pairs().into_iter().flat_map(|pairs| {
            pairs.after_key.iter().copied().chain([pairs.before_key, pairs.after_value, pairs.end])
        });
        let lists = self.opens.iter().chain(self.after_name).chain(self.passed_over).copied();
        lists.chain([self.close]).chain(pairs).filter(|mark| !mark.is_empty())
    }

    /// Whether a name stands apart from its arguments.
    pub(super) fn has_names(&self) -> bool {
        !self.after_name.is_empty() || self.pairs().is_some()
    }
}

/// Bytes of the longest name of a function.
pub(super) const NAME_BYTES: usize = 256;

/// Keys of a function's name in an object.
pub(super) const NAMES: [&str; 3] = ["name", "function", "tool_name"];

/// Keys of a function's arguments in an object.
pub(super) const ARGUMENTS: [&str; 2] = ["arguments", "parameters"];

/// Keys that a call without a mark begins with.
pub(crate) const BARE_KEYS: [&str; 3] = ["name", "function", "type"];

/// Marks around thoughts in a model's texts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ThoughtMarks {
    /// Text before thoughts.
    pub open: &'static str,
    /// Text behind thoughts.
    pub close: &'static str,
}

/// Marks of thoughts, the usual ones last, which a template may look for besides its own.
pub const THOUGHTS: [ThoughtMarks; 5] = [
    ThoughtMarks { open: "<seed:think>", close: "</seed:think>" },
    ThoughtMarks { open: "<mm:think>", close: "</mm:think>" },
    ThoughtMarks { open: "<|START_THINKING|>", close: "<|END_THINKING|>" },
    ThoughtMarks { open: "[THINK]", close: "[/THINK]" },
    THINK,
];

const THINK: ThoughtMarks = ThoughtMarks { open: "<think>", close: "</think>" };

impl Default for ThoughtMarks {
    fn default() -> ThoughtMarks {
        THINK
    }
}

impl ThoughtMarks {
    /// The marks that a template has, if it knows of thoughts.
    pub fn of_template(source: &str) -> Option<ThoughtMarks> {
        THOUGHTS.into_iter().find(|marks| source.contains(marks.close))
    }
}
