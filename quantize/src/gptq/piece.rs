//! Rounded tensors, as they are kept in the state of a work.

use super::rounding::ProductErrors;
use crate::rows::WeightedSquares;
use crate::state::{PieceReader, StatePiece};
use std::collections::BTreeMap;

/// The errors that a tensor is left with.
#[derive(Clone, Debug, Default)]
pub(crate) struct SweptTensor {
    pub(crate) squares: WeightedSquares,
    pub(crate) products: ProductErrors,
    /// Experts, or the first of one matrix, that too few tokens met, or none with an input.
    pub(crate) plain: Vec<usize>,
}

impl SweptTensor {
    /// The error of products, as a part of that of the fit.
    pub(crate) fn product_error(&self) -> Option<f64> {
        (self.products.fitted > 0.0).then(|| (self.products.written / self.products.fitted).sqrt())
    }

    pub(super) fn add(&mut self, more: &SweptTensor) {
        self.squares.error += more.squares.error;
        self.squares.weights += more.squares.weights;
        self.products.fitted += more.products.fitted;
        self.products.written += more.products.written;
        self.plain.extend(&more.plain);
    }
}

impl StatePiece for SweptTensor {
    fn write(&self, out: &mut Vec<u8>) {
        self.squares.write(out);
        (self.products.fitted, self.products.written).write(out);
        self.plain.write(out);
    }

    fn read(from: &mut PieceReader<'_>) -> Option<SweptTensor> {
        let squares = WeightedSquares::read(from)?;
        let (fitted, written) = StatePiece::read(from)?;
        Some(SweptTensor { squares, products: ProductErrors { fitted, written }, plain: Vec::read(from)? })
    }
}

/// By tensor, its new bytes and what became of it.
pub(crate) type SweptPart = BTreeMap<usize, (Vec<u8>, SweptTensor)>;

impl StatePiece for SweptPart {
    fn write(&self, out: &mut Vec<u8>) {
        self.len().write(out);
        for (tensor, (bytes, swept)) in self {
            tensor.write(out);
            bytes.len().write(out);
            out.extend(bytes);
            swept.write(out);
        }
    }

    fn read(from: &mut PieceReader<'_>) -> Option<SweptPart> {
        let all: Vec<(usize, (Vec<u8>, SweptTensor))> = Vec::read(from)?;
        Some(all.into_iter().collect())
    }
}
