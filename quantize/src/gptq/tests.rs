use super::factor::InputFactors;
use super::moments::InputMoments;
use super::rounding::RowRounder;
use crate::fit::{BlockFitter, FITTED};
use fastrand::Rng;
use kernmill_plan::format::{WeightFormat, read_stored};

const COLS: usize = 256;

/// Inputs whose columns go together, of very different sizes.
fn inputs(rng: &mut Rng, rows: usize) -> Vec<f32> {
    let mix: Vec<f32> = (0..8 * COLS).map(|_| rng.f32() - 0.5).collect();
    let sizes: Vec<f32> = (0..COLS).map(|_| (3.0 * rng.f32()).exp()).collect();
    let mut x = Vec::with_capacity(rows * COLS);
    for _ in 0..rows {
        let causes: [f32; 8] = std::array::from_fn(|_| rng.f32() - 0.5);
        for at in 0..COLS {
            let common: f32 = causes.iter().enumerate().map(|(cause, c)| c * mix[cause * COLS + at]).sum();
            x.push(sizes[at] * (common + 0.2 * (rng.f32() - 0.5)));
        }
    }
    x
}

/// Mean squares of the columns.
fn importance(x: &[f32]) -> Vec<f32> {
    let mut means = vec![0.0; COLS];
    x.chunks_exact(COLS).for_each(|row| means.iter_mut().zip(row).for_each(|(mean, x)| *mean += x * x));
    means.iter().map(|sum| sum * COLS as f32 / x.len() as f32).collect()
}

fn back(format: WeightFormat, bytes: &[u8]) -> Vec<f32> {
    let mut back = Vec::new();
    read_stored(format, bytes, &mut back);
    back
}

/// The squared error of products with all inputs.
fn product_error(x: &[f32], w: &[f32], q: &[f32]) -> f64 {
    let mut sum = 0.0;
    for (w, q) in w.chunks_exact(COLS).zip(q.chunks_exact(COLS)) {
        for x in x.chunks_exact(COLS) {
            let of = |(x, (w, q)): (&f32, (&f32, &f32))| f64::from(*x) * (f64::from(*w) - f64::from(*q));
            sum += x.iter().zip(w.iter().zip(q)).map(of).sum::<f64>().powi(2);
        }
    }
    sum
}

fn fitted(format: WeightFormat, w: &[f32], importance: &[f32]) -> Vec<u8> {
    let mut bytes = Vec::new();
    for row in w.chunks_exact(COLS) {
        BlockFitter::new(format).row(row, importance, &mut bytes).unwrap();
    }
    bytes
}

#[test]
fn products_of_the_inputs_have_smaller_errors_than_with_fitted_weights() {
    let mut rng = Rng::with_seed(1);
    let x = inputs(&mut rng, 600);
    let w: Vec<f32> = (0..12 * COLS).map(|_| (rng.f32() + rng.f32() + rng.f32() - 1.5) * 0.1).collect();
    let importance = importance(&x);
    let factors = InputFactors::of(&InputMoments::of(x.chunks_exact(COLS), COLS, 2), 2).unwrap();
    for format in FITTED {
        let mut bytes = Vec::new();
        let told = RowRounder::new(format, &factors, &importance).rows(&w, &mut bytes).unwrap();
        let fit = fitted(format, &w, &importance);
        assert_eq!(bytes.len(), fit.len());
        let [error, of_fit] = [&bytes, &fit].map(|bytes| product_error(&x, &w, &back(format, bytes)));
        assert!(error < 0.5 * of_fit, "{}: {error} {of_fit}", format.name());
        // The told errors are damped by a hundredth of the inputs' mean square.
        let [told, ratio] = [told.written / told.fitted, error / of_fit];
        assert!(told < 0.5 && told > 0.8 * ratio && told < ratio + 0.2, "{}: {told} {ratio}", format.name());
    }
}

#[test]
fn weights_on_a_grid_stay() {
    let mut rng = Rng::with_seed(2);
    let x = inputs(&mut rng, 300);
    let importance = importance(&x);
    let factors = InputFactors::of(&InputMoments::of(x.chunks_exact(COLS), COLS, 1), 1).unwrap();
    for format in FITTED {
        let w: Vec<f32> = (0..4 * COLS).map(|_| rng.f32() - 0.5).collect();
        let grid = back(format, &fitted(format, &w, &importance));
        let mut bytes = Vec::new();
        let errors = RowRounder::new(format, &factors, &importance).rows(&grid, &mut bytes).unwrap();
        assert_eq!(back(format, &bytes), grid, "{}", format.name());
        assert_eq!((errors.fitted, errors.written), (0.0, 0.0));
    }
}

#[test]
fn degenerate_inputs_make_no_row_worse() {
    let mut rng = Rng::with_seed(3);
    let one: Vec<f32> = (0..COLS).map(|at| if at % 3 == 0 { 0.0 } else { rng.f32() - 0.5 }).collect();
    let far: Vec<f32> = one.iter().enumerate().map(|(at, x)| x * 10f32.powi(at as i32 % 12 - 6)).collect();
    let flat = vec![1.0; COLS];
    let mut w: Vec<f32> = (0..6 * COLS).map(|_| rng.f32() - 0.5).collect();
    w[COLS..2 * COLS].fill(0.0);
    w[2 * COLS] = 65504.0;
    for x in [one.repeat(200), far.repeat(200), one.clone(), flat.repeat(128)] {
        let factors = InputFactors::of(&InputMoments::of(x.chunks_exact(COLS), COLS, 2), 2).unwrap();
        let importance = importance(&x);
        for format in FITTED {
            let mut bytes = Vec::new();
            let errors = RowRounder::new(format, &factors, &importance).rows(&w, &mut bytes).unwrap();
            assert!(errors.written <= errors.fitted && errors.written >= 0.0, "{}", format.name());
            assert!(back(format, &bytes).iter().all(|x| x.is_finite()), "{}", format.name());
            assert_eq!(bytes.len(), fitted(format, &w, &importance).len());
        }
    }
    let factors = InputFactors::of(&InputMoments::of(flat.chunks_exact(COLS), COLS, 2), 2).unwrap();
    w[3 * COLS + 5] = f32::NAN;
    for format in FITTED {
        let rounder = RowRounder::new(format, &factors, &flat);
        let (row, unfit) = rounder.rows(&w, &mut Vec::new()).unwrap_err();
        assert_eq!((row, unfit.index), (3, 5), "{}", format.name());
    }
}
