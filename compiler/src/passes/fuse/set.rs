//! The set of fused-op specs that a model is compiled with.

use super::rule::FusionRule;
use super::spec::{FusedSpec, RuleOrder};
use crate::front::spec::{Language, Result, SpecError};
use std::sync::{Arc, LazyLock};

/// Priority of a spec that states no place: ahead of the built-in ones, so that a user's fusion takes its
/// nodes first.
pub const USER_PRIORITY: i64 = 1000;

/// The built-in specs, in the order in which they are tried: an earlier one takes its nodes first.
const BUILTIN: [(&str, &str); 22] = [
    ("post_qkv_norm", include_str!("../../../../model-specs/fused/post_qkv_norm.toml")),
    ("qkv_norm", include_str!("../../../../model-specs/fused/qkv_norm.toml")),
    ("post_qkv", include_str!("../../../../model-specs/fused/post_qkv.toml")),
    ("qkv", include_str!("../../../../model-specs/fused/qkv.toml")),
    ("qkv_alone", include_str!("../../../../model-specs/fused/qkv_alone.toml")),
    ("post_q", include_str!("../../../../model-specs/fused/post_q.toml")),
    ("q", include_str!("../../../../model-specs/fused/q.toml")),
    ("attention", include_str!("../../../../model-specs/fused/attention.toml")),
    ("linear_act", include_str!("../../../../model-specs/fused/linear_act.toml")),
    ("linear_residual", include_str!("../../../../model-specs/fused/linear_residual.toml")),
    ("moe_router", include_str!("../../../../model-specs/fused/moe_router.toml")),
    ("moe_gate_up", include_str!("../../../../model-specs/fused/moe_gate_up.toml")),
    ("moe_routed", include_str!("../../../../model-specs/fused/moe_routed.toml")),
    ("moe_down", include_str!("../../../../model-specs/fused/moe_down.toml")),
    ("post_mlp_gate_up", include_str!("../../../../model-specs/fused/post_mlp_gate_up.toml")),
    ("mlp_gate_up", include_str!("../../../../model-specs/fused/mlp_gate_up.toml")),
    ("linear_combined", include_str!("../../../../model-specs/fused/linear_combined.toml")),
    ("logits", include_str!("../../../../model-specs/fused/logits.toml")),
    ("post_norm_add", include_str!("../../../../model-specs/fused/post_norm_add.toml")),
    ("norm_quant", include_str!("../../../../model-specs/fused/norm_quant.toml")),
    ("routed_shrink", include_str!("../../../../model-specs/fused/routed_shrink.toml")),
    ("shrink", include_str!("../../../../model-specs/fused/shrink.toml")),
];

/// Names that built-in specs had, and those of the specs that do their work now.
const FORMER: [(&str, &str); 3] = [("shrink1", "shrink"), ("shrink2", "shrink"), ("shrink3", "shrink")];

/// The fused-op specs that a model is compiled with, in the order in which they are tried.
#[derive(Clone, Debug, Default)]
pub struct FusedSet {
    specs: Vec<RuleEntry>,
}

#[derive(Clone, Debug)]
struct RuleEntry {
    spec: Arc<FusedSpec>,
    priority: i64,
    builtin: bool,
}

impl FusedSet {
    /// No specs: nothing fuses.
    pub fn none() -> FusedSet {
        FusedSet::default()
    }

    /// The built-in specs.
    pub fn builtin() -> FusedSet {
        // Never changes, and is the same for everyone: only parsed texts of this file's own.
        static SET: LazyLock<FusedSet> = LazyLock::new(|| {
            let parse = |(name, text): (&str, &str)| {
                let spec = FusedSpec::parse(&format!("model-specs/fused/{name}.toml"), text);
                spec.unwrap_or_else(|error| panic!("a built-in fused-op spec is wrong: {error:?}"))
            };
            FusedSet::in_order(BUILTIN.into_iter().map(parse), true)
        });
        SET.clone()
    }

    /// The specs of these texts in the order given, whatever places they state: as a plan keeps them. The
    /// names are for errors.
    ///
    /// # Errors
    /// The first thing that is wrong in one of them.
    pub fn from_texts<'t>(texts: impl IntoIterator<Item = (&'t str, &'t str)>) -> Result<FusedSet> {
        let specs = texts.into_iter().map(|(name, text)| FusedSpec::parse(name, text));
        Ok(FusedSet::in_order(specs.collect::<Result<Vec<_>>>()?, false))
    }

    fn in_order(specs: impl IntoIterator<Item = FusedSpec>, builtin: bool) -> FusedSet {
        let entry = |spec: FusedSpec| {
            let priority =
                if let Some(RuleOrder::Priority(priority)) = spec.place { priority } else { USER_PRIORITY };
            RuleEntry { spec: Arc::new(spec), priority, builtin }
        };
        FusedSet { specs: specs.into_iter().map(entry).collect() }
    }

    /// The set with these specs besides, each at its place. One that has a built-in spec's name replaces it.
    ///
    /// # Errors
    /// Two specs of one name; a place beside a spec that is not there.
    pub fn with(mut self, specs: Vec<FusedSpec>) -> Result<FusedSet> {
        let mut waiting = specs;
        loop {
            let before = waiting.len();
            let mut left = Vec::new();
            for spec in waiting {
                match self.place_of(&spec)? {
                    Some((index, priority)) => self.insert(spec, index, priority)?,
                    None => left.push(spec),
                }
            }
            if left.is_empty() {
                return Ok(self);
            }
            if left.len() == before {
                return Err(self.unknown_neighbour(&left[0]));
            }
            waiting = left;
        }
    }

    /// Where a spec goes, and its priority from then on; `None` as long as its neighbour is not in the set.
    fn place_of(&self, spec: &FusedSpec) -> Result<Option<(usize, i64)>> {
        let find = |name: &str| self.specs.iter().position(|entry| entry.spec.name.value == name);
        let behind = |priority: i64| {
            let index = self.specs.iter().position(|entry| entry.priority < priority);
            (index.unwrap_or(self.specs.len()), priority)
        };
        Ok(match &spec.place {
            Some(RuleOrder::Priority(priority)) => Some(behind(*priority)),
            Some(RuleOrder::Before(name)) => find(&name.value).map(|i| (i, self.specs[i].priority)),
            Some(RuleOrder::After(name)) => find(&name.value).map(|i| (i + 1, self.specs[i].priority)),
            None => match find(&spec.name.value) {
                Some(i) => Some((i, self.specs[i].priority)),
                None => Some(behind(USER_PRIORITY)),
            },
        })
    }

    fn insert(&mut self, spec: FusedSpec, index: usize, priority: i64) -> Result<()> {
        let mut index = index;
        if let Some(old) = self.specs.iter().position(|entry| entry.spec.name.value == spec.name.value) {
            if !self.specs[old].builtin {
                let other = self.specs[old].spec.source.name();
                let message = format!("two fused-op specs are called `{}`", spec.name.value);
                let error = SpecError::new(&spec.source, spec.name.span, message, "expected a new name");
                return Err(error.help(format!("the other is in {other}")));
            }
            self.specs.remove(old);
            index -= usize::from(old < index);
        }
        for other in self.specs() {
            let function =
                spec.functions.iter().find(|one| other.functions.iter().any(|two| two.name == one.name));
            let op = spec.ops.iter().find(|one| other.ops.iter().any(|two| two.name.value == one.name.value));
            let twice =
                function.map(|one| ("functions", &one.name)).or(op.map(|one| ("ops", &one.name.value)));
            if let Some((what, name)) = twice {
                let message = format!("two {what} are called `{name}`");
                let error = SpecError::new(&spec.source, spec.name.span.clone(), message, "in this spec");
                return Err(error.help(format!("the other is in {}", other.source.name())));
            }
        }
        self.specs.insert(index, RuleEntry { spec: Arc::new(spec), priority, builtin: false });
        Ok(())
    }

    fn unknown_neighbour(&self, spec: &FusedSpec) -> SpecError {
        let Some(RuleOrder::Before(name) | RuleOrder::After(name)) = &spec.place else {
            unreachable!("only neighbours are waited for")
        };
        let message = format!("there is no fused-op spec `{}`", name.value);
        let error =
            SpecError::new(&spec.source, name.span.clone(), message, "expected the name of another spec");
        error.near(&name.value, self.names())
    }

    /// The set without the spec of that name.
    ///
    /// # Errors
    /// When no spec has the name; the message gives the new name, or one that is near.
    pub fn without(mut self, name: &str) -> std::result::Result<FusedSet, String> {
        match self.specs.iter().position(|entry| entry.spec.name.value == name) {
            Some(index) => {
                self.specs.remove(index);
                Ok(self)
            }
            None => {
                let known: Vec<&str> = self.names().collect();
                if let Some((_, now)) = FORMER.iter().find(|(former, _)| *former == name) {
                    return Err(format!(
                        "there is no fused-op spec `{name}` any more: it is part of `{now}` now"
                    ));
                }
                let near = kernmill_os::suggest::nearest(name, known.iter().copied());
                let near = near.map_or(String::new(), |near| format!("; did you mean `{near}`?"));
                Err(format!(
                    "there is no fused-op spec `{name}`, expected one of: {}{near}",
                    known.join(", ")
                ))
            }
        }
    }

    /// Names, in order.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.specs.iter().map(|entry| entry.spec.name.value.as_str())
    }

    /// Specs, in order.
    pub fn specs(&self) -> impl Iterator<Item = &FusedSpec> {
        self.specs.iter().map(|entry| &*entry.spec)
    }

    /// The specs' additions to the spec language.
    pub fn language(&self) -> Language {
        let mut language = Language::default();
        for spec in self.specs() {
            language.functions.extend(spec.functions.iter().cloned());
            language.ops.extend(spec.ops.iter().cloned());
        }
        language
    }

    /// Rules, in order.
    pub fn rules(&self) -> impl Iterator<Item = &FusionRule> {
        self.specs().filter_map(|spec| spec.rule.as_ref())
    }
}
