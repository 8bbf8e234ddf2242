//! Writing plan files (docs/dev/plan-format.md). The reader, `plan/src/file/check/mod.rs`, shares no code
//! with this.
//!
//! Everything but the weights is put together in memory first, so that the file's size is known before it is
//! written. The weights stream from the checkpoint into it; the header, which holds the hashes, comes last.

mod error;
mod header;
mod pages;

pub use error::{PlanPartsError, PlanWriteError};

use crate::emit::pack::{RegionPiece, piece_sizes, stream_weights};
use crate::ir::{Graph, TensorId};
use crate::passes::fuse::{FusedSet, FusedSpec};
use crate::passes::layout::WeightLayout;
use crate::passes::quant::choose::FormatChoices;
use crate::pipeline::Compiled;
use crate::weights::WeightSource;
use header::{Contents, SectionEntry};
use kernmill_os::float_env::FloatEnv;
use kernmill_plan::abi::ABI_VERSION;
use kernmill_plan::chat::{self, ChatSection, ChatTemplate, ChatTemplates, NamedTemplate};
use kernmill_plan::file::{
    FusedSpecText, HEADER_BYTES, Hash, MAX_PIECE_BYTES, Metadata, PIECE_ENTRY_BYTES, SectionKind, TargetInfo,
    TargetProgram, TensorInfo,
};
use kernmill_plan::program::Program;
use pages::PageWriter;
use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::FileExt;
use std::sync::Mutex;

/// The parts of a plan.
#[derive(Clone, Copy, Debug)]
pub struct PlanParts<'a> {
    /// Program and version that write the plan.
    pub producer: &'a str,
    /// One graph compiled for each target.
    pub compiled: &'a [Compiled],
    /// The formats that preset `fast` chose for the weights.
    pub choices: Option<&'a FormatChoices>,
    /// Whether nodes were fused.
    pub fused: bool,
    /// The fused-op specs that it was compiled with.
    pub fused_specs: &'a FusedSet,
    /// Text of the spec.
    pub spec: &'a str,
    /// `tokenizer.json`.
    pub tokenizer_json: Option<&'a [u8]>,
    /// The tokenizer's end tokens.
    pub end_tokens: &'a [u32],
    /// Chat templates, and the tokens that they write by name.
    pub chat_templates: Option<&'a ChatTemplates>,
}

/// A plan file that is ready to be written: everything but the weights.
#[derive(Debug)]
pub struct PlanWriter<'a> {
    graph: &'a Graph,
    layout: &'a WeightLayout,
    entries: Vec<SectionEntry>,
    bytes: u64,
}

impl<'a> PlanWriter<'a> {
    /// Serialises everything but the weights.
    ///
    /// # Errors
    /// When the parts do not fit each other or the format.
    pub fn new(parts: &PlanParts<'a>) -> Result<PlanWriter<'a>, PlanPartsError> {
        let first = parts.compiled.first().ok_or(PlanPartsError::NoTarget)?;
        if parts.compiled.iter().any(|other| other.layout != first.layout) {
            return Err(PlanPartsError::Layouts);
        }
        let (graph, layout) = (&first.fused.graph, &first.layout);
        let metadata = metadata(parts, graph, layout, &first.program);
        let mut contents = vec![
            (SectionKind::Metadata, 0, serialise("metadata", &metadata)?),
            (SectionKind::Spec, 0, parts.spec.as_bytes().to_vec()),
        ];
        contents.extend(parts.tokenizer_json.map(|json| (SectionKind::Tokenizer, 0, json.to_vec())));
        let (default, others) = parts.chat_templates.map(chat).unwrap_or_default();
        contents.extend(default.map(|text| (SectionKind::ChatTemplate, 0, text.into_bytes())));
        if others != ChatSection::default() {
            contents.push((SectionKind::Chat, 0, serialise("chat", &others)?));
        }
        for (target, compiled) in (0..).zip(parts.compiled) {
            let program = &compiled.program;
            contents.push((SectionKind::Program, target, serialise("program", &target_program(program))?));
            contents.push((SectionKind::Code, target, program.code.bytes.clone()));
        }
        let mut contents: Vec<(SectionKind, u32, Contents)> = contents
            .into_iter()
            .map(|(kind, target, bytes)| (kind, target, Contents::Bytes(bytes)))
            .collect();
        let largest = piece_sizes(layout).max().unwrap_or(0);
        if largest > MAX_PIECE_BYTES {
            let (section, most) = ("a piece of the weights", MAX_PIECE_BYTES);
            return Err(PlanPartsError::Large { section, bytes: largest, most });
        }
        let pieces = piece_sizes(layout).count();
        contents.push((SectionKind::WeightHashes, 0, Contents::Later((pieces * PIECE_ENTRY_BYTES) as u64)));
        contents.push((SectionKind::Weights, 0, Contents::Later(layout.bytes)));
        let entries = header::place(contents)?;
        let bytes = entries.last().map_or(HEADER_BYTES as u64, SectionEntry::end);
        Ok(PlanWriter { graph, layout, entries, bytes })
    }

    /// Bytes of the whole file.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Bytes of the packed weights, of which [`PlanWriter::write`] reports progress.
    pub fn weight_bytes(&self) -> u64 {
        self.layout.bytes
    }

    /// Bytes of each section: kind, target, size.
    pub fn sections(&self) -> impl Iterator<Item = (SectionKind, u32, u64)> + '_ {
        self.entries.iter().map(|entry| (entry.kind, entry.target, entry.contents.bytes()))
    }

    /// Writes an empty file, packing the weights of `source` with `threads` threads. Nothing of it is a plan
    /// before everything has been written: the header comes last. `progress` is told, from any thread, the
    /// bytes of weights done since its last call.
    ///
    /// # Errors
    /// When a weight is unusable or the system refuses to write, such as on a full disk.
    pub fn write<S: WeightSource>(
        &self,
        file: &File,
        source: &S,
        threads: usize,
        progress: &(dyn Fn(u64) + Sync),
    ) -> Result<(), PlanWriteError<S::Error>> {
        let _env = FloatEnv::standard();
        reserve(file, self.bytes)?;
        let [.., hashes, weights] = &self.entries[..] else { unreachable!("`new` puts both at the end") };
        let pages = PageWriter::new(file, weights.offset..weights.offset + self.layout.bytes);
        let pieces: Mutex<Vec<(u64, Hash)>> = Mutex::new(vec![(0, Hash::default()); self.pieces()]);
        let take = |piece: RegionPiece<'_>| -> Result<(), PlanWriteError<S::Error>> {
            let hash = *blake3::hash(piece.bytes).as_bytes();
            pages.write(weights.offset + piece.offset, piece.bytes)?;
            let entry = (piece.bytes.len() as u64, hash);
            pieces.lock().expect("no panic holds it")[piece.index] = entry;
            Ok(())
        };
        stream_weights(self.graph, self.layout, source, threads, progress, &take)?;
        let pieces = pieces.into_inner().expect("no panic holds it");
        let table: Vec<u8> =
            pieces.iter().flat_map(|(bytes, hash)| bytes.to_le_bytes().into_iter().chain(*hash)).collect();
        for entry in &self.entries {
            if let Contents::Bytes(bytes) = &entry.contents {
                file.write_all_at(bytes, entry.offset)?;
            }
        }
        file.write_all_at(&table, hashes.offset)?;
        let header = header::encode(&self.entries, self.bytes, blake3::hash(&table).as_bytes());
        file.write_all_at(&header, 0)?;
        Ok(())
    }

    fn pieces(&self) -> usize {
        piece_sizes(self.layout).count()
    }
}

fn serialise<T: serde::Serialize>(what: &'static str, value: &T) -> Result<Vec<u8>, PlanPartsError> {
    postcard::to_allocvec(value).map_err(|error| PlanPartsError::Serialise(what, error))
}

/// Chat templates as plans have them: the default one, and what there is besides.
fn chat(templates: &ChatTemplates) -> (Option<String>, ChatSection) {
    let ChatTemplates { templates, tokens, fault, is_given, prompts } = templates.clone();
    let (default, others): (Vec<_>, Vec<_>) =
        templates.into_iter().partition(|template| template.name == chat::DEFAULT);
    let named = others.into_iter().map(|ChatTemplate { name, text, .. }| NamedTemplate { name, text });
    let default = default.into_iter().next().map(|template| template.text);
    (default, ChatSection { named: named.collect(), tokens, fault, is_given, prompts })
}

fn metadata(parts: &PlanParts<'_>, graph: &Graph, layout: &WeightLayout, program: &Program) -> Metadata {
    let target = |compiled: &Compiled| {
        let level = compiled.program.level;
        let features = level.features().names().map(str::to_owned).collect();
        TargetInfo { level: level.name().to_owned(), features, abi: ABI_VERSION }
    };
    Metadata {
        producer: parts.producer.to_owned(),
        model: program.model.clone(),
        chunk: program.classes.last().map_or(0, |class| class.max_tokens),
        fused: parts.fused,
        fused_specs: parts.fused_specs.specs().map(fused_spec).collect(),
        weight_bytes: layout.bytes,
        tensors: tensors(graph, layout, parts.choices),
        end_tokens: parts.end_tokens.to_vec(),
        targets: parts.compiled.iter().map(target).collect(),
    }
}

fn fused_spec(spec: &FusedSpec) -> FusedSpecText {
    FusedSpecText { name: spec.name.value.clone(), text: spec.source.text().to_owned() }
}

/// Where every tensor of a quantised graph lies, as plans say it.
pub fn tensors(graph: &Graph, layout: &WeightLayout, choices: Option<&FormatChoices>) -> Vec<TensorInfo> {
    let ids = (0..graph.tensors.len() as u32).map(TensorId);
    ids.map(|id| {
        let (tensor, placement) = (graph.tensor(id), layout.placement(id));
        TensorInfo {
            name: tensor.name.clone(),
            format: tensor.format.name().to_owned(),
            shape: tensor.shape.iter().map(|n| *n as u64).collect(),
            offset: placement.offset,
            bytes: placement.bytes,
            int4_error: choices.and_then(|choices| choices.of(id)?.error),
        }
    })
    .collect()
}

/// A program as plans have it.
pub(crate) fn target_program(program: &Program) -> TargetProgram {
    TargetProgram {
        classes: program.classes.clone(),
        arena_bytes: program.arena_bytes,
        scratch_bytes: program.scratch_bytes,
        symbols: program.code.symbols.clone(),
    }
}

/// Takes the disk space at once, so that a full disk is found before the work. File systems that cannot do it
/// find it later.
fn reserve(file: &File, bytes: u64) -> io::Result<()> {
    let length = libc::off_t::try_from(bytes).map_err(|_| io::Error::from(io::ErrorKind::FileTooLarge))?;
    loop {
        // SAFETY: a system call on an open file; it touches no memory of ours.
        if unsafe { libc::fallocate(file.as_raw_fd(), 0, 0, length) } == 0 {
            return Ok(());
        }
        let error = io::Error::last_os_error();
        match error.raw_os_error() {
            Some(libc::EINTR) => {}
            Some(libc::EOPNOTSUPP | libc::ENOSYS) => return file.set_len(bytes),
            _ => return Err(error),
        }
    }
}
