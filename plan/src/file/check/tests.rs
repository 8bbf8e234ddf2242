//! Files put together by hand, each with one thing wrong.

use super::*;
use crate::chat::{
    ChatToken, NAME_BYTES, NamedTemplate, TEMPLATES, TOKEN_BYTES, TOKENS, TextPrompts, TokenName,
};
use crate::contract::{Contract, Need};
use crate::file::{
    ENTRY_BYTES, FusedSpecText, HEADER_BYTES, HEADER_HASH_OFFSET, MAGIC, MAX_SECTIONS, SECTION_ALIGN,
    TABLE_OFFSET, TargetInfo, TensorInfo, VERSION, WEIGHT_ALIGN,
};
use crate::kv::{KvFormat, KvGeometry, KvLayers, KvPair};
use crate::limit;
use crate::program::{
    ItemReads, ModelInfo, Operand, OperandReads, Routing, Step, StepWork, Symbol, TokenClass, WeightReads,
};
use crate::vectors::ModelOutput;

const WEIGHTS: usize = 1000;
const PIECES: [usize; 2] = [300, 700];

fn metadata() -> Metadata {
    let geometry =
        KvGeometry { kv_heads: 1, head_dim: 16, v_head_dim: 16, formats: KvPair::both(KvFormat::F16) };
    let tensor = |name: &str, offset, bytes| TensorInfo {
        name: name.to_owned(),
        format: "f32".to_owned(),
        shape: vec![bytes / 4],
        offset,
        bytes,
        int4_error: None,
    };
    Metadata {
        producer: "a test".to_owned(),
        model: ModelInfo {
            name: "none".to_owned(),
            preset: "exact".to_owned(),
            vocab: 10,
            output: ModelOutput::Logits,
            max_context: 20,
            kv: KvLayers { full: geometry, sliding: geometry, layers: Vec::new() },
            ropes: Vec::new(),
            whole_texts: false,
            decode_bytes: 0,
            adapters: None,
        },
        chunk: 1,
        fused: true,
        fused_specs: Vec::new(),
        weight_bytes: WEIGHTS as u64,
        tensors: vec![tensor("a", 0, 320), tensor("b", 320, 680)],
        end_tokens: vec![9],
        targets: vec![TargetInfo { level: "x86-64-v3".to_owned(), features: Vec::new(), abi: 1 }],
    }
}

/// Sections with their contents, in order.
type Parts = Vec<(u32, u32, Vec<u8>)>;

fn weights() -> Vec<u8> {
    (0..WEIGHTS).map(|n| n as u8).collect()
}

fn parts(metadata: &Metadata) -> Parts {
    let weights = weights();
    let (first, second) = weights.split_at(PIECES[0]);
    let piece =
        |bytes: &[u8]| [&(bytes.len() as u64).to_le_bytes()[..], blake3::hash(bytes).as_bytes()].concat();
    vec![
        (1, 0, postcard::to_allocvec(metadata).unwrap()),
        (2, 0, b"[model]".to_vec()),
        (4, 0, b"{{ messages }}".to_vec()),
        (5, 0, b"no program".to_vec()),
        (6, 0, b"no code".to_vec()),
        (7, 0, [piece(first), piece(second)].concat()),
        (8, 0, weights),
    ]
}

fn file(parts: &Parts) -> Vec<u8> {
    let mut file = vec![0; HEADER_BYTES];
    for (index, (kind, target, bytes)) in parts.iter().enumerate() {
        let align = if *kind == 8 { WEIGHT_ALIGN } else { SECTION_ALIGN };
        file.resize(file.len().next_multiple_of(align as usize), 0);
        let entry = TABLE_OFFSET + index * ENTRY_BYTES;
        let (offset, length) = (file.len() as u64, bytes.len() as u64);
        file[entry..entry + 4].copy_from_slice(&kind.to_le_bytes());
        file[entry + 4..entry + 8].copy_from_slice(&target.to_le_bytes());
        file[entry + 8..entry + 16].copy_from_slice(&offset.to_le_bytes());
        file[entry + 16..entry + 24].copy_from_slice(&length.to_le_bytes());
        if *kind != 8 {
            file[entry + 32..entry + 64].copy_from_slice(blake3::hash(bytes).as_bytes());
        }
        file.extend_from_slice(bytes);
    }
    let length = file.len() as u64;
    file[..8].copy_from_slice(&MAGIC);
    file[8..12].copy_from_slice(&VERSION.to_le_bytes());
    file[12..16].copy_from_slice(&(HEADER_BYTES as u32).to_le_bytes());
    file[16..24].copy_from_slice(&length.to_le_bytes());
    file[24..28].copy_from_slice(&(parts.len() as u32).to_le_bytes());
    sign(file)
}

/// Gives the header the hash that fits it.
fn sign(mut file: Vec<u8>) -> Vec<u8> {
    let place = HEADER_HASH_OFFSET..HEADER_HASH_OFFSET + 32;
    file[place.clone()].fill(0);
    let hash = blake3::hash(&file[..HEADER_BYTES]);
    file[place].copy_from_slice(hash.as_bytes());
    file
}

#[track_caller]
fn refused(file: &[u8], parts: &[&str]) {
    let message = PlanFile::open(file).expect_err("it has a fault").to_string();
    for part in parts {
        assert!(message.contains(part), "`{part}` is not in: {message}");
    }
}

#[test]
fn a_sound_file_gives_back_what_is_in_it() {
    let bytes = file(&parts(&metadata()));
    let plan = PlanFile::open(&bytes[..]).unwrap();
    assert_eq!(*plan.metadata(), metadata());
    assert_eq!(plan.spec().unwrap(), "[model]");
    assert_eq!(plan.tokenizer_json().unwrap(), None);
    let chat = plan.chat_templates().unwrap();
    assert_eq!(chat.default_template().unwrap().text, "{{ messages }}");
    assert_eq!((chat.templates.len(), chat.tokens.len(), chat.fault), (1, 0, None));
    assert_eq!(plan.weights().offset, WEIGHT_ALIGN);
    assert_eq!(&bytes[plan.weights().offset as usize..], weights());
    let error = plan.program(0).unwrap_err().to_string();
    assert!(error.starts_with("section `program 0`: "), "{error}");
    assert_eq!(plan.program(1).unwrap_err().to_string(), "there is no target 1, the plan has 1");
}

#[test]
fn wrong_headers_say_what_is_wrong() {
    let good = file(&parts(&metadata()));
    let with = |at: usize, byte: u8| {
        let mut file = good.clone();
        file[at] = byte;
        file
    };
    refused(b"", &["not a kernmill plan"]);
    refused(b"GGUF this is something else", &["not a kernmill plan"]);
    refused(&MAGIC, &["the file has 8 bytes, expected 4096"]);
    refused(&good[..good.len() - 1], &["was cut off"]);
    refused(&[&good[..], b"\0"].concat(), &["something was added"]);
    refused(&with(8, 2), &["format version 2", "version 10", "compile the model anew"]);
    refused(&with(200, 1), &["its hash does not fit"]);
    refused(&sign(with(28, 1)), &["bytes without meaning"]);
    refused(&sign(with(4000, 1)), &["bytes without meaning"]);
    refused(&sign(with(13, 0)), &["it says 0 bytes, expected 4096"]);
    refused(&sign(with(24, 64)), &["64 sections"]);
    refused(&sign(with(TABLE_OFFSET, 99)), &["section 0 is of unknown kind 99"]);
    refused(&sign(with(TABLE_OFFSET, 2)), &["`spec`: it stands where `metadata` was expected"]);
    refused(&sign(with(TABLE_OFFSET + 8, 1)), &["starts at byte 4097, expected a multiple of 64"]);
    refused(&sign(with(TABLE_OFFSET + ENTRY_BYTES + 9, 0)), &["before byte", "where the one before ends"]);
    refused(&sign(with(TABLE_OFFSET + 6 * ENTRY_BYTES + 22, 1)), &["`weights`", "pass the file's end"]);
    refused(&with(HEADER_BYTES + 3, 0xff), &["section `metadata` is damaged"]);
    refused(&with(WEIGHT_ALIGN as usize - 1, 1), &["`weights`: the bytes before it are not zero"]);
}

#[test]
fn sections_in_another_order_or_missing_are_refused() {
    let order = |change: fn(&mut Parts)| {
        let mut parts = parts(&metadata());
        change(&mut parts);
        file(&parts)
    };
    refused(&order(|p| p.swap(1, 2)), &["`chat template`: it stands where `spec` was expected"]);
    refused(&order(|p| drop(p.remove(4))), &["where `code` was expected"]);
    refused(&order(|p| p[3].1 = 1), &["`program 1`: it stands where `weight hashes` was expected"]);
    refused(&order(|p| drop(p.pop())), &["there is no section `weights`"]);
    refused(&order(|p| p.push((8, 0, vec![1]))), &["`weights`: it comes after the weights"]);
}

/// A file with a section `chat` behind that of the default template.
fn with_chat(bytes: Vec<u8>) -> Vec<u8> {
    let mut parts = parts(&metadata());
    parts.insert(3, (9, 0, bytes));
    file(&parts)
}

#[test]
fn other_chat_templates_and_their_tokens_come_back() {
    let token = |name: &str, token| ChatToken { name: name.to_owned(), token };
    let section = ChatSection {
        named: vec![NamedTemplate { name: "tool_use".to_owned(), text: "{{ tools }}".to_owned() }],
        tokens: vec![
            token("bos_token", TokenName::Id(7)),
            token("eos_token", TokenName::Text("<e>".to_owned())),
        ],
        fault: Some("why".to_owned()),
        is_given: true,
        prompts: TextPrompts {
            named: vec![NamedTemplate { name: "query".to_owned(), text: "Query: ".to_owned() }],
            default: Some("query".to_owned()),
        },
    };
    let bytes = with_chat(postcard::to_allocvec(&section).unwrap());
    let chat = PlanFile::open(&bytes[..]).unwrap().chat_templates().unwrap();
    assert_eq!(chat.default_template().unwrap().text, "{{ messages }}");
    assert_eq!(chat.tool_template().unwrap().text, "{{ tools }}");
    assert_eq!(
        (chat.tokens, chat.fault, chat.is_given, chat.prompts),
        (section.tokens.clone(), section.fault.clone(), true, section.prompts.clone())
    );
    let refused = |section: &ChatSection| {
        let bytes = with_chat(postcard::to_allocvec(section).unwrap());
        let error = PlanFile::open(&bytes[..]).unwrap().chat_templates().unwrap_err().to_string();
        assert!(error.starts_with("section `chat`: "), "{error}");
    };
    refused(&ChatSection { named: vec![section.named[0].clone(); TEMPLATES + 1], ..section.clone() });
    refused(&ChatSection { tokens: vec![section.tokens[0].clone(); TOKENS + 1], ..section.clone() });
    let long = TokenName::Text("x".repeat(TOKEN_BYTES + 1));
    refused(&ChatSection { tokens: vec![token("bos_token", long)], ..section.clone() });
    refused(&ChatSection { tokens: vec![token(&"x".repeat(NAME_BYTES + 1), TokenName::Id(0))], ..section });
}

#[test]
fn chat_templates_stand_behind_the_default_one_and_are_bounded() {
    let mut before = parts(&metadata());
    before.insert(2, (9, 0, Vec::new()));
    refused(&file(&before), &["`chat template`: it stands where `weight hashes` was expected"]);
    let long = SectionKind::Chat.max_bytes() as usize + 1;
    refused(&with_chat(vec![0; long]), &["section `chat`", "expected at most"]);
}

#[test]
fn metadata_must_fit_the_file() {
    let with = |change: fn(&mut Metadata)| {
        let mut metadata = metadata();
        change(&mut metadata);
        file(&parts(&metadata))
    };
    refused(&with(|m| m.targets.clear()), &["it describes 0 targets, the file has 1"]);
    refused(&with(|m| m.weight_bytes = 7), &["it says 7 bytes of weights, the file has 1000"]);
    refused(&with(|m| m.tensors[1].bytes = u64::MAX), &["tensor b", "pass the weights' end at 1000"]);
    refused(&with(|m| m.end_tokens[0] = 10), &["end token 10, the vocabulary has 10"]);
    let mut longer = parts(&metadata());
    longer[0].2.push(0);
    refused(&file(&longer), &["`metadata`: 1 bytes too many"]);
}

/// A byte of the metadata may stand for an element of dozens of bytes in memory.
#[test]
fn lists_and_sections_are_bounded() {
    let with = |change: fn(&mut Metadata)| {
        let mut metadata = metadata();
        change(&mut metadata);
        file(&parts(&metadata))
    };
    let empty = || TensorInfo {
        name: String::new(),
        shape: Vec::new(),
        offset: 0,
        bytes: 0,
        ..metadata().tensors[0].clone()
    };
    let changes: [fn(&mut Metadata); 6] = [
        |m| m.targets[0].features = vec![String::new(); 65],
        |m| m.targets[0].features = vec!["x".repeat(33)],
        |m| m.targets = vec![m.targets[0].clone(); MAX_SECTIONS + 1],
        |m| m.tensors[0].shape = vec![1; 9],
        |m| m.end_tokens = vec![0; 4097],
        |m| m.fused_specs = vec![FusedSpecText { name: String::new(), text: String::new() }; 1025],
    ];
    for change in changes {
        refused(&with(change), &["section `metadata`", "a list or text in it is longer than any plan has"]);
    }
    let mut many = metadata();
    many.tensors = vec![empty(); 65537];
    refused(&file(&parts(&many)), &["longer than any plan has"]);
    many.tensors.truncate(65536);
    many.targets[0].features = vec!["y".repeat(32); 64];
    assert!(PlanFile::open(&file(&parts(&many))[..]).is_ok());

    for (section, kind) in
        [(0, SectionKind::Metadata), (1, SectionKind::Spec), (2, SectionKind::ChatTemplate)]
    {
        let mut large = parts(&metadata());
        large[section].2 = vec![0; kind.max_bytes() as usize + 1];
        let most = format!("expected at most {}", kind.max_bytes());
        refused(&file(&large), &[&format!("section `{}`", kind.name()), &most]);
    }
}

/// A target's program of one class of one step.
fn small_program() -> TargetProgram {
    let step = Step {
        label: "step".to_owned(),
        kernel: 0,
        operands: Vec::new(),
        reads: Vec::new(),
        writes: Vec::new(),
        lora_targets: Vec::new(),
        work: StepWork::default(),
        weight_reads: WeightReads::default(),
    };
    let class = TokenClass {
        max_tokens: 1,
        steps: vec![step],
        logit_steps: Vec::new(),
        logits: 0,
        buffers: Vec::new(),
        routings: Vec::new(),
        wanted_only: None,
    };
    let contract = Contract {
        operands: Vec::new(),
        scratch_bytes: 0,
        max_tokens: 1,
        max_context: 1,
        listed_tiles: 0,
        whole_texts: false,
    };
    let symbol = Symbol { name: "kernel".to_owned(), offset: 0, size: 1, contract: Some(contract) };
    TargetProgram { classes: vec![class], arena_bytes: 0, scratch_bytes: 0, symbols: vec![symbol] }
}

#[test]
fn lists_of_programs_are_bounded_while_they_are_read() {
    let message = |change: &dyn Fn(&mut TargetProgram)| {
        let mut program = small_program();
        change(&mut program);
        let mut parts = parts(&metadata());
        parts[3].2 = postcard::to_allocvec(&program).unwrap();
        let file = file(&parts);
        PlanFile::open(&file[..]).unwrap().program(0).unwrap_err().to_string()
    };
    let step = |p: &mut TargetProgram, change: fn(&mut Step)| change(&mut p.classes[0].steps[0]);
    let routing = Routing { step: 0, buffer: 0, top_k: 1, experts: 65536 };
    let reads = OperandReads { operand: 0, pieces: 0, bytes: 0, stride: 0, expert_stride: 0 };
    let part = || ItemReads { items: 0, operands: Vec::new() };
    let changes: [&dyn Fn(&mut TargetProgram); 12] = [
        &|p| p.classes = vec![p.classes[0].clone(); limit::CLASSES + 1],
        &|p| p.symbols = vec![Symbol { contract: None, ..p.symbols[0].clone() }; limit::SYMBOLS + 1],
        &|p| p.symbols[0].contract.as_mut().unwrap().operands = vec![Need::Rope { rotary_dim: 2 }; 257],
        &|p| p.classes[0].steps = vec![p.classes[0].steps[0].clone(); limit::STEPS + 1],
        &|p| p.classes[0].logit_steps = vec![p.classes[0].steps[0].clone(); limit::STEPS + 1],
        &|p| p.classes[0].routings = vec![routing; limit::STEPS + 1],
        &|p| step(p, |s| s.operands = vec![Operand::Buffer(0); limit::OPERANDS + 1]),
        &|p| step(p, |s| s.reads = vec![0; limit::OPERANDS + 1]),
        &|p| step(p, |s| s.lora_targets = vec![0; 100_000]),
        &|p| step(p, |s| s.weight_reads.whole = vec![0; 1000]),
        &|p| p.classes[0].steps[0].weight_reads.parts = vec![part(); 257],
        &|p| {
            p.classes[0].steps[0].weight_reads.parts =
                vec![ItemReads { items: 0, operands: vec![reads; 257] }]
        },
    ];
    for change in changes {
        let message = message(change);
        assert!(message.contains("a list or text in it is longer than any plan has"), "{message}");
    }
    // Text within the limits is read, and refused for its contents.
    for routings in [1, 3000] {
        let message = message(&|p| p.classes[0].routings = vec![routing; routings]);
        assert!(!message.contains("longer than any plan has"), "{message}");
    }
}

#[test]
fn damaged_weights_are_found_with_their_tensors() {
    let mut parts = parts(&metadata());
    // There is no program to verify in a plan without targets.
    parts.drain(3..5);
    let no_targets = Metadata { targets: Vec::new(), ..metadata() };
    parts[0].2 = postcard::to_allocvec(&no_targets).unwrap();
    let good = file(&parts);
    let verify = |file: &[u8]| PlanFile::open(file).unwrap().verify(2, &|_| {}).map_err(|e| e.to_string());
    assert_eq!(verify(&good), Ok(()));
    for (at, tensors) in [(299, "bytes 0 to 300 (a)"), (300, "bytes 300 to 1000 (a, b)"), (999, "(a, b)")] {
        let mut damaged = good.clone();
        damaged[WEIGHT_ALIGN as usize + at] ^= 1;
        let message = verify(&damaged).unwrap_err();
        assert!(message.contains(tensors), "{message}");
    }
    parts[3].2.truncate(40);
    assert_eq!(
        verify(&file(&parts)).unwrap_err(),
        "section `weight hashes`: its pieces have 300 bytes, the weights 1000"
    );
    parts[3].2[7] = 1;
    assert!(verify(&file(&parts)).unwrap_err().contains("expected 1 to"));
}
