//! The choice of a type for every matrix, by what each costs and by the aim.

use crate::aim::SizeAim;
use crate::allocate::SizedCost;
use crate::calibrate::MeasuredTypes;
use crate::file::weights;
use crate::recipe::Candidate;
use crate::report::DivergenceReport;
use crate::rows::{MatrixSource, RowsError, RowsJob, fit_rows};
use crate::state::WorkState;
use kernmill::observe::{Observer, Unit};
use kernmill::{Error, Result};
use std::convert::Infallible;

/// Rows of a matrix that show what a type costs it.
const SAMPLED_ROWS: usize = 128;

/// Tensors whose types are to be chosen, and for what.
pub(crate) struct Sizing<'a, 'c> {
    pub(crate) candidates: &'a [Candidate<'c>],
    pub(crate) sources: &'a [MatrixSource<'a>],
    pub(crate) aim: SizeAim,
    /// Bytes of the file that are no tensors'.
    pub(crate) beside: u64,
    pub(crate) threads: usize,
}

/// Types that were chosen.
pub(crate) struct ChosenTypes {
    /// By tensor, the place among its types.
    pub(crate) places: Vec<usize>,
    pub(crate) divergence: Option<DivergenceReport>,
}

impl Sizing<'_, '_> {
    /// The types that serve the aim best. With a model to measure on, costs are divergences.
    ///
    /// # Errors
    /// If weights fit no type, the model cannot be run, or the aim cannot be reached.
    pub(crate) fn types(
        &self,
        measured: Option<&MeasuredTypes<'_, '_>>,
        (state, observer): (&WorkState, &dyn Observer),
    ) -> Result<ChosenTypes> {
        let squares = self.squares(observer)?;
        let Some(measured) = measured else {
            let costs = self.by_table(squares);
            return Ok(ChosenTypes { places: self.choose(&costs, 1.0)?, divergence: None });
        };
        let costs = measured.costs(squares, (state, observer))?;
        let mut places = self.choose(&costs, 1.0)?;
        let mut found = measured.divergence(&places, observer)?;
        let sum =
            |places: &[usize]| -> f64 { places.iter().zip(&costs).map(|(&at, types)| types[at].cost).sum() };
        let predicted = sum(&places);
        // All together may do more or less than the sum. Only an aim in nats hangs on that.
        if matches!(self.aim, SizeAim::Divergence(_)) && predicted > 0.0 && found > 0.0 {
            let again = self.choose(&costs, found / predicted)?;
            if again != places {
                found = measured.divergence(&again, observer)?;
                places = again;
            }
        }
        let divergence = DivergenceReport {
            predicted: sum(&places),
            measured: found,
            tokens: measured.tokens(),
            by_tensor: places.iter().zip(&costs).map(|(&at, types)| types[at].cost).collect(),
        };
        Ok(ChosenTypes { places, divergence: Some(divergence) })
    }

    /// The places of the types that the aim asks for, if all costs are greater by a factor.
    fn choose(&self, costs: &[Vec<SizedCost>], factor: f64) -> Result<Vec<usize>> {
        let greater = |of: &SizedCost| SizedCost { cost: of.cost * factor, ..*of };
        let costs: Vec<Vec<SizedCost>> =
            costs.iter().map(|types| types.iter().map(greater).collect()).collect();
        self.aim.choose(&costs, weights(self.candidates.iter()), self.beside)
    }

    /// Costs by what is known of such matrices of other models.
    fn by_table(&self, mut squares: Vec<Vec<SizedCost>>) -> Vec<Vec<SizedCost>> {
        for (candidate, types) in self.candidates.iter().zip(&mut squares) {
            types.iter_mut().for_each(|of| of.cost *= candidate.sensitivity);
        }
        squares
    }

    /// The squared relative error of each type for each tensor, seen in some rows; 0 for tensors with one.
    fn squares(&self, observer: &dyn Observer) -> Result<Vec<Vec<SizedCost>>> {
        let mut jobs = Vec::new();
        let all = self.candidates.iter().zip(self.sources);
        for (candidate, source) in all.filter(|(candidate, _)| candidate.types.len() > 1) {
            let step = source.rows.div_ceil(SAMPLED_ROWS);
            jobs.extend(candidate.types.iter().map(|kind| RowsJob { source, kind: *kind, step }));
        }
        let progress =
            observer.begin("comparing types", Unit::Count, jobs.iter().map(|job| job.count() as u64).sum());
        let squares = fit_rows(&jobs, self.threads, &|job: usize, _, bytes: &[u8]| {
            let row_bytes = jobs[job].source.cols / jobs[job].kind.elements * jobs[job].kind.bytes;
            progress.advance((bytes.len() / row_bytes) as u64);
            Ok::<(), Infallible>(())
        });
        let squares = squares.map_err(|error| match error {
            RowsError::Taken(never) => match never {},
            RowsError::Unfit(job, row, unfit) => {
                let name = jobs[job].source.name();
                Error::bad_input(format!(
                    "tensor `{name}`, row {row}: {} fits no type of few bits",
                    unfit.value
                ))
            }
        })?;
        let mut squares = squares.into_iter();
        let of = |candidate: &Candidate<'_>| -> Vec<SizedCost> {
            let cost = |kind| {
                let bytes = candidate.bytes(kind);
                let cost = match candidate.types.len() {
                    1 => 0.0,
                    _ => squares.next().map_or(0.0, |it| it.relative_error().powi(2)),
                };
                SizedCost { bytes, cost }
            };
            candidate.types.iter().copied().map(cost).collect()
        };
        Ok(self.candidates.iter().map(of).collect())
    }
}
