//! The candidates for each kernel and micro-kernel, their modelled costs, and the picks, for `kernmill
//! explain`.

use super::cost::CostModel;
use super::{KernelChoice, MicroKernelChoice, Prologue, Selection};
use kernmill_kernels_gen::kernel::Tiling;
use serde::Serialize;
use std::fmt;

/// The choices of a compilation.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct SelectionReport {
    /// Workers that costs are for.
    pub workers: usize,
    /// By token class.
    pub classes: Vec<ClassReport>,
    /// By micro-kernel; data in cache, one worker.
    pub ukernels: Vec<MicroKernelReport>,
}

/// A token class's choices.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ClassReport {
    /// Largest batch, for which costs are.
    pub max_tokens: usize,
    /// Distinct ones.
    pub groups: Vec<GroupReport>,
}

/// Groups of equal kind and cost.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct GroupReport {
    /// Label without the layer.
    pub kind: String,
    /// How many there are.
    pub count: usize,
    /// The candidates.
    pub candidates: Vec<CandidateReport>,
    /// Index of the pick.
    pub pick: usize,
    /// Why.
    pub reason: String,
}

/// A candidate.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct CandidateReport {
    /// `dots` or `panels`.
    pub tiling: &'static str,
    /// Input rows from which on panels are used.
    pub least_rows: Option<usize>,
    /// Where the prologue is computed: `workers` or `step`.
    pub prologue: &'static str,
    /// Output rows per work item where they are free.
    #[serde(rename = "unit")]
    pub rows_per_item: usize,
    /// Cost, barriers included.
    pub microseconds: f64,
    #[serde(skip)]
    text: String,
}

/// A micro-kernel.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct MicroKernelReport {
    /// Symbol of the micro-kernel.
    pub ukernel: String,
    /// Versions of the micro-kernel.
    pub versions: Vec<VersionReport>,
    /// Index of the pick.
    pub pick: usize,
}

/// A version of a micro-kernel.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct VersionReport {
    /// Name of the version.
    pub version: &'static str,
    /// Cost of a block of 32 k, if there is a number.
    pub ns_per_block: Option<f64>,
}

/// The report of these selections, which `model` made.
pub fn explain(
    model: &CostModel,
    selections: &[Selection],
    ukernels: &[MicroKernelChoice],
) -> SelectionReport {
    let ukernel = |choice: &MicroKernelChoice| {
        let versions = choice.versions.iter();
        let versions = versions.map(|(version, ns)| VersionReport { version, ns_per_block: *ns });
        MicroKernelReport {
            ukernel: choice.ukernel.to_string(),
            versions: versions.collect(),
            pick: choice.pick,
        }
    };
    SelectionReport {
        workers: model.machine().workers,
        classes: selections.iter().map(class).collect(),
        ukernels: ukernels.iter().filter(|choice| choice.versions.len() > 1).map(ukernel).collect(),
    }
}

fn class(selection: &Selection) -> ClassReport {
    let mut groups: Vec<GroupReport> = Vec::new();
    for choice in &selection.choices {
        let new = group(choice);
        let same = |old: &&mut GroupReport| GroupReport { count: 1, ..(**old).clone() } == new;
        match groups.iter_mut().find(same) {
            Some(old) => old.count += 1,
            None => groups.push(new),
        }
    }
    ClassReport { max_tokens: selection.max_tokens, groups }
}

fn group(choice: &KernelChoice) -> GroupReport {
    let candidates = choice.candidates.iter().map(|(candidate, ns)| CandidateReport {
        tiling: match candidate.tiling {
            Tiling::Dot => "dots",
            Tiling::Gemm { .. } => "panels",
            Tiling::Tiles { .. } => "tiles",
        },
        least_rows: candidate.tiling.least_rows(),
        prologue: if candidate.prologue == Prologue::Workers { "workers" } else { "step" },
        rows_per_item: candidate.rows_per_item,
        // To the nanosecond.
        microseconds: ns.round() / 1e3,
        text: candidate.to_string(),
    });
    GroupReport {
        kind: choice.kind().to_owned(),
        count: 1,
        candidates: candidates.collect(),
        pick: choice.pick,
        reason: choice.reason(),
    }
}

impl fmt::Display for SelectionReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "kernels by the cost model: microseconds for a full batch with {} workers",
            self.workers
        )?;
        for class in &self.classes {
            writeln!(f, "class of up to {} tokens", class.max_tokens)?;
            class.groups.iter().try_for_each(|group| write!(f, "{group}"))?;
        }
        writeln!(
            f,
            "micro-kernels: ns per block of 16 rows and 32 k (of all tiles) with one worker, data in cache"
        )?;
        self.ukernels.iter().try_for_each(|ukernel| writeln!(f, "{ukernel}"))
    }
}

impl fmt::Display for GroupReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "  {}, {} of them: {}", self.kind, self.count, self.reason)?;
        for (i, candidate) in self.candidates.iter().enumerate() {
            let mark = if i == self.pick { '*' } else { ' ' };
            writeln!(f, "    {mark} {:10.1}  {}", candidate.microseconds, candidate.text)?;
        }
        Ok(())
    }
}

impl fmt::Display for MicroKernelReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "  {}:", self.ukernel)?;
        for (i, version) in self.versions.iter().enumerate() {
            let mark = if i == self.pick { "*" } else { "" };
            let ns = version.ns_per_block.map_or_else(|| "no number".to_owned(), |ns| format!("{ns:.1}"));
            write!(f, "{} {mark}{} {ns}", if i > 0 { "," } else { "" }, version.version)?;
        }
        Ok(())
    }
}
