//! Puts a load on a target, and notes what happens when.

use super::plan::{Arrivals, Load};
use super::target::{LoadRequest, LoadTarget, RequestUpdate, Totals};
use kernmill::Result;
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

/// A request that has been answered.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Served {
    /// Whose request it was.
    pub tenant: u64,
    /// Tokens of the prompt.
    pub prompt: u32,
    /// Tokens of the prompt that were cached.
    pub cached: u32,
    /// Tokens of the answer.
    pub answer: u32,
    /// Seconds from the time when the request was due to its first token.
    pub first: f64,
    /// Seconds between tokens, in the mean; 0 for a single token.
    pub pace: f64,
    /// Seconds from the time when the request was due to its end.
    pub took: f64,
}

/// The latencies that an answer must keep to be good.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LatencyLimits {
    /// Seconds to the first token.
    pub first: f64,
    /// Seconds between tokens, in the mean of an answer.
    pub pace: f64,
}

impl LatencyLimits {
    /// Limits in seconds, as options have them.
    pub fn new(first: f32, pace: f32) -> LatencyLimits {
        // The typed number, and not the nearest one of 32 bits.
        let typed = |seconds: f32| (f64::from(seconds) * 1e6).round() / 1e6;
        LatencyLimits { first: typed(first), pace: typed(pace) }
    }
}

/// How many requests ran and waited at some time.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LoadSample {
    /// Seconds since the start.
    pub at: f64,
    /// Requests that ran.
    pub running: u32,
    /// Requests that waited.
    pub waiting: u32,
}

/// The outcome of a load.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct LoadOutcome {
    /// Requests that were answered, in the order of their ends.
    pub served: Vec<Served>,
    /// Seconds between the tokens of the answers.
    pub gaps: Vec<f64>,
    /// Requests that were refused, and why.
    pub rejected: BTreeMap<String, u64>,
    /// Requests that were taken up and have no answer, and why.
    pub failed: BTreeMap<String, u64>,
    /// Requests that were under way at the end.
    pub unfinished: u64,
    /// Seconds in all.
    pub seconds: f64,
    /// The target's totals in this time.
    pub totals: Totals,
    /// The queue over time, in even steps.
    pub timeline: Vec<LoadSample>,
}

/// A request on its way.
struct PendingRequest {
    conversation: usize,
    due: Duration,
    first: Option<Duration>,
    last: Duration,
    tokens: u32,
}

/// Where a conversation is.
#[derive(Default)]
struct ConversationState {
    said: Vec<u32>,
    turn: usize,
}

/// Samples of the queue that are kept: with more, every second one goes.
const SAMPLES: usize = 2048;
/// Time between samples, at first.
const SAMPLE_EVERY: Duration = Duration::from_millis(5);

/// Runs a load to its end, for at most `limit`. `on_progress` is told often how many requests have ended
/// since the last time; what is under way when it answers `false` is given up.
///
/// # Errors
/// When the target cannot go on.
pub fn drive(
    target: &mut dyn LoadTarget,
    load: &Load,
    limit: Option<Duration>,
    on_progress: &mut dyn FnMut(u64) -> bool,
) -> Result<LoadOutcome> {
    let mut drive = Drive::new(load);
    let (start, before) = (target.now(), target.totals());
    let mut is_wanted = true;
    while is_wanted {
        let now = target.now().saturating_sub(start);
        if limit.is_some_and(|limit| now >= limit) {
            break;
        }
        drive.submit(target, now);
        let next = drive.due.first().map(|(at, _)| *at);
        if drive.flights.is_empty() && next.is_none() {
            break;
        }
        let until = next.into_iter().chain(limit).min().map(|until| start.saturating_add(until));
        let mut ended = drive.ended_at_submit();
        target.poll(until, &mut |id, at, news| {
            ended += u64::from(drive.take(id, at.saturating_sub(start), news));
        })?;
        drive.sample(target, start);
        is_wanted = on_progress(ended);
    }
    drive.flights.keys().for_each(|id| target.cancel(*id));
    let after = target.totals();
    let mut outcome = drive.outcome;
    outcome.unfinished = drive.flights.len() as u64;
    outcome.seconds = target.now().saturating_sub(start).as_secs_f64();
    outcome.totals = Totals {
        steps: after.steps - before.steps,
        busy: after.busy.saturating_sub(before.busy),
        preemptions: after.preemptions - before.preemptions,
    };
    Ok(outcome)
}

struct Drive<'a> {
    load: &'a Load,
    states: Vec<ConversationState>,
    /// Conversations whose next turn comes at a time.
    due: BTreeSet<(Duration, usize)>,
    /// The first conversation that no client has begun.
    next: usize,
    flights: BTreeMap<u64, PendingRequest>,
    outcome: LoadOutcome,
    /// Requests that have ended since progress was told, but for those that news told of.
    silent: u64,
    sample_every: Duration,
}

impl<'a> Drive<'a> {
    fn new(load: &'a Load) -> Drive<'a> {
        let count = load.conversations.len();
        let begun = match load.arrivals {
            Arrivals::Clients(clients) => count.min(clients as usize),
            Arrivals::Rate(_) | Arrivals::AsPlanned => count,
        };
        let at = |one: usize| load.conversations[one].turns.first().map(|turn| (turn.at, one));
        Drive {
            load,
            states: load.conversations.iter().map(|_| ConversationState::default()).collect(),
            due: (0..begun).filter_map(at).collect(),
            next: begun,
            flights: BTreeMap::new(),
            outcome: LoadOutcome::default(),
            silent: 0,
            sample_every: SAMPLE_EVERY,
        }
    }

    /// Submits the requests that are due.
    fn submit(&mut self, target: &mut dyn LoadTarget, now: Duration) {
        while let Some((due, place)) = self.due.first().copied().filter(|(due, _)| *due <= now) {
            self.due.pop_first();
            let conversation = &self.load.conversations[place];
            let state = &mut self.states[place];
            let turn = &conversation.turns[state.turn];
            state.said.extend(&turn.new);
            let ask = LoadRequest {
                prompt: &state.said,
                answer: turn.answer,
                adapter: conversation.adapter.as_deref(),
                tenant: conversation.tenant,
            };
            match target.submit(&ask) {
                Ok(id) => {
                    let flight =
                        PendingRequest { conversation: place, due, first: None, last: due, tokens: 0 };
                    self.flights.insert(id, flight);
                }
                Err(why) => {
                    *self.outcome.rejected.entry(why).or_default() += self.give_up(place, now);
                }
            }
        }
    }

    /// Ends a conversation; how many of its requests get no answer for that.
    fn give_up(&mut self, place: usize, now: Duration) -> u64 {
        let lost = (self.load.conversations[place].turns.len() - self.states[place].turn) as u64;
        self.silent += lost;
        self.leave(place, now);
        lost
    }

    /// Has the client of a conversation that is over begin the next.
    fn leave(&mut self, place: usize, now: Duration) {
        self.states[place].said = Vec::new();
        if self.next < self.load.conversations.len() {
            self.due.insert((now, self.next));
            self.next += 1;
        }
    }

    fn ended_at_submit(&mut self) -> u64 {
        std::mem::take(&mut self.silent)
    }

    /// Notes news of a request; whether it was answered.
    fn take(&mut self, id: u64, now: Duration, news: RequestUpdate) -> bool {
        let Some(flight) = self.flights.get_mut(&id) else { return false };
        let place = flight.conversation;
        match news {
            RequestUpdate::Token => {
                match flight.first {
                    None => flight.first = Some(now),
                    Some(_) => self.outcome.gaps.push(now.saturating_sub(flight.last).as_secs_f64()),
                }
                flight.last = now;
                flight.tokens += 1;
                return false;
            }
            RequestUpdate::Failed(why) => {
                self.flights.remove(&id);
                *self.outcome.failed.entry(why).or_default() += self.give_up(place, now);
                return false;
            }
            RequestUpdate::Done { tokens, cached } => {
                let first = flight.first.unwrap_or(now);
                let seconds = |from: Duration, to: Duration| to.saturating_sub(from).as_secs_f64();
                let gaps = flight.tokens.saturating_sub(1);
                let state = &mut self.states[place];
                self.outcome.served.push(Served {
                    tenant: self.load.conversations[place].tenant,
                    prompt: state.said.len() as u32,
                    cached,
                    answer: tokens.len() as u32,
                    first: seconds(flight.due, first),
                    pace: if gaps == 0 { 0.0 } else { seconds(first, flight.last) / f64::from(gaps) },
                    took: seconds(flight.due, now),
                });
                state.said.extend(tokens);
                state.turn += 1;
                self.flights.remove(&id);
            }
        }
        match self.load.conversations[place].turns.get(self.states[place].turn) {
            Some(turn) => drop(self.due.insert((turn.at.max(now.saturating_add(turn.pause)), place))),
            None => self.leave(place, now),
        }
        true
    }

    /// Notes the queue, if it is time to.
    fn sample(&mut self, target: &dyn LoadTarget, start: Duration) {
        let at = target.now().saturating_sub(start).as_secs_f64();
        let timeline = &mut self.outcome.timeline;
        if timeline.last().is_some_and(|last| at < last.at + self.sample_every.as_secs_f64()) {
            return;
        }
        let [running, waiting] = target.queue();
        timeline.push(LoadSample { at, running, waiting });
        if timeline.len() >= SAMPLES {
            let mut n = 0;
            timeline.retain(|_| {
                n += 1;
                n % 2 == 1
            });
            self.sample_every *= 2;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::conversation::{ConversationRequest, LoadConversation};
    use super::super::mix::Mix;
    use super::super::target::OnNews;
    use super::*;

    /// Answers in virtual time: a slot reads a prompt in a second and makes two tokens a second. There are
    /// `slots`; the others wait, at most `most` in all.
    struct Scripted {
        now: Duration,
        slots: usize,
        most: usize,
        next: u64,
        /// Number, when the next token comes, tokens made and wanted, length of the prompt.
        running: Vec<(u64, Duration, u32, u32, u32)>,
        waiting: Vec<(u64, u32, u32)>,
        prompts: Vec<Vec<u32>>,
        cancelled: Vec<u64>,
    }

    fn scripted(slots: usize, most: usize) -> Scripted {
        Scripted {
            now: Duration::from_secs(1000),
            slots,
            most,
            next: 0,
            running: Vec::new(),
            waiting: Vec::new(),
            prompts: Vec::new(),
            cancelled: Vec::new(),
        }
    }

    impl LoadTarget for Scripted {
        fn now(&self) -> Duration {
            self.now
        }

        fn submit(&mut self, ask: &LoadRequest<'_>) -> std::result::Result<u64, String> {
            self.prompts.push(ask.prompt.to_vec());
            if self.running.len() + self.waiting.len() >= self.most {
                return Err("the queue is full".to_owned());
            }
            self.next += 1;
            self.waiting.push((self.next, ask.answer, ask.prompt.len() as u32));
            Ok(self.next)
        }

        fn poll(&mut self, until: Option<Duration>, on_news: &mut OnNews<'_>) -> Result<()> {
            while self.running.len() < self.slots && !self.waiting.is_empty() {
                let (id, answer, prompt) = self.waiting.remove(0);
                self.running.push((id, self.now + Duration::from_secs(1), 0, answer, prompt));
            }
            let first = self.running.iter_mut().min_by_key(|one| (one.1, one.0));
            let Some(one) = first.filter(|one| until.is_none_or(|until| one.1 <= until)) else {
                self.now = until.expect("something is awaited").max(self.now);
                return Ok(());
            };
            self.now = one.1;
            (one.1, one.2) = (one.1 + Duration::from_millis(500), one.2 + 1);
            let (id, _, made, wanted, prompt) = *one;
            on_news(id, self.now, RequestUpdate::Token);
            if made == wanted {
                self.running.retain(|one| one.0 != id);
                let tokens = (0..made).map(|n| 1000 * id as u32 + n).collect();
                on_news(id, self.now, RequestUpdate::Done { tokens, cached: prompt / 2 });
            }
            Ok(())
        }

        fn cancel(&mut self, request: u64) {
            self.cancelled.push(request);
        }

        fn queue(&self) -> [u32; 2] {
            [self.running.len() as u32, self.waiting.len() as u32]
        }

        fn totals(&self) -> Totals {
            Totals { steps: self.next, busy: self.now, preemptions: 0 }
        }
    }

    fn conversation(tenant: u64, turns: &[(u64, u32)]) -> LoadConversation {
        let turn = |(at, answer): &(u64, u32)| ConversationRequest {
            at: Duration::from_secs(*at),
            pause: Duration::ZERO,
            new: vec![tenant as u32; 10],
            answer: *answer,
        };
        LoadConversation { tenant, adapter: None, turns: turns.iter().map(turn).collect() }
    }

    fn run(target: &mut Scripted, conversations: Vec<LoadConversation>, arrivals: Arrivals) -> LoadOutcome {
        let load = Load { conversations, arrivals, about: String::new() };
        drive(target, &load, None, &mut |_| true).unwrap()
    }

    #[test]
    fn times_count_from_when_a_request_is_due() {
        let mut target = scripted(1, 10);
        let all = vec![conversation(1, &[(0, 3)]), conversation(2, &[(1, 1)])];
        let outcome = run(&mut target, all, Arrivals::AsPlanned);
        // The second is due at 1 s, begins at 2 s when the first has ended, and has its token at 3 s.
        let of = |served: &Served| [served.first, served.pace, served.took];
        assert_eq!(outcome.served.iter().map(of).collect::<Vec<_>>(), [[1.0, 0.5, 2.0], [2.0, 0.0, 2.0]]);
        assert_eq!((outcome.gaps, outcome.seconds), (vec![0.5; 2], 3.0));
        assert_eq!(outcome.totals.busy, Duration::from_secs(3));
        assert_eq!((outcome.served[0].cached, outcome.served[0].answer), (5, 3));
    }

    #[test]
    fn a_turn_continues_all_that_was_said() {
        let mut target = scripted(2, 10);
        let outcome =
            run(&mut target, vec![conversation(7, &[(0, 2), (0, 1), (20, 1)])], Arrivals::AsPlanned);
        let lengths: Vec<u32> = outcome.served.iter().map(|served| served.prompt).collect();
        assert_eq!(lengths, [10, 22, 33]);
        let second = [&[7; 10][..], &[1000, 1001], &[7; 10]].concat();
        assert_eq!(target.prompts[1], second);
        assert_eq!(target.prompts[2], [&second[..], &[2000], &[7; 10]].concat());
        // The last turn waits for its time.
        assert_eq!(outcome.seconds, 21.0);
    }

    #[test]
    fn clients_wait_for_their_answers() {
        let mut target = scripted(10, 10);
        let all: Vec<LoadConversation> = (1..=6).map(|n| conversation(n, &[(0, 1)])).collect();
        let outcome = run(&mut target, all, Arrivals::Clients(2));
        // Two at once, a second each.
        assert_eq!((outcome.served.len(), outcome.seconds), (6, 3.0));
        assert!(outcome.timeline.iter().all(|sample| sample.running + sample.waiting <= 2));
        assert!(outcome.served.iter().all(|served| served.first == 1.0));
    }

    #[test]
    fn refused_requests_are_counted_and_clients_go_on() {
        let mut target = scripted(1, 1);
        let turns = [(0, 1), (0, 1)];
        let all = vec![conversation(1, &[(0, 1)]), conversation(2, &turns), conversation(3, &[(5, 1)])];
        let outcome = run(&mut target, all, Arrivals::AsPlanned);
        // The second turn of what is refused never comes.
        assert_eq!(outcome.rejected, BTreeMap::from([("the queue is full".to_owned(), 2)]));
        assert_eq!(outcome.served.iter().map(|served| served.tenant).collect::<Vec<_>>(), [1, 3]);
        let mut target = scripted(1, 0);
        let all: Vec<LoadConversation> = (1..=5).map(|n| conversation(n, &[(0, 1)])).collect();
        assert_eq!(run(&mut target, all, Arrivals::Clients(2)).rejected.values().sum::<u64>(), 5);
    }

    #[test]
    fn a_load_ends_early_with_what_there_is() {
        let load = |requests| Load::of_mix(&Mix::default(), Arrivals::Clients(4), requests, 50, 512, &[]);
        let mut target = scripted(4, 10);
        let outcome = drive(&mut target, &load(100), Some(Duration::from_secs(60)), &mut |_| true).unwrap();
        assert_eq!((outcome.seconds, outcome.unfinished), (60.0, 4));
        assert_eq!(target.cancelled.len(), 4);
        assert!((10..40).contains(&outcome.served.len()), "{}", outcome.served.len());
        let mut target = scripted(4, 10);
        let mut ended = 0;
        let on_progress = &mut |count| {
            ended += count;
            ended < 7
        };
        let outcome = drive(&mut target, &load(100), None, on_progress).unwrap();
        assert_eq!((outcome.served.len(), ended), (7, 7));
        // A load that is served at the same speed gives the same figures again.
        let again = || drive(&mut scripted(4, 10), &load(50), None, &mut |_| true).unwrap();
        assert_eq!(again(), again());
    }

    #[test]
    fn the_timeline_stays_small() {
        let mut target = scripted(1, 10_000);
        let all: Vec<LoadConversation> = (0..3000).map(|n| conversation(n, &[(n, 1)])).collect();
        let outcome = run(&mut target, all, Arrivals::AsPlanned);
        assert!((SAMPLES / 4..SAMPLES).contains(&outcome.timeline.len()), "{}", outcome.timeline.len());
        assert!(outcome.timeline.windows(2).all(|pair| pair[0].at < pair[1].at));
    }
}
