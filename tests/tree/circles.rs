//! Circles in a graph of names.

use std::collections::{BTreeMap, BTreeSet};

/// The names that each name uses.
pub type Graph = BTreeMap<String, BTreeSet<String>>;

/// A circle, if there is one: each name uses the next, and the last one the first.
pub fn circle(graph: &Graph) -> Option<Vec<String>> {
    // A name that uses nothing that is left is in no circle.
    let mut left: BTreeSet<&String> = graph.keys().collect();
    loop {
        let ends: Vec<&String> = left
            .iter()
            .copied()
            .filter(|name| graph[*name].iter().all(|used| !left.contains(used)))
            .collect();
        if ends.is_empty() {
            break;
        }
        for name in ends {
            left.remove(name);
        }
    }
    let mut way: Vec<&String> = vec![left.first()?];
    loop {
        let last = way[way.len() - 1];
        let next =
            graph[last].iter().find(|used| left.contains(used)).expect("all that is left uses something");
        if let Some(start) = way.iter().position(|name| *name == next) {
            return Some(way[start..].iter().map(|name| (*name).clone()).collect());
        }
        way.push(next);
    }
}
