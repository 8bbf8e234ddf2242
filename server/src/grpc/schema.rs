//! The protocol's schema, for clients that ask for it by reflection.

use prost_types::field_descriptor_proto::{Label, Type};
use prost_types::{
    DescriptorProto, EnumDescriptorProto, EnumValueDescriptorProto, FieldDescriptorProto,
    FileDescriptorProto, FileDescriptorSet, MessageOptions, MethodDescriptorProto, OneofDescriptorProto,
    ServiceDescriptorProto,
};

/// The schema by lines; the first ones say what they mean.
const LINES: &str = include_str!("schema.txt");

/// The files of the protocol, with the one that they use.
pub fn descriptors() -> FileDescriptorSet {
    let enums: Vec<&str> = LINES.lines().filter_map(|line| line.strip_prefix("enum ")).collect();
    let mut file = Vec::new();
    for block in LINES.split("\nfile ").skip(1) {
        file.push(read_file(block, &enums));
    }
    FileDescriptorSet { file }
}

/// Reads a file: its name and package, and what is in it, each with the lines that belong to it.
fn read_file(block: &str, enums: &[&str]) -> FileDescriptorProto {
    let (head, body) = block.split_once('\n').unwrap_or((block, ""));
    let (name, package) = head.split_once(' ').unwrap_or((head, ""));
    let mut file = FileDescriptorProto {
        name: Some(name.to_owned()),
        package: Some(package.to_owned()),
        syntax: Some("proto3".to_owned()),
        ..FileDescriptorProto::default()
    };
    let scope = SchemaScope { package, enums };
    let mut lines = body.lines().filter(|line| !line.is_empty()).peekable();
    while let Some(line) = lines.next() {
        let mut inner = Vec::new();
        while let Some(line) = lines.next_if(|line| line.starts_with("  ")) {
            inner.push(line.trim_start());
        }
        match line.split_once(' ') {
            Some(("import", path)) => file.dependency.push(path.to_owned()),
            Some(("service", name)) => file.service.push(scope.service(name, &inner)),
            Some(("message", path)) => {
                let (outer, name) = split(path);
                place(&mut file.message_type, outer, |into| into.push(scope.message(path, name, &inner)));
            }
            Some(("enum", path)) => {
                let (outer, name) = split(path);
                let made = enumeration(name, &inner);
                match outer.and_then(|outer| find(&mut file.message_type, outer)) {
                    Some(message) => message.enum_type.push(made),
                    None => file.enum_type.push(made),
                }
            }
            _ => {}
        }
    }
    file
}

/// The message around a name, if there is one, and the name alone.
fn split(path: &str) -> (Option<&str>, &str) {
    path.rsplit_once('.').map_or((None, path), |(outer, name)| (Some(outer), name))
}

/// The message of a path.
fn find<'a>(messages: &'a mut [DescriptorProto], path: &str) -> Option<&'a mut DescriptorProto> {
    let (first, rest) = path.split_once('.').map_or((path, None), |(first, rest)| (first, Some(rest)));
    let message = messages.iter_mut().find(|message| message.name() == first)?;
    match rest {
        None => Some(message),
        Some(rest) => find(&mut message.nested_type, rest),
    }
}

/// Hands out the list in which the messages inside of `outer` are.
fn place(
    messages: &mut Vec<DescriptorProto>,
    outer: Option<&str>,
    put: impl FnOnce(&mut Vec<DescriptorProto>),
) {
    match outer {
        None => put(messages),
        Some(outer) => {
            if let Some(message) = find(messages, outer) {
                put(&mut message.nested_type);
            }
        }
    }
}

fn enumeration(name: &str, lines: &[&str]) -> EnumDescriptorProto {
    let value = |line: &&str| {
        let (number, name) = line.split_once(' ')?;
        Some(EnumValueDescriptorProto {
            name: Some(name.to_owned()),
            number: number.parse().ok(),
            ..EnumValueDescriptorProto::default()
        })
    };
    EnumDescriptorProto {
        name: Some(name.to_owned()),
        value: lines.iter().filter_map(value).collect(),
        ..EnumDescriptorProto::default()
    }
}

/// The scope in which names of types are read.
struct SchemaScope<'a> {
    package: &'a str,
    /// Paths of all enums.
    enums: &'a [&'a str],
}

impl SchemaScope<'_> {
    fn service(&self, name: &str, lines: &[&str]) -> ServiceDescriptorProto {
        let method = |line: &&str| {
            let mut words = line.split(' ');
            let mut full = || words.next().map(|name| format!(".{}.{name}", self.package));
            let (name, input_type, output_type) = (full()?, full(), full());
            Some(MethodDescriptorProto {
                name: name.rsplit('.').next().map(str::to_owned),
                input_type,
                output_type,
                server_streaming: (words.next() == Some("*")).then_some(true),
                ..MethodDescriptorProto::default()
            })
        };
        ServiceDescriptorProto {
            name: Some(name.to_owned()),
            method: lines.iter().filter_map(method).collect(),
            ..ServiceDescriptorProto::default()
        }
    }

    /// A message. A map is a list of messages that have a key and a value, and an optional field is the only
    /// one of its choice: that is how descriptors write them.
    fn message(&self, path: &str, name: &str, lines: &[&str]) -> DescriptorProto {
        let mut message = DescriptorProto { name: Some(name.to_owned()), ..DescriptorProto::default() };
        let mut optional = Vec::new();
        for line in lines {
            let words: Vec<&str> = line.split(' ').collect();
            let [number, name, kind, marks @ ..] = words.as_slice() else { continue };
            let mut field = self.field(path, number, name, kind);
            if let Some((key, value)) = kind.strip_prefix("map:").and_then(|kinds| kinds.split_once(':')) {
                let entry = format!("{}Entry", camel(name));
                field.set_label(Label::Repeated);
                field.set_type(Type::Message);
                field.type_name = Some(format!(".{}.{path}.{entry}", self.package));
                message.nested_type.push(DescriptorProto {
                    name: Some(entry),
                    field: vec![self.field(path, "1", "key", key), self.field(path, "2", "value", value)],
                    options: Some(MessageOptions { map_entry: Some(true), ..MessageOptions::default() }),
                    ..DescriptorProto::default()
                });
            }
            for mark in marks {
                match mark.strip_prefix('|') {
                    Some(choice) => field.oneof_index = Some(self.choice(&mut message, choice)),
                    None if *mark == "*" => field.set_label(Label::Repeated),
                    None => {
                        field.proto3_optional = Some(true);
                        optional.push(message.field.len());
                    }
                }
            }
            message.field.push(field);
        }
        // The choices of optional fields come behind the others.
        for at in optional {
            let name = format!("_{}", message.field[at].name());
            message.field[at].oneof_index = Some(self.choice(&mut message, &name));
        }
        message
    }

    /// The number of a choice between fields.
    fn choice(&self, message: &mut DescriptorProto, name: &str) -> i32 {
        let found = message.oneof_decl.iter().position(|choice| choice.name() == name);
        let at = found.unwrap_or_else(|| {
            message.oneof_decl.push(OneofDescriptorProto { name: Some(name.to_owned()), options: None });
            message.oneof_decl.len() - 1
        });
        at as i32
    }

    /// A field of a message at `path`.
    fn field(&self, path: &str, number: &str, name: &str, kind: &str) -> FieldDescriptorProto {
        let mut field = FieldDescriptorProto {
            name: Some(name.to_owned()),
            number: number.parse().ok(),
            json_name: Some(lower_camel(name)),
            ..FieldDescriptorProto::default()
        };
        field.set_label(Label::Optional);
        match scalar(kind) {
            Some(scalar) => field.set_type(scalar),
            None => {
                // A name may be one inside of the message, one of the package, or a whole one.
                let inner = format!("{path}.{kind}");
                let is_inner =
                    LINES.lines().any(|line| line.split_once(' ').is_some_and(|(_, name)| name == inner));
                let is_enum = self.enums.contains(&inner.as_str()) || self.enums.contains(&kind);
                field.set_type(if is_enum { Type::Enum } else { Type::Message });
                let package = self.package;
                field.type_name = Some(match (is_inner, kind.contains('.')) {
                    (true, _) => format!(".{package}.{inner}"),
                    (false, true) => format!(".{kind}"),
                    (false, false) => format!(".{package}.{kind}"),
                });
            }
        }
        field
    }
}

fn scalar(kind: &str) -> Option<Type> {
    Some(match kind {
        "string" => Type::String,
        "bytes" => Type::Bytes,
        "bool" => Type::Bool,
        "float" => Type::Float,
        "double" => Type::Double,
        "int32" => Type::Int32,
        "int64" => Type::Int64,
        "uint32" => Type::Uint32,
        "uint64" => Type::Uint64,
        _ => return None,
    })
}

/// A name with capitals in place of `_`.
fn camel(name: &str) -> String {
    let upper = |word: &str| {
        let mut letters = word.chars();
        letters.next().map(|first| first.to_ascii_uppercase()).into_iter().chain(letters).collect::<String>()
    };
    name.split('_').map(upper).collect()
}

/// The name that JSON has.
fn lower_camel(name: &str) -> String {
    let (first, rest) = name.split_once('_').unwrap_or((name, ""));
    format!("{first}{}", camel(rest))
}

#[cfg(test)]
mod tests {
    use super::descriptors;
    use prost_types::DescriptorProto;
    use std::collections::BTreeSet;

    /// Full names of messages and enums, those inside of others included.
    fn names(prefix: &str, messages: &[DescriptorProto], found: &mut BTreeSet<String>) {
        for message in messages {
            let name = format!("{prefix}.{}", message.name());
            found.extend(message.enum_type.iter().map(|inner| format!("{name}.{}", inner.name())));
            names(&name, &message.nested_type, found);
            found.insert(name);
        }
    }

    #[test]
    fn every_type_of_a_field_is_there() {
        let set = descriptors();
        let mut found = BTreeSet::new();
        for file in &set.file {
            let prefix = format!(".{}", file.package());
            found.extend(file.enum_type.iter().map(|inner| format!("{prefix}.{}", inner.name())));
            names(&prefix, &file.message_type, &mut found);
        }
        assert!(found.contains(".vllm.DecodingParameters.StringChoices"), "{found:?}");
        assert!(found.contains(".vllm.DecodingParameters.LogitBiasEntry"), "{found:?}");
        assert!(found.contains(".vllm.FinishInfo.FinishReason"), "{found:?}");
        fn check(messages: &[DescriptorProto], found: &BTreeSet<String>) -> usize {
            let mut fields = 0;
            for message in messages {
                let mut numbers = BTreeSet::new();
                for field in &message.field {
                    assert!(numbers.insert(field.number()), "{} twice in {}", field.number(), message.name());
                    let known = field.type_name.as_ref().is_none_or(|name| found.contains(name));
                    assert!(known, "{}: {:?}", field.name(), field.type_name);
                    assert!(field.oneof_index.is_none_or(|at| (at as usize) < message.oneof_decl.len()));
                }
                fields += message.field.len() + check(&message.nested_type, found);
            }
            fields
        }
        let fields: usize = set.file.iter().map(|file| check(&file.message_type, &found)).sum();
        assert!(fields > 150, "{fields} fields");
        let methods = set.file.iter().flat_map(|file| &file.service).flat_map(|service| &service.method);
        for method in methods {
            assert!(
                found.contains(method.input_type()) && found.contains(method.output_type()),
                "{method:?}"
            );
        }
    }
}
