//! The tokens' cuts do not change an answer: stop strings, thoughts, calls and forms of Harmony.

use fastrand::Rng;
use kernmill_chat::{
    AddedToken, AnswerPart, Conversation, Event, Format, Item, Template, Templates, Tool, ToolChoice, Turn,
    TurnOptions, TurnPiece, Vocabulary, VocabularyError,
};
use kernmill_constrain::Rule;
use std::collections::BTreeMap;

/// A vocabulary whose tokens are pieces of one text, and Harmony's marks behind them.
#[derive(Clone)]
struct Cut {
    pieces: Vec<Vec<u8>>,
    marks: Vec<&'static str>,
}

/// The first id of a mark.
const MARKS: u32 = 1000;

impl Vocabulary for Cut {
    fn encode_ordinary(&self, text: &str) -> Result<Vec<u32>, VocabularyError> {
        Ok(text.bytes().map(|byte| 2000 + u32::from(byte)).collect())
    }

    fn encode_marked(&self, text: &str) -> Result<Vec<u32>, VocabularyError> {
        self.encode_ordinary(text)
    }

    fn added_tokens(&self) -> Vec<AddedToken> {
        let token = |(id, text): (u32, &&str)| AddedToken { text: (*text).to_owned(), id, is_special: true };
        (MARKS..).zip(&self.marks).map(token).collect()
    }

    fn bytes(&self, id: u32) -> Option<Vec<u8>> {
        match id {
            2000..2256 => Some(vec![(id - 2000) as u8]),
            MARKS.. => self.marks.get((id - MARKS) as usize).map(|mark| mark.as_bytes().to_vec()),
            _ => self.pieces.get(id as usize).cloned(),
        }
    }
}

const HARMONY: [&str; 7] =
    ["<|start|>", "<|end|>", "<|message|>", "<|channel|>", "<|constrain|>", "<|return|>", "<|call|>"];

/// A template whose model thinks and calls.
const TEMPLATE: &str =
    "{% for m in messages %}{{ m.role }}: {{ m.content }}\n{% endfor %}<tool_call></tool_call>";

/// The parts of an answer.
#[derive(Clone, Debug, PartialEq)]
struct Answer {
    parts: Vec<(AnswerPart, String, bool)>,
    stop: Option<String>,
    has_ended: bool,
}

/// Cuts a text into tokens. Marks are separate tokens.
fn cut(text: &str, marks: &[&'static str], rng: &mut Rng, longest: usize) -> (Cut, Vec<u32>) {
    let (mut pieces, mut ids) = (Vec::new(), Vec::new());
    let mut rest = text.as_bytes();
    while !rest.is_empty() {
        if let Some(at) = marks.iter().position(|mark| rest.starts_with(mark.as_bytes())) {
            ids.push(MARKS + at as u32);
            rest = &rest[marks[at].len()..];
            continue;
        }
        let is_mark = |at: &usize| marks.iter().any(|mark| rest[*at..].starts_with(mark.as_bytes()));
        let end = (1..rest.len()).find(is_mark).unwrap_or(rest.len());
        let length = rng.usize(1..=longest.min(end));
        ids.push(pieces.len() as u32);
        pieces.push(rest[..length].to_vec());
        rest = &rest[length..];
    }
    (Cut { pieces, marks: marks.to_vec() }, ids)
}

/// Reads a turn to its end.
fn read(turn: &mut Turn, vocabulary: &Cut, ids: &[u32]) -> (Answer, Vec<TurnPiece>) {
    for id in ids {
        let text = String::from_utf8(vocabulary.bytes(*id).unwrap()).unwrap_or_default();
        turn.push(vocabulary, *id, &text);
    }
    turn.finish(true);
    let pieces: Vec<TurnPiece> = std::iter::from_fn(|| turn.pop()).collect();
    let mut parts: Vec<(AnswerPart, String, bool)> = Vec::new();
    for piece in &pieces {
        match &piece.event {
            Event::Begin(part) => parts.push((part.clone(), String::new(), false)),
            Event::Delta(text) => parts.last_mut().unwrap().1 += text,
            Event::End { is_complete } => parts.last_mut().unwrap().2 = *is_complete,
        }
    }
    let (stop, has_ended) = (turn.stop().map(str::to_owned), turn.has_ended());
    (Answer { parts, stop, has_ended }, pieces)
}

fn turn(format: &str, vocabulary: &Cut, options: &TurnOptions) -> Turn {
    let f = |name: &str| Tool {
        name: name.to_owned(),
        description: String::new(),
        parameters: None,
        strict: false,
    };
    let conversation = Conversation {
        items: vec![Item::User { name: None, text: "Hi".to_owned() }],
        tools: vec![f("f"), f("g")],
        ..Conversation::default()
    };
    let (made, known) = (format_of(format, vocabulary), BTreeMap::new());
    Turn::new(vocabulary, &made, &conversation, &known, options.clone(), &[]).unwrap()
}

fn format_of(name: &str, vocabulary: &dyn Vocabulary) -> Format {
    let template = || Template::new(TEMPLATE, vocabulary, &BTreeMap::new()).unwrap();
    let templates = (name == "template").then(|| Templates { default: template(), tool_use: None });
    let format = Format::of(vocabulary, templates, Vec::new());
    assert_eq!(format.name(), name);
    format
}

/// Random texts of a format.
fn text(format: &str, rng: &mut Rng) -> String {
    let word = |rng: &mut Rng| *rng.choice(&["a", "b", "ab", "ä", "\n", " ", "ba", "😀"]).unwrap();
    let words = |rng: &mut Rng| (0..rng.usize(0..8)).map(|_| word(rng)).collect::<String>();
    match format {
        "harmony" => {
            let mut text = String::new();
            if rng.bool() {
                text += &format!("<|channel|>analysis<|message|>{}<|end|><|start|>assistant", words(rng));
            }
            text + &match rng.bool() {
                true => format!("<|channel|>final<|message|>{}<|return|>", words(rng)),
                false => format!(
                    "<|channel|>commentary to=functions.f <|constrain|>json<|message|>{{\"a\": \"{}\"}}<|call|>",
                    words(rng).replace('\n', "")
                ),
            }
        }
        _ => {
            let mut text = String::new();
            if rng.bool() {
                text += &format!("<think>{}</think>{}", words(rng), words(rng));
            }
            text += &words(rng);
            for _ in 0..rng.usize(0..3) {
                text += &format!(
                    "<tool_call>{{\"name\": \"g\", \"arguments\": {{\"a\": \"{}\"}}}}</tool_call>",
                    words(rng).replace('\n', "")
                );
            }
            text + &words(rng)
        }
    }
}

#[test]
fn an_answer_does_not_depend_on_how_tokens_cut_it() {
    let (mut stopped, mut calls, mut thoughts) = (0, 0, 0);
    for seed in 0..4000 {
        let mut rng = Rng::with_seed(seed);
        let format = *rng.choice(&["harmony", "template", "plain"]).unwrap();
        let marks: &[&'static str] = if format == "harmony" { &HARMONY } else { &[] };
        let text = text(format, &mut rng);
        let stop = (0..rng.usize(0..3))
            .map(|_| (0..rng.usize(1..4)).map(|_| rng.choice(['a', 'b', 'ä']).unwrap()).collect());
        let options = TurnOptions { stop: stop.collect(), one_call: rng.bool(), ..TurnOptions::default() };
        let mut whole = None;
        for longest in [1000, 1, 3, 7] {
            let (vocabulary, ids) = cut(&text, marks, &mut rng, longest);
            // Where text is text, the caller has made whole characters of the tokens.
            if format == "plain" && vocabulary.pieces.iter().any(|piece| std::str::from_utf8(piece).is_err())
            {
                continue;
            }
            let (answer, pieces) = read(&mut turn(format, &vocabulary, &options), &vocabulary, &ids);
            for piece in &pieces {
                let Event::Delta(text) = &piece.event else { continue };
                let bytes: Vec<u8> =
                    ids[piece.tokens.clone()].iter().flat_map(|id| vocabulary.bytes(*id).unwrap()).collect();
                let own = String::from_utf8_lossy(&bytes).into_owned();
                // Tokens of one byte are exactly those of the text, but for the marks that stop strings hold
                // up.
                if longest == 1 && options.stop.is_empty() && format == "harmony" {
                    assert_eq!(own, *text, "{seed}: {text:?} of {ids:?}");
                }
            }
            let is_stop = answer.stop.is_some();
            let has = |kind: fn(&AnswerPart) -> bool| answer.parts.iter().any(|(part, ..)| kind(part));
            stopped += u32::from(is_stop);
            calls += u32::from(has(|part| matches!(part, AnswerPart::Call { .. })));
            thoughts += u32::from(has(|part| *part == AnswerPart::Reasoning));
            let whole = whole.get_or_insert_with(|| answer.clone());
            assert_eq!(answer, *whole, "{seed}: {format}, {options:?}: {text:?} in pieces of {longest}");
            // The answer ends at the first stop string that is whole; reasoning and calls do not.
            for (_, text, _) in answer.parts.iter().filter(|(part, ..)| *part == AnswerPart::Answer) {
                assert!(!options.stop.iter().any(|stop| text.contains(stop.as_str())), "{seed}: {text:?}");
            }
            if options.one_call {
                let made =
                    answer.parts.iter().filter(|(part, ..)| matches!(part, AnswerPart::Call { .. })).count();
                assert!(made <= 1, "{seed}: {:?}", answer.parts);
            }
        }
    }
    assert!(stopped > 100 && calls > 100 && thoughts > 100, "{stopped} {calls} {thoughts}");
}

/// An emoji of several tokens at the beginning, and an end token that is no part of the answer.
#[test]
fn every_token_of_an_answer_is_found() {
    for (format, text, marks, expected) in [
        ("harmony", "<|channel|>final<|message|>😀a<|return|>", &HARMONY[..], 5),
        ("template", "😀a<|end|>", &["<|end|>"], 5),
        ("template", "<think>b</think>\n\n😀a", &[], 5),
    ] {
        let (vocabulary, ids) = cut(text, marks, &mut Rng::with_seed(1), 1);
        let mut turn = turn(format, &vocabulary, &TurnOptions::default());
        if format == "template" {
            turn.stop_tokens = vec![MARKS];
        }
        let (_, pieces) = read(&mut turn, &vocabulary, &ids);
        let answer = pieces.iter().skip_while(|piece| piece.event != Event::Begin(AnswerPart::Answer));
        let tokens: Vec<usize> = answer.flat_map(|piece| piece.tokens.clone()).collect();
        assert_eq!(tokens.len(), expected, "{text:?}: {pieces:?}");
        let bytes: Vec<u8> = tokens.iter().flat_map(|at| vocabulary.bytes(ids[*at]).unwrap()).collect();
        assert_eq!(bytes, "😀a".as_bytes(), "{text:?}");
    }
}

/// A template without a format of calls may drop the functions of a conversation: the model is told in its
/// instructions how to call them, and is read so. Where the template tells them, nobody knows the format.
#[test]
fn calls_are_read_as_the_model_was_told() {
    let source =
        "{% for m in messages %}{{ m.content }}{% if m.role == 'system' %}{{ tools }}{% endif %}{% endfor %}";
    let said = "<tool_call>\n{\"name\": \"f\", \"arguments\": {\"a\": 1}}\n</tool_call>";
    let (vocabulary, ids) = cut(said, &[], &mut Rng::with_seed(1), 3);
    let template = Template::new(source, &vocabulary, &BTreeMap::new()).unwrap();
    assert!(template.tells_tools() && template.calls().is_none());
    let templates = Templates { default: template, tool_use: None };
    let format = Format::of(&vocabulary, Some(templates), Vec::new());
    let f = Tool { name: "f".to_owned(), description: String::new(), parameters: None, strict: false };
    let user = Item::User { name: None, text: "Hi".to_owned() };
    let system = Item::Instructions("Be brief.".to_owned());
    for (items, is_call) in [(vec![user.clone()], true), (vec![system, user], false)] {
        let conversation = Conversation { items, tools: vec![f.clone()], ..Conversation::default() };
        let options = TurnOptions::default();
        let mut turn =
            Turn::new(&vocabulary, &format, &conversation, &BTreeMap::new(), options, &[]).unwrap();
        let (answer, _) = read(&mut turn, &vocabulary, &ids);
        let [(part, text, _)] = &answer.parts[..] else { panic!("{answer:?}") };
        assert_eq!(matches!(part, AnswerPart::Call { .. }), is_call, "{part:?}");
        assert_eq!(text, if is_call { "{\"a\": 1}" } else { said });
    }
}

/// An answer that is not finished is part of the prompt, and what comes is the rest of it.
#[test]
fn a_turn_goes_on_in_an_answer() {
    for (format, behind) in [
        ("harmony", "<|start|>assistant<|channel|>final<|message|>It is"),
        ("template", "user: Hi\n<tool_call></tool_call>It is"),
        ("plain", "User: Hi\nAssistant: It is"),
    ] {
        let marks: &[&'static str] = if format == "harmony" { &HARMONY } else { &[] };
        let (vocabulary, ids) = cut(" <b>one", marks, &mut Rng::with_seed(1), 2);
        let vocabulary = Marked(vocabulary);
        let mut conversation = Conversation {
            items: vec![Item::User { name: None, text: "Hi".to_owned() }, Item::Answer("It is".to_owned())],
            ..Conversation::default()
        };
        let made = format_of(format, &vocabulary);
        let new = |conversation: &Conversation, options: TurnOptions| {
            Turn::new(&vocabulary, &made, conversation, &BTreeMap::new(), options, &[])
        };
        let options = TurnOptions { continues: true, ..TurnOptions::default() };
        let mut turn = new(&conversation, options.clone()).unwrap();
        let prompt: Vec<u8> = turn.prompt.iter().flat_map(|id| vocabulary.bytes(*id).unwrap()).collect();
        let prompt = String::from_utf8(prompt).unwrap();
        assert!(prompt.ends_with(behind), "{prompt:?}");
        let (answer, _) = read(&mut turn, &vocabulary.0, &ids);
        let [(part, text, _)] = &answer.parts[..] else { panic!("{format}: {answer:?}") };
        assert_eq!((part, text.as_str()), (&AnswerPart::Answer, " <b>one"), "{format}");
        let required = TurnOptions { choice: ToolChoice::Required, ..options.clone() };
        assert!(new(&conversation, required).unwrap_err().to_string().contains("cannot become a call"));
        let form = TurnOptions { form: Some(Rule::JsonObject), ..options.clone() };
        assert!(new(&conversation, form).unwrap_err().to_string().contains("cannot be held to a form"));
        conversation.items.pop();
        assert!(new(&conversation, options).unwrap_err().to_string().contains("no answer of the model"));
    }
}

/// Nothing tells a model without a template of tools.
#[test]
fn a_model_without_a_template_is_not_held_to_calls() {
    let (vocabulary, _) = cut("Hi", &[], &mut Rng::with_seed(1), 2);
    let f = Tool { name: "f".to_owned(), description: String::new(), parameters: None, strict: false };
    let items = vec![Item::User { name: None, text: "Hi".to_owned() }];
    let conversation = Conversation { items, tools: vec![f], ..Conversation::default() };
    let options = TurnOptions { choice: ToolChoice::Required, ..TurnOptions::default() };
    let made = format_of("plain", &vocabulary);
    let refused = Turn::new(&vocabulary, &made, &conversation, &BTreeMap::new(), options, &[]).unwrap_err();
    assert!(refused.to_string().contains("this model has no chat template"), "{refused}");
}

/// A vocabulary that finds Harmony's marks in a text.
struct Marked(Cut);

impl Vocabulary for Marked {
    fn encode_ordinary(&self, text: &str) -> Result<Vec<u32>, VocabularyError> {
        self.0.encode_ordinary(text)
    }

    fn encode_marked(&self, text: &str) -> Result<Vec<u32>, VocabularyError> {
        let (mut ids, mut rest) = (Vec::new(), text);
        while let Some(c) = rest.chars().next() {
            let mark = self.0.marks.iter().position(|mark| rest.starts_with(mark));
            let length = mark.map_or(c.len_utf8(), |at| self.0.marks[at].len());
            match mark {
                Some(at) => ids.push(MARKS + at as u32),
                None => ids.extend(self.0.encode_ordinary(&rest[..length])?),
            }
            rest = &rest[length..];
        }
        Ok(ids)
    }

    fn added_tokens(&self) -> Vec<AddedToken> {
        self.0.added_tokens()
    }

    fn bytes(&self, id: u32) -> Option<Vec<u8>> {
        self.0.bytes(id)
    }
}
