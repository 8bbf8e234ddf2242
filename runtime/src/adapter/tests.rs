//! Directories that are read, refused with what, where and expected; stores that fill up.

use super::names::targets;
use super::peft::PeftAdapter;
use super::{Adapter, AdapterError, AdapterLoader, AdapterStore, AdapterTable, AdapterUse};
use kernmill_plan::adapter::{Adapters, PackedAt, Site, SiteOut};
use kernmill_plan::format::WeightFormat;
use kernmill_plan::pack::pack_f32_tile;
use kernmill_plan::region::WeightRegion;
use safetensors::tensor::TensorView;
use safetensors::{Dtype, serialize};
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use std::sync::Arc;

const HIDDEN: usize = 8;
const FF: usize = 12;
const EXPERTS: usize = 3;

/// q `[16, 8]`, a router `[3, 8]`, and experts `[3, 24, 8]` and `[3, 8, 12]`, of two layers.
fn adapters() -> Adapters {
    let mut sites = Vec::new();
    for layer in 0..2 {
        let mut site = |tensor: &str, experts: usize, k: usize, rows: &[(usize, usize, usize)]| {
            let out = |(rows, first, step): &(usize, usize, usize)| SiteOut {
                name: "w".into(),
                rows: *rows as u32,
                first: *first as u32,
                step: *step as u32,
                weights: PackedAt {
                    format: WeightFormat::F32,
                    offset: 0,
                    tile_stride: WeightFormat::F32.tile(k).bytes() as u64,
                    expert_stride: 0,
                },
            };
            sites.push(Site {
                name: format!("layers.{layer}.{}", tensor.split('.').next_back().unwrap_or(tensor)),
                tensor: format!("model.layers.{layer}.{tensor}"),
                k: k as u32,
                experts: experts as u32,
                outs: rows.iter().map(out).collect(),
            });
        };
        site("self_attn.q_proj.weight", 0, HIDDEN, &[(16, 0, 1)]);
        site("mlp.router.weight", 0, HIDDEN, &[(EXPERTS, 0, 1)]);
        site("mlp.experts.gate_up_proj_blocks", EXPERTS, HIDDEN, &[(FF, 0, 2), (FF, 1, 2)]);
        site("mlp.experts.down_proj_blocks", EXPERTS, FF, &[(HIDDEN, 0, 1)]);
    }
    Adapters { format: WeightFormat::F32, sites }
}

/// A loader whose base weights of every dense matrix are the same 16 rows, all ones.
fn loader() -> AdapterLoader {
    let mut weights = WeightRegion::anonymous(1 << 16).unwrap();
    let tile = &mut weights.as_mut_slice()[..WeightFormat::F32.tile(HIDDEN).bytes()];
    pack_f32_tile(WeightFormat::F32, HIDDEN, &[1.0; 16 * HIDDEN], tile).unwrap();
    AdapterLoader::new(Arc::new(adapters()), weights.freeze().unwrap(), "small".into())
}

/// An adapter in the making: its config, and tensors by name.
#[derive(Clone)]
struct Draft {
    config: Value,
    tensors: Vec<(String, Dtype, Vec<usize>, Vec<u8>)>,
}

const PREFIX: &str = "base_model.model.model.layers.";

impl Draft {
    fn new(config: Value) -> Draft {
        let mut all = json!({ "peft_type": "LORA", "base_model_name_or_path": "small-base", "r": 2, "lora_alpha": 4, "bias": "none" });
        for (key, value) in config.as_object().unwrap() {
            all[key] = value.clone();
        }
        Draft { config: all, tensors: Vec::new() }
    }

    /// q of both layers, rank 2.
    fn of_q() -> Draft {
        let draft = Draft::new(json!({ "target_modules": ["q_proj"] }));
        (0..2).fold(draft, |draft, layer| {
            draft.pair(&format!("{layer}.self_attn.q_proj"), [2, HIDDEN], [16, 2])
        })
    }

    fn with(mut self, key: &str, value: Value) -> Draft {
        self.config[key] = value;
        self
    }

    fn pair(self, module: &str, a: [usize; 2], b: [usize; 2]) -> Draft {
        let name = |part| format!("{PREFIX}{module}.lora_{part}.weight");
        self.tensor(&name('A'), &a, None).tensor(&name('B'), &b, None)
    }

    /// A tensor of f32, the numbers 1, 2, 3 and so on unless given.
    fn tensor(mut self, name: &str, shape: &[usize], values: Option<&[f32]>) -> Draft {
        let count = shape.iter().product::<usize>();
        let numbers: Vec<f32> = (1..=count).map(|i| i as f32).collect();
        let bytes = values.unwrap_or(&numbers).iter().flat_map(|x| x.to_le_bytes()).collect();
        self.tensors.retain(|(other, ..)| other != name);
        self.tensors.push((name.to_owned(), Dtype::F32, shape.to_vec(), bytes));
        self
    }

    fn without(mut self, end: &str) -> Draft {
        self.tensors.retain(|(name, ..)| !name.ends_with(end));
        self
    }

    fn file(&self) -> Vec<u8> {
        let view = |(name, dtype, shape, bytes): &'_ (String, Dtype, Vec<usize>, Vec<u8>)| {
            (name.clone(), *dtype, shape.clone(), bytes.clone())
        };
        let tensors: Vec<_> = self.tensors.iter().map(view).collect();
        let views = tensors.iter().map(|(name, dtype, shape, bytes)| {
            (name.as_str(), TensorView::new(*dtype, shape.clone(), bytes).unwrap())
        });
        serialize(views, None).unwrap()
    }

    fn load(&self) -> Result<Adapter, AdapterError> {
        self.load_with(&loader())
    }

    fn load_with(&self, loader: &AdapterLoader) -> Result<Adapter, AdapterError> {
        let config = self.config.to_string();
        loader.open_bytes(Path::new("dir"), &config, self.file(), 1.0)?.run()
    }

    fn refusal(&self) -> String {
        self.load().map(|_| ()).unwrap_err().to_string()
    }
}

#[test]
fn factors_land_where_kernels_read_them() {
    let adapter = Draft::of_q().load().unwrap();
    let shapes: Vec<bool> = adapter.packed.layouts().iter().map(Option::is_some).collect();
    assert_eq!(shapes, [true, false, false, false, true, false, false, false]);
    let layout = adapter.packed.layouts()[4].as_ref().unwrap();
    let a = super::factors::unpack_a(&adapter.sites, &adapter.packed, 4, 0);
    assert_eq!(a, (1..=16).map(|i| i as f32).collect::<Vec<f32>>());
    assert_eq!((layout.rank(), adapter.scales[4].as_slice()), (2, &[2.0, 2.0][..]));
    assert!(adapter.notes.is_empty());
}

/// Element `[row, r]` of an expert's B, and `[r, i]` of its A, at a site.
fn element_of_experts(adapter: &Adapter, site: usize, expert: usize) -> (Vec<f32>, Vec<f32>) {
    let a = super::factors::unpack_a(&adapter.sites, &adapter.packed, site, expert);
    let b = super::factors::unpack_b(&adapter.sites, &adapter.packed, site, expert);
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
    for row in 0..16 {
        let at = entry.factor as usize + 4 * row;
        let factor = f32::from_le_bytes(adapter.packed.as_slice()[at..at + 4].try_into().unwrap());
        let b = [(2 * row + 1) as f32, (2 * row + 2) as f32];
        let element = |i: usize| 1.0 + 2.0 * (b[0] * (i + 1) as f32 + b[1] * (i + 9) as f32);
        let length = (0..HIDDEN).map(|i| element(i) * element(i)).sum::<f32>().sqrt();
        assert!((factor - magnitude[row] / length).abs() < 1e-6 * factor, "row {row}");
    }
    let lacking = draft.clone().without("1.self_attn.q_proj.lora_magnitude_vector").refusal();
    assert_eq!(
        lacking,
        "dir/adapter_model.safetensors: `model.layers.1.self_attn.q_proj.lora_magnitude_vector` is missing, which use_dora asks for"
    );
    assert!(draft.with("use_dora", json!(false)).refusal().ends_with("a magnitude, and use_dora is not set"));
}

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
                "there is nothing for `model.layers.0.mlp.router`, which adapter_config.json targets: expected its lora_A and lora_B",
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
                "nothing of it fits the model `small`, such as `model.layers.0.attn.c_attn`: the adapter was made for small-base",
            ),
        ),
        (
            Draft::of_q().pair("2.self_attn.q_proj", [2, 8], [16, 2]),
            in_file(
                "`model.layers.2.self_attn.q_proj` is no matrix of the model `small` that takes adapters; the adapter was made for small-base",
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
                "not supported: `modules_to_save` is set: whole trained copies of modules; only LoRA and DoRA matrices can be added to a base",
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
                "`target_modules`: `(` is not a regular expression that can be used: Parsing error at position 9: Opening parenthesis without closing parenthesis",
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
                "tensor `{PREFIX}0.mlp.experts.lora_B.weight`: has shape [8, 5], expected [8, 6] (rows by rank times experts)"
            )),
        ),
        (
            Draft::of_q().tensor("base_model.model.lm_head.weight", &[4], None),
            in_file(
                "not supported: tensor `lm_head.weight`: neither lora_A, lora_B nor lora_magnitude_vector: perhaps a trained copy of a module \
                 (modules_to_save)",
            ),
        ),
        (Draft::new(json!({ "target_modules": [] })), in_file("no tensor of an adapter is in it")),
    ];
    for (draft, expected) in cases {
        assert_eq!(draft.refusal(), expected);
    }
    let unsupported_init = Draft::of_q().with("init_lora_weights", json!("pissa_niter_4")).refusal();
    assert!(unsupported_init.contains("changes the base weights"), "{unsupported_init}");
    let error = AdapterLoader::open(&loader(), Path::new("nowhere"), 1.0).err().unwrap();
    assert!(error.to_string().starts_with("nowhere/adapter_config.json: No such file"), "{error}");
    let error = loader().open_bytes(Path::new("dir"), "{}", vec![1, 2], 1.0).err().unwrap();
    assert!(error.to_string().contains("2 bytes long"), "{error}");
}

#[test]
fn one_way_round_must_be_known_and_the_same() {
    // Experts of 12 by 12 would fit both ways.
    let mut square = adapters();
    square
        .sites
        .iter_mut()
        .filter(|site| site.outs[0].rows as usize == HIDDEN)
        .for_each(|site| site.outs[0].rows = 12);
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
        let a = super::factors::unpack_a(&adapter.sites, &adapter.packed, 0, 0);
        (a, super::factors::unpack_b(&adapter.sites, &adapter.packed, 0, 0))
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
    let names: Vec<String> = targets(&adapters()).into_iter().map(|target| target.module).collect();
    let dir = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../tests/fixtures/adapters/everything");
    let bytes = std::fs::read(dir.join(super::TENSOR_FILE)).unwrap();
    let tensors = safetensors::SafeTensors::deserialize(&bytes).unwrap();
    for name in tensors.names().into_iter().filter(|name| !name.contains("self_attn.")) {
        let module = name.strip_prefix("base_model.model.").unwrap().split(".lora_").next().unwrap();
        assert!(names.contains(&module.replace(".base_layer", "")), "{name}");
    }
}

/// A store, its table, and adapters of rank 2 with their bytes.
fn store() -> (AdapterStore, AdapterTable, u64) {
    let loader = loader();
    let table = AdapterTable::new(Some(&adapters()), 1);
    let bytes = Draft::of_q().load().unwrap().bytes();
    (AdapterStore::new(Some(loader)), table, bytes)
}

fn add(store: &mut AdapterStore, name: &str) -> Result<(), AdapterError> {
    let loader = store.loader().unwrap();
    store.insert(name, Draft::of_q().load_with(&loader).unwrap())
}

fn names(store: &AdapterStore) -> Vec<&str> {
    store.names().collect()
}

#[test]
fn idle_adapters_give_way_the_longest_unused_first() {
    let (mut store, mut table, bytes) = store();
    store.set_budget(3 * bytes);
    ["a", "b", "c"].iter().for_each(|name| add(&mut store, name).unwrap());
    assert_eq!(store.bytes(), 3 * bytes);
    let slot = store.acquire(&[AdapterUse::of("a")], &mut table).unwrap();
    store.release(slot, &mut table);
    add(&mut store, "d").unwrap();
    assert_eq!(names(&store), ["a", "c", "d"], "b was used before a");
    let unknown = store.acquire(&[AdapterUse::of("b")], &mut table).unwrap_err();
    assert_eq!(unknown.to_string(), "there is no adapter `b`: loaded are a, c, d");
    store.set_budget(bytes);
    assert_eq!((names(&store), store.bytes()), (vec!["d"], bytes));
}

#[test]
fn adapters_in_use_stay_and_count() {
    let (mut store, mut table, bytes) = store();
    store.set_budget(2 * bytes);
    add(&mut store, "a").unwrap();
    let first = store.acquire(&[AdapterUse::of("a")], &mut table).unwrap();
    let again = store.acquire(&[AdapterUse::of("a")], &mut table).unwrap();
    assert_eq!((first, again), (1, 1), "one slot for the same adapter");
    // Replaced: the sequences keep the old one, others get the new one.
    add(&mut store, "a").unwrap();
    let second = store.acquire(&[AdapterUse::of("a")], &mut table).unwrap();
    assert_eq!((second, store.bytes()), (2, 2 * bytes));
    let full = add(&mut store, "b").unwrap_err();
    assert_eq!(
        full.to_string(),
        format!(
            "adapter `b` takes {bytes} bytes; of the budget of {} sequences use {}: raise the budget or end some of them",
            2 * bytes,
            2 * bytes
        )
    );
    assert!(store.remove("a") && !store.remove("a"));
    assert_eq!(store.bytes(), 2 * bytes, "sequences still use both");
    store.release(first, &mut table);
    assert!(table.get(1).is_some());
    store.share(first);
    [first, first, second].iter().for_each(|slot| store.release(*slot, &mut table));
    assert_eq!((store.bytes(), table.get(1).is_some(), table.get(2).is_some()), (0, false, false));
}

#[test]
fn combinations_are_kept_until_a_part_changes() {
    let (mut store, mut table, bytes) = store();
    add(&mut store, "a").unwrap();
    add(&mut store, "b").unwrap();
    let uses = [AdapterUse::of("a"), AdapterUse { name: "b".into(), weight: 0.5 }];
    let mut loading = store.prepare(&uses).unwrap().unwrap();
    while loading.advance().unwrap() {}
    store.insert_combination(&uses, loading.finish().unwrap()).unwrap();
    assert!(store.prepare(&uses).unwrap().is_none());
    let slot = store.acquire(&uses, &mut table).unwrap();
    assert_eq!(table.get(slot as usize).unwrap().rank(), 4);
    assert_eq!(names(&store), ["a", "b"]);
    store.release(slot, &mut table);
    add(&mut store, "b").unwrap();
    assert_eq!(store.bytes(), 2 * bytes, "the combination went with the old b");
    assert_eq!(store.acquire(&[], &mut table).unwrap(), 0);
    let foreign = Draft::of_q().load().unwrap();
    assert!(store.insert("c", foreign).unwrap_err().to_string().contains("another program"));
}
