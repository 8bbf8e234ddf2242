//! A plan in the making.

use crate::costs::StepLoad;
use crate::facts::{Class, RequestId};
use crate::memory::{BlockCounts, Demand, Memory, fits, least, minus, plus};
use crate::request::ScheduledRequest;
use crate::state::{PlannedEntry, SchedulerState};
use crate::step::{
    EndReason, EndedRequest, HeldRequest, HoldReason, PlannedStep, PreemptReason, Preempted, Started,
    StepEntry,
};
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

/// An entry, and the blocks that it takes.
#[derive(Clone, Copy, Debug)]
pub struct Placed {
    pub planned: PlannedEntry,
    pub blocks: BlockCounts,
    /// Blocks that the entry gives back and takes again: `blocks` are those besides.
    reused: BlockCounts,
}

/// The decisions so far.
pub struct Sheet<'m> {
    pub memory: &'m dyn Memory,
    pub now: f64,
    pub step: PlannedStep,
    /// Requests that run, those with the strongest claim to their places first.
    pub runners: Vec<u64>,
    /// Requests that run and are on their way in a step: nothing is decided about them.
    pub flying: Vec<u64>,
    pub placed: Vec<Placed>,
    /// All entries together.
    pub load: StepLoad,
    /// Blocks that are free or evictable before anything is dropped.
    before: BlockCounts,
    /// Blocks that become so because sequences are dropped.
    dropped: BlockCounts,
    /// Blocks that the entries take.
    taken: BlockCounts,
    /// Blocks of running requests that starting requests share. They do not become free when a running one
    /// gives them back.
    shared: BlockCounts,
    /// Requests that lost their places in this plan: they do not start again in it.
    lost: BTreeSet<u64>,
    /// Blocks that requests may still take up to what they were promised, once somebody has asked.
    promises: Option<BTreeMap<u64, BlockCounts>>,
}

/// The order of claims to a place: the weakest first.
fn place_order(request: &ScheduledRequest) -> (Reverse<Class>, Reverse<i32>, u64) {
    (Reverse(request.class), Reverse(request.priority), request.start)
}

impl<'m> Sheet<'m> {
    pub fn new(state: &SchedulerState, now: f64, memory: &'m dyn Memory) -> Sheet<'m> {
        let running = state.requests.iter().filter(|(_, request)| request.is_running);
        let (flying, mut runners): (Vec<u64>, Vec<u64>) =
            running.map(|(number, _)| *number).partition(|number| state.is_away(*number));
        runners.sort_by_key(|number| place_order(&state.requests[number]));
        Sheet {
            memory,
            now,
            step: PlannedStep::default(),
            runners,
            flying,
            placed: Vec::new(),
            load: StepLoad::default(),
            before: plus(memory.free(), memory.evictable()),
            dropped: [0; 2],
            taken: [0; 2],
            shared: [0; 2],
            lost: BTreeSet::new(),
            promises: None,
        }
    }

    /// Whether blocks are there besides those that the entries take.
    pub fn fits(&self, blocks: BlockCounts) -> bool {
        fits(plus(self.taken, blocks), self.there_with(self.dropped, self.shared))
    }

    /// Whether a request lost its place in this plan.
    pub fn has_lost(&self, number: u64) -> bool {
        self.lost.contains(&number)
    }

    /// Whether a request starts in this plan.
    pub fn has_started(&self, id: RequestId) -> bool {
        self.step.started.iter().any(|started| started.id == id)
    }

    /// Whether a piece of a request's prompt is in the step.
    pub fn has_piece(&self, id: RequestId) -> bool {
        self.placed.iter().any(|placed| placed.planned.is_prefill && placed.planned.entry.id == id)
    }

    /// Blocks that the entries take, those of some requests left out.
    pub fn taken_without(&self, left_out: &[u64]) -> BlockCounts {
        let left = self.placed.iter().filter(|placed| !left_out.contains(&placed.planned.number));
        left.fold([0; 2], |sum, placed| plus(sum, placed.blocks))
    }

    /// Whether this plan changed who runs, apart from starts.
    pub fn has_dropped(&self) -> bool {
        !self.lost.is_empty() || !self.step.ended.is_empty()
    }

    /// Ends a request.
    pub fn end(&mut self, state: &mut SchedulerState, number: u64, reason: EndReason) {
        if let Some(request) = state.remove(number) {
            if request.is_running {
                self.leave(number, &request);
            }
            let was_running = request.is_running;
            self.step.ended.push(EndedRequest { id: request.id, reason, was_running });
        }
    }

    /// Takes a request's place away.
    pub fn preempt(&mut self, state: &mut SchedulerState, number: u64, reason: PreemptReason) {
        let Some(request) = state.requests.get_mut(&number) else { return };
        self.leave(number, request);
        request.lose_place(reason);
        request.hold = Some(HoldReason::Preempted);
        self.lost.insert(number);
        self.step.preempted.push(Preempted { id: request.id, reason });
    }

    /// A sequence is dropped.
    fn leave(&mut self, number: u64, request: &ScheduledRequest) {
        self.runners.retain(|other| *other != number);
        if let Some(at) = self.placed.iter().position(|placed| placed.planned.number == number) {
            let placed = self.placed.remove(at);
            self.taken = minus(self.taken, placed.blocks);
            self.load =
                self.placed.iter().fold(StepLoad::default(), |load, placed| load.and(load_of(placed)));
        }
        self.dropped = plus(self.dropped, self.memory.held(request.id));
        if let Some(promises) = &mut self.promises {
            promises.remove(&number);
        }
    }

    /// Gives a request a sequence, for which `promise` is promised, and which shares some blocks of requests
    /// that run.
    pub fn start(
        &mut self,
        state: &mut SchedulerState,
        number: u64,
        promise: BlockCounts,
        shares: BlockCounts,
    ) {
        let start = state.starts;
        state.starts += 1;
        let Some(request) = state.requests.get_mut(&number) else { return };
        request.begin(self.memory.cached(request.id), start);
        self.step.started.push(Started { id: request.id, cached: request.computed });
        let order = place_order(request);
        let at = self.runners.partition_point(|other| place_order(&state.requests[other]) < order);
        self.runners.insert(at, number);
        self.promises(state).insert(number, promise);
        self.shared = plus(self.shared, shares);
    }

    /// Adds an entry of a request that runs: its next `tokens` known tokens.
    pub fn place(&mut self, state: &SchedulerState, number: u64, tokens: u32, demand: Demand) {
        let request = &state.requests[&number];
        let to = request.computed + tokens;
        let entry = StepEntry {
            id: request.id,
            adapter: request.adapter,
            from: request.computed,
            to,
            drafts: 0,
            samples: to == request.known,
        };
        let is_prefill = !request.is_decoding(state.config.max_forced);
        let planned = PlannedEntry { number, is_prefill, entry };
        let placed = Placed { planned, blocks: demand.net(), reused: demand.reused() };
        self.taken = plus(self.taken, placed.blocks);
        self.load = self.load.and(load_of(&placed));
        self.placed.push(placed);
    }

    /// Adds drafts to an entry, which then has the `demand` in all.
    pub fn add_drafts(&mut self, at: usize, drafts: u32, demand: Demand) {
        let placed = &mut self.placed[at];
        self.taken = plus(minus(self.taken, placed.blocks), demand.net());
        (placed.blocks, placed.reused) = (demand.net(), demand.reused());
        placed.planned.entry.drafts = drafts;
        let (tokens, depth) = (drafts, placed.planned.entry.to);
        self.load = self.load.and(StepLoad::piece(tokens, depth));
    }

    /// Notes why a request is not in the step.
    pub fn hold(&mut self, state: &mut SchedulerState, number: u64, reason: HoldReason, is_told: bool) {
        if let Some(request) = state.requests.get_mut(&number) {
            request.hold = Some(reason);
            if is_told {
                self.step.held.push(HeldRequest { id: request.id, reason });
            }
        }
    }

    /// Blocks that must be left for what was promised to those that run, some of them left out.
    pub fn promised(&mut self, state: &SchedulerState, left_out: &[u64]) -> BlockCounts {
        let promises = self.promises(state);
        let counted = promises.iter().filter(|(number, _)| !left_out.contains(number));
        counted.fold([0; 2], |sum, (_, blocks)| plus(sum, *blocks))
    }

    /// Free and evictable blocks, if some of those that run lost their places too, and if one more request
    /// started that shares blocks with those that run.
    pub fn there(&self, state: &SchedulerState, without: &[u64], shares: BlockCounts) -> BlockCounts {
        let ids = without.iter().filter_map(|number| state.requests.get(number)).map(|request| request.id);
        let dropped = ids.fold(self.dropped, |dropped, id| plus(dropped, self.memory.held(id)));
        self.there_with(dropped, plus(self.shared, shares))
    }

    /// Free and evictable blocks with those that are given back, less those that are shared.
    fn there_with(&self, dropped: BlockCounts, shared: BlockCounts) -> BlockCounts {
        let given_back = self.placed.iter().fold(dropped, |sum, placed| plus(sum, placed.reused));
        minus(plus(self.before, dropped), least(shared, given_back))
    }

    fn promises(&mut self, state: &SchedulerState) -> &mut BTreeMap<u64, BlockCounts> {
        let (runners, memory) = (self.runners.iter().chain(&self.flying), self.memory);
        let started: BTreeSet<_> = self.step.started.iter().map(|started| started.id).collect();
        self.promises.get_or_insert_with(|| {
            let requests = runners.map(|number| (*number, &state.requests[number]));
            let known = requests.filter(|(_, request)| !started.contains(&request.id));
            let growth = state.config.growth;
            known
                .map(|(number, request)| {
                    let tokens = request.promised(growth).saturating_sub(request.computed);
                    (number, memory.to_grow(request.id, tokens))
                })
                .collect()
        })
    }
}

/// The load that an entry adds to a step.
pub fn load_of(placed: &Placed) -> StepLoad {
    StepLoad::piece(placed.planned.entry.tokens(), placed.planned.entry.from)
}
