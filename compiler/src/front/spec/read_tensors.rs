//! TOML to the tensors of a [`Spec`](super::Spec).

use super::number::Number;
use super::section::{
    SpannedValue, SpecSection, boolean, check_name, one_of, scalar, scalars, string, wrong_type,
};
use super::{Result, RowsDef, ScalarText, Spanned, SpecError, SpecText, TensorDef, TensorFormat};
use crate::ir::EXPERT;
use kernmill_plan::format::WeightFormat;
use toml::de::DeValue;

pub(super) fn tensors(
    source: &SpecText,
    item: &SpannedValue<'_>,
    what: &str,
    per_layer: bool,
) -> Result<Vec<TensorDef>> {
    let mut tensors = Vec::new();
    for (name, item) in SpecSection::new(source, item, what)?.entries() {
        check_name(source, &name)?;
        tensors.push(tensor(source, name, item, per_layer)?);
    }
    Ok(tensors)
}

fn tensor(
    source: &SpecText,
    name: Spanned<String>,
    item: &SpannedValue<'_>,
    per_layer: bool,
) -> Result<TensorDef> {
    let what = format!("tensor `{}`", name.value);
    let section = SpecSection::new(source, item, &what)?.only(&[
        "from",
        "scales",
        "rows",
        "transposed",
        "shape",
        "format",
        "plus",
    ])?;
    let from = checkpoint_name(source, section.require("from")?, per_layer)?;
    let scales = section.get("scales").map(|item| checkpoint_name(source, item, per_layer)).transpose()?;
    let format = tensor_format(source, section.require("format")?, per_layer)?;
    let find = |is: fn(WeightFormat) -> bool| format.all().iter().map(|one| one.value).find(|&one| is(one));
    if let (Some(scales), Some(other)) = (&scales, find(|format| format != WeightFormat::Mxfp4)) {
        let message = format!("`scales` of a tensor in {}", other.name());
        return Err(SpecError::new(
            source,
            scales.span.clone(),
            message,
            "expected only with format = \"mxfp4\"",
        ));
    }
    let rows = match section.get("rows") {
        Some(item) => rows(source, item)?,
        None => None,
    };
    let transposed = match section.get("transposed") {
        Some(item) => boolean(source, item)?.then(|| item.span()),
        None => None,
    };
    if let (Some(span), Some(blocks)) = (&transposed, find(WeightFormat::is_blocked)) {
        let message = format!("a transposed tensor in {}", blocks.name());
        return Err(SpecError::new(source, span.clone(), message, "expected with bf16, f16 or f32 only"));
    }
    let by_expert = |name: &Spanned<String>| name.value.contains(EXPERT);
    if let Some(scales) = scales.as_ref().filter(|scales| by_expert(scales) != by_expert(&from)) {
        let message = format!("{EXPERT} in one of the names `from` and `scales`");
        return Err(SpecError::new(source, scales.span.clone(), message, "expected in both or in none"));
    }
    // Where both names are the same, blocks have their scales within.
    let scales = scales.filter(|scales| scales.value != from.value);
    let shape = scalars(source, section.require("shape")?)?;
    let plus = section.get("plus").map(|item| scalar(source, item)).transpose()?;
    Ok(TensorDef { name, from, scales, shape, format, rows, transposed, plus })
}

/// A checkpoint tensor's name: with `{layer}` in a layer, without elsewhere, and with `{expert}` where each
/// expert has a tensor.
fn checkpoint_name(source: &SpecText, item: &SpannedValue<'_>, per_layer: bool) -> Result<Spanned<String>> {
    let name = string(source, item)?;
    let rest = name.value.replace("{layer}", "");
    let error = |message: &str, label: &str| Err(SpecError::new(source, name.span.clone(), message, label));
    if rest.replace(EXPERT, "").contains(['{', '}']) {
        return error("unknown placeholder in a checkpoint name", "expected {layer}, {expert} or no braces");
    }
    match (rest.len() != name.value.len(), per_layer) {
        (true, false) => error("{layer} outside of a layer", "expected a name without {layer} here"),
        (false, true) => {
            error("every layer would use the same checkpoint tensor", "expected a name with {layer} in it")
        }
        _ => Ok(name),
    }
}

fn tensor_format(source: &SpecText, item: &SpannedValue<'_>, per_layer: bool) -> Result<TensorFormat> {
    match item.get_ref() {
        DeValue::Array(_) if !per_layer => {
            let message = "a list of formats outside of a layer";
            Err(SpecError::new(source, item.span(), message, "expected one format"))
        }
        DeValue::Array(array) => {
            let value = array.iter().map(|item| weight_format(source, item)).collect::<Result<_>>()?;
            Ok(TensorFormat::ByLayer(Spanned { value, span: item.span() }))
        }
        DeValue::String(_) => weight_format(source, item).map(TensorFormat::One),
        _ if per_layer => Err(wrong_type(source, item, "a string or an array of strings")),
        _ => Err(wrong_type(source, item, "a string")),
    }
}

fn weight_format(source: &SpecText, item: &SpannedValue<'_>) -> Result<Spanned<WeightFormat>> {
    let name = string(source, item)?;
    let plain = [("bf16", WeightFormat::Bf16), ("f16", WeightFormat::F32), ("f32", WeightFormat::F32)];
    let blocked = WeightFormat::blocked().map(|format| (format.name(), format));
    let known: Vec<_> = plain.into_iter().chain(blocked).collect();
    let value = one_of(source, &name, &known, "format")?;
    Ok(Spanned { value, span: name.span })
}

/// `"even"`, `"odd"`, `"all"`, or which rows of how many: `{ of = 512, take = "0..256" }`.
fn rows(source: &SpecText, item: &SpannedValue<'_>) -> Result<Option<RowsDef>> {
    if matches!(item.get_ref(), DeValue::Table(_)) {
        let section = SpecSection::new(source, item, "`rows`")?.only(&["of", "take"])?;
        let take = string(source, section.require("take")?)?;
        let Some((first, end)) = take.value.split_once("..") else {
            let message = format!("`{}` is no range of rows", take.value);
            return Err(SpecError::new(source, take.span, message, "expected such as \"0..256\""));
        };
        let part =
            |text: &str| Spanned { value: ScalarText::Expr(text.trim().to_owned()), span: take.span.clone() };
        let of = scalar(source, section.require("of")?)?;
        return Ok(Some(RowsDef { of, first: part(first), end: part(end) }));
    }
    let name = string(source, item).map_err(|_| wrong_type(source, item, "a string or { of, take }"))?;
    let every_other = |first| {
        let number = |i| Spanned { value: ScalarText::Number(Number::Int(i)), span: name.span.clone() };
        Some(RowsDef { of: number(2), first: number(first), end: number(first + 1) })
    };
    match name.value.as_str() {
        "all" => Ok(None),
        "even" => Ok(every_other(0)),
        "odd" => Ok(every_other(1)),
        other => Err(SpecError::new(
            source,
            name.span.clone(),
            format!("unknown selection of rows `{other}`"),
            "expected one of: all, even, odd, or { of = 512, take = \"0..256\" }",
        )),
    }
}
