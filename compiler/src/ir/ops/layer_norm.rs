//! `layer_norm`: a row less its mean, divided by its standard deviation, times a weight per column, plus a
//! bias.

use super::def::{OpDef, OpKind, Outline, Packed, SpecOp};
use super::form::{Input, OpForm, Operands, TensorOperand, ensure};
use super::keys::{INPUT, OpInfo, ParamKind, optional, required};
use super::places::KernelPosition;
use super::spec_node::SpecNode;
use crate::ir::eval::num::{lane_sum, sum_squares};
use crate::ir::eval::state::{Data, OpState};
use crate::ir::{GraphRowOp, Node, OperandRef, Role, Type, ValueId};
use crate::spec_text::Result as SpecResult;
use kernmill_kernels_gen::row_op::LayerNormRow;

/// `x; [weight], [bias] -> f32`: norms rows around their mean.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LayerNorm {
    /// Added to the variance.
    pub eps: f32,
}

pub static KINDS: [Outline; 1] = [Outline {
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
        lower,
    }],
    places: &[KernelPosition::Rows, KernelPosition::Prologue],
    passes: true,
    ..Outline::new("layer_norm", FORM, |at, _| Ok(LayerNorm { eps: at.attribute("eps")? }.into()))
}];

const FORM: OpForm = OpForm::new(
    &[Input::F32],
    &[TensorOperand::optional("weight", Role::Vector), TensorOperand::optional("bias", Role::Vector)],
);

impl OpDef for LayerNorm {
    fn kind(&self, _: usize) -> OpKind {
        OpKind(&KINDS[0])
    }

    fn infer(&self, on: &Operands<'_>) -> Result<Type, String> {
        let eps = self.eps;
        ensure(eps.is_finite() && eps >= 0.0, || format!("eps = {eps} is not a number >= 0"))?;
        on.shape(0, &[on.x().cols()])?;
        on.shape(1, &[on.x().cols()])?;
        Ok(on.x())
    }

    fn attributes(&self, _: usize) -> String {
        format!("(eps={:?})", self.eps)
    }

    fn eval(&self, state: &mut OpState, node: &Node) -> Data {
        let x = node.inputs[0];
        let [weight, bias] = [0, 1].map(|i| node.tensors.get(i).map(|&vector| state.dense(vector)));
        let rows = state.f32s(x).chunks_exact(state.cols(x));
        Data::F32(rows.flat_map(|row| self.normed(row, weight, bias)).collect())
    }

    fn row_op(&self, node: &Node, _: &dyn Packed) -> Option<GraphRowOp> {
        let [weight, bias] = [0, 1].map(|i| node.tensors.get(i).map(|&vector| OperandRef::Tensor(vector)));
        let (x, eps, out) = (node.inputs[0], self.eps.into(), node.output);
        Some(LayerNormRow { x, weight, bias, eps, out }.into())
    }

    fn multiples(&self, width: usize) -> Vec<(&'static str, usize, usize)> {
        vec![("the width", width, 16)]
    }
}

impl LayerNorm {
    fn normed(&self, row: &[f32], weight: Option<&[f32]>, bias: Option<&[f32]>) -> Vec<f32> {
        let n = row.len() as f32;
        let mean = lane_sum(row, 0) / n;
        let mut y: Vec<f32> = row.iter().map(|x| x - mean).collect();
        let r = 1.0 / (sum_squares(&y) / n + self.eps).sqrt();
        y.iter_mut().for_each(|y| *y *= r);
        y.iter_mut().zip(weight.into_iter().flatten()).for_each(|(y, w)| *y *= w);
        y.iter_mut().zip(bias.into_iter().flatten()).for_each(|(y, b)| *y += b);
        y
    }
}

fn lower(at: &mut dyn SpecNode) -> SpecResult<ValueId> {
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
    Ok(at.push(Type::F32(rows, cols), LayerNorm { eps }, vec![x], tensors))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Rng;

    #[test]
    fn it_is_the_published_norm() {
        let mut rng = Rng::new(5);
        let mut random = |shift: f32| -> Vec<f32> { (0..80).map(|_| rng.unit() + shift).collect() };
        for shift in [0.0, 3.0, -40.0] {
            let (x, w, b) = (random(shift), random(1.0), random(0.0));
            let found = LayerNorm { eps: 1e-5 }.normed(&x, Some(&w), Some(&b));
            let plain = LayerNorm { eps: 1e-5 }.normed(&x, None, None);
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
