//! Thoughts and calls of tools in the texts of models that write marks around them.

mod format;
mod head;
mod object;
mod pairs;
mod parse;
mod python;

pub(crate) use format::BARE_KEYS;
pub use format::{ArgumentStyle, CallFormat, FORMATS, Pairs, Spelling, THOUGHTS, ThoughtMarks};
pub(crate) use pairs::{ValueStyle, resolved, writing};
pub use parse::TextParser;
pub(crate) use python::is_keyword;

#[cfg(test)]
mod tests {
    use super::{CallFormat, FORMATS, TextParser, ThoughtMarks};
    use crate::conversation::Tool;
    use crate::event::{AnswerPart, Event};
    use kernmill_text::{AddedToken, Vocabulary, VocabularyError};
    use serde_json::json;

    /// Pieces of a text, each an id.
    struct Pieces(Vec<Vec<u8>>);

    impl Vocabulary for Pieces {
        fn encode_ordinary(&self, _: &str) -> Result<Vec<u32>, VocabularyError> {
            Ok(Vec::new())
        }

        fn encode_marked(&self, _: &str) -> Result<Vec<u32>, VocabularyError> {
            Ok(Vec::new())
        }

        fn added_tokens(&self) -> Vec<AddedToken> {
            let token = |(text, id): (&str, u32)| AddedToken { text: text.to_owned(), id, is_special: true };
            [("[TOOL_CALLS]", 1000), ("<|eot_id|>", 1001)].map(token).to_vec()
        }

        fn bytes(&self, id: u32) -> Option<Vec<u8>> {
            if id == 1001 { Some(b"<|eot_id|>".to_vec()) } else { self.0.get(id as usize).cloned() }
        }
    }

    fn format(name: &str) -> &'static CallFormat {
        FORMATS.iter().find(|format| format.name == name).unwrap()
    }

    /// The meaning of a text that comes in pieces.
    fn read(name: &str, pieces: Vec<Vec<u8>>) -> String {
        let vocabulary = Pieces(pieces);
        let declared = ["f", "g"].map(|name| {
            let parameters = json!({ "properties": { "a": { "type": "string" }, "b": { "type": "integer" },
                    "l": { "type": ["array", "null"] }, "n": { "type": ["string", "null"] } } });
            let (name, description) = (name.to_owned(), String::new());
            Tool { name, description, parameters: Some(parameters), strict: false }
        });
        let mut parser = TextParser::new(
            &vocabulary,
            Some(format(name)),
            declared.to_vec(),
            ThoughtMarks::default(),
            false,
        );
        let mut events = Vec::new();
        for id in 0..vocabulary.0.len() {
            parser.push(&vocabulary, id as u32, &mut events);
        }
        parser.push(&vocabulary, 1001, &mut events);
        parser.finish(&mut events);
        let mut shown = String::new();
        for event in events {
            shown += &match event {
                Event::Begin(AnswerPart::Call { name, .. }) => format!("call {name}: "),
                Event::Begin(part) => format!("{part:?}: "),
                Event::Delta(text) => text,
                Event::End { is_complete } => if is_complete { "." } else { " (cut off)." }.to_owned(),
            };
        }
        shown
    }

    const CASES: [(&str, &str, &str); 101] = [
        ("hermes", "Hello", "Answer: Hello."),
        ("hermes", "<think>\nHm.</think>\n\nHello", "Reasoning: Hm..Answer: Hello."),
        (
            "hermes",
            "<tool_call>\n{\"name\": \"f\", \"arguments\": {\"a\": 1}}\n</tool_call>",
            "call f: {\"a\": 1}.",
        ),
        (
            "hermes",
            "Look: <tool_call>{\"arguments\": {\"}\": \"\\\"}{\"} , \"name\": \"f\"}</tool_call>\n\
             <tool_call>{\"name\": \"g\"}</tool_call>",
            "Answer: Look: .call f: {\"}\": \"\\\"}{\"}.call g: {}.",
        ),
        (
            "hermes",
            "<tool_call>{\"name\": \"f\", \"arguments\": \"{\\\"a\\\": 1}\"}</tool_call>",
            "call f: {\"a\": 1}.",
        ),
        ("hermes", "<tool_call>{\"name\": \"x\", \"arguments\": {}}</tool_call>", "call x: {}."),
        ("hermes", "<tool_call>{\"name\": \"f\", \"arguments\": {\"a\"", "call f: {\"a\" (cut off)."),
        ("hermes", "<tool_call>{\"title\": 1}</tool_call>", "Answer: <tool_call>{\"title\": 1}</tool_call>."),
        ("hermes", "<tool_call>hm", "Answer: <tool_call>hm."),
        ("hermes", "<tool_call>", "Answer: <tool_call>."),
        ("hermes", "a <b> <tool", "Answer: a <b> <tool."),
        ("hermes", "{\"name\": \"f\"}", "Answer: {\"name\": \"f\"}."),
        (
            "mistral",
            "[TOOL_CALLS][{\"name\": \"f\", \"arguments\": {}}, {\"name\": \"g\", \"arguments\": {\"a\": [1]}}]",
            "call f: {}.call g: {\"a\": [1]}.",
        ),
        ("mistral", "[TOOL_CALLS]f[ARGS]{\"a\": 1}[TOOL_CALLS]g{}", "call f: {\"a\": 1}.call g: {}."),
        ("mistral", "Well [TOOL_CALLS] f [ARGS] {\"a\": 1}", "Answer: Well .call f: {\"a\": 1}."),
        ("mistral", "[TOOL_CALLS]what is\nthis", "Answer: [TOOL_CALLS]what is\nthis."),
        (
            "llama3",
            "{\"name\": \"f\", \"parameters\": {\"a\": 1}}; {\"name\": \"g\", \"parameters\": {}}",
            "call f: {\"a\": 1}.call g: {}.",
        ),
        ("llama3", "<|python_tag|>{\"name\": \"f\", \"parameters\": {}}", "call f: {}."),
        (
            "llama3",
            " {\"name\": \"x\", \"parameters\": {}} no",
            "Answer: {\"name\": \"x\", \"parameters\": {}} no.",
        ),
        ("llama3", "see {\"name\": \"f\"}", "Answer: see {\"name\": \"f\"}."),
        ("llama3", "{\"a\": ", "Answer: {\"a\": ."),
        ("function", "<function=f>{\"a\": 1}</function>", "call f: {\"a\": 1}."),
        (
            "function",
            "<function=f>{}</function> <function=g>{}</function>done",
            "call f: {}.call g: {}.Answer: done.",
        ),
        ("function", "<function=", "Answer: <function=."),
        (
            "qwen3_coder",
            "I look.\n<tool_call>\n<function=f>\n<parameter=a>\n1 <b>\n\n</parameter>\n<parameter=b>\n2\n</parameter>\n\
             </function>\n</tool_call>\n<tool_call>\n<function=g>\n</function>\n</tool_call>",
            "Answer: I look.\n.call f: {\"a\": \"1 <b>\\n\", \"b\": 2}.call g: {}.",
        ),
        // The mark before the function may be missing.
        ("qwen3_coder", "<function=f><parameter=a>True</parameter></function>", "call f: {\"a\": \"True\"}."),
        ("qwen3_coder", "<function=f><parameter=c>True</parameter></function>", "call f: {\"c\": true}."),
        (
            "qwen3_coder",
            "<function=f><parameter=c>[1, \"x\"]</parameter></function>",
            "call f: {\"c\": [1, \"x\"]}.",
        ),
        ("qwen3_coder", "<function=f><parameter=b>no</parameter></function>", "call f: {\"b\": \"no\"}."),
        ("qwen3_coder", "<tool_call>\n{\"name\": \"f\"}\n</tool_call>", "call f: {}."),
        ("qwen3_coder", "<function=f>\n<parameter=a>\nx", "call f: {\"a\": \"x (cut off)."),
        ("qwen3_coder", "<function=f>\n<parameter=a", "call f:  (cut off)."),
        ("qwen3_coder", "<tool_call>\n<function=f hm", "Answer: <tool_call>\n<function=f hm."),
        (
            "glm",
            "<tool_call>f\n<arg_key>a</arg_key>\n<arg_value>1\n</arg_value>\n<arg_key>b</arg_key>\
             <arg_value>2</arg_value>\n</tool_call>\n<tool_call>g</tool_call>",
            "call f: {\"a\": \"1\\n\", \"b\": 2}.call g: {}.",
        ),
        // Lists and objects as Python prints them, where the schema asks for such.
        (
            "seed",
            "<function=f><parameter=l>['it\"s', None, {'a': True}]</parameter>\n<parameter=a>['x']</parameter>\n\
             </function>",
            "call f: {\"l\": [\"it\\\"s\", null, {\"a\": true}], \"a\": \"['x']\"}.",
        ),
        (
            "seed",
            "<function=f><parameter=l>['</parameter>', \"it's </parameter>\"]</parameter></function>",
            "call f: {\"l\": [\"</parameter>\", \"it's </parameter>\"]}.",
        ),
        ("seed", "<function=f><parameter=l>[it's]</parameter></function>", "call f: {\"l\": \"[it's]\"}."),
        ("seed", "<function=f><parameter=l>[1</parameter></function>", "call f: {\"l\": \"[1\"}."),
        ("seed", "<function=f><parameter=l>[1, {'a", "call f: {\"l\": \"[1, {'a (cut off)."),
        ("seed", "<function=f><parameter=n>None</parameter></function>", "call f: {\"n\": null}."),
        ("seed", "<function=f><parameter=n>No</parameter></function>", "call f: {\"n\": \"No\"}."),
        ("seed", "<function=f><parameter=n> x", "call f: {\"n\": \" x (cut off)."),
        ("qwen3_coder", "<function=f>\n<parameter=a>\n\n</parameter>\n</function>", "call f: {\"a\": \"\"}."),
        ("qwen3_coder", "<function=f>\n<parameter=a>\nx\n</par", "call f: {\"a\": \"x\\n</par (cut off)."),
        ("glm", "<tool_call>hello\nworld", "Answer: <tool_call>hello\nworld."),
        (
            "phi4",
            "<|tool_call|>[{\"name\": \"f\", \"arguments\": {\"a\": \"x\"}}]<|/tool_call|>",
            "call f: {\"a\": \"x\"}.",
        ),
        (
            "seed",
            "<seed:tool_call>\n<function=f>\n<parameter=a>x\n</parameter>\n</function>\n</seed:tool_call>",
            "call f: {\"a\": \"x\\n\"}.",
        ),
        (
            "minimax",
            "<minimax:tool_call>\n<invoke name=\"f\">\n<parameter name=\"b\">1</parameter>\n</invoke>\n\
             <invoke name=\"g\">\n</invoke>\n</minimax:tool_call>",
            "call f: {\"b\": 1}.call g: {}.",
        ),
        (
            "glm_inline",
            "<tool_call>f<arg_key>a</arg_key><arg_value>x</arg_value></tool_call><tool_call>g</tool_call>",
            "call f: {\"a\": \"x\"}.call g: {}.",
        ),
        (
            "phi4_list",
            "Hm. <|tool_call|>[{\"name\": \"f\", \"arguments\": {}}, {\"name\": \"g\", \"arguments\": \
             {\"a\": 1}}]<|/tool_call|>",
            "Answer: Hm. .call f: {}.call g: {\"a\": 1}.",
        ),
        (
            "functools",
            " functools[{\"name\": \"f\", \"arguments\": {\"a\": \"]\"}}, {\"name\": \"g\", \"arguments\": {}}]\nDone",
            "call f: {\"a\": \"]\"}.call g: {}.Answer: Done.",
        ),
        ("functools", "Python's functools", "Answer: Python's functools."),
        ("functools", "functools[0]", "Answer: functools[0]."),
        (
            "olmo3",
            "I look. <function_calls>\nf(a=\"x\", b=[1, true])\ng(a=null)\n</function_calls> So.",
            "Answer: I look. .call f: {\"a\": \"x\", \"b\": [1, true]}.call g: {\"a\": null}.Answer: So..",
        ),
        ("olmo3", "<function_calls></function_calls>", "Answer: <function_calls></function_calls>."),
        ("olmo3", "<function_calls>x()", "call x: {}."),
        ("nemotron", "<TOOLCALL>[{\"name\": \"f\", \"arguments\": {}}]</TOOLCALL>", "call f: {}."),
        (
            "apriel",
            "<tool_calls>[{\"name\": \"f\", \"arguments\": {}, \"id\": \"1\"}]</tool_calls>",
            "call f: {}.",
        ),
        (
            "kimi",
            "Hm<|tool_calls_section_begin|><|tool_call_begin|>functions.f:0<|tool_call_argument_begin|>{}\
             <|tool_call_end|><|tool_call_begin|>functions.g:1<|tool_call_argument_begin|>{\"a\": 1}\
             <|tool_call_end|><|tool_calls_section_end|>",
            "Answer: Hm.call f: {}.call g: {\"a\": 1}.",
        ),
        ("granite", "<|tool_call|>[{\"name\": \"f\", \"arguments\": {}}]", "call f: {}."),
        (
            "deepseek_v3",
            "<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>function<｜tool▁sep｜>f\n```json\n{\"a\": \"x\"}\n\
             ```<｜tool▁call▁end｜>\n<｜tool▁call▁begin｜>function<｜tool▁sep｜>g\n```json\n{}\n\
             ```<｜tool▁call▁end｜><｜tool▁calls▁end｜>",
            "call f: {\"a\": \"x\"}.call g: {}.",
        ),
        (
            "deepseek",
            "Hm<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>f<｜tool▁sep｜>{\"a\": \"x\"}<｜tool▁call▁end｜><｜tool▁calls▁end｜>",
            "Answer: Hm.call f: {\"a\": \"x\"}.",
        ),
        ("mistral", "[TOOL_CALLS][TOOL_CALLS] [what", "Answer: [TOOL_CALLS][TOOL_CALLS] [what."),
        (
            "command",
            "<|START_ACTION|>[\n    {\"tool_call_id\": \"0\", \"tool_name\": \"f\", \"parameters\": {\"a\": \
             \"x\"}},\n    {\"tool_call_id\": \"1\", \"tool_name\": \"g\", \"parameters\": {}}\n\
             ]<|END_ACTION|>",
            "call f: {\"a\": \"x\"}.call g: {}.",
        ),
        (
            "lfm2",
            "<|tool_call_start|>[f(a=\"x, y\", b=2), g()]<|tool_call_end|>Done",
            "call f: {\"a\": \"x, y\", \"b\": 2}.call g: {}.Answer: Done.",
        ),
        (
            "lfm2",
            "Hm <|tool_call_start|>f(a='it's')<|tool_call_end|>",
            "Answer: Hm .call f: {\"a\": \"it's\"}.",
        ),
        (
            "lfm2",
            "<|tool_call_start|>[f(a=True, b=None, c={'k': [1, 'x', (2,)], \"j\": False}, d = \
             -1.5e3)]<|tool_call_end|>",
            "call f: {\"a\": true, \"b\": null, \"c\": {\"k\": [1, \"x\", [2]], \"j\": false}, \"d\": -1.5e3}.",
        ),
        (
            "lfm2",
            r#"<|tool_call_start|>[f(a='\'\n\u00e9\x41\q', b="\ud83d\ude00\/", c="")]<|tool_call_end|>"#,
            "call f: {\"a\": \"'\\né\x41\\\\q\", \"b\": \"\u{1f600}/\", \"c\": \"\"}.",
        ),
        ("lfm2", "<|tool_call_start|>[f(a=Oslo)]", "call f: {\"a\": \"Oslo\"}."),
        ("lfm2", "<|tool_call_start|>[f(a=1", "call f:  (cut off)."),
        ("lfm2", "<|tool_call_start|>[f(a=1, b=\"", "call f: {\"a\": 1 (cut off)."),
        ("lfm2", "<|tool_call_start|>[f(a='x\\", "call f: {\"a\": \"x (cut off)."),
        (
            "lfm2",
            "<|tool_call_start|>[f(a=\"\"\"one \"two\"\n\"\"\", b=\'\'\'\'\'\', c={1: 2, None: (), x: 'y'})]",
            "call f: {\"a\": \"one \\\"two\\\"\\n\", \"b\": \"\", \"c\": {\"1\": 2, \"null\": [], \"x\": \"y\"}}.",
        ),
        (
            "lfm2",
            "<|tool_call_start|>[f(a=[+1_000, .5, -2., 1.e3, 1-2, ., _1])]",
            "call f: {\"a\": [1000, 0.5, -2.0, 1.0e3, \"1-2\", \".\", \"_1\"]}.",
        ),
        // No literals of Python, or none that JSON has.
        ("lfm2", "<|tool_call_start|>[f(a={'x'}, b=1)]", "call f: {}.Answer: a={'x'}, b=1)]."),
        ("lfm2", "<|tool_call_start|>[f(a='x'], b=1)]", "call f: {\"a\": \"x\"}.Answer: b=1)]."),
        ("lfm2", "<|tool_call_start|>[x(1)]<|tool_call_end|>", "call x: {}.Answer: 1)]<|tool_call_end|>."),
        ("lfm2", "<|tool_call_start|>[what is", "Answer: <|tool_call_start|>[what is."),
        ("lfm2", "<|tool_call_start|>[]<|tool_call_end|>", "Answer: <|tool_call_start|>[]<|tool_call_end|>."),
        ("lfm2", "<|tool_call_start|>{\"name\": \"f\"}<|tool_call_end|>", "call f: {}."),
        ("lfm2", "[f(a=1)]", "Answer: [f(a=1)]."),
        ("python", "[f(a=1)]", "call f: {\"a\": 1}."),
        ("python", " [f(a = 1), g( )]\nok", "call f: {\"a\": 1}.call g: {}.Answer: ok."),
        ("python", "<|python_start|>[f(a=[1, 2])]<|python_end|>", "call f: {\"a\": [1, 2]}."),
        ("python", "[x(a=1)]", "Answer: [x(a=1)]."),
        ("python", "[f(x) = 1]", "Answer: [f(x) = 1]."),
        ("python", "[f(a==1)]", "Answer: [f(a==1)]."),
        ("python", "[1, 2]", "Answer: [1, 2]."),
        ("python", "[f", "Answer: [f."),
        ("python", "see [f(a=1)]", "Answer: see [f(a=1)]."),
        // No arguments are an object of none.
        ("function", "<function=f></function>", "call f: {}."),
        ("function", "<function=x></function>", "Answer: <function=x></function>."),
        ("mistral", "[TOOL_CALLS]f", "call f: {}."),
        ("mistral", "[TOOL_CALLS]f[CALL_ID]a1B2c3D4e[ARGS]{\"a\": 1}", "call f: {\"a\": 1}."),
        ("hermes", "<tool_call>{\"name\": \"f\", \"arguments\": null}</tool_call>", "call f: {}."),
        ("hermes", "<tool_call>{\"name\": \"f\", \"arguments\": \"\"}</tool_call>", "call f: {}."),
        ("hermes", "<tool_call>{\"arguments\": \"null\", \"name\": \"f\"}</tool_call>", "call f: {}."),
        (
            "hermes",
            "<tool_call>{\"name\": \"f\", \"arguments\": {}, \"parameters\": {}}</tool_call>",
            "call f: {}.",
        ),
        // Only a text that begins with them has thoughts, and only an object that begins with a name is a
        // call.
        ("hermes", "The mark <think> begins thoughts", "Answer: The mark <think> begins thoughts."),
        ("llama3", "{\"a\": {}, \"name\": \"f\"}", "Answer: {\"a\": {}, \"name\": \"f\"}."),
        ("llama3", "{\"type\": \"function\", \"name\": \"f\"}", "call f: {}."),
    ];

    #[test]
    fn texts_are_read_in_any_pieces() {
        let mut rng = fastrand::Rng::with_seed(3);
        for (name, text, expected) in CASES {
            assert_eq!(read(name, vec![text.into()]), expected, "{name}: {text}");
            assert_eq!(read(name, text.bytes().map(|byte| vec![byte]).collect()), expected, "{name}: {text}");
            for _ in 0..50 {
                assert_eq!(read(name, cut(text.as_bytes(), &mut rng)), expected, "{name}: {text}");
            }
        }
    }

    fn cut(bytes: &[u8], rng: &mut fastrand::Rng) -> Vec<Vec<u8>> {
        let (mut pieces, mut rest) = (Vec::new(), bytes);
        while !rest.is_empty() {
            let (piece, others) = rest.split_at(rng.usize(1..=rest.len().min(9)));
            pieces.push(piece.to_vec());
            rest = others;
        }
        pieces
    }

    #[test]
    fn any_text_is_read_alike_in_any_pieces() {
        let mut rng = fastrand::Rng::with_seed(4);
        let words = "<tool_call> </tool_call> [TOOL_CALLS] [ARGS] <function= </function> > <|python_tag|> \
            <think> </think> <function=f> <parameter= <parameter=a> </parameter> <tool_call>f <arg_key> \
            <arg_key>a</arg_key> <arg_value> </arg_value> <|tool_call|> <|/tool_call|> <｜tool▁calls▁begin｜> \
            function<｜tool▁sep｜> <｜tool▁call▁end｜> ```json <|START_ACTION|> <|END_ACTION|> \
            <|tool_call_start|> <|tool_call_end|> <|python_start|> [f( g( f(a=1) ) a= b= 'x' True { } [ ] \" \
            ''' \"\"\" \\u \\ud83d \\x4 ' <parameter=l> <parameter=n> <function_calls> </function_calls> \
            functools[ None [1 ( : , ; \\ {\"name\":\"f\",\"arguments\":{} } \"name\" \"arguments\" f é \u{1f600} hm";
        let words: Vec<&str> = words.split_whitespace().chain([" ", "\n"]).collect();
        for _ in 0..20_000 {
            let text: String = (0..rng.usize(0..12)).map(|_| words[rng.usize(0..words.len())]).collect();
            let name = FORMATS[rng.usize(0..FORMATS.len())].name;
            let whole = read(name, vec![text.clone().into()]);
            assert_eq!(read(name, cut(text.as_bytes(), &mut rng)), whole, "{name}: {text}");
        }
    }

    #[test]
    fn formats_are_known_by_their_templates() {
        let named = |source| CallFormat::of_template(source).map(|format| format.name);
        assert_eq!(named("... '[TOOL_CALLS]' ..."), Some("mistral_list"));
        assert_eq!(named("... '[TOOL_CALLS]' + name + '[ARGS]' ..."), Some("mistral"));
        assert_eq!(named("... <tool_call> ..."), Some("hermes"));
        assert_eq!(named("<tool_call>\n<function=...>\n<parameter=...>"), Some("qwen3_coder"));
        assert_eq!(named("<tool_call>{name}\n<arg_key>"), Some("glm"));
        assert_eq!(named("<|tool_call|> <|/tool_call|>"), Some("phi4"));
        assert_eq!(named("<|tool_call|>"), Some("granite"));
        assert_eq!(named("<tool_call>{name}<arg_key>{key}</arg_key><arg_value>"), Some("glm_inline"));
        assert_eq!(named("<seed:tool_call>\n<function=...>\n<parameter=...>"), Some("seed"));
        assert_eq!(named("<|start_header_id|> {\"name\": f, \"parameters\": {}}"), Some("llama3"));
        assert_eq!(named("<|START_ACTION|> ... <|END_ACTION|>"), Some("command"));
        assert_eq!(named("List of tools: <|tool_list_start|>["), Some("lfm2"));
        assert_eq!(named("<|tool_call_start|>[ ... ]<|tool_call_end|>"), Some("lfm2"));
        assert_eq!(named("List of tools: ["), Some("lfm2"));
        assert_eq!(named("[func_name1(params_name1=params_value1)] <|python_start|>"), Some("python"));
        assert_eq!(named("<|header_start|> [func_name1(param1=value1)]"), Some("python"));
        assert_eq!(named("'<|tool|>' + message['tools'] + '<|/tool|>'"), Some("phi4_list"));
        assert_eq!(named("functools[{...}] <|start_header_id|>"), Some("functools"));
        assert_eq!(named("<function_calls></function_calls>"), Some("olmo3"));
        assert_eq!(
            named("<|header_start|> {\"name\": f, \"parameters\": {}} <|python_start|>"),
            Some("llama3")
        );
        assert_eq!(named("{{ messages }}"), None);
    }
}
