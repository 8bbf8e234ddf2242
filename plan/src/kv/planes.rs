//! Planes of a block, written and read element by element: what kernels do many at a time.

use super::{BLOCK_TOKENS, KeyLayout, KvElements, KvFormat, KvPlane};

/// The bytes of a plane of one head, of tokens 0, 1, ... at most 16 of them; the others are zeros.
///
/// # Panics
/// When there are more tokens, or their heads have other than `head_dim` elements.
pub fn store_plane(format: KvFormat, plane: KvPlane, head_dim: usize, tokens: &[KvElements]) -> Vec<u8> {
    assert!(tokens.len() <= BLOCK_TOKENS && tokens.iter().all(|token| token.values.len() == head_dim));
    let mut bytes = vec![0; format.plane_bytes(head_dim)];
    let (scales, elements) = bytes.split_at_mut(format.scales_bytes());
    for (scale, token) in scales.chunks_exact_mut(4).zip(tokens) {
        scale.copy_from_slice(&token.scale.to_le_bytes());
    }
    let descriptor = format.descriptor();
    for (t, token) in tokens.iter().enumerate() {
        match (plane, descriptor.keys) {
            (KvPlane::K, KeyLayout::Words(words)) => {
                for (line, integers) in
                    elements.chunks_exact_mut(4 * BLOCK_TOKENS).zip(token.values.chunks(words.elements))
                {
                    line[4 * t..][..4].copy_from_slice(&(words.pack)(integers));
                }
            }
            (KvPlane::K, KeyLayout::Elements) => {
                let width = format.elements_bytes(1);
                let mut column = Vec::new();
                (descriptor.encode)(&token.values, &mut column);
                for (row, element) in
                    elements.chunks_exact_mut(width * BLOCK_TOKENS).zip(column.chunks_exact(width))
                {
                    row[width * t..][..width].copy_from_slice(element);
                }
            }
            (KvPlane::V, _) => {
                let mut row = Vec::new();
                (descriptor.encode)(&token.values, &mut row);
                elements[t * row.len()..][..row.len()].copy_from_slice(&row);
            }
        }
    }
    bytes
}
