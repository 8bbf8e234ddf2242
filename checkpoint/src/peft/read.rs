//! From a PEFT directory to the factors of a program's LoRA targets: every tensor is found, fits, and belongs
//! somewhere.

use super::config::{CONFIG_FILE, PeftConfig, Targeted};
use super::error::PeftError;
use super::file::{TENSOR_FILE, TensorFile};
use super::files::Files;
use super::names::{PeftTarget, targets};
use crate::tensor_file::TensorEntry;
use kernmill_os::files::read_regular_text;
use kernmill_os::text::shortened;
use kernmill_plan::adapter::{Adapters, MAX_RANK};
use kernmill_plan::limit;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// The prefix of the names of a base model's modules.
const PREFIX: &str = "base_model.model.";

/// An adapter as PEFT saved it, checked against the LoRA targets of a program. Its tensors are still in the
/// file.
#[derive(Debug)]
pub struct PeftAdapter {
    /// File of the adapter's tensors.
    pub file: TensorFile,
    /// The matrices that the adapter changes.
    pub parts: Vec<PeftPart>,
    /// Notes for the user about an adapter that can be used.
    pub notes: Vec<String>,
}

/// The adapter of a target: one matrix, or one for each expert.
#[derive(Debug)]
pub struct PeftPart {
    /// The matrix that the part changes.
    pub target: PeftTarget,
    /// Columns of B and rows of A.
    pub rank: usize,
    /// The factor of B A x.
    pub scaling: f32,
    /// A, `[rank][inputs]`.
    pub a: TensorEntry,
    /// B, `[outputs][rank]`.
    pub b: TensorEntry,
    /// DoRA's magnitude of every row.
    pub magnitude: Option<TensorEntry>,
    /// For experts: PEFT took the matrix for its transpose, so that A and B have changed places.
    pub swapped: bool,
}

/// The tensors of one wrapper of a module.
#[derive(Debug, Default)]
struct Wrapper {
    a: Option<TensorEntry>,
    b: Option<TensorEntry>,
    magnitude: Option<TensorEntry>,
}

/// A program and an adapter that are brought together.
struct AdapterReader<'a> {
    config: PeftConfig,
    config_path: PathBuf,
    file: &'a TensorFile,
    model: &'a str,
}

impl PeftAdapter {
    /// Opens a directory, or an adapter's file in it.
    pub fn open(directory: &Path, adapters: &Adapters, model: &str) -> Result<PeftAdapter, PeftError> {
        let Files { config, tensors } = Files::find(directory)?;
        let text = read_regular_text(&config, limit::ADAPTER_CONFIG_BYTES).map_err(PeftError::io(&config))?;
        PeftAdapter::read(&config, &text, TensorFile::open(&tensors)?, adapters, model)
    }

    /// Reads an adapter from the bytes of both files; `name` stands for the directory in messages.
    pub fn from_bytes(
        name: &Path,
        config: &str,
        tensors: Vec<u8>,
        adapters: &Adapters,
        model: &str,
    ) -> Result<PeftAdapter, PeftError> {
        let file = TensorFile::from_bytes(&name.join(TENSOR_FILE), tensors)?;
        PeftAdapter::read(&name.join(CONFIG_FILE), config, file, adapters, model)
    }

    fn read(
        config_path: &Path,
        config: &str,
        file: TensorFile,
        adapters: &Adapters,
        model: &str,
    ) -> Result<PeftAdapter, PeftError> {
        let config = PeftConfig::parse(config_path, config)?;
        let reader = AdapterReader { config, config_path: config_path.to_owned(), file: &file, model };
        let (parts, notes) = reader.parts(targets(adapters)?)?;
        Ok(PeftAdapter { file, parts, notes })
    }
}

impl AdapterReader<'_> {
    fn parts(&self, targets: Vec<PeftTarget>) -> Result<(Vec<PeftPart>, Vec<String>), PeftError> {
        let mut wrappers = self.wrappers()?;
        self.check_modules(&wrappers, &targets)?;
        let mut parts = Vec::new();
        let mut of_experts: BTreeMap<String, Vec<PeftTarget>> = BTreeMap::new();
        for target in targets {
            match target.experts {
                0 => parts.extend(self.dense(target, &mut wrappers)?),
                _ => of_experts.entry(target.module.clone()).or_default().push(target),
            }
        }
        let mut notes = Vec::new();
        let mut experts = Vec::new();
        for (module, targets) in of_experts {
            experts.extend(self.experts(targets, wrappers.remove(&module).unwrap_or_default())?);
        }
        self.settle_orientation(&mut experts, &mut notes)?;
        parts.extend(experts);
        if parts.is_empty() {
            return Err(PeftError::malformed(self.file.path(), "no tensor of an adapter is in it"));
        }
        Ok((parts, notes))
    }

    /// By module and depth of nesting, the tensors of its wrappers.
    fn wrappers(&self) -> Result<BTreeMap<String, BTreeMap<usize, Wrapper>>, PeftError> {
        let mut modules: BTreeMap<String, BTreeMap<usize, Wrapper>> = BTreeMap::new();
        for tensor in self.file.tensors() {
            let name = tensor.name.strip_prefix(PREFIX).unwrap_or(&tensor.name);
            let (path, kind) = self.kind(name)?;
            self.file.check_dtype(tensor)?;
            // Wrappers of several parameters of one module lie in each other.
            let outer: Vec<&str> = path.split('.').filter(|part| *part != "base_layer").collect();
            let depth = path.split('.').count() - outer.len();
            let wrapper = modules.entry(outer.join(".")).or_default().entry(depth).or_default();
            let place = match kind {
                TensorRole::A => &mut wrapper.a,
                TensorRole::B => &mut wrapper.b,
                TensorRole::Magnitude => &mut wrapper.magnitude,
            };
            if let Some(other) = place.replace(tensor.clone()) {
                let other = shortened(&other.name);
                let what = format!("a second tensor for the same as `{other}`, expected one");
                return Err(self.file.malformed(tensor, what));
            }
        }
        Ok(modules)
    }

    /// The module's path and what of its adapter the tensor is.
    fn kind<'n>(&self, name: &'n str) -> Result<(&'n str, TensorRole), PeftError> {
        for (suffix, kind) in SUFFIXES {
            if let Some(path) = name.strip_suffix(suffix) {
                return Ok((path, kind));
            }
        }
        let what = if name.contains("lora_embedding_") {
            "an adapter of an embedding table"
        } else if name.ends_with(".lora_A.bias") || name.ends_with(".lora_B.bias") {
            "a bias of an adapter's matrix (lora_bias)"
        } else if name.contains(".lora_A.") || name.contains(".lora_B.") {
            "not named as save_pretrained names it; expected an end in .lora_A.weight or .lora_B.weight"
        } else {
            "neither lora_A, lora_B nor lora_magnitude_vector: perhaps a trained copy of a module (modules_to_save)"
        };
        Err(PeftError::unsupported(self.file.path(), format!("tensor `{}`: {what}", shortened(name))))
    }

    /// Every module in the file must be one of the program's.
    fn check_modules(
        &self,
        wrappers: &BTreeMap<String, BTreeMap<usize, Wrapper>>,
        targets: &[PeftTarget],
    ) -> Result<(), PeftError> {
        let unknown: Vec<&String> =
            wrappers.keys().filter(|m| !targets.iter().any(|t| t.module == **m)).collect();
        let Some(first) = unknown.first().map(|first| shortened(first)) else { return Ok(()) };
        let base =
            self.config.base.as_deref().map_or("a model that its config does not name".into(), shortened);
        let what = if unknown.len() == wrappers.len() {
            format!(
                "nothing of it fits the model `{}`, such as `{first}`: the adapter was made for {base}",
                self.model
            )
        } else {
            format!(
                "`{first}`{} is no matrix of the model `{}` that takes adapters; the adapter was made for {base}",
                match unknown.len() - 1 {
                    0 => String::new(),
                    more => format!(" (and {more} more)"),
                },
                self.model
            )
        };
        Err(PeftError::malformed(self.file.path(), what))
    }

    /// The file's tensors for a dense matrix.
    fn dense(
        &self,
        target: PeftTarget,
        wrappers: &mut BTreeMap<String, BTreeMap<usize, Wrapper>>,
    ) -> Result<Option<PeftPart>, PeftError> {
        let by_parameter = self.config.wants_parameter(&target.parameter);
        let wanted = match by_parameter {
            true => Targeted::Yes,
            false => self.in_config(self.config.wants_module(&target.module))?,
        };
        let mut found = wrappers.remove(&target.module).unwrap_or_default();
        let wrapper = found.remove(&0);
        if let Some(wrapper) = found.into_values().next() {
            return Err(self.belongs_nowhere(&wrapper));
        }
        let Some(wrapper) = self.present(wrapper, wanted, &target.module)? else { return Ok(None) };
        let [a, b] = self.pair(&wrapper, &target.module)?;
        let rank = self.rank(&target, by_parameter)?;
        self.check_shape(&a, &[rank, target.k], "rank by columns of the base matrix")?;
        self.check_shape(&b, &[target.rows, rank], "rows of the base matrix by rank")?;
        let magnitude = wrapper.magnitude;
        match &magnitude {
            None if self.config.dora => {
                return Err(PeftError::malformed(
                    self.file.path(),
                    format!("`{}.lora_magnitude_vector` is missing, which use_dora asks for", target.module),
                ));
            }
            Some(magnitude) if !self.config.dora => {
                let what = "a magnitude, and use_dora is not set".to_owned();
                return Err(self.file.malformed(magnitude, what));
            }
            Some(magnitude) => self.check_shape(magnitude, &[target.rows], "rows of the base matrix")?,
            None => {}
        }
        let scaling = self.scaling(&target, by_parameter, rank)?;
        Ok(Some(PeftPart { target, rank, scaling, a, b, magnitude, swapped: false }))
    }

    /// The file's tensors for the matrices of a module with experts. Only their shapes tell them apart, not
    /// their names.
    fn experts(
        &self,
        targets: Vec<PeftTarget>,
        wrappers: BTreeMap<usize, Wrapper>,
    ) -> Result<Vec<PeftPart>, PeftError> {
        let mut wanted: Vec<PeftTarget> =
            targets.into_iter().filter(|target| self.config.wants_parameter(&target.parameter)).collect();
        let mut parts = Vec::new();
        for wrapper in wrappers.into_values() {
            if wanted.is_empty() {
                return Err(self.belongs_nowhere(&wrapper));
            }
            let [a, b] = self.pair(&wrapper, &wanted[0].module)?;
            if let Some(magnitude) = &wrapper.magnitude {
                let what = "DoRA on experts; only dense matrices can have magnitudes".to_owned();
                return Err(self.file.malformed(magnitude, what));
            }
            let mut fit = None;
            for (index, target) in wanted.iter().enumerate() {
                let rank = self.rank(target, true)?;
                let all = rank * target.experts;
                let shapes = [&a, &b].map(|tensor| tensor.info.shape.as_slice());
                if shapes == [&[all, target.k][..], &[target.rows, all]] {
                    fit = Some((index, rank, false));
                } else if shapes == [&[all, target.rows][..], &[target.k, all]] {
                    fit = Some((index, rank, true));
                }
            }
            let Some((index, rank, swapped)) = fit else {
                // PEFT puts a module's first parameter innermost.
                let target = &wanted[wanted.len() - 1];
                let all = self.rank(target, true)? * target.experts;
                self.check_shape(&a, &[all, target.k], "rank times experts by columns")?;
                self.check_shape(&b, &[target.rows, all], "rows by rank times experts")?;
                return Err(self.belongs_nowhere(&wrapper));
            };
            let target = wanted.remove(index);
            let scaling = self.scaling(&target, true, rank)?;
            parts.push(PeftPart { target, rank, scaling, a, b, magnitude: None, swapped });
        }
        match wanted.first() {
            Some(target) => Err(self.missing(&target.parameter)),
            None => Ok(parts),
        }
    }

    /// Which way round A and B of experts are, where their shapes are the same both ways: as the other parts
    /// of the adapter are.
    fn settle_orientation(&self, parts: &mut [PeftPart], notes: &mut Vec<String>) -> Result<(), PeftError> {
        let square = |part: &PeftPart| part.target.k == part.target.rows;
        let known: Vec<bool> = parts.iter().filter(|part| !square(part)).map(|part| part.swapped).collect();
        if let Some(part) = parts.iter().find(|part| !square(part) && part.swapped != known[0]) {
            let what = "its A and B are the other way round than those of other experts".to_owned();
            return Err(self.file.malformed(&part.a, what));
        }
        let swapped = known.first().copied().unwrap_or(false);
        if known.is_empty()
            && let Some(part) = parts.first()
        {
            notes.push(format!(
                "{}: `{}` is as wide as high, and nothing else shows which way round PEFT took it: read as \
                 [experts, in, out]",
                self.file.path().display(),
                part.target.parameter
            ));
        }
        parts.iter_mut().filter(|part| square(part)).for_each(|part| part.swapped = swapped);
        Ok(())
    }

    /// A wrapper that is there and wanted.
    fn present(
        &self,
        wrapper: Option<Wrapper>,
        wanted: Targeted,
        name: &str,
    ) -> Result<Option<Wrapper>, PeftError> {
        match (wrapper, wanted) {
            (Some(wrapper), Targeted::No) => Err(self.belongs_nowhere(&wrapper)),
            (None, Targeted::Yes) => Err(self.missing(name)),
            (wrapper, _) => Ok(wrapper),
        }
    }

    fn pair(&self, wrapper: &Wrapper, name: &str) -> Result<[TensorEntry; 2], PeftError> {
        match (&wrapper.a, &wrapper.b) {
            (Some(a), Some(b)) => Ok([a.clone(), b.clone()]),
            (a, _) => {
                let lacking = if a.is_none() { "lora_A" } else { "lora_B" };
                let what = format!("`{name}` lacks `{lacking}.weight`; expected both lora_A and lora_B");
                Err(PeftError::malformed(self.file.path(), what))
            }
        }
    }

    fn missing(&self, name: &str) -> PeftError {
        let what = format!(
            "there is nothing for `{name}`, which {CONFIG_FILE} targets: expected its lora_A and lora_B"
        );
        PeftError::malformed(self.file.path(), what)
    }

    fn belongs_nowhere(&self, wrapper: &Wrapper) -> PeftError {
        match [&wrapper.a, &wrapper.b, &wrapper.magnitude].into_iter().flatten().next() {
            Some(tensor) => {
                let what =
                    format!("not one of the targets that {CONFIG_FILE} lists, or a second one for the same");
                self.file.malformed(tensor, what)
            }
            None => PeftError::malformed(self.file.path(), "an empty module"),
        }
    }

    fn check_shape(&self, tensor: &TensorEntry, expected: &[usize], meaning: &str) -> Result<(), PeftError> {
        if tensor.info.shape == expected {
            return Ok(());
        }
        let what = format!("has shape {:?}, expected {expected:?} ({meaning})", tensor.info.shape);
        Err(self.file.malformed(tensor, what))
    }

    fn rank(&self, target: &PeftTarget, by_parameter: bool) -> Result<usize, PeftError> {
        let name = target.key(by_parameter);
        let rank = self.in_config(self.config.rank(name))?;
        if rank > MAX_RANK as u64 {
            let what = format!("`{name}` has rank {rank}, expected at most {MAX_RANK}");
            return Err(PeftError::unsupported(&self.config_path, what));
        }
        Ok(rank as usize)
    }

    fn scaling(&self, target: &PeftTarget, by_parameter: bool, rank: usize) -> Result<f32, PeftError> {
        let scaling = self.in_config(self.config.scaling(target.key(by_parameter), rank))?;
        if scaling.is_finite() {
            return Ok(scaling);
        }
        let what = format!("alpha of `{}` gives the factor {scaling}, expected a finite one", target.module);
        Err(PeftError::malformed(&self.config_path, what))
    }

    fn in_config<T>(&self, result: Result<T, String>) -> Result<T, PeftError> {
        result.map_err(|what| PeftError::malformed(&self.config_path, what))
    }
}

/// The role of a tensor in an adapter.
#[derive(Clone, Copy)]
enum TensorRole {
    A,
    B,
    Magnitude,
}

/// Ends of tensors' names.
const SUFFIXES: [(&str, TensorRole); 4] = [
    (".lora_A.weight", TensorRole::A),
    (".lora_B.weight", TensorRole::B),
    (".lora_magnitude_vector", TensorRole::Magnitude),
    (".lora_magnitude_vector.weight", TensorRole::Magnitude),
];
