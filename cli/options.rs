//! Options that say how a model is compiled, and for what.

// Without the compiler, no other `Result` is in scope here.
#![cfg_attr(not(feature = "compiler"), allow(unused_qualifications))]

#[cfg(feature = "compiler")]
use crate::emit::Emit;
#[cfg(feature = "compiler")]
use crate::failure::{Failure, Result};
#[cfg(feature = "compiler")]
use crate::output;
#[cfg(feature = "compiler")]
use crate::source::SpecSource;
use clap::builder::{PossibleValuesParser, TypedValueParser};
#[cfg(feature = "compiler")]
use kernmill_compiler::choose::Choices;
#[cfg(feature = "compiler")]
use kernmill_compiler::fuse::{FusedSet, FusedSpec};
#[cfg(feature = "compiler")]
use kernmill_compiler::pipeline::Options;
#[cfg(feature = "compiler")]
use kernmill_compiler::quant::Preset;
#[cfg(feature = "compiler")]
use kernmill_os::files::{read_named_text, read_regular_text};
#[cfg(feature = "compiler")]
use kernmill_os::tiles;
#[cfg(feature = "compiler")]
use kernmill_plan::limit;
use kernmill_plan::target::Level;
#[cfg(feature = "compiler")]
use kernmill_plan::target::Tuning;
#[cfg(feature = "compiler")]
use std::path::{Path, PathBuf};

/// How a model is compiled.
#[derive(Clone, Debug, clap::Args)]
pub struct CompileArgs {
    /// Quantisation. exact: weights as stored, f32 activations and cache. faithful: MXFP4 weights bit for bit, other matrices and
    /// activations int8, f16 cache. bf16: as faithful, but MXFP4 experts are multiplied by bf16 activations. fast: as faithful, but 4 bits for the matrices of attention and unembedding that lose little
    #[cfg(feature = "compiler")]
    #[arg(long, value_name = "PRESET", default_value = "faithful", value_parser = preset_parser())]
    pub preset: Preset,
    /// Prompt tokens that are run at once; by default 512, or what a plan was compiled for
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=4096))]
    pub chunk: Option<u32>,
    /// Whose CPUs the code is to be fast on: it runs on all of its level, and gives the same bits. native is this CPU and the default, but
    /// `compile` and `explain` with a --target other than native tune for all (generic)
    #[cfg(feature = "compiler")]
    #[arg(long, value_name = "MAKER", value_parser = tuning_parser())]
    pub tune: Option<Tuning>,
    /// Compile every graph node by itself: for comparing
    #[cfg(feature = "compiler")]
    #[arg(long)]
    pub no_fuse: bool,
    /// Leave out the branches for adapters (--lora): the code is smaller
    #[cfg(feature = "compiler")]
    #[arg(long)]
    pub no_adapters: bool,
    /// What is fused.
    #[cfg(feature = "compiler")]
    #[command(flatten)]
    pub fusions: FusedArgs,
    /// Neither progress bars nor the closing lines on standard error
    #[arg(long, short)]
    pub quiet: bool,
}

/// Which fused-op specs a model is compiled with.
#[cfg(feature = "compiler")]
#[derive(Clone, Debug, clap::Args)]
pub struct FusedArgs {
    /// Fused-op specs (TOML) besides the built-in ones: a file, or a directory of .toml files; one that has a built-in one's name replaces it
    #[arg(long, value_name = "FILE|DIR")]
    pub fused: Vec<PathBuf>,
    /// Leave out the fused-op spec of that name
    #[arg(long, value_name = "NAME")]
    pub without_fusion: Vec<String>,
}

/// `--target`.
#[derive(Clone, Copy, Debug)]
pub enum Target {
    /// The best level of this CPU.
    Native,
    /// A certain level.
    Level(Level),
}

const NATIVE: &str = "native";

/// `--preset`.
#[cfg(feature = "compiler")]
pub fn preset_parser() -> impl TypedValueParser<Value = Preset> {
    PossibleValuesParser::new(Preset::ALL.map(Preset::name))
        .map(|name| Preset::from_name(&name).unwrap_or(Preset::Faithful))
}

/// `--tune`.
#[cfg(feature = "compiler")]
fn tuning_parser() -> impl TypedValueParser<Value = Tuning> {
    let names = std::iter::once(NATIVE).chain(Tuning::ALL.map(Tuning::name));
    let named = |name: String| Tuning::ALL.into_iter().find(|tuning| tuning.name() == name);
    PossibleValuesParser::new(names.collect::<Vec<_>>())
        .map(move |name| named(name).unwrap_or_else(Tuning::native))
}

/// `--target`.
pub fn target_parser() -> impl TypedValueParser<Value = Target> {
    let names = std::iter::once(NATIVE).chain(Level::ALL.map(Level::name));
    PossibleValuesParser::new(names.collect::<Vec<_>>())
        .map(|name| Level::from_name(&name).map_or(Target::Native, Target::Level))
}

/// A finite number from `least` to `most`, which `range` says.
pub fn number(
    least: f32,
    most: f32,
    range: &'static str,
) -> impl Fn(&str) -> std::result::Result<f32, String> + Clone + Send + Sync + 'static {
    move |text| match text.parse::<f32>() {
        Ok(number) if number.is_finite() && (least..=most).contains(&number) => Ok(number),
        _ => Err(format!("expected a number, {range}")),
    }
}

/// A number of bytes, with K, M, G or T for powers of 1000.
pub fn size(text: &str) -> std::result::Result<u64, String> {
    let (digits, factor) = match text.char_indices().last() {
        Some((at, 'K' | 'k')) => (&text[..at], 1e3),
        Some((at, 'M' | 'm')) => (&text[..at], 1e6),
        Some((at, 'G' | 'g')) => (&text[..at], 1e9),
        Some((at, 'T' | 't')) => (&text[..at], 1e12),
        _ => (text, 1.0),
    };
    match digits.parse::<f64>() {
        Ok(number) if number.is_finite() && number >= 0.0 => Ok((number * factor) as u64),
        _ => Err("expected a number of bytes, such as 800M or 15G".to_owned()),
    }
}

#[cfg(feature = "compiler")]
impl CompileArgs {
    /// The same with a tuning, unless one was given: this CPU's for target native; everybody's for targets that were named, whose code does not depend
    /// on where it is compiled.
    pub fn tuned(mut self, is_native: bool) -> CompileArgs {
        self.tune.get_or_insert_with(|| if is_native { Tuning::native() } else { Tuning::Generic });
        self
    }

    /// Prompt tokens that are run at once, where no plan says how many.
    pub fn chunk(&self) -> u32 {
        const DEFAULT: u32 = 512;
        self.chunk.unwrap_or(DEFAULT)
    }

    /// The compiler's options for `level`.
    pub fn options(
        &self,
        level: Level,
        source: &SpecSource,
        choices: Option<Choices>,
        emit: &Emit,
    ) -> Options {
        Options {
            preset: self.preset,
            choices,
            level,
            tuning: self.tune.unwrap_or_else(Tuning::native),
            chunk: self.chunk() as usize,
            adapters: !self.no_adapters,
            fuse: !self.no_fuse,
            fused: source.fused.clone(),
            keep_clif: emit.wants_clif(),
            ..Options::new(level)
        }
    }
}

#[cfg(feature = "compiler")]
impl FusedArgs {
    /// The specs given.
    pub fn read(&self) -> Result<Vec<FusedSpec>> {
        let mut specs = Vec::new();
        for path in &self.fused {
            // What is found in a directory must not be waited for.
            let read = if path.is_dir() { read_regular_text } else { read_named_text };
            for file in toml_files(path)? {
                let text = read(&file, limit::SPEC_BYTES).map_err(Failure::read(&file))?;
                specs.push(FusedSpec::parse(&file.display().to_string(), &text)?);
            }
        }
        Ok(specs)
    }

    /// The built-in specs and those given, without those left out.
    pub fn set(&self) -> Result<FusedSet> {
        let mut set = FusedSet::builtin().with(self.read()?)?;
        for name in &self.without_fusion {
            set = set
                .without(name)
                .map_err(|message| Failure::BadInput(format!("--without-fusion: {message}")))?;
        }
        Ok(set)
    }
}

/// A file itself, or the .toml files of a directory by name.
#[cfg(feature = "compiler")]
fn toml_files(path: &Path) -> Result<Vec<PathBuf>> {
    if !path.is_dir() {
        return Ok(vec![path.to_owned()]);
    }
    let entries = std::fs::read_dir(path).map_err(Failure::read(path))?;
    let mut files = Vec::new();
    for entry in entries {
        let file = entry.map_err(Failure::read(path))?.path();
        if file.extension().is_some_and(|extension| extension == "toml") {
            files.push(file);
        }
    }
    files.sort();
    if files.is_empty() {
        return Err(Failure::input(path, "no .toml files in it, expected fused-op specs"));
    }
    Ok(files)
}

#[cfg(feature = "compiler")]
impl Target {
    /// The level to generate the preset's code for.
    pub fn level(self, preset: Preset) -> Result<Level> {
        match self {
            Target::Level(level) => Ok(level),
            Target::Native => native(preset).ok_or_else(|| lacks(Level::V3)),
        }
    }

    /// The level, if this CPU can run it.
    pub fn runnable_level(self, preset: Preset) -> Result<Level> {
        let level = self.level(preset)?;
        if level.missing().is_empty() { Ok(level) } else { Err(lacks(level)) }
    }
}

/// The best level of this CPU for the preset. Tiles that the system does not permit are done without.
#[cfg(feature = "compiler")]
fn native(preset: Preset) -> Option<Level> {
    if !preset.has_tiles() || !Level::Amx.missing().is_empty() {
        return Level::native(false);
    }
    let permission = tiles::request();
    let level = Level::native(permission.is_ok());
    if let (Err(error), Some(level)) = (permission, level) {
        output::note(format_args!(
            "the system does not permit AMX tiles ({error}): compiling for {} instead",
            level.name()
        ));
    }
    level
}

#[cfg(feature = "compiler")]
fn lacks(level: Level) -> Failure {
    Failure::BadInput(format!("this CPU lacks {}, which {} needs", level.missing().join(", "), level.name()))
}
