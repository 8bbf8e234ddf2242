//! `fn(out: *mut f32, inputs..: *const f32, rows: u64)`: an elementwise expression over rows, with up to
//! [`MAX_INPUTS`] inputs.
//!
//! For each of `rows` rows and each i < n: `out[i] = expr(inputs[..][i])`, n a multiple of 16 (rows of f32
//! are padded to whole tiles, so callers round up). From one row to the next every pointer moves by its own
//! constant distance, an input that all rows share by none. `out` may be one of the inputs, with the same
//! distance. Every operator rounds, as docs/dev/numerics.md says.

use super::param::{Amount, Param, Region};
use crate::emit::{Emit, LANES};
use crate::expr::{Binary, Expr};
use crate::math;
use cranelift_codegen::ir::Value;
use cranelift_codegen::ir::types::F32X4;
use kernmill_plan::format::TILE_ROWS;
use std::cmp::Ordering;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

/// With the output and the number of rows, as many parameters as there are registers for.
pub const MAX_INPUTS: usize = 4;

/// The computation of a map, and its inputs.
#[derive(Debug)]
pub struct MapDefinition {
    /// The expression; variable i is input i.
    pub expr: Expr,
    /// Elements of a row, a multiple of 16.
    pub n: usize,
    /// Bytes from one row of each input to its next.
    pub inputs: Vec<usize>,
    /// Bytes from one row of the output to its next.
    pub out: usize,
    key: Vec<u64>,
}

/// A map by its definition, which copies of it share. Two maps are equal when their definitions are, down to
/// the sign of a zero.
#[derive(Clone, Debug)]
pub struct Map(Arc<MapDefinition>);

impl Map {
    /// `expr` over rows of `n` elements; `inputs` and `out` are bytes from row to row, 0 where all rows share
    /// one.
    ///
    /// # Panics
    /// When there are more than [`MAX_INPUTS`] inputs or `n` is not a multiple of 16: callers decide by that.
    pub fn new(expr: Expr, n: usize, inputs: &[usize], out: usize) -> Map {
        assert!(inputs.len() <= MAX_INPUTS && n.is_multiple_of(TILE_ROWS), "{} inputs of {n}", inputs.len());
        let mut key = vec![n as u64, out as u64, inputs.len() as u64];
        key.extend(inputs.iter().map(|stride| *stride as u64));
        expr.encode(&mut key);
        Map(Arc::new(MapDefinition { expr, n, inputs: inputs.to_vec(), out, key }))
    }

    /// `x + y` in place of `x`, rows of `n`.
    pub fn add(n: usize, x: usize, y: usize) -> Map {
        let sum = Expr::Binary(Binary::Add, Box::new(Expr::Var(0)), Box::new(Expr::Var(1)));
        Map::new(sum, n, &[x, y], x)
    }

    /// Rows of +0.
    pub fn zero(n: usize, out: usize) -> Map {
        Map::new(Expr::Const(0.0), n, &[], out)
    }

    /// The definition.
    pub fn definition(&self) -> &MapDefinition {
        &self.0
    }

    /// Number of parameters.
    pub fn params(&self) -> usize {
        self.0.inputs.len() + 2
    }

    pub(super) fn contract(&self) -> Vec<Param> {
        let rows = self.params() - 1;
        let region = |stride: &usize| Region::new(self.0.n * 4).times(Amount::param(rows), *stride);
        let mut params = vec![Param::Write(region(&self.0.out))];
        params.extend(self.0.inputs.iter().map(|stride| Param::Read(region(stride))));
        params.push(Param::Number);
        params
    }
}

impl PartialEq for Map {
    fn eq(&self, other: &Map) -> bool {
        self.0.key == other.0.key
    }
}

impl Eq for Map {}

impl PartialOrd for Map {
    fn partial_cmp(&self, other: &Map) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Map {
    fn cmp(&self, other: &Map) -> Ordering {
        self.0.key.cmp(&other.0.key)
    }
}

impl Hash for Map {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.0.key.hash(state);
    }
}

/// A name from the definition's FNV-1a hash: the linker refuses two micro-kernels of one name.
impl fmt::Display for Map {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let hash = self
            .0
            .key
            .iter()
            .flat_map(|word| word.to_le_bytes())
            .fold(0xcbf2_9ce4_8422_2325u64, |hash, byte| {
                (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
            });
        write!(f, "map_n{}_{hash:016x}", self.0.n)
    }
}

pub(super) fn emit(e: &mut Emit, params: &[Value], map: &Map) {
    let map = map.definition();
    let (pointers, rows) = (&params[..params.len() - 1], params[params.len() - 1]);
    let zero = e.i64(0);
    e.for_range(zero, rows, 1, |e, row| {
        let strides = std::iter::once(&map.out).chain(&map.inputs);
        let at: Vec<Value> = pointers.iter().zip(strides).map(|(p, stride)| e.at(*p, row, *stride)).collect();
        e.for_count(map.n / LANES, |e, i| {
            let places: Vec<Value> = at.iter().map(|p| e.at(*p, i, LANES * 4)).collect();
            let values: Vec<Value> = places[1..].iter().map(|p| e.load(F32X4, *p, 0)).collect();
            let result = math::expr(e, &map.expr, &values);
            e.store(result, places[0], 0);
        });
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_definitions_are_one_ukernel_and_signs_of_zero_differ() {
        let map = |value| Map::new(Expr::Const(value), 16, &[], 64);
        assert_eq!(map(0.0), Map::zero(16, 64));
        assert_ne!(map(0.0), map(-0.0));
        assert_ne!(map(0.0).to_string(), map(-0.0).to_string());
        assert_ne!(Map::add(16, 64, 64), Map::add(16, 64, 0));
    }
}
