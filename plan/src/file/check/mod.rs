//! Reading plan files. Nothing is used before it has been checked: magic, version, places, hashes, contents.

mod error;
mod header;
#[cfg(test)]
mod tests;
mod verify;

pub use error::FileError;
pub use header::Section;

use super::{Hash, Identity, Metadata, SectionKind, TargetProgram};
use crate::chat::{self, ChatSection, ChatTemplate, ChatTemplates};
use crate::check::check_program;
use crate::program::{CodeBlob, Program};
use crate::target::Level;
use kernmill_os::source::Source;
use serde::de::DeserializeOwned;
use std::fmt;

/// A plan file whose header and metadata have been checked; its other sections are when they are read.
pub struct PlanFile<S> {
    source: S,
    sections: Vec<Section>,
    metadata: Metadata,
}

impl<S> fmt::Debug for PlanFile<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PlanFile").field("sections", &self.sections).finish_non_exhaustive()
    }
}

impl<S: Source> PlanFile<S> {
    /// Reads and checks header and metadata.
    ///
    /// # Errors
    /// The first thing that is wrong.
    pub fn open(source: S) -> Result<PlanFile<S>, FileError> {
        let sections = header::read(&source)?;
        let bytes = read_section(&source, &sections[0])?;
        let metadata: Metadata = decode("metadata", &bytes)?;
        let plan = PlanFile { source, sections, metadata };
        plan.check_metadata()?;
        Ok(plan)
    }

    /// The source that is read.
    pub fn source(&self) -> &S {
        &self.source
    }

    /// Every section, in order of offset.
    pub fn sections(&self) -> &[Section] {
        &self.sections
    }

    /// The plan's metadata.
    pub fn metadata(&self) -> &Metadata {
        &self.metadata
    }

    /// The spec that the plan was compiled from.
    ///
    /// # Errors
    /// When it is damaged.
    pub fn spec(&self) -> Result<String, FileError> {
        self.text(SectionKind::Spec).map(Option::unwrap_or_default)
    }

    /// The identity of the model whose code `producer` generates from this plan: its own one, or that of a
    /// program that generates it anew. Nothing but the header is asked, whose hashes have been checked.
    pub fn identity(&self, producer: &str) -> Hash {
        let hash = |kind| self.section(kind, 0).map_or(Hash::default(), |section| section.hash);
        let Metadata { model, fused, fused_specs, .. } = &self.metadata;
        let (spec, weights) = (hash(SectionKind::Spec), hash(SectionKind::WeightHashes));
        Identity { producer, model, fused: *fused, fused_specs, spec, weights }.hash()
    }

    /// `tokenizer.json`, if there is one.
    ///
    /// # Errors
    /// When it is damaged.
    pub fn tokenizer_json(&self) -> Result<Option<Vec<u8>>, FileError> {
        self.section(SectionKind::Tokenizer, 0).map(|section| read_section(&self.source, section)).transpose()
    }

    /// The chat templates, and the tokens that they write by name. Their places are left open.
    ///
    /// # Errors
    /// When a section with them is damaged.
    pub fn chat_templates(&self) -> Result<ChatTemplates, FileError> {
        let default = self.text(SectionKind::ChatTemplate)?;
        let rest = self.section(SectionKind::Chat, 0).map(|section| {
            let bytes = read_section(&self.source, section)?;
            decode::<ChatSection>(&section.name(), &bytes)
        });
        let ChatSection { named, tokens, fault, is_given, prompts } = rest.transpose()?.unwrap_or_default();
        let template = |name, text| ChatTemplate { name, place: String::new(), text };
        let default = default.map(|text| template(chat::DEFAULT.to_owned(), text));
        let named = named.into_iter().map(|named| template(named.name, named.text));
        let templates = default.into_iter().chain(named).collect();
        Ok(ChatTemplates { templates, tokens, fault, is_given, prompts })
    }

    /// A target's program, checked, and the hash of its code.
    ///
    /// # Errors
    /// When it is damaged, refers to memory it does not have, or is for a level that this version does not
    /// know.
    pub fn program(&self, target: usize) -> Result<(Program, Hash), FileError> {
        let missing = || FileError::Target { target, targets: self.metadata.targets.len() };
        let info = self.metadata.targets.get(target).ok_or_else(missing)?;
        let unknown = || FileError::Level { target, level: info.level.clone() };
        let level = Level::from_name(&info.level).ok_or_else(unknown)?;
        let index = target as u32;
        let section = self.section(SectionKind::Program, index).ok_or_else(missing)?;
        let bytes = read_section(&self.source, section)?;
        let body: TargetProgram = decode(&section.name(), &bytes)?;
        let code = self.section(SectionKind::Code, index).ok_or_else(missing)?;
        let bytes = read_section(&self.source, code)?;
        let program = Program {
            level,
            model: self.metadata.model.clone(),
            classes: body.classes,
            arena_bytes: body.arena_bytes,
            scratch_bytes: body.scratch_bytes,
            weight_bytes: self.metadata.weight_bytes,
            code: CodeBlob { bytes, symbols: body.symbols },
        };
        check_program(&program).map_err(|source| FileError::Program { target, source })?;
        Ok((program, code.hash))
    }

    /// Where the weights are.
    pub fn weights(&self) -> &Section {
        // The header's check has found them to be the last section.
        &self.sections[self.sections.len() - 1]
    }

    fn text(&self, kind: SectionKind) -> Result<Option<String>, FileError> {
        let Some(section) = self.section(kind, 0) else { return Ok(None) };
        match String::from_utf8(read_section(&self.source, section)?) {
            Ok(text) => Ok(Some(text)),
            Err(_) => Err(FileError::Content { section: section.name(), what: "it is not UTF-8".to_owned() }),
        }
    }

    fn section(&self, kind: SectionKind, target: u32) -> Option<&Section> {
        self.sections.iter().find(|section| section.kind == kind && section.target == target)
    }

    /// The metadata must fit the sections.
    fn check_metadata(&self) -> Result<(), FileError> {
        let wrong = |what: String| Err(FileError::Content { section: "metadata".to_owned(), what });
        let programs = self.sections.iter().filter(|section| section.kind == SectionKind::Program).count();
        if programs != self.metadata.targets.len() {
            return wrong(format!(
                "it describes {} targets, the file has {programs}",
                self.metadata.targets.len()
            ));
        }
        let (weights, found) = (self.weights().bytes, self.metadata.weight_bytes);
        if found != weights {
            return wrong(format!("it says {found} bytes of weights, the file has {weights}"));
        }
        for tensor in &self.metadata.tensors {
            if tensor.offset.checked_add(tensor.bytes).is_none_or(|end| end > weights) {
                return wrong(format!(
                    "tensor {}: {} bytes at {} pass the weights' end at {weights}",
                    tensor.name, tensor.bytes, tensor.offset
                ));
            }
        }
        let vocab = self.metadata.model.vocab;
        match self.metadata.end_tokens.iter().find(|id| **id >= vocab) {
            Some(id) => wrong(format!("end token {id}, the vocabulary has {vocab}")),
            None => Ok(()),
        }
    }
}

/// A section's bytes, if they have its hash.
fn read_section<S: Source>(source: &S, section: &Section) -> Result<Vec<u8>, FileError> {
    // The header's check has bounded it.
    let mut bytes = vec![0; section.bytes as usize];
    source.read_at(section.offset, &mut bytes).map_err(FileError::Read)?;
    if *blake3::hash(&bytes).as_bytes() != section.hash {
        return Err(FileError::Hash { section: section.name() });
    }
    Ok(bytes)
}

/// A value and nothing behind it.
fn decode<T: DeserializeOwned>(section: &str, bytes: &[u8]) -> Result<T, FileError> {
    let wrong = |what: String| FileError::Content { section: section.to_owned(), what };
    let (value, rest) = postcard::take_from_bytes(bytes).map_err(|error| match error {
        // An error of `bounded`; postcard keeps no more of it.
        postcard::Error::SerdeDeCustom => {
            wrong("a list or text in it is longer than any plan has".to_owned())
        }
        error => wrong(error.to_string()),
    })?;
    if !rest.is_empty() {
        return Err(wrong(format!("{} bytes too many", rest.len())));
    }
    Ok(value)
}
