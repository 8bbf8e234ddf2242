//! Hashes of what was generated, by which two compilers, or two revisions of this one, are compared
//! (`tools/compare-code`).

use crate::output::plan_file::{target_program, tensors};
use crate::pipeline::Compiled;
use kernmill_plan::program::{CodeBlob, Program, Symbol, TokenClass};
use serde::Serialize;
use std::fmt::{Display, Formatter};

/// Hashes of the code that was generated for one target. The same input gives the same ones, on any machine.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Fingerprint {
    /// Model, from the spec.
    pub model: String,
    /// Preset, by its name.
    pub preset: String,
    /// Level, by its name.
    pub level: String,
    /// Everything but the code's bytes: steps, operands, places in the arena, symbols, facts of the model,
    /// places of the weights.
    pub program: CodeHash,
    /// The code, with what lies between functions.
    pub code: CodeHash,
    /// Bytes of the code.
    pub code_bytes: u64,
    /// Token classes, ascending.
    pub classes: Vec<ClassFingerprint>,
    /// Kernels and micro-kernels, in the order of their places.
    pub functions: Vec<FunctionFingerprint>,
}

/// A token class.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ClassFingerprint {
    /// Largest batch of the class, in tokens.
    pub max_tokens: u32,
    /// Steps, those for logits included.
    pub steps: u64,
    /// Steps and buffers.
    pub hash: CodeHash,
}

/// A kernel or micro-kernel.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct FunctionFingerprint {
    /// Symbol of the function.
    pub name: String,
    /// Largest batch of each class that runs the kernel; none for a micro-kernel.
    pub classes: Vec<u32>,
    /// Bytes of machine code.
    pub bytes: u64,
    /// Hash of the code as it is run. It holds distances to the micro-kernels that it calls: a change of one
    /// function's size can change others' hashes.
    pub hash: CodeHash,
}

/// A BLAKE3 hash; its text is hexadecimal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CodeHash(blake3::Hash);

impl Fingerprint {
    /// Hashes a compilation's result.
    pub fn new(compiled: &Compiled) -> Fingerprint {
        let program = &compiled.program;
        let rest = (
            &program.model,
            program.level.name(),
            target_program(program),
            program.weight_bytes,
            tensors(&compiled.fused.graph, &compiled.layout, None),
        );
        let function = |symbol: &Symbol| FunctionFingerprint {
            name: symbol.name.clone(),
            classes: program
                .classes
                .iter()
                .filter(|class| runs(class, symbol, program))
                .map(|class| class.max_tokens)
                .collect(),
            bytes: symbol.size,
            hash: CodeHash(blake3::hash(bytes(&program.code, symbol))),
        };
        Fingerprint {
            model: program.model.name.clone(),
            preset: program.model.preset.clone(),
            level: program.level.name().to_owned(),
            program: CodeHash::of(&rest),
            code: CodeHash(blake3::hash(&program.code.bytes)),
            code_bytes: program.code.bytes.len() as u64,
            classes: program.classes.iter().map(ClassFingerprint::new).collect(),
            functions: program.code.symbols.iter().map(function).collect(),
        }
    }
}

impl ClassFingerprint {
    fn new(class: &TokenClass) -> ClassFingerprint {
        let steps = class.steps.len() + class.logit_steps.len();
        ClassFingerprint { max_tokens: class.max_tokens, steps: steps as u64, hash: CodeHash::of(class) }
    }
}

fn runs(class: &TokenClass, symbol: &Symbol, program: &Program) -> bool {
    let mut steps = class.steps.iter().chain(&class.logit_steps);
    steps.any(|step| program.code.symbols.get(step.kernel as usize) == Some(symbol))
}

fn bytes<'a>(code: &'a CodeBlob, symbol: &Symbol) -> &'a [u8] {
    let start = symbol.offset as usize;
    &code.bytes[start..start + symbol.size as usize]
}

impl CodeHash {
    /// Hash of the value's serialised form, which is the one in plan files.
    fn of<T: Serialize>(value: &T) -> CodeHash {
        let bytes = postcard::to_allocvec(value).expect("programs are plain data, which postcard can write");
        CodeHash(blake3::hash(&bytes))
    }
}

impl Display for CodeHash {
    fn fmt(&self, f: &mut Formatter<'_>) -> std::fmt::Result {
        self.0.to_hex().fmt(f)
    }
}

impl Serialize for CodeHash {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.0.to_hex())
    }
}

impl Display for Fingerprint {
    fn fmt(&self, f: &mut Formatter<'_>) -> std::fmt::Result {
        let Fingerprint { model, preset, level, code_bytes, .. } = self;
        writeln!(f, "model {model}, preset {preset}, target {level}")?;
        writeln!(f, "  {} program, but for the code's bytes", self.program)?;
        writeln!(f, "  {} code, {code_bytes} bytes", self.code)?;
        for ClassFingerprint { max_tokens, steps, hash } in &self.classes {
            writeln!(f, "  {hash} class of up to {max_tokens} tokens, {steps} steps")?;
        }
        for FunctionFingerprint { name, classes, bytes, hash } in &self.functions {
            write!(f, "  {hash} {name}, {bytes} bytes")?;
            match classes.split_first() {
                None => writeln!(f, ", a micro-kernel")?,
                Some((first, rest)) => {
                    write!(f, ", in classes {first}")?;
                    rest.iter().try_for_each(|class| write!(f, ", {class}"))?;
                    writeln!(f)?;
                }
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pipeline::{CompilerOptions, compile};
    use crate::testing::{ModelShape, build};
    use kernmill_plan::target::Level;

    fn compiled(level: Level) -> Compiled {
        let graph = build(&ModelShape::mini_gpt_oss()).unwrap();
        compile(&graph, &CompilerOptions { chunk: 64, ..CompilerOptions::new(level) }).unwrap()
    }

    #[test]
    fn equal_compilations_have_equal_fingerprints() {
        let one = Fingerprint::new(&compiled(Level::V3));
        assert_eq!(one, Fingerprint::new(&compiled(Level::V3)));
        let other = Fingerprint::new(&compiled(Level::V4));
        assert!(one.code != other.code && one.program != other.program);
        for (index, class) in one.classes.iter().enumerate() {
            assert!(one.functions.iter().any(|function| function.classes.contains(&class.max_tokens)));
            assert!(class.steps > 10 && !one.classes[..index].iter().any(|before| before.hash == class.hash));
        }
        assert!(one.functions.iter().any(|function| function.classes.is_empty()), "there are micro-kernels");
    }

    #[test]
    fn any_byte_of_the_code_and_any_operand_shows() {
        let good = compiled(Level::V3);
        let before = Fingerprint::new(&good);
        let changed = |change: fn(&mut Program)| {
            let mut other = good.clone();
            change(&mut other.program);
            Fingerprint::new(&other)
        };
        let code = changed(|program| *program.code.bytes.last_mut().unwrap() ^= 1);
        let unlike = |fingerprint: &Fingerprint| {
            let functions = fingerprint.functions.iter().zip(&before.functions);
            functions.filter(|(a, b)| a != b).count()
        };
        assert!(code.code != before.code && code.program == before.program);
        assert_eq!(unlike(&code), 1, "the last function");
        let operand = changed(|program| program.classes[1].steps[0].operands.reverse());
        assert!(operand.code == before.code && operand.program != before.program && unlike(&operand) == 0);
        assert!(operand.classes[0] == before.classes[0] && operand.classes[1] != before.classes[1]);
        let arena = changed(|program| program.arena_bytes += 64);
        assert!(arena.program != before.program && arena.classes == before.classes);
    }

    #[test]
    fn the_text_and_the_json_have_every_hash() {
        let fingerprint = Fingerprint::new(&compiled(Level::V3));
        let (text, json) = (fingerprint.to_string(), serde_json::to_string(&fingerprint).unwrap());
        let hashes = [fingerprint.program, fingerprint.code].into_iter();
        let hashes = hashes.chain(fingerprint.classes.iter().map(|class| class.hash));
        for hash in hashes.chain(fingerprint.functions.iter().map(|function| function.hash)) {
            let hash = hash.to_string();
            assert!(hash.len() == 64 && text.contains(&hash) && json.contains(&hash), "{hash}\n{text}");
        }
        assert!(
            text.starts_with("model ")
                && text.contains(", a micro-kernel\n")
                && text.contains(", in classes 8")
        );
    }
}
