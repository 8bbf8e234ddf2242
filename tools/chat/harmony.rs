//! Conversations, one line of JSON each, to lines of token ids: `compare_harmony.py` holds them to those of
//! others. Lines of ids become lines of what the parser makes of them, if the program is called with `parse`.

#[path = "../../constrain/tests/constrain/o200k.rs"]
mod o200k;

use kernmill_chat::harmony::{HarmonyParser, PromptOptions, prompt};
use kernmill_chat::{Conversation, Event};
use std::io::{BufRead, Error, Write, stdin, stdout};

fn main() -> Result<(), Error> {
    let vocabulary = o200k::O200k::new();
    let parses = std::env::args().nth(1).is_some_and(|mode| mode == "parse");
    let mut out = stdout().lock();
    for line in stdin().lock().lines() {
        let line = line?;
        if parses {
            let ids: Vec<u32> = serde_json::from_str(&line)?;
            let mut events: Vec<Event> = Vec::new();
            let conversation = Conversation::default();
            let mut parser =
                HarmonyParser::new(&vocabulary, &conversation, &mut events).map_err(Error::other)?;
            for id in ids {
                parser.push(&vocabulary, id, &mut events);
            }
            parser.finish(&mut events);
            writeln!(out, "{events:?}")?;
        } else {
            let conversation: Conversation = serde_json::from_str(&line)?;
            let prompt =
                prompt(&vocabulary, &conversation, &PromptOptions::default()).map_err(Error::other)?;
            writeln!(out, "{}", serde_json::to_string(&prompt.ids)?)?;
        }
    }
    Ok(())
}
