//! Router: the experts with the largest scores, and their weights.

use super::prelude::*;
use crate::expr::{Expr, Unary};
use crate::math;
use cranelift_codegen::ir::condcodes::FloatCC;
use cranelift_codegen::ir::types::{F32, F32X4};
use kernmill_plan::limit;
use kernmill_plan::numeric::LEAST_ROUTE_SUM;

/// Scores of experts, by which the largest are chosen.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum RouterScores {
    /// The logits; the softmax of the chosen are the weights.
    SoftmaxOfChosen,
    /// The softmax of all logits.
    Softmax,
    /// The sigmoid of each logit.
    Sigmoid,
}

impl RouterScores {
    const NAMED: [(&'static str, RouterScores); 3] = [
        ("softmax_of_chosen", RouterScores::SoftmaxOfChosen),
        ("softmax", RouterScores::Softmax),
        ("sigmoid", RouterScores::Sigmoid),
    ];

    /// The name in specs.
    pub fn name(self) -> &'static str {
        RouterScores::NAMED.iter().find(|(_, scores)| *scores == self).map_or("?", |(name, _)| name)
    }

    /// The scores of that name.
    pub fn from_name(name: &str) -> Option<RouterScores> {
        RouterScores::NAMED.iter().find(|(known, _)| *known == name).map(|(_, scores)| *scores)
    }
}

/// The score of a group of experts, by its experts' scores for the choice.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum GroupScore {
    /// The sum of the two largest.
    SumOfTwo,
    /// The largest one.
    Largest,
}

/// Experts in groups of the same size, chosen from the groups with the best scores only.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct RouterGroups {
    /// How many groups there are.
    pub count: usize,
    /// How many stay.
    pub taken: usize,
    /// The score of a group.
    pub score: GroupScore,
}

impl RouterGroups {
    /// Experts that a group has at least: as many as its score is of.
    pub fn least(self) -> usize {
        match self.score {
            GroupScore::SumOfTwo => 2,
            GroupScore::Largest => 1,
        }
    }

    /// The experts in the groups that stay; `None` where groups are not of the same size, or too small.
    pub fn left(self, experts: usize) -> Option<usize> {
        let fits =
            self.count > 0 && experts.is_multiple_of(self.count) && experts / self.count >= self.least();
        fits.then(|| experts / self.count * self.taken)
    }

    /// Why `k` of so many experts cannot be chosen by these groups, if they cannot.
    pub fn fault(self, experts: usize, k: usize) -> Option<String> {
        let RouterGroups { count, taken, .. } = self;
        if taken == 0 || taken > count {
            return Some(format!("the best {taken} of {count} groups"));
        }
        match self.left(experts) {
            Some(left) => (k > left).then(|| format!("top-{k} of the {left} experts of {taken} groups")),
            None => Some(format!("{experts} experts in {count} groups")),
        }
    }
}

/// The k experts with the largest scores, and their weights.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct TopKRow<V = ValId, O = OperandId> {
    /// Logits.
    pub x: V,
    /// Added to the scores for the choice alone; f32, one for each expert.
    pub bias: Option<O>,
    /// How many experts there are.
    pub experts: usize,
    /// How many are taken.
    pub k: usize,
    /// The groups that they are in.
    pub groups: Option<RouterGroups>,
    /// The scores.
    pub scores: RouterScores,
    /// Whether weights are divided by their sum.
    pub normalise: bool,
    /// Factor on the weights.
    pub scale: Option<FloatBits>,
    /// The routing.
    pub out: V,
}

impl<V, O> TopKRow<V, O> {
    pub(super) fn facts(&self) -> RowOpFacts<'_, V> {
        RowOpFacts::new("router_topk", Some(&self.out))
    }

    pub(super) fn numbered(&self, names: &mut impl Names<V, O>) -> TopKRow {
        let out = names.write(&self.out);
        let x = names.read(&self.x);
        let bias = self.bias.as_ref().map(|bias| names.operand(bias));
        let TopKRow { experts, k, groups, scores, normalise, scale, .. } = *self;
        TopKRow { x, bias, experts, k, groups, scores, normalise, scale, out }
    }
}

impl TopKRow {
    /// Bytes of a list of all experts' scores.
    fn list_bytes(&self) -> usize {
        self.experts.next_multiple_of(LANES) * 4
    }

    /// Where the lists of groups begin: the experts' scores for the choice in the best ones, and the groups'
    /// own.
    fn groups_at(&self) -> usize {
        self.list_bytes() * if self.bias.is_some() { 2 } else { 1 }
    }

    /// Bytes of all lists.
    fn lists_bytes(&self) -> usize {
        let groups = self.groups.map_or(0, |groups| self.list_bytes() + groups.count * 4);
        self.groups_at() + groups
    }

    /// Writes the scores to `scores`.
    fn scores(&self, e: &mut Emit, logits: Value, scores: Value) {
        match self.scores {
            RouterScores::SoftmaxOfChosen => floats::copy(e, logits, scores, self.experts),
            RouterScores::Sigmoid => map(e, self.experts, logits, scores, |e, x| {
                math::expr(e, &Expr::Unary(Unary::Sigmoid, Box::new(Expr::Var(0))), &[x])
            }),
            RouterScores::Softmax => {
                let worst = e.b.ins().f32const(f32::NEG_INFINITY);
                let most = self.fold(e, logits, worst, |e, most, logit| {
                    let larger = e.b.ins().fcmp(FloatCC::GreaterThan, most, logit);
                    e.select(larger, most, logit)
                });
                let most = e.splat(most);
                map(e, self.experts, logits, scores, |e, x| {
                    let difference = e.fsub(x, most);
                    math::exp(e, difference)
                });
                let zero = e.b.ins().f32const(0.0);
                let sum = self.fold(e, scores, zero, |e, sum, power| e.fadd(sum, power));
                let sum = e.splat(sum);
                map(e, self.experts, scores, scores, |e, power| e.fdiv(power, sum));
            }
        }
    }

    /// Folds a list of all experts' numbers, the first one first.
    fn fold(
        &self,
        e: &mut Emit,
        list: Value,
        init: Value,
        body: impl FnOnce(&mut Emit, Value, Value) -> Value,
    ) -> Value {
        let (start, end) = (e.i64(0), e.i64(self.experts as i64));
        let folded = e.for_carry(start, end, 1, &[init], |e, expert, so_far| {
            let ptr = e.at(list, expert, 4);
            let number = e.load(F32, ptr, 0);
            vec![body(e, so_far[0], number)]
        });
        folded[0]
    }

    /// A list of what `choice` has of the best groups' experts, and of no other: those are smaller than all.
    /// Ties go to the lower group.
    fn best_groups(&self, e: &mut Emit, groups: RouterGroups, choice: Value) -> Value {
        let kept = e.add_imm(choice, self.groups_at() as i64);
        let scores = e.add_imm(kept, self.list_bytes() as i64);
        let size = self.experts / groups.count;
        let worst = e.b.ins().f32const(f32::NEG_INFINITY);
        let lanes = e.splat(worst);
        floats::fill(e, kept, lanes, self.experts);
        e.for_count(groups.count, |e, group| {
            let members = e.at(choice, group, size * 4);
            let (start, end) = (e.i64(0), e.i64(size as i64));
            let two = e.for_carry(start, end, 1, &[worst, worst], |e, expert, two| {
                let ptr = e.at(members, expert, 4);
                let score = e.load(F32, ptr, 0);
                let best = e.b.ins().fcmp(FloatCC::GreaterThan, score, two[0]);
                let second = e.b.ins().fcmp(FloatCC::GreaterThan, score, two[1]);
                let other = e.select(second, score, two[1]);
                vec![e.select(best, score, two[0]), e.select(best, two[0], other)]
            });
            let score = match groups.score {
                GroupScore::SumOfTwo => e.fadd(two[0], two[1]),
                GroupScore::Largest => two[0],
            };
            let ptr = e.at(scores, group, 4);
            e.store(score, ptr, 0);
        });
        e.for_count(groups.taken, |e, _| {
            let (start, end) = (e.i64(0), e.i64(groups.count as i64));
            let best = largest(e, scores, start, end);
            let taken = e.at(scores, best[1], 4);
            e.store(worst, taken, 0);
            let (from, to) = (e.at(choice, best[1], size * 4), e.at(kept, best[1], size * 4));
            e.for_count(size, |e, expert| {
                let (from, to) = (e.at(from, expert, 4), e.at(to, expert, 4));
                let score = e.load(F32, from, 0);
                e.store(score, to, 0);
            });
        });
        kept
    }

    /// Writes the experts with the largest numbers of `choice`, ties to the lower one, and spoils the list.
    /// Gives the number and the place of each.
    ///
    /// Whatever the numbers, every expert id written is below `experts`.
    fn choose(&self, e: &mut Emit, choice: Value, out: Value) -> Vec<(Value, Value)> {
        let mut chosen = Vec::with_capacity(self.k);
        for slot in 0..self.k {
            let (start, end) = (e.i64(0), e.i64(self.experts as i64));
            let best = largest(e, choice, start, end);
            e.b.ins().istore32(MEM, best[1], out, (slot * 8) as i32);
            let taken = e.at(choice, best[1], 4);
            let worst = e.b.ins().f32const(f32::NEG_INFINITY);
            e.store(worst, taken, 0);
            chosen.push((best[0], best[1]));
        }
        chosen
    }

    /// The weights of experts with these scores.
    fn weights(&self, e: &mut Emit, scores: Vec<Value>) -> Vec<Value> {
        let divided = |e: &mut Emit, numbers: Vec<Value>, least: Option<f32>| -> Vec<Value> {
            let sum = numbers.iter().copied().reduce(|a, b| e.fadd(a, b)).expect("k is at least 1");
            let sum = match least {
                Some(least) => {
                    let least = e.b.ins().f32const(least);
                    e.fadd(sum, least)
                }
                None => sum,
            };
            numbers.into_iter().map(|number| e.fdiv(number, sum)).collect()
        };
        let weights = match self.scores {
            RouterScores::SoftmaxOfChosen => {
                let first = scores[0];
                let power = |logit| {
                    let difference = e.fsub(logit, first);
                    let lanes = e.splat(difference);
                    let power = math::exp(e, lanes);
                    e.b.ins().extractlane(power, 0)
                };
                let powers = scores.into_iter().map(power).collect();
                divided(e, powers, None)
            }
            _ if self.normalise => divided(e, scores, Some(LEAST_ROUTE_SUM)),
            _ => scores,
        };
        let Some(scale) = self.scale else { return weights };
        let scale = e.b.ins().f32const(f32::from_bits(scale.bits()));
        weights.into_iter().map(|weight| e.fmul(weight, scale)).collect()
    }
}

impl RowOpCode for TopKRow {
    fn check(&self, check: &mut KernelChecker, site: CheckedSite) -> Checked {
        let TopKRow { x, experts, k, groups, out, .. } = *self;
        let most = limit::TOP_K.min(experts);
        check
            .ensure((1..=most).contains(&k), || format!("the best {k} of {experts}, expected 1 to {most}"))?;
        let fault = groups.and_then(|groups| groups.fault(experts, k));
        check.ensure(fault.is_none(), || fault.unwrap_or_default())?;
        check.reads(x, RowType::F32(experts), site.rows)?;
        if let Some(bias) = self.bias {
            check.bias(bias, experts, 1)?;
        }
        check.keeps(self.lists_bytes());
        check.writes(out, RowType::Routing(k), site.rows)
    }

    fn emit(&self, e: &mut Emit, cx: &Cx, site: &OpSite) {
        let (logits, out) = (site.val(e, cx, self.x), site.val(e, cx, self.out));
        let choice = cx.work_scratch(e);
        let scores = match self.bias {
            Some(bias) => {
                let scores = e.add_imm(choice, self.list_bytes() as i64);
                self.scores(e, logits, scores);
                floats::copy(e, scores, choice, self.experts);
                let bias = cx.operand(e, bias);
                floats::add_in_place(e, choice, bias, self.experts);
                Some(scores)
            }
            None => {
                self.scores(e, logits, choice);
                None
            }
        };
        let choice = match self.groups {
            Some(groups) => self.best_groups(e, groups, choice),
            None => choice,
        };
        let chosen = self.choose(e, choice, out);
        let score = |(score, expert)| match scores {
            Some(scores) => {
                let ptr = e.at(scores, expert, 4);
                e.load(F32, ptr, 0)
            }
            None => score,
        };
        let chosen = chosen.into_iter().map(score).collect();
        for (slot, weight) in self.weights(e, chosen).into_iter().enumerate() {
            e.store(weight, out, slot * 8 + 4);
        }
    }

    fn work_bytes(&self, _: &dyn Fn(ValId) -> usize) -> usize {
        self.lists_bytes()
    }

    fn weights(&self, _: &[RowType]) -> Vec<(OperandId, usize)> {
        self.bias.iter().map(|bias| (*bias, self.experts * 4)).collect()
    }

    fn work(&self, _: &dyn Fn(ValId) -> usize) -> Option<RowWork> {
        let passes = match self.scores {
            RouterScores::SoftmaxOfChosen => self.k,
            RouterScores::Sigmoid | RouterScores::Softmax => self.k + 1,
        };
        let passes = passes + if self.groups.is_some() { 3 } else { 0 };
        Some(RowWork { elements: self.experts * passes, weights: 0 })
    }
}

/// The largest number of a list from `start` to before `end` and its index, ties to the lower one.
fn largest(e: &mut Emit, list: Value, start: Value, end: Value) -> [Value; 2] {
    let worst = e.b.ins().f32const(f32::NEG_INFINITY);
    let best = e.for_carry(start, end, 1, &[worst, start], |e, index, best| {
        let ptr = e.at(list, index, 4);
        let number = e.load(F32, ptr, 0);
        let better = e.b.ins().fcmp(FloatCC::GreaterThan, number, best[0]);
        vec![e.select(better, number, best[0]), e.select(better, index, best[1])]
    });
    [best[0], best[1]]
}

/// `out[i] = f(x[i])`, for whole vectors of the `n` numbers.
fn map(e: &mut Emit, n: usize, x: Value, out: Value, f: impl FnOnce(&mut Emit, Value) -> Value) {
    floats::vectors(e, n, |e, offset| {
        let (x, out) = (e.add(x, offset), e.add(out, offset));
        let value = e.load(F32X4, x, 0);
        let value = f(e, value);
        e.store(value, out, 0);
    });
}
