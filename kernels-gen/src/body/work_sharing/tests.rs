//! The hand-out of generated code against the numbers of [`HandOut`], range by range.

use super::*;
use crate::cx::ScratchLayout;
use crate::isa;
use cranelift_codegen::Context;
use cranelift_codegen::control::ControlPlane;
use cranelift_codegen::ir::{AbiParam, Function, Signature, UserFuncName};
use cranelift_codegen::isa::CallConv;
use cranelift_frontend::{FunctionBuilder, FunctionBuilderContext};
use kernmill_plan::abi::{Args, COUNTERS, KernelFn};
use kernmill_plan::hand_out::HandOut;
use kernmill_plan::target::Level;
use memmap2::{Mmap, MmapMut};
use std::collections::BTreeMap;
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

    /// The ranges that worker `index` of `count` gets, when `before` items are gone from the counter at first
    /// and others take `others[n]` behind its range number n.
    fn run(&self, total: u64, [index, count]: [u32; 2], before: u32, others: &[u64]) -> Vec<[u64; 2]> {
        let mut log = vec![0_u64; 1 + 2 * LOG];
        let operands: Vec<u64> = [&[total], others].concat();
        let counters: [AtomicU32; COUNTERS] = Default::default();
        counters[0].store(before, Ordering::Relaxed);
        let scratch = log.as_mut_ptr().cast();
        let worker = Worker {
            index,
            count,
            scratch,
            counters: counters.as_ptr(),
            operands: operands.as_ptr(),
            first_scratch: scratch,
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

/// Logs a range, and lets others take.
fn note(e: &mut Emit, cx: &Cx, start: Value, end: Value) {
    let count = e.load(I64, cx.scratch, 0);
    let place = e.at(cx.scratch, count, 16);
    e.store(start, place, 8);
    e.store(end, place, 16);
    let next = e.add_imm(count, 1);
    e.store(next, cx.scratch, 0);
    let others = e.at(cx.operands, next, 8);
    let others = e.load(I64, others, 0);
    cx.take_next(e, others);
}

/// Ranges by the numbers, in the order in which a worker gets them.
fn expected(items: &HandOut, [index, count]: [u32; 2], before: u32, others: &[u64]) -> Vec<[u64; 2]> {
    let (count, mut taken) = (u64::from(count), u64::from(before));
    let mut ranges = vec![items.share(index.into(), count)];
    loop {
        taken += others[ranges.len() - 1];
        let claim = items.claim(taken, count);
        let Some(range) = items.claimed(taken, claim) else { break };
        taken += claim;
        ranges.push(range);
    }
    ranges.iter().map(|range| [range.start, range.end]).collect()
}

/// Numbers of items, of those that are gone, and of what others take, for each number of workers.
fn each_case(mut check: impl FnMut(u64, [u32; 2], u32, &[u64])) {
    let totals = (0..40).chain([80, 90, 180, 360, 1257, 2880]);
    for (n, total) in totals.enumerate() {
        for count in [1, 2, 3, 5, 8, 64] {
            for (index, step) in [(0, 0), (count / 2, 1), (count - 1, 5)] {
                let others: Vec<u64> = (0..LOG).map(|range| (range + n) as u64 * step % 7).collect();
                check(total, [index, count], (n % 4) as u32, &others);
            }
        }
    }
}

#[test]
fn kernels_hand_out_ranges_as_the_numbers_say() {
    for run in [1, 2, 4, 8] {
        let code = Code::new(|e, cx, total| {
            cx.distribute_items(e, total, run, |e, start, end| note(e, cx, start, end));
        });
        each_case(|total, worker, before, others| {
            let items = HandOut::with_tail(total, run as u64);
            let expected = expected(&items, worker, before, others);
            assert_eq!(code.run(total, worker, before, others), expected, "{total} {run} {worker:?}");
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
        cx.distribute_by_cost(e, (groups, UNITS), cost, RUN, |e, start, end| note(e, cx, start, end));
    });
    each_case(|groups, worker, before, others| {
        let costs = (0..groups).map(|group| group * 7 % 5 + 1).collect();
        let items = HandOut::by_cost(costs, UNITS as u64, RUN as u64);
        let expected = expected(&items, worker, before, others);
        assert_eq!(code.run(groups, worker, before, others), expected, "{groups} {worker:?}");
    });
}

#[test]
fn kernels_hand_out_items_one_by_one_as_the_numbers_say() {
    let code = Code::new(|e, cx, total| {
        let none = e.i64(0);
        let body = |e: &mut Emit, start, end| note(e, cx, start, end);
        cx.share_then_take(e, (none, none), none, total, Take::One, body);
    });
    each_case(|total, worker, before, others| {
        let expected = expected(&HandOut::one_by_one(total), worker, before, others);
        assert_eq!(code.run(total, worker, before, others), expected, "{total} {worker:?}");
    });
}

#[test]
fn kernels_share_evenly_as_the_numbers_say() {
    let code = Code::new(|e, cx, total| {
        let (start, end) = cx.share(e, total);
        note(e, cx, start, end);
    });
    each_case(|total, worker, before, others| {
        let [index, count] = worker.map(u64::from);
        let share = HandOut::even(total).share(index, count);
        assert_eq!(code.run(total, worker, before, others), [[share.start, share.end]], "{total} {worker:?}");
    });
}
