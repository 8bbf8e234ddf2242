//! `kernmill compile --emit` without a plan: what a spec alone compiles to.

use super::Compile;
use crate::failure::{Failure, Result};
use crate::output;
use kernmill::compiler::{SourceModel, SpecSource, choices};
use kernmill::locate::SourceFiles;
use kernmill_tools::{Level, Preset, merge::AdapterMerge, stages::Stage};

impl Compile {
    /// Whether the stages are all that is wanted.
    pub(super) fn writes_no_plan(&self) -> bool {
        let emits = !self.emit.emit.is_empty();
        emits && !self.dry_run && (self.output.is_none() || self.writes_object())
    }

    /// Whether `--output` names an object file.
    fn writes_object(&self) -> bool {
        self.emit.wants(Stage::Obj) && self.emit.emit_dir.is_none()
    }

    /// Refuses what cannot be emitted, before the work.
    pub(super) fn check_emit(&self, levels: &[Level], given: &SourceFiles) -> Result<()> {
        let bad = |what: &str| Err(Failure::BadInput(what.to_owned()));
        let hashes = self.emit.emit == [Stage::Hashes] && self.emit.emit_dir.is_none();
        if self.json && !(hashes ^ self.dry_run) {
            return bad("--json: expected --dry-run or --emit hashes, which alone are JSON");
        }
        if self.json && self.dry_run && self.emit.prints() {
            return bad("--emit: with --json and --dry-run, one JSON object is printed; give --emit-dir");
        }
        if self.emit.wants(Stage::Obj) {
            self.emit.check(self.output.as_deref())?;
            if let [_, _, ..] = levels {
                let names = levels.iter().map(|level| level.name()).collect::<Vec<_>>().join(", ");
                let what = "--emit obj: an object file has one target's code, but --target is";
                return bad(&format!("{what} {names}: choose one"));
            }
            if self.dry_run {
                return bad("--emit obj: --dry-run writes nothing; leave out one of them");
            }
        }
        if given.need_weights().is_err() {
            if !self.writes_no_plan() && !self.dry_run {
                let what = "--weights is missing: a plan holds the weights. Without them, --emit shows what the spec compiles to";
                return bad(what);
            }
            if self.compile.preset == Preset::Fast && !self.dry_run {
                let what =
                    "--weights is missing: preset fast decides from the weights which code is generated";
                return bad(what);
            }
        }
        Ok(())
    }

    /// Compiles and emits. The weights are looked at only where the code depends on them.
    pub(super) fn emit_only(&self, levels: &[Level], given: &SourceFiles) -> Result<()> {
        // A problem of the place is found before the work.
        self.output.as_deref().filter(|_| self.writes_object()).map_or(Ok(()), output::check)?;
        if given.need_weights().is_err() && self.merge_lora.is_empty() {
            let source = SpecSource::of(given, self.compile.fusions.set()?)?;
            let graph = source.graph()?;
            return self.targets(&source, &graph, levels, None).map(drop);
        }
        let model = SourceModel::open(given, self.compile.fusions.set()?)?;
        let threads = self.threads.number();
        let merge = AdapterMerge::new(&model, &self.merge_lora, &self.aside)?;
        let weights = merge.weights(&model)?;
        let choices = choices(&merge.graph, &weights, self.compile.preset, threads, &self.aside)?;
        self.targets(&model.source, &merge.graph, levels, choices.as_ref()).map(drop)
    }
}
