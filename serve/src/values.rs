//! Requests for numbers instead of a text: the vector of a prompt, or logits behind it.

use crate::error::{Error, Result};
use kernmill_plan::program::ModelInfo;
use kernmill_plan::vectors::{Pooling, VectorForm, VectorSum};
use kernmill_runtime::{LogitRows, TokenMask};

/// The result that a request is for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Wanted {
    /// A text.
    #[default]
    Text,
    /// The vector of the prompt, from a model that makes vectors.
    Vector {
        /// Elements at most: the first ones, before the vector is divided by its length.
        dimensions: Option<u32>,
    },
    /// The logits of these tokens behind the prompt.
    Logits(Vec<u32>),
}

impl Wanted {
    /// Refuses what the model does not make.
    ///
    /// # Errors
    /// When it makes vectors and a text is wanted, or the other way round; when a vector is to have no
    /// elements, or more than the model's.
    pub(crate) fn check(&self, model: &ModelInfo) -> Result<()> {
        let what = match (self, model.vectors()) {
            (Wanted::Text | Wanted::Logits(_), Some(_)) => {
                "the model makes vectors of texts, and no texts: `kernmill embed` and /v1/embeddings ask for them"
                    .to_owned()
            }
            (Wanted::Vector { .. }, None) => {
                "the model makes texts, and no vectors: compile or open it with --vectors last".to_owned()
            }
            (Wanted::Vector { dimensions: Some(asked) }, Some(_))
                if !(1..=model.row_width()).contains(&(*asked as usize)) =>
            {
                format!("{asked} dimensions: expected 1 to {}, which the model's vectors have", model.row_width())
            }
            _ => return Ok(()),
        };
        Err(Error::BadInput(what))
    }
}

/// The numbers of a request on its way.
pub(crate) enum ValueMaker {
    Vector {
        form: VectorForm,
        /// Whether the model's texts run whole.
        whole: bool,
        dimensions: usize,
        sum: VectorSum,
        /// Rows of the step at hand, in the order in which workers hand them out.
        rows: Vec<(usize, Vec<f32>)>,
    },
    Logits {
        tokens: Vec<u32>,
        mask: TokenMask,
        found: Vec<f32>,
    },
}

impl ValueMaker {
    /// The maker of the numbers that are wanted; `None` where a text is.
    pub fn of(wanted: &Wanted, model: &ModelInfo) -> Option<ValueMaker> {
        match (wanted, model.vectors()) {
            (Wanted::Vector { dimensions }, Some(form)) => Some(ValueMaker::Vector {
                form,
                whole: model.whole_texts,
                dimensions: dimensions.map_or(model.row_width(), |dimensions| dimensions as usize),
                sum: VectorSum::new(form),
                rows: Vec::new(),
            }),
            (Wanted::Logits(tokens), _) => {
                let mut mask = TokenMask::new(model.vocab as usize, false);
                tokens.iter().for_each(|token| mask.set(*token, true));
                Some(ValueMaker::Logits { tokens: tokens.clone(), mask, found: Vec::new() })
            }
            _ => None,
        }
    }

    /// Whether it needs rows of tokens whose keys and values may be cached.
    pub fn needs_all(&self) -> bool {
        matches!(self, ValueMaker::Vector { form, whole, .. } if *whole || form.pooling != Pooling::Last)
    }

    /// Rows that a part of the prompt is to give.
    pub fn rows(&self, from: usize, is_last: bool) -> LogitRows {
        match self {
            ValueMaker::Vector { form: VectorForm { pooling: Pooling::Mean, .. }, .. } => LogitRows::All,
            ValueMaker::Vector { form: VectorForm { pooling: Pooling::First, .. }, .. } if from == 0 => {
                LogitRows::First
            }
            ValueMaker::Vector { form: VectorForm { pooling: Pooling::First, .. }, .. } => LogitRows::None,
            _ if is_last => LogitRows::Last,
            _ => LogitRows::None,
        }
    }

    /// The tokens whose logits alone are looked at.
    pub fn mask(&self) -> Option<&TokenMask> {
        match self {
            ValueMaker::Logits { mask, .. } => Some(mask),
            ValueMaker::Vector { .. } => None,
        }
    }

    /// The prompt is computed from its beginning.
    pub fn begin(&mut self) {
        if let ValueMaker::Vector { form, sum, .. } = self {
            *sum = VectorSum::new(*form);
        }
    }

    /// Takes the row of a token of the step at hand. Rows come in any order.
    pub fn take(&mut self, token: usize, row: &[f32]) {
        match self {
            ValueMaker::Vector { rows, .. } => rows.push((token, row.to_vec())),
            ValueMaker::Logits { tokens, found, .. } => {
                *found = tokens.iter().filter_map(|token| row.get(*token as usize)).copied().collect();
            }
        }
    }

    /// All rows of the step have come.
    pub fn step_ended(&mut self) {
        if let ValueMaker::Vector { sum, rows, .. } = self {
            rows.sort_unstable_by_key(|(token, _)| *token);
            rows.drain(..).for_each(|(_, row)| sum.add(&row));
        }
    }

    /// The numbers.
    pub fn finish(self) -> Vec<f32> {
        match self {
            ValueMaker::Vector { dimensions, sum, .. } => sum.finish(dimensions),
            ValueMaker::Logits { found, .. } => found,
        }
    }
}
