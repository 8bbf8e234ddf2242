//! In which order panels multiply the tiles of an item, and where each tile's results lie.

use crate::kernel::MatrixPart;
use kernmill_plan::format::TILE_ROWS;

/// The tiles of a part's item, matrix and number of each, in the order in which panels multiply them two at a
/// time. One matrix's come in order, and those of an even number of matrices in the order in which they lie
/// in memory, whether or not matrices are interleaved. Of any other number they come matrix by matrix: a
/// second tile's results always lie behind the first one's. Those of matrices that are multiplied with second
/// rows of q8 come by themselves, behind all others.
fn tile_order(part: &MatrixPart) -> impl Iterator<Item = Vec<(usize, usize)>> {
    let tiles = part.rows_per_item / TILE_ROWS;
    (0..part.terms()).map(move |term| {
        let mats: Vec<usize> = (0..part.mats.len()).filter(|mat| part.mats[*mat].term == term).collect();
        match mats.len().is_multiple_of(2) {
            true => (0..tiles).flat_map(|tile| mats.iter().map(move |mat| (*mat, tile))).collect(),
            false => mats.iter().flat_map(|mat| (0..tiles).map(move |tile| (*mat, tile))).collect(),
        }
    })
}

/// The tiles of [`tile_order`], two at a time, or one where one is left: both of a pair are multiplied with
/// the same rows.
pub fn tile_pairs(part: &MatrixPart) -> Vec<Vec<(usize, usize)>> {
    tile_order(part).flat_map(|tiles| tiles.chunks(2).map(<[_]>::to_vec).collect::<Vec<_>>()).collect()
}

/// Bytes from the start of a row of an item's results, `[mats][rows_per_item]` f32, to a tile's.
pub fn place_of(part: &MatrixPart, (mat, tile): (usize, usize)) -> usize {
    (mat * part.rows_per_item + tile * TILE_ROWS) * 4
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel::Mat;
    use kernmill_plan::format::WeightFormat;

    #[test]
    fn second_tiles_lie_behind_first_ones_however_many_matrices_meet() {
        for (mats, terms) in (1..=6).flat_map(|mats| [(mats, 1), (mats, 2)]) {
            for rows_per_item in [16, 32, 48, 64, 80, 96] {
                let mat = |term| Mat {
                    operand: 0,
                    format: WeightFormat::Int8,
                    n: rows_per_item,
                    k: 64,
                    tile_stride: 0,
                    expert_stride: 0,
                    bias: None,
                    term,
                    adapter: None,
                };
                let mats = (0..mats).flat_map(|_| (0..terms).map(mat)).collect();
                let part = MatrixPart { mats, interleaved: false, rows_per_item, epilogue: Vec::new() };
                let pairs = tile_pairs(&part);
                for pair in pairs.iter().filter(|pair| pair.len() == 2) {
                    assert!(
                        place_of(&part, pair[0]) < place_of(&part, pair[1]),
                        "{rows_per_item}: {pairs:?}"
                    );
                    assert_eq!(part.mats[pair[0].0].term, part.mats[pair[1].0].term, "{pairs:?}");
                }
                let mut places: Vec<usize> =
                    pairs.iter().flatten().map(|tile| place_of(&part, *tile)).collect();
                places.sort_unstable();
                let whole: Vec<usize> =
                    (0..part.mats.len() * rows_per_item / TILE_ROWS).map(|i| i * 64).collect();
                assert_eq!(places, whole, "{rows_per_item}: {pairs:?}");
            }
        }
    }
}
