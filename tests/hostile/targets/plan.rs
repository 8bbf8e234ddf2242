//! Plan files, damaged byte by byte.

use super::program::assert_runtime_agrees;
use super::sound::sound_plan;
use kernmill_plan::file::check::{PlanFile, Section};
use kernmill_plan::program::Program;

/// A plan file. The first byte says what the others are: a file; edits of 8 bytes each (see [`edit_plan`]) of
/// a sound one; or such edits, after which all hashes are made to fit.
pub fn plan(data: &[u8]) {
    let Some((how, data)) = data.split_first() else { return };
    match how % 3 {
        0 => load(data, &mut |_, _| {}),
        1 => load(&edited_plan(data), &mut |_, _| {}),
        _ => {
            let mut file = edited_plan(data);
            sign_plan(&mut file);
            load(&file, &mut |_, _| {});
        }
    }
}

/// Everything that is read from a plan file; `with` takes the programs that have passed, and the hash of
/// their code.
pub(super) fn load(file: &[u8], with: &mut dyn FnMut(Program, [u8; 32])) {
    let plan = match PlanFile::open(file) {
        Ok(plan) => plan,
        Err(error) => return assert!(!error.to_string().is_empty()),
    };
    let weights = plan.weights();
    assert_eq!(weights.end(), file.len() as u64);
    assert!(plan.sections().iter().all(|section| section.end() <= file.len() as u64));
    for target in 0..plan.metadata().targets.len() {
        match plan.program(target) {
            Ok((program, hash)) => {
                assert_eq!(*blake3::hash(&program.code.bytes).as_bytes(), hash);
                assert_runtime_agrees(&program);
                with(program, hash);
            }
            Err(error) => assert!(!error.to_string().is_empty()),
        }
    }
    let _ = (plan.spec(), plan.tokenizer_json(), plan.chat_templates(), plan.verify(1, &|_| {}));
}

/// The sound plan with edits: place (4 bytes), how, unused, value (2 bytes).
fn edited_plan(edits: &[u8]) -> Vec<u8> {
    let mut file = sound_plan().to_vec();
    for edit in edits.chunks_exact(8).take(32) {
        let at = u32::from_le_bytes([edit[0], edit[1], edit[2], edit[3]]) as usize;
        edit_plan(&mut file, at, edit[4], [edit[6], edit[7]]);
    }
    file
}

/// Changes bytes before the weights, or the file's length.
fn edit_plan(file: &mut Vec<u8>, at: usize, how: u8, value: [u8; 2]) {
    // The weights of the sound plan start at 2 MiB; most of what is before them is padding.
    let hashes =
        PlanFile::open(sound_plan()).expect("sound").sections().iter().rev().nth(1).map(Section::end);
    let front = (hashes.unwrap_or(4096) as usize).min(file.len());
    if front == 0 {
        return;
    }
    let at = match how >> 4 {
        // The header's fields and its table.
        0..=7 => at % front.min(1024),
        8..=13 => at % front,
        _ => at % file.len(),
    };
    match how % 8 {
        0 => file[at] ^= 1 << (value[0] % 8),
        1 => file[at] = value[0],
        2 => file[at] = file[at].wrapping_add(1),
        3 => file[at] = 0xff,
        4 => file[at] = 0,
        5 => file.truncate(at),
        6 => file.extend_from_slice(&value),
        _ => {
            for (byte, new) in file[at..].iter_mut().zip(value) {
                *byte = new;
            }
        }
    }
}

/// Makes the hashes of the sections in the table, and that of the header, fit.
pub fn sign_plan(file: &mut [u8]) {
    const HEADER: usize = 4096;
    if file.len() < HEADER {
        return;
    }
    for entry in (64..HEADER).step_by(64) {
        let number = |at: usize| u64::from_le_bytes(file[at..at + 8].try_into().expect("8 bytes")) as usize;
        let (kind, offset, bytes) = (file[entry], number(entry + 8), number(entry + 16));
        let section = offset.checked_add(bytes).and_then(|end| file.get(offset..end));
        // The weights, kind 8, have none.
        let Some(hash) = section.filter(|_| (1..8).contains(&kind)).map(blake3::hash) else { continue };
        file[entry + 32..entry + 64].copy_from_slice(hash.as_bytes());
    }
    file[32..64].fill(0);
    let hash = blake3::hash(&file[..HEADER]);
    file[32..64].copy_from_slice(hash.as_bytes());
}
