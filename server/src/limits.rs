//! How large what comes from outside may be. `docs/user/serve.md` prints this table.

/// Bytes of a request's body, unless the configuration says another number.
pub const BODY_BYTES: usize = 8 << 20;
/// Tokens that a request may ask for; the context may hold fewer.
pub const TOKENS: u64 = u32::MAX as u64;
/// Messages of a conversation.
pub const MESSAGES: usize = 4096;
/// Tools that a request may declare.
pub const TOOLS: usize = 128;
/// Stop strings of a request.
pub const STOPS: usize = 16;
/// Bytes of a stop string.
pub const STOP_BYTES: usize = 256;
/// Answers to one request.
pub const ANSWERS: u64 = 8;
/// Prompts of a request to `/v1/completions`.
pub const PROMPTS: usize = 128;
/// Texts of a request for vectors or scores.
pub const INPUTS: usize = 2048;
/// Tokens of all of them.
pub const INPUT_TOKENS: usize = 300_000;
/// Members of `logit_bias`.
pub const BIASES: usize = 1024;
/// Likeliest tokens that are listed at each token.
pub const TOP_LOGPROBS: u64 = 20;
/// Responses of `/v1/responses` that are stored at most; the oldest goes first.
pub const RESPONSES: usize = 1000;
/// Bytes of all stored responses, with what was said before them.
pub const RESPONSE_BYTES: usize = 64 << 20;
/// Bytes of a request's head: its headers with their names.
pub const HEAD_BYTES: usize = 16 << 10;
/// Connections at the same time.
pub const CONNECTIONS: usize = 1024;
/// Seconds in which a request's head must come.
pub const HEAD_SECONDS: u64 = 10;
/// Seconds in which a request's body must come.
pub const BODY_SECONDS: u64 = 60;
/// Bytes of a message of gRPC, in both directions.
#[cfg(feature = "grpc")]
pub const MESSAGE_BYTES: usize = 4 << 20;
/// Calls at the same time on a connection of gRPC.
#[cfg(feature = "grpc")]
pub const CALLS: u32 = 256;
/// Sessions that a key may keep.
pub const SESSIONS: usize = 64;
/// Bytes of all sessions that a key keeps.
pub const SESSION_BYTES: u64 = 8 << 30;

#[cfg(test)]
mod tests {
    use super::*;
    use kernmill_constrain::GRAMMAR_BYTES;

    /// A number as the documents write it.
    fn long(number: usize) -> String {
        if number < 1000 { number.to_string() } else { format!("{},{:03}", number / 1000, number % 1000) }
    }

    #[test]
    fn the_documents_have_this_table() {
        let (head, kept) = (HEAD_BYTES >> 10, RESPONSE_BYTES >> 20);
        let rows = [
            ("bytes of a body", format!("{} MiB", BODY_BYTES >> 20)),
            ("bytes of a request's head", format!("{head} KiB, within {HEAD_SECONDS} s")),
            ("time for a body", format!("{BODY_SECONDS} s")),
            ("connections", long(CONNECTIONS)),
            ("messages, tools", format!("{}, {TOOLS}", long(MESSAGES))),
            ("stop strings", format!("{STOPS}, of {STOP_BYTES} bytes")),
            ("answers (`n`), prompts", format!("{ANSWERS}, {PROMPTS}")),
            (
                "texts for vectors or scores, their tokens",
                format!("{}, {}", long(INPUTS), long(INPUT_TOKENS)),
            ),
            ("`logit_bias`, `top_logprobs`", format!("{}, {TOP_LOGPROBS}", long(BIASES))),
            ("regular expression or grammar", format!("{} KiB", GRAMMAR_BYTES >> 10)),
            ("sessions of a key", format!("{SESSIONS}, of {} GiB in all", SESSION_BYTES >> 30)),
            (
                "responses that are kept",
                format!("{}, of {kept} MiB in all; the oldest go first", long(RESPONSES)),
            ),
        ];
        let rows: String = rows.iter().map(|(what, most)| format!("| {what} | {most} |\n")).collect();
        let text = include_str!("../../docs/user/serve.md");
        let table = text.split_once("## Limits\n\n").unwrap().1.split("\n\n").next().unwrap();
        assert_eq!(format!("{table}\n"), format!("| what | at most |\n|---|---|\n{rows}"));
    }
}
