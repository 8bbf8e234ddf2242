//! The findings of a check of fused-op specs.

use super::costs::SpecCosts;
use serde::Serialize;
use std::fmt;

/// Result of a check of fused-op specs.
#[derive(Serialize)]
pub struct CheckReport {
    /// Levels that kernels were run at.
    pub levels: Vec<&'static str>,
    /// Results of each spec.
    pub specs: Vec<SpecReport>,
}

/// Result of the check of one spec.
#[derive(Serialize)]
pub struct SpecReport {
    /// Name of the spec.
    pub name: String,
    /// Doc line of the spec.
    pub doc: String,
    /// File of the spec.
    pub file: String,
    /// Whether the spec has a rule.
    pub fuses: bool,
    /// Functions that the spec adds.
    pub functions: Vec<String>,
    /// Ops that the spec adds.
    pub ops: Vec<String>,
    /// Random models in which the spec applied.
    pub samples: usize,
    /// Comparisons with the interpreter.
    pub runs: usize,
    /// Rows of logits compared.
    pub rows: usize,
    /// The differences to the interpreter, a message for each comparison.
    pub mismatches: Vec<String>,
    /// Why the spec did not apply in other random models.
    pub reasons: Vec<String>,
    /// The crash that ended the process of the random models.
    pub crash: Option<CrashReport>,
    /// How often the rule applies in the model of `--spec`.
    pub matches: Option<usize>,
    /// Where the rule nearly applies in the model of `--spec`, and why not.
    pub near_misses: Vec<String>,
    /// Costs without the spec and with it, in the model of `--spec` or a random one.
    pub costs: Option<SpecCosts>,
}

/// A model whose kernels ended the process that ran them.
#[derive(Serialize)]
pub struct CrashReport {
    /// Number of the random model, preset, level, batches.
    pub at: String,
    /// How the process ended.
    pub verdict: String,
    /// The command that runs that model again.
    pub again: String,
    /// Text of the model's graph.
    pub graph: Option<String>,
}

impl CheckReport {
    /// Why the check failed, if it did.
    pub fn failed(&self) -> Option<String> {
        let crash = |spec: &SpecReport| {
            let crash = spec.crash.as_ref()?;
            Some(format!("{}: {}: {}", spec.name, crash.at, crash.verdict))
        };
        if let Some(reason) = self.specs.iter().find_map(crash) {
            return Some(reason);
        }
        let wrong = self.specs.iter().find(|spec| !spec.mismatches.is_empty());
        if let Some(spec) = wrong {
            return Some(format!(
                "{}: {} of {} runs differ from the interpreter",
                spec.name,
                spec.mismatches.len(),
                spec.runs
            ));
        }
        let idle =
            self.specs.iter().find(|spec| spec.runs == 0 && (spec.fuses || !spec.functions.is_empty()));
        idle.map(|spec| format!("{}: it applied in no random model, so that nothing was compared", spec.name))
    }
}

impl fmt::Display for CheckReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for spec in &self.specs {
            writeln!(f, "{}: {}", spec.name, spec.doc)?;
            for (what, names) in [("functions", &spec.functions), ("ops", &spec.ops)] {
                if !names.is_empty() {
                    writeln!(f, "  {what}: {}", names.join(", "))?;
                }
            }
            if spec.runs > 0 {
                let same = if spec.mismatches.is_empty() {
                    "every logit has the interpreter's bits"
                } else {
                    "not the interpreter's bits"
                };
                writeln!(
                    f,
                    "  {same}: {} random models, {} runs, {} rows of logits, levels {}",
                    spec.samples,
                    spec.runs,
                    spec.rows,
                    self.levels.join(", ")
                )?;
            }
            list(f, "differs", &spec.mismatches)?;
            if let Some(crash) = &spec.crash {
                writeln!(f, "  crashed: {}: {}", crash.at, crash.verdict)?;
                writeln!(f, "  again with: {}", crash.again)?;
                let graph = crash.graph.as_deref().unwrap_or_default();
                graph.lines().try_for_each(|line| writeln!(f, "    {line}"))?;
            }
            match &spec.reasons[..] {
                // Where it applied, that other models lack what it needs is no fault.
                [first, ..] if spec.samples > 0 => {
                    let (many, end) = (spec.reasons.len(), if spec.reasons.len() == 1 { "" } else { "s" });
                    writeln!(
                        f,
                        "  other random models do without it, for {many} reason{end}, such as: {first}"
                    )?;
                }
                reasons => list(f, "did not apply in a random model", reasons)?,
            }
            if let Some(matches) = spec.matches {
                writeln!(f, "  applies {matches} times in the model")?;
            }
            list(f, "nearly", &spec.near_misses)?;
            if let Some(costs) = &spec.costs {
                let SpecCosts { model, preset, before, after } = costs;
                // One worker waits for nobody: what barriers cost is in the estimates alone.
                let of = if before.measured_1.is_some() {
                    " (measured on one worker, estimated for all)"
                } else {
                    ""
                };
                writeln!(f, "  cost of model {model}, preset {preset}, without it -> with it{of}:")?;
                writeln!(f, "    barriers per run           {:>12} -> {}", before.barriers, after.barriers)?;
                writeln!(f, "    bytes written per token    {:>12} -> {}", before.bytes, after.bytes)?;
                for (tokens, before, after) in [
                    ("us of 1 token, measured    ", before.measured_1, after.measured_1),
                    ("us of 512 tokens, measured ", before.measured_512, after.measured_512),
                ] {
                    if let (Some(before), Some(after)) = (before, after) {
                        writeln!(f, "    {tokens}{before:>13.1} -> {after:.1}")?;
                    }
                }
                for (tokens, before, after) in [
                    ("us of 1 token, estimated   ", before.microseconds_1, after.microseconds_1),
                    ("us of 512 tokens, estimated", before.microseconds_512, after.microseconds_512),
                ] {
                    writeln!(f, "    {tokens}{before:>13.1} -> {after:.1}")?;
                }
            }
        }
        Ok(())
    }
}

fn list(f: &mut fmt::Formatter<'_>, what: &str, lines: &[String]) -> fmt::Result {
    lines.iter().try_for_each(|line| writeln!(f, "  {what}: {line}"))
}
