use super::{LEXICON};
use kernmill_constrain::{Constraint, Rule};
#[test]
fn tmp2() {
    let _ = &*LEXICON;
    let kind = std::env::var("KIND").unwrap();
    let n: usize = std::env::var("N").unwrap().parse().unwrap();
    let rule = match &*kind {
        "paren" => Rule::Lark(format!("start: {}\"a\"{}", "(".repeat(n), ")".repeat(n))),
        "termparen" => Rule::Lark(format!("start: T\nT: {}\"a\"{}", "(".repeat(n), ")".repeat(n))),
        "brack" => Rule::Lark(format!("start: {}\"a\"{}", "[".repeat(n), "]".repeat(n))),
        "not" => Rule::Lark(format!("start: T\nT: {}\"a\"", "~".repeat(n))),
        "star" => Rule::Lark(format!("start: \"a\"{}", "*".repeat(n))),
        "chain" => Rule::Lark(format!("start: r0\n{}r{n}: \"a\"\n", (0..n).map(|i| format!("r{i}: r{}\n", i+1)).collect::<String>())),
        "termchain" => Rule::Lark(format!("start: T0\n{}T{n}: \"a\"\n", (0..n).map(|i| format!("T{i}: T{}\n", i+1)).collect::<String>())),
        "termchain2" => Rule::Lark(format!("start: T0\n{}T{n}: \"a\"\n", (0..n).map(|i| format!("T{i}: \"b\" T{} \"c\" \n", i+1)).collect::<String>())),
        "chaincat" => Rule::Lark(format!("start: r0\n{}r{n}: \"a\"\n", (0..n).map(|i| format!("r{i}: \"b\" r{} | \"c\"\n", i+1)).collect::<String>())),
        "double" => Rule::Lark(format!("start: T0\n{}T{n}: \"a\"\n", (0..n).map(|i| format!("T{i}: T{} T{}\n", i+1, i+1)).collect::<String>())),
        "ruledouble" => Rule::Lark(format!("start: r0\n{}r{n}: \"a\"\n", (0..n).map(|i| format!("r{i}: r{} r{}\n", i+1, i+1)).collect::<String>())),
        "reparen" => Rule::Regex(format!("{}a{}", "(".repeat(n), ")".repeat(n))),
        "restar" => Rule::Regex(format!("a{}", "*".repeat(n))),
        "longre" => Rule::Regex("ab".repeat(n)),
        "orre" => Rule::Regex((0..n).map(|i| format!("w{i}")).collect::<Vec<_>>().join("|")),
        "nestjson" => Rule::Lark(format!("start: %json {}", format!("{}{{}}{}", "{\"items\":".repeat(n), "}".repeat(n)))),
        "anyof" => Rule::JsonSchema(serde_json::json!({"allOf": (0..n).map(|i| serde_json::json!({"anyOf":(0..n).map(|j| serde_json::json!({"type":"integer","minimum": i*j})).collect::<Vec<_>>()})).collect::<Vec<_>>()})),
        "anyofobj" => Rule::JsonSchema(serde_json::json!({"allOf": (0..n).map(|i| serde_json::json!({"anyOf":(0..2).map(|j| serde_json::json!({"type":"object","properties": {format!("p{i}"): {"const": j}}})).collect::<Vec<_>>()})).collect::<Vec<_>>()})),
        "allofpat" => Rule::JsonSchema(serde_json::json!({"allOf": (0..n).map(|i| serde_json::json!({"type":"string","pattern": format!(".*a.{{{i}}}b.*")})).collect::<Vec<_>>()})),
        "ranges" => Rule::JsonSchema(serde_json::json!({"anyOf": (0..n).map(|i| serde_json::json!({"type":"integer","minimum": i*977, "maximum": (i as u64) << 40})).collect::<Vec<_>>()})),
        "numranges" => Rule::JsonSchema(serde_json::json!({"anyOf": (0..n).map(|i| serde_json::json!({"type":"number","minimum": i as f64*0.977, "maximum": 1e15 + i as f64})).collect::<Vec<_>>()})),
        "enum" => Rule::JsonSchema(serde_json::json!({"enum": (0..n).map(|i| format!("word{}", i.wrapping_mul(0x9e3779b9) % 1_000_003)).collect::<Vec<_>>()})),
        "props" => Rule::JsonSchema(serde_json::json!({"type":"object","additionalProperties":true,"properties": (0..n).map(|i| (format!("word{}", i.wrapping_mul(0x9e3779b9) % 1_000_003), serde_json::json!({"type":"integer"}))).collect::<serde_json::Map<_,_>>()})),
        "patprops" => Rule::JsonSchema(serde_json::json!({"type":"object","patternProperties": (0..n).map(|i| (format!("^{}a", ".".repeat(i)), serde_json::json!({"type":"integer"}))).collect::<serde_json::Map<_,_>>()})),
        "refs" => Rule::JsonSchema(serde_json::json!({"$ref":"#/$defs/d0","$defs": (0..=n).map(|i| (format!("d{i}"), if i==n {serde_json::json!({"type":"integer"})} else {serde_json::json!({"allOf":[{"$ref":format!("#/$defs/d{}",i+1)},{"$ref":format!("#/$defs/d{}",i+1)}]})})).collect::<serde_json::Map<_,_>>()})),
        "refsobj" => Rule::JsonSchema(serde_json::json!({"$ref":"#/$defs/d0","$defs": (0..=n).map(|i| (format!("d{i}"), if i==n {serde_json::json!({"type":"integer"})} else {serde_json::json!({"anyOf":[{"$ref":format!("#/$defs/d{}",i+1)},{"type":"object","properties":{"a":{"$ref":format!("#/$defs/d{}",i+1)}}}]})})).collect::<serde_json::Map<_,_>>()})),
        "refchain" => Rule::JsonSchema(serde_json::json!({"$ref":"#/$defs/d0","$defs": (0..=n).map(|i| (format!("d{i}"), if i==n {serde_json::json!({"type":"integer"})} else {serde_json::json!({"$ref":format!("#/$defs/d{}",i+1)})})).collect::<serde_json::Map<_,_>>()})),
        _ => panic!(),
    };
    let t = std::time::Instant::now();
    let c = Constraint::new(&LEXICON, &rule);
    println!("{kind} {n}: {:>8.1} ms {:?}", t.elapsed().as_secs_f64()*1e3, c.map(|_| ()).map_err(|e| e.to_string().chars().take(200).collect::<String>()));
}
