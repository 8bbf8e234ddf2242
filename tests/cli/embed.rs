//! `kernmill embed`: vectors of texts, and scores.

use super::{Sandbox, kernmill};
use serde_json::Value;

fn vector(line: &str) -> Vec<f32> {
    let list: Value = serde_json::from_str(line).unwrap();
    list.as_array().unwrap().iter().map(|x| x.as_f64().unwrap() as f32).collect()
}

#[test]
fn vectors_are_the_same_from_every_source_and_in_every_form() {
    let sandbox = Sandbox::of("gptoss-base");
    let nano = concat!(env!("CARGO_MANIFEST_DIR"), "/model-specs/nano/nano.toml");
    let weights = concat!("--weights=", env!("CARGO_MANIFEST_DIR"), "/model-specs/nano");
    let texts = ["A slice is a view.", "Threads may panic."];
    let lines = kernmill(&["embed", nano, weights, texts[0], texts[1]]).text();
    let expected: Vec<Vec<f32>> = lines.lines().map(vector).collect();
    assert_eq!((expected.len(), expected[0].len()), (2, 224));
    sandbox.write("texts.txt", format!("{}\n\n{}\n", texts[0], texts[1]));
    for more in [&["--threads", "2"][..], &["--chunk", "3"], &["--no-fuse", "--target", "x86-64-v3"]] {
        let of_file = [&["embed", nano, weights, "-f", "texts.txt"][..], more].concat();
        assert_eq!(sandbox.run(&of_file).text(), lines, "{more:?}");
    }
    let json = kernmill(&["embed", nano, weights, texts[0], texts[1], "--format", "json"]).text();
    let json: Value = serde_json::from_str(&json).unwrap();
    assert_eq!(vector(&json["embeddings"][1].to_string()), expected[1]);
    let cut = kernmill(&["embed", nano, weights, texts[0], "--dimensions", "16"]).text();
    let length: f32 = expected[0][..16].iter().map(|x| x * x).sum::<f32>().sqrt();
    for (found, whole) in vector(&cut).iter().zip(&expected[0]) {
        assert!((found - whole / length).abs() < 1e-5, "{found} {whole}");
    }
    let scored =
        kernmill(&["embed", nano, weights, "--vectors", "mean", "--query", texts[1], texts[0], texts[1]])
            .text();
    let first = scored.lines().next().unwrap();
    assert!(first.starts_with("1.0000") && first.ends_with(texts[1]), "{scored}");

    // A plan makes what it was compiled for.
    let plan = sandbox.path("mean.plan");
    let plan = plan.to_str().unwrap();
    kernmill(&["compile", nano, weights, "--vectors", "mean", "-o", plan]).text();
    let mean = kernmill(&["embed", plan, texts[0]]).text();
    assert_eq!(mean, kernmill(&["embed", nano, weights, "--vectors", "mean", texts[0]]).text());
    assert_ne!(mean.lines().next(), lines.lines().next());
    let again = kernmill(&["embed", plan, "--regenerate", texts[0]]).text();
    assert_eq!(again, mean);
    let inspected = kernmill(&["inspect", plan]).text();
    assert!(inspected.contains("vectors of 224, pooled by mean, normalised"), "{inspected}");
    for command in
        [&["run", plan, "Hi"][..], &["logits", plan, "Hi", "--out", "-"], &["bench", plan, "--tg", "1"]]
    {
        kernmill(command).refused(&["the model makes vectors of texts", "`kernmill embed`"]);
    }
    kernmill(&["embed", plan, "--vectors", "last", "Hi"])
        .refused(&["--vectors", "a plan is compiled already"]);
    let texts_plan = sandbox.path("texts.plan");
    kernmill(&["compile", nano, weights, "-o", texts_plan.to_str().unwrap()]).text();
    kernmill(&["embed", texts_plan.to_str().unwrap(), "Hi"])
        .refused(&["the model makes texts, and no vectors"]);
    kernmill(&["embed", texts_plan.to_str().unwrap(), "Hi", "--query", "Who?"]).refused(&["gives no scores"]);
    kernmill(&["embed", plan, "Hi", "--dimensions", "300"]).refused(&["300 dimensions: expected 1 to 224"]);
}

#[test]
fn prompts_come_from_directories_and_their_plans() {
    let sandbox = Sandbox::of("gptoss-base");
    let dir = crate::harness::vectors().join("prompts");
    let (dir, plan) = (dir.to_str().unwrap(), sandbox.path("model.plan"));
    let plan = plan.to_str().unwrap();
    kernmill(&["compile", dir, "-o", plan]).text();
    let embed = |model: &str, more: &[&str]| kernmill(&[&["embed", model], more].concat()).text();
    let usual = embed(dir, &["a slice"]);
    assert_eq!(usual, embed(plan, &["a slice"]));
    assert_eq!(usual, embed(plan, &["a slice", "--prompt", "query"]));
    assert_eq!(usual, embed(dir, &["question : a slice", "--prompt", "document"]));
    let passage = embed(plan, &["a slice", "--prompt", "passage"]);
    assert_eq!(passage, embed(dir, &["passage : a b a slice", "--prompt", "document"]));
    assert_ne!(usual, passage);
    for model in [dir, plan] {
        kernmill(&["embed", model, "a slice", "--prompt", "usual"])
            .refused(&["there is no prompt `usual`, the model has: document, passage, query"]);
    }
}
