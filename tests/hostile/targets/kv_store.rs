//! Segments and sessions of the KV store. Inputs leave out the zeros that fill pages. They are a byte that
//! says whether checksums are made to fit, and pages, each behind the number of its bytes in 2.

use kernmill_kv_store::{Segment, SessionFile};
use xxhash_rust::xxh3::xxh3_64;

const PAGE: usize = 4096;
/// Where a header's checksum is.
const CHECKSUM_AT: usize = PAGE - 8;
/// Pages that an input may have.
const MAX_PAGES: usize = 64;

/// A segment.
pub fn kv_segment(data: &[u8]) {
    reads_kv_segment(data);
}

/// A session.
pub fn kv_session(data: &[u8]) {
    reads_kv_session(data);
}

/// Payloads that were read.
pub fn reads_kv_segment(data: &[u8]) -> usize {
    let file = file(data);
    let source = &file[..];
    let segment = match Segment::open(&source) {
        Ok(segment) => segment,
        Err(error) => {
            assert!(!error.to_string().is_empty());
            return 0;
        }
    };
    let slots = segment.scan(&source).expect("slices can be read");
    assert_eq!(slots.len() as u32, segment.slots_of(file.len() as u64));
    let mut payloads = 0;
    for (slot, found) in slots.into_iter().enumerate() {
        let header = match found {
            Ok(Some(header)) => header,
            Ok(None) => continue,
            Err(damage) => {
                assert!(!damage.to_string().is_empty());
                continue;
            }
        };
        let at = segment.offset(slot as u32) as usize + PAGE;
        let expected = &file[at..at + header.payload_bytes];
        let mut payload = vec![0; header.payload_bytes];
        let read = segment.read(&source, slot as u32, |found| *found == header, &mut payload);
        if read.expect("slices can be read").is_ok_and(|header| header.is_some()) {
            assert!(payload == expected);
            assert!((1..=16).contains(&header.found.tokens.as_slice().len()));
            payloads += 1;
        }
    }
    payloads
}

/// Payloads that were read; none if the session was refused.
pub fn reads_kv_session(data: &[u8]) -> Option<usize> {
    let bytes = file(data);
    let file = match SessionFile::read_from(&bytes[..]) {
        Ok(file) => file,
        Err(error) => {
            assert!(!error.to_string().is_empty());
            return None;
        }
    };
    let session = file.session();
    let mut at = PAGE + session.name.len();
    for token in &session.tokens {
        assert_eq!(bytes[at..at + 4], token.to_le_bytes());
        at += 4;
    }
    assert!(file.records().count() <= bytes.len() / PAGE);
    let read = |(id, length): (_, usize)| {
        let mut payload = vec![0; length];
        let found = file.read(id, &mut payload).expect("slices can be read");
        found.is_some_and(|_| bytes.windows(length).any(|window| window == payload))
    };
    Some(file.records().filter(|record| read(*record)).count())
}

/// The file that an input stands for.
fn file(data: &[u8]) -> Vec<u8> {
    let Some((flag, mut rest)) = data.split_first() else { return Vec::new() };
    let mut file = Vec::new();
    while let Some((length, behind)) = rest.split_first_chunk()
        && file.len() < MAX_PAGES * PAGE
    {
        let length = usize::from(u16::from_le_bytes(*length)).min(behind.len()).min(PAGE);
        let (page, behind) = behind.split_at(length);
        file.extend(page);
        file.resize(file.len().next_multiple_of(PAGE), 0);
        rest = behind;
    }
    if flag & 1 == 1 {
        sign(&mut file);
    }
    file
}

/// Makes the checksums of bodies, payloads and headers fit.
fn sign(file: &mut [u8]) {
    for at in (0..file.len()).step_by(PAGE) {
        let number = |file: &[u8], field: usize| {
            let bytes = file[at + field..at + field + 4].try_into().expect("4 bytes");
            u32::from_le_bytes(bytes) as usize
        };
        let (length, field) = match &file[at..at + 8] {
            b"\x89KMKVS\r\n" => (0, None),
            b"\x89KMKVR\r\n" => (number(file, 16), Some(24)),
            b"\x89KMKVN\r\n" => {
                let [name, tokens, blocks, state] = [12, 16, 20, 24].map(|field| number(file, field));
                (name + 4 * tokens + 36 * blocks + state, Some(32))
            }
            _ => continue,
        };
        if let Some(field) = field
            && let Some(covered) = file.get(at + PAGE..at + PAGE + length)
        {
            let sum = xxh3_64(covered).to_le_bytes();
            file[at + field..at + field + 8].copy_from_slice(&sum);
        }
        let sum = xxh3_64(&file[at..at + CHECKSUM_AT]).to_le_bytes();
        file[at + CHECKSUM_AT..at + PAGE].copy_from_slice(&sum);
    }
}
