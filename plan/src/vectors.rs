//! Programs that leave vectors of texts instead of logits.

use serde::{Deserialize, Serialize};
use std::fmt;

/// Which rows of a text make its vector.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Pooling {
    /// The last token's.
    Last,
    /// The mean of all.
    Mean,
    /// The first token's.
    First,
}

impl Pooling {
    /// Every pooling.
    pub const ALL: [Pooling; 3] = [Pooling::Last, Pooling::Mean, Pooling::First];
    /// The names of [`Pooling::ALL`].
    pub const NAMES: [&str; 3] = ["last", "mean", "first"];

    /// The name in specs and options.
    pub fn name(self) -> &'static str {
        Pooling::NAMES[self as usize]
    }

    /// The pooling of that name.
    pub fn from_name(name: &str) -> Option<Pooling> {
        Pooling::ALL.into_iter().find(|pooling| pooling.name() == name)
    }
}

/// How the rows of a text become its vector.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct VectorForm {
    /// Which rows.
    pub pooling: Pooling,
    /// Whether the vector is divided by its length.
    pub normalise: bool,
}

impl VectorForm {
    /// The vector of a text that has more than `dimensions` elements, with so many of them: the first ones,
    /// divided by their length if the form says so. Lengths are sums of squares in f32, ascending.
    pub fn finish(self, vector: &mut Vec<f32>, dimensions: usize) {
        vector.truncate(dimensions);
        let length = vector.iter().fold(0.0_f32, |sum, x| sum + x * x).sqrt();
        if self.normalise && length > 0.0 {
            vector.iter_mut().for_each(|x| *x /= length);
        }
    }
}

/// The row that a program leaves of each token that is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum ModelOutput {
    /// A logit of every token.
    Logits,
    /// Rows of so many f32, from which vectors are made.
    Vectors {
        /// Elements of a row.
        width: u32,
        /// How rows become vectors.
        form: VectorForm,
    },
}

impl fmt::Display for ModelOutput {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ModelOutput::Logits => f.write_str("texts"),
            ModelOutput::Vectors { width, form } => {
                let normalised = if form.normalise { "normalised" } else { "not normalised" };
                write!(f, "vectors of {width}, pooled by {}, {normalised}", form.pooling.name())
            }
        }
    }
}

/// Makes a text's vector of its rows, which come in the order of their tokens. The arithmetic is that of
/// `docs/dev/numerics.md`: sums in f32, ascending, so that no cut of the text changes a bit.
#[derive(Clone, Debug)]
pub struct VectorSum {
    form: VectorForm,
    sum: Vec<f32>,
    rows: u32,
}

impl VectorSum {
    /// Nothing yet.
    pub fn new(form: VectorForm) -> VectorSum {
        VectorSum { form, sum: Vec::new(), rows: 0 }
    }

    /// Adds the next row that the pooling asks for.
    pub fn add(&mut self, row: &[f32]) {
        self.rows += 1;
        match self.form.pooling {
            Pooling::First if self.rows > 1 => {}
            Pooling::Mean if self.rows > 1 => {
                self.sum.iter_mut().zip(row).for_each(|(sum, x)| *sum += x);
            }
            _ => self.sum = row.to_vec(),
        }
    }

    /// The vector, with its first `dimensions` elements if it has more.
    pub fn finish(mut self, dimensions: usize) -> Vec<f32> {
        if self.form.pooling == Pooling::Mean && self.rows > 1 {
            let rows = self.rows as f32;
            self.sum.iter_mut().for_each(|sum| *sum /= rows);
        }
        self.form.finish(&mut self.sum, dimensions);
        self.sum
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn vector(pooling: Pooling, normalise: bool, dimensions: usize) -> Vec<f32> {
        let mut sum = VectorSum::new(VectorForm { pooling, normalise });
        for row in [[3.0, 0.0, 1.0], [0.0, 2.0, 1.0], [3.0, 4.0, 10.0]] {
            sum.add(&row);
        }
        sum.finish(dimensions)
    }

    #[test]
    fn vectors_are_the_rows_that_are_pooled() {
        assert_eq!(vector(Pooling::Last, false, 3), [3.0, 4.0, 10.0]);
        assert_eq!(vector(Pooling::First, false, 3), [3.0, 0.0, 1.0]);
        assert_eq!(vector(Pooling::Mean, false, 3), [2.0, 2.0, 4.0]);
        // It is cut before it is divided by its length.
        assert_eq!(vector(Pooling::Last, true, 2), [0.6, 0.8]);
    }

    #[test]
    fn a_vector_of_zeros_stays_one() {
        let mut sum = VectorSum::new(VectorForm { pooling: Pooling::Mean, normalise: true });
        sum.add(&[0.0; 3]);
        assert_eq!(sum.finish(9), [0.0; 3]);
    }

    #[test]
    fn poolings_have_names() {
        for pooling in Pooling::ALL {
            assert_eq!(Pooling::from_name(pooling.name()), Some(pooling));
        }
        assert_eq!(Pooling::from_name("max"), None);
    }
}
