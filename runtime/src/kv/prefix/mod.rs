//! The prefix cache: blocks that stay after their sequence has gone, found again by their tokens.
//!
//! The cache is a forest. A root stands for the model with certain adapters, any other node for a block of up
//! to 16 tokens that follows its parent's. A node holds a block of full layers. Sliding layers need only the
//! window before the position where a sequence goes on, so they are kept at *checkpoints*: positions for
//! which the nodes before them hold the blocks of sliding layers too. A prefix can be used up to any position
//! whose window is held, inside a block as well.
//!
//! What the cache gives is what computing gives, to the bit: the keys and values of a token depend on the
//! tokens before it and on the adapters, and on nothing else.

mod checkpoints;
mod evict;
mod heap;
mod leaving;
mod node;
mod policy;
mod restore;

pub use leaving::CachedBlock;
pub use policy::Eviction;
pub(super) use restore::PromptBlock;

use super::blocks::BlockPool;
use super::{BLOCK, UNMAPPED};
use checkpoints::Checkpoints;
use heap::Queue;
use leaving::Leaving;
use node::{BlockKey, NONE, Nodes, PrefixNode};
use policy::Policy;
use std::collections::HashMap;

/// Whose cached prompts a sequence finds.
///
/// ```
/// use kernmill_runtime::Tenant;
/// let tenant = Tenant { salt: *b"of one customer.", ..Tenant::from([7; 32]) };
/// assert_eq!(tenant.name, [7; 32]);
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Tenant {
    /// Name. Zeros are everybody: what these have cached is found by all, see [`crate::Engine::begin`]. A
    /// server derives it from the caller's key, never from the request: who can guess a prompt could
    /// otherwise ask whether it is cached.
    pub name: [u8; 32],
    /// Name of a separate cache, in which nothing of other names is found, not even what belongs to
    /// everybody. Zeros are the cache of all who name none.
    pub salt: [u8; 16],
}

impl From<[u8; 32]> for Tenant {
    fn from(name: [u8; 32]) -> Tenant {
        Tenant { name, salt: [0; 16] }
    }
}

/// Whose cached blocks a sequence may use, besides those that belong to everybody; and which adapters it has.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct CacheScope {
    /// Hash of the adapters' contents; zeros for none.
    pub adapters: [u8; 32],
    /// The tenant.
    pub tenant: Tenant,
}

/// The tenant whose cached blocks everybody may use.
pub const EVERYBODY: [u8; 32] = [0; 32];

/// Counts of the prefix cache since the engine was made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PrefixStats {
    /// Prompts that were looked up.
    pub lookups: u64,
    /// Tokens of these prompts.
    pub asked_tokens: u64,
    /// Tokens among them that were found, and not computed again.
    pub found_tokens: u64,
    /// Tokens among those that only a store on disk had.
    pub disk_tokens: u64,
    /// Blocks that were put into the cache, of full layers.
    pub stored_blocks: u64,
    /// Blocks of full layers that made way for others.
    pub evicted_blocks: u64,
    /// Checkpoints that made way for others.
    pub evicted_checkpoints: u64,
}

/// Where a sequence goes on in the cache.
#[derive(Clone, Copy, Debug)]
pub(super) struct PrefixMatch {
    /// Tokens that are cached.
    pub length: u32,
    /// Node of the last whole block among them, or the root.
    pub tail: u32,
}

/// The cached blocks of one engine.
#[derive(Debug)]
pub(super) struct PrefixCache {
    nodes: Nodes,
    by_key: HashMap<BlockKey, u32>,
    /// Nodes that could go: those without children that no sequence continues.
    leaves: Queue,
    leaf_policy: Policy,
    checkpoints: Checkpoints,
    /// Keys in view of the widest sliding layer; `None` without sliding layers.
    window: Option<u32>,
    /// Whether there are full layers.
    has_full: bool,
    /// The last prompt's nodes, from its first block on.
    path: Vec<u32>,
    stats: PrefixStats,
    leaving: Leaving,
}

impl PrefixCache {
    /// An empty cache for pools of so many blocks of each kind, and so many sequences.
    pub(super) fn new(
        blocks: [u32; 2],
        window: Option<u32>,
        context: u32,
        sequences: u32,
        eviction: Eviction,
    ) -> PrefixCache {
        // Without full layers a node may hold no block; there is a limit all the same.
        let most = if blocks[0] > 0 { blocks[0] } else { blocks[1].saturating_mul(8) };
        let nodes = 2 * most as usize + sequences as usize;
        PrefixCache {
            nodes: Nodes::new(nodes),
            by_key: HashMap::with_capacity(2 * nodes),
            leaves: Queue::new(nodes),
            leaf_policy: Policy::new(eviction),
            checkpoints: Checkpoints::new(if window.is_some() { nodes } else { 0 }, eviction),
            window,
            has_full: blocks[0] > 0,
            path: Vec::with_capacity(context.div_ceil(BLOCK) as usize),
            stats: PrefixStats::default(),
            leaving: Leaving::new(window.unwrap_or(0)),
        }
    }

    pub(super) fn stats(&self) -> PrefixStats {
        self.stats
    }

    /// Counts a prompt that was looked up, of which so many of `asked` tokens were found.
    pub(super) fn count_lookup(&mut self, asked: u64, found: u32) {
        self.stats.lookups += 1;
        self.stats.asked_tokens += asked;
        self.stats.found_tokens += u64::from(found);
    }

    /// Counts tokens that came from a store on disk.
    pub(super) fn count_restored(&mut self, tokens: u32) {
        self.stats.disk_tokens += u64::from(tokens);
    }

    /// First key that a query of sliding layers at `position` sees.
    fn lowest_key(&self, position: u32) -> u32 {
        self.window.map_or(position, |window| (position + 1).saturating_sub(window))
    }

    /// The longest prefix of `tokens` whose blocks are cached. Their nodes are [`PrefixCache::path`] then.
    pub(super) fn find(&mut self, scope: &CacheScope, tokens: &[u32]) -> PrefixMatch {
        let mut path = std::mem::take(&mut self.path);
        let found = self.search(&mut path, scope, tokens);
        self.path = path;
        let Some((root, reached)) = found else { return PrefixMatch { length: 0, tail: NONE } };
        for n in 0..self.path.len() {
            self.touch(self.path[n]);
        }
        if let Some(last) = self.path.last() {
            self.checkpoints.touch(&self.nodes, *last);
        }
        let whole = (reached / BLOCK) as usize;
        PrefixMatch { length: reached, tail: if whole == 0 { root } else { self.path[whole - 1] } }
    }

    /// How many of the first tokens of a prompt are cached, at most all but the last. Counts as no use.
    pub(super) fn peek(&self, scope: &CacheScope, tokens: &[u32]) -> u32 {
        self.search(&mut Vec::new(), scope, tokens).map_or(0, |(_, reached)| reached)
    }

    /// The longest cached prefix: its root, its length, and in `path` its nodes. A path goes through blocks
    /// of everybody, and from some block on through the tenant's own.
    fn search(&self, path: &mut Vec<u32>, scope: &CacheScope, tokens: &[u32]) -> Option<(u32, u32)> {
        let root = *self.by_key.get(&root_key(scope))?;
        let mut blocks = tokens.chunks(BLOCK as usize);
        let mut longest = 0;
        path.clear();
        // Nodes of everybody up to a block, then those behind it that are tried.
        let (mut shared, mut at, mut tried) = (Vec::new(), Some(root), Vec::new());
        while let Some(from) = at {
            let block = blocks.next().unwrap_or_default();
            at = self.child(from, &EVERYBODY, block);
            let is_own =
                scope.tenant.name != EVERYBODY && self.child(from, &scope.tenant.name, block).is_some();
            if is_own || at.is_none() {
                tried.clone_from(&shared);
                let reached = self.follow(&mut tried, from, scope, tokens);
                let reached = self.windowed(&mut tried, reached, root, scope, tokens);
                if reached > longest {
                    tried.truncate(reached.div_ceil(BLOCK) as usize);
                    longest = reached;
                    path.clone_from(&tried);
                }
            }
            shared.extend(at);
        }
        Some((root, longest))
    }

    /// Goes on from a node behind `path` as far as the tokens lead, by the tenant's own nodes; how many of
    /// the tokens are cached in full layers then.
    fn follow(&self, path: &mut Vec<u32>, from: u32, scope: &CacheScope, tokens: &[u32]) -> u32 {
        let mut at = from;
        let mut length = (path.len() as u32 * BLOCK).min(tokens.len() as u32);
        for block in tokens.chunks(BLOCK as usize).skip(path.len()) {
            let whole = self.child(at, &scope.tenant.name, block).map(|child| (block.len(), child));
            let best = whole.or_else(|| self.most_alike(at, scope, block, |_| true));
            let Some((alike, child)) = best else { break };
            path.push(child);
            length += alike as u32;
            at = child;
            if alike < BLOCK as usize {
                break;
            }
        }
        length
    }

    /// A tenant's child with exactly these tokens.
    fn child(&self, parent: u32, tenant: &[u8; 32], block: &[u32]) -> Option<u32> {
        self.by_key.get(&block_key(&self.nodes[parent].key, tenant, block)).copied()
    }

    /// The child that serves and begins with the most of these tokens, and how many those are.
    fn most_alike(
        &self,
        parent: u32,
        scope: &CacheScope,
        block: &[u32],
        serves: impl Fn(&PrefixNode) -> bool,
    ) -> Option<(usize, u32)> {
        let is_open = |node: &PrefixNode| node.tenant == scope.tenant.name || node.tenant == EVERYBODY;
        let may_use = |node: &PrefixNode| is_open(node) && serves(node);
        let alike = |node: &PrefixNode| node.tokens().iter().zip(block).take_while(|(a, b)| a == b).count();
        let children = self.nodes.children(parent).filter(|id| may_use(&self.nodes[*id]));
        children
            .map(|id| (alike(&self.nodes[id]), id))
            .max_by_key(|(alike, _)| *alike)
            .filter(|(n, _)| *n > 0)
    }

    /// The last position up to `reached` for which the path holds the window of sliding layers. The path may
    /// change its last node for one that holds less of the prompt and has the window.
    fn windowed(&self, path: &mut [u32], reached: u32, root: u32, scope: &CacheScope, tokens: &[u32]) -> u32 {
        if self.window.is_none() {
            return reached;
        }
        let mut end = reached;
        while end > 0 {
            let needed = self.lowest_key(end) / BLOCK..end.div_ceil(BLOCK);
            let lacks = |index: &u32| self.nodes[path[*index as usize]].blocks[1] == UNMAPPED;
            let Some(missing) = needed.rev().find(lacks) else { return end };
            // No position behind it will do; inside it one may, by a sibling that ends at a checkpoint.
            end = missing * BLOCK;
            let parent = if missing == 0 { root } else { path[missing as usize - 1] };
            let rest = &tokens[end as usize..tokens.len().min((end + BLOCK) as usize)];
            let has_window = |node: &PrefixNode| node.blocks[1] != UNMAPPED;
            if let Some((alike, sibling)) = self.most_alike(parent, scope, rest, has_window) {
                path[missing as usize] = sibling;
                end += alike as u32;
            }
        }
        0
    }

    /// The nodes of the last prompt that was found.
    pub(super) fn path_blocks(&self, index: u32) -> [u32; 2] {
        self.nodes[self.path[index as usize]].blocks
    }

    /// The root for sequences of this scope, which is made if it is missing; `None` when there is no room.
    pub(super) fn root(&mut self, scope: &CacheScope, pools: &mut [BlockPool; 2]) -> Option<u32> {
        let key = root_key(scope);
        if let Some(root) = self.by_key.get(&key) {
            return Some(*root);
        }
        let id = self.add(PrefixNode::new(key), pools)?;
        self.by_key.insert(key, id);
        Some(id)
    }

    /// Adds a node to the slab; makes room by evicting, if need be.
    fn add(&mut self, node: PrefixNode, pools: &mut [BlockPool; 2]) -> Option<u32> {
        if self.nodes.is_full() && !self.evict_leaf(pools) {
            return None;
        }
        self.nodes.add(node)
    }

    /// Puts a sequence's block behind `parent`: the node, which may have been there, and whether it was. The
    /// sequence uses `full`, its block of full layers. `None` when there is no room for a node.
    pub(super) fn insert(
        &mut self,
        parent: u32,
        tenant: &[u8; 32],
        tokens: &[u32],
        full: u32,
        pools: &mut [BlockPool; 2],
    ) -> Option<(u32, bool)> {
        let there = self.child(parent, tenant, tokens).or_else(|| self.child(parent, &EVERYBODY, tokens));
        if let Some(there) = there {
            self.touch(there);
            return Some((there, true));
        }
        let key = block_key(&self.nodes[parent].key, tenant, tokens);
        let mut node = PrefixNode::new(key);
        let of = &self.nodes[parent];
        (node.parent, node.index) = (parent, if of.is_root() { 0 } else { of.index + 1 });
        (node.tenant, node.len) = (*tenant, tokens.len() as u32);
        node.tokens[..tokens.len()].copy_from_slice(tokens);
        node.blocks[0] = full;
        // The parent must not make way for its child.
        self.hold(parent);
        let added = self.add(node, pools);
        self.release(parent);
        let id = added?;
        if self.has_full {
            pools[0].cache(full, id);
            self.stats.stored_blocks += 1;
        }
        self.by_key.insert(key, id);
        self.nodes.link(parent, id);
        self.leaves.remove(parent);
        self.touch(id);
        Some((id, false))
    }

    /// Notes that a sequence continues a node.
    pub(super) fn hold(&mut self, id: u32) {
        self.nodes[id].users += 1;
        self.leaves.remove(id);
    }

    /// Notes that a sequence continues a node no longer. A root that nothing needs goes.
    pub(super) fn release(&mut self, id: u32) {
        self.nodes[id].users -= 1;
        self.settle(id);
    }

    /// From a node with `blocks` blocks up to and with it, the one with at most `most`; and its count.
    pub(super) fn up_to(&self, mut id: u32, blocks: u32, most: u32) -> (u32, u32) {
        for _ in most..blocks {
            id = self.nodes[id].parent;
        }
        (id, blocks.min(most))
    }

    /// Keeps the window of sliding layers that ends in a node, from block `first` on. `block_of` tells which
    /// blocks a sequence has there.
    pub(super) fn keep_window(
        &mut self,
        node: u32,
        first: u32,
        pool: &mut BlockPool,
        block_of: impl Fn(u32) -> u32,
    ) {
        self.checkpoints.add(&mut self.nodes, node, first, pool, block_of);
    }

    /// Tokens of a node's block.
    pub(super) fn tokens_in(&self, id: u32) -> usize {
        self.nodes[id].len as usize
    }

    /// The block of full layers that a node holds.
    pub(super) fn full_block(&self, id: u32) -> u32 {
        self.nodes[id].blocks[0]
    }

    /// Counts a use.
    fn touch(&mut self, id: u32) {
        let node = &mut self.nodes[id];
        node.uses = node.uses.saturating_add(1);
        // A block behind a long prefix takes longer: attention reads all of it.
        let cost = u64::from(BLOCK) * (1024 + u64::from(node.index) * 2);
        let worth = self.leaf_policy.used(node.uses, cost);
        self.leaves.rate(id, worth);
        self.settle(id);
    }

    /// Queues a node that could go, or lets a root go that nothing needs.
    fn settle(&mut self, id: u32) {
        let node = &self.nodes[id];
        if !node.is_leaf() {
            return;
        }
        if node.is_root() {
            self.by_key.remove(&node.key);
            self.nodes.remove(id);
        } else {
            self.leaves.set(id, self.leaves.worth(id));
        }
    }
}

/// Name of a root.
fn root_key(scope: &CacheScope) -> BlockKey {
    let mut hash = blake3::Hasher::new();
    hash.update(b"kernmill kv root 1").update(&scope.adapters);
    if scope.tenant.salt != [0; 16] {
        hash.update(&scope.tenant.salt);
    }
    *hash.finalize().as_bytes()
}

/// Name of a block of tokens behind another.
fn block_key(parent: &BlockKey, tenant: &[u8; 32], tokens: &[u32]) -> BlockKey {
    let mut bytes = [0; 4 * BLOCK as usize];
    for (bytes, token) in bytes.chunks_exact_mut(4).zip(tokens) {
        bytes.copy_from_slice(&token.to_le_bytes());
    }
    let mut hash = blake3::Hasher::new();
    hash.update(parent).update(tenant).update(&bytes[..4 * tokens.len()]);
    *hash.finalize().as_bytes()
}
