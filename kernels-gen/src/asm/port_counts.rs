//! Uses of a core's ports by the steady loop of a strip, counted from its machine code alone: lines loaded
//! and stored, and vector operations, for each product of tiles.

use super::{assemble, gemm_strip_amx, strip_tiles};
use crate::ukernel::MicroKernel;
use crate::ukernel::gemm_tiles::{PANEL_ROWS, Strip, TileElement, TileShapes};
use iced_x86::{
    Decoder, DecoderOptions, FlowControl, Instruction, InstructionInfoFactory, Mnemonic, OpAccess, OpKind,
    Register,
};
use kernmill_plan::format::{LINE, WeightFormat};
use std::collections::{HashMap, HashSet};

/// Uses of ports.
#[derive(Debug, Default)]
struct PortUses {
    products: usize,
    /// Lines of memory.
    loads: usize,
    stores: usize,
    prefetches: usize,
    /// Operations of vectors, and among them those that move elements between lanes.
    vectors: usize,
    shuffles: usize,
}

/// Code of a strip's steady loop, and the rows of each tile register.
struct SteadyLoop {
    code: Vec<Instruction>,
    rows: [usize; 8],
}

fn instructions(bytes: &[u8]) -> Vec<Instruction> {
    let mut decoder = Decoder::with_ip(64, bytes, 0, DecoderOptions::NONE);
    let mut code = Vec::new();
    while decoder.can_decode() {
        code.push(decoder.decode());
        if code.last().is_some_and(|last| last.flow_control() == FlowControl::Return) {
            break;
        }
    }
    code
}

fn is_product(i: &Instruction) -> bool {
    matches!(i.mnemonic(), Mnemonic::Tdpbf16ps | Mnemonic::Tdpbssd)
}

/// Whether it fetches what is decoded later, as decoding does.
fn decodes_line(i: &Instruction) -> bool {
    i.mnemonic() == Mnemonic::Prefetcht1
}

impl SteadyLoop {
    /// The loop over panels that decodes besides, or that does not.
    fn of(format: WeightFormat, tiles: usize, decodes: bool) -> SteadyLoop {
        let strip = MicroKernel::GemmStrip(Strip { format, tiles, k: 2880, stride: 256, gap: 128 });
        let code = instructions(&assemble(&gemm_strip_amx::GEMM, &strip).unwrap());
        let back = code.iter().filter(|i| {
            i.flow_control() == FlowControl::ConditionalBranch && i.near_branch_target() < i.ip()
        });
        let body = |branch: &Instruction| -> Vec<Instruction> {
            let range = branch.near_branch_target()..=branch.ip();
            code.iter().filter(|i| range.contains(&i.ip())).copied().collect()
        };
        let has = |body: &[Instruction], what: fn(&Instruction) -> bool| body.iter().any(what);
        let is_wanted = |body: &Vec<Instruction>| has(body, is_product) && has(body, decodes_line) == decodes;
        let bodies = back.map(body).filter(is_wanted);
        let code = bodies.max_by_key(|body| body.iter().filter(|i| is_product(i)).count()).expect("a loop");
        let on = MicroKernel::TilesOn(TileShapes::Strip(TileElement::of(format)));
        let configured = assemble(&strip_tiles::ON, &on).unwrap();
        let rows = &configured[configured.len() - 16..];
        SteadyLoop { code, rows: std::array::from_fn(|tile| usize::from(rows[tile])) }
    }

    /// The register of a tile operand.
    fn tile_rows(&self, i: &Instruction) -> Option<usize> {
        let tiles = (0..i.op_count()).filter(|op| i.op_kind(*op) == OpKind::Register);
        tiles.map(|op| i.op_register(op)).find(|r| r.is_tmm()).map(|tile| self.rows[tile.number()])
    }

    /// Uses of a turn that jumps over what it can: decoding goes on to the second tile once in four panels.
    fn count(&self) -> PortUses {
        let (mut uses, mut info) = (PortUses::default(), InstructionInfoFactory::new());
        let (mut next, end) = (0, self.code[self.code.len() - 1].ip());
        for i in &self.code {
            if i.ip() < next {
                continue;
            }
            if i.flow_control() == FlowControl::ConditionalBranch && i.near_branch_target() < end {
                next = i.near_branch_target();
            }
            uses.products += usize::from(is_product(i));
            let mut reads = false;
            for memory in info.info(i).used_memory() {
                let lines = self.tile_rows(i).unwrap_or(1);
                match memory.access() {
                    OpAccess::Read => {
                        uses.loads += lines;
                        reads = true;
                    }
                    OpAccess::Write => uses.stores += lines,
                    access => panic!("{access:?} of memory"),
                }
            }
            uses.prefetches +=
                usize::from(matches!(i.mnemonic(), Mnemonic::Prefetcht0 | Mnemonic::Prefetcht1));
            let registers = (0..i.op_count()).filter(|op| i.op_kind(*op) == OpKind::Register);
            let is_vector = registers.map(|op| i.op_register(op)).any(Register::is_zmm);
            // A load into all lanes and a store need no other port.
            let moves = matches!(
                i.mnemonic(),
                Mnemonic::Vmovups | Mnemonic::Vmovdqu64 | Mnemonic::Vpbroadcastd | Mnemonic::Vbroadcasti32x4
            );
            let stores = i.op_count() > 0 && i.op0_kind() == OpKind::Memory;
            if is_vector && !(moves && (reads || stores)) {
                uses.vectors += 1;
                uses.shuffles += usize::from(!computes(i));
            }
        }
        uses
    }
}

/// Whether it leaves elements in their lanes.
fn computes(i: &Instruction) -> bool {
    !matches!(
        i.mnemonic(),
        Mnemonic::Vpshufd | Mnemonic::Vpshufb | Mnemonic::Vpermw | Mnemonic::Vpmovzxbd | Mnemonic::Vcvtph2ps
    )
}

/// No product needs more than this. Of the loads, 2.7 are of sums, as are 2.7 of the stores.
#[test]
fn a_product_of_tiles_uses_few_ports() {
    for (format, tiles, decodes, most) in [
        (WeightFormat::Mxfp4, 2, false, [45, 19, 24, 8, 9]),
        (WeightFormat::Mxfp4, 1, false, [55, 19, 32, 16, 17]),
        (WeightFormat::Int8, 2, false, [45, 19, 48, 0, 5]),
        (WeightFormat::Int8, 1, false, [60, 19, 48, 0, 9]),
        (WeightFormat::Mxfp4, 2, true, [46, 23, 39, 15, 10]),
        (WeightFormat::Mxfp4, 1, true, [57, 25, 51, 25, 19]),
        (WeightFormat::Int8, 2, true, [48, 21, 51, 1, 7]),
        (WeightFormat::Int8, 1, true, [63, 22, 52, 1, 12]),
    ] {
        let uses = SteadyLoop::of(format, tiles, decodes).count();
        let [loads, stores, vectors, shuffles, prefetches] = most;
        let what = format!("{format:?} by {tiles}, decodes {decodes}: {uses:?}");
        for (used, most) in [
            (uses.loads, loads),
            (uses.stores, stores),
            (uses.vectors, vectors),
            (uses.prefetches, prefetches),
        ] {
            assert!(used > 0 && used <= most * uses.products, "{what}");
        }
        assert!(uses.shuffles <= shuffles * uses.products, "{what}");
    }
}

/// An address: what a register held at the start, and bytes behind it.
type Address = (Register, i64);

/// A product's lines are loaded when two others have begun behind their store, in whatever turn of the loop.
#[test]
fn products_rest_in_memory_while_two_others_begin() {
    for format in [WeightFormat::Mxfp4, WeightFormat::Int8] {
        for (tiles, decodes) in [(1, false), (2, false), (1, true), (2, true)] {
            let steady = SteadyLoop::of(format, tiles, decodes);
            let mut values: HashMap<Register, Address> = HashMap::new();
            let mut stored: HashMap<Address, usize> = HashMap::new();
            let (mut products, mut taken) = (0, 0);
            for i in (0..3).flat_map(|_| &steady.code) {
                products += usize::from(is_product(i));
                let value = |register: Register| *values.get(&register).unwrap_or(&(register, 0));
                let (base, offset) = value(i.memory_base());
                let place = (base, offset + i.memory_displacement64() as i64);
                match (i.mnemonic(), i.op0_kind(), i.op1_kind()) {
                    (Mnemonic::Tilestored, ..) => {
                        let rows = steady.tile_rows(i).unwrap();
                        assert_eq!(rows, PANEL_ROWS);
                        for line in 0..rows {
                            stored.insert((place.0, place.1 + (line * LINE) as i64), products);
                        }
                    }
                    (Mnemonic::Mov, OpKind::Register, OpKind::Register) => {
                        let from = value(i.op1_register());
                        values.insert(i.op0_register(), from);
                    }
                    (Mnemonic::Add, OpKind::Register, kind) if kind != OpKind::Register => {
                        let (base, offset) = value(i.op0_register());
                        values.insert(i.op0_register(), (base, offset + i.immediate(1) as i64));
                    }
                    (_, OpKind::Register, _) if i.memory_base() != Register::None => {
                        if let Some(at) = stored.get(&place).filter(|_| i.op0_register().is_zmm()) {
                            assert!(products - at >= 2, "{format:?} by {tiles}: {products} after {at}");
                            taken += 1;
                        }
                    }
                    _ => {}
                }
            }
            // Nearly all of three turns: vectors end behind tiles.
            assert!(taken > products * PANEL_ROWS / 2, "{format:?} by {tiles}: {taken} lines");
        }
    }
}

/// A call stores the blocks that it decodes through another register than it loads tiles by: they are loaded
/// in the next call at the soonest.
#[test]
fn tiles_load_nothing_that_was_decoded_meanwhile() {
    for format in [WeightFormat::Mxfp4, WeightFormat::Int8] {
        for tiles in [1, 2] {
            let steady = SteadyLoop::of(format, tiles, true);
            let bases = |is: fn(&Instruction) -> bool| -> HashSet<Register> {
                steady.code.iter().filter(|i| is(i)).map(Instruction::memory_base).collect()
            };
            let loaded = bases(|i| i.mnemonic() == Mnemonic::Tileloadd);
            let stored = bases(|i| i.op0_kind() == OpKind::Memory && i.op1_register().is_zmm());
            // Sums, and what is decoded.
            assert_eq!((loaded.len(), stored.len()), (2, 2), "{format:?} by {tiles}");
            assert!(loaded.is_disjoint(&stored), "{format:?} by {tiles}: {loaded:?} and {stored:?}");
        }
    }
}
