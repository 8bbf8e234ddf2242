//! Small causes with large effects, by hand: too large for a corpus, too regular for a mutation.

use super::run;
use super::targets::sound::sound_graph;
use super::targets::{TARGETS, check, sound_program};
use kernmill_compiler::pipeline::{CompilerOptions, compile};
use kernmill_kernels_gen::generate::{CodeLimits, GenerateError, generate_within};
use kernmill_plan::check::check_program;
use kernmill_plan::program::{Buffer, Operand, Program, Routing, TokenClass};
use kernmill_plan::target::Level;
use kernmill_runtime::MemoryNeed;
use kernmill_runtime::kv::{KvBudget, KvShape};

/// Gives `data` to the target called `name`.
fn drop_on(name: &str, data: impl AsRef<[u8]>) {
    run(TARGETS.iter().find(|target| target.name == name).expect("listed"), data.as_ref());
}

#[test]
fn nesting_and_chains_do_not_exhaust_the_stack() {
    for unit in ["(", "-", "exp(", "min(", "gate+", "gate*", "-(", "1/"] {
        drop_on("expr", unit.repeat(200_000));
        drop_on("expr", unit.repeat(200_000) + "gate");
    }
    for name in ["config", "safetensors", "tokenizer"] {
        for unit in ["[", "{\"a\":", "\"", "[[],"] {
            let json = unit.repeat(200_000);
            let length = (json.len() as u64).to_le_bytes();
            let prefix = if name == "safetensors" { &length[..] } else { &[] };
            drop_on(name, [prefix, json.as_bytes()].concat());
        }
    }
    for unit in ["a = [", "a = {a = ", "a.", "[a.", "[[a]]\n", "a = \"\"\"\"", "[a]\nb.", "'"] {
        drop_on("spec", unit.repeat(20_000));
    }
    drop_on("spec", format!("a = {}1{}", "[".repeat(50_000), "]".repeat(50_000)));
    for unit in ["-", "not ", "(", "[", "{1:", "1+", "1|abs|", "a.", "a[", "1 if ", "1 and ", "'a'~", "f("] {
        drop_on("chat_template", format!("{{{{ {}1 }}}}", unit.repeat(50_000)));
    }
    for unit in [
        "{% if 1 %}",
        "{% for a in [1] %}",
        "{% macro f() %}",
        "{% set a %}",
        "{% elif 1 %}",
        "{#",
        "{% raw %}",
    ] {
        drop_on("chat_template", unit.repeat(50_000));
        drop_on("chat_template", format!("{{% if 1 %}}{}{{% endif %}}", unit.repeat(50_000)));
    }
    let lists = "{% for i in range(30000) %}{% set n.x = [n.x] %}{% endfor %}{{ n.x }}";
    drop_on("chat_template", format!("{{% set n = namespace(x=[]) %}}{lists}"));
}

/// A spec of one layer of `nodes`, `layers` times.
fn layered(layers: usize, nodes: &str, last: &str) -> String {
    format!(
        "[model]\nname = \"bomb\"\nvocab = 32\nmax_context = 64\n\
         [tensors]\nembed = {{ from = \"e\", shape = [32, 32], format = \"f32\" }}\n\
         [before]\nnode = [{{ out = \"x\", op = \"embed\", table = \"embed\" }}]\n\
         [layer]\ncount = {layers}\ncarry = {{ x = \"{last}\" }}\nnode = [{nodes}]\n\
         [after]\nnode = [{{ out = \"y\", op = \"select_rows\", input = \"x\" }}]\n"
    )
}

#[test]
fn layers_do_not_multiply_without_a_limit() {
    let add =
        |i: usize, of: String| format!("{{ out = \"v{i}\", op = \"add\", inputs = [\"{of}\", \"x\"] }},");
    let chain = |n: usize| -> String {
        (0..n).map(|i| add(i, if i == 0 { "x".into() } else { format!("v{}", i - 1) })).collect()
    };
    drop_on("spec", layered(1024, &chain(400), "v399"));
    drop_on("spec", layered(1, &chain(8000), "v7999"));
    let expr = format!(
        "{{ out = \"v\", op = \"elementwise\", inputs = [\"x\"], expr = \"{}x\" }}",
        "x+".repeat(5000)
    );
    drop_on("spec", layered(1024, &expr, "v"));
    // Blocks in layers are two levels, and a rope of none leaves no node behind.
    let (nothing, used) = (
        |i: usize, of: usize| {
            format!("{{ out = \"v{i}\", op = \"rope\", input = \"v{of}\", rope = \"none\" }},")
        },
        |i: usize, of: usize| format!("{{ out = \"v{i}\", block = \"b\", v0 = \"v{of}\" }},"),
    );
    let first = "{ out = \"v0\", op = \"add\", inputs = [\"x\", \"x\"] },";
    let chained = |of: &dyn Fn(usize, usize) -> String| (1..300).map(|i| of(i, i - 1)).collect::<String>();
    let block = format!("[block.b]\ninputs = [\"v0\"]\nnode = [{}]\n", chained(&nothing));
    drop_on("spec", layered(1024, &format!("{first}{}", chained(&used)), "v299") + &block);
}

#[test]
fn long_names_and_lines_are_compared_and_shown_in_time() {
    let name = "a".repeat(20_000);
    drop_on("spec", format!("[model]\nname = \"m\"\n{name} = 1\n"));
    drop_on(
        "spec",
        format!("[model]\nname = \"m\"\nvocab = \"{name}\"\nmax_context = 1\n[dims]\n{name}b = 1\n"),
    );
    drop_on(
        "spec",
        format!("[model]\nname = \"m\"\nvocab = \"{}\"\nmax_context = 1\n", "\u{1f600}".repeat(5000)),
    );
    drop_on("spec", "\n".repeat(100_000) + "x");
    drop_on("config", format!("{{\"architectures\": [\"{name}\"]}}"));
    drop_on("graph", format!("model \"{name}\" vocab 1 context 1\n").repeat(100));
}

#[test]
fn programs_with_sizes_at_the_limits_are_refused_or_computed_with() {
    let changes: [fn(&mut Program); 9] = [
        |p| p.scratch_bytes = u64::MAX,
        |p| p.arena_bytes = u64::MAX,
        |p| p.classes[1].max_tokens = u32::MAX,
        |p| p.classes[1].routings.iter_mut().for_each(|r| r.top_k = u32::MAX),
        |p| p.classes.iter_mut().for_each(|c| c.routings.iter_mut().for_each(|r| r.experts = u32::MAX)),
        |p| p.model.kv.layers.iter_mut().for_each(|l| l.window = l.window.map(|_| u32::MAX)),
        |p| p.model.kv.layers.clear(),
        |p| p.model.kv.full.kv_heads = usize::MAX,
        |p| p.model.kv.sliding.kv_heads = usize::MAX,
    ];
    for first in changes {
        for second in changes {
            let mut program = sound_program().0.clone();
            first(&mut program);
            second(&mut program);
            check(&program);
        }
    }
}

/// Each of these would keep a check that compares all with all busy for longer than anybody waits.
#[test]
fn programs_of_many_parts_are_refused_in_time() {
    const MANY: usize = 1 << 20;
    let changes: [fn(&mut TokenClass); 6] = [
        |class| {
            let buffer = Buffer { bytes: 0, ..class.buffers[0].clone() };
            class.buffers.resize(MANY, buffer);
        },
        |class| class.steps[0].reads = (0..MANY as u32).collect(),
        |class| class.steps[0].writes = vec![0; MANY],
        |class| class.logit_steps[0].operands = vec![Operand::Buffer(0); MANY],
        |class| class.routings.resize(MANY, class.routings[0]),
        |class| class.steps.resize(MANY / 16, class.steps[0].clone()),
    ];
    for change in changes {
        let mut program = sound_program().0.clone();
        change(&mut program.classes[1]);
        assert!(check_program(&program).is_err());
    }
    let mut program = sound_program().0.clone();
    program.classes = vec![program.classes[0].clone(); MANY / 64];
    for (index, class) in program.classes.iter_mut().enumerate() {
        class.max_tokens = index as u32 + 1;
    }
    assert!(check_program(&program).is_err());
}

/// Every step of a compiled model, with every other kernel of it, and with every operand of it somewhere
/// else.
#[test]
fn steps_that_are_not_their_kernels_are_refused() {
    let (sound, _) = sound_program();
    let (mut tried, mut refused) = (0, 0);
    let mut with = |change: &dyn Fn(&mut Program)| {
        let mut program = sound.clone();
        change(&mut program);
        tried += 1;
        refused += usize::from(check_program(&program).is_err());
        check(&program);
    };
    let kernels = sound.code.symbols.iter().filter(|symbol| symbol.contract.is_some()).count() as u32;
    for step in 0..sound.classes[1].steps.len() {
        for kernel in (0..kernels).filter(|kernel| *kernel != sound.classes[1].steps[step].kernel) {
            with(&|program| program.classes[1].steps[step].kernel = kernel);
        }
        for operand in 0..sound.classes[1].steps[step].operands.len() {
            with(&|program| {
                let end = program.weight_bytes;
                let operand = &mut program.classes[1].steps[step].operands[operand];
                *operand = match *operand {
                    Operand::Weights { .. } => Operand::Weights { offset: end - 64, bytes: 64 },
                    _ => Operand::Weights { offset: 0, bytes: end },
                };
            });
        }
    }
    // Kernels of layers that differ in their window alone take each other's operands, and a norm has no more
    // than a line of weights.
    assert!(refused * 10 > tried * 9, "{refused} of {tried}");
    let mut program = sound.clone();
    program.scratch_bytes = 0;
    let error = check_program(&program).unwrap_err().to_string();
    assert!(error.contains("bytes of scratch, workers have 0"), "{error}");
}

/// A fused-op spec that begins like this.
fn fused(rest: &str) -> String {
    format!("name = \"bomb\"\ndoc = \"x\"\n{rest}")
}

#[test]
fn ops_of_ops_do_not_multiply_without_a_limit() {
    let op = |i: usize, op: &str, keys: [&str; 2]| {
        let [first, second] = keys;
        format!(
            "[[op]]\nname = \"o{i}\"\ndoc = \"x\"\ninputs = [\"x\"]\n\
             node = [{{ out = \"a\", op = \"{op}\", {first} }}, {{ out = \"b\", op = \"{op}\", {second} }}]\n"
        )
    };
    let mut text = op(0, "add", ["inputs = [\"x\", \"x\"]", "inputs = [\"a\", \"a\"]"]);
    (1..60).for_each(|i| text += &op(i, &format!("o{}", i - 1), ["x = \"x\"", "x = \"a\""]));
    drop_on("fused", fused(&text));
}

#[test]
fn functions_of_functions_do_not_multiply_without_a_limit() {
    let mut text = String::new();
    for i in 0..60 {
        let body = if i == 0 { "x + x".to_owned() } else { format!("f{0}(x) + f{0}(x)", i - 1) };
        text += &format!("[[function]]\nname = \"f{i}\"\ndoc = \"x\"\nparams = [\"x\"]\nexpr = \"{body}\"\n");
    }
    drop_on("fused", fused(&text));
}

/// Orders of commutative inputs, and of nodes that can stand for each other, in a pattern whose guard refuses
/// every match.
#[test]
fn patterns_that_fit_in_many_ways_are_given_up() {
    let guard =
        "outputs = [\"last\"]\n[[guard]]\ncheck = \"between\"\ncols = \"last\"\nmax = 0\nwhy = \"never\"\n";
    let node = |name: &str, op: &str, inputs: &str, part: &str| {
        format!("  {{ name = \"{name}\", op = \"{op}\", inputs = [{inputs}], part = \"{part}\" }},\n")
    };
    let mut chain = node("n0", "rms_norm", "\"x\"", "root");
    for i in 1..60 {
        let name = if i == 59 { "last".to_owned() } else { format!("n{i}") };
        chain += &node(&name, "add", &format!("\"n{0}\", \"n{0}\"", i - 1), "epilogue");
    }
    let mut fan = node("n0", "linear", "\"x\"", "root");
    for i in 1..24 {
        let name = if i == 23 { "last".to_owned() } else { format!("n{i}") };
        fan += &node(&name, "linear", "\"x\"", "root");
    }
    for (kernel, nodes) in [("rows", chain), ("matmul", fan)] {
        drop_on("fused", fused(&format!("kernel = \"{kernel}\"\nmatch = [\n{nodes}]\n{guard}")));
    }
}

/// A tokenizer of two tokens with a part of its own.
fn tokenizer_with(part: &str, value: &str) -> String {
    format!(
        r#"{{"version":"1.0","added_tokens":[],"{part}":{value},
            "model":{{"type":"BPE","vocab":{{"a":0,"aa":1}},"merges":[["a","a"]]}}}}"#
    )
}

#[test]
fn tokenizers_do_not_multiply_texts() {
    let list = |kind: &str, key: &str, item: &str, count: usize| {
        let items = vec![item; count].join(",");
        tokenizer_with(kind, &format!(r#"{{"type":"Sequence","{key}":[{items}]}}"#))
    };
    let double = r#"{"type":"Replace","pattern":{"String":"a"},"content":"aa"}"#;
    let prepend = r#"{"type":"Prepend","prepend":"aaaaaaaaaaaaaaaa"}"#;
    let split =
        r#"{"type":"Split","pattern":{"Regex":"(a|b|ab)*c{1,40}"},"behavior":"Isolated","invert":false}"#;
    for count in [2, 8, 40, 1000] {
        drop_on("tokenizer", list("normalizer", "normalizers", double, count));
        drop_on("tokenizer", list("normalizer", "normalizers", prepend, count));
        drop_on("tokenizer", list("decoder", "decoders", double, count));
        drop_on("tokenizer", list("pre_tokenizer", "pretokenizers", split, count));
    }
    let twice = r#"{"type":"TemplateProcessing","single":[{"Sequence":{"id":"A","type_id":0}},
        {"Sequence":{"id":"A","type_id":0}}],"pair":[],"special_tokens":{}}"#;
    drop_on("tokenizer", list("post_processor", "processors", twice, 40));
    let ids = vec!["0"; 500_000].join(",");
    let template = format!(
        r#"{{"type":"TemplateProcessing","single":[{{"SpecialToken":{{"id":"x","type_id":0}}}}],"pair":[],
            "special_tokens":{{"x":{{"id":"x","ids":[{ids}],"tokens":[]}}}}}}"#
    );
    drop_on("tokenizer", tokenizer_with("post_processor", &template));
    drop_on(
        "tokenizer",
        tokenizer_with(
            "decoder",
            &format!(r#"{{"type":"Strip","content":"a","start":0,"stop":{}}}"#, usize::MAX),
        ),
    );
    drop_on("tokenizer", tokenizer_with("decoder", &"[".repeat(500_000)));
}

/// Counters of experts are memory that the program asks for: they are in its account before any is taken.
#[test]
fn counters_of_experts_are_in_the_account_of_memory() {
    for (entries, experts) in [(200, 1 << 16), (4000, 1 << 16), (1000, 5000)] {
        let mut program = sound_program().0.clone();
        for class in &mut program.classes {
            let routing = Routing { experts, ..class.routings[0] };
            class.routings = vec![routing; entries];
        }
        let shape = KvShape { context: 16, sequences: 1, chunk: 1, budget: KvBudget::WorstCase };
        let need = MemoryNeed::of(&program, shape, 1);
        assert!(need.routings >= 16 * entries as u64 * u64::from(experts), "{}", need.routings);
        assert!(need.total() > need.routings);
        let sound = MemoryNeed::of(&sound_program().0, shape, 1);
        let bytes = sound.total() + program.weight_bytes + (1 << 20);
        assert!(need.total() > bytes, "a limit that suffices for the sound program refuses this one");
    }
}

#[test]
fn code_past_its_limits_is_refused_by_the_functions_name() {
    let graph = sound_graph();
    let compiled = compile(&graph, &CompilerOptions::new(Level::V3)).expect("a supported model");
    let within = |limits| generate_within(&compiled.kernels.list, Level::V3, &|_| None, false, limits);
    within(CodeLimits::default()).expect("a small model");
    for limits in [
        CodeLimits { function: 40, ..CodeLimits::default() },
        CodeLimits { all: 900, ..CodeLimits::default() },
    ] {
        let Err(GenerateError::Large { function, found, limit }) = within(limits) else {
            panic!("{limits:?} has no effect")
        };
        assert!(found > limit && (limit == limits.function || limit == limits.all), "{function}: {found}");
        assert!(compiled.program.code.symbols.iter().any(|symbol| symbol.name == function), "{function}");
    }
}
