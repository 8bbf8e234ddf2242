//! Norms: `rms_norm` divides a row by its root mean square and multiplies with a weight per column;
//! `head_norm` does so with each head of a row, all with the same weights; `layer_norm` first takes the mean
//! from the row, and adds a bias per column at last.

use super::def::{OpDef, OpKind, Outline, Packed, SpecOp};
use super::form::{Input, OpForm, Operands, TensorOperand, ensure};
use super::keys::{INPUT, OpInfo, ParamKind, optional, required};
use super::places::{ANYWHERE, KernelPosition};
use super::spec_node::SpecNode;
use crate::ir::eval::num::{lane_sum, sum_squares};
use crate::ir::eval::state::{Data, OpState};
use crate::ir::{GraphRowOp, Node, OperandRef, Role, Type, ValueId};
use crate::spec_text::Result as SpecResult;
use kernmill_kernels_gen::row_op::{NormRow, RowPlace};
use kernmill_plan::limit;

/// `x; [weight], [bias] -> f32`: divides rows, or each head of them, by their root mean square.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Norm {
    /// Added to the mean square.
    pub eps: f32,
    /// Elements that are normed together.
    pub of: Normed,
}

/// The elements that a norm takes together.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Normed {
    /// A row.
    Row,
    /// A head of so many elements.
    Head(usize),
    /// A row, less its mean; there may be a bias.
    Centred,
}

pub static KINDS: [Outline; 3] = [
    Outline {
        spec: &[SpecOp {
            info: OpInfo {
                name: "rms_norm",
                params: &[
                    INPUT,
                    optional("weight", ParamKind::Tensor),
                    required("eps", ParamKind::Number),
                    optional("head_dim", ParamKind::Number),
                ],
                pattern: &["rms_norm"],
            },
            lower,
        }],
        places: &[KernelPosition::Rows, KernelPosition::Prologue],
        passes: true,
        ..Outline::new("rms_norm", FORM, |at, _| {
            Ok(Norm { eps: at.attribute("eps")?, of: Normed::Row }.into())
        })
    },
    Outline {
        places: ANYWHERE,
        passes: true,
        facts: |known, inputs, out| {
            known.same_cols(inputs[0], out);
            known.same_rows(inputs[0], out);
            known.has_heads(out);
        },
        ..Outline::new("head_norm", FORM, |at, _| {
            let eps = at.attribute("eps")?;
            at.expect(",")?;
            Ok(Norm { eps, of: Normed::Head(at.attribute("head_dim")?) }.into())
        })
    },
    Outline {
        spec: &[SpecOp {
            info: OpInfo {
                name: "layer_norm",
                params: &[
                    INPUT,
                    optional("weight", ParamKind::Tensor),
                    optional("bias", ParamKind::Tensor),
                    required("eps", ParamKind::Number),
                ],
                pattern: &["layer_norm"],
            },
            lower: lower_centred,
        }],
        places: &[KernelPosition::Rows, KernelPosition::Prologue],
        passes: true,
        ..Outline::new("layer_norm", AROUND_MEAN, |at, _| {
            Ok(Norm { eps: at.attribute("eps")?, of: Normed::Centred }.into())
        })
    },
];

const WEIGHT: TensorOperand = TensorOperand::optional("weight", Role::Vector);

const FORM: OpForm = OpForm::new(&[Input::F32], &[WEIGHT]);

const AROUND_MEAN: OpForm =
    OpForm::new(&[Input::F32], &[WEIGHT, TensorOperand::optional("bias", Role::Vector)]);

impl OpDef for Norm {
    fn kind(&self, _: usize) -> OpKind {
        OpKind(match self.of {
            Normed::Row => &KINDS[0],
            Normed::Head(_) => &KINDS[1],
            Normed::Centred => &KINDS[2],
        })
    }

    fn infer(&self, on: &Operands<'_>) -> Result<Type, String> {
        let eps = self.eps;
        ensure(eps.is_finite() && eps >= 0.0, || format!("eps = {eps} is not a number >= 0"))?;
        let cols = on.x().cols();
        let normed = self.head_dim().unwrap_or(cols);
        ensure(normed > 0 && cols.is_multiple_of(normed), || {
            format!("{cols} columns are not heads of head_dim = {normed}")
        })?;
        (0..on.tensors.len()).try_for_each(|i| on.shape(i, &[normed]))?;
        Ok(on.x())
    }

    fn attributes(&self, _: usize) -> String {
        let head_dim = self.head_dim().map_or(String::new(), |head_dim| format!(", head_dim={head_dim}"));
        format!("(eps={:?}{head_dim})", self.eps)
    }

    fn eval(&self, state: &mut OpState, node: &Node) -> Data {
        let x = node.inputs[0];
        let [weight, bias] = [0, 1].map(|i| node.tensors.get(i).map(|&vector| state.dense(vector)));
        let rows = state.f32s(x).chunks_exact(self.head_dim().unwrap_or(state.cols(x)));
        Data::F32(rows.flat_map(|row| self.normed(row, weight, bias)).collect())
    }

    fn row_op(&self, node: &Node, _: &dyn Packed) -> Option<GraphRowOp> {
        Some(self.on(node, RowPlace::Row(node.inputs[0]), RowPlace::Row(node.output)))
    }

    fn in_epilogue(&self, node: &Node) -> Option<GraphRowOp> {
        self.head_dim().map(|_| self.on(node, RowPlace::Results, RowPlace::Results))
    }

    fn multiples(&self, width: usize) -> Vec<(&'static str, usize, usize)> {
        vec![match self.head_dim() {
            Some(head_dim) => ("head_dim", head_dim, 16),
            None => ("the width", width, 16),
        }]
    }
}

impl Norm {
    /// Elements of a head, if each is normed by itself.
    fn head_dim(&self) -> Option<usize> {
        if let Normed::Head(head_dim) = self.of { Some(head_dim) } else { None }
    }

    fn on(&self, node: &Node, x: RowPlace<ValueId>, out: RowPlace<ValueId>) -> GraphRowOp {
        let [weight, bias] = [0, 1].map(|i| node.tensors.get(i).map(|&vector| OperandRef::Tensor(vector)));
        let (head_dim, is_centred) = (self.head_dim(), self.of == Normed::Centred);
        NormRow { x, weight, bias, eps: self.eps.into(), head_dim, is_centred, out }.into()
    }

    fn normed(&self, row: &[f32], weight: Option<&[f32]>, bias: Option<&[f32]>) -> Vec<f32> {
        let (n, mut y) = (row.len() as f32, row.to_vec());
        if self.of == Normed::Centred {
            let mean = lane_sum(row, 0) / n;
            y.iter_mut().for_each(|y| *y -= mean);
        }
        let r = 1.0 / (sum_squares(&y) / n + self.eps).sqrt();
        y.iter_mut().for_each(|y| *y *= r);
        y.iter_mut().zip(weight.into_iter().flatten()).for_each(|(y, w)| *y *= w);
        y.iter_mut().zip(bias.into_iter().flatten()).for_each(|(y, b)| *y += b);
        y
    }
}

fn lower(at: &mut dyn SpecNode) -> SpecResult<ValueId> {
    let (x, rows, cols) = at.input("input")?;
    let head_dim = match at.has("head_dim") {
        true => Some(at.whole("head_dim", limit::HEAD_DIM)?),
        false => None,
    };
    let normed = head_dim.unwrap_or(cols);
    if !cols.is_multiple_of(normed) {
        let message = format!("{cols} columns do not divide into heads of {normed}");
        return Err(at.at("head_dim", &message, format!("expected a divisor of {cols}")));
    }
    let mut weights = vec![];
    if at.has("weight") {
        let weight = at.tensor("weight", Role::Vector)?;
        at.check_shape("weight", weight, &[normed]).map_err(|error| match at.shape(weight)[..] {
            [width] if head_dim.is_none() && width < cols && cols.is_multiple_of(width) => {
                error.help(format!("`head_dim = {width}` makes it a norm of each head"))
            }
            _ => error,
        })?;
        weights.push(weight);
    }
    let eps = at.positive("eps", "eps")?;
    let of = head_dim.map_or(Normed::Row, Normed::Head);
    Ok(at.push(Type::F32(rows, cols), Norm { eps, of }, vec![x], weights))
}

fn lower_centred(at: &mut dyn SpecNode) -> SpecResult<ValueId> {
    let (x, rows, cols) = at.input("input")?;
    let mut tensors = vec![];
    if at.has("weight") {
        tensors.push(at.vector("weight", cols)?);
    }
    if at.has("bias") {
        if !at.has("weight") {
            return Err(at.at("bias", "a bias without a weight", "expected with `weight` only"));
        }
        tensors.push(at.vector("bias", cols)?);
    }
    let eps = at.positive("eps", "eps")?;
    Ok(at.push(Type::F32(rows, cols), Norm { eps, of: Normed::Centred }, vec![x], tensors))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Rng;

    #[test]
    fn layer_norm_is_the_published_one() {
        let mut rng = Rng::new(5);
        let mut random = |shift: f32| -> Vec<f32> { (0..80).map(|_| rng.unit() + shift).collect() };
        for shift in [0.0, 3.0, -40.0] {
            let (x, w, b) = (random(shift), random(1.0), random(0.0));
            let norm = Norm { eps: 1e-5, of: Normed::Centred };
            let (found, plain) = (norm.normed(&x, Some(&w), Some(&b)), norm.normed(&x, None, None));
            let x: Vec<f64> = x.into_iter().map(f64::from).collect();
            let mean = x.iter().sum::<f64>() / 80.0;
            let variance = x.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / 80.0;
            for i in 0..80 {
                let normed = (x[i] - mean) / (variance + 1e-5).sqrt();
                let wrong = (f64::from(found[i]) - normed * f64::from(w[i]) - f64::from(b[i])).abs();
                assert!(wrong < 2e-5 && (f64::from(plain[i]) - normed).abs() < 2e-5, "{shift} {i}: {wrong}");
            }
        }
    }
}
