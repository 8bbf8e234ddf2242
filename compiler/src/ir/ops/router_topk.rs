//! `router_topk`: the k experts of a row with the largest scores, and their weights.

use super::def::{OpDef, OpKind, Outline, Packed, SpecOp};
use super::form::{Input, OpForm, Operands, TensorOperand, ensure};
use super::keys::{INPUT, KeyWords, OpInfo, ParamKind, optional, required};
use super::places::KernelPosition;
use super::spec_node::SpecNode;
use crate::ir::cursor::{LineCursor, unknown};
use crate::ir::eval::num::{exp, max, sigmoid};
use crate::ir::eval::state::{Data, OpState};
use crate::ir::{GraphRowOp, Node, Op, OperandRef, Role, RowKind, Rows, Type, ValueId};
use crate::spec_text::Result as SpecResult;
use kernmill_kernels_gen::row_op::{GroupScore, RouterGroups, RouterScores, TopKRow};
use kernmill_plan::abi::ChosenExpert;
use kernmill_plan::limit;
use kernmill_plan::numeric::LEAST_ROUTE_SUM;

/// `logits f32 [T, experts]; [bias] -> routing`: the k experts with the largest scores, and their weights.
/// The bias is added to scores for the choice alone.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RouterTopk {
    /// Experts per token.
    pub k: u32,
    /// The groups that experts are in. Only the best groups are chosen from.
    pub groups: Option<RouterGroups>,
    /// The scores of experts.
    pub scores: RouterScores,
    /// Whether weights are divided by their sum.
    pub normalise: bool,
    /// Factor on the weights.
    pub scale: Option<f32>,
}

static SCORES: KeyWords = KeyWords {
    what: "scores",
    words: &["softmax_of_chosen", "softmax", "sigmoid"],
    expected: "\"softmax_of_chosen\", \"softmax\" or \"sigmoid\"",
};

static GROUP_SCORES: KeyWords = KeyWords {
    what: "group_score",
    words: &[SUM_OF_TWO, LARGEST],
    expected: "\"sum_of_two\" or \"largest\"",
};
const SUM_OF_TWO: &str = "sum_of_two";
const LARGEST: &str = "largest";

pub static KINDS: [Outline; 1] = [Outline {
    spec: &[SpecOp {
        info: OpInfo {
            name: "router_topk",
            params: &[
                INPUT,
                required("k", ParamKind::Number),
                optional("scores", ParamKind::OneOf(&SCORES)),
                optional("bias", ParamKind::Tensor),
                optional("normalise", ParamKind::Flag),
                optional("scale", ParamKind::Number),
                optional("groups", ParamKind::Number),
                optional("top_groups", ParamKind::Number),
                optional("group_score", ParamKind::OneOf(&GROUP_SCORES)),
            ],
            pattern: &["router_topk"],
        },
        lower,
    }],
    places: &[KernelPosition::Rows, KernelPosition::Prologue],
    facts: |known, inputs, out| {
        known.cols_are(inputs[0], known.sizes.experts);
        known.rows_are(inputs[0], RowKind::Tokens);
        known.routing.push(out.to_owned());
    },
    ..Outline::new(
        "router_topk",
        OpForm::new(&[Input::F32], &[TensorOperand::optional("bias", Role::Vector)]),
        parse,
    )
}];

impl RouterTopk {
    /// The k largest logits, with the softmax of these as weights.
    pub fn new(k: u32) -> RouterTopk {
        RouterTopk { k, groups: None, scores: RouterScores::SoftmaxOfChosen, normalise: false, scale: None }
    }
}

fn parse(at: &mut LineCursor<'_>, _: bool) -> Result<Op, String> {
    let mut op = RouterTopk::new(at.attribute("k")?);
    while at.eat(",") {
        if at.eat("scores") {
            at.expect("=")?;
            let word = at.word()?;
            op.scores = RouterScores::from_name(word).ok_or_else(|| unknown("scores", word))?;
        } else if at.eat("normalise") {
            op.normalise = true;
        } else if at.eat("groups") {
            at.expect("=")?;
            let taken = at.number()?;
            let count = at.field("of")?;
            let score = if at.eat("by largest") { GroupScore::Largest } else { GroupScore::SumOfTwo };
            op.groups = Some(RouterGroups { taken, count, score });
        } else {
            op.scale = Some(at.attribute("scale")?);
        }
    }
    Ok(op.into())
}

impl OpDef for RouterTopk {
    fn kind(&self, _: usize) -> OpKind {
        OpKind(&KINDS[0])
    }

    fn infer(&self, on: &Operands<'_>) -> Result<Type, String> {
        let (k, cols) = (self.k, on.x().cols());
        on.rows_are(Rows::Tokens)?;
        on.shape(0, &[cols])?;
        let plain = on.tensors.is_empty() && !self.normalise && self.groups.is_none();
        ensure(plain || self.scores != RouterScores::SoftmaxOfChosen, || {
            "a softmax of the chosen takes no bias, normalise or groups".into()
        })?;
        let scale = self.scale.unwrap_or(1.0);
        ensure(scale.is_finite() && scale > 0.0, || format!("scale = {scale} is not a number above 0"))?;
        ensure(k > 0 && k as usize <= cols, || format!("k = {k} of {cols} experts"))?;
        self.groups.and_then(|groups| groups.fault(cols, k as usize)).map_or(Ok(()), Err)?;
        Ok(Type::Routing(k))
    }

    fn attributes(&self, _: usize) -> String {
        let scores = match self.scores {
            RouterScores::SoftmaxOfChosen => String::new(),
            other => format!(", scores={}", other.name()),
        };
        let normalise = if self.normalise { ", normalise" } else { "" };
        let scale = self.scale.map_or(String::new(), |scale| format!(", scale={scale:?}"));
        let groups = self.groups.map(|RouterGroups { taken, count, score }| {
            let by = if score == GroupScore::Largest { " by largest" } else { "" };
            format!(", groups={taken} of {count}{by}")
        });
        format!("(k={}{}{scores}{normalise}{scale})", self.k, groups.unwrap_or_default())
    }

    fn eval(&self, state: &mut OpState, node: &Node) -> Data {
        let x = node.inputs[0];
        let bias = node.tensors.first().map(|&bias| state.dense(bias));
        let rows = state.f32s(x).chunks_exact(state.cols(x));
        Data::Routing(rows.flat_map(|logits| self.routes(logits, bias)).collect())
    }

    fn row_op(&self, node: &Node, kernels: &dyn Packed) -> Option<GraphRowOp> {
        let experts = kernels.graph().value(node.inputs[0]).ty.cols();
        let bias = node.tensors.first().map(|&bias| OperandRef::Tensor(bias));
        let RouterTopk { k, groups, scores, normalise, scale } = *self;
        let (x, out, k, scale) = (node.inputs[0], node.output, k as usize, scale.map(Into::into));
        Some(TopKRow { x, bias, experts, k, groups, scores, normalise, scale, out }.into())
    }
}

fn lower(at: &mut dyn SpecNode) -> SpecResult<ValueId> {
    let (x, experts) = at.token_input("input")?;
    let k = at.whole("k", limit::TOP_K)?;
    if experts > limit::EXPERTS {
        let message = format!("a router of {experts} experts");
        return Err(at.at("input", &message, format!("expected at most {}", limit::EXPERTS)));
    }
    if k > experts {
        let message = format!("top-{k} of {experts} experts");
        return Err(at.at("k", &message, format!("expected at most {experts}")));
    }
    let groups = groups(at, experts, k)?;
    let mut op = RouterTopk { groups, normalise: at.flag("normalise"), ..RouterTopk::new(k as u32) };
    if at.has("scores") {
        op.scores = RouterScores::from_name(&at.text("scores").value).unwrap_or(op.scores);
    }
    for key in ["bias", "normalise", "groups"] {
        if at.has(key) && op.scores == RouterScores::SoftmaxOfChosen {
            let message = format!("`{key}` of a softmax of the chosen");
            return Err(at.at(key, &message, "expected with scores = \"softmax\" or \"sigmoid\" only"));
        }
    }
    if at.has("scale") {
        op.scale = Some(at.positive("scale", "the scale")?);
    }
    let bias = if at.has("bias") { vec![at.vector("bias", experts)?] } else { vec![] };
    Ok(at.push(Type::Routing(k as u32), op, vec![x], bias))
}

/// The groups of a router's experts, `top_groups` of `groups`.
fn groups(at: &mut dyn SpecNode, experts: usize, k: usize) -> SpecResult<Option<RouterGroups>> {
    for (key, other) in [("groups", "top_groups"), ("top_groups", "groups"), ("group_score", "groups")] {
        if at.has(key) && !at.has(other) {
            let message = format!("`{key}` without `{other}`");
            return Err(at.at(key, &message, format!("expected with `{other}` only")));
        }
    }
    if !at.has("groups") {
        return Ok(None);
    }
    let count = at.whole("groups", limit::EXPERTS)?;
    let score = match at.has("group_score") && at.text("group_score").value == LARGEST {
        true => GroupScore::Largest,
        false => GroupScore::SumOfTwo,
    };
    let groups = RouterGroups { count, taken: at.whole("top_groups", limit::EXPERTS)?, score };
    match groups.fault(experts, k) {
        Some(fault) if groups.taken > count => {
            Err(at.at("top_groups", &fault, "expected no more than there are"))
        }
        Some(fault) if groups.left(experts).is_some() => {
            Err(at.at("k", &fault, "expected no more experts than the best groups have"))
        }
        Some(fault) => {
            let least = groups.least();
            Err(at.at("groups", &fault, format!("expected groups of the same size, of at least {least}")))
        }
        None => Ok(Some(groups)),
    }
}

impl RouterTopk {
    /// The experts of one row, in order of choice.
    fn routes(&self, logits: &[f32], bias: Option<&[f32]>) -> Vec<ChosenExpert> {
        let scores: Vec<f32> = match self.scores {
            RouterScores::SoftmaxOfChosen => logits.to_vec(),
            RouterScores::Softmax => {
                let most = logits.iter().copied().fold(f32::NEG_INFINITY, max);
                let e: Vec<f32> = logits.iter().map(|l| exp(l - most)).collect();
                let sum = e.iter().fold(0.0, |sum, e| sum + e);
                e.into_iter().map(|e| e / sum).collect()
            }
            RouterScores::Sigmoid => logits.iter().copied().map(sigmoid).collect(),
        };
        let mut choice = match bias {
            Some(bias) => scores.iter().zip(bias).map(|(score, bias)| score + bias).collect(),
            None => scores.clone(),
        };
        if let Some(groups) = self.groups {
            keep_best(&mut choice, groups);
        }
        let chosen = largest(&choice, self.k as usize);
        let mut weights: Vec<f32> = chosen.iter().map(|&i| scores[i]).collect();
        let sum = |weights: &[f32]| weights[1..].iter().fold(weights[0], |sum, weight| sum + weight);
        if self.scores == RouterScores::SoftmaxOfChosen {
            let first = weights[0];
            weights.iter_mut().for_each(|weight| *weight = exp(*weight - first));
            let sum = sum(&weights);
            weights.iter_mut().for_each(|weight| *weight /= sum);
        } else if self.normalise {
            let sum = sum(&weights) + LEAST_ROUTE_SUM;
            weights.iter_mut().for_each(|weight| *weight /= sum);
        }
        if let Some(scale) = self.scale {
            weights.iter_mut().for_each(|weight| *weight *= scale);
        }
        let routes = chosen.into_iter().zip(weights);
        routes.map(|(expert, weight)| ChosenExpert { expert: expert as u32, weight }).collect()
    }
}

/// Makes the scores of all groups but those with the best scores smaller than any.
fn keep_best(choice: &mut [f32], groups: RouterGroups) {
    let size = choice.len() / groups.count;
    let score = |group: &[f32]| largest(group, groups.least()).into_iter().map(|i| group[i]).sum::<f32>();
    let scores: Vec<f32> = choice.chunks_exact(size).map(score).collect();
    let best = largest(&scores, groups.taken);
    for (number, group) in choice.chunks_exact_mut(size).enumerate() {
        if !best.contains(&number) {
            group.fill(f32::NEG_INFINITY);
        }
    }
}

/// Indices of the `k` largest, descending, ties to the lower index. A NaN is larger than nothing: it is
/// chosen only when nothing else is left, lower indices first.
fn largest(x: &[f32], k: usize) -> Vec<usize> {
    let mut chosen: Vec<usize> = Vec::with_capacity(k);
    for _ in 0..k {
        let mut best: Option<usize> = None;
        for i in (0..x.len()).filter(|i| !chosen.contains(i)) {
            if best.is_none_or(|b| x[i] > x[b] || (x[b].is_nan() && !x[i].is_nan())) {
                best = Some(i);
            }
        }
        chosen.extend(best);
    }
    chosen
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Rng;

    /// The published routers in f64: of OLMoE and Qwen2-MoE, of ERNIE 4.5, of GLM-4.5 and of DeepSeek V2.
    fn published(op: &RouterTopk, logits: &[f32], bias: &[f32]) -> Vec<(u32, f64)> {
        let logits: Vec<f64> = logits.iter().copied().map(f64::from).collect();
        let scores: Vec<f64> = match op.scores {
            RouterScores::Sigmoid => logits.iter().map(|l| 1.0 / (1.0 + (-l).exp())).collect(),
            _ => {
                let sum: f64 = logits.iter().map(|l| l.exp()).sum();
                logits.iter().map(|l| l.exp() / sum).collect()
            }
        };
        let choice = |i: u32| scores[i as usize] + f64::from(bias[i as usize]);
        let mut order: Vec<u32> = (0..scores.len() as u32).collect();
        if let Some(groups) = op.groups {
            let size = scores.len() / groups.count;
            let of = |i: u32| i as usize / size;
            let sum = |group: usize| {
                let mut all: Vec<f64> =
                    order.iter().filter(|&&i| of(i) == group).map(|&i| choice(i)).collect();
                all.sort_by(f64::total_cmp);
                match groups.score {
                    GroupScore::SumOfTwo => all[size - 1] + all[size - 2],
                    GroupScore::Largest => all[size - 1],
                }
            };
            let better = |group: usize| (0..groups.count).filter(|&other| sum(other) > sum(group)).count();
            let kept: Vec<usize> = (0..groups.count).filter(|&group| better(group) < groups.taken).collect();
            order.retain(|&i| kept.contains(&of(i)));
        }
        order.sort_by(|&a, &b| choice(b).total_cmp(&choice(a)));
        order.truncate(op.k as usize);
        let sum: f64 = match op.normalise || op.scores == RouterScores::SoftmaxOfChosen {
            true => order.iter().map(|&i| scores[i as usize]).sum(),
            false => 1.0,
        };
        let scale = f64::from(op.scale.unwrap_or(1.0));
        order.into_iter().map(|i| (i, scores[i as usize] / sum * scale)).collect()
    }

    #[test]
    fn routers_are_those_that_are_published() {
        let mut rng = Rng::new(7);
        let mut number = |most: f32| (rng.below(2_000_001) as f32 / 1_000_000.0 - 1.0) * most;
        let all = [RouterScores::SoftmaxOfChosen, RouterScores::Softmax, RouterScores::Sigmoid];
        for round in 0..300 {
            let (scores, normalise) = (all[round % 3], round % 2 == 0 && round % 3 > 0);
            let scale = [None, Some(2.5)][round / 3 % 2];
            let score = [GroupScore::SumOfTwo, GroupScore::Largest][round / 12 % 2];
            let groups = |(count, taken)| RouterGroups { count, taken, score };
            let groups = [None, Some((6, 2)), Some((15, 4)), Some((4, 4))][round % 4].map(groups);
            let groups = groups.filter(|_| scores != RouterScores::SoftmaxOfChosen);
            let op = RouterTopk { groups, scores, normalise, scale, k: 6 };
            let logits: Vec<f32> = (0..60).map(|_| number(6.0)).collect();
            let biased = scores != RouterScores::SoftmaxOfChosen && round % 8 < 4;
            let bias: Vec<f32> = (0..60).map(|_| if biased { number(0.4) } else { 0.0 }).collect();
            let found = op.routes(&logits, biased.then_some(&bias[..]));
            let expected = published(&op, &logits, &bias);
            assert_eq!(found.len(), expected.len());
            for (route, (expert, weight)) in found.iter().zip(expected) {
                let wrong = (f64::from(route.weight) - weight).abs() / weight;
                assert!(route.expert == expert && wrong < 2e-6, "{op:?}: {route:?}, {expert} {weight}");
            }
        }
    }

    #[test]
    fn no_weights_at_all_are_no_division_by_zero() {
        let op = RouterTopk { scores: RouterScores::Softmax, normalise: true, ..RouterTopk::new(1) };
        let found = op.routes(&[90.0, -90.0], Some(&[0.0, 2.0]));
        assert_eq!((found[0].expert, found[0].weight), (1, 0.0));
    }

    #[test]
    fn attributes_are_read_back() {
        let groups = Some(RouterGroups { count: 8, taken: 3, score: GroupScore::SumOfTwo });
        let largest = Some(RouterGroups { count: 8, taken: 3, score: GroupScore::Largest });
        for (groups, scores, normalise, scale) in [
            (largest, RouterScores::Softmax, false, Some(16.0)),
            (None, RouterScores::SoftmaxOfChosen, false, Some(0.1)),
            (groups, RouterScores::Softmax, true, None),
            (groups, RouterScores::Sigmoid, true, Some(2.5)),
        ] {
            let op = RouterTopk { k: 3, groups, scores, normalise, scale };
            let text = op.attributes(1);
            let mut at = LineCursor::new(text.trim_matches(['(', ')']));
            assert_eq!(parse(&mut at, true), Ok(op.into()));
        }
    }
}
