//! Makes one position-independent code blob of compiled functions.
//!
//! Accepts PC-relative calls between functions of the blob and nothing else: no outside symbols, no absolute
//! addresses.

use crate::ukernel::MicroKernel;
use cranelift_codegen::CompiledCode;
use cranelift_codegen::FinalizedRelocTarget;
use cranelift_codegen::binemit::Reloc;
use cranelift_codegen::ir::{ExternalName, Function};
use kernmill_plan::contract::Contract;
use kernmill_plan::program::{CodeBlob, Symbol};
use std::collections::BTreeMap;

/// Functions start at multiples of this.
pub const ALIGN: usize = 64;

/// Why a function cannot become part of a blob. Each is a defect of the generator, not of its input.
#[derive(Debug, thiserror::Error)]
pub enum LinkError {
    /// A reference to something outside the blob.
    #[error("function `{function}` refers to `{target}`, which is not in the blob (please report this)")]
    Outside {
        /// Referring function.
        function: String,
        /// The name that it refers to.
        target: String,
    },
    /// A relocation other than a PC-relative call.
    #[error(
        "function `{function}` has a {kind} relocation; only PC-relative calls can be linked (please report this)"
    )]
    Relocation {
        /// Referring function.
        function: String,
        /// Kind.
        kind: String,
    },
    /// Two functions of one name.
    #[error("there are two functions named `{function}` (please report this)")]
    Twice {
        /// The name.
        function: String,
    },
    /// The blob outgrew the reach of a relative call.
    #[error("the call from `{function}` to `{target}` does not reach (please report this)")]
    Reach {
        /// Calling function.
        function: String,
        /// Called function.
        target: String,
    },
}

/// A function's bytes and what they refer to.
#[derive(Clone, Debug)]
pub struct Object {
    /// Symbol name.
    pub name: String,
    /// The demands on its callers, if it follows the kernel ABI.
    pub contract: Option<Contract>,
    /// Machine code, constants included.
    pub bytes: Vec<u8>,
    /// Calls: (offset of the 4-byte displacement, addend, callee).
    pub calls: Vec<(usize, i64, String)>,
}

impl Object {
    /// From Cranelift's output. User external names are indices into `ukernels`.
    ///
    /// # Errors
    /// For any relocation but a PC-relative call of a micro-kernel.
    pub fn from_compiled(
        name: &str,
        contract: Option<Contract>,
        function: &Function,
        code: &CompiledCode,
        ukernels: &[MicroKernel],
    ) -> Result<Object, LinkError> {
        let mut calls = Vec::new();
        for reloc in code.buffer.relocs() {
            if !matches!(reloc.kind, Reloc::X86CallPCRel4 | Reloc::X86PCRel4) {
                let kind = format!("{:?}", reloc.kind);
                return Err(LinkError::Relocation { function: name.to_owned(), kind });
            }
            let outside = |target: String| LinkError::Outside { function: name.to_owned(), target };
            let callee = match &reloc.target {
                FinalizedRelocTarget::ExternalName(ExternalName::User(id)) => {
                    let user = &function.params.user_named_funcs()[*id];
                    ukernels.get(user.index as usize).map(ToString::to_string)
                }
                other => return Err(outside(format!("{other:?}"))),
            };
            let callee = callee.ok_or_else(|| outside("an unknown micro-kernel".to_owned()))?;
            calls.push((reloc.offset as usize, reloc.addend, callee));
        }
        Ok(Object { name: name.to_owned(), contract, bytes: code.code_buffer().to_vec(), calls })
    }
}

/// Lays the objects out in order and resolves their calls.
///
/// # Errors
/// When a callee is missing or out of reach, or a name is not the only one.
pub fn link(objects: &[Object]) -> Result<CodeBlob, LinkError> {
    let mut blob = CodeBlob::default();
    let mut offsets = BTreeMap::new();
    for object in objects {
        // int3 between functions: running off an end stops at once.
        blob.bytes.resize(blob.bytes.len().next_multiple_of(ALIGN), 0xcc);
        if offsets.insert(object.name.as_str(), blob.bytes.len()).is_some() {
            return Err(LinkError::Twice { function: object.name.clone() });
        }
        blob.symbols.push(Symbol {
            name: object.name.clone(),
            offset: blob.bytes.len() as u64,
            size: object.bytes.len() as u64,
            contract: object.contract.clone(),
        });
        blob.bytes.extend_from_slice(&object.bytes);
    }
    for object in objects {
        for (offset, addend, callee) in &object.calls {
            let function = || object.name.clone();
            let target = *offsets
                .get(callee.as_str())
                .ok_or_else(|| LinkError::Outside { function: function(), target: callee.clone() })?;
            let place = offsets[object.name.as_str()] + offset;
            let displacement = target as i64 + addend - place as i64;
            let displacement = i32::try_from(displacement)
                .map_err(|_| LinkError::Reach { function: function(), target: callee.clone() })?;
            blob.bytes[place..place + 4].copy_from_slice(&displacement.to_le_bytes());
        }
    }
    Ok(blob)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn object(name: &str, bytes: &[u8], calls: &[(usize, i64, &str)]) -> Object {
        let calls = calls.iter().map(|(o, a, n)| (*o, *a, (*n).to_owned())).collect();
        Object { name: name.to_owned(), contract: None, bytes: bytes.to_vec(), calls }
    }

    #[test]
    fn calls_are_relative_to_the_next_instruction() {
        // call rel32; ret
        let caller = object("caller", &[0xe8, 0, 0, 0, 0, 0xc3], &[(1, -4, "callee")]);
        let callee = object("callee", &[0xc3], &[]);
        let blob = link(&[caller, callee]).unwrap();
        assert_eq!(blob.symbols[1].offset, 64);
        assert_eq!(i32::from_le_bytes(blob.bytes[1..5].try_into().unwrap()), 64 - 5);
        assert_eq!(blob.bytes[6..64], [0xcc; 58]);
    }

    #[test]
    fn a_name_stands_for_one_function() {
        let twice = [object("same", &[0xc3], &[]), object("same", &[0xcc], &[])];
        assert!(matches!(link(&twice), Err(LinkError::Twice { function }) if function == "same"));
    }

    #[test]
    fn a_call_to_nowhere_is_refused() {
        let caller = object("caller", &[0xe8, 0, 0, 0, 0], &[(1, -4, "gone")]);
        assert!(matches!(link(&[caller]), Err(LinkError::Outside { target, .. }) if target == "gone"));
    }
}
