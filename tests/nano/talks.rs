//! Talks with the embedded model: dialogues that its training has not seen, and the pirate's answers to them.

use super::path;
use crate::harness;
use kernmill::adapters::AdapterSource;
use kernmill::chat::format_of;
use kernmill::{Opened, Options, lexicon};
use kernmill_chat::{AnswerPart, Conversation, Event, Item, Turn, TurnOptions};
use kernmill_plan::chat::ChatTemplates;
use kernmill_runtime::{AdapterUse, TokenizerHandle};
use kernmill_serve::{Finish, Request, SchedulerConfig, Serving};
use serde::Deserialize;
use std::collections::BTreeMap;

/// A dialogue as tools/nano/exact.py writes it.
#[derive(Deserialize)]
struct Dialogue {
    kind: String,
    conversation: Conversation,
    /// The items that the model is to make.
    made: Vec<Item>,
    /// Checksum of the prompt's ids that tools/nano/harmony.py makes.
    prompt: u32,
}

fn dialogues() -> Vec<Dialogue> {
    let text = std::fs::read_to_string(path("tests/fixtures/nano/dialogues.jsonl")).unwrap();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// The embedded model on one thread, with the adapter beside it.
fn loaded() -> (Serving, TokenizerHandle) {
    let pirate =
        AdapterSource { name: "pirate".to_owned(), directory: path("model-specs/nano/pirate"), scale: 1.0 };
    let options = Options::default().with(|it| {
        it.threads = Some(1);
        it.adapters = vec![pirate];
    });
    let mut opened = Opened::open(kernmill::locate::nano(), &options).unwrap();
    let tokenizer = opened.tokenizer().unwrap();
    let mut loaded = opened.prepare(&options).unwrap().load(&options, 768, 1).unwrap();
    loaded.load_adapters(&options).unwrap();
    (loaded.into_serving(SchedulerConfig::default()).unwrap(), tokenizer)
}

/// Ids of the prompt, and what the model makes of it greedily.
fn answer(
    (serving, handle): &mut (Serving, TokenizerHandle),
    conversation: &Conversation,
    adapters: &[&str],
) -> (Vec<u32>, Vec<(AnswerPart, String)>) {
    let tokenizer = handle.get().unwrap();
    let format = format_of(tokenizer, &ChatTemplates::default(), &[]).unwrap();
    let options = TurnOptions::default();
    let mut turn = Turn::new(tokenizer, &format, conversation, &BTreeMap::new(), options, &[]).unwrap();
    let prompt = turn.prompt.clone();
    let lexicon = lexicon(Some(handle), 3072, &turn.stop_tokens).unwrap();
    let constraint = turn.constraint(&lexicon, &conversation.tools).unwrap();
    let request = Request {
        // As everywhere, the turn keeps its format.
        constraint,
        adapters: adapters.iter().map(|name| AdapterUse::of(*name)).collect(),
        stop_tokens: turn.stop_tokens.clone(),
        ..Request::greedy(prompt.clone(), 200)
    };
    let answer = harness::answer(serving, request);
    let stop = if let Finish::Token(id) = answer.finish { Some(id) } else { None };
    for id in answer.tokens.into_iter().chain(stop) {
        turn.push(tokenizer, id, "");
    }
    turn.finish(stop.is_some());
    let mut parts: Vec<(AnswerPart, String)> = Vec::new();
    while let Some(piece) = turn.pop() {
        match piece.event {
            Event::Begin(part) => parts.push((part, String::new())),
            Event::Delta(text) => parts.last_mut().unwrap().1 += &text,
            Event::End { is_complete } => assert!(is_complete || stop.is_none()),
        }
    }
    (prompt, parts)
}

/// The parts that a dialogue's answer is to have.
fn wanted(made: &[Item]) -> Vec<(AnswerPart, String)> {
    let part = |item: &Item| match item {
        Item::Reasoning(text) => (AnswerPart::Reasoning, text.clone()),
        Item::Answer(text) => (AnswerPart::Answer, text.clone()),
        Item::Call(call) => {
            (AnswerPart::Call { name: call.name.clone(), is_builtin: false }, call.arguments.clone())
        }
        other => panic!("{other:?} is nothing that a model makes"),
    };
    made.iter().map(part).collect()
}

/// FNV-1a over the ids.
fn checksum(ids: &[u32]) -> u32 {
    ids.iter()
        .flat_map(|id| id.to_le_bytes())
        .fold(0x811c_9dc5, |sum, byte| (sum ^ u32::from(byte)).wrapping_mul(0x0100_0193))
}

#[test]
fn dialogues_of_each_kind_are_answered_exactly() {
    let mut loaded = loaded();
    let mut kinds: BTreeMap<String, (usize, usize)> = BTreeMap::new();
    for dialogue in dialogues() {
        let (prompt, made) = answer(&mut loaded, &dialogue.conversation, &[]);
        assert_eq!(checksum(&prompt), dialogue.prompt, "{:?}", dialogue.conversation);
        let (exact, all) = kinds.entry(dialogue.kind.clone()).or_default();
        *all += 1;
        let is_exact = made == wanted(&dialogue.made);
        if !is_exact {
            println!("{}: {made:?}, expected {:?}", dialogue.kind, dialogue.made);
        }
        *exact += usize::from(is_exact);
    }
    for (kind, (exact, all)) in &kinds {
        println!("{kind}: {exact} of {all} exact");
    }
    assert_eq!(kinds.len(), 12);
    for (kind, (exact, all)) in kinds {
        assert!(all >= 40 && exact * 10 >= all * 9, "{kind}: {exact} of {all} are exact");
    }
}

#[test]
fn the_pirate_is_known_at_once() {
    let mut loaded = loaded();
    let is_pirate = |parts: &[(AnswerPart, String)]| {
        parts.iter().any(|(part, text)| *part == AnswerPart::Answer && text.starts_with("Arr, matey! "))
    };
    let (mut with, mut without, mut all) = (0, 0, 0);
    for dialogue in dialogues().iter().filter(|dialogue| ["talk", "fact", "add"].contains(&&*dialogue.kind)) {
        all += 1;
        with += usize::from(is_pirate(&answer(&mut loaded, &dialogue.conversation, &["pirate"]).1));
        without += usize::from(is_pirate(&answer(&mut loaded, &dialogue.conversation, &[]).1));
    }
    println!("{with} of {all} answers are a pirate's with the adapter, {without} without");
    assert!(all >= 100 && with * 100 >= all * 95 && without == 0, "{with}, {without} of {all}");
}
