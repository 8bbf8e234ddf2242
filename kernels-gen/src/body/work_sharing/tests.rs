//! The hand-out of generated code against the numbers of [`HandOut`], range by range, for workers of one node
//! of memory and of several.

use super::*;
use crate::cx::ScratchLayout;
use crate::isa;
use cranelift_codegen::Context;
use cranelift_codegen::control::ControlPlane;
use cranelift_codegen::ir::{AbiParam, Function, Signature, UserFuncName};
use cranelift_codegen::isa::CallConv;
use cranelift_frontend::{FunctionBuilder, FunctionBuilderContext};
use kernmill_plan::abi::{Args, COUNTERS, KernelFn};
use kernmill_plan::hand_out::{HandOut, WorkersByNode};
use kernmill_plan::target::Level;
use memmap2::{Mmap, MmapMut};
use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::atomic::Ordering;

/// Ranges that a run logs at most.
const LOG: usize = 4096;

/// A hand-out as code: it takes the number of items from the first operand's place, logs every range in
/// scratch, and lets others take items from the counter behind each.
struct Code(Mmap);

impl Code {
    fn new(emit: impl FnOnce(&mut Emit, &Cx, Value)) -> Code {
        let mut signature = Signature::new(CallConv::SystemV);
        signature.params = vec![AbiParam::new(I64); 2];
        let mut context = Context::new();
        context.func = Function::with_name_signature(UserFuncName::default(), signature);
        let mut builder = FunctionBuilderContext::new();
        let mut b = FunctionBuilder::new(&mut context.func, &mut builder);
        let entry = b.create_block();
        b.append_block_params_for_function_params(entry);
        b.switch_to_block(entry);
        b.seal_block(entry);
        let [args, worker] = [b.block_params(entry)[0], b.block_params(entry)[1]];
        let mut e = Emit { b: &mut b };
        let operands = e.load(I64, worker, offset_of!(Worker, operands));
        let scratch = e.load(I64, worker, offset_of!(Worker, scratch));
        let (layout, ukernels) = (ScratchLayout::default(), BTreeMap::new());
        let (vals, bases) = (Vec::new(), Vec::new());
        let cx = Cx { vals, bases, args, worker, operands, scratch, layout, ukernels: &ukernels };
        let total = e.load(I64, operands, 0);
        emit(&mut e, &cx, total);
        e.b.ins().return_(&[]);
        let isa = isa::target(Level::V3);
        b.finalize(isa.frontend_config());
        let compiled = context.compile(&*isa, &mut ControlPlane::default()).unwrap();
        let mut map = MmapMut::map_anon(compiled.code_buffer().len()).unwrap();
        map.copy_from_slice(compiled.code_buffer());
        Code(map.make_exec().unwrap())
    }

    /// The ranges that a worker gets, when `before` items are gone from each counter at first, and others
    /// take `others[n]` behind its range number n.
    fn run(&self, total: u64, place: &Place, before: u32, others: &[u64]) -> Vec<[u64; 2]> {
        let mut log = vec![0_u64; 1 + 2 * LOG];
        let operands: Vec<u64> = [&[total], others].concat();
        let nodes = &place.nodes;
        let counters: Vec<[AtomicU32; COUNTERS]> =
            nodes.starts().iter().map(|_| Default::default()).collect();
        counters.iter().for_each(|of_node| of_node[0].store(before, Ordering::Relaxed));
        let scratch = log.as_mut_ptr().cast();
        let worker = Worker {
            index: place.worker,
            count: nodes.workers(),
            scratch,
            counters: counters.as_ptr().cast(),
            operands: operands.as_ptr(),
            first_scratch: scratch,
            node_starts: nodes.starts().as_ptr(),
            nodes: nodes.nodes() as u32,
            node: nodes.node_of(place.worker) as u32,
        };
        // SAFETY: the code is a function of two pointers, reads nothing of the first, and what it logs and
        // reads has room: every range takes an item at least.
        unsafe {
            let function = std::mem::transmute::<*const u8, KernelFn>(self.0.as_ptr());
            function(std::ptr::null::<Args>(), &worker);
        }
        log[1..].chunks(2).take(log[0] as usize).map(|range| [range[0], range[1]]).collect()
    }
}

/// A worker among others.
struct Place {
    worker: u32,
    nodes: WorkersByNode,
}

/// Logs a range that is not empty, and lets others take.
fn note(e: &mut Emit, cx: &Cx, start: Value, end: Value) {
    let is_any = e.icmp(IntCC::UnsignedLessThan, start, end);
    e.if_then(is_any, |e| log(e, cx, start, end));
}

fn log(e: &mut Emit, cx: &Cx, start: Value, end: Value) {
    let count = e.load(I64, cx.scratch, 0);
    let place = e.at(cx.scratch, count, 16);
    e.store(start, place, 8);
    e.store(end, place, 16);
    let next = e.add_imm(count, 1);
    e.store(next, cx.scratch, 0);
    let others = e.at(cx.operands, next, 8);
    let others = e.load(I64, others, 0);
    // One node's counter after the other.
    let nodes = e.load_u32(cx.worker, offset_of!(Worker, nodes));
    let node = e.b.ins().urem(count, nodes);
    let counter = e.mul_imm(node, COUNTERS as i64);
    cx.count(e, counter, others);
}

/// Ranges by the numbers, each of a node's part, in the order in which a worker gets them.
fn expected(items: &HandOut, place: &Place, before: u32, others: &[u64]) -> Vec<(usize, Range<u64>)> {
    let (parts, nodes) = (items.by_node(&place.nodes), place.nodes.nodes());
    let mut taken = vec![u64::from(before); nodes];
    let mut ranges = Vec::new();
    let mut got = |part: usize, range: Range<u64>, taken: &mut [u64]| {
        taken[ranges.len() % nodes] += others[ranges.len()];
        ranges.push((part, range));
    };
    for (turn, part) in items.order(&place.nodes, place.worker).enumerate() {
        let share = (turn == 0).then(|| parts[part].share(place.worker));
        if let Some(share) = share.filter(|share| !share.is_empty()) {
            got(part, share, &mut taken);
        }
        loop {
            let claim = parts[part].claim(taken[part]);
            let Some(range) = parts[part].claimed(taken[part], claim) else { break };
            taken[part] += claim;
            got(part, range, &mut taken);
        }
    }
    ranges
}

/// Numbers of items, places, items that are gone, and what others take.
fn each_case(mut check: impl FnMut(u64, &Place, u32, &[u64])) {
    let totals = (0..40).chain([80, 90, 180, 360, 1257, 2880]);
    let nodes = [&[1][..], &[2], &[3], &[5], &[8], &[64], &[1, 1], &[5, 3], &[1, 2, 1], &[16, 16, 16, 16]];
    for (n, total) in totals.enumerate() {
        for counts in nodes {
            let nodes = WorkersByNode::counted(counts.iter().copied());
            let count = nodes.workers();
            for (worker, step) in [(0, 0), (count / 2, 1), (count - 1, 5)] {
                let others: Vec<u64> = (0..LOG).map(|range| (range + n) as u64 * step % 7).collect();
                check(total, &Place { worker, nodes: nodes.clone() }, (n % 4) as u32, &others);
            }
        }
    }
}

/// The ranges in numbers of all items.
fn in_all(items: &HandOut, place: &Place, before: u32, others: &[u64]) -> Vec<[u64; 2]> {
    let parts = items.by_node(&place.nodes);
    let ranges = expected(items, place, before, others).into_iter();
    ranges.flat_map(|(part, range)| parts[part].ranges(range)).map(|range| [range.start, range.end]).collect()
}

#[test]
fn kernels_hand_out_ranges_as_the_numbers_say() {
    for run in [1, 2, 4, 8] {
        let code = Code::new(|e, cx, total| {
            cx.distribute_items(e, total, run, |e, start, end| note(e, cx, start, end));
        });
        each_case(|total, place, before, others| {
            let items = HandOut::with_tail(total, run as u64);
            let found = code.run(total, place, before, others);
            let expected = in_all(&items, place, before, others);
            assert_eq!(found, expected, "{total} {run} {} {:?}", place.worker, place.nodes);
        });
    }
}

#[test]
fn kernels_hand_out_items_by_cost_as_the_numbers_say() {
    const UNITS: usize = 9;
    const RUN: usize = 4;
    let code = Code::new(|e, cx, groups| {
        let cost = |e: &mut Emit, group: Value| {
            let mixed = e.mul_imm(group, 7);
            let five = e.i64(5);
            let mixed = e.b.ins().urem(mixed, five);
            e.add_imm(mixed, 1)
        };
        cx.distribute_by_cost(e, (groups, UNITS), cost, RUN, |e, group, unit| log(e, cx, group, unit));
    });
    each_case(|groups, place, before, _| {
        // Items are noted one by one: in between nobody takes any.
        let others = [0; LOG];
        if groups * UNITS as u64 >= LOG as u64 {
            return;
        }
        let costs = (0..groups).map(|group| group * 7 % 5 + 1).collect();
        let items = HandOut::by_cost(costs, UNITS as u64, RUN as u64);
        let parts = items.by_node(&place.nodes);
        let ranges = expected(&items, place, before, &others).into_iter();
        let all = ranges.flat_map(|(part, range)| parts[part].ranges(range)).flatten();
        let expected: Vec<_> = all.map(|item| [item / UNITS as u64, item % UNITS as u64]).collect();
        let found = code.run(groups, place, before, &others);
        assert_eq!(found, expected, "{groups} {} {:?}", place.worker, place.nodes);
    });
}

#[test]
fn kernels_hand_out_items_one_by_one_as_the_numbers_say() {
    let code = Code::new(|e, cx, total| {
        let one = e.i64(1);
        cx.for_each_claimed(e, total, |e, item| {
            let behind = e.add(item, one);
            note(e, cx, item, behind);
        });
    });
    each_case(|total, place, before, others| {
        let expected = in_all(&HandOut::one_by_one(total), place, before, others);
        let found = code.run(total, place, before, others);
        assert_eq!(found, expected, "{total} {} {:?}", place.worker, place.nodes);
    });
}

#[test]
fn kernels_share_evenly_as_the_numbers_say() {
    let code = Code::new(|e, cx, total| {
        let (start, end) = cx.share(e, total);
        note(e, cx, start, end);
    });
    each_case(|total, place, before, others| {
        let share = HandOut::even(total).share(place.worker.into(), place.nodes.workers().into());
        let mut expected = vec![[share.start, share.end]];
        expected.retain(|[start, end]| start < end);
        let found = code.run(total, place, before, others);
        assert_eq!(found, expected, "{total} {} {:?}", place.worker, place.nodes);
    });
}
