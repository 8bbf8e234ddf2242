//! RoPE's base and scaling, in the older spelling (`rope_theta` beside `rope_scaling`), the newer
//! (`rope_parameters`), or both.

use super::config::{ModelConfig, bad, head_dim, unsupported};
use super::{Result, known};

/// RoPE as the spec writes it.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct RopeConfig {
    theta: f64,
    /// The text of `scaling = ...`, if any.
    scaling: Option<String>,
    /// Further keys of the section.
    keys: Vec<(&'static str, String)>,
    /// Elements of a head that are rotated, where not all are.
    rotary_dim: Option<u64>,
    /// The effect of the scaling on the longest context.
    context: Context,
}

/// The effect of a scaling on the longest context, in tokens.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Context {
    /// The longest context is the one that the config states.
    #[default]
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
        keys.extend(self.rotary_dim.map(|dim| ("rotary_dim", dim.to_string())));
        keys.extend(self.scaling.clone().map(|scaling| ("scaling", scaling)));
        keys.extend(self.keys.iter().cloned());
        keys
    }
}

/// The RoPEs of a model: one, or one of its own for the layers that slide; and layers without.
#[derive(Clone, Default)]
pub(super) struct Ropes {
    main: RopeConfig,
    local: Option<RopeConfig>,
    /// Words by layer, where layers differ.
    layers: Vec<&'static str>,
}

impl Ropes {
    /// The RoPE of a class whose layers are alike in it.
    pub(super) fn of(config: &ModelConfig) -> Result<Ropes> {
        Ok(Ropes { main: rope(config)?, ..Ropes::default() })
    }

    /// The RoPEs of a class whose sliding layers have one of their own: by the newer spelling, a section for
    /// each kind of layers; by the older one, `rope_local_base_freq`, or the same base, and no scaling.
    pub(super) fn by_kind(config: &ModelConfig, slides: &[bool]) -> Result<Ropes> {
        let parameters = config.section("rope_parameters")?;
        let kinds = |section: &ModelConfig| section.entries().any(|(_, value)| value.is_object());
        let (main, local) = match parameters.filter(kinds) {
            Some(sections) => {
                let of = |kind: &str| match sections.section(kind)? {
                    Some(section) => rope(&config.with_rope(&section)),
                    None => bad(format!("`rope_parameters.{kind}` is missing: expected an object")),
                };
                let (full, sliding) = (slides.contains(&false), slides.contains(&true));
                let main = of(if full { "full_attention" } else { "sliding_attention" })?;
                (main, if full && sliding { of("sliding_attention")? } else { RopeConfig::default() })
            }
            None => {
                let main = rope(config)?;
                let theta = config.positive("rope_local_base_freq")?.unwrap_or(main.theta);
                let local = RopeConfig { theta, rotary_dim: main.rotary_dim, ..RopeConfig::default() };
                if slides.contains(&false) { (main, local) } else { (local, RopeConfig::default()) }
            }
        };
        let both = slides.contains(&true) && slides.contains(&false);
        if !both || main == local {
            return Ok(Ropes { main, ..Ropes::default() });
        }
        let layers = slides.iter().map(|&slides| if slides { "local" } else { "main" }).collect();
        Ok(Ropes { main, local: Some(local), layers })
    }

    /// These RoPEs, and none in the layers whose entry is false.
    pub(super) fn only_in(self, has: &[bool]) -> Ropes {
        match has.contains(&false) {
            true => {
                Ropes { layers: has.iter().map(|&has| if has { "main" } else { "none" }).collect(), ..self }
            }
            false => self,
        }
    }

    /// These RoPEs, of pairs of neighbouring elements.
    pub(super) fn of_neighbours(mut self) -> Ropes {
        self.main.keys.push(("pairs", "\"neighbours\"".into()));
        self
    }

    /// Names and contents of the `[rope.NAME]` sections.
    pub(super) fn named(&self) -> impl Iterator<Item = (&'static str, &RopeConfig)> {
        [("main", &self.main)].into_iter().chain(self.local.as_ref().map(|local| ("local", local)))
    }

    /// The name of a layer's RoPE in its nodes: a section's, or the value's that names it.
    pub(super) fn of_layers(&self) -> &'static str {
        if self.layers.is_empty() { "main" } else { "rope" }
    }

    /// The name of each layer's RoPE, where they differ.
    pub(super) fn by_layer(&self) -> Option<&[&'static str]> {
        (!self.layers.is_empty()).then_some(&self.layers)
    }

    /// The model's longest context in tokens.
    pub(super) fn max_context(&self, config: &ModelConfig) -> Result<u64> {
        let stated = config.require_whole(&["max_position_embeddings"])?;
        Ok(match self.main.context {
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
    /// The text of `scaling = ...`, if any, and of further keys.
    Text(Option<String>, Vec<(&'static str, String)>, Context),
}

/// RoPE of `config`. Where both spellings are there, they must mean the same.
fn rope(config: &ModelConfig) -> Result<RopeConfig> {
    let mut theta: Option<(String, f64)> = None;
    let mut scaling: Option<(&str, ScalingSection)> = None;
    let mut part = None;
    for key in ["rope_parameters", "rope_scaling"] {
        let Some(section) = config.section(key)? else { continue };
        agree(&mut theta, &section)?;
        part = section.positive("partial_rotary_factor")?.or(part);
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
    let part = part.or(config.positive("partial_rotary_factor")?).filter(|&part| part != 1.0);
    let rotary_dim = match part {
        Some(part) if part > 1.0 => {
            return bad(format!("`partial_rotary_factor` is {part}: expected at most 1"));
        }
        Some(part) => Some((head_dim(config)? as f64 * part) as u64),
        None => None,
    };
    Ok(match scaling {
        Some((_, ScalingSection::Text(scaling, keys, context))) => {
            RopeConfig { theta, scaling, keys, rotary_dim, context }
        }
        _ => RopeConfig { theta, rotary_dim, ..RopeConfig::default() },
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

fn scaling_of(config: &ModelConfig, section: &ModelConfig) -> Result<ScalingSection> {
    if section.entries().any(|(_, value)| value.is_object()) {
        return unsupported("RoPE parameters per layer type");
    }
    known::check_rope(section)?;
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
            return Ok(ScalingSection::Text(Some(text), Vec::new(), Context::AtMost(original)));
        }
        Some("yarn") => return yarn(config, section),
        Some("longrope" | "su") => return long_rope(config, section),
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
                "RoPE scaling `{other}`; supported are: default, linear, dynamic, yarn, llama3, longrope"
            ));
        }
    };
    Ok(ScalingSection::Text(Some(text), Vec::new(), Context::Stated))
}

fn yarn(config: &ModelConfig, section: &ModelConfig) -> Result<ScalingSection> {
    let original = original_context(config, section)?;
    let factor = match section.positive("factor")? {
        Some(factor) => factor,
        None => config.require_whole(&["max_position_embeddings"])? as f64 / original as f64,
    };
    let magnitude = |scale: f64| if factor > 1.0 { 0.1 * scale * factor.ln() + 1.0 } else { 1.0 };
    let attention = match section.positive("attention_factor")? {
        Some(given) => given,
        None if section.has("mscale") && section.has("mscale_all_dim") => {
            let of = |key| Ok(magnitude(section.require_positive(key)?));
            of("mscale")? / of("mscale_all_dim")?
        }
        None => magnitude(1.0),
    };
    // The scaling itself has the usual one.
    let keys = match (attention - magnitude(1.0)).abs() > 1e-6 {
        true => vec![("attention_factor", format!("{attention:?}"))],
        false => Vec::new(),
    };
    // Queries grow with the logarithm of their position, in steps of the original context.
    let grows = section.positive("llama_4_scaling_beta")?.is_some();
    let text = format!(
        "{{ kind = \"yarn\", factor = {factor:?}, beta_fast = {:?}, beta_slow = {:?}, original_context = {original}, \
         truncate = {} }}",
        section.positive("beta_fast")?.unwrap_or(32.0),
        section.positive("beta_slow")?.unwrap_or(1.0),
        section.flag("truncate", true)?,
    );
    let context = match grows {
        true => Context::AtMost(original),
        false => Context::AtLeast((factor * original as f64) as u64),
    };
    Ok(ScalingSection::Text(Some(text), keys, context))
}

/// LongRoPE has a divisor for each frequency, by two lists: one for contexts up to the original one, and one
/// for longer ones. A cache cannot change from one to the other, so that the longest context decides.
fn long_rope(config: &ModelConfig, section: &ModelConfig) -> Result<ScalingSection> {
    let original = original_context(config, section)?;
    let longest = config.require_whole(&["max_position_embeddings"])?;
    let factor = section.positive("factor")?.unwrap_or(longest as f64 / original as f64);
    let attention = match section.positive("attention_factor")? {
        Some(given) => given,
        None if factor <= 1.0 => 1.0,
        None => (1.0 + factor.ln() / (original as f64).ln()).sqrt(),
    };
    let list = |key: &str| match section.numbers(key)? {
        Some(list) => Ok(list),
        None => bad(format!("`{}` is missing: expected an array of numbers", section.name(key))),
    };
    let (short, long) = (list("short_factor")?, list("long_factor")?);
    // The model computes with f32, and GGUF files hold no more.
    let factors: Vec<f32> =
        (if longest > original { long } else { short }).into_iter().map(|factor| factor as f32).collect();
    let attention = attention as f32;
    let keys = vec![("factors", format!("{factors:?}")), ("attention_factor", format!("{attention:?}"))];
    Ok(ScalingSection::Text(None, keys, Context::Stated))
}

/// Tokens that the model was trained on before its context was extended.
fn original_context(config: &ModelConfig, section: &ModelConfig) -> Result<u64> {
    let key = "original_max_position_embeddings";
    match section.whole(&[key])?.or(config.whole(&[key])?).or(config.whole(&["initial_context_length"])?) {
        Some(context) => Ok(context),
        None => config.require_whole(&["max_position_embeddings"]),
    }
}
