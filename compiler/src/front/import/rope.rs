//! RoPE's base and scaling, in the older spelling (`rope_theta` beside `rope_scaling`), the newer
//! (`rope_parameters`), or both.

use super::config::{ModelConfig, bad, unsupported};
use super::{Result, known};

/// RoPE as the spec writes it.
pub(super) struct RopeConfig {
    pub(super) theta: f64,
    /// The text of `scaling = ...`, if any.
    pub(super) scaling: Option<String>,
    /// The effect of the scaling on the longest context.
    context: Context,
}

/// The effect of a scaling on the longest context, in tokens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Context {
    /// The longest context is the one that the config states.
    Stated,
    /// The scaling is not known beyond so many.
    AtMost(u64),
    /// The scaling reaches at least so far, also where the config states the context without it.
    AtLeast(u64),
}

impl RopeConfig {
    /// The lines of a `[rope.NAME]` section.
    pub(super) fn keys(&self) -> Vec<(&'static str, String)> {
        let mut keys = vec![("head_dim", "\"head_dim\"".to_owned()), ("theta", format!("{:?}", self.theta))];
        keys.extend(self.scaling.clone().map(|scaling| ("scaling", scaling)));
        keys
    }

    /// The model's longest context in tokens.
    pub(super) fn max_context(&self, config: &ModelConfig) -> Result<u64> {
        let stated = config.require_whole(&["max_position_embeddings"])?;
        Ok(match self.context {
            Context::Stated => stated,
            Context::AtMost(tokens) => stated.min(tokens),
            Context::AtLeast(tokens) => stated.max(tokens),
        })
    }
}

/// The scaling that a section asks for.
#[derive(Clone, Debug, PartialEq)]
enum ScalingSection {
    /// The section says nothing of scaling.
    Unstated,
    /// The section says that there is no scaling.
    Plain,
    /// The text of `scaling = ...`.
    Text(String, Context),
}

/// RoPE of `config`. Where both spellings are there, they must mean the same.
pub(super) fn rope(config: &ModelConfig) -> Result<RopeConfig> {
    let mut theta: Option<(String, f64)> = None;
    let mut scaling: Option<(&str, ScalingSection)> = None;
    whole_heads(config)?;
    for key in ["rope_parameters", "rope_scaling"] {
        let Some(section) = config.section(key)? else { continue };
        agree(&mut theta, &section)?;
        let own = scaling_of(config, &section)?;
        match &scaling {
            Some((first, other)) if own != ScalingSection::Unstated && *other != ScalingSection::Unstated => {
                if own != *other {
                    return bad(format!("`{first}` and `{key}` are both there and mean different scalings"));
                }
            }
            Some((_, other)) if *other != ScalingSection::Unstated => {}
            _ => scaling = Some((key, own)),
        }
    }
    agree(&mut theta, config)?;
    let Some((_, theta)) = theta else {
        return bad("`rope_theta` is missing: expected a number above 0");
    };
    Ok(match scaling {
        Some((_, ScalingSection::Text(text, context))) => RopeConfig { theta, scaling: Some(text), context },
        _ => RopeConfig { theta, scaling: None, context: Context::Stated },
    })
}

/// Takes `rope_theta` of a section, if it has one, into `theta`; an error if another section has another.
fn agree(theta: &mut Option<(String, f64)>, section: &ModelConfig) -> Result<()> {
    let Some(own) = section.positive("rope_theta")? else { return Ok(()) };
    let name = section.name("rope_theta");
    match theta {
        Some((first, other)) if *other != own => {
            bad(format!("`{first}` is {other} but `{name}` is {own}: expected the same"))
        }
        Some(_) => Ok(()),
        None => {
            *theta = Some((name, own));
            Ok(())
        }
    }
}

/// An error if only a part of each head is rotated.
fn whole_heads(section: &ModelConfig) -> Result<()> {
    match section.positive("partial_rotary_factor")? {
        Some(factor) if factor != 1.0 => {
            unsupported(format!("RoPE of a part of each head (`partial_rotary_factor` is {factor})"))
        }
        _ => Ok(()),
    }
}

fn scaling_of(config: &ModelConfig, section: &ModelConfig) -> Result<ScalingSection> {
    if section.entries().any(|(_, value)| value.is_object()) {
        return unsupported("RoPE parameters per layer type");
    }
    known::check_rope(section)?;
    whole_heads(section)?;
    let kind = match section.text("rope_type")? {
        Some(kind) => Some(kind),
        None => section.text("type")?,
    };
    let number = |key| section.require_positive(key);
    let text = match kind {
        None => return Ok(ScalingSection::Unstated),
        Some("default") => return Ok(ScalingSection::Plain),
        Some("linear") => format!("{{ kind = \"linear\", factor = {:?} }}", number("factor")?),
        Some("dynamic") => {
            let original = original_context(config, section)?;
            let factor = number("factor")?;
            let text =
                format!("{{ kind = \"dynamic\", factor = {factor:?}, original_context = {original} }}");
            return Ok(ScalingSection::Text(text, Context::AtMost(original)));
        }
        Some("yarn") => return yarn(config, section),
        Some("llama3") => format!(
            "{{ kind = \"llama3\", factor = {:?}, low_freq_factor = {:?}, high_freq_factor = {:?}, \
             original_context = {} }}",
            number("factor")?,
            number("low_freq_factor")?,
            number("high_freq_factor")?,
            original_context(config, section)?,
        ),
        Some(other) => {
            return unsupported(format!(
                "RoPE scaling `{other}`; supported are: default, linear, dynamic, yarn, llama3"
            ));
        }
    };
    Ok(ScalingSection::Text(text, Context::Stated))
}

fn yarn(config: &ModelConfig, section: &ModelConfig) -> Result<ScalingSection> {
    let original = original_context(config, section)?;
    let factor = match section.positive("factor")? {
        Some(factor) => factor,
        None => config.require_whole(&["max_position_embeddings"])? as f64 / original as f64,
    };
    let derived = 0.1 * factor.ln() + 1.0;
    match section.positive("attention_factor")? {
        Some(given) if (given - derived).abs() > 1e-6 => {
            return unsupported(format!(
                "YaRN's `attention_factor` {given}; supported is 0.1 * ln(factor) + 1, here {derived}"
            ));
        }
        None if section.has("mscale") && section.has("mscale_all_dim") => {
            return unsupported("YaRN with `mscale` and `mscale_all_dim`");
        }
        _ => {}
    }
    let text = format!(
        "{{ kind = \"yarn\", factor = {factor:?}, beta_fast = {:?}, beta_slow = {:?}, original_context = {original}, \
         truncate = {} }}",
        section.positive("beta_fast")?.unwrap_or(32.0),
        section.positive("beta_slow")?.unwrap_or(1.0),
        section.flag("truncate", true)?,
    );
    Ok(ScalingSection::Text(text, Context::AtLeast((factor * original as f64) as u64)))
}

/// Tokens that the model was trained on before its context was extended.
fn original_context(config: &ModelConfig, section: &ModelConfig) -> Result<u64> {
    let key = "original_max_position_embeddings";
    match section.whole(&[key])?.or(config.whole(&[key])?).or(config.whole(&["initial_context_length"])?) {
        Some(context) => Ok(context),
        None => config.require_whole(&["max_position_embeddings"]),
    }
}
