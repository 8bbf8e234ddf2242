//! Vectors against transformers in float32 (tools/oracle/make_vectors.py).

use crate::harness::{read, vectors};
use kernmill::locate::locate;
use kernmill::{Model, ModelMakes, Opened, Options, Preset, Request};
use kernmill_plan::vectors::Pooling;
use kernmill_serve::Wanted;

/// A model of the fixture's directory, which its files say is for vectors.
fn model(preset: Preset) -> Model {
    let options = Options::default().with(|options| {
        options.compile.preset = preset;
        options.threads = Some(1);
    });
    Model::open_with(vectors().join("qwen3-embedding"), &options, None).unwrap()
}

fn vector(model: &Model, tokens: &[u32], dimensions: Option<u32>) -> Vec<f32> {
    let request = Request::values(tokens.to_vec(), Wanted::Vector { dimensions });
    model.thread().text(request).unwrap().whole().unwrap().values
}

#[test]
fn vectors_are_those_of_transformers() {
    let file = std::fs::read(vectors().join("qwen3-embedding/oracle.safetensors")).unwrap();
    let tokens = read(&file, "tokens", u32::from_le_bytes);
    let expected = read(&file, "vectors", f32::from_le_bytes);
    let width = expected.len() / tokens.len();
    for (preset, least) in [(Preset::Exact, 0.999_999), (Preset::Faithful, 0.99)] {
        let model = model(preset);
        for (at, expected) in expected.chunks(width).enumerate() {
            let found = vector(&model, &tokens[..=at], None);
            let cosine: f32 = found.iter().zip(expected).map(|(a, b)| a * b).sum();
            assert!(cosine >= least && cosine <= 1.0001, "{}: {} tokens: {cosine}", preset.name(), at + 1);
            // The first elements, with a length of 1 again.
            let cut = vector(&model, &tokens[..=at], Some(24));
            let length: f32 = expected[..24].iter().map(|x| x * x).sum::<f32>().sqrt();
            let cosine: f32 = cut.iter().zip(expected).map(|(a, b)| a * b / length).sum();
            assert!(cut.len() == 24 && cosine >= least && cosine <= 1.0001, "{cosine}");
        }
    }
}

#[test]
fn a_model_for_vectors_needs_no_unembedding_and_another_one_does() {
    let dir = tempfile::tempdir().unwrap();
    for name in ["config.json", "model.safetensors", "modules.json"] {
        std::fs::copy(vectors().join("qwen3-embedding").join(name), dir.path().join(name)).unwrap();
    }
    let open = |makes| {
        let options = Options::default().with(|options| options.makes = makes);
        Opened::open(locate(dir.path()).unwrap(), &options).map(drop).map_err(|error| error.to_string())
    };
    let missing = open(ModelMakes::AsFiles).unwrap_err();
    assert!(missing.contains("1_Pooling/config.json"), "{missing}");
    // The embeddings are tied, so that it can go on with texts, too.
    assert_eq!(open(ModelMakes::Texts), Ok(()));
    std::fs::create_dir(dir.path().join("1_Pooling")).unwrap();
    let pooling = vectors().join("qwen3-embedding/1_Pooling/config.json");
    std::fs::copy(pooling, dir.path().join("1_Pooling/config.json")).unwrap();
    let config = std::fs::read_to_string(dir.path().join("config.json")).unwrap();
    let untied = config.replace("\"tie_word_embeddings\": true", "\"tie_word_embeddings\": false");
    std::fs::write(dir.path().join("config.json"), untied).unwrap();
    for makes in [ModelMakes::AsFiles, ModelMakes::Vectors(None), ModelMakes::Vectors(Some(Pooling::Mean))] {
        assert_eq!(open(makes), Ok(()));
    }
    let headless = open(ModelMakes::Texts).unwrap_err();
    assert!(headless.contains("lm_head.weight"), "{headless}");
}

/// Before a text comes the prompt that is asked for, or the usual one.
#[test]
fn prompts_are_those_of_sentence_transformers() {
    let dir = vectors().join("prompts");
    let texts: Vec<String> =
        serde_json::from_slice(&std::fs::read(dir.join("prompts.json")).unwrap()).unwrap();
    let file = std::fs::read(dir.join("oracle.safetensors")).unwrap();
    let open = |path: &std::path::Path, prompt: Option<&str>| {
        let options = Options::default().with(|options| {
            options.compile.preset = Preset::Exact;
            options.threads = Some(1);
            options.prompt = prompt.map(str::to_owned);
        });
        Model::open_with(path, &options, None)
    };
    for (name, prompt) in [
        ("usual", None),
        ("query", Some("query")),
        ("document", Some("document")),
        ("passage", Some("passage")),
    ] {
        let expected = read(&file, name, f32::from_le_bytes);
        let found = open(&dir, prompt).unwrap().embed(&texts, None).unwrap();
        assert_eq!(found.len(), texts.len());
        for (found, expected) in found.iter().zip(expected.chunks(64)) {
            let cosine: f32 = found.iter().zip(expected).map(|(a, b)| a * b).sum();
            assert!((0.99999..1.0001).contains(&cosine), "{name}: {cosine}");
        }
    }
    // Questions have the prompt `query`, and documents theirs.
    let model = open(&dir, None).unwrap();
    let scores = model.score(&texts[0], &texts).unwrap();
    let [query, document] = ["query", "document"].map(|name| read(&file, name, f32::from_le_bytes));
    for (score, document) in scores.iter().zip(document.chunks(64)) {
        let cosine: f32 = query[..64].iter().zip(document).map(|(a, b)| a * b).sum();
        assert!((score - cosine).abs() < 1e-4, "{score} {cosine}");
    }
}

/// A ModernBERT whose texts reach further than its windows, with a tokenizer of bytes.
#[test]
fn vectors_of_a_modernbert_are_those_of_sentence_transformers() {
    let dir = vectors().join("modernbert");
    let texts: Vec<String> = serde_json::from_slice(&std::fs::read(dir.join("texts.json")).unwrap()).unwrap();
    let file = std::fs::read(dir.join("oracle.safetensors")).unwrap();
    let expected = read(&file, "vectors", f32::from_le_bytes);
    for (preset, least) in [(Preset::Exact, 0.999_999), (Preset::Faithful, 0.99)] {
        let options = Options::default().with(|options| {
            options.compile.preset = preset;
            options.threads = Some(1);
        });
        let found = Model::open_with(&dir, &options, None).unwrap().embed(&texts, None).unwrap();
        assert_eq!(found.len(), texts.len());
        for ((text, found), expected) in texts.iter().zip(&found).zip(expected.chunks(64)) {
            let dot = |a: &[f32], b: &[f32]| a.iter().zip(b).map(|(a, b)| a * b).sum::<f32>();
            let cosine = dot(found, expected) / (dot(found, found) * dot(expected, expected)).sqrt();
            assert!((least..1.0001).contains(&cosine), "{}: {text:?}: {cosine}", preset.name());
        }
    }
}
