//! The stages of the compiler, by name.

/// The refusal to print what is no text.
pub const NO_OBJECT: &str = "--emit obj: an object file is not printed; give --emit-dir DIR, or use kernmill compile \
    SPEC --emit obj -o FILE.o";

/// A stage of the pipeline.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Stage {
    /// The model spec.
    Spec,
    /// The graph of the spec.
    Graph,
    /// The graph with the preset's quantisation made explicit.
    Quant,
    /// Groups of nodes that become one kernel each.
    Fused,
    /// The kernel for each group.
    Select,
    /// Steps and buffers.
    Schedule,
    /// Places of the buffers in the arena.
    Memory,
    /// Cranelift IR of the kernels.
    Clif,
    /// Machine code of the kernels.
    Asm,
    /// The runtime's input: steps with their operands, buffers, symbols.
    Plan,
    /// Hashes of the machine code and of everything around it, to compare compilers by.
    Hashes,
    /// The machine code as an ELF object file: with --emit-dir, or compile -o FILE.o.
    Obj,
}

impl Stage {
    /// Every stage, in the order of the pipeline.
    pub const ALL: [Stage; 12] = [
        Stage::Spec,
        Stage::Graph,
        Stage::Quant,
        Stage::Fused,
        Stage::Select,
        Stage::Schedule,
        Stage::Memory,
        Stage::Clif,
        Stage::Asm,
        Stage::Plan,
        Stage::Hashes,
        Stage::Obj,
    ];

    /// Name of the stage on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Stage::Spec => "spec",
            Stage::Graph => "graph",
            Stage::Quant => "quant",
            Stage::Fused => "fused",
            Stage::Select => "select",
            Stage::Schedule => "schedule",
            Stage::Memory => "memory",
            Stage::Clif => "clif",
            Stage::Asm => "asm",
            Stage::Plan => "plan",
            Stage::Hashes => "hashes",
            Stage::Obj => "obj",
        }
    }

    /// The contents of the stage, without a full stop.
    pub fn about(self) -> &'static str {
        match self {
            Stage::Spec => "The model spec",
            Stage::Graph => "The graph of the spec",
            Stage::Quant => "The graph with the preset's quantisation made explicit",
            Stage::Fused => "Groups of nodes that become one kernel each",
            Stage::Select => "The kernel for each group",
            Stage::Schedule => "Steps and buffers",
            Stage::Memory => "Places of the buffers in the arena",
            Stage::Clif => "Cranelift IR of the kernels",
            Stage::Asm => "Machine code of the kernels",
            Stage::Plan => "What the runtime gets: steps with their operands, buffers, symbols",
            Stage::Hashes => {
                "Hashes of the machine code and of everything around it, to compare compilers by"
            }
            Stage::Obj => "The machine code as an ELF object file: with --emit-dir, or compile -o FILE.o",
        }
    }

    /// The stage with the name `name` on the command line; `None` if no stage has it.
    pub fn from_name(name: &str) -> Option<Stage> {
        Stage::ALL.into_iter().find(|stage| stage.name() == name)
    }

    /// Name of the stage's file.
    pub fn file_name(self) -> String {
        match self {
            Stage::Spec => "spec.toml".to_owned(),
            Stage::Obj => "code.o".to_owned(),
            _ => format!("{}.txt", self.name()),
        }
    }
}
