//! From kernels as data to a code blob.

use crate::asm::{self, AsmKernel};
use crate::body;
use crate::check;
use crate::emit::Emit;
use crate::isa;
use crate::kernel::Kernel;
use crate::link::{LinkError, Object, link};
use crate::ukernel::MicroKernel;
use cranelift_codegen::Context;
use cranelift_codegen::control::ControlPlane;
use cranelift_codegen::ir::types::I64;
use cranelift_codegen::ir::{
    AbiParam, ExtFuncData, ExternalName, Function, InstBuilder, Signature, UserExternalName, UserFuncName,
};
use cranelift_codegen::isa::{CallConv, TargetIsa};
use cranelift_frontend::{FunctionBuilder, FunctionBuilderContext};
use kernmill_plan::contract::Contract;
use kernmill_plan::program::CodeBlob;
use kernmill_plan::target::Level;
use std::collections::{BTreeMap, BTreeSet};

/// Why generation failed. Kernels that selection makes always generate: each of these but the size asks for a
/// report.
#[derive(Debug, thiserror::Error)]
pub enum GenerateError {
    /// A kernel's description would leave its operands or its scratch.
    #[error("the kernel `{function}` is refused: {source} (please report this)")]
    Kernel {
        /// Kernel.
        function: String,
        /// The violation.
        source: check::Violation,
    },
    /// The code would be larger than any model's.
    #[error(
        "the code takes {found} instructions at `{function}`, expected at most {limit}: a model with fewer \
         kinds of layers, heads or experts per token has less"
    )]
    Large {
        /// Function that passes the limit.
        function: String,
        /// Instructions of Cranelift IR so far.
        found: usize,
        /// The limit.
        limit: usize,
    },
    /// Cranelift refused the function.
    #[error("generating `{function}` failed: {message} (please report this)")]
    Codegen {
        /// Function.
        function: String,
        /// Cranelift's message.
        message: String,
    },
    /// An assembled micro-kernel cannot be assembled, or its checker refused it.
    #[error("the assembled micro-kernel `{function}` is refused: {source} (please report this)")]
    Assemble {
        /// Micro-kernel.
        function: String,
        /// The assembler's error.
        source: asm::AssembleError,
    },
    /// The linker refused it.
    #[error(transparent)]
    Link(#[from] LinkError),
}

/// How much code is generated at most, in instructions of Cranelift IR.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CodeLimits {
    /// Instructions of one function. The time to compile a function grows faster than its length.
    pub function: usize,
    /// Instructions of all functions together.
    pub all: usize,
}

impl Default for CodeLimits {
    /// The size that takes about a minute.
    fn default() -> CodeLimits {
        CodeLimits { function: 1 << 16, all: 1 << 22 }
    }
}

/// Generated code.
#[derive(Clone, Debug)]
pub struct Generated {
    /// The kernels, in the order given, then the micro-kernels they call.
    pub blob: CodeBlob,
    /// Bytes of scratch that each worker needs for any of the kernels.
    pub scratch_bytes: usize,
    /// Cranelift IR of every function, in the blob's order; empty unless asked for.
    pub clif: Vec<String>,
}

/// Every micro-kernel that kernels call at a level, once, in order.
pub fn ukernels(kernels: &[(String, Kernel)], level: Level) -> Vec<MicroKernel> {
    let all = kernels.iter().flat_map(|(_, kernel)| body::ukernels(kernel, level));
    all.collect::<BTreeSet<_>>().into_iter().collect()
}

/// Chooses the version of a micro-kernel: one of its [`asm::candidates`], or `None` for the 128-bit one. All
/// give the same bits.
pub type Choose<'a> = &'a dyn Fn(&MicroKernel) -> Option<&'static AsmKernel>;

/// Generates `kernels` (symbol name and description) for `level`. Symbol `i` of the blob is kernel `i`.
///
/// # Errors
/// Only on defects, see [`GenerateError`].
pub fn generate(
    kernels: &[(String, Kernel)],
    level: Level,
    choose: Choose,
    keep_clif: bool,
) -> Result<Generated, GenerateError> {
    generate_within(kernels, level, choose, keep_clif, CodeLimits::default())
}

/// Generates as [`generate`] does, within limits of the caller's own.
///
/// # Errors
/// [`GenerateError::Large`] when a limit is passed; others only on defects.
pub fn generate_within(
    kernels: &[(String, Kernel)],
    level: Level,
    choose: Choose,
    keep_clif: bool,
    limits: CodeLimits,
) -> Result<Generated, GenerateError> {
    let isa = isa::target(level);
    let ukernels = ukernels(kernels, level);
    let mut generator = Generator {
        isa: &*isa,
        level,
        vnni: isa::has_vnni(level),
        choose,
        ukernels: &ukernels,
        builder: FunctionBuilderContext::new(),
        context: Context::new(),
        clif: keep_clif.then(Vec::new),
        instructions: 0,
        limits,
    };
    let mut objects = Vec::with_capacity(kernels.len() + ukernels.len());
    for (name, kernel) in kernels {
        objects.push(generator.kernel(name, kernel)?);
    }
    for ukernel in &ukernels {
        objects.push(generator.ukernel(ukernel)?);
    }
    let clif = generator.clif.take().unwrap_or_default();
    let scratch_bytes = kernels.iter().map(|(_, kernel)| body::scratch_bytes(kernel)).max().unwrap_or(0);
    Ok(Generated { blob: link(&objects)?, scratch_bytes, clif })
}

/// Generates leaves alone, for their tests and benches. Symbol `i` of the blob is micro-kernel `i`.
///
/// # Errors
/// Only on defects, see [`GenerateError`].
pub fn generate_ukernels(
    ukernels: &[MicroKernel],
    level: Level,
    choose: Choose,
) -> Result<CodeBlob, GenerateError> {
    let isa = isa::target(level);
    let mut generator = Generator {
        isa: &*isa,
        level,
        vnni: isa::has_vnni(level),
        choose,
        ukernels: &[],
        builder: FunctionBuilderContext::new(),
        context: Context::new(),
        clif: None,
        instructions: 0,
        limits: CodeLimits::default(),
    };
    let objects: Vec<Object> =
        ukernels.iter().map(|ukernel| generator.ukernel(ukernel)).collect::<Result<_, _>>()?;
    Ok(link(&objects)?)
}

struct Generator<'a> {
    isa: &'a dyn TargetIsa,
    level: Level,
    vnni: bool,
    choose: Choose<'a>,
    ukernels: &'a [MicroKernel],
    builder: FunctionBuilderContext,
    context: Context,
    clif: Option<Vec<String>>,
    /// Instructions of Cranelift IR so far.
    instructions: usize,
    limits: CodeLimits,
}

impl Generator<'_> {
    fn kernel(&mut self, name: &str, kernel: &Kernel) -> Result<Object, GenerateError> {
        let contract = check::check(kernel)
            .map_err(|source| GenerateError::Kernel { function: name.to_owned(), source })?;
        self.context.func = Function::with_name_signature(UserFuncName::default(), signature(2));
        let mut b = FunctionBuilder::new(&mut self.context.func, &mut self.builder);
        let entry = b.create_block();
        b.append_block_params_for_function_params(entry);
        b.switch_to_block(entry);
        b.seal_block(entry);
        let mut imported = BTreeMap::new();
        for ukernel in body::ukernels(kernel, self.level) {
            let index =
                self.ukernels.binary_search(&ukernel).expect("every kernel's micro-kernels were collected");
            let name = b.func.declare_imported_user_function(UserExternalName::new(0, index as u32));
            let signature = b.import_signature(signature(ukernel.params()));
            let function =
                ExtFuncData { name: ExternalName::user(name), signature, colocated: true, patchable: false };
            imported.insert(ukernel, b.import_function(function));
        }
        let params = [b.block_params(entry)[0], b.block_params(entry)[1]];
        body::emit(&mut Emit { b: &mut b }, kernel, params, &imported);
        b.ins().return_(&[]);
        b.finalize(self.isa.frontend_config());
        self.compile(name, Some(contract))
    }

    fn ukernel(&mut self, ukernel: &MicroKernel) -> Result<Object, GenerateError> {
        if let Some(wide) = (self.choose)(ukernel) {
            let name = ukernel.to_string();
            if let Some(clif) = &mut self.clif {
                clif.push(format!("; {name}: assembled, {}\n", wide.name));
            }
            let bytes = asm::assemble(wide, ukernel)
                .map_err(|source| GenerateError::Assemble { function: name.clone(), source })?;
            return Ok(Object { name, contract: None, bytes, calls: Vec::new() });
        }
        self.context.func =
            Function::with_name_signature(UserFuncName::default(), signature(ukernel.params()));
        let mut b = FunctionBuilder::new(&mut self.context.func, &mut self.builder);
        let entry = b.create_block();
        b.append_block_params_for_function_params(entry);
        b.switch_to_block(entry);
        b.seal_block(entry);
        let params = b.block_params(entry).to_vec();
        ukernel.clone().emit(&mut Emit { b: &mut b }, &params, self.vnni);
        b.ins().return_(&[]);
        b.finalize(self.isa.frontend_config());
        self.compile(&ukernel.to_string(), None)
    }

    /// Adds the function at hand to the instructions so far.
    fn count(&mut self, name: &str) -> Result<(), GenerateError> {
        let own = self.context.func.dfg.num_insts();
        self.instructions += own;
        for (found, limit) in [(own, self.limits.function), (self.instructions, self.limits.all)] {
            if found > limit {
                return Err(GenerateError::Large { function: name.to_owned(), found, limit });
            }
        }
        Ok(())
    }

    fn compile(&mut self, name: &str, contract: Option<Contract>) -> Result<Object, GenerateError> {
        self.count(name)?;
        if let Some(clif) = &mut self.clif {
            clif.push(format!("; {name}\n{}", self.context.func.display()));
        }
        let failed = |message: String| GenerateError::Codegen { function: name.to_owned(), message };
        self.context
            .compile(self.isa, &mut ControlPlane::default())
            .map_err(|error| failed(format!("{:?}", error.inner)))?;
        let code = self.context.take_compiled_code().ok_or_else(|| failed("no code came out".to_owned()))?;
        let object = Object::from_compiled(name, contract, &self.context.func, &code, self.ukernels)?;
        self.context.clear();
        Ok(object)
    }
}

fn signature(params: usize) -> Signature {
    let mut signature = Signature::new(CallConv::SystemV);
    signature.params = vec![AbiParam::new(I64); params];
    signature
}
