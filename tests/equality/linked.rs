//! The linker against another one: cranelift-jit reads the same functions as text, compiles them, lays them
//! out as it likes and resolves their calls. It shares no code with `kernels-gen/src/link.rs`. Both give the
//! same functions, whose calls lead to the same ones, and the same logits.

use super::adapters::{adapters, engine, together};
use super::{Case, PRESETS, assert_bits, logits, options, shapes};
use crate::harness::{Model, image_of};
use cranelift_codegen::control::ControlPlane;
use cranelift_codegen::ir::{Signature, types::I64};
use cranelift_codegen::isa::{CallConv, OwnedTargetIsa, lookup};
use cranelift_codegen::settings::{Configurable, Flags, builder};
use cranelift_codegen::{Context, ir::AbiParam};
use cranelift_jit::{JITBuilder, JITModule};
use cranelift_module::{FuncId, Linkage, Module, default_libcall_names};
use iced_x86::{Decoder, DecoderOptions};
use kernmill_compiler::passes::quant::Preset;
use kernmill_compiler::pipeline::{Compiled, CompilerOptions, compile};
use kernmill_kernels_gen::asm::assemble;
use kernmill_kernels_gen::isa::flags;
use kernmill_kernels_gen::link::ALIGN;
use kernmill_plan::program::{CodeBlob, Program, Symbol};
use kernmill_plan::target::Level;
use kernmill_runtime::PlanImage;
use std::collections::HashMap;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// The code that cranelift-jit made of a model's functions, in the order of the blob's symbols.
struct Linked {
    module: JITModule,
    functions: Vec<(FuncId, usize)>,
}

/// The target of a level as cranelift-jit wants it: not for code that moves.
fn target(level: Level) -> OwnedTargetIsa {
    let mut shared = builder();
    for (name, value) in [("opt_level", "speed"), ("is_pic", "false"), ("enable_probestack", "false")] {
        shared.set(name, value).unwrap();
    }
    shared.set("unwind_info", "false").unwrap();
    let mut target = lookup("x86_64-unknown-linux-gnu".parse().unwrap()).unwrap();
    flags(level).into_iter().for_each(|flag| target.enable(flag).unwrap());
    target.finish(Flags::new(shared)).unwrap()
}

impl Linked {
    /// Links a model that was compiled with its Cranelift IR kept.
    fn new(compiled: &Compiled) -> Linked {
        let builder = JITBuilder::with_isa(target(compiled.program.level), default_libcall_names());
        let mut module = JITModule::new(builder);
        let declare = |module: &mut JITModule, name: &str, params: usize| {
            let params = vec![AbiParam::new(I64); params];
            let signature = Signature { params, ..Signature::new(CallConv::SystemV) };
            module.declare_function(name, Linkage::Local, &signature).unwrap()
        };
        // The IR names micro-kernels by their numbers, from 0 on: here they get the same.
        let ukernels = compiled.ukernels.iter().map(|choice| &choice.ukernel);
        let ukernels: Vec<_> =
            ukernels.map(|one| declare(&mut module, &one.to_string(), one.params())).collect();
        let kernels = compiled.kernels.list.iter().map(|(name, _)| declare(&mut module, name, 2));
        let ids: Vec<FuncId> = kernels.collect::<Vec<_>>().into_iter().chain(ukernels).collect();
        assert_eq!(ids.len(), compiled.clif.len());
        let assembled = compiled.kernels.list.iter().map(|_| None).chain(
            compiled.ukernels.iter().map(|choice| choice.version.map(|version| (version, &choice.ukernel))),
        );
        let functions = ids.into_iter().zip(assembled).zip(&compiled.clif).map(|((id, assembled), text)| {
            if let Some((version, ukernel)) = assembled {
                let bytes = assemble(version, ukernel).unwrap();
                module.define_function_bytes(id, ALIGN as u64, &bytes, &[]).unwrap();
                return (id, bytes.len());
            }
            let [function] = &cranelift_reader::parse_functions(text).unwrap()[..] else {
                panic!("one function: {text}")
            };
            let mut context = Context::for_function(function.clone());
            module
                .define_function_with_control_plane(id, &mut context, &mut ControlPlane::default())
                .unwrap();
            (id, context.compiled_code().unwrap().code_buffer().len())
        });
        let functions = functions.collect();
        module.finalize_definitions().unwrap();
        Linked { module, functions }
    }

    fn address(&self, index: usize) -> u64 {
        self.module.get_finalized_function(self.functions[index].0) as u64
    }

    fn bytes(&self, index: usize) -> &[u8] {
        let (id, size) = self.functions[index];
        // SAFETY: cranelift-jit has written that many bytes there, and frees nothing that is not asked for.
        unsafe { std::slice::from_raw_parts(self.module.get_finalized_function(id), size) }
    }

    /// Compares the functions with a blob's: the bytes but for displacements, and what calls lead to. The
    /// number of calls.
    fn compare(&self, blob: &CodeBlob) -> usize {
        assert_eq!(blob.symbols.len(), self.functions.len());
        let own: HashMap<u64, usize> = (0..blob.symbols.len()).map(|at| (self.address(at), at)).collect();
        let theirs: HashMap<u64, usize> = blob.symbols.iter().map(|one| one.offset).zip(0..).collect();
        let mut calls = 0;
        for (index, symbol) in blob.symbols.iter().enumerate() {
            let mut ours = blob.bytes[symbol.offset as usize..][..symbol.size as usize].to_vec();
            let mut jits = self.bytes(index).to_vec();
            let mut blob_calls = targets(&mut ours, symbol.offset, &theirs);
            let mut jit_calls = targets(&mut jits, self.address(index), &own);
            blob_calls.sort_unstable();
            jit_calls.sort_unstable();
            assert_eq!(blob_calls, jit_calls, "{}: calls by their places", symbol.name);
            assert!(ours == jits, "{}: bytes", symbol.name);
            calls += blob_calls.len();
        }
        calls
    }

    /// The program with a call of these functions in place of each of its own, and counts of these calls.
    fn program(&self, program: &Program) -> (Program, Vec<AtomicU64>) {
        let calls: Vec<AtomicU64> = self.functions.iter().map(|_| AtomicU64::new(0)).collect();
        let mut code = CodeBlob::default();
        for (index, symbol) in program.code.symbols.iter().enumerate() {
            code.bytes.resize(index * ALIGN, 0xcc);
            // mov rax, COUNT; lock inc qword [rax]; mov rax, FUNCTION; jmp rax
            code.bytes.extend([0x48, 0xb8]);
            code.bytes.extend(calls[index].as_ptr().addr().to_le_bytes());
            code.bytes.extend([0xf0, 0x48, 0xff, 0x00, 0x48, 0xb8]);
            code.bytes.extend(self.address(index).to_le_bytes());
            code.bytes.extend([0xff, 0xe0]);
            let offset = (index * ALIGN) as u64;
            let size = code.bytes.len() as u64 - offset;
            code.symbols.push(Symbol { offset, size, ..symbol.clone() });
        }
        (Program { code, ..program.clone() }, calls)
    }
}

/// The calls of functions in `code`, which lies at `address`: their places and which function they lead to.
/// Their displacements become zeros. Bytes that look like a call of nothing are data, and stay.
fn targets(code: &mut [u8], address: u64, functions: &HashMap<u64, usize>) -> Vec<(usize, usize)> {
    let bytes = code.to_vec();
    let calls = Decoder::with_ip(64, &bytes, address, DecoderOptions::NONE).into_iter();
    let calls = calls.filter(|one| one.is_call_near());
    let found = calls.filter_map(|call| {
        let function = *functions.get(&call.near_branch_target())?;
        Some(((call.next_ip() - address) as usize - 4, function))
    });
    let found: Vec<(usize, usize)> = found.collect();
    found.iter().for_each(|(at, _)| code[*at..*at + 4].fill(0));
    found
}

/// Logits of a text in batches of every class, and of texts with adapters side by side.
fn texts(image: &PlanImage, tokens: &[u32]) -> Vec<f32> {
    let data = adapters(&image.program().model.adapters.as_ref().unwrap().lora_targets, 5);
    let mut engine = engine(image, 2, &data);
    let mut out = logits(&mut engine, tokens, &[32, 7, 1]);
    out.extend(together(&mut engine, tokens, data.len() + 1, &[9, 1]).into_iter().flatten());
    out
}

/// Runs the program of `image` with both linkers' code, and compares everything that comes out.
fn run(compiled: &Compiled, image: &dyn Fn(&Program) -> PlanImage, tokens: &[u32], what: &str) {
    let linked = Linked::new(compiled);
    assert!(linked.compare(&compiled.program.code) > 0, "{what}: no function calls another");
    let (stubs, calls) = linked.program(&compiled.program);
    let [expected, actual] = [&compiled.program, &stubs].map(|program| texts(&image(program), tokens));
    assert_bits(&actual, &expected, compiled.program.model.vocab as usize, what);
    let names = compiled.kernels.list.iter().map(|(name, _)| name).zip(&calls);
    let idle: Vec<_> = names.filter(|(_, count)| count.load(Relaxed) == 0).map(|(name, _)| name).collect();
    assert!(idle.is_empty(), "{what}: no step called {idle:?}");
}

fn widest() -> Level {
    *Level::supported().last().expect("tests run on x86-64-v3 or better")
}

#[test]
fn nanos_kernels_are_those_of_another_linker() {
    let model = Model::open(&Path::new(env!("CARGO_MANIFEST_DIR")).join("model-specs/nano"));
    let tokens: Vec<u32> = (0..45).map(|i| i * 37 % model.graph.vocab as u32).collect();
    for preset in [Preset::Exact, Preset::Faithful, Preset::Fast] {
        let choices = (preset == Preset::Fast).then(|| model.choices());
        let options = CompilerOptions { choices, keep_clif: true, ..options(preset, widest()) };
        let compiled = compile(&model.graph, &options).unwrap();
        let weights = model.pack(&compiled);
        let image = |program: &Program| image_of(program.clone(), weights.clone());
        run(&compiled, &image, &tokens, &format!("nano, {}", preset.name()));
    }
}

#[test]
fn small_models_kernels_are_those_of_another_linker() {
    for (name, shape) in shapes() {
        let case = Case::new(&shape, 11, 45);
        for preset in PRESETS {
            let compiled = case.compile(&CompilerOptions { keep_clif: true, ..options(preset, widest()) });
            let weights = case.pack(&compiled);
            let image = |program: &Program| image_of(program.clone(), weights.clone());
            run(&compiled, &image, &case.tokens, &format!("{name}, {}", preset.name()));
        }
    }
}

/// Code that this CPU cannot run is compared as bytes.
#[test]
fn every_levels_kernels_are_those_of_another_linker() {
    for (_, shape) in shapes().into_iter().take(2) {
        let case = Case::new(&shape, 11, 1);
        for level in Level::ALL {
            let compiled =
                case.compile(&CompilerOptions { keep_clif: true, ..options(Preset::Faithful, level) });
            assert!(Linked::new(&compiled).compare(&compiled.program.code) > 0);
        }
    }
}
