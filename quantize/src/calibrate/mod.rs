//! How large the inputs of a model's matrices are over some texts: an importance matrix, made here.

mod command;
mod probe;
#[cfg(test)]
mod probe_tests;
mod sensitive;
mod texts;

use crate::forward::{LayeredModel, ProductInput, chosen};
pub(crate) use command::CalibrationArgs;
use kernmill::Result;
use kernmill::observe::{Observer, Unit};
use kernmill_checkpoint::gguf::{Imatrix, ImatrixEntry};
use kernmill_compiler::interp::NodeRun;
use kernmill_compiler::ir::of_expert;
pub(crate) use sensitive::MeasuredTypes;
use std::collections::{BTreeMap, BTreeSet};
pub(crate) use texts::CalibrationTexts;

/// Tokens of a chunk, as the files of importance matrices say it.
const CHUNK: u32 = texts::WINDOW as u32;

/// Sums of an input's squares over a text, for one matrix of the checkpoint.
struct SquareSums {
    name: String,
    entry: ImatrixEntry,
}

/// Runs the texts and sums the squares of what every matrix gets. A matrix that several products share, as
/// rows of one tensor, counts each input once. The sums are in the order of the texts and of their tokens.
pub(crate) fn measure(
    model: &LayeredModel<'_>,
    texts: &CalibrationTexts,
    observer: &dyn Observer,
) -> Result<Imatrix> {
    let mut runs: Vec<NodeRun> = texts.windows.iter().map(|ids| model.text(ids)).collect();
    let progress = observer.begin("calibrating", Unit::Count, (model.parts() * texts.tokens()) as u64);
    let mut entries: BTreeMap<String, ImatrixEntry> = BTreeMap::new();
    for part in 0..model.parts() {
        let mut names = BTreeSet::new();
        let firsts: BTreeSet<&str> = model
            .nodes(part)
            .iter()
            .filter(|node| node.op.matmul().is_some())
            .map(|node| model.graph.tensor(node.tensors[0]))
            .filter(|tensor| names.insert(&tensor.source.name))
            .map(|tensor| tensor.name.as_str())
            .collect();
        let weights = model.weights(part, None)?;
        let see = |text: usize, input: &ProductInput<'_>| {
            let _ = text;
            firsts.contains(input.tensor.name.as_str()).then(|| sums(input))
        };
        let seen = model.run(part, &mut runs, &weights, &|_| None, &see)?;
        for SquareSums { name, entry } in seen.into_iter().flatten().flatten() {
            let sum = entries.entry(name).or_insert_with(|| ImatrixEntry {
                sums: vec![0.0; entry.sums.len()],
                counts: vec![0.0; entry.counts.len()],
            });
            let pairs = sum.sums.iter_mut().zip(entry.sums);
            pairs.chain(sum.counts.iter_mut().zip(entry.counts)).for_each(|(sum, more)| *sum += more);
        }
        progress.advance(texts.tokens() as u64);
    }
    Ok(Imatrix {
        datasets: texts.names.clone(),
        chunks: texts.windows.len() as u32,
        chunk_size: CHUNK,
        entries,
    })
}

/// Sums over the rows of a product; of experts that each have a tensor of their own, one for each.
fn sums(input: &ProductInput<'_>) -> Vec<SquareSums> {
    let name = &input.tensor.source.name;
    let row = |at: usize| &input.x[at * input.cols..][..input.cols];
    let Some((routing, slots)) = input.routing else {
        let rows = input.x.len() / input.cols;
        let entry = ImatrixEntry { sums: squares((0..rows).map(row), input.cols), counts: vec![rows as f64] };
        return vec![SquareSums { name: name.clone(), entry }];
    };
    let experts = 0..input.tensor.shape[0];
    let of_expert_rows = |expert: usize| {
        let rows: Vec<usize> = chosen(routing, expert).collect();
        let count = rows.len() as f64;
        (squares(rows.into_iter().map(|slot| row(slot / slots)), input.cols), count)
    };
    if input.tensor.source.is_gathered() {
        let of = |expert: usize| {
            let (sums, count) = of_expert_rows(expert);
            let name = of_expert(name, expert).into_owned();
            SquareSums { name, entry: ImatrixEntry { sums, counts: vec![count] } }
        };
        return experts.map(of).collect();
    }
    let mut entry = ImatrixEntry::default();
    for expert in experts {
        let (sums, count) = of_expert_rows(expert);
        entry.sums.extend(sums);
        entry.counts.push(count);
    }
    vec![SquareSums { name: name.clone(), entry }]
}

fn squares<'r>(rows: impl Iterator<Item = &'r [f32]>, cols: usize) -> Vec<f64> {
    let mut sums = vec![0.0; cols];
    for row in rows {
        sums.iter_mut().zip(row).for_each(|(sum, x)| *sum += f64::from(*x) * f64::from(*x));
    }
    sums
}

#[cfg(test)]
mod tests;
