//! Codes and integers that the blocks of several types of files have in the same places.

use super::layout::{BLOCK, SUPERBLOCK};
use super::parts::FileBlock;

/// Nibbles of 32 elements: those of the first half in the low ones.
pub(super) fn nibbles(bytes: &[u8], codes: &mut [u8]) {
    let (low, high) = codes[..BLOCK].split_at_mut(BLOCK / 2);
    for ((byte, low), high) in bytes[..BLOCK / 2].iter().zip(low).zip(high) {
        (*low, *high) = (byte & 15, byte >> 4);
    }
}

/// Nibbles of 256 elements: 32 bytes have 32 elements in the low ones and the next 32 in the high ones.
pub(super) fn nibbles_of_pairs(bytes: &[u8], codes: &mut [u8; SUPERBLOCK]) {
    for (bytes, codes) in bytes.chunks(BLOCK).zip(codes.as_chunks_mut::<{ 2 * BLOCK }>().0) {
        let (low, high) = codes.split_at_mut(BLOCK);
        for ((byte, low), high) in bytes.iter().zip(low).zip(high) {
            (*low, *high) = (byte & 15, byte >> 4);
        }
    }
}

/// Two bits of 256 elements: 32 bytes have 128, the lowest bits those of the first 32.
pub(super) fn pairs(bytes: &[u8], codes: &mut [u8; SUPERBLOCK]) {
    for (bytes, codes) in bytes.chunks(BLOCK).zip(codes.as_chunks_mut::<{ 4 * BLOCK }>().0) {
        for (i, code) in codes.iter_mut().enumerate() {
            *code = bytes[i % BLOCK] >> (i / BLOCK * 2) & 3;
        }
    }
}

/// The fifth bits of 32 elements, which have their lower ones.
pub(super) fn fifth_bits(bytes: &[u8], codes: &mut [u8]) {
    let bits = u32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]);
    codes[..BLOCK].iter_mut().enumerate().for_each(|(i, code)| *code |= ((bits >> i & 1) as u8) << 4);
}

/// Scales and minima of 6 bits of 8 blocks. The first 4 blocks have theirs in the lower six bits of bytes 0
/// to 3 and 4 to 7; the others have four bits in bytes 8 to 11 and the upper two bits of those.
pub(super) fn six_bits(bytes: &[u8], block: &mut FileBlock) {
    for i in 0..4 {
        (block.scales[i], block.minima[i]) = (bytes[i] & 63, bytes[4 + i] & 63);
        block.scales[4 + i] = bytes[8 + i] & 15 | bytes[i] >> 6 << 4;
        block.minima[4 + i] = bytes[8 + i] >> 4 | bytes[4 + i] >> 6 << 4;
    }
}
