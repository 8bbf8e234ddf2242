use super::measure;
use super::texts::CalibrationTexts;
use crate::forward::LayeredModel;
use crate::forward::tests::nano;
use kernmill::observe::Silent;
use std::path::PathBuf;

#[test]
fn sums_are_of_all_tokens_whatever_the_threads() {
    let model = nano();
    let texts = CalibrationTexts::read(&[PathBuf::from("default")], 700, &model).unwrap();
    assert!((500..1300).contains(&texts.tokens()), "{}", texts.tokens());
    let of = |threads: usize| {
        let layers = LayeredModel::new(model.graph.clone(), &model.checkpoint, threads).unwrap();
        measure(&layers, &texts, &Silent).unwrap()
    };
    let found = of(1);
    assert_eq!(found.to_gguf(), of(2).to_gguf());
    assert_eq!(found, of(5));
    let tokens = texts.tokens() as f64;
    let experts = &found.entries["model.layers.0.mlp.experts.gate_up_proj_blocks"];
    assert_eq!((experts.counts.len(), experts.sums.len()), (8, 8 * 224));
    // Every token has two experts.
    assert_eq!(experts.counts.iter().sum::<f64>(), 2.0 * tokens);
    let queries = &found.entries["model.layers.0.self_attn.q_proj.weight"];
    assert_eq!((queries.counts.as_slice(), queries.sums.len()), (&[tokens][..], 224));
    assert_eq!(queries, &found.entries["model.layers.0.self_attn.v_proj.weight"]);
    // The rows of a norm have a mean square of 1 before its weights.
    assert!(queries.sums.iter().sum::<f64>() > 0.0);
}
