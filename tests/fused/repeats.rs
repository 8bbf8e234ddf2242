//! A rule with a repeated root, on norms that one to seven matrices read.

use super::{Case, PRESETS, uses};
use kernmill_compiler::ir::Graph;
use kernmill_compiler::passes::fuse::{FusedSet, FusedSpec};
use kernmill_plan::target::Level;

const PROJECTIONS: &str = r#"
name = "projections"
doc = "a norm and up to five projections of it"
kernel = "matmul"
match = [
  { name = "norm", op = "rms_norm", inputs = ["x"], part = "prologue" },
  { name = "quant", op = "quantize_q8", inputs = ["norm"], part = "prologue", optional = true },
  { name = "a", op = ["linear", "quant_linear"], inputs = ["quant"], part = "root", repeat = 5 },
]
outputs = ["norm", "quant", "a"]
"#;

/// By layer, widths of the matrices that read its norm. Their results are added to the stream through a
/// matrix each.
const LAYERS: [&[usize]; 4] = [&[96], &[32, 64], &[64, 160, 32], &[32, 96, 64, 32, 128, 64, 32]];

fn model() -> Graph {
    let (mut tensors, mut nodes) = (String::new(), String::new());
    let mut x = "x".to_owned();
    for (layer, widths) in LAYERS.iter().enumerate() {
        tensors += &format!("tensor @w{layer} vector bf16[64] from \"w{layer}\"\n");
        nodes += &format!("%n{layer} = rms_norm(eps=1e-5) %{x}, @w{layer} : f32[T, 64]\n");
        for (i, n) in widths.iter().enumerate() {
            let name = format!("{layer}_{i}");
            tensors += &format!("tensor @m{name} matrix bf16[{n}, 64] from \"m{name}\"\n");
            tensors += &format!("tensor @o{name} matrix bf16[64, {n}] from \"o{name}\"\n");
            nodes += &format!("%p{name} = linear %n{layer}, @m{name} : f32[T, {n}]\n");
        }
        for i in 0..widths.len() {
            let name = format!("{layer}_{i}");
            nodes += &format!("%b{name} = linear %p{name}, @o{name} : f32[T, 64]\n");
            nodes += &format!("%s{name} = add %{x}, %b{name} : f32[T, 64]\n");
            x = format!("s{name}");
        }
    }
    let text = format!(
        "model \"projections\" vocab 80 context 64\n\
        tensor @e table bf16[80, 64] from \"e\"\n\
        tensor @u matrix bf16[80, 64] from \"u\"\n\
        {tensors}input %tokens : ids[T]\n\
        %x = embed %tokens, @e : f32[T, 64]\n\
        {nodes}%last = select_rows %{x} : f32[R, 64]\n\
        %logits = linear %last, @u : f32[R, 80]\n\
        output %logits\n"
    );
    text.parse().unwrap_or_else(|error| panic!("{error}\n{text}"))
}

#[test]
fn repeated_roots_are_one_kernel_with_the_interpreters_bits() {
    let spec = FusedSpec::parse("projections.toml", PROJECTIONS).unwrap();
    let set = FusedSet::builtin().with(vec![spec]).unwrap();
    let case = Case::new(model());
    for preset in PRESETS {
        let compiled = case.compile(&set, preset, Level::V3);
        assert_eq!(uses(&compiled, "projections"), LAYERS.len(), "{}", preset.name());
        let groups = compiled.fused.groups.iter().filter(|group| group.name() == "projections");
        let roots: Vec<usize> = groups.map(|group| group.roots.len()).collect();
        assert_eq!(roots, LAYERS.map(|widths| widths.len().min(5)), "{}", preset.name());
    }
    case.check(&set, "projections");
    case.check_same_graph(&set.without("projections").unwrap(), "without projections");
}
