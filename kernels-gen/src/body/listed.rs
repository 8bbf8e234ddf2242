//! Products of listed tiles alone: steps of logits need few tiles where the forms of all texts leave few
//! tokens.

use crate::cx::Cx;
use crate::emit::Emit;
use crate::run::ItemRun;
use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::types::I64;
use kernmill_plan::abi::Args;
use std::mem::offset_of;

/// Where the arguments have a list of tiles, hands these out, one by one for `tile`; runs `all` otherwise.
pub fn emit(e: &mut Emit, cx: &Cx, tile: impl FnOnce(&mut Emit, ItemRun), all: impl FnOnce(&mut Emit)) {
    let list = e.load(I64, cx.args, offset_of!(Args, logit_tiles));
    let null = e.i64(0);
    let is_listed = e.icmp(IntCC::NotEqual, list, null);
    let by_list = |e: &mut Emit| {
        let count = e.load_u32(cx.args, offset_of!(Args, logit_tile_count));
        cx.distribute_items(e, count, 1, |e, start, end| {
            e.for_range(start, end, 1, |e, place| {
                let entry = e.at(list, place, 4);
                let number = e.load_u32(entry, 0);
                tile(e, ItemRun::one(number));
            });
        });
    };
    e.if_else(is_listed, by_list, all);
}
