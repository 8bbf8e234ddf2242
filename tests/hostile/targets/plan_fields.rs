//! Plan files put together from damaged fields: every hash fits, so that what is wrong is met by the check
//! that is about it.

use super::edit::{Edit, edit, edits, number};
use super::plan::{load, sign_plan};
use super::sound::{plan_of, sound_image};
use kernmill_plan::file::check::{PlanFile, Section};
use kernmill_plan::file::{
    ENTRY_BYTES, HEADER_BYTES, MAGIC, MAX_SECTIONS, Metadata, SECTION_ALIGN, SectionKind, TABLE_OFFSET,
    TargetProgram, VERSION, WEIGHT_ALIGN,
};
use kernmill_plan::program::Program;
use kernmill_plan::target::Level;
use kernmill_runtime::pool::PoolConfig;
use kernmill_runtime::{Engine, EngineConfig, ErrorKind, PlanImage};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use std::sync::{Arc, OnceLock};

/// A section: kind, target, contents.
#[derive(Clone)]
pub struct Part {
    pub kind: u32,
    pub target: u32,
    pub bytes: Vec<u8>,
}

/// A plan of two targets, as what it is made of.
struct Fields {
    metadata: Value,
    programs: [Value; 2],
    parts: Vec<Part>,
}

/// Places in [`Fields::parts`] of the programs.
const PROGRAMS: [usize; 2] = [5, 7];

/// Edits of 8 bytes of the fields of a sound plan, see [`edits`]: first those of values, then of sections,
/// then of numbers of the header. A plan that passes all checks becomes an engine.
pub fn plan_fields(data: &[u8]) {
    let fields = sound_fields();
    let mut parts = fields.parts.clone();
    let encoded = [
        encode::<Metadata>(&fields.metadata, &mut parts[0].bytes, data, |part| part == 0),
        encode::<TargetProgram>(&fields.programs[0], &mut parts[PROGRAMS[0]].bytes, data, |part| part == 1),
        encode::<TargetProgram>(&fields.programs[1], &mut parts[PROGRAMS[1]].bytes, data, |part| part == 2),
    ];
    if encoded.contains(&None) {
        return;
    }
    edits(data).filter(|edit| edit.part % 8 == 5).for_each(|edit| edit_parts(&mut parts, &edit));
    let mut file = assemble(&parts);
    edits(data).filter(|edit| edit.part % 8 == 6).for_each(|edit| edit_header(&mut file, &edit));
    sign_plan(&mut file);
    load(&file, &mut start);
}

/// Makes an engine of a program that has passed, if this machine can run it, and runs nothing.
fn start(program: Program, hash: [u8; 32]) {
    let weights = Arc::clone(sound_image().weights());
    // SAFETY: the engine below runs no step.
    let image = unsafe { PlanImage::generated(program, weights) }.with_code_hash(hash);
    let pool = PoolConfig { threads: Some(1), ..PoolConfig::default() };
    let config =
        EngineConfig { pool, context: Some(20), sequences: 2, chunk: None, ..EngineConfig::default() };
    match Engine::new(&image, config) {
        Ok(mut engine) => {
            let first = engine.create().expect("it has two sequences");
            let second = engine.fork(first, 0).expect("it has two sequences");
            assert!(engine.truncate(second, 1).is_err());
        }
        Err(error) => assert!(error.kind() != ErrorKind::Bug && !error.to_string().is_empty(), "{error}"),
    }
}

fn sound_fields() -> &'static Fields {
    static SOUND: OnceLock<Fields> = OnceLock::new();
    SOUND.get_or_init(|| {
        let file = plan_of(&[Level::V3, Level::V4]);
        let plan = PlanFile::open(&file[..]).expect("sound");
        let part = |section: &Section| Part {
            kind: section.kind as u32,
            target: section.target,
            bytes: file[section.offset as usize..section.end() as usize].to_vec(),
        };
        let parts: Vec<Part> = plan.sections().iter().map(part).collect();
        let program = |part: usize| {
            let program: TargetProgram = postcard::from_bytes(&parts[part].bytes).expect("sound");
            serde_json::to_value(program).expect("a program is data")
        };
        assert_eq!(PROGRAMS.map(|part| parts[part].kind), [SectionKind::Program as u32; 2]);
        let metadata = serde_json::to_value(plan.metadata()).expect("metadata is data");
        Fields { metadata, programs: PROGRAMS.map(program), parts }
    })
}

/// Puts the bytes of a value after the edits of part `is_own`, if there are any, in place of `bytes`; nothing
/// if it is no value then. Part 3 edits bytes of the metadata, part 4 of the programs: numbers in as many
/// bytes as they please, lengths, tags, floats.
fn encode<T: Serialize + DeserializeOwned>(
    sound: &Value,
    bytes: &mut Vec<u8>,
    data: &[u8],
    is_own: fn(u8) -> bool,
) -> Option<()> {
    if edits(data).any(|edit| is_own(edit.part % 8)) {
        let mut json = sound.clone();
        let own = edits(data).filter(|edit| is_own(edit.part % 8));
        own.for_each(|Edit { how, at, value, .. }| edit(&mut json, at, how, value));
        let value: T = serde_json::from_value(json).ok()?;
        *bytes = postcard::to_allocvec(&value).ok()?;
    }
    let of_bytes = if is_own(0) { 3 } else { 4 };
    for Edit { how, at, value, .. } in edits(data).filter(|edit| edit.part % 8 == of_bytes) {
        let at = at % bytes.len();
        let new = value.to_le_bytes();
        let count = usize::from(how % 4) + 1;
        bytes.iter_mut().skip(at).zip(&new[..count]).for_each(|(byte, new)| *byte = *new);
    }
    Some(())
}

/// Changes the sections: which there are, and what is in those that are not data of a program.
fn edit_parts(parts: &mut Vec<Part>, &Edit { how, at, value, .. }: &Edit) {
    if parts.is_empty() {
        return;
    }
    let (index, other) = (at % parts.len(), value as usize % parts.len());
    match how % 8 {
        0 => parts.swap(index, other),
        1 => drop(parts.remove(index)),
        2 if parts.len() < MAX_SECTIONS => parts.insert(index, parts[other].clone()),
        3 => parts[index].kind = value % 10,
        4 => parts[index].target = value % 4,
        5 => {
            let length = value as usize % (parts[index].bytes.len() + 1);
            parts[index].bytes.truncate(length);
        }
        6 => parts[index].bytes.extend_from_slice(&value.to_le_bytes()),
        _ => {
            let place = (value >> 8) as usize % parts[index].bytes.len().max(1);
            if let Some(byte) = parts[index].bytes.get_mut(place) {
                *byte = value as u8;
            }
        }
    }
}

/// The sections of a sound plan of two targets.
pub fn sound_parts() -> Vec<Part> {
    sound_fields().parts.clone()
}

/// A file of these sections.
pub fn assemble(parts: &[Part]) -> Vec<u8> {
    let align =
        |part: &Part| if part.kind == SectionKind::Weights as u32 { WEIGHT_ALIGN } else { SECTION_ALIGN };
    let place = |end: &mut usize, part: &Part| {
        let offset = end.next_multiple_of(align(part) as usize);
        *end = offset + part.bytes.len();
        Some(offset)
    };
    let offsets: Vec<usize> = parts.iter().scan(HEADER_BYTES, place).collect();
    let end = |(part, offset): (&Part, &usize)| offset + part.bytes.len();
    let mut file = vec![0; parts.iter().zip(&offsets).map(end).max().unwrap_or(HEADER_BYTES)];
    for (index, (part, offset)) in parts.iter().zip(offsets).enumerate() {
        let entry = TABLE_OFFSET + index * ENTRY_BYTES;
        file[entry..entry + 4].copy_from_slice(&part.kind.to_le_bytes());
        file[entry + 4..entry + 8].copy_from_slice(&part.target.to_le_bytes());
        file[entry + 8..entry + 16].copy_from_slice(&(offset as u64).to_le_bytes());
        file[entry + 16..entry + 24].copy_from_slice(&(part.bytes.len() as u64).to_le_bytes());
        file[offset..offset + part.bytes.len()].copy_from_slice(&part.bytes);
    }
    let length = file.len() as u64;
    file[..8].copy_from_slice(&MAGIC);
    file[8..12].copy_from_slice(&VERSION.to_le_bytes());
    file[12..16].copy_from_slice(&(HEADER_BYTES as u32).to_le_bytes());
    file[16..24].copy_from_slice(&length.to_le_bytes());
    file[24..28].copy_from_slice(&(parts.len() as u32).to_le_bytes());
    file
}

/// Changes a number of the header or of its table.
fn edit_header(file: &mut [u8], &Edit { how, at, value, .. }: &Edit) {
    let entry = TABLE_OFFSET + at / 16 % 12 * ENTRY_BYTES;
    let (at, bytes) = match at % 16 {
        0 => (8, 4),
        1 => (12, 4),
        2 => (16, 8),
        3 => (24, 4),
        4 => (28, 4),
        5 | 6 => (entry, 4),
        7 | 8 => (entry + 4, 4),
        9..=11 => (entry + 8, 8),
        12..=14 => (entry + 16, 8),
        _ => (entry + 24, 8),
    };
    let old = file[at..at + bytes].iter().rev().fold(0, |sum, byte| sum << 8 | u64::from(*byte));
    file[at..at + bytes].copy_from_slice(&number(how, value, old).to_le_bytes()[..bytes]);
}
