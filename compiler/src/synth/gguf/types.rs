//! Which type each matrix of a GGUF file gets.

use crate::ir::Role;
use crate::synth::{Result, SynthError};
use kernmill_checkpoint::blocks::TensorType;
use kernmill_plan::format::WeightFormat;
use std::str::FromStr;

/// The types of a GGUF file's tensors.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub enum GgufTypes {
    /// The types that the spec states.
    #[default]
    Stated,
    /// The types of a file that is called so, such as `q4_k_m`.
    Mix(&'static TypeMix),
    /// One type for every matrix but routers.
    All(TensorType),
}

/// Types by the place of a matrix, as quantisers choose them for a file of the name.
#[derive(Debug, PartialEq)]
pub struct TypeMix {
    name: &'static str,
    /// Number that files state as `general.file_type`.
    number: u32,
    /// Type of most matrices.
    base: &'static str,
    /// Type of the unembedding.
    output: &'static str,
    /// Type of the matrices whose errors count most: values and down projections, in some layers.
    more: &'static str,
    /// Type of experts.
    experts: &'static str,
}

/// A mix with one type everywhere but for the unembedding.
const fn mix(name: &'static str, number: u32, base: &'static str, output: &'static str) -> TypeMix {
    TypeMix { name, number, base, output, more: base, experts: base }
}

/// The rules are those of llama.cpp's quantiser (`llama_tensor_get_type` in `src/llama-quant.cpp`), for a
/// model with neither eight experts nor 70B parameters and without an importance matrix. The numbers are
/// those of `llama_ftype` in `include/llama.h`.
static MIXES: [TypeMix; 13] = [
    TypeMix { more: "Q6_K", ..mix("q4_k_m", 15, "Q4_K", "Q6_K") },
    TypeMix { more: "Q6_K", ..mix("q5_k_m", 17, "Q5_K", "Q6_K") },
    mix("q5_k_s", 16, "Q5_K", "Q6_K"),
    mix("q6_k", 18, "Q6_K", "Q6_K"),
    mix("q4_0", 2, "Q4_0", "Q6_K"),
    mix("q4_1", 3, "Q4_1", "Q6_K"),
    mix("q5_0", 8, "Q5_0", "Q6_K"),
    mix("q5_1", 9, "Q5_1", "Q6_K"),
    mix("q8_0", 7, "Q8_0", "Q8_0"),
    mix("iq4_nl", 25, "IQ4_NL", "Q6_K"),
    TypeMix { experts: "MXFP4", ..mix("mxfp4_moe", 38, "Q8_0", "Q8_0") },
    mix("f16", 1, "F16", "F16"),
    mix("bf16", 32, "BF16", "BF16"),
];

/// The type that a quantiser takes where rows are not whole blocks of another.
const INSTEAD: [(&str, &str); 4] =
    [("Q4_K", "Q5_0"), ("Q5_K", "Q5_1"), ("Q6_K", "Q8_0"), ("IQ4_XS", "IQ4_NL")];

/// A tensor of a file to be.
#[derive(Clone, Copy, Debug)]
pub struct TypedTensor<'a> {
    /// Name in the file.
    pub name: &'a str,
    /// Elements of a row.
    pub cols: usize,
    /// The role of the tensor in its model.
    pub role: Role,
    /// Layer, and how many there are; `None` outside of the layers.
    pub layer: Option<(usize, usize)>,
    /// Whether it is the unembedding.
    pub is_output: bool,
}

impl GgufTypes {
    /// The number that a file states as its type, where it has one.
    pub fn number(self) -> Option<u32> {
        match self {
            GgufTypes::Mix(mix) => Some(mix.number),
            GgufTypes::Stated | GgufTypes::All(_) => None,
        }
    }

    /// The type of a tensor that a spec states as `stored`. Vectors are F32, and unless the spec says
    /// otherwise routers, too.
    ///
    /// # Errors
    /// If rows are not whole blocks of the type.
    pub fn of(self, typed: &TypedTensor<'_>, stored: WeightFormat) -> Result<TensorType> {
        let is_vector = matches!(typed.role, Role::Vector | Role::ExpertVector);
        let is_router = typed.name.ends_with(".ffn_gate_inp.weight");
        let kind = match self {
            _ if is_vector => known("F32"),
            GgufTypes::Stated => stated_type(stored),
            GgufTypes::Mix(_) | GgufTypes::All(_) if is_router => known("F32"),
            GgufTypes::All(kind) => kind,
            GgufTypes::Mix(mix) => mix.of(typed),
        };
        match typed.cols.is_multiple_of(kind.elements) {
            true => Ok(kind),
            false => Err(SynthError::Columns { tensor: typed.name.to_owned(), cols: typed.cols, kind }),
        }
    }
}

impl TypeMix {
    fn of(&self, typed: &TypedTensor<'_>) -> TensorType {
        let counts_most = typed.name.contains(".attn_v.") || typed.name.contains(".ffn_down");
        let mut name = match typed.layer {
            _ if typed.is_output => self.output,
            _ if typed.role == Role::ExpertMatrix && self.experts != self.base => self.experts,
            Some((layer, layers)) if counts_most && has_more(layer, layers) => self.more,
            _ => self.base,
        };
        while !typed.cols.is_multiple_of(known(name).elements) {
            // Without whole blocks of 32, elements stand by themselves.
            name = INSTEAD.iter().find(|(wide, _)| *wide == name).map_or("F16", |(_, narrow)| narrow);
        }
        known(name)
    }
}

/// The layers in which some matrices have more bits: the first eighth, the last, and every third between.
fn has_more(layer: usize, layers: usize) -> bool {
    let eighth = layers / 8;
    layer < eighth || layer >= 7 * layers / 8 || (layer - eighth) % 3 == 2
}

/// The type whose blocks or elements a spec's format names: BF16 for blocks that no GGUF file has.
fn stated_type(format: WeightFormat) -> TensorType {
    match format.descriptor().file {
        Some(file) if file.number.is_some() => known(file.name),
        Some(_) => known("BF16"),
        None => known(format.name()),
    }
}

fn known(name: &str) -> TensorType {
    TensorType::from_name(name).unwrap_or_else(|| panic!("no type of GGUF tensors is called {name}"))
}

impl FromStr for GgufTypes {
    type Err = String;

    fn from_str(text: &str) -> std::result::Result<GgufTypes, String> {
        if let Some(mix) = MIXES.iter().find(|mix| mix.name.eq_ignore_ascii_case(text)) {
            return Ok(GgufTypes::Mix(mix));
        }
        if let Some(kind) = text.strip_prefix("all:") {
            return TensorType::from_name(kind)
                .map(GgufTypes::All)
                .ok_or_else(|| format!("unknown type `{kind}`; there are: {}", TensorType::names()));
        }
        let names = MIXES.iter().map(|mix| mix.name).collect::<Vec<_>>().join(", ");
        let all = match TensorType::from_name(text) {
            Some(kind) => format!("all:{} for one type everywhere", kind.name.to_lowercase()),
            None => "all:TYPE for one type everywhere".to_owned(),
        };
        Err(format!("expected {all}, or one of: {names}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn layers_with_more_bits_are_those_at_both_ends_and_every_third_between() {
        let more = |layers: usize| (0..layers).filter(|&layer| has_more(layer, layers)).collect::<Vec<_>>();
        assert_eq!(more(32), [0, 1, 2, 3, 6, 9, 12, 15, 18, 21, 24, 27, 28, 29, 30, 31]);
        assert_eq!(more(24), [0, 1, 2, 5, 8, 11, 14, 17, 20, 21, 22, 23]);
        assert_eq!(more(2), [1]);
    }

    #[test]
    fn every_mix_names_types_that_are_read() {
        for mix in &MIXES {
            for name in [mix.base, mix.output, mix.more, mix.experts] {
                assert_eq!(known(name).name, name, "{}", mix.name);
            }
        }
        for (wide, narrow) in INSTEAD {
            assert!(known(wide).elements > known(narrow).elements, "{wide}");
        }
    }

    #[test]
    fn names_are_taken_in_either_case_and_others_are_explained() {
        let name = |text: &str| match text.parse() {
            Ok(GgufTypes::Mix(mix)) => mix.name,
            other => panic!("{text}: {other:?}"),
        };
        assert_eq!((name("q4_k_m"), name("Q4_K_M")), ("q4_k_m", "q4_k_m"));
        assert_eq!("all:iq4_xs".parse(), Ok(GgufTypes::All(known("IQ4_XS"))));
        let error = "q4_k".parse::<GgufTypes>().unwrap_err();
        assert!(
            error.starts_with("expected all:q4_k for one type everywhere, or one of: q4_k_m, "),
            "{error}"
        );
        assert!(
            "all:q9".parse::<GgufTypes>().unwrap_err().contains("unknown type `q9`; there are: F32, F16")
        );
    }
}
