//! Which type each tensor gets so that all of them fit a size and their costs sum to the least: of each
//! tensor's types only the lower convex hull of size and cost counts, and along all hulls together the steps
//! that save the most cost for a byte come first.

/// A type of a tensor: its bytes and its cost.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct SizedCost {
    pub(crate) bytes: u64,
    pub(crate) cost: f64,
}

/// A step along a hull, from one type of a tensor to a larger one.
struct HullStep {
    tensor: usize,
    to: usize,
    bytes: u64,
    gain: f64,
}

/// Places of the types on the lower convex hull, by size.
fn hull(types: &[SizedCost]) -> Vec<usize> {
    let mut order: Vec<usize> = (0..types.len()).collect();
    order.sort_by(|&a, &b| types[a].bytes.cmp(&types[b].bytes).then(types[a].cost.total_cmp(&types[b].cost)));
    let mut kept: Vec<usize> = Vec::new();
    let slope =
        |a: usize, b: usize| (types[a].cost - types[b].cost) / (types[b].bytes - types[a].bytes) as f64;
    for next in order {
        // A type that is no smaller and costs no less is of no use.
        if kept.last().is_some_and(|&last| {
            types[last].cost <= types[next].cost || types[last].bytes == types[next].bytes
        }) {
            continue;
        }
        while let [.., before, last] = kept[..] {
            if slope(before, last) > slope(last, next) {
                break;
            }
            kept.pop();
        }
        kept.push(next);
    }
    kept
}

/// The type of each tensor, as a place among its types, within `bytes` for all. Each begins with its
/// smallest; if these are too many bytes already, the error is how many.
pub(crate) fn allocate(tensors: &[Vec<SizedCost>], bytes: u64) -> Result<Vec<usize>, u64> {
    let (mut chosen, steps) = steps(tensors);
    let mut used: u64 = chosen.iter().zip(tensors).map(|(&at, types)| types[at].bytes).sum();
    if used > bytes {
        return Err(used);
    }
    let mut is_done = vec![false; tensors.len()];
    for step in steps {
        if is_done[step.tensor] {
            continue;
        }
        if used + step.bytes > bytes {
            // The next ones of this tensor begin behind it.
            is_done[step.tensor] = true;
            continue;
        }
        used += step.bytes;
        chosen[step.tensor] = step.to;
    }
    Ok(chosen)
}

/// The type of each tensor with which all costs together are no more than `cost`, in few bytes. If they are
/// more with the largest types, the error is how much.
pub(crate) fn allocate_within(tensors: &[Vec<SizedCost>], cost: f64) -> Result<Vec<usize>, f64> {
    let (mut chosen, steps) = steps(tensors);
    let total =
        |chosen: &[usize]| -> f64 { chosen.iter().zip(tensors).map(|(&at, types)| types[at].cost).sum() };
    for step in steps {
        if total(&chosen) <= cost {
            break;
        }
        chosen[step.tensor] = step.to;
    }
    let least = total(&chosen);
    if least <= cost { Ok(chosen) } else { Err(least) }
}

/// The smallest type of each tensor on its hull, and the steps along all hulls, those first that save most
/// cost for a byte.
fn steps(tensors: &[Vec<SizedCost>]) -> (Vec<usize>, Vec<HullStep>) {
    let hulls: Vec<Vec<usize>> = tensors.iter().map(|types| hull(types)).collect();
    let smallest = hulls.iter().map(|hull| hull[0]).collect();
    let mut steps = Vec::new();
    for (tensor, (hull, types)) in hulls.iter().zip(tensors).enumerate() {
        for pair in hull.windows(2) {
            let (from, to) = (types[pair[0]], types[pair[1]]);
            let (bytes, gain) = (to.bytes - from.bytes, from.cost - to.cost);
            steps.push(HullStep { tensor, to: pair[1], bytes, gain });
        }
    }
    // The sort is stable: among equal gains, that of the first tensor comes first.
    let per_byte = |step: &HullStep| step.gain / step.bytes as f64;
    steps.sort_by(|a, b| per_byte(b).total_cmp(&per_byte(a)));
    (smallest, steps)
}

#[cfg(test)]
mod tests {
    use super::*;
    use fastrand::Rng;

    fn sized(bytes: u64, cost: f64) -> SizedCost {
        SizedCost { bytes, cost }
    }

    /// The sum of the costs of a choice.
    fn cost(tensors: &[Vec<SizedCost>], chosen: &[usize]) -> f64 {
        tensors.iter().zip(chosen).map(|(types, &at)| types[at].cost).sum()
    }

    /// The least cost of all choices within a size.
    fn least(tensors: &[Vec<SizedCost>], bytes: u64) -> f64 {
        let Some((types, others)) = tensors.split_first() else { return 0.0 };
        let fits = types.iter().filter(|one| one.bytes <= bytes);
        fits.map(|one| one.cost + least(others, bytes - one.bytes)).fold(f64::INFINITY, f64::min)
    }

    #[test]
    fn types_above_the_hull_are_left_out() {
        // The second is above the line between its neighbours, the last costs more than one before.
        let types =
            [sized(4, 8.0), sized(5, 7.5), sized(6, 2.0), sized(8, 1.0), sized(9, 1.0), sized(4, 9.0)];
        assert_eq!(hull(&types), [0, 2, 3]);
        assert_eq!(hull(&types[..1]), [0]);
    }

    #[test]
    fn allocations_are_best_among_those_of_their_size() {
        let mut rng = Rng::with_seed(1);
        for _ in 0..200 {
            let tensors: Vec<Vec<SizedCost>> = (0..5)
                .map(|_| {
                    let size = rng.u64(1..6);
                    let first = 8.0 * rng.f64();
                    (4..8).map(|bits| sized(bits * size, first * 0.25f64.powi(bits as i32))).collect()
                })
                .collect();
            let budget = rng.u64(20..200);
            match allocate(&tensors, budget) {
                Err(smallest) => assert!(smallest > budget && least(&tensors, budget).is_infinite()),
                Ok(chosen) => {
                    let used: u64 = chosen.iter().zip(&tensors).map(|(&at, types)| types[at].bytes).sum();
                    assert!(used <= budget);
                    // Steps that do not fit leave room: with what is used, nothing is better.
                    let (cost, best) = (cost(&tensors, &chosen), least(&tensors, budget));
                    let coarsest: f64 = tensors.iter().map(|types| types[0].cost).sum();
                    assert!(cost <= best + 0.25 * (coarsest - best) + 1e-12, "{cost} {best} {coarsest}");
                }
            }
        }
    }

    #[test]
    fn equal_tensors_are_served_in_their_order() {
        let tensors = vec![vec![sized(4, 4.0), sized(5, 1.0)]; 3];
        assert_eq!(allocate(&tensors, 14), Ok(vec![1, 1, 0]));
        assert_eq!(allocate(&tensors, 11), Err(12));
    }
}
