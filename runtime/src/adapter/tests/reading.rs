//! Directories that are read.

use super::*;
use crate::adapter::factors::{unpack_a, unpack_b};
use kernmill_checkpoint::peft::PeftAdapter;
use kernmill_checkpoint::peft::targets;

#[test]
fn factors_land_where_kernels_read_them() {
    let adapter = Draft::of_q().load().unwrap();
    let shapes: Vec<bool> = adapter.packed.layouts().iter().map(Option::is_some).collect();
    assert_eq!(shapes, [true, false, false, false, true, false, false, false]);
    let layout = adapter.packed.layouts()[4].as_ref().unwrap();
    let a = unpack_a(&adapter.lora_targets, &adapter.packed, 4, 0);
    assert_eq!(a, (1..=16).map(|i| i as f32).collect::<Vec<f32>>());
    assert_eq!((layout.rank(), adapter.scales[4].as_slice()), (2, &[2.0, 2.0][..]));
    assert!(adapter.notes.is_empty());
}

/// Element `[row, r]` of an expert's B, and `[r, i]` of its A, at a LoRA target.
fn element_of_experts(adapter: &Adapter, lora_target: usize, expert: usize) -> (Vec<f32>, Vec<f32>) {
    let a = unpack_a(&adapter.lora_targets, &adapter.packed, lora_target, expert);
    let b = unpack_b(&adapter.lora_targets, &adapter.packed, lora_target, expert);
    (a, b)
}

#[test]
fn experts_interleave_as_in_peft() {
    // A [expert, rank][k], B [row][rank, expert]: PEFT 0.21's ParamWrapper.get_delta_weight.
    let draft = Draft::new(json!({ "target_parameters": ["experts.gate_up_proj", "experts.down_proj"] }));
    let draft = (0..2).fold(draft, |draft, layer| {
        draft
            .pair(&format!("{layer}.mlp.experts.base_layer"), [2 * EXPERTS, HIDDEN], [2 * FF, 2 * EXPERTS])
            .pair(&format!("{layer}.mlp.experts"), [2 * EXPERTS, FF], [HIDDEN, 2 * EXPERTS])
    });
    let adapter = draft.load().unwrap();
    let (a, b) = element_of_experts(&adapter, 2, 1);
    assert_eq!(a[0], (2 * HIDDEN + 1) as f32, "A's row of expert 1, rank 0");
    assert_eq!(a[HIDDEN + 3], (3 * HIDDEN + 3 + 1) as f32);
    let in_file =
        |row: usize, rank: usize, expert: usize| (row * 2 * EXPERTS + rank * EXPERTS + expert + 1) as f32;
    for row in 0..2 * FF {
        assert_eq!(b[row * 2..][..2], [in_file(row, 0, 1), in_file(row, 1, 1)], "row {row}");
    }

    // The other way round: A [expert, rank][row], B [k][rank, expert].
    let draft = Draft::new(json!({ "target_parameters": ["experts.gate_up_proj"] }));
    let draft = (0..2).fold(draft, |draft, layer| {
        draft.pair(&format!("{layer}.mlp.experts"), [2 * EXPERTS, 2 * FF], [HIDDEN, 2 * EXPERTS])
    });
    let (a, b) = element_of_experts(&draft.load().unwrap(), 6, 2);
    for r in 0..2 {
        for i in 0..HIDDEN {
            assert_eq!(a[r * HIDDEN + i], in_file(i, r, 2));
        }
        for row in 0..2 * FF {
            assert_eq!(b[row * 2 + r], ((2 * 2 + r) * 2 * FF + row + 1) as f32);
        }
    }
}

#[test]
fn settings_of_peft_are_followed() {
    // Only layer 1, with a rank and an alpha of its own.
    let draft = Draft::new(json!({
        "target_modules": ["q_proj"], "layers_to_transform": [1], "use_rslora": true,
        "rank_pattern": { "layers.0.self_attn.q_proj": 7, "q_proj": 4 }, "alpha_pattern": { "^model.layers.1.*": 6.0 },
    }));
    let adapter = draft.pair("1.self_attn.q_proj", [4, HIDDEN], [16, 4]).load().unwrap();
    assert_eq!(adapter.scales[4], [3.0; 4]);

    // One string is a pattern for whole names; what it excludes is not expected.
    let draft = Draft::of_q().with("target_modules", json!(r".*\.(q|v)_proj|lm_head"));
    draft.with("fan_in_fan_out", json!(true)).load().unwrap();
    let draft =
        Draft::of_q().without("1.self_attn.q_proj.lora_A.weight").without("1.self_attn.q_proj.lora_B.weight");
    draft.clone().with("exclude_modules", json!(["1.self_attn.q_proj"])).load().unwrap();
    draft.with("target_modules", json!("all-linear")).load().unwrap();

    // A router is a parameter to PEFT; what is left of a quantised base's training does not matter.
    let draft = Draft::of_q().with("target_parameters", json!(["mlp.router.weight"]));
    let draft =
        (0..2).fold(draft, |d, layer| d.pair(&format!("{layer}.mlp.router"), [2, HIDDEN], [EXPERTS, 2]));
    let trained =
        [("inference_mode", json!(true)), ("loftq_config", json!({})), ("qalora_group_size", json!(16))];
    trained.into_iter().fold(draft, |draft, (key, value)| draft.with(key, value)).load().unwrap();
}

#[test]
fn dora_factors_bring_rows_to_their_magnitude() {
    let magnitude: Vec<f32> = (1..=16).map(|i| i as f32).collect();
    let draft = (0..2).fold(Draft::of_q().with("use_dora", json!(true)), |draft, layer| {
        let name = format!("{PREFIX}{layer}.self_attn.q_proj.lora_magnitude_vector");
        draft.tensor(&name, &[16], Some(&magnitude))
    });
    let adapter = draft.load().unwrap();
    let layout = adapter.packed.layouts()[0].as_ref().unwrap();
    let entry = layout.entry(std::ptr::null());
    for (row, magnitude) in magnitude.iter().enumerate() {
        let at = entry.factor as usize + 4 * row;
        let factor = f32::from_le_bytes(adapter.packed.as_slice()[at..at + 4].try_into().unwrap());
        let b = [(2 * row + 1) as f32, (2 * row + 2) as f32];
        let element = |i: usize| 1.0 + 2.0 * (b[0] * (i + 1) as f32 + b[1] * (i + 9) as f32);
        let length = (0..HIDDEN).map(|i| element(i) * element(i)).sum::<f32>().sqrt();
        assert!((factor - magnitude / length).abs() < 1e-6 * factor, "row {row}");
    }
    let lacking = draft.clone().without("1.self_attn.q_proj.lora_magnitude_vector").refusal();
    assert_eq!(
        lacking,
        "dir/adapter_model.safetensors: `model.layers.1.self_attn.q_proj.lora_magnitude_vector` is missing, \
         which use_dora asks for"
    );
    assert!(draft.with("use_dora", json!(false)).refusal().ends_with("a magnitude, and use_dora is not set"));
}

#[test]
fn one_way_round_must_be_known_and_the_same() {
    // Experts of 12 by 12 would fit both ways.
    let mut square = adapters();
    square
        .lora_targets
        .iter_mut()
        .filter(|lora_target| lora_target.outs[0].rows as usize == HIDDEN)
        .for_each(|lora_target| lora_target.outs[0].rows = 12);
    let try_read = |draft: &Draft| {
        let config = draft.config.to_string();
        PeftAdapter::from_bytes(Path::new("dir"), &config, draft.file(), &square, "small")
    };
    let read = |draft: &Draft| try_read(draft).map_err(|error| error.to_string()).unwrap();
    let down = Draft::new(json!({ "target_parameters": ["experts.down_proj"] }));
    let down = (0..2).fold(down, |d, layer| d.pair(&format!("{layer}.mlp.experts"), [6, FF], [FF, 6]));
    let alone = read(&down);
    assert!(alone.notes[0].contains("nothing else shows which way round"), "{:?}", alone.notes);
    let both = down.with("target_parameters", json!(["experts.down_proj", "experts.gate_up_proj"]));
    let inner = |draft: Draft, layer: usize, a: [usize; 2], b: [usize; 2]| {
        draft.pair(&format!("{layer}.mlp.experts.base_layer"), a, b)
    };
    let swapped = (0..2).fold(both.clone(), |d, layer| inner(d, layer, [6, 2 * FF], [HIDDEN, 6]));
    assert!(read(&swapped).parts.iter().all(|part| part.swapped));
    let mixed = inner(inner(both, 0, [6, 2 * FF], [HIDDEN, 6]), 1, [6, HIDDEN], [2 * FF, 6]);
    let error = try_read(&mixed).map(|_| ()).unwrap_err().to_string();
    assert!(error.contains("the other way round than those of other experts"), "{error}");
}

#[test]
fn combinations_are_one_adapter_with_all_ranks() {
    let loader = loader();
    let plain = Arc::new(Draft::of_q().load_with(&loader).unwrap());
    let other = Draft::new(json!({ "r": 3, "lora_alpha": 3, "target_modules": ["q_proj", "mlp.router"] }));
    let other = (0..2).fold(other, |draft, layer| {
        draft.pair(&format!("{layer}.self_attn.q_proj"), [3, HIDDEN], [16, 3]).pair(
            &format!("{layer}.mlp.router"),
            [3, HIDDEN],
            [EXPERTS, 3],
        )
    });
    let other = Arc::new(other.load_with(&loader).unwrap());
    let parts = [(Arc::clone(&plain), 0.5), (Arc::clone(&other), -1.0)];
    let both = loader.combine(&parts).unwrap().run().unwrap();
    assert_eq!(both.scales[0], [1.0, 1.0, -1.0, -1.0, -1.0]);
    assert_eq!(both.scales[1], [-1.0; 3]);
    let unpack = |adapter: &Adapter| {
        let a = unpack_a(&adapter.lora_targets, &adapter.packed, 0, 0);
        (a, unpack_b(&adapter.lora_targets, &adapter.packed, 0, 0))
    };
    let ((a0, b0), (a1, b1), (a, b)) = (unpack(&plain), unpack(&other), unpack(&both));
    assert_eq!(a, [a0, a1].concat());
    for row in 0..16 {
        assert_eq!(b[row * 5..][..5], [&b0[row * 2..][..2], &b1[row * 3..][..3]].concat());
    }

    let many = vec![(plain, 1.0); 129];
    let error = loader.combine(&many).err().unwrap();
    assert_eq!(
        error.to_string(),
        "the adapters' ranks add up to 258 at layers.0.weight, expected at most 256"
    );
    assert!(loader.combine(&[(other, f32::NAN)]).is_err());
}

#[test]
fn every_fixture_of_peft_names_its_targets() {
    // The names that PEFT writes are the ones that the program's tensors lead to.
    let names: Vec<String> = targets(&adapters()).unwrap().into_iter().map(|target| target.module).collect();
    let archive = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../tests/fixtures/adapters.tar");
    let file = format!("everything/{}", kernmill_checkpoint::peft::TENSOR_FILE);
    let tar = std::process::Command::new("tar").arg("-xOf").arg(archive).arg(file).output().unwrap();
    let tensors = safetensors::SafeTensors::deserialize(&tar.stdout).unwrap();
    for name in tensors.names().into_iter().filter(|name| !name.contains("self_attn.")) {
        let module = name.strip_prefix("base_model.model.").unwrap().split(".lora_").next().unwrap();
        assert!(names.contains(&module.replace(".base_layer", "")), "{name}");
    }
}
