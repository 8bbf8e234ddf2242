//! Every rule refuses a micro-kernel made to break it, and all assembled versions pass.

use super::{SafetyRule, check};
use crate::asm;
use crate::ukernel::gemm_q8::{Decoded, Overlap};
use crate::ukernel::param::{Param, Region, TileState};
use crate::ukernel::{MicroKernel, QueryHeads, TileOrder};
use iced_x86::IcedError;
use iced_x86::code_asm::{
    CodeAssembler, al, byte_ptr, dword_ptr, eax, ecx, esp, ptr, qword_ptr, r10, r12, rax, rbp, rbx, rcx, rdi,
    rdx, rsi, rsp, tmm0, tmm1, tmm2, xmm0, xmm1, xmmword_ptr, ymm0, ymmword_ptr, zmm0, zmm1, zmm2, zmm16,
    zmmword_ptr,
};
use iced_x86::{CpuidFeature, Register};
use kernmill_plan::format::WeightFormat;
use kernmill_plan::kv::KvFormat;
use kernmill_plan::target::Level;

/// Tile (read), rows (list), out (write), stride (number).
fn contract() -> Vec<Param> {
    MicroKernel::DotQ8 { format: WeightFormat::Int8, k: 32, tokens: 2 }.contract()
}

type Emit = fn(&mut CodeAssembler) -> Result<(), IcedError>;

/// Verdict on the code, with a return behind it.
fn verdict_for(params: &[Param], level: Level, emit: Emit) -> Result<(), SafetyRule> {
    let mut a = CodeAssembler::new(64).unwrap();
    emit(&mut a).unwrap();
    a.ret().unwrap();
    check(&a.assemble(0).unwrap(), params, TileState::default(), level.features())
        .map_err(|violation| violation.rule)
}

fn verdict(emit: Emit) -> Result<(), SafetyRule> {
    verdict_for(&contract(), Level::V4Vnni, emit)
}

fn refused(rule: SafetyRule, emit: Emit) {
    assert_eq!(verdict(emit), Err(rule));
}

#[test]
fn every_wide_version_passes_in_every_shape() {
    let formats = WeightFormat::ALL;
    let mut ukernels = Vec::new();
    for format in formats {
        if !format.is_blocked() {
            let all = [1, 2, 3, 4, 32, 50, 2880].into_iter().flat_map(|k| [(k, 1), (k, 2), (k, 4)]);
            ukernels.extend(all.map(|(k, tokens)| MicroKernel::DotF32 { format, k, tokens }));
            continue;
        }
        ukernels.extend([MicroKernel::Decode { format }, MicroKernel::DecodeWords { format }]);
        for k in if format.parts().is_super() { [256, 512, 2816] } else { [32, 64, 2880] } {
            ukernels.extend((1..=8).map(|tokens| MicroKernel::DotQ8 { format, k, tokens }));
            ukernels.extend((1..=8).map(|tokens| MicroKernel::DotF32 { format, k, tokens }));
            let adjacent = [(1, TileOrder::Straight), (2, TileOrder::Straight), (2, TileOrder::Pairs)];
            ukernels.extend(adjacent.map(|(tokens, order)| MicroKernel::DotQ8x4 {
                format,
                k,
                tokens,
                order,
            }));
        }
    }
    for (weights, tiles) in Decoded::all().into_iter().flat_map(|weights| [(weights, 1), (weights, 2)]) {
        ukernels.extend((1..=6).map(|tokens| MicroKernel::GemmQ8 { weights, tiles, tokens }));
    }
    ukernels.extend((1..=6).map(|tokens| MicroKernel::GemmDecode(Overlap { tokens, stride: 128, gap: 64 })));
    for elem in KvFormat::ALL {
        let multiple = elem.descriptor().head_multiple;
        let shapes = [(16_usize, 1), (64, 8), (64, 3), (96, 9), (128, 5), (80, 4)];
        for (head_dim, group) in shapes.into_iter().filter(|(d, _)| d.is_multiple_of(multiple)) {
            let queries = QueryHeads { group, tokens: 1 + group % 3, stride: head_dim * 64 };
            ukernels.extend(match elem.is_scaled() {
                true => [
                    MicroKernel::IntegerScore { elem, head_dim, group },
                    MicroKernel::IntegerValue { elem, head_dim, group, stride: 4096 },
                ],
                false => [
                    MicroKernel::Score { elem, head_dim, queries, scale: 0x3f00_0000 },
                    MicroKernel::Value { elem, head_dim, queries },
                ],
            });
            ukernels.push(MicroKernel::Weights { group });
            ukernels.push(MicroKernel::Combine { head_dim, group, sinks: elem == KvFormat::F16 });
        }
    }
    ukernels.push(MicroKernel::Softmax);
    let mut checked = 0;
    for level in Level::ALL {
        for ukernel in &ukernels {
            if let Some(version) = asm::find(ukernel, level) {
                if let Err(error) = asm::assemble(version, ukernel) {
                    panic!("{} {ukernel} on {}: {error}", version.name, level.name());
                }
                checked += 1;
            }
        }
    }
    assert!(checked > 100, "only {checked} versions found");
}

#[test]
fn a_plain_ukernel_passes() {
    let emit: Emit = |a| {
        a.push(rbx)?;
        a.mov(rbx, qword_ptr(rsi + 8))?;
        a.vmovups(zmm0, zmmword_ptr(rdi + rcx * 1))?;
        a.vaddps(zmm0, zmm0, zmmword_ptr(rbx + 64))?;
        a.vmovups(zmmword_ptr(rdx), zmm0)?;
        a.vzeroupper()?;
        a.pop(rbx)?;
        a.ret()
    };
    assert_eq!(verdict(emit), Ok(()));
}

#[test]
fn the_message_names_instruction_and_rule() {
    let mut a = CodeAssembler::new(64).unwrap();
    a.nop().unwrap();
    a.std().unwrap();
    a.ret().unwrap();
    let violation =
        check(&a.assemble(0).unwrap(), &contract(), TileState::default(), Level::V3.features()).unwrap_err();
    assert_eq!(violation.to_string(), "`std` at 0x1: the direction flag is never changed");
}

#[test]
fn flow_stays_inside_and_ends_in_a_return() {
    let no_return = check(&[0x90], &contract(), TileState::default(), Level::V3.features())
        .map_err(|violation| violation.rule);
    assert_eq!(no_return, Err(SafetyRule::RunsOff));
    refused(SafetyRule::Undecodable, |a| a.db(&[0x06, 0x06]));
    // jmp +0x10, out of the micro-kernel; jmp -1, into itself.
    refused(SafetyRule::Branch, |a| a.db(&[0xeb, 0x10, 0xc3]));
    refused(SafetyRule::Branch, |a| a.db(&[0x74, 0xff, 0xc3]));
    refused(SafetyRule::ControlFlow, |a| a.call(rax));
    refused(SafetyRule::ControlFlow, |a| a.jmp(rax));
    refused(SafetyRule::ControlFlow, |a| a.int3());
    refused(SafetyRule::ControlFlow, |a| a.ret_1(8));
    refused(SafetyRule::ControlFlow, |a| a.syscall());
    refused(SafetyRule::Unreached, |a| {
        let mut end = a.create_label();
        a.jmp(end)?;
        a.nop()?;
        a.set_label(&mut end)?;
        a.ret()
    });
    // A call of its own code is a call.
    refused(SafetyRule::ControlFlow, |a| a.db(&[0xe8, 0, 0, 0, 0, 0xc3]));
}

#[test]
fn only_features_of_the_level() {
    let feature = |level, emit: Emit| verdict_for(&contract(), level, emit);
    let lacks = |feature: CpuidFeature| Err(SafetyRule::Feature(format!("{feature:?}")));
    let evex: Emit = |a| a.vpxord(zmm0, zmm0, zmm0);
    assert_eq!(feature(Level::V3, evex), lacks(CpuidFeature::AVX512F));
    assert_eq!(feature(Level::V3Vnni, evex), lacks(CpuidFeature::AVX512F));
    let high: Emit = |a| a.vpxorq(zmm16, zmm16, zmm16);
    assert_eq!(feature(Level::V3, high), lacks(CpuidFeature::AVX512F));
    let vnni: Emit = |a| {
        a.vpxord(zmm0, zmm0, zmm0)?;
        a.vpdpbusd(zmm0, zmm0, zmm0)
    };
    assert_eq!(feature(Level::V4, vnni), lacks(CpuidFeature::AVX512_VNNI));
    let vbmi: Emit = |a| {
        a.vpxord(zmm0, zmm0, zmm0)?;
        a.vpermb(zmm0, zmm0, zmm0)
    };
    assert_eq!(feature(Level::CascadeLake, vbmi), lacks(CpuidFeature::AVX512_VBMI));
    // The VEX form is another feature than the EVEX form.
    let vex_vnni: Emit = |a| a.db(&[0xc4, 0xe2, 0x7d, 0x50, 0xc0, 0xc3]);
    assert_eq!(feature(Level::V3, vex_vnni), lacks(CpuidFeature::AVX_VNNI));
    assert_eq!(feature(Level::V4Vnni, vex_vnni), lacks(CpuidFeature::AVX_VNNI));
    assert_eq!(feature(Level::V3Vnni, vex_vnni), Err(SafetyRule::Undefined(Register::YMM0)));
    assert_eq!(feature(Level::V4Vnni, |a| a.rdtsc()), lacks(CpuidFeature::TSC));
    // Granted where it should be.
    let ymm: Emit = |a| {
        a.vmovups(ymm0, ymmword_ptr(rdi))?;
        a.vfmadd231ps(ymm0, ymm0, ymmword_ptr(rdi))?;
        a.vmovups(ymmword_ptr(rdx), ymm0)?;
        a.prefetcht1(byte_ptr(rdi + 4096))?;
        a.vzeroupper()?;
        a.ret()
    };
    assert_eq!(feature(Level::V3, ymm), Ok(()));
}

#[test]
fn state_of_the_cpu_is_left_alone() {
    refused(SafetyRule::FloatControl, |a| a.vldmxcsr(dword_ptr(rdi)));
    refused(SafetyRule::FloatControl, |a| a.ldmxcsr(dword_ptr(rdi)));
    refused(SafetyRule::FloatControl, |a| a.fldcw(iced_x86::code_asm::word_ptr(rdi)));
    refused(SafetyRule::Direction, |a| a.std());
    refused(SafetyRule::Direction, |a| a.popfq());
    refused(SafetyRule::Legacy, |a| a.xorps(xmm0, xmm1));
    // vaddps zmm0, zmm0, zmm0, {rz-sae}
    refused(SafetyRule::Rounding, |a| a.vaddps(zmm0, zmm0, zmm0.rz_sae()));
    refused(SafetyRule::Foreign("string instructions"), |a| a.rep().movsb());
    refused(SafetyRule::Foreign("lock and repeat prefixes"), |a| a.lock().add(qword_ptr(rdx), 1));
    refused(SafetyRule::Foreign("segments"), |a| a.mov(rax, qword_ptr(0).fs()));
    refused(SafetyRule::Foreign("gathers and scatters"), |a| {
        a.vgatherdps(zmm0.k1(), zmmword_ptr(rdi + zmm1 * 4))
    });
}

#[test]
fn the_stack_and_the_callers_registers_come_back() {
    refused(SafetyRule::CalleeSaved(Register::RBX), |a| {
        a.xor(ecx, ecx)?;
        a.mov(rbx, rcx)?;
        a.ret()
    });
    // Restored in the wrong order.
    refused(SafetyRule::CalleeSaved(Register::RBP), |a| {
        a.push(rbp)?;
        a.push(r12)?;
        a.pop(rbp)?;
        a.pop(r12)?;
        a.ret()
    });
    // Restored on one path only.
    refused(SafetyRule::CalleeSaved(Register::RBX), |a| {
        let mut end = a.create_label();
        a.push(rbx)?;
        a.mov(rbx, rcx)?;
        a.test(rcx, rcx)?;
        a.je(end)?;
        a.pop(rbx)?;
        a.ret()?;
        a.set_label(&mut end)?;
        a.add(rsp, 8)?;
        a.ret()
    });
    refused(SafetyRule::Unbalanced, |a| {
        a.push(rbx)?;
        a.ret()
    });
    refused(SafetyRule::Stack, |a| a.pop(rax));
    refused(SafetyRule::StackMeet, |a| {
        let mut again = a.create_label();
        a.set_label(&mut again)?;
        a.push(rcx)?;
        a.jmp(again)
    });
    // Below the stack pointer, above what was pushed, and the saved registers themselves.
    refused(SafetyRule::Stack, |a| a.mov(qword_ptr(rsp - 8), rcx));
    refused(SafetyRule::Stack, |a| a.mov(rax, qword_ptr(rsp)));
    refused(SafetyRule::Stack, |a| {
        a.push(rbx)?;
        a.mov(qword_ptr(rsp), rcx)
    });
    refused(SafetyRule::Stack, |a| {
        a.push(rcx)?;
        a.mov(rax, qword_ptr(rsp + rcx * 8))
    });
    refused(SafetyRule::StackPointer, |a| a.and(rsp, -64));
    refused(SafetyRule::StackPointer, |a| a.mov(rsp, rdi));
    refused(SafetyRule::StackPointer, |a| a.mov(esp, ecx));
    refused(SafetyRule::StackPointer, |a| a.leave());
    refused(SafetyRule::StackPointer, |a| a.mov(rax, rsp));
    refused(SafetyRule::StackPointer, |a| a.lea(rax, qword_ptr(rsp + 8)));
    let spill: Emit = |a| {
        a.sub(rsp, 24)?;
        a.mov(qword_ptr(rsp + 8), rdi)?;
        a.mov(r10, qword_ptr(rsp + 8))?;
        a.mov(eax, dword_ptr(r10))?;
        a.add(rsp, 24)?;
        a.ret()
    };
    assert_eq!(verdict(spill), Ok(()));
}

#[test]
fn upper_halves_are_cleared() {
    refused(SafetyRule::UpperHalves, |a| {
        a.vmovups(ymm0, ymmword_ptr(rdi))?;
        a.ret()
    });
    // Cleared on one path only.
    refused(SafetyRule::UpperHalves, |a| {
        let mut end = a.create_label();
        a.vmovups(zmm0, zmmword_ptr(rdi))?;
        a.test(rcx, rcx)?;
        a.je(end)?;
        a.vzeroupper()?;
        a.set_label(&mut end)?;
        a.ret()
    });
    // A register that vzeroupper cleared has no value.
    refused(SafetyRule::Undefined(Register::ZMM0), |a| {
        a.vmovups(zmm0, zmmword_ptr(rdi))?;
        a.vzeroupper()?;
        a.vmovups(zmmword_ptr(rdx), zmm0)
    });
}

/// Parameters behind the sixth lie above the place to return to, a pointer and a number here.
#[test]
fn parameters_on_the_stack_are_read_whole() {
    let mut params = vec![Param::Number; 6];
    params.extend([Param::Read(Region::new(4)), Param::Number]);
    let verdict = |emit: Emit| verdict_for(&params, Level::V3, emit);
    let accepted = verdict(|a| {
        a.push(rcx)?;
        a.mov(rax, qword_ptr(rsp + 16))?;
        a.add(rax, rcx)?;
        a.mov(ecx, dword_ptr(rax))?;
        a.mov(rdx, qword_ptr(rsp + 24))?;
        a.pop(rcx)
    });
    assert_eq!(accepted, Ok(()));
    let refused: [Emit; 6] = [
        // The place to return to, halves, what is behind the last, and stores.
        |a| a.mov(rax, qword_ptr(rsp)),
        |a| a.mov(eax, dword_ptr(rsp + 8)),
        |a| a.mov(rax, qword_ptr(rsp + 12)),
        |a| a.mov(rax, qword_ptr(rsp + 24)),
        |a| a.mov(qword_ptr(rsp + 8), rcx),
        |a| a.add(qword_ptr(rsp + 16), rcx),
    ];
    assert!(refused.into_iter().all(|emit| verdict(emit) == Err(SafetyRule::Stack)));
    let number = verdict(|a| {
        a.mov(rax, qword_ptr(rsp + 16))?;
        a.mov(ecx, dword_ptr(rax))
    });
    assert_eq!(number, Err(SafetyRule::Address));
    let store = verdict(|a| {
        a.mov(rax, qword_ptr(rsp + 8))?;
        a.mov(dword_ptr(rax), ecx)
    });
    assert_eq!(store, Err(SafetyRule::Store(6)));
}

#[test]
fn memory_is_reached_through_the_contract_only() {
    refused(SafetyRule::Store(0), |a| a.mov(dword_ptr(rdi), ecx));
    refused(SafetyRule::Store(1), |a| a.mov(qword_ptr(rsi), rcx));
    refused(SafetyRule::Load(2), |a| a.mov(eax, dword_ptr(rdx)));
    refused(SafetyRule::Load(2), |a| a.add(dword_ptr(rdx), ecx));
    refused(SafetyRule::StoreReadOnly, |a| {
        a.mov(rax, qword_ptr(rsi))?;
        a.mov(dword_ptr(rax), ecx)
    });
    // Targets are rows that may be written; their list is not.
    let targets = [Param::Targets { rows: 1.into(), offset: 0.into(), bytes: 8 }];
    let store = verdict_for(&targets, Level::V3, |a| {
        a.mov(rax, qword_ptr(rdi))?;
        a.mov(dword_ptr(rax), 1)
    });
    assert_eq!(store, Ok(()));
    let store = verdict_for(&targets, Level::V3, |a| a.mov(dword_ptr(rdi), 1));
    assert_eq!(store, Err(SafetyRule::Store(0)));
    // A row list gives pointers, whole ones.
    refused(SafetyRule::Load(1), |a| a.mov(eax, dword_ptr(rsi)));
    refused(SafetyRule::Load(1), |a| {
        a.xor(eax, eax)?;
        a.add(rax, qword_ptr(rsi))
    });
    // Numbers, sums and multiples of pointers, absolute addresses, and what memory holds are no addresses.
    refused(SafetyRule::Address, |a| a.mov(rax, qword_ptr(rcx)));
    refused(SafetyRule::Address, |a| a.mov(eax, dword_ptr(rdi + rsi)));
    refused(SafetyRule::Address, |a| a.mov(eax, dword_ptr(rcx + rdi * 2)));
    refused(SafetyRule::Address, |a| a.mov(eax, dword_ptr(0x1000)));
    refused(SafetyRule::Address, |a| a.mov(eax, dword_ptr(iced_x86::code_asm::edi)));
    refused(SafetyRule::Address, |a| {
        a.mov(rax, qword_ptr(rdi))?;
        a.mov(eax, dword_ptr(rax))
    });
    refused(SafetyRule::Undefined(Register::R10), |a| a.mov(rax, qword_ptr(r10)));
    refused(SafetyRule::Undefined(Register::RBX), |a| a.mov(rax, qword_ptr(rbx)));
    refused(SafetyRule::PointerAsNumber(Register::RDI), |a| a.imul_3(rax, rdi, 4));
    refused(SafetyRule::PointerAsNumber(Register::EDI), |a| a.mov(eax, iced_x86::code_asm::edi));
    refused(SafetyRule::PointerAsNumber(Register::RDI), |a| a.add(rdi, rsi));
    refused(SafetyRule::PointerAsNumber(Register::RDI), |a| a.and(rdi, -64));
    refused(SafetyRule::PointerAsNumber(Register::RDI), |a| a.mov(qword_ptr(rdx), rdi));
    // Which pointer it is depends on the path.
    refused(SafetyRule::Undefined(Register::RAX), |a| {
        let mut end = a.create_label();
        a.mov(rax, rdi)?;
        a.test(rcx, rcx)?;
        a.je(end)?;
        a.mov(rax, qword_ptr(rsi))?;
        a.set_label(&mut end)?;
        a.mov(eax, dword_ptr(rax))
    });
    // The same in a loop, where the second turn goes wrong.
    refused(SafetyRule::Undefined(Register::RDI), |a| {
        let mut again = a.create_label();
        a.set_label(&mut again)?;
        a.mov(eax, dword_ptr(rdi))?;
        a.mov(rdi, rcx)?;
        a.dec(rcx)?;
        a.jne(again)?;
        a.ret()
    });
}

#[test]
fn constants_lie_behind_the_code() {
    let at = |offset: i32| -> Result<(), SafetyRule> {
        let mut a = CodeAssembler::new(64).unwrap();
        let mut constants = a.create_label();
        a.lea(rax, qword_ptr(constants)).unwrap();
        a.vmovups(xmm0, xmmword_ptr(rax + offset)).unwrap();
        a.ret().unwrap();
        a.set_label(&mut constants).unwrap();
        a.dd(&[0; 8]).unwrap();
        let level = Level::V3;
        check(&a.assemble(0).unwrap(), &contract(), TileState::default(), level.features())
            .map_err(|violation| violation.rule)
    };
    assert_eq!(at(0), Ok(()));
    assert_eq!(at(16), Ok(()));
    assert_eq!(at(17), Err(SafetyRule::Constant));
    assert_eq!(at(-1), Err(SafetyRule::Constant));
    refused(SafetyRule::StoreReadOnly, |a| {
        let mut constants = a.create_label();
        a.mov(dword_ptr(constants), ecx)?;
        a.ret()?;
        a.set_label(&mut constants)?;
        a.dd(&[0])
    });
}

#[test]
fn registers_are_written_before_they_are_read() {
    refused(SafetyRule::Undefined(Register::EAX), |a| a.add(eax, ecx));
    refused(SafetyRule::Undefined(Register::AL), |a| a.mov(al, byte_ptr(rdi)));
    refused(SafetyRule::Undefined(Register::RBX), |a| a.add(rbx, 1));
    refused(SafetyRule::Undefined(Register::ZMM2), |a| a.vaddps(zmm0, zmm2, zmm2));
    refused(SafetyRule::Undefined(Register::K1), |a| {
        a.vpxord(zmm0, zmm0, zmm0)?;
        a.vmovaps(zmm0.k1(), zmm0)
    });
}

#[test]
fn tiles_are_configured_and_released() {
    let on_amx = |emit: Emit| verdict_for(&contract(), Level::Amx, emit);
    assert_eq!(on_amx(|a| a.tilezero(tmm0)), Err(SafetyRule::Tiles));
    assert_eq!(on_amx(|a| a.ldtilecfg(ptr(rdi))), Err(SafetyRule::Tiles));
    let lacks = Err(SafetyRule::Feature(format!("{:?}", CpuidFeature::AMX_TILE)));
    assert_eq!(verdict(|a| a.tilezero(tmm0)), lacks);
    // Left configured; with constants of the wrong length.
    let configured = |emit: Emit, config: &[u8]| {
        let mut a = CodeAssembler::new(64).unwrap();
        let mut constants = a.create_label();
        a.ldtilecfg(ptr(constants)).unwrap();
        emit(&mut a).unwrap();
        a.ret().unwrap();
        a.set_label(&mut constants).unwrap();
        a.db(config).unwrap();
        check(&a.assemble(0).unwrap(), &contract(), TileState::default(), Level::Amx.features())
            .map_err(|violation| violation.rule)
    };
    assert_eq!(configured(|a| a.tilezero(tmm0), &[0; 64]), Err(SafetyRule::Tiles));
    assert_eq!(configured(|a| a.tilerelease(), &[0; 63]), Err(SafetyRule::Constant));
    assert_eq!(configured(|a| a.tilerelease(), &[0; 64]), Ok(()));
    assert_eq!(configured(|a| a.tileloadd(tmm0, ptr(rdx + rcx)), &[0; 64]), Err(SafetyRule::Load(2)));
    let store: Emit = |a| {
        a.tilezero(tmm0)?;
        a.tilestored(ptr(rdi + rcx), tmm0)
    };
    assert_eq!(configured(store, &[0; 64]), Err(SafetyRule::Store(0)));
    // As the contract says.
    let as_told = |before, after, emit: Emit| {
        let mut a = CodeAssembler::new(64).unwrap();
        emit(&mut a).unwrap();
        a.ret().unwrap();
        let code = a.assemble(0).unwrap();
        check(&code, &contract(), TileState { before, after }, Level::Amx.features())
            .map_err(|violation| violation.rule)
    };
    assert_eq!(as_told(true, true, |a| a.tilezero(tmm0)), Ok(()));
    // Products of either kind are for the level that has both.
    let products: [Emit; 2] = [|a| a.tdpbf16ps(tmm0, tmm1, tmm2), |a| a.tdpbssd(tmm0, tmm1, tmm2)];
    for product in products {
        assert_eq!(as_told(true, true, product), Ok(()));
        assert!(matches!(verdict(product), Err(SafetyRule::Feature(_))));
    }
    assert_eq!(as_told(true, false, |a| a.tilerelease()), Ok(()));
    assert_eq!(as_told(true, false, |a| a.tilezero(tmm0)), Err(SafetyRule::Tiles));
    assert_eq!(as_told(true, true, |a| a.tilerelease()), Err(SafetyRule::Tiles));
    assert_eq!(as_told(false, true, |a| a.nop()), Err(SafetyRule::Tiles));
}
