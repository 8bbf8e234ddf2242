//! The bytes of files, as docs/dev/kv-store.md has them.

use super::{StoreDir, open, place, put, segments};
use crate::block::{Block, BlockId, BlockTokens, LayerPart, PayloadLayout, StoreKey};
use crate::format::checksum;
use crate::segment::Segment;
use crate::session::{BlockRef, Session, SessionFile, SessionWriter};

/// Bytes at their offsets, zeros elsewhere, and the checksum of the rest in the last 8.
fn page(fields: &[(usize, &[u8])]) -> Vec<u8> {
    let mut page = vec![0; 4096];
    for (at, bytes) in fields {
        page[*at..at + bytes.len()].copy_from_slice(bytes);
    }
    let sum = checksum(&page[..4088]).to_le_bytes();
    page[4088..].copy_from_slice(&sum);
    page
}

fn block() -> Block {
    Block {
        id: BlockId { layout: PayloadLayout([3; 32]), key: StoreKey([1; 32]), part: LayerPart::Window },
        parent: StoreKey([2; 32]),
        tokens: BlockTokens::new(&[0x0102_0304, 9]).unwrap(),
        seconds: 0.5,
        payload: b"payload".to_vec(),
    }
}

/// The record of [`block`] with this priority, as the first write of all.
fn record(priority: f64, sequence: u64) -> Vec<u8> {
    let header = page(&[
        (0, b"\x89KMKVR\r\n"),
        (8, &[1]),
        (12, &[1, 2]),
        (16, &[7]),
        (24, &checksum(b"payload").to_le_bytes()),
        (32, &0.5f64.to_le_bytes()),
        (40, &priority.to_le_bytes()),
        (48, &sequence.to_le_bytes()),
        (64, &[1; 32]),
        (96, &[2; 32]),
        (128, &[3; 32]),
        (160, &[4, 3, 2, 1, 9, 0, 0, 0]),
    ]);
    [&header[..], b"payload"].concat()
}

#[test]
fn the_checksum_is_xxh3() {
    // From the specification's reference implementation.
    assert_eq!(checksum(b""), 0x2d06_8005_38d3_94c2);
}

#[test]
fn segments_have_the_documented_bytes() {
    let StoreDir { dir, _base } = place();
    let store = open(&dir, 1 << 20);
    put(&store, block());
    store.flush().unwrap();
    let header = page(&[(0, b"\x89KMKVS\r\n"), (8, &[1]), (16, &8192u64.to_le_bytes()), (24, &[7])]);
    let expected = [header, record(0.5 / 8192.0, 1)].concat();
    let [path] = &segments(&dir)[..] else { panic!("one segment") };
    assert_eq!(path.file_name().unwrap(), "kernmill-kv-0000000000000000.segment");
    let found = std::fs::read(path).unwrap();
    assert!(found == expected, "other bytes");
    let segment = Segment::open(&&found[..]).unwrap();
    assert_eq!(segment, Segment { slot_bytes: 8192, slots: 7 });
    let header = segment.scan(&&found[..]).unwrap().remove(0).unwrap().unwrap();
    assert_eq!((header.id, header.found.tokens, header.payload_bytes), (block().id, block().tokens, 7));
}

#[test]
fn sessions_have_the_documented_bytes() {
    let StoreDir { dir, _base } = place();
    let session = Session {
        name: "ab".to_owned(),
        layout: PayloadLayout([3; 32]),
        tokens: vec![5, 6, 7],
        blocks: vec![BlockRef { position: 16, key: StoreKey([1; 32]) }],
        state: vec![8, 9],
    };
    let mut writer = SessionWriter::create(&dir, &session).unwrap();
    writer.add(&block()).unwrap();
    writer.finish().unwrap();
    let mut body = b"ab\x05\0\0\0\x06\0\0\0\x07\0\0\0\x10\0\0\0".to_vec();
    body.extend([1; 32]);
    body.extend([8, 9]);
    let sum = checksum(&body).to_le_bytes();
    let header = page(&[
        (0, b"\x89KMKVN\r\n"),
        (8, &[1]),
        (12, &[2]),
        (16, &[3]),
        (20, &[1]),
        (24, &[2]),
        (28, &[1]),
        (32, &sum),
        (64, &[3; 32]),
    ]);
    body.resize(4096, 0);
    let expected = [header, body, record(0.0, 0)].concat();
    let found = std::fs::read(&dir).unwrap();
    assert!(found == expected, "other bytes");
    assert_eq!(SessionFile::open(&dir).unwrap().session(), &session);
}
