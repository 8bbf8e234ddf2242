//! Memory for a call of a micro-kernel, made from its contract.

use super::fence::{Fenced, Flush};
use fastrand::Rng;
use kernmill_kernels_gen::ukernel::param::{Param, Region, RowPointers};

/// The source of weights, activations and the rest.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Contents {
    Random,
    /// Random, and magnitudes between 2^-31 and 2 when read as f16, bf16 or f32.
    Tame,
    /// Every scale and every float a NaN, every integer -1.
    Ones,
}

/// One argument and the memory behind it.
pub struct Operand {
    pub value: u64,
    /// With the pieces that the micro-kernel may touch.
    pub region: Option<(Fenced, Vec<(usize, usize)>)>,
    /// The memory that the list points to.
    pub rows: Vec<Fenced>,
}

fn fill(rng: &mut Rng, contents: Contents, bytes: &mut [u8]) {
    match contents {
        Contents::Random => rng.fill(bytes),
        Contents::Tame => {
            rng.fill(bytes);
            bytes.iter_mut().skip(1).step_by(2).for_each(|byte| *byte = *byte & 0x8f | 0x30);
        }
        Contents::Ones => bytes.fill(0xff),
    }
}

/// Memory for a region: `pieces` filled, unless only written, the rest holds `between`.
fn place(
    region: &Region,
    args: &[u64],
    flush: Flush,
    between: u8,
    mut filler: impl FnMut(&mut [u8]),
) -> Operand {
    let pieces = region.pieces(args);
    let first = pieces.iter().map(|(offset, _)| *offset).min().unwrap_or(0);
    let end = pieces.iter().map(|(offset, bytes)| offset + *bytes as i64).max().unwrap_or(0);
    let mut memory = Fenced::new((end - first) as usize, flush);
    let pieces: Vec<_> = pieces.iter().map(|(offset, bytes)| ((offset - first) as usize, *bytes)).collect();
    memory.bytes_mut().fill(between);
    for (offset, bytes) in &pieces {
        filler(&mut memory.bytes_mut()[*offset..][..*bytes]);
    }
    let value = memory.address().wrapping_sub(first as u64);
    assert!(value.is_multiple_of(region.align as u64), "the sizes must suit the alignment");
    Operand { value, region: Some((memory, pieces)), rows: Vec::new() }
}

fn operand(
    param: &Param,
    args: &[u64],
    index: usize,
    flush: Flush,
    between: u8,
    contents: Contents,
) -> Operand {
    // The same contents in every run.
    let mut rng = Rng::with_seed(index as u64 + 1);
    match param {
        Param::Number => Operand { value: args[index], region: None, rows: Vec::new() },
        Param::Ahead => {
            let nothing = Fenced::new(0, flush);
            Operand { value: nothing.address(), region: None, rows: vec![nothing] }
        }
        Param::Read(region) => {
            let mut operand = place(region, args, flush, between, |bytes| fill(&mut rng, contents, bytes));
            operand.region.as_mut().unwrap().0.read_only();
            operand
        }
        Param::Update(region) => place(region, args, flush, between, |bytes| fill(&mut rng, contents, bytes)),
        Param::Write(region) => place(region, args, flush, between, |_| {}),
        Param::Rows(rows) => list(rows, args, flush, |bytes| fill(&mut rng, contents, bytes)),
        Param::Targets { rows, offset, bytes } => {
            let rows: Vec<Fenced> = (0..rows.value(args))
                .map(|_| {
                    let mut row = Fenced::new(*bytes, flush);
                    fill(&mut rng, contents, row.bytes_mut());
                    row
                })
                .collect();
            let mut list = Fenced::new(rows.len() * 8, flush);
            for (place, row) in list.bytes_mut().chunks_mut(8).zip(&rows) {
                let pointer = row.address().wrapping_sub(offset.value(args) as u64);
                place.copy_from_slice(&pointer.to_le_bytes());
            }
            list.read_only();
            Operand { value: list.address(), region: Some((list, Vec::new())), rows }
        }
    }
}

/// A list of pointers, to rows of which only what is read is there, and to nothing.
fn list(rows: &RowPointers, args: &[u64], flush: Flush, mut filler: impl FnMut(&mut [u8])) -> Operand {
    let mut memory = Vec::new();
    let mut pointers = Vec::new();
    for piece in rows.pieces(args) {
        let mut row = Fenced::new(piece.len(), flush);
        filler(row.bytes_mut());
        row.read_only();
        pointers.push(row.address().wrapping_sub(piece.start as u64));
        memory.push(row);
    }
    let nothing = Fenced::new(0, flush);
    pointers.extend(std::iter::repeat_n(nothing.address(), rows.ahead));
    memory.push(nothing);
    let mut list = Fenced::new(pointers.len() * 8, flush);
    for (place, pointer) in list.bytes_mut().chunks_mut(8).zip(&pointers) {
        place.copy_from_slice(&pointer.to_le_bytes());
    }
    list.read_only();
    Operand { value: list.address(), region: Some((list, Vec::new())), rows: memory }
}

pub type Function = unsafe extern "C" fn(u64, u64, u64, u64, u64, u64);
/// One with as many parameters as any micro-kernel has.
type LongestFunction = unsafe extern "C" fn(u64, u64, u64, u64, u64, u64, u64, u64, u64, u64, u64, u64);

/// All arguments: `numbers` in order where the contract has one, 0 for pointers.
pub fn arguments(contract: &[Param], numbers: &[u64]) -> Vec<u64> {
    let mut numbers = numbers.iter();
    let number = |param: &Param| match param {
        Param::Number => *numbers.next().expect("a number for each"),
        _ => 0,
    };
    contract.iter().map(number).collect()
}

/// Every operand of a call.
pub fn operands(
    contract: &[Param],
    numbers: &[u64],
    flush: Flush,
    between: u8,
    contents: Contents,
) -> Vec<Operand> {
    let args = arguments(contract, numbers);
    contract
        .iter()
        .enumerate()
        .map(|(index, param)| operand(param, &args, index, flush, between, contents))
        .collect()
}

/// Calls a function with these operands.
///
/// # Safety
/// It must do no more than the contract from which the operands were made.
pub unsafe fn call(function: *const u8, operands: &[Operand]) {
    let value = |i: usize| operands.get(i).map_or(0, |operand| operand.value);
    // SAFETY: by this function's contract; surplus arguments are in registers that a callee may overwrite
    // anyway, and on this function's stack.
    unsafe {
        let f: LongestFunction = std::mem::transmute(function);
        let [a, b, c, d, e, g] = [0, 1, 2, 3, 4, 5].map(value);
        f(a, b, c, d, e, g, value(6), value(7), value(8), value(9), value(10), value(11));
    }
}
