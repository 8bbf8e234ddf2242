//! One step of the engine, as the scheduler planned it.

use super::active::{Active, TextError};
use super::{Event, Finish, Serving, Token, tenant_salt};
use crate::error::Result;
use kernmill_runtime::kv::KvError;
use kernmill_runtime::sampler::SamplerError;
use kernmill_runtime::{Begun, EngineError, Entry, Guided, LogitRow, Logprobs, Sampler, SeqId, TokenMask};
use kernmill_scheduler::{Fault, Outcome, Report, RequestId, Step};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

/// What an entry of the plan becomes.
struct Part {
    id: RequestId,
    sequence: SeqId,
    /// Known tokens that run; none if all are cached.
    from: usize,
    to: usize,
    samples: bool,
}

/// A sampler on its way through a step, and what it chose.
struct Choice<'a> {
    sampler: &'a mut Sampler,
    allowed: Option<&'a TokenMask>,
    /// Tokens before the one that is chosen.
    position: u64,
    samples: bool,
    /// Tokens before the part, and those that it runs.
    before: usize,
    tokens: usize,
    prompt: &'a [u32],
    prompt_logprobs: &'a mut [Option<Logprobs>],
    /// How many of the likeliest tokens are wanted.
    top: Option<u32>,
    chosen: Option<Chosen>,
}

/// A token with its logarithms, if they are wanted.
type Chosen = std::result::Result<(u32, Option<Logprobs>), SamplerError>;

impl Choice<'_> {
    /// Takes the logits after one of the part's tokens.
    fn take(&mut self, token: usize, logits: &[f32]) {
        let next = self.before + token + 1;
        let top = self.top.unwrap_or_default() as usize;
        if let (Some(place), Some(id)) = (self.prompt_logprobs.get_mut(next - 1), self.prompt.get(next)) {
            *place = self.sampler.logprobs(logits, *id, top).ok();
        }
        if !self.samples || token + 1 < self.tokens {
            return;
        }
        let token = self.sampler.choose(logits, self.position, self.allowed);
        token.iter().for_each(|token| self.sampler.accept(*token));
        self.chosen = Some(token.and_then(|id| match self.top {
            None => Ok((id, None)),
            Some(_) => Ok((id, Some(self.sampler.logprobs(logits, id, top)?))),
        }));
    }
}

impl Serving {
    /// Starts sequences, runs the entries, and hands out what they gave.
    pub(super) fn run(&mut self, step: &Step, on_event: &mut dyn FnMut(RequestId, Event)) -> Result<()> {
        for started in &step.started {
            self.start(started.id, on_event)?;
        }
        let mut parts = Vec::new();
        for entry in &step.entries {
            let Some(active) = self.active.get(&entry.id) else { continue };
            let Some(sequence) = active.sequence else { continue };
            // More may be cached than the plan knew; with less, the next plan goes on.
            let from = self.engine.length(sequence)? as usize;
            if from < entry.from as usize {
                self.scheduler.found(entry.id, from as u32);
                continue;
            }
            let to = (entry.to as usize).max(from);
            parts.push(Part { id: entry.id, sequence, from, to, samples: entry.samples });
        }
        let start = (self.clock)();
        let chosen = match self.step(&parts) {
            Ok(chosen) => chosen,
            Err(error) => return self.failed(&parts, error, on_event),
        };
        let now = (self.clock)();
        let took = now.saturating_sub(start);
        self.stats.steps += 1;
        self.stats.busy += took;
        let running = || parts.iter().filter(|part| part.from < part.to);
        let is_decode = running().all(|part| part.samples && part.to - part.from == 1);
        let since = self.stepped.replace(now).unwrap_or(start);
        self.stats.note(running().count(), is_decode, now.saturating_sub(since));
        self.stats.tokens += parts.iter().map(|part| (part.to - part.from) as u64).sum::<u64>();
        let mut outcomes = Vec::new();
        for (part, choice) in parts.iter().zip(chosen) {
            outcomes.push(self.outcome(part, choice, now, on_event));
        }
        self.scheduler.report(now, &Report { took, outcomes, fault: None });
        Ok(())
    }

    /// Gives a request a sequence, with what the cache has. That may be less than the plan counts on: another
    /// start of this plan has taken room from the cache, or the disk has failed.
    fn start(&mut self, id: RequestId, on_event: &mut dyn FnMut(RequestId, Event)) -> Result<()> {
        let now = (self.clock)();
        let Some(active) = self.active.get_mut(&id) else { return Ok(()) };
        active.queued.get_or_insert(now.saturating_sub(active.arrived));
        if active.request.scores_prompt {
            // The cache has no logits of a prompt, so that all of it is computed.
            active.sequence = Some(self.engine.create_with(&active.request.adapters)?);
            return Ok(());
        }
        let tenant = tenant_salt(active.request.tenant);
        let Begun { sequence, cached_tokens, disk_tokens } =
            self.engine.begin(&active.known, &active.request.adapters, tenant)?;
        active.sequence = Some(sequence);
        let of_prompt = |tokens: u32| tokens.min(active.request.prompt.len() as u32);
        active.cached.get_or_insert([cached_tokens, disk_tokens].map(of_prompt));
        if cached_tokens > 0 { self.hit(id, on_event) } else { Ok(()) }
    }

    /// A start has found something in the cache: compares it, if it is one of those that are compared. Ends
    /// the request if the bits are others.
    ///
    /// # Errors
    /// When the engine fails for another reason than want of room.
    fn hit(&mut self, id: RequestId, on_event: &mut dyn FnMut(RequestId, Event)) -> Result<()> {
        self.stats.hits += 1;
        if !self.verifier.takes() {
            return Ok(());
        }
        let Some(active) = self.active.get(&id) else { return Ok(()) };
        let tenant = tenant_salt(active.request.tenant);
        match self.engine.verify_prefix(&active.known, &active.request.adapters, tenant) {
            Ok(true) => self.stats.verified += 1,
            Ok(false) => {
                self.stats.verified += 1;
                self.stats.mismatches += 1;
                let why = format!(
                    "request {}: what the prefix cache has of its {} tokens gives other logits than computing them (this \
                     is a defect of kernmill: please report it)",
                    id.0,
                    active.known.len()
                );
                self.scheduler.cancel(id);
                let now = (self.clock)();
                self.end(id, Finish::Failed(why), now, on_event);
            }
            Err(error) if is_want_of_room(&error) => self.stats.unverified += 1,
            Err(error) => return Err(error.into()),
        }
        Ok(())
    }

    /// Runs the parts; by part, the token that was chosen behind it.
    fn step(&mut self, parts: &[Part]) -> std::result::Result<Vec<Option<Chosen>>, EngineError> {
        let mut choices: Vec<Option<Mutex<Choice<'_>>>> = parts.iter().map(|_| None).collect();
        let mut entries = Vec::new();
        let mut places = Vec::new();
        // Samplers and tokens of different requests, borrowed at once.
        for (id, active) in &mut self.active {
            let Some(at) = parts.iter().position(|part| part.id == *id) else { continue };
            let part = &parts[at];
            if part.from == part.to {
                continue;
            }
            let logits = active.rows(part.from, part.samples);
            let tokens = &active.known[part.from..part.to];
            entries.push((at, Entry { sequence: part.sequence, tokens, logits }));
            choices[at] = Some(Mutex::new(Choice {
                sampler: &mut active.sampler,
                allowed: active.guided.as_ref().map(Guided::allowed),
                position: part.to as u64,
                samples: part.samples,
                before: part.from,
                tokens: tokens.len(),
                prompt: &active.request.prompt,
                prompt_logprobs: &mut active.prompt_logprobs,
                top: active.request.logprobs,
                chosen: None,
            }));
        }
        // The plan's order, which is that of adapters.
        entries.sort_by_key(|(at, _)| *at);
        let entries: Vec<Entry<'_>> = entries
            .into_iter()
            .map(|(at, entry)| {
                places.push(at);
                entry
            })
            .collect();
        if !entries.is_empty() {
            let take = |_: usize, row: LogitRow<'_>| {
                if let Some(choice) = &choices[places[row.entry]] {
                    let mut choice = choice.lock().unwrap_or_else(PoisonError::into_inner);
                    choice.take(row.token, row.logits);
                }
            };
            self.engine.step(&entries, &take)?;
        }
        let chosen =
            |choice: Mutex<Choice<'_>>| choice.into_inner().unwrap_or_else(PoisonError::into_inner).chosen;
        Ok(choices.into_iter().map(|choice| choice.and_then(chosen)).collect())
    }

    /// What became of a part: its token goes to the request, which may end.
    fn outcome(
        &mut self,
        part: &Part,
        choice: Option<Chosen>,
        now: Duration,
        on_event: &mut dyn FnMut(RequestId, Event),
    ) -> Outcome {
        let mut outcome = Outcome { id: part.id, tokens: 0, accepted: 0, drafts: 0, ended: false };
        let context = self.engine.context();
        let finish = match choice {
            None => return outcome,
            Some(Err(error @ SamplerError::NoneLeft)) => Some(Finish::Astray(error.to_string())),
            Some(Err(error)) => Some(Finish::Failed(error.to_string())),
            Some(Ok(chosen)) => {
                let Some(active) = self.active.get(&part.id) else { return outcome };
                if active.generated().is_empty() {
                    // The next turn of this text begins with this prompt. The sequence is there: no error.
                    let _ = self.engine.checkpoint(part.sequence);
                }
                // What must follow comes with it, and runs in the next step together.
                let mut next = Some(chosen);
                let mut finish = None;
                while let Some(chosen) = next.filter(|_| finish.is_none()) {
                    outcome.tokens += 1;
                    self.stats.generated += 1;
                    finish = self.push(part.id, chosen, context, now, on_event);
                    let forced = self.active.get_mut(&part.id).and_then(Active::next_forced);
                    next = forced.map(|token| (token, None));
                }
                finish
            }
        };
        if let Some(finish) = finish {
            outcome.ended = true;
            self.end(part.id, finish, now, on_event);
        }
        outcome
    }

    /// Adds a token to a request; why it ends, if it does.
    fn push(
        &mut self,
        id: RequestId,
        (token, logprobs): (u32, Option<Logprobs>),
        context: u32,
        now: Duration,
        on_event: &mut dyn FnMut(RequestId, Event),
    ) -> Option<Finish> {
        let tokenizer = self.engine.tokenizer().ok().flatten();
        let active = self.active.get_mut(&id)?;
        match active.push(token, tokenizer, context, now) {
            Ok((text, end)) => {
                on_event(id, Event::Token(Token { id: token, text, logprobs }));
                end.map(Finish::Stop)
            }
            Err(TextError::Guide(error)) => Some(Finish::Astray(error.to_string())),
            Err(error) => Some(Finish::Failed(error.to_string())),
        }
    }

    /// A step that has not run: a request at fault ends, and the next plan knows why it failed.
    fn failed(
        &mut self,
        parts: &[Part],
        error: EngineError,
        on_event: &mut dyn FnMut(RequestId, Event),
    ) -> Result<()> {
        let now = (self.clock)();
        let (entry, cause) = match &error {
            EngineError::Entry { entry, source } => (Some(*entry), &**source),
            other => ((parts.len() == 1).then_some(0), other),
        };
        if let EngineError::Kv(KvError::OutOfBlocks { .. }) = cause {
            let report = Report { fault: Some(Fault::OutOfMemory), ..Report::default() };
            self.scheduler.report(now, &report);
            return Ok(());
        }
        let ran: Vec<&Part> = parts.iter().filter(|part| part.from < part.to).collect();
        let Some(part) = entry.and_then(|entry| ran.get(entry)) else { return Err(error.into()) };
        let (id, why) = (part.id, cause.to_string());
        self.scheduler.report(now, &Report { fault: Some(Fault::Other), ..Report::default() });
        self.scheduler.cancel(id);
        self.end(id, Finish::Failed(why), now, on_event);
        Ok(())
    }
}

fn is_want_of_room(error: &EngineError) -> bool {
    match error {
        EngineError::Entry { source, .. } => is_want_of_room(source),
        EngineError::Kv(error) => {
            matches!(error, KvError::OutOfBlocks { .. } | KvError::NoFreeSequence { .. })
        }
        _ => false,
    }
}
