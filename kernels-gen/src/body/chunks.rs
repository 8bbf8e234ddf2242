//! Weights on their way through panels of q8 rows: pairs of tiles, their chunks of k, what is decoded and
//! what is fetched while a chunk is multiplied.

use crate::body::tile_order::{place_of, tile_pairs};
use crate::cx::Cx;
use crate::emit::Emit;
use crate::kernel::{Mat, MatrixPart};
use crate::ukernel::MicroKernel;
use crate::ukernel::block::{data_lines, scale_bytes};
use crate::ukernel::decode::ScalePlaces;
use crate::ukernel::gemm_q8::{DotStep, Overlap};
use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::{InstBuilder, Value};
use kernmill_plan::format::{BLOCK, LINE, WeightFormat};

/// Two tiles of an item that are multiplied together, or the last one alone.
pub struct TilePair<'a> {
    /// Matrix of the tiles, the first tile's if there are two.
    pub mat: &'a Mat,
    /// Addresses of the tiles.
    pub tiles: Vec<Value>,
    /// Bytes into a row of the item's results.
    pub offset: usize,
    /// Bytes from there to the second tile's results.
    pub gap: usize,
    /// Blocks of a chunk, but for the last one.
    pub chunk_blocks: usize,
}

/// The pairs of a part's item ([`tile_pairs`]). Of each tile: matrix, bytes behind its first tile, bytes into
/// a row of results.
fn item_pairs(part: &MatrixPart) -> Vec<Vec<(usize, usize, usize)>> {
    let place =
        |(mat, tile): (usize, usize)| (mat, tile * part.mats[mat].tile_stride, place_of(part, (mat, tile)));
    tile_pairs(part).into_iter().map(|pair| pair.into_iter().map(place).collect()).collect()
}

/// Bytes between the results of each of an item's pairs, `None` for a tile alone.
pub fn tile_gaps(part: &MatrixPart) -> Vec<Option<usize>> {
    item_pairs(part).iter().map(|pair| pair.get(1).map(|second| second.2 - pair[0].2)).collect()
}

/// The micro-kernels that multiply an item's pairs and decode beside it, `tokens` rows at a time; none if
/// there is a pair without.
pub fn overlaps(part: &MatrixPart, tokens: usize) -> Vec<MicroKernel> {
    // The one format that they decode.
    if part.mats[0].format != WeightFormat::Mxfp4 {
        return Vec::new();
    }
    let stride = part.result_bytes();
    let gaps: Option<Vec<usize>> = tile_gaps(part).into_iter().collect();
    let ukernel = |gap| MicroKernel::GemmDecode(Overlap { tokens, stride, gap });
    gaps.unwrap_or_default().into_iter().map(ukernel).collect()
}

impl TilePair<'_> {
    /// An item's pairs, in chunks of so many blocks; `weights` are the addresses of its first tile in each
    /// matrix.
    pub fn of<'a>(
        e: &mut Emit,
        part: &'a MatrixPart,
        weights: &[Value],
        chunk_blocks: impl Fn(&Mat) -> usize,
    ) -> Vec<TilePair<'a>> {
        let pair = |pair: &Vec<(usize, usize, usize)>| TilePair {
            mat: &part.mats[pair[0].0],
            tiles: pair.iter().map(|(m, at, _)| e.add_imm(weights[*m], *at as i64)).collect(),
            offset: pair[0].2,
            gap: pair.get(1).map_or(0, |second| second.2 - pair[0].2),
            chunk_blocks: chunk_blocks(&part.mats[pair[0].0]),
        };
        item_pairs(part).iter().map(pair).collect()
    }

    /// Blocks of k.
    pub fn blocks(&self) -> usize {
        self.mat.k / BLOCK
    }

    /// Chunks of k.
    pub fn chunks(&self) -> usize {
        self.blocks().div_ceil(self.chunk_blocks)
    }

    /// First block of chunk number `chunk`, and how many it has.
    pub fn blocks_of(&self, e: &mut Emit, chunk: Value) -> (Value, Value) {
        let first = e.mul_imm(chunk, self.chunk_blocks as i64);
        let end = e.i64(self.blocks() as i64);
        let left = e.b.ins().isub(end, first);
        let most = e.i64(self.chunk_blocks as i64);
        (first, e.min_u(left, most))
    }

    /// Where blocks from `first` on lie in each tile.
    pub fn places(&self, e: &mut Emit, first: Value) -> Vec<BlockPlaces> {
        let (format, k) = (self.mat.format, self.mat.k);
        let mut place = |tile: &Value| {
            let scales = ScalePlaces::of_tile(e, format, k, *tile).block(e, format, first);
            let data = e.add_imm(*tile, format.tile(k).scale_bytes as i64);
            BlockPlaces { scales, data: e.at(data, first, data_lines(format) * LINE) }
        };
        self.tiles.iter().map(&mut place).collect()
    }

    /// Decoding of a chunk, the first tile's to `out`.
    pub fn task(&self, e: &mut Emit, chunk: Value, out: Value) -> DecodeTask {
        let (first, count) = self.blocks_of(e, chunk);
        DecodeTask { format: self.mat.format, places: self.places(e, first), out, count }
    }

    /// Decoding of what is multiplied after chunk number `chunk`: the next one, or the first of the pair
    /// behind this. Nothing after the last.
    pub fn next(&self, e: &mut Emit, behind: Option<&TilePair>, chunk: Value, out: Value) -> DecodeTask {
        let (zero, chunks) = (e.i64(0), e.i64(self.chunks() as i64));
        let following = e.add_imm(chunk, 1);
        let more = e.icmp(IntCC::UnsignedLessThan, following, chunks);
        let following = e.select(more, following, zero);
        let mut task = self.task(e, following, out);
        let other = match behind {
            Some(pair) => pair.task(e, zero, out),
            None => DecodeTask { format: task.format, places: task.places.clone(), out, count: zero },
        };
        task.count = e.select(more, task.count, other.count);
        for (here, there) in task.places.iter_mut().zip(other.places) {
            *here = here.or(e, more, there);
        }
        task
    }

    /// The address to fetch while chunk number `chunk` is multiplied: the chunk so many after it, in this
    /// pair or, in the order of memory, in that behind.
    pub fn ahead(&self, e: &mut Emit, part: &MatrixPart, chunk: Value, after: usize) -> DecodeAhead {
        let (zero, chunks) = (e.i64(0), e.i64(self.chunks() as i64));
        let later = e.add_imm(chunk, after as i64);
        let more = e.icmp(IntCC::UnsignedLessThan, later, chunks);
        let passed = e.select(more, zero, chunks);
        let later = e.b.ins().isub(later, passed);
        let first = e.mul_imm(later, self.chunk_blocks as i64);
        let pair_bytes = e.i64((2 * self.mat.tile_stride / part.mats.len()) as i64);
        let skipped = e.select(more, zero, pair_bytes);
        let mut places = self.places(e, first);
        for places in &mut places {
            places.scales = ScalePlaces::new(e.add(places.scales.scales(), skipped), places.scales.units());
            places.data = e.add(places.data, skipped);
        }
        DecodeAhead { format: self.mat.format, blocks: self.chunk_blocks, places }
    }
}

/// Where a tile's blocks lie.
#[derive(Clone, Copy)]
pub struct BlockPlaces {
    /// Scales, and their units.
    pub scales: ScalePlaces,
    /// Data.
    pub data: Value,
}

impl BlockPlaces {
    /// These if `condition` holds, the others if not.
    fn or(self, e: &mut Emit, condition: Value, other: BlockPlaces) -> BlockPlaces {
        let scales = e.select(condition, self.scales.scales(), other.scales.scales());
        let units = e.select(condition, self.scales.units(), other.scales.units());
        let data = e.select(condition, self.data, other.data);
        BlockPlaces { scales: ScalePlaces::new(scales, units), data }
    }
}

/// A chunk to fetch towards the cache: scales and data of each tile.
pub struct DecodeAhead {
    format: WeightFormat,
    blocks: usize,
    places: Vec<BlockPlaces>,
}

impl DecodeAhead {
    /// The scales, all at once.
    pub fn scales(&self, e: &mut Emit, cx: &Cx) {
        let lines = e.i64((self.blocks * scale_bytes(self.format)).div_ceil(LINE) as i64 + 1);
        let [one, other] = [0, self.places.len() - 1].map(|tile| self.places[tile].scales.scales());
        e.call(cx.ukernel(MicroKernel::Prefetch), &[one, other, lines]);
    }

    /// Where the data of tile number `tile` begins.
    pub fn data_of(&self, tile: usize) -> Value {
        self.places[tile].data
    }

    /// Lines of data of which every group of rows fetches its part.
    pub fn lines(&self) -> usize {
        self.blocks * data_lines(self.format)
    }

    /// Part number `part` of the data, of so many lines.
    pub fn data(&self, e: &mut Emit, cx: &Cx, part: Value, lines: Value) {
        let done = e.b.ins().imul(part, lines);
        let ends = [0, self.places.len() - 1].map(|tile| self.places[tile].data);
        let [one, other] = ends.map(|place| e.at(place, done, LINE));
        e.call(cx.ukernel(MicroKernel::Prefetch), &[one, other, lines]);
    }
}

/// A chunk to decode.
pub struct DecodeTask {
    format: WeightFormat,
    /// Scales and data of each tile.
    pub places: Vec<BlockPlaces>,
    /// Where the first tile's blocks go.
    pub out: Value,
    /// Blocks of each tile.
    pub count: Value,
}

impl DecodeTask {
    /// Decodes tile number `tile`.
    pub fn decode_tile(&self, e: &mut Emit, cx: &Cx, products: DotStep, tile: usize) {
        let BlockPlaces { scales, data } = self.places[tile];
        let decoded = products.decoded(self.format);
        let out = e.add_imm(self.out, (tile * decoded.tile_bytes()) as i64);
        let args = [scales.scales(), data, out, self.count, scales.units()];
        let params = if self.format.parts().is_super() { &args[..] } else { &args[..4] };
        e.call(cx.ukernel(MicroKernel::decoding(decoded, self.format)), params);
    }

    /// Decodes all.
    pub fn decode(&self, e: &mut Emit, cx: &Cx, products: DotStep) {
        (0..self.places.len()).for_each(|tile| self.decode_tile(e, cx, products, tile));
    }

    /// Scales, data and place of tile number `tile`, one of two.
    pub fn of_tile(&self, e: &mut Emit, tile: Value) -> [Value; 3] {
        let zero = e.i64(0);
        let first = e.icmp(IntCC::Equal, tile, zero);
        let BlockPlaces { scales, data } = self.places[0].or(e, first, self.places[1]);
        let tile_bytes = DotStep::K4.decoded(self.format).tile_bytes();
        [scales.scales(), data, e.at(self.out, tile, tile_bytes)]
    }
}
