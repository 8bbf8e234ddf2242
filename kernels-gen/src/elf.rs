//! A code blob as a relocatable ELF object, which debuggers, disassemblers and linkers read.

use crate::link::ALIGN;
use kernmill_plan::program::CodeBlob;
use object::write::{Object, Symbol, SymbolSection};
use object::{Architecture, BinaryFormat, Endianness, SectionKind, SymbolFlags, SymbolKind, SymbolScope};

/// The bytes of an x86-64 object file. Its `.text` is the blob, byte for byte; every function of the blob,
/// micro-kernels included, is a global symbol by its own name. It refers to nothing outside. `source` names
/// what the code was generated from, as a file's name would.
///
/// # Errors
/// When the blob is too large for the format.
pub fn object_file(blob: &CodeBlob, source: &str) -> Result<Vec<u8>, object::write::Error> {
    let mut object = Object::new(BinaryFormat::Elf, Architecture::X86_64, Endianness::Little);
    object.add_file_symbol(source.as_bytes().to_vec());
    let text = object.section_id(object::write::StandardSection::Text);
    object.append_section_data(text, &blob.bytes, ALIGN as u64);
    for symbol in &blob.symbols {
        object.add_symbol(Symbol {
            name: symbol.name.as_bytes().to_vec(),
            value: symbol.offset,
            size: symbol.size,
            kind: SymbolKind::Text,
            // Dynamic is what ELF calls default visibility.
            scope: SymbolScope::Dynamic,
            weak: false,
            section: SymbolSection::Section(text),
            flags: SymbolFlags::None,
        });
    }
    // Without it, linkers take the code for such as wants an executable stack.
    object.add_section(Vec::new(), b".note.GNU-stack".to_vec(), SectionKind::Other);
    object.write()
}

#[cfg(test)]
mod tests {
    use super::*;
    use kernmill_plan::program::Symbol as Function;
    use object::{Object as _, ObjectSection, ObjectSymbol};

    #[test]
    fn a_file_has_the_code_its_names_and_nothing_else() {
        let function =
            |name: &str, offset, size| Function { name: name.to_owned(), offset, size, contract: None };
        let mut bytes = vec![0xcc; 65];
        bytes[0] = 0xc3;
        bytes[64] = 0xc3;
        let symbols = vec![function("qkv t1", 0, 1), function("leaf[2]", 64, 1)];
        let written = object_file(&CodeBlob { bytes: bytes.clone(), symbols }, "nano").unwrap();
        let file = object::File::parse(&*written).unwrap();
        assert_eq!(
            (file.architecture(), file.kind()),
            (Architecture::X86_64, object::ObjectKind::Relocatable)
        );
        let text = file.section_by_name(".text").unwrap();
        assert_eq!((text.align(), text.data().unwrap()), (64, &bytes[..]));
        assert_eq!(text.relocations().count(), 0);
        let named: Vec<_> = file
            .symbols()
            .filter(ObjectSymbol::is_global)
            .map(|symbol| (symbol.name().unwrap(), symbol.address(), symbol.size(), symbol.kind()))
            .collect();
        assert_eq!(named, [("qkv t1", 0, 1, SymbolKind::Text), ("leaf[2]", 64, 1, SymbolKind::Text)]);
        assert!(!file.symbols().any(|symbol| symbol.is_undefined()));
        assert_eq!(file.section_by_name(".note.GNU-stack").unwrap().size(), 0);
    }
}
