//! An engine on which a schedule runs, and what must be true of it after every step.

use super::beside::{BLOCK, CHUNK, CONTENTS, CONTEXT, Counts, Fresh, Round, Rows, SEQUENCES, Texts, Uses};
use fastrand::Rng;
use kernmill_kv_store::{Store, StoreOptions};
use kernmill_runtime::kv::KvError;
use kernmill_runtime::pool::PoolConfig;
use kernmill_runtime::{
    AdapterUse, Engine, EngineConfig, EngineError, KvBudget, LogitRow, LogitRows, PlanImage, SeqId,
    SequenceTokens, Steps,
};
use std::collections::HashSet;
use std::path::Path;
use tempfile::TempDir;

/// A sequence under way.
struct Running {
    id: SeqId,
    /// Adapters that it asks for: a bit for each name.
    asks: usize,
    uses: Uses,
    /// `None`: it takes no part in the cache.
    tenant: Option<u8>,
    /// All that it is to hold one day, and the logits after each token.
    text: Vec<u32>,
    rows: Rows,
    /// Tokens that it holds.
    done: usize,
    /// Place of these tokens in the model beside.
    place: u32,
}

/// An engine on which a schedule runs, and what must be true of it.
pub struct World<'a> {
    image: &'a PlanImage,
    round: Round,
    rng: Rng,
    engine: Engine,
    fresh: &'a mut Fresh,
    texts: Texts,
    running: Vec<Running>,
    /// Texts that others may begin with.
    stems: Vec<Vec<u32>>,
    /// Contents of the two names.
    named: [usize; 2],
    all: [usize; 2],
    disk: Option<TempDir>,
    counts: Counts,
}

fn name(n: usize) -> &'static str {
    ["x", "y"][n]
}

/// An engine of a round, with the store in `disk` if there is one.
fn engine(image: &PlanImage, round: Round, disk: Option<&Path>) -> Engine {
    let config = EngineConfig {
        pool: PoolConfig { threads: Some(1), ..PoolConfig::default() },
        context: Some(CONTEXT as u32),
        sequences: SEQUENCES as u32,
        chunk: Some(CHUNK as u32),
        kv: KvBudget::Bytes(round.budget),
        eviction: round.eviction,
    };
    let mut engine = Engine::new(image, config).unwrap();
    if let Some(disk) = disk {
        // Small enough that the store evicts too.
        let options =
            StoreOptions { reserve: 0, segment_bytes: 1 << 16, limit: 1 << 20, ..StoreOptions::default() };
        let layout = engine.kv_layout(&[27; 32]);
        engine.keep_on_disk(Store::open(disk, options).unwrap(), layout);
    }
    engine
}

impl World<'_> {
    pub fn new<'a>(image: &'a PlanImage, round: Round, fresh: &'a mut Fresh, seed: u64) -> World<'a> {
        let disk = round.has_disk.then(|| tempfile::tempdir().unwrap());
        let store = disk.as_ref().map(|disk| disk.path().join("store"));
        let engine = engine(image, round, store.as_deref());
        let all = engine.kv().blocks;
        let mut world = World {
            image,
            round,
            rng: Rng::with_seed(seed),
            engine,
            fresh,
            texts: Texts::default(),
            running: Vec::new(),
            stems: Vec::new(),
            named: [0, 1],
            all,
            disk,
            counts: Counts::default(),
        };
        (0..2).for_each(|n| world.load(n, n));
        let taken: u64 = all.iter().zip(world.engine.kv().block_bytes).map(|(n, of)| *n as u64 * of).sum();
        assert!(taken <= round.budget, "{taken} bytes of {}", round.budget);
        world
    }

    /// Ends the engine, whose cache goes to the disk, and makes another one that goes on with all sequences.
    fn restart(&mut self) {
        let Some(path) = self.disk.as_ref().map(|disk| disk.path().join("store")) else { return };
        for one in &self.running {
            self.engine.checkpoint(one.id).unwrap();
            self.engine.drop_sequence(one.id);
        }
        self.engine.save_cache().unwrap();
        self.count();
        // The store belongs to one engine at a time.
        let without = engine(self.image, self.round, None);
        drop(std::mem::replace(&mut self.engine, without));
        self.engine = engine(self.image, self.round, Some(&path));
        let named = self.named;
        named.into_iter().enumerate().for_each(|(n, contents)| self.load(n, contents));
        for Running { asks, tenant, text, done, .. } in std::mem::take(&mut self.running) {
            self.begin(asks, tenant, text, done.max(1));
        }
        self.counts.restarts += 1;
    }

    /// Adds what the engine has counted to what has happened.
    fn count(&mut self) {
        let stats = self.engine.prefix_stats();
        self.counts.lookups += stats.lookups as usize;
        self.counts.said_found += stats.found_tokens as usize;
        self.counts.evicted += (stats.evicted_blocks + stats.evicted_checkpoints) as usize;
    }

    /// Gives a name to other contents. Sequences that run keep theirs.
    fn load(&mut self, n: usize, contents: usize) {
        let adapter = self.fresh.adapter(&self.engine, contents);
        self.engine.adapter_store_mut().insert(name(n), adapter).unwrap();
        self.named[n] = contents;
    }

    /// Tokens in which prefixes repeat: two values of one of three alphabets, and now and then another.
    fn words(&mut self, most: usize) -> Vec<u32> {
        let rng = &mut self.rng;
        let alphabet = rng.u32(..3) * 11;
        let count = rng.usize(1..=most);
        let token = |_| if rng.u32(..40) == 0 { rng.u32(..96) } else { alphabet + rng.u32(..2) };
        (0..count).map(token).collect()
    }

    /// A text that may begin as another did.
    fn text(&mut self) -> Vec<u32> {
        let mut text = Vec::new();
        if !self.stems.is_empty() && self.rng.u32(..5) > 0 {
            text = self.stems[self.rng.usize(..self.stems.len())].clone();
            if self.rng.bool() {
                text.truncate(self.rng.usize(..=text.len()));
            }
        }
        let most = [8, 60, 200][self.rng.usize(..3)];
        text.extend(self.words(most));
        text.truncate(CONTEXT);
        text
    }

    /// Starts a sequence that is to hold `text`, whose prompt is the first `prompt` tokens of it.
    fn begin(&mut self, asks: usize, tenant: Option<u8>, text: Vec<u32>, prompt: usize) -> usize {
        let asked: Vec<usize> = (0..2).filter(|n| asks >> n & 1 == 1).collect();
        // The second name is asked for at half its weight.
        let ask = |n: &usize| AdapterUse { name: name(*n).to_owned(), weight: [1.0, 0.5][*n] };
        let adapters: Vec<AdapterUse> = asked.iter().map(ask).collect();
        let uses: Uses = asked.iter().map(|n| (self.named[*n], 2 - *n as u8)).collect();
        let rows = self.fresh.rows(&uses, &text);
        let (id, found) = match tenant {
            None => (self.engine.create_with(&adapters).unwrap(), 0),
            Some(tenant) => {
                let prompt = &text[..prompt];
                let salt = [tenant; 32];
                let foretold = self.engine.cached_tokens(prompt, &adapters, salt);
                let begun = self.engine.begin(prompt, &adapters, salt).unwrap();
                let found = begun.cached_tokens as usize;
                let most = self.texts.longest(&uses, tenant, prompt);
                assert!(found < prompt.len(), "the last token is left to be run");
                assert!(found <= most, "{found} tokens are found, {most} have ever been there");
                let from_disk = begun.disk_tokens as usize;
                // A combination that is made only now is not known before. Where a prefix comes back from the
                // disk, a block in memory that goes on behind it may have a part of the next tokens.
                let more = if from_disk > 0 { BLOCK - 1 } else { 0 };
                assert!(asks > 1 || foretold as usize + more >= found, "{foretold} {begun:?}");
                assert!(from_disk == 0 || self.disk.is_some());
                self.counts.from_disk += from_disk;
                self.counts.begun += 1;
                self.counts.found += found;
                (begun.sequence, found)
            }
        };
        let place = tenant.map_or(0, |tenant| self.texts.add(&uses, tenant, &text[..found]));
        self.running.push(Running { id, asks, uses, tenant, text, rows, done: found, place });
        found
    }

    /// Drops a sequence after a checkpoint, and begins it again at once: nothing of it is lost.
    fn preempt(&mut self, at: usize) {
        let Running { id, asks, tenant, text, done, uses, .. } = self.running.swap_remove(at);
        self.engine.checkpoint(id).unwrap();
        self.engine.drop_sequence(id);
        let now: Uses = self.running_uses(asks);
        let prompt = self.rng.usize(done..=text.len()).max(1);
        let known = tenant.map_or(0, |tenant| self.texts.longest(&uses, tenant, &text[..prompt - 1]));
        let found = self.begin(asks, tenant, text, prompt);
        // Blocks from the disk take room from those in memory.
        if tenant.is_some() && uses == now && prompt > done && self.disk.is_none() {
            assert!((done..=known).contains(&found), "{found} of {done}, {known} known");
            self.counts.found_again += found;
        }
    }

    /// The contents of the names that are asked for, as they are now.
    fn running_uses(&self, asks: usize) -> Uses {
        (0..2).filter(|n| asks >> n & 1 == 1).map(|n| (self.named[n], 2 - n as u8)).collect()
    }

    /// The text that a fork or a shorter sequence goes on with: the same, or another.
    fn other_end(&mut self, of: &[u32], uses: &Uses, kept: usize) -> (Vec<u32>, Rows) {
        let mut text = of.to_vec();
        if self.rng.bool() {
            text.truncate(kept);
            text.extend(self.words(60));
            text.truncate(CONTEXT);
        }
        let rows = self.fresh.rows(uses, &text);
        (text, rows)
    }

    /// A position up to which a sequence could be forked or cut.
    fn position(&mut self, done: usize) -> usize {
        match self.rng.u32(..4) {
            0 => done,
            1 => self.rng.usize(..=done),
            _ => done.saturating_sub(self.rng.usize(..20)),
        }
    }

    /// Whether going back to a position worked; its window may be gone.
    fn went(&mut self, result: Result<(), EngineError>, position: usize, done: usize) -> bool {
        match result {
            Ok(()) => true,
            Err(EngineError::Kv(KvError::Forgotten { .. })) if position < done => {
                self.counts.forgotten += 1;
                false
            }
            Err(error) => panic!("{position} of {done}: {error}"),
        }
    }

    /// Whether the next step changes which sequences there are.
    pub fn changes(&mut self) -> bool {
        self.counts.most = self.counts.most.max(self.running.len());
        self.running.is_empty() || self.rng.u32(..5) < 2
    }

    /// Begins, forks, cuts or ends a sequence, or loads an adapter.
    pub fn change(&mut self) {
        let has_room = self.running.len() < SEQUENCES;
        let at = self.rng.usize(..self.running.len().max(1));
        let is_there = at < self.running.len();
        match self.rng.u32(..64) {
            0 => {
                let (n, contents) = (self.rng.usize(..2), self.rng.usize(..CONTENTS.len()));
                self.load(n, contents);
            }
            1..=8 if is_there && has_room => {
                let Running { id, done, asks, tenant, .. } = self.running[at];
                let position = self.position(done);
                let mut fork = None;
                let result = self.engine.fork(id, position as u32).map(|id| fork = Some(id));
                self.went(result, position, done);
                if let Some(id) = fork {
                    let (text, uses) = (self.running[at].text.clone(), self.running[at].uses.clone());
                    let (text, rows) = self.other_end(&text, &uses, position);
                    let place = tenant.map_or(0, |tenant| self.texts.add(&uses, tenant, &text[..position]));
                    self.running.push(Running { id, asks, uses, tenant, text, rows, done: position, place });
                }
            }
            9..=14 if is_there => {
                let Running { id, done, .. } = self.running[at];
                let position = self.position(done);
                let result = self.engine.truncate(id, position as u32);
                if self.went(result, position, done) {
                    let (text, uses) = (self.running[at].text.clone(), self.running[at].uses.clone());
                    let (text, rows) = self.other_end(&text, &uses, position);
                    let tenant = self.running[at].tenant;
                    let place = tenant.map_or(0, |tenant| self.texts.add(&uses, tenant, &text[..position]));
                    let one = &mut self.running[at];
                    (one.text, one.rows, one.done, one.place) = (text, rows, position, place);
                }
            }
            15..=18 if is_there => self.engine.checkpoint(self.running[at].id).unwrap(),
            // It is cancelled.
            19..=20 if is_there => self.engine.drop_sequence(self.running.swap_remove(at).id),
            21..=27 if is_there => self.preempt(at),
            28..=30 if is_there => self.end_turn(at),
            31 if self.rng.u32(..3) == 0 => self.restart(),
            _ if has_room => {
                let text = self.text();
                let prompt = self.rng.usize(text.len().div_ceil(2)..=text.len());
                let asks = [0, 0, 1, 2, 3][self.rng.usize(..5)];
                let tenant = (self.rng.u32(..10) > 0).then(|| self.rng.u8(..3));
                self.begin(asks, tenant, text, prompt);
            }
            _ => {}
        }
    }

    /// A turn ends: its text begins the next prompt.
    fn end_turn(&mut self, at: usize) {
        let one = self.running.swap_remove(at);
        self.engine.checkpoint(one.id).unwrap();
        self.engine.drop_sequence(one.id);
        self.stems.push(one.text[..one.done].to_vec());
        self.stems.drain(..self.stems.len().saturating_sub(40));
    }

    /// Sequences that hold all of their texts get longer ones, or end.
    fn renew(&mut self) {
        for at in (0..self.running.len()).rev() {
            let one = &self.running[at];
            if one.done < one.text.len() {
                continue;
            }
            if one.text.len() == CONTEXT || self.rng.u32(..3) == 0 {
                self.end_turn(at);
                continue;
            }
            let mut text = std::mem::take(&mut self.running[at].text);
            text.extend(self.words(60));
            text.truncate(CONTEXT);
            let one = &mut self.running[at];
            (one.rows, one.text) = (self.fresh.rows(&one.uses, &text), text);
        }
    }

    /// Appends tokens to several sequences, and compares the logits.
    pub fn step(&mut self) {
        self.renew();
        let (rng, running) = (&mut self.rng, &mut self.running);
        rng.shuffle(running);
        // One run of the program, or as many as it takes.
        let is_one_run = rng.u32(..3) > 0;
        let mut room = if is_one_run { CHUNK } else { rng.usize(1..400) };
        let mut batch = Vec::new();
        for (n, one) in running.iter().enumerate().take(rng.usize(1..=24)) {
            let most = [1, 1, 1, 2, 3, 5, 17, 250][rng.usize(..8)];
            let count = (one.text.len() - one.done).min(room).min(rng.usize(1..=most));
            if count > 0 {
                batch.push((n, count, rng.u32(..8) == 0));
                room -= count;
            }
        }
        if batch.is_empty() {
            return;
        }
        let entry = |(n, count, all): &(usize, usize, bool)| {
            let one = &running[*n];
            let logits = if *all { LogitRows::All } else { LogitRows::Last };
            SequenceTokens {
                sequence: one.id,
                tokens: &one.text[one.done..one.done + count],
                logits,
                allowed: &[],
            }
        };
        let entries: Vec<SequenceTokens<'_>> = batch.iter().map(entry).collect();
        let before = self.engine.kv();
        let mut compared = 0;
        let mut compare = |entry: usize, token: usize, logits: &[f32]| {
            let one = &running[batch[entry].0];
            let at = one.done + token;
            let bits = logits.iter().map(|logit| logit.to_bits());
            assert!(bits.eq(one.rows[at].iter().copied()), "token {at} of {:?}: other bits", one.text);
            compared += 1;
        };
        let result = if is_one_run {
            let rows = std::sync::Mutex::new(Vec::new());
            let take = |_: usize, row: LogitRow<'_>| {
                rows.lock().unwrap().push((row.entry, row.token, row.logits.to_vec()));
            };
            let result = self.engine.step(&entries, &take);
            let rows = rows.into_inner().unwrap();
            rows.iter().for_each(|(entry, token, logits)| compare(*entry, *token, logits));
            result
        } else {
            self.engine.extend_in_order(&entries, &mut |row| compare(row.entry, row.token, row.logits))
        };
        self.counts.compared += compared;
        let is_done = match result {
            Ok(stats) => {
                assert_eq!(stats.tokens as usize, batch.iter().map(|(_, count, _)| count).sum::<usize>());
                true
            }
            Err(error) => {
                let error = if let EngineError::Entry { source, .. } = error { *source } else { error };
                assert!(matches!(error, EngineError::Kv(KvError::OutOfBlocks { .. })), "{error}");
                assert!(!is_one_run || self.engine.kv() == before, "a step that fails changes nothing");
                self.counts.refused += 1;
                false
            }
        };
        for (n, count, _) in batch {
            let one = &mut running[n];
            let to = self.engine.length(one.id).unwrap() as usize;
            let most = if is_one_run && !is_done { one.done } else { one.done + count };
            let least = if is_done { most } else { one.done };
            assert!((least..=most).contains(&to), "{to} of {least} to {most}");
            if one.tenant.is_some() {
                one.place = self.texts.go_on(one.place, &one.text[one.done..to]);
            }
            one.done = to;
        }
        if !is_done {
            let at = self.rng.usize(..self.running.len());
            let one = self.running.swap_remove(at);
            if self.rng.bool() {
                self.engine.checkpoint(one.id).unwrap();
            }
            self.engine.drop_sequence(one.id);
        }
    }

    /// Conditions that hold after every step.
    pub fn check(&self) {
        let now = self.engine.kv();
        assert_eq!(now.blocks, self.all);
        let blocks = |one: &Running| one.done.div_ceil(BLOCK);
        for kind in 0..2 {
            assert!(now.cached[kind] <= now.free[kind] && now.free[kind] <= self.all[kind], "{now:?}");
            let most = if kind == 0 { usize::MAX } else { self.engine.most_sliding_blocks() as usize + 8 };
            let used = self.all[kind] - now.free[kind];
            let wanted: usize = self.running.iter().map(|one| blocks(one).min(most)).sum();
            assert!(used <= wanted, "{used} blocks of kind {kind} are in use, {wanted} at most are wanted");
        }
    }

    /// Conditions on all sequences together: they hold what they say, and blocks of different texts are
    /// different ones.
    pub fn look(&self) {
        let mut whole = HashSet::new();
        for one in &self.running {
            assert_eq!(self.engine.length(one.id).unwrap() as usize, one.done);
            let ends = (1..=one.done / BLOCK).map(|n| n * BLOCK);
            whole.extend(ends.map(|end| (&one.uses, &one.text[..end])));
        }
        let used = self.all[0] - self.engine.kv().free[0];
        assert!(used >= whole.len(), "{used} blocks hold {} different beginnings", whole.len());
    }

    /// Ends all sequences: then each block can be had once, and no more than there are.
    pub fn end(mut self) -> Counts {
        self.look();
        self.running.drain(..).for_each(|one| self.engine.drop_sequence(one.id));
        assert_eq!(self.engine.kv().free, self.all, "every block can be had again");
        self.count();
        let Counts { begun, found, lookups, said_found, .. } = self.counts;
        assert_eq!((lookups, said_found), (begun, found));
        self.fill();
        self.counts
    }

    /// Takes all blocks: each can be had once, and there are as many as there were.
    fn fill(&mut self) {
        for _ in 0..SEQUENCES {
            let text: Vec<u32> = (0..CONTEXT).map(|_| self.rng.u32(..96)).collect();
            self.begin(0, None, text, CONTEXT);
        }
        let mut is_full = false;
        let pieces = (0..CONTEXT / BLOCK).flat_map(|_| 0..SEQUENCES);
        for at in pieces {
            let one = &mut self.running[at];
            let tokens = &one.text[one.done..one.done + BLOCK];
            let row = &one.rows[one.done + BLOCK - 1];
            let mut compare = |row_of: LogitRow<'_>| {
                let bits = row_of.logits.iter().map(|logit| logit.to_bits());
                assert!(bits.eq(row.iter().copied()), "a block that two sequences have");
            };
            match self.engine.extend_in_order(&[SequenceTokens::last(one.id, tokens)], &mut compare) {
                Ok(_) => one.done += BLOCK,
                Err(error) => {
                    assert!(matches!(error, EngineError::Kv(KvError::OutOfBlocks { .. })), "{error}");
                    is_full = true;
                    break;
                }
            }
        }
        let now = self.engine.kv();
        let held: usize = self.running.iter().map(|one| one.done / BLOCK).sum();
        assert_eq!(self.all[0] - now.free[0], held, "a block each");
        assert!(is_full && now.free.contains(&0), "{now:?}");
        self.running.drain(..).for_each(|one| self.engine.drop_sequence(one.id));
        assert_eq!(self.engine.kv().free, self.all, "every block can be had again");
    }
}
