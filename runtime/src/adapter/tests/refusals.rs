//! Directories that are refused, with what, where and what was expected.

use super::*;
use crate::ErrorKind;
use kernmill_plan::limit;

#[test]
fn what_does_not_fit_is_refused_with_its_place() {
    let q = "0.self_attn.q_proj";
    let a = format!("{PREFIX}{q}.lora_A.weight");
    let in_file = |what: &str| format!("dir/adapter_model.safetensors: {what}");
    let in_config = |what: &str| format!("dir/adapter_config.json: {what}");
    let cases = [
        (
            Draft::of_q().tensor(&a, &[2, 9], None),
            in_file(&format!(
                "tensor `{a}`: has shape [2, 9], expected [2, 8] (rank by columns of the base matrix)"
            )),
        ),
        (
            Draft::of_q().without("0.self_attn.q_proj.lora_B.weight"),
            in_file(
                "`model.layers.0.self_attn.q_proj` lacks `lora_B.weight`; expected both lora_A and lora_B",
            ),
        ),
        (
            Draft::of_q().with("target_modules", json!(["q_proj", "router"])),
            in_file(
                "there is nothing for `model.layers.0.mlp.router`, which adapter_config.json targets: \
                 expected its lora_A and lora_B",
            ),
        ),
        (
            Draft::of_q().with("layers_to_transform", json!(1)),
            in_file(&format!(
                "tensor `{a}`: not one of the targets that adapter_config.json lists, or a second one for the same"
            )),
        ),
        (
            Draft::new(json!({ "target_modules": ["c_attn"] })).pair("0.attn.c_attn", [2, 8], [8, 2]),
            in_file(
                "nothing of it fits the model `small`, such as `model.layers.0.attn.c_attn`: the adapter was \
                 made for small-base",
            ),
        ),
        (
            Draft::of_q().pair("2.self_attn.q_proj", [2, 8], [16, 2]),
            in_file(
                "`model.layers.2.self_attn.q_proj` is no matrix of the model `small` that takes adapters; \
                 the adapter was made for small-base",
            ),
        ),
        (
            Draft::of_q().tensor(&a, &[2, 8], Some(&[[0.0; 10].as_slice(), &[f32::NAN; 6]].concat())),
            in_file(&format!("tensor `{a}`: element [1, 2] is NaN, expected a finite number")),
        ),
        (Draft::of_q().with("r", json!(0)), in_config("`r` has rank 0, expected at least 1")),
        (
            Draft::of_q().with("rank_pattern", json!({ "q_proj": -3 })),
            in_config("`rank_pattern` has rank -3, expected at least 1"),
        ),
        (
            Draft::of_q().with("r", json!(257)),
            in_config("not supported: `model.layers.0.self_attn.q_proj` has rank 257, expected at most 256"),
        ),
        (
            Draft::of_q().with("lora_alpha", json!(1e300)),
            in_config(
                "alpha of `model.layers.0.self_attn.q_proj` gives the factor inf, expected a finite one",
            ),
        ),
        (
            Draft::of_q().with("peft_type", json!("LOHA")),
            in_config("not supported: `peft_type` is LOHA, expected LORA (with or without DoRA)"),
        ),
        (
            Draft::of_q().with("modules_to_save", json!(["lm_head"])),
            in_config(
                "not supported: `modules_to_save` is set: whole trained copies of modules; only LoRA and \
                 DoRA matrices can be added to a base",
            ),
        ),
        (
            Draft::of_q().with("bias", json!("lora_only")),
            in_config("not supported: `bias` is lora_only, trained biases of the base; expected none"),
        ),
        (
            Draft::of_q().with("use_marvel", json!(true)),
            in_config("not supported: `use_marvel` is true, which this version does not know"),
        ),
        (
            Draft::of_q().with("target_modules", json!("(")),
            in_config(
                "`target_modules`: `(` is not a regular expression that can be used: Parsing error at \
                 position 9: Opening parenthesis without closing parenthesis",
            ),
        ),
        (
            Draft::of_q()
                .with("use_dora", json!(true))
                .with("target_parameters", json!(["experts.down_proj"])),
            in_config(
                "not supported: DoRA with `target_parameters`: only dense matrices can have magnitudes",
            ),
        ),
        (
            Draft::new(json!({ "target_parameters": ["experts.down_proj"] })).pair(
                "0.mlp.experts",
                [6, 12],
                [8, 5],
            ),
            in_file(&format!(
                "tensor `{PREFIX}0.mlp.experts.lora_B.weight`: has shape [8, 5], expected [8, 6] (rows by \
                 rank times experts)"
            )),
        ),
        (
            Draft::of_q().tensor("base_model.model.lm_head.weight", &[4], None),
            in_file(
                "not supported: tensor `lm_head.weight`: neither lora_A, lora_B nor lora_magnitude_vector: \
                 perhaps a trained copy of a module (modules_to_save)",
            ),
        ),
        (Draft::new(json!({ "target_modules": [] })), in_file("no tensor of an adapter is in it")),
    ];
    for (draft, expected) in cases {
        let error = draft.load().map(drop).unwrap_err();
        assert_eq!((error.to_string(), error.kind()), (expected, ErrorKind::BadInput));
    }
    let unsupported_init = Draft::of_q().with("init_lora_weights", json!("pissa_niter_4")).refusal();
    assert!(unsupported_init.contains("changes the base weights"), "{unsupported_init}");
    let error = AdapterLoader::open(&loader(), Path::new("nowhere"), 1.0).err().unwrap();
    assert!(
        error.to_string().starts_with("nowhere: there is no such file or directory; expected the directory"),
        "{error}"
    );
    let error = loader().open_bytes(Path::new("dir"), "{}", vec![1, 2], 1.0).err().unwrap();
    assert!(error.to_string().contains("2 bytes long"), "{error}");
}

#[test]
fn configs_and_headers_are_bounded() {
    let keys = |count: usize, key: fn(usize) -> String| -> Value {
        (0..count).map(|n| (key(n), json!(2))).collect::<serde_json::Map<_, _>>().into()
    };
    let with = |setting: &str, value: Value| Draft::of_q().with(setting, value);
    // Plain names are no expressions, however many.
    for setting in ["rank_pattern", "alpha_pattern"] {
        with(setting, keys(1000, |n| format!("model.layers.{n}.self_attn.q_proj"))).load().unwrap();
        with(setting, keys(limit::ADAPTER_PATTERNS, |n| format!("layers\\.{n}\\.q_proj"))).load().unwrap();
        let refused = with(setting, keys(limit::ADAPTER_PATTERNS + 1, |n| format!("(x|{n})"))).refusal();
        assert!(
            refused.ends_with("65 regular expressions, expected at most 64; plain names are not counted")
        );
        // Few, but large ones.
        let refused = with(setting, keys(40, |n| format!("\\w{{20}}_{n}"))).refusal();
        assert!(refused.contains("is not a regular expression that can be used"), "{refused}");
    }
    let names: Vec<String> = (0..100).map(|n| format!("h{n}")).collect();
    let layers = with("layers_to_transform", json!([0, 1])).with("layers_pattern", json!(names));
    assert!(layers.refusal().contains("100 regular expressions"));
    let large = with("target_modules", json!(vec!["q_proj"; 8000])).refusal();
    assert!(large.contains("bytes, expected at most 65536"), "{large}");
    let message = with("peft_type", json!("x".repeat(50_000))).refusal();
    assert!(message.len() < 1000, "{message}");

    let mut file = Draft::of_q().file();
    let more = limit::ADAPTER_HEADER_BYTES as usize;
    let length = u64::from_le_bytes(file[..8].try_into().unwrap()) as usize;
    file.splice(8 + length..8 + length, std::iter::repeat_n(b' ', more));
    file[..8].copy_from_slice(&((length + more) as u64).to_le_bytes());
    let config = Draft::of_q().config.to_string();
    let error = loader().open_bytes(Path::new("dir"), &config, file, 1.0).err().unwrap().to_string();
    assert!(error.ends_with("is over the limit of 4194304 bytes"), "{error}");
}

#[test]
fn an_element_that_cannot_be_used_ends_the_loading() {
    let b = format!("{PREFIX}1.self_attn.q_proj.lora_B.weight");
    let draft = Draft::of_q().tensor(&b, &[16, 2], Some(&[f32::INFINITY; 32]));
    let error = draft.refusal();
    assert!(error.contains("is inf, expected a finite number"), "{error}");
}

#[test]
fn one_tensor_cannot_be_given_twice() {
    let magnitude = format!("{PREFIX}0.self_attn.q_proj.lora_magnitude_vector");
    let dora = (0..2).fold(Draft::of_q().with("use_dora", json!(true)), |draft, layer| {
        draft.tensor(&format!("{PREFIX}{layer}.self_attn.q_proj.lora_magnitude_vector"), &[16], None)
    });
    for (draft, twice) in [
        (Draft::of_q(), "model.layers.0.self_attn.q_proj.lora_A.weight".to_owned()),
        (dora, format!("{magnitude}.weight")),
    ] {
        let shape: &[usize] = if twice.contains("lora_A") { &[2, HIDDEN] } else { &[16] };
        let refusal = draft.tensor(&twice, shape, None).refusal();
        assert!(refusal.contains("a second tensor for the same as"), "{refusal}");
    }
}

/// Plans from elsewhere can say anything of their LoRA targets: adapters for such are refused.
#[test]
fn lora_targets_that_make_no_matrix_together_are_refused() {
    let gguf = |change: fn(&mut Vec<LoraTarget>)| {
        let mut lora_targets = adapters().lora_targets;
        lora_targets.retain(|lora_target| lora_target.name.starts_with("layers.0."));
        let mut gate = lora_targets.remove(2);
        gate.outs.truncate(1);
        gate.outs[0].step = 1;
        let mut up = gate.clone();
        (gate.tensor, up.tensor) = ("blk.0.ffn_gate_exps.weight".into(), "blk.0.ffn_up_exps.weight".into());
        lora_targets.extend([gate, up]);
        change(&mut lora_targets);
        let adapters = Adapters { format: WeightFormat::F32, lora_targets };
        AdapterLoader::new(
            Arc::new(adapters),
            WeightRegion::anonymous(64).unwrap().freeze().unwrap(),
            "small".into(),
        )
    };
    let draft = Draft::new(json!({ "target_parameters": ["experts.gate_up_proj"] }));
    let whole = draft.clone().pair("0.mlp.experts", [2 * EXPERTS, HIDDEN], [2 * FF, 2 * EXPERTS]);
    whole.load_with(&gguf(|_| {})).unwrap();
    let half = draft.pair("0.mlp.experts", [2 * EXPERTS, HIDDEN], [FF, 2 * EXPERTS]);
    let faults: [fn(&mut Vec<LoraTarget>); 5] = [
        |lora_targets| drop(lora_targets.pop()),
        |lora_targets| lora_targets[3].outs[0].rows += 1,
        |lora_targets| lora_targets[4].k += 4,
        |lora_targets| lora_targets[4].experts += 1,
        |lora_targets| lora_targets[4].tensor.replace_range(.., "blk.0.ffn_gate_exps.weight"),
    ];
    for change in faults {
        for draft in [&whole, &half] {
            let refusal = draft.load_with(&gguf(change)).map(drop).unwrap_err().to_string();
            assert!(refusal.contains("gate_up_proj"), "{refusal}");
        }
    }
}
