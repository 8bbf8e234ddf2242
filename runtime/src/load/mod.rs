//! From a plan file to a [`PlanImage`]: what is trusted, which target is taken, what is mapped.
//!
//! `plan/src/file/check/mod.rs` says whether the file is whole and sound; this decides what of it may run
//! here. docs/user/security.md has the rules.

mod target;
mod trust;

pub use target::{TargetFit, TargetSupport};
pub use trust::UntrustedReason;

use crate::image::PlanImage;
use crate::tokenizer::{Tokenizer, TokenizerError};
use crate::tokenizer_handle::TokenizerHandle;
use kernmill_os::region::{RegionError, WeightRegion};
use kernmill_os::text::shortened;
use kernmill_plan::chat::ChatTemplates;
use kernmill_plan::file::Metadata;
use kernmill_plan::file::check::{FileError, PlanFile};
use kernmill_plan::program::Program;
use kernmill_plan::target::Level;
use std::fs::File;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Why a plan cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum PlanError {
    /// The plan cannot be opened.
    #[error("{}: {source}", path.display())]
    Open {
        /// The file.
        path: PathBuf,
        /// The system's answer.
        source: std::io::Error,
    },
    /// The path is that of a directory, a device or the like.
    #[error("{}: not a regular file, expected a plan that `kernmill compile` wrote", path.display())]
    NoFile {
        /// The file.
        path: PathBuf,
    },
    /// The file is no plan, or damaged.
    #[error("{}: {source}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// The problem.
        source: FileError,
    },
    /// The plan's machine code is not to be trusted.
    #[error(
        "{}: the plan's machine code is not used: {reason}; if you trust it, make it your own (cp, chmod \
         go-w); or else take --regenerate of a kernmill with the compiler, which generates the code anew \
         from the plan's spec",
        path.display()
    )]
    Untrusted {
        /// The file.
        path: PathBuf,
        /// Why.
        reason: UntrustedReason,
    },
    /// None of the plan's targets runs here, or not the one that was asked for.
    #[error("{}: {reason}", path.display())]
    NoTarget {
        /// The file.
        path: PathBuf,
        /// The needs of each target.
        reason: String,
    },
    /// The weights cannot be mapped.
    #[error("{}: {source}", path.display())]
    Map {
        /// The file.
        path: PathBuf,
        /// The system's answer.
        source: RegionError,
    },
}

/// An open plan file. Every read is of the file that was checked: the one that was opened, whatever its name
/// means meanwhile.
#[derive(Debug)]
pub struct Plan {
    path: PathBuf,
    file: Arc<PlanFile<File>>,
    distrust: Option<UntrustedReason>,
}

impl Plan {
    /// Opens a plan and checks header and metadata.
    ///
    /// # Errors
    /// When it is not there, no plan, of another version, or damaged.
    pub fn open(path: &Path) -> Result<Plan, PlanError> {
        let refused = |source| PlanError::Open { path: path.to_owned(), source };
        // Opening a pipe must not wait for a writer.
        let options = File::options().read(true).custom_flags(libc::O_NONBLOCK).to_owned();
        let file = options.open(path).map_err(refused)?;
        let status = file.metadata().map_err(refused)?;
        if !status.is_file() {
            return Err(PlanError::NoFile { path: path.to_owned() });
        }
        let distrust = trust::distrust(&file, &status);
        let file =
            PlanFile::open(file).map_err(|source| PlanError::File { path: path.to_owned(), source })?;
        Ok(Plan { path: path.to_owned(), file: Arc::new(file), distrust })
    }

    /// Path of the plan, as it was opened.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The checked file.
    pub fn file(&self) -> &PlanFile<File> {
        &self.file
    }

    /// The plan's metadata.
    pub fn metadata(&self) -> &Metadata {
        self.file.metadata()
    }

    /// Why the plan's machine code is not to be run; `None` if it may be.
    pub fn distrust(&self) -> Option<UntrustedReason> {
        self.distrust
    }

    /// The refusal to run the plan's machine code, if it is not to be trusted.
    pub fn untrusted(&self) -> Option<PlanError> {
        self.distrust.map(|reason| PlanError::Untrusted { path: self.path.clone(), reason })
    }

    /// Every target of the plan, and whether it runs here.
    pub fn targets(&self) -> Vec<TargetFit> {
        target::fits(&self.metadata().targets)
    }

    /// Index of the target to run: that of level `wanted`, or else the best one that this CPU supports.
    ///
    /// # Errors
    /// When no target fits; the message lists what each would need.
    pub fn choose(&self, wanted: Option<Level>) -> Result<usize, PlanError> {
        target::choose(&self.targets(), wanted)
            .map_err(|reason| PlanError::NoTarget { path: self.path.clone(), reason })
    }

    /// The plan in memory, with its own code.
    ///
    /// # Errors
    /// When the code is not to be trusted, or a part of it is damaged.
    pub fn image(&self, target: usize) -> Result<PlanImage, PlanError> {
        if let Some(error) = self.untrusted() {
            return Err(error);
        }
        let (program, code_hash) = self.file.program(target).map_err(|source| self.wrong(source))?;
        let identity = self.file.identity(&self.metadata().producer);
        Ok(self.image_of(program)?.with_code_hash(code_hash).with_identity(identity))
    }

    /// The plan's weights and chat templates with a program that `producer` generated here.
    ///
    /// # Errors
    /// When a part of it is damaged.
    ///
    /// # Safety
    /// As [`PlanImage::generated`] asks of the program.
    pub unsafe fn image_with(&self, program: Program, producer: &str) -> Result<PlanImage, PlanError> {
        Ok(self.image_of(program)?.with_identity(self.file.identity(producer)))
    }

    /// Whether the plan has a tokenizer.
    pub fn has_tokenizer(&self) -> bool {
        self.file.sections().iter().any(|section| section.kind == kernmill_plan::file::SectionKind::Tokenizer)
    }

    /// Tokenizer of the plan, which a separate thread begins to read now.
    pub fn tokenizer(&self) -> Option<TokenizerHandle> {
        let (file, vocab) = (Arc::clone(&self.file), self.metadata().model.vocab);
        let read = move || match file.tokenizer_json() {
            Ok(Some(json)) => Tokenizer::from_json(&json, vocab),
            Ok(None) => Err(TokenizerError::gone()),
            Err(error) => Err(TokenizerError::unreadable(&error)),
        };
        self.has_tokenizer().then(|| TokenizerHandle::start(read))
    }

    /// The plan's chat templates, and the tokens that they write by name.
    ///
    /// # Errors
    /// When a section with them is damaged.
    pub fn chat_templates(&self) -> Result<ChatTemplates, PlanError> {
        let mut templates = self.file.chat_templates().map_err(|source| self.wrong(source))?;
        for template in &mut templates.templates {
            template.place =
                format!("{}: chat template `{}`", self.path.display(), shortened(&template.name));
        }
        Ok(templates)
    }

    fn image_of(&self, program: Program) -> Result<PlanImage, PlanError> {
        Ok(PlanImage::sealed(program, self.weights()?).with_chat_templates(self.chat_templates()?))
    }

    /// Maps the weights. Their pages are read when they are first used.
    fn weights(&self) -> Result<Arc<WeightRegion>, PlanError> {
        let section = self.file.weights();
        let name = self.path.display().to_string();
        let bytes = section.bytes as usize;
        // SAFETY: kernels read the weights as plain numbers, of which any bits may change at any time, and
        // conclude nothing from them. That nobody rewrites a plan while it runs is asked of the user
        // (docs/user/security.md).
        unsafe { WeightRegion::map_file(self.file.source(), section.offset, bytes, &name) }
            .map_err(|source| PlanError::Map { path: self.path.clone(), source })
    }

    fn wrong(&self, source: FileError) -> PlanError {
        PlanError::File { path: self.path.clone(), source }
    }
}
