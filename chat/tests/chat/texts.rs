//! Turns of models with templates, read by the parser of their texts.

use super::follow::{CLOSERS, LEXICON, VOCABULARY, generate_with, texts};
use super::random::{describes, schema};
use fastrand::Rng;
use kernmill_chat::calls::{
    ArgumentStyle, CallFormat, FORMATS, Spelling, THOUGHTS, TextParser, ThoughtMarks,
};
use kernmill_chat::{
    AddedToken, AnswerPart, Event, Thoughts, Tool, ToolChoice, TurnGrammar, Vocabulary, VocabularyError,
};
use kernmill_constrain::{Constraint, Lexicon, Rule};
use serde_json::{Value, json};
use std::sync::Arc;

/// How a vocabulary has the marks of a format.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Marks {
    /// As tokens that are no text.
    Special,
    /// As tokens that are text.
    Added,
    /// As bytes.
    Spelled,
}

/// A vocabulary of bytes, an end token, and marks.
struct Bytes {
    marks: Vec<&'static str>,
    kind: Marks,
}

/// The token that ends a text.
const END: u32 = 256;

impl Bytes {
    fn of(format: &CallFormat, kind: Marks) -> Bytes {
        let lists = format.opens.iter().chain(format.after_name).chain(format.passed_over).copied();
        let pairs = format.pairs().into_iter().flat_map(|pairs| {
            pairs.after_key.iter().copied().chain([pairs.before_key, pairs.after_value, pairs.end])
        });
        let thoughts = THOUGHTS.iter().flat_map(|marks| [marks.open, marks.close]);
        let marks = lists.chain(pairs).chain([format.close]).chain(thoughts);
        // No vocabulary has others as tokens.
        let has_letter = |mark: &&str| mark.contains(|c: char| c.is_alphabetic());
        let mut marks: Vec<&str> = marks.filter(has_letter).collect();
        marks.sort_unstable();
        marks.dedup();
        Bytes { marks, kind }
    }

    /// Ids of a text, a mark as one token if there is one.
    fn ids(&self, text: &str) -> Vec<u32> {
        let (mut ids, mut rest) = (Vec::new(), text.as_bytes());
        while let Some(byte) = rest.first() {
            let at = self.marks.iter().position(|mark| rest.starts_with(mark.as_bytes()));
            match at.filter(|_| self.kind != Marks::Spelled) {
                Some(at) => {
                    ids.push(END + 1 + at as u32);
                    rest = &rest[self.marks[at].len()..];
                }
                None => {
                    ids.push(u32::from(*byte));
                    rest = &rest[1..];
                }
            }
        }
        ids
    }
}

impl Vocabulary for Bytes {
    fn encode_ordinary(&self, text: &str) -> Result<Vec<u32>, VocabularyError> {
        Ok(text.bytes().map(u32::from).collect())
    }

    fn encode_marked(&self, text: &str) -> Result<Vec<u32>, VocabularyError> {
        Ok(self.ids(text))
    }

    fn added_tokens(&self) -> Vec<AddedToken> {
        let is_special = self.kind == Marks::Special;
        let token = |(at, text): (usize, &&str)| AddedToken {
            text: (*text).to_owned(),
            id: END + 1 + at as u32,
            is_special,
        };
        let marks = self.marks.iter().enumerate().filter(|_| self.kind != Marks::Spelled).map(token);
        marks.chain([AddedToken { text: "<end>".to_owned(), id: END, is_special: true }]).collect()
    }

    fn bytes(&self, id: u32) -> Option<Vec<u8>> {
        match id {
            0..END => Some(vec![id as u8]),
            END => Some(b"<end>".to_vec()),
            _ => self.marks.get((id - END - 1) as usize).map(|mark| mark.as_bytes().to_vec()),
        }
    }
}

/// A model's vocabulary and what it likes to write.
struct Model {
    vocabulary: Arc<dyn Vocabulary + Send + Sync>,
    lexicon: Option<Lexicon>,
    liked: Vec<Vec<u32>>,
}

impl Model {
    fn lexicon(&self) -> &Lexicon {
        self.lexicon.as_ref().unwrap_or(&LEXICON)
    }

    /// A model of bytes.
    fn of_bytes(format: &CallFormat, kind: Marks) -> Model {
        let vocabulary = Arc::new(Bytes::of(format, kind));
        let width = END as usize + 1 + vocabulary.marks.len();
        let lexicon = Lexicon::new(vocabulary.clone(), width, &[END]).unwrap();
        let texts = CLOSERS.iter().chain(&vocabulary.marks).map(|text| (*text).to_owned());
        let texts = texts.chain(end_of_value(format));
        let mut liked: Vec<Vec<u32>> = texts.map(|text| vocabulary.ids(&text)).collect();
        liked.push(vec![END]);
        Model { vocabulary, lexicon: Some(lexicon), liked }
    }

    /// A model with the vocabulary of GPT-OSS, which has none of the marks.
    fn of_gpt_oss(format: &CallFormat) -> Model {
        let marks = Bytes::of(format, Marks::Spelled).marks;
        let texts = CLOSERS.iter().chain(&marks).map(|text| (*text).to_owned());
        let texts = texts.chain(end_of_value(format));
        let mut liked: Vec<Vec<u32>> = texts.map(|text| VOCABULARY.encode_ordinary(&text).unwrap()).collect();
        liked.extend([vec![200_002], vec![200_002]]);
        Model { vocabulary: VOCABULARY.clone(), lexicon: None, liked }
    }

    fn text_of(&self, ids: &[u32]) -> String {
        let ends = [END, 200_002, 199_999, 200_012];
        let texts = ids.iter().filter(|id| !ends.contains(id) || (self.lexicon.is_none() && **id == END));
        String::from_utf8(texts.flat_map(|id| self.vocabulary.bytes(*id).unwrap()).collect()).unwrap()
    }
}

/// Texts that end a value which is written without quotes, more than once, since nothing else ends it.
fn end_of_value(format: &CallFormat) -> impl Iterator<Item = String> {
    let end = format.pairs().map(|pairs| format!("{}{}", pairs.margin, pairs.after_value));
    end.into_iter().flat_map(|end| vec![end; 4])
}

/// Parts of a text with their contents.
fn parts(mut parser: TextParser, vocabulary: &dyn Vocabulary, ids: &[u32]) -> Vec<(AnswerPart, String)> {
    let mut events = Vec::new();
    ids.iter().for_each(|id| parser.push(vocabulary, *id, &mut events));
    parser.finish(&mut events);
    let seen: Vec<_> = parser.anomalies().seen().collect();
    assert!(seen.is_empty(), "{seen:?}: {events:?}");
    let mut parts = Vec::<(AnswerPart, String)>::new();
    for event in events {
        match event {
            Event::Begin(part) => parts.push((part, String::new())),
            Event::Delta(text) => parts.last_mut().unwrap().1.push_str(&text),
            Event::End { is_complete } => assert!(is_complete),
        }
    }
    parts
}

/// A text as it is written that is read as these parts, without space at places where it means nothing.
fn written(format: &CallFormat, turn: &TurnGrammar, parts: &[(AnswerPart, String)]) -> String {
    let (spelling, thoughts) = (format.spelling, turn.thoughts);
    let ThoughtMarks { open, close } = turn.thought_marks;
    let (mut text, mut calls) = (String::new(), Vec::new());
    if thoughts == Thoughts::Begun && parts.first().is_none_or(|(part, _)| *part != AnswerPart::Reasoning) {
        text += close;
    }
    for (part, content) in parts {
        match part {
            AnswerPart::Reasoning => {
                text += if thoughts == Thoughts::Begun { "" } else { open };
                text += &format!("{content}{close}");
            }
            AnswerPart::Call { name, .. } => {
                let Spelling { before, middle, after, .. } = spelling;
                calls.push(format!("{before}{name}{middle}{content}{after}"));
            }
            _ => text += content,
        }
    }
    if !calls.is_empty() {
        text += &format!("{}{}{}", spelling.open, calls.join(spelling.between), spelling.close);
    }
    text.split_whitespace().collect()
}

/// The first of all names, keys and texts of parts that does not come next in a text.
fn missing_of(format: &CallFormat, parts: &[(AnswerPart, String)], text: &str) -> Option<String> {
    let mut wanted = Vec::new();
    for (part, content) in parts {
        match part {
            AnswerPart::Call { name, .. } => {
                wanted.push(name.clone());
                let arguments: Value = serde_json::from_str(content).unwrap();
                for (key, value) in arguments.as_object().unwrap() {
                    wanted.push(key.clone());
                    // A string that is written as JSON may have escapes, as those by keyword are.
                    let is_plain = |c: char| c != '"' && c != '\\' && !c.is_control();
                    let is_plain = |text: &&str| format.pairs().is_some() && text.chars().all(is_plain);
                    wanted.extend(value.as_str().filter(is_plain).map(str::to_owned));
                }
            }
            _ => wanted.push(content.clone()),
        }
    }
    let mut rest = text;
    wanted.into_iter().find(|wanted| match rest.find(wanted.as_str()) {
        Some(at) => {
            rest = &rest[at + wanted.len()..];
            false
        }
        None => true,
    })
}

fn tool(name: &str, rng: &mut Rng) -> Tool {
    let parameters = (rng.u8(..5) > 0).then(|| schema(rng));
    Tool { name: name.to_owned(), description: String::new(), parameters, strict: rng.bool() }
}

fn turn(rng: &mut Rng) -> TurnGrammar {
    let names = ["get", "get_weather", "f", "a.b-c"];
    let tools: Vec<Tool> = names[..rng.usize(..5)].iter().map(|name| tool(name, rng)).collect();
    let choice = match rng.u8(..4) {
        0 if !tools.is_empty() => ToolChoice::Required,
        1 if !tools.is_empty() => ToolChoice::Function(tools[0].name.clone()),
        2 => ToolChoice::None,
        _ => ToolChoice::Auto,
    };
    let answer = match rng.u8(..6) {
        0 | 1 => Some(Rule::JsonSchema(schema(rng))),
        2 => Some(Rule::Regex("[a-f]{1,9}".to_owned())),
        _ => None,
    };
    let allowed = (rng.u8(..3) == 0).then(|| vec!["get".to_owned(), "f".to_owned()]);
    let thoughts = [Thoughts::None, Thoughts::Optional, Thoughts::Begun][rng.usize(..3)];
    let (thought_marks, one_call) = (THOUGHTS[rng.usize(..THOUGHTS.len())], rng.bool());
    TurnGrammar {
        tools,
        choice,
        answer,
        allowed,
        thoughts,
        thought_marks,
        one_call,
        ..TurnGrammar::default()
    }
}

/// Checks one turn that a model of random logits made. Gives how many calls it has, `None` if it may be any
/// text.
fn check(model: &Model, format: &'static CallFormat, turn: &TurnGrammar, rng: &mut Rng) -> Option<usize> {
    let mut turn = turn.clone();
    if format.pairs().is_some() {
        // Patterns of texts that stand by themselves only hold strict functions.
        turn.tools.iter_mut().for_each(|tool| tool.strict = true);
    }
    let what = || format!("{} {turn:?}", format.name);
    let rule =
        turn.text(Some(format), &*model.vocabulary).unwrap_or_else(|error| panic!("{error}: {}", what()));
    let is_allowed = |name: &String| turn.allowed.as_ref().is_none_or(|names| names.contains(name));
    let is_free = |tool: &Tool| is_allowed(&tool.name) && !tool.strict;
    let asks_nothing = turn.choice == ToolChoice::Auto && turn.tools.iter().all(is_free);
    let may_be_any = turn.answer.is_none() && (turn.tools.is_empty() || asks_nothing);
    assert_eq!(rule.is_none(), may_be_any, "{}", what());
    let constraint = Constraint::new(model.lexicon(), &rule?);
    let constraint = constraint.unwrap_or_else(|error| panic!("{error}: {}", what()));
    let ids = generate_with(constraint, rng, &model.liked);
    let text = model.text_of(&ids);
    let what = || format!("{} {turn:?}: {text:?}", format.name);
    let parts_of =
        |ids: &[u32]| parts(turn.reader(Some(format), &*model.vocabulary), &*model.vocabulary, ids);
    let parts = parts_of(&ids);
    // However a text is cut, it is the same.
    assert_eq!(parts_of(&model.vocabulary.encode_marked(&text).unwrap()), parts, "{}", what());
    if format.arguments != ArgumentStyle::Object {
        let missing = missing_of(format, &parts, &text);
        assert_eq!(missing, None, "{}", what());
    } else {
        // The mark of a call that needs none is left out.
        let mark = if format.has_bare { format.opens[0] } else { "\n" };
        let rewritten = written(format, &turn, &parts).replace(mark, "");
        let text = text.split_whitespace().collect::<String>().replace(mark, "");
        // Thoughts of nothing are no part.
        let nothing = format!("{}{}", turn.thought_marks.open, turn.thought_marks.close);
        let [rewritten, text] = [&rewritten, &text].map(|text| text.trim_start_matches(&nothing));
        assert_eq!(rewritten, text, "{}", what());
    }
    let valid = |schema: &Value, text: &str| {
        let value = serde_json::from_str(text).unwrap_or_else(|error| panic!("{error}: {text:?} {}", what()));
        assert!(describes(schema, schema, &value), "{text:?} is not of {schema}: {}", what());
    };
    let mut calls = 0;
    for (part, content) in &parts {
        match part {
            AnswerPart::Call { name, is_builtin: false } => {
                calls += 1;
                let tool = turn.tools.iter().find(|tool| tool.name == *name).unwrap();
                assert!(turn.choice.allows(name), "{}", what());
                assert!(is_allowed(name), "{}", what());
                match &tool.parameters {
                    Some(schema) => valid(schema, content),
                    None => assert_eq!(serde_json::from_str::<Value>(content).unwrap(), json!({})),
                }
            }
            AnswerPart::Answer => match &turn.answer {
                Some(Rule::JsonSchema(schema)) => valid(schema, content),
                Some(_) => assert!(content.bytes().all(|byte| (b'a'..=b'f').contains(&byte))),
                None => {}
            },
            AnswerPart::Reasoning => assert!(turn.thoughts != Thoughts::None, "{}", what()),
            other => panic!("{other:?}: {}", what()),
        }
    }
    let has_answer = parts.iter().any(|(part, _)| *part == AnswerPart::Answer);
    assert!(!turn.choice.is_required() || calls > 0 && !has_answer, "{}", what());
    assert!(turn.answer.is_none() || has_answer != (calls > 0), "{}", what());
    let is_one = turn.one_call || matches!(turn.choice, ToolChoice::Function(_));
    assert!(!is_one || calls <= 1, "{}", what());
    Some(calls)
}

#[test]
fn turns_are_read_as_they_were_held() {
    for format in &FORMATS {
        let kinds = [Marks::Special, Marks::Added, Marks::Spelled];
        let mut models: Vec<Model> = kinds.map(|kind| Model::of_bytes(format, kind)).into();
        models.push(Model::of_gpt_oss(format));
        let mut seen = [0; 3];
        for seed in 0..texts() {
            let mut rng = Rng::with_seed(seed);
            let turn = turn(&mut rng);
            let is_callable = |tool: &Tool| {
                turn.choice.allows(&tool.name)
                    && turn.allowed.as_ref().is_none_or(|names| names.contains(&tool.name))
            };
            if turn.choice.is_required() && !turn.tools.iter().any(is_callable) {
                let refused = turn.text(Some(format), &*VOCABULARY.clone()).unwrap_err().to_string();
                assert!(refused.contains("no such tool is declared"), "{refused}");
                continue;
            }
            // The large vocabulary takes longer.
            let model = if seed % 20 == 0 { &models[3] } else { &models[seed as usize % 3] };
            let calls = check(model, format, &turn, &mut rng);
            calls.iter().for_each(|calls| seen[(*calls).min(2)] += 1);
        }
        assert!(seen.iter().all(|count| *count > 0), "{}: {seen:?}", format.name);
    }
}
