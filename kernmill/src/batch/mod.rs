//! Many requests from a file, many answers to a file.
//!
//! A line of the input is a request, in OpenAI's batch format or a short form ([`BatchLine`]). A line of the
//! output is the answer to one of them, in the order in which they end. An answer is the text that its
//! request gets alone. A batch that was stopped goes on: answers that are there are not made again.

mod line;
mod output;

pub use line::{BatchLine, LineError};
pub use output::{Answers, answer_line, error_line};

use crate::error::{Error, Result};
use crate::serve::{Config, Event, Finish, Serving, Tick};
use kernmill_runtime::Tokenizer;
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::io::BufRead;
use std::path::Path;
use std::time::Instant;

/// What a batch did.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct BatchStats {
    /// Requests in the input.
    pub requests: u64,
    /// Requests that had answers before.
    pub skipped: u64,
    /// Requests that could not be served; their lines of the output say why.
    pub failed: u64,
    /// Tokens of the prompts that were served.
    pub prompt_tokens: u64,
    /// Tokens of prompts that were cached, and not run.
    pub cached_tokens: u64,
    /// Tokens among those that only the store on disk had.
    pub disk_tokens: u64,
    /// Tokens generated.
    pub generated: u64,
    /// Seconds from the first request to the last answer.
    pub seconds: f64,
    /// Seconds in which the engine ran.
    pub busy_seconds: f64,
    /// Sequences that lost their place for want of memory.
    pub preemptions: u64,
    /// Prompts that were found in the prefix cache, in part or all but their last token.
    pub hits: u64,
    /// Hits that were computed anew and compared.
    pub verified: u64,
    /// Hits that were to be compared, and had no room for it.
    pub unverified: u64,
}

impl BatchStats {
    /// Tokens run per second: those of prompts that were not cached, and generated ones.
    pub fn rate(&self) -> f64 {
        let tokens = self.prompt_tokens - self.cached_tokens + self.generated;
        if self.seconds > 0.0 { tokens as f64 / self.seconds } else { 0.0 }
    }

    /// What was done in one line, without an end of line.
    pub fn line(&self) -> String {
        format!(
            "{} requests ({} answered before, {} failed): {} prompt tokens ({} cached), {} generated in {:.1} s, {:.1} tokens/s",
            self.requests,
            self.skipped,
            self.failed,
            self.prompt_tokens,
            self.cached_tokens,
            self.generated,
            self.seconds,
            self.rate()
        )
    }

    /// What was done as one JSON object.
    pub fn json(&self) -> Value {
        json!({
            "requests": self.requests,
            "skipped": self.skipped,
            "failed": self.failed,
            "prompt_tokens": self.prompt_tokens,
            "cached_tokens": self.cached_tokens,
            "disk_tokens": self.disk_tokens,
            "generated_tokens": self.generated,
            "preemptions": self.preemptions,
            "cache_hits": { "all": self.hits, "verified": self.verified, "unverified": self.unverified },
            "seconds": { "all": self.seconds, "busy": self.busy_seconds },
            "tokens_per_second": self.rate(),
        })
    }
}

/// What a batch is run with.
#[derive(Clone, Debug)]
pub struct BatchOptions {
    /// Sequences that run at once.
    pub parallel: u32,
    /// Tokens generated where a request does not say how many.
    pub max_tokens: u32,
    /// How many of every hundred prompts that are found in the prefix cache are computed anew and compared
    /// ([`Serving::verify_hits`]).
    pub verify_cache: f64,
    /// Tokens that end a text.
    pub end_tokens: Vec<u32>,
}

impl BatchOptions {
    /// Sequences that the engine is to have: those that run, and one to compare with.
    pub fn sequences(&self) -> u32 {
        self.parallel + u32::from(self.verify_cache > 0.0)
    }
}

/// Told of every request that has ended; whether to go on. What is not answered then is left for the next
/// time.
pub type OnProgress<'a> = dyn FnMut(&BatchStats) -> bool + 'a;

/// Reads requests from `input`, one a line, and writes their answers to `output`. Requests are taken up as
/// fast as they are read, `parallel` of them run at once. `input_name` is for messages.
///
/// # Errors
/// When the input cannot be read, the output cannot be written, or the engine fails; when a prompt that is
/// compared has other bits in the prefix cache. A request that cannot be
/// served is no error: its line in the output says why.
pub fn run(
    engine: kernmill_runtime::Engine,
    input: &mut dyn BufRead,
    input_name: &Path,
    output: &mut Answers,
    options: &BatchOptions,
    on_progress: &mut OnProgress<'_>,
) -> Result<BatchStats> {
    let config = Config {
        max_sequences: options.parallel,
        max_queue: u32::MAX / 4,
        max_wait: [None; 3],
        ..Config::default()
    };
    let mut serving = Serving::new(engine, config)?;
    serving.verify_hits(options.verify_cache)?;
    let start = Instant::now();
    let mut stats = BatchStats::default();
    let mut waiting = BTreeMap::new();
    // Names of this input: each answer must have one of its own.
    let mut names = BTreeSet::new();
    let mut reader = Reader { input, name: input_name, number: 0 };
    let mut is_read = false;
    loop {
        // A few more than can run: what is read early only takes memory.
        while !is_read && serving.len() < 4 * options.parallel as usize {
            let Some((number, text)) = reader.next()? else {
                is_read = true;
                break;
            };
            stats.requests += 1;
            let line = match BatchLine::parse(&text, number) {
                Ok(line) if !names.insert(line.custom_id.clone()) => {
                    Err(line.fault(number, "another request has this name: give each one of its own"))
                }
                parsed => parsed,
            };
            let line = match line {
                Ok(line) if output.has(&line.custom_id) => {
                    stats.skipped += 1;
                    continue;
                }
                Ok(line) => line,
                Err(error) => {
                    if output.has(&error.custom_id) {
                        stats.skipped += 1;
                    } else {
                        stats.failed += 1;
                        output.write(&error_line(&error.custom_id, &error.message))?;
                    }
                    continue;
                }
            };
            let tokenizer = serving.engine().tokenizer()?;
            let request =
                line.request(tokenizer, options).map_err(|message| (line.custom_id.clone(), message));
            let submitted = request.and_then(|request| {
                serving.submit(request).map_err(|error| (line.custom_id.clone(), error.to_string()))
            });
            match submitted {
                Ok(id) => drop(waiting.insert(id, line)),
                Err((custom_id, message)) => {
                    stats.failed += 1;
                    output.write(&error_line(&custom_id, &message))?;
                }
            }
        }
        if serving.is_empty() {
            break;
        }
        let mut ended = Vec::new();
        let tick = serving.tick(&mut |id, event| {
            if let Event::Done(answer) = event {
                ended.push((id, answer));
            }
        })?;
        for (id, answer) in ended {
            let Some(line) = waiting.remove(&id) else { continue };
            match &answer.finish {
                Finish::Failed(why) => {
                    stats.failed += 1;
                    output.write(&error_line(&line.custom_id, why))?;
                    if serving.stats().mismatches > 0 {
                        return Err(Error::Work(format!("`{}`: {why}", line.custom_id)));
                    }
                }
                Finish::Ended(reason) if answer.tokens.is_empty() => {
                    stats.failed += 1;
                    output.write(&error_line(&line.custom_id, &reason.to_string()))?;
                }
                _ => {
                    stats.prompt_tokens += u64::from(answer.prompt_tokens);
                    stats.cached_tokens += u64::from(answer.cached_tokens);
                    stats.disk_tokens += u64::from(answer.disk_tokens);
                    output.write(&answer_line(&line, &answer))?;
                }
            }
            let served = serving.stats();
            stats.generated = served.generated;
            stats.preemptions = served.preemptions;
            (stats.hits, stats.verified, stats.unverified) =
                (served.hits, served.verified, served.unverified);
            stats.busy_seconds = served.busy.as_secs_f64();
            stats.seconds = start.elapsed().as_secs_f64();
            if !on_progress(&stats) {
                serving.save_cache();
                return Ok(stats);
            }
        }
        if tick == Tick::Idle(None) && !serving.is_empty() {
            let what = "the scheduler has requests and nothing to run (bug: please report it)";
            return Err(Error::Work(what.to_owned()));
        }
    }
    stats.seconds = start.elapsed().as_secs_f64();
    serving.save_cache();
    Ok(stats)
}

/// Opens a file of requests; `-` is standard input.
///
/// # Errors
/// When the file cannot be opened.
pub fn open_requests(path: &Path) -> Result<Box<dyn BufRead>> {
    if path == Path::new("-") {
        return Ok(Box::new(std::io::stdin().lock()));
    }
    let opened = std::fs::File::open(path);
    let what = |error| Error::input(path, format!("{error}: give a file with a request on every line"));
    Ok(Box::new(std::io::BufReader::new(opened.map_err(what)?)))
}

/// The lines of the input.
struct Reader<'a> {
    input: &'a mut dyn BufRead,
    name: &'a Path,
    number: usize,
}

/// Bytes of a line at most: a prompt of the longest context takes less.
const LONGEST_LINE: u64 = 64 << 20;

impl Reader<'_> {
    /// The next line that is not empty, and its number, counted from 1.
    fn next(&mut self) -> Result<Option<(usize, String)>> {
        loop {
            let mut bytes = Vec::new();
            let mut limited = std::io::Read::take(&mut *self.input, LONGEST_LINE);
            let count = limited.read_until(b'\n', &mut bytes).map_err(Error::read(self.name))?;
            if count == 0 {
                return Ok(None);
            }
            self.number += 1;
            if count as u64 == LONGEST_LINE && bytes.last() != Some(&b'\n') {
                let what = format!("line {} is longer than {LONGEST_LINE} bytes", self.number);
                return Err(Error::input(self.name, what));
            }
            // What is no UTF-8 is no JSON: the line's own error says so.
            let text = String::from_utf8_lossy(&bytes).trim().to_owned();
            if !text.is_empty() {
                return Ok(Some((self.number, text)));
            }
        }
    }
}

/// The tokens of a text, at most one more than fits `context`.
pub(crate) fn encode(tokenizer: Option<&Tokenizer>, text: &str) -> std::result::Result<Vec<u32>, String> {
    let tokenizer =
        tokenizer.ok_or("the model has no tokenizer: give token ids in `prompt`, such as [1, 2, 3]")?;
    tokenizer.encode(text, true).map_err(|error| error.to_string())
}
