//! Which type each tensor gets: kept, by a recipe, or one of several that the size decides among.

use crate::fit::FITTED;
use crate::sensitivity::sensitivity;
use fancy_regex::Regex;
use kernmill::{Error, Result};
use kernmill_checkpoint::blocks::TensorType;
use kernmill_checkpoint::gguf::{Gguf, GgufTensor};
use kernmill_compiler::ir::Role;
use kernmill_compiler::synth::{GgufTypes, TypedTensor};
use kernmill_plan::format::WeightFormat;
use std::str::FromStr;

const EMBEDDINGS: &str = "token_embd.weight";
const UNEMBEDDING: &str = "output.weight";
/// Matrices that are small, and whose errors count much: routers, positions, types of tokens.
const KEPT: [&str; 4] =
    ["ffn_gate_inp.weight", "ffn_gate_inp_shexp.weight", "position_embd.weight", "token_types.weight"];
/// Types among which a size decides, for rows of whole blocks of 256 and for others.
const CHOICES: [&str; 4] = ["Q4_K", "Q5_K", "Q6_K", "Q8_0"];
const CHOICES_OF_32: [&str; 5] = ["IQ4_NL", "Q4_1", "Q5_0", "Q5_1", "Q8_0"];

/// A type for the matrices whose name a regular expression finds.
#[derive(Clone, Debug)]
pub(crate) struct KeepRule {
    pattern: Regex,
    kind: TensorType,
}

impl FromStr for KeepRule {
    type Err = String;

    fn from_str(text: &str) -> std::result::Result<KeepRule, String> {
        let (pattern, kind) = text.rsplit_once('=').ok_or("expected REGEX=TYPE, such as 'attn_v=q6_k'")?;
        let pattern = Regex::new(pattern).map_err(|error| format!("`{pattern}`: {error}"))?;
        Ok(KeepRule { pattern, kind: written_type(kind)? })
    }
}

impl KeepRule {
    /// Whether it is for this tensor: a matrix whose name it finds.
    fn finds(&self, info: &GgufTensor) -> bool {
        is_matrix(info) && self.pattern.is_match(&info.name).unwrap_or(false)
    }
}

/// A type that files are written in.
fn written_type(name: &str) -> std::result::Result<TensorType, String> {
    let is_written = |kind: &TensorType| kind.encoding.format().is_none_or(|format| FITTED.contains(&format));
    let all: Vec<TensorType> = TensorType::all().into_iter().filter(is_written).collect();
    let names = all.iter().map(|kind| kind.name.to_lowercase()).collect::<Vec<_>>().join(", ");
    let found = all.into_iter().find(|kind| kind.name.eq_ignore_ascii_case(name));
    found.ok_or_else(|| format!("`{name}` is no type that is written: expected one of {names}"))
}

/// The rules that decide on types.
#[derive(Clone, Debug)]
pub(crate) struct TypeRecipe {
    /// The recipe, unless a size decides.
    pub(crate) types: Option<GgufTypes>,
    /// Rules that go before it; the first that finds a name counts.
    pub(crate) keep: Vec<KeepRule>,
    /// Whether blocks of few bits are rounded again.
    pub(crate) requantize: bool,
}

/// A tensor of the model, and what it may become.
pub(crate) struct Candidate<'a> {
    pub(crate) info: &'a GgufTensor,
    /// The types to choose from, by bits; the tensor's own where it stays as it is.
    pub(crate) types: Vec<TensorType>,
    /// How much its errors count beside those of other tensors.
    pub(crate) sensitivity: f64,
}

impl<'a> Candidate<'a> {
    /// Bytes in a type.
    pub(crate) fn bytes(&self, kind: TensorType) -> u64 {
        let elements: usize = self.info.shape.iter().product();
        (elements / kind.elements * kind.bytes) as u64
    }
}

impl TypeRecipe {
    /// Every tensor of a file, and the types that it may have.
    pub(crate) fn candidates<'a>(&self, gguf: &'a Gguf) -> Result<Vec<Candidate<'a>>> {
        if let Some(rule) = self.keep.iter().find(|rule| !gguf.tensors().iter().any(|info| rule.finds(info)))
        {
            let what = format!(
                "--keep {}={}: no matrix of the model is called so; `kernmill inspect` lists their names",
                rule.pattern.as_str(),
                rule.kind.name.to_lowercase()
            );
            return Err(Error::bad_input(what));
        }
        let layer_of = |name: &str| name.strip_prefix("blk.")?.split_once('.')?.0.parse::<usize>().ok();
        let layers =
            gguf.tensors().iter().filter_map(|info| layer_of(&info.name)).max().map_or(0, |last| last + 1);
        let output = if gguf.info(UNEMBEDDING).is_some() { UNEMBEDDING } else { EMBEDDINGS };
        let candidate = |info: &'a GgufTensor| {
            let layer = layer_of(&info.name).map(|layer| (layer, layers));
            let types = self.types_of(gguf, info, layer, info.name == output)?;
            let sensitivity = sensitivity(&info.name, layer, info.name == output);
            Ok(Candidate { info, types, sensitivity })
        };
        gguf.tensors().iter().map(candidate).collect()
    }

    fn types_of(
        &self,
        gguf: &Gguf,
        info: &GgufTensor,
        layer: Option<(usize, usize)>,
        is_output: bool,
    ) -> Result<Vec<TensorType>> {
        let named = self.keep.iter().find(|rule| rule.finds(info));
        let kept = Ok(vec![info.kind]);
        let cols = info.shape[info.shape.len() - 1];
        let wanted = match (named, self.types) {
            (Some(rule), _) => {
                let kind = rule.kind;
                if !cols.is_multiple_of(kind.elements) {
                    let what = format!(
                        "--keep {}={}: tensor `{}` has rows of {cols}, which are not whole blocks of {}",
                        rule.pattern.as_str(),
                        kind.name.to_lowercase(),
                        info.name,
                        kind.elements
                    );
                    return Err(Error::bad_input(what));
                }
                vec![kind]
            }
            (None, _) if !is_quantised(info) => return kept,
            (None, Some(types)) => {
                let role = if info.shape.len() > 2 { Role::ExpertMatrix } else { Role::Matrix };
                let typed = TypedTensor { name: &info.name, cols, role, layer, is_output };
                let kind = types.of(&typed, WeightFormat::F32);
                vec![kind.map_err(|error| Error::input(gguf.path(), error))?]
            }
            (None, None) => choices(cols),
        };
        let bits = |kind: &TensorType| kind.bytes * 256 / kind.elements;
        let is_few = info.kind.encoding.format().is_some();
        // Rounded again, blocks of few bits only lose.
        let fewer: Vec<TensorType> =
            wanted.iter().copied().filter(|kind| !is_few || bits(kind) < bits(&info.kind)).collect();
        match (is_few, fewer.is_empty()) {
            (true, true) => kept,
            (true, false) if !self.requantize => Err(Error::input(gguf.path(), not_again(info, &fewer))),
            (true, false) if fewer.len() < wanted.len() => Ok([&fewer[..], &[info.kind]].concat()),
            _ => Ok(fewer),
        }
    }
}

fn not_again(info: &GgufTensor, wanted: &[TensorType]) -> String {
    format!(
        "tensor `{}` is {} already, and rounding it again to {} loses more than rounding the original would: \
         give the model in BF16 or F16, or --requantize to do it anyway",
        info.name, info.kind.name, wanted[0].name
    )
}

/// Whether a tensor is a matrix, or one for each expert.
fn is_matrix(info: &GgufTensor) -> bool {
    info.shape.len() > 1 && info.shape[info.shape.len() - 2] > 1 && info.name.ends_with(".weight")
}

/// Whether a tensor is a matrix that gets fewer bits unless a rule says otherwise.
fn is_quantised(info: &GgufTensor) -> bool {
    let is_kept = KEPT.iter().any(|end| info.name.ends_with(end)) || info.name.contains("_norm.");
    is_matrix(info) && !is_kept
}

/// The types that a size decides among for rows of this length.
fn choices(cols: usize) -> Vec<TensorType> {
    let known = |names: &[&str]| names.iter().filter_map(|name| TensorType::from_name(name)).collect();
    match (cols.is_multiple_of(256), cols.is_multiple_of(32)) {
        (true, _) => known(&CHOICES),
        (_, true) => known(&CHOICES_OF_32),
        _ => known(&["F16"]),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rules_name_types_that_are_written() {
        let rule: KeepRule = "blk\\.0\\..*=Q6_K".parse().unwrap();
        assert!(rule.pattern.is_match("blk.0.attn_v.weight").unwrap());
        assert_eq!(rule.kind.name, "Q6_K");
        let cases = [
            ("attn_v", "expected REGEX=TYPE"),
            ("(=q6_k", "`(`: "),
            ("a=q9", "`q9` is no type that is written: expected one of f32, f16, q4_0, "),
            ("a=q3_k", "`q3_k` is no type that is written"),
        ];
        for (text, expected) in cases {
            let error = text.parse::<KeepRule>().unwrap_err();
            assert!(error.contains(expected), "{text}: {error}");
        }
    }

    #[test]
    fn types_that_a_size_decides_among_ascend_by_bits() {
        for cols in [256, 32] {
            let bits: Vec<f64> =
                choices(cols).iter().map(|kind| kind.bytes as f64 / kind.elements as f64).collect();
            assert!(bits.len() > 3 && bits.is_sorted(), "{bits:?}");
        }
        assert_eq!(choices(33)[0].name, "F16");
    }
}
