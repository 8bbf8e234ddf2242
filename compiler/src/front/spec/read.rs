//! TOML to [`Spec`]: structure, names, types of keys.

use super::read_layers::{blocks, layer};
use super::read_nodes::nodes;
use super::read_tensors::tensors;
use super::section::{
    SpannedValue, SpecSection, boolean, check_name, one_of, scalar, scalars, string, strings,
};
use super::{
    ExpandedOp, Language, ModelSection, NodeDef, Result, RopeDef, RopeKind, RopeScalingDef, Spec, SpecError,
    SpecText, scope,
};
use kernmill_kernels_gen::row_op::RopePairs;
use std::collections::BTreeMap;
use toml::de::DeTable;

/// Reads the whole document.
pub(super) fn spec(source: &SpecText, language: &Language) -> Result<Spec> {
    let document = DeTable::parse(source.text()).map_err(|e| {
        let span = e.span().unwrap_or(0..0);
        SpecError::new(source, span, format!("not TOML: {}", e.message()), "here")
    })?;
    let root = SpecSection::root(source, document.get_ref(), "the spec")
        .only(&["model", "dims", "rope", "tensors", "before", "block", "layer", "after"])?;
    let dims = match root.get("dims") {
        Some(item) => dims(&SpecSection::new(source, item, "[dims]")?)?,
        None => BTreeMap::new(),
    };
    Ok(Spec {
        source: source.clone(),
        model: model(source, root.require("model")?)?,
        dims,
        ropes: root.get("rope").map_or(Ok(Vec::new()), |item| ropes(source, item))?,
        tensors: root
            .get("tensors")
            .map_or(Ok(Vec::new()), |item| tensors(source, item, "[tensors]", false))?,
        before: nodes_section(source, root.get("before"), "[before]", &language.ops)?,
        blocks: root.get("block").map_or(Ok(Vec::new()), |item| blocks(source, item, &language.ops))?,
        layer: root.get("layer").map(|item| layer(source, item, &language.ops)).transpose()?,
        after: nodes_section(source, root.get("after"), "[after]", &language.ops)?,
        functions: language.functions.clone(),
    })
}

fn model(source: &SpecText, item: &SpannedValue<'_>) -> Result<ModelSection> {
    let section =
        SpecSection::new(source, item, "[model]")?.only(&["name", "vocab", "max_context", "left_out"])?;
    let left_out = section.get("left_out").map_or(Ok(Vec::new()), |item| strings(source, item))?;
    Ok(ModelSection {
        left_out: left_out.into_iter().map(|start| start.value).collect(),
        name: string(source, section.require("name")?)?,
        vocab: scalar(source, section.require("vocab")?)?,
        max_context: scalar(source, section.require("max_context")?)?,
    })
}

/// Dims are evaluated in order of appearance, each over those before it.
fn dims(section: &SpecSection<'_>) -> Result<BTreeMap<String, super::number::Number>> {
    let mut dims = BTreeMap::new();
    for (name, item) in section.entries() {
        check_name(section.source, &name)?;
        let text = scalar(section.source, item)?;
        let value = scope::evaluate(section.source, &text, &|dim| dims.get(dim).copied(), &|| {
            dims.keys().cloned().collect()
        })
        .map_err(|e| match section.get(unknown_dim(&e)) {
            Some(_) => e.help("a dim can use only the dims above it"),
            None => e,
        })?;
        dims.insert(name.value, value);
    }
    Ok(dims)
}

/// The name in "`name` is not a dim".
fn unknown_dim(error: &SpecError) -> &str {
    error.message().split('`').nth(1).unwrap_or("")
}

fn ropes(source: &SpecText, item: &SpannedValue<'_>) -> Result<Vec<RopeDef>> {
    let mut ropes = Vec::new();
    for (name, item) in SpecSection::new(source, item, "[rope]")?.entries() {
        check_name(source, &name)?;
        let what = format!("[rope.{}]", name.value);
        let section = SpecSection::new(source, item, &what)?.only(&[
            "head_dim",
            "rotary_dim",
            "pairs",
            "theta",
            "factors",
            "attention_factor",
            "scaling",
        ])?;
        let number = |key: &str| section.get(key).map(|item| scalar(source, item)).transpose();
        ropes.push(RopeDef {
            head_dim: scalar(source, section.require("head_dim")?)?,
            rotary_dim: number("rotary_dim")?,
            pairs: match section.get("pairs") {
                Some(item) => one_of(source, &string(source, item)?, &RopePairs::NAMED, "kind of pairs")?,
                None => RopePairs::Halves,
            },
            theta: scalar(source, section.require("theta")?)?,
            factors: section.get("factors").map(|item| scalars(source, item)).transpose()?,
            attention_factor: number("attention_factor")?,
            scaling: section.get("scaling").map(|item| rope_scaling(source, item)).transpose()?,
            name,
        });
    }
    Ok(ropes)
}

/// Kinds of RoPE scaling: name, kind, and the numbers that it takes.
const ROPE_SCALINGS: [(&str, RopeKind, &[&str]); 4] = [
    ("linear", RopeKind::Linear, &["factor"]),
    ("dynamic", RopeKind::Dynamic, &["factor", "original_context"]),
    ("yarn", RopeKind::Yarn, &["factor", "beta_fast", "beta_slow", "original_context"]),
    ("llama3", RopeKind::Llama3, &["factor", "low_freq_factor", "high_freq_factor", "original_context"]),
];

fn rope_scaling(source: &SpecText, item: &SpannedValue<'_>) -> Result<RopeScalingDef> {
    let section = SpecSection::new(source, item, "this scaling")?;
    let kind = string(source, section.require("kind")?)?;
    let Some((_, kind, keys)) = ROPE_SCALINGS.iter().find(|(name, ..)| *name == kind.value) else {
        let known: Vec<&str> = ROPE_SCALINGS.iter().map(|(name, ..)| *name).collect();
        let message = format!("unknown kind of rope scaling `{}`", kind.value);
        let label = format!("expected one of: {}", known.join(", "));
        return Err(SpecError::new(source, kind.span, message, label).near(&kind.value, known));
    };
    let (kind, keys) = (*kind, *keys);
    let mut known = [&["kind"], keys].concat();
    if kind == RopeKind::Yarn {
        known.push("truncate");
    }
    let section = section.only(&known)?;
    let mut numbers = BTreeMap::new();
    for key in keys {
        numbers.insert(*key, scalar(source, section.require(key)?)?);
    }
    let truncate = section.get("truncate").map_or(Ok(true), |item| boolean(source, item))?;
    Ok(RopeScalingDef { kind, span: item.span(), numbers, truncate })
}

fn nodes_section(
    source: &SpecText,
    item: Option<&SpannedValue<'_>>,
    what: &str,
    ops: &[ExpandedOp],
) -> Result<Vec<NodeDef>> {
    let Some(item) = item else { return Ok(Vec::new()) };
    let section = SpecSection::new(source, item, what)?.only(&["node"])?;
    nodes(source, section.require("node")?, ops)
}
