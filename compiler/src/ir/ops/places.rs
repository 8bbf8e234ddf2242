//! Kinds of kernels, the roles that ops have in them, and where each op may be.

/// Kinds of kernels; `compose` says what each can be made of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum KernelTemplate {
    /// Row-wise ops, one after the other on the same row.
    Rows,
    /// Row-wise prologue, dense matrix products of one input, epilogues.
    Matmul,
    /// Row-wise prologue, the chosen experts' matrix products of one input, an epilogue.
    Experts,
    /// The chosen experts' matrix product, weighted and summed, and a residual.
    ExpertDown,
    /// Attention, and the quantisation of its result.
    Attention,
    /// Row-wise prologue, the A of adapters at matrices that read its result.
    Shrink,
}

impl KernelTemplate {
    /// Every template by its name in specs.
    pub const NAMED: [(&'static str, KernelTemplate); 6] = [
        ("rows", KernelTemplate::Rows),
        ("matmul", KernelTemplate::Matmul),
        ("experts", KernelTemplate::Experts),
        ("expert_down", KernelTemplate::ExpertDown),
        ("attention", KernelTemplate::Attention),
        ("shrink", KernelTemplate::Shrink),
    ];

    /// The name in specs.
    pub fn name(self) -> &'static str {
        KernelTemplate::NAMED.iter().find(|(_, template)| *template == self).map_or("?", |(name, _)| name)
    }
}

/// The role of a member in the fused kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum MemberRole {
    /// Prepares the roots' input.
    Prologue,
    /// The matrix products, the attention, or of row-wise kernels the first ops.
    Root,
    /// Works on the roots' results before they are stored.
    Epilogue,
    /// Must be there, but stays outside the group.
    Context,
}

impl MemberRole {
    /// Every part by its name in specs.
    pub const NAMED: [(&'static str, MemberRole); 4] = [
        ("prologue", MemberRole::Prologue),
        ("root", MemberRole::Root),
        ("epilogue", MemberRole::Epilogue),
        ("context", MemberRole::Context),
    ];

    /// The name in specs.
    pub fn name(self) -> &'static str {
        MemberRole::NAMED.iter().find(|(_, part)| *part == self).map_or("?", |(name, _)| name)
    }
}

/// Where in a kernel an op may be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KernelPosition {
    /// In a kernel over rows.
    Rows,
    /// Before the matrices of a kernel.
    Prologue,
    /// Behind matrices.
    Epilogue,
    /// The root of a kernel of that kind.
    Root(KernelTemplate),
    /// The epilogue of a kernel of that kind, which has room for little.
    EpilogueOf(KernelTemplate),
}

impl KernelPosition {
    /// Whether this is that part of such a kernel.
    pub fn is(self, template: KernelTemplate, part: MemberRole) -> bool {
        match self {
            KernelPosition::Rows => {
                template == KernelTemplate::Rows && matches!(part, MemberRole::Root | MemberRole::Epilogue)
            }
            KernelPosition::Prologue => {
                part == MemberRole::Prologue
                    && matches!(
                        template,
                        KernelTemplate::Matmul | KernelTemplate::Experts | KernelTemplate::Shrink
                    )
            }
            KernelPosition::Epilogue => {
                part == MemberRole::Epilogue
                    && matches!(template, KernelTemplate::Matmul | KernelTemplate::Experts)
            }
            KernelPosition::Root(of) => template == of && part == MemberRole::Root,
            KernelPosition::EpilogueOf(of) => template == of && part == MemberRole::Epilogue,
        }
    }
}

/// Places of an op that computes rows anywhere.
pub const ANYWHERE: &[KernelPosition] =
    &[KernelPosition::Rows, KernelPosition::Prologue, KernelPosition::Epilogue];
