//! Many requests from a file, many answers to a file.
//!
//! A line of the input is a request, in OpenAI's batch format or a short form, with the body of a route of
//! the server: the route's own reader reads it, and its answer is what the route makes of it. A line of the
//! output is the answer to one of them, in the order in which they end. An answer is the text that its
//! request gets alone. A batch that was stopped goes on: answers that are there are not made again.

mod draft;
mod line;
mod options;
mod output;
mod session;
mod stats;

pub use options::BatchOptions;
pub use output::Answers;
pub use stats::BatchStats;

use crate::backend::BackendInfo;
use crate::lines::Lines;
use draft::{LineReader, PendingAnswer};
use kernmill::{Loaded, Result};
use kernmill_serve::EngineFigures;
use kernmill_serve::{
    self as serve, Answer, Listener, RequestEvent, SchedulerConfig, Serving, ServingThread, Ticket,
};
use line::BatchLine;
use output::{body_line, error_line};
use session::{BatchSession, SessionLine};
use std::collections::{BTreeMap, BTreeSet};
use std::io::BufRead;
use std::path::Path;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::Instant;

/// Told of every request that has ended; whether to go on. Requests without an answer are then left for the
/// next time.
pub type OnProgress<'a> = dyn FnMut(&BatchStats) -> bool + 'a;

/// Reads requests from `input`, one a line, and writes their answers to `output`. Requests are taken up as
/// fast as they are read, and many run at once. `input_name` is for messages.
///
/// # Errors
/// When the tokenizer or the input cannot be read, the output cannot be written, or the engine fails; when a
/// prompt that is compared has other bits in the prefix cache. A request that cannot be served is no error:
/// its line in the output says why.
pub fn run(
    loaded: Loaded,
    input: &mut dyn BufRead,
    input_name: &Path,
    output: &mut Answers,
    options: &BatchOptions,
    on_progress: &mut OnProgress<'_>,
) -> Result<BatchStats> {
    let config = SchedulerConfig {
        max_sequences: options.parallel,
        max_queue: u32::MAX / 4,
        max_wait: [None; 3],
        ..SchedulerConfig::default()
    };
    let reader = LineReader::new(&loaded, options)?;
    let serving = loaded.into_serving(config)?;
    let mut batch = BatchRun {
        thread: ServingThread::anywhere(serving),
        output,
        reader,
        start: Instant::now(),
        stats: BatchStats::default(),
        ended: channel(),
        begun: 0,
        running: BTreeMap::new(),
        names: BTreeSet::new(),
        sessions: BTreeMap::new(),
        held: 0,
    };
    let mut lines = Lines::new(input, input_name);
    let mut is_read = false;
    loop {
        // A few more than can run: what is read early only takes memory.
        while !is_read && batch.running.len() < 4 * options.parallel as usize && batch.held < MOST_HELD {
            match lines.read()? {
                Some((number, line)) => batch.read(&line, number)?,
                None => is_read = true,
            }
        }
        if batch.running.is_empty() {
            break;
        }
        // As long as something runs, its listener has a sender.
        let Some(ended) = batch.thread.wait_for(&batch.ended.1) else { break };
        batch.end(ended)?;
        batch.note_stats()?;
        if !on_progress(&batch.stats) {
            batch.thread.give(Serving::cancel_all);
            break;
        }
    }
    batch.note_stats()?;
    batch.thread.end();
    Ok(batch.stats)
}

/// Turns that wait for the ones before them, at most, while more lines are read.
const MOST_HELD: usize = 4096;

/// A batch on its way.
struct BatchRun<'a> {
    thread: ServingThread,
    output: &'a mut Answers,
    reader: LineReader,
    start: Instant,
    stats: BatchStats,
    /// Requests that have ended come here.
    ended: (Sender<EndedLine>, Receiver<EndedLine>),
    /// Requests that have begun.
    begun: u64,
    /// Requests that wait or run in the engine, by their number.
    running: BTreeMap<u64, (BatchLine, Ticket)>,
    /// Names of this input: each answer must have one of its own.
    names: BTreeSet<String>,
    sessions: BTreeMap<String, BatchSession>,
    /// Turns that wait for the ones before them.
    held: usize,
}

/// A request that has ended: its number, and the answer, or the reason for its failure.
struct EndedLine(u64, std::result::Result<(PendingAnswer, Box<Answer>), String>);

/// Makes an answer of what it hears.
struct AnswerWriter {
    number: u64,
    facts: Arc<BackendInfo>,
    /// Until the end.
    draft: Option<PendingAnswer>,
    ended: Sender<EndedLine>,
}

impl AnswerWriter {
    /// Tells the end, once.
    fn end(
        &mut self,
        with: impl FnOnce(PendingAnswer) -> std::result::Result<(PendingAnswer, Box<Answer>), String>,
    ) {
        if let Some(draft) = self.draft.take() {
            let _ = self.ended.send(EndedLine(self.number, with(draft)));
        }
    }
}

impl Listener for AnswerWriter {
    fn taken(&mut self, taken: serve::Result<()>) {
        if let Err(error) = taken {
            self.end(|_| Err(error.to_string()));
        }
    }

    fn hear(&mut self, event: RequestEvent) -> bool {
        match event {
            RequestEvent::Token(token) => {
                self.draft.as_mut().is_some_and(|draft| draft.take(&self.facts, token))
            }
            RequestEvent::Done(answer) => {
                self.end(|draft| Ok((draft, answer)));
                true
            }
        }
    }
}

impl Drop for AnswerWriter {
    fn drop(&mut self) {
        self.end(|_| Err("the engine has ended".to_owned()));
    }
}

impl BatchRun<'_> {
    /// Takes up a line of the input.
    fn read(&mut self, line: &[u8], number: usize) -> Result<()> {
        self.stats.requests += 1;
        let line = match BatchLine::parse(line, number) {
            Ok(line) if !self.names.insert(line.custom_id.clone()) => {
                Err(line.fault("another request has this name: give each one of its own"))
            }
            parsed => parsed,
        };
        match line {
            Ok(line) => {
                let is_answered = self.output.has(&line.custom_id);
                self.stats.skipped += u64::from(is_answered);
                match line.session().map(str::to_owned) {
                    Some(session) if is_answered => {
                        let answer = self.output.turn(&line.custom_id).map(<[u32]>::to_vec);
                        self.add_turn(session, SessionLine::Answered(line, answer))
                    }
                    Some(session) => self.add_turn(session, SessionLine::Asked(line)),
                    None if is_answered => Ok(()),
                    None => self.begin(line, &[]).map(drop),
                }
            }
            Err(error) => {
                if self.output.has(&error.custom_id) {
                    self.stats.skipped += 1;
                } else {
                    self.fail(&error.custom_id, &error.message)?;
                }
                match error.session {
                    Some(session) => self.add_turn(session, SessionLine::Unread(error.custom_id)),
                    None => Ok(()),
                }
            }
        }
    }

    /// Writes that a request cannot be served.
    fn fail(&mut self, custom_id: &str, why: &str) -> Result<()> {
        self.stats.failed += 1;
        self.output.write(&error_line(custom_id, why))
    }

    /// Submits a request behind the tokens before it. Returns the reason if it is refused, which is written.
    fn begin(&mut self, line: BatchLine, said: &[u32]) -> Result<Option<String>> {
        match self.reader.read(&line, said) {
            Ok((request, draft)) => {
                let (number, facts) = (self.begun, self.reader.facts().clone());
                self.begun += 1;
                let writer = AnswerWriter { number, facts, draft: Some(draft), ended: self.ended.0.clone() };
                self.running.insert(number, (line, self.thread.submit(request, writer)));
                Ok(None)
            }
            Err(why) => {
                let why = format!("line {}: {why}", line.number);
                self.fail(&line.custom_id, &why)?;
                Ok(Some(why))
            }
        }
    }

    fn add_turn(&mut self, name: String, turn: SessionLine) -> Result<()> {
        self.sessions.entry(name.clone()).or_default().turns.push_back(turn);
        self.held += 1;
        self.go_on(&name)
    }

    /// Takes up the turns of a session, as far as none of them has to wait.
    fn go_on(&mut self, name: &str) -> Result<()> {
        loop {
            let Some(session) = self.sessions.get_mut(name).filter(|session| !session.is_running) else {
                return Ok(());
            };
            let Some(turn) = session.turns.pop_front() else { return Ok(()) };
            self.held -= 1;
            let broken = match turn {
                SessionLine::Unread(id) => Some((id, "it is no request".to_owned())),
                SessionLine::Answered(line, None) => {
                    let what = "its line in the answers has none; delete the line to ask again".to_owned();
                    Some((line.custom_id, what))
                }
                SessionLine::Answered(line, Some(answer)) => {
                    let read = self.reader.read(&line, &session.said);
                    read.map(|(request, _)| session.said = [request.prompt, answer].concat())
                        .err()
                        .map(|why| (line.custom_id, why))
                }
                SessionLine::Asked(line) => match session.broken.clone() {
                    Some(why) => {
                        self.fail(&line.custom_id, &why)?;
                        None
                    }
                    None => {
                        let (id, said) = (line.custom_id.clone(), std::mem::take(&mut session.said));
                        let failure = self.begin(line, &said)?;
                        self.sessions.entry(name.to_owned()).and_modify(|session| {
                            session.said = said;
                            session.is_running = failure.is_none();
                        });
                        failure.map(|why| (id, why))
                    }
                },
            };
            if let Some((id, why)) = broken {
                self.break_off(name, &id, &why);
            }
        }
    }

    /// Has the later turns of a session fail.
    fn break_off(&mut self, name: &str, custom_id: &str, why: &str) {
        if let Some(session) = self.sessions.get_mut(name) {
            let reason =
                || format!("`{custom_id}`, an earlier turn of session `{name}`, has no answer: {why}");
            session.broken.get_or_insert_with(reason);
        }
    }

    /// Writes the answer to a request that has ended.
    fn end(&mut self, EndedLine(number, ended): EndedLine) -> Result<()> {
        let Some((line, _)) = self.running.remove(&number) else { return Ok(()) };
        let ended = ended.map_err(|why| (format!("line {}: {why}", line.number), Vec::new()));
        let made = ended.and_then(|(draft, answer)| {
            let said = draft.said(&answer);
            match draft.finish(self.reader.facts(), &answer, line.session()) {
                Ok(body) => Ok((body, answer, said)),
                Err(why) => Err((why, said)),
            }
        });
        let (failure, said) = match made {
            Err((why, said)) => {
                self.fail(&line.custom_id, &why)?;
                (Some(why), said)
            }
            Ok((body, answer, said)) => {
                self.stats.prompt_tokens += u64::from(answer.prompt_tokens);
                self.stats.cached_tokens += u64::from(answer.cached_tokens);
                self.stats.disk_tokens += u64::from(answer.disk_tokens);
                self.stats.answered += 1;
                self.stats.first_token_seconds += answer.first_token.unwrap_or_default().as_secs_f64();
                self.output.write(&body_line(&line.custom_id, body))?;
                (None, said)
            }
        };
        let Some(name) = line.session() else { return Ok(()) };
        if let Some(why) = failure {
            self.break_off(name, &line.custom_id, &why);
        }
        if let Some(session) = self.sessions.get_mut(name) {
            (session.is_running, session.said) = (false, said);
        }
        self.go_on(name)
    }

    fn note_stats(&mut self) -> Result<()> {
        let seen = self.thread.run(|serving| (serving.stats().clone(), EngineFigures::of(serving.engine())));
        let (served, engine) = seen?;
        let stats = &mut self.stats;
        stats.generated = served.generated;
        stats.served = served;
        stats.seconds = self.start.elapsed().as_secs_f64();
        stats.engine = Some(engine);
        Ok(())
    }
}
