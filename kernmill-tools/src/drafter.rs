//! Drafters, which guess how a text goes on, from options of a program.

use kernmill::locate::locate;
use kernmill::{Error, Opened, Options, Result};
use kernmill_runtime::draft::{Drafter, ModelDrafter, SuffixDrafter};
use kernmill_runtime::{Tokenizer, TokenizerHandle};
use std::path::Path;

/// The drafter of a text: none without `drafts`; the small model at `model` if there is one; else one that
/// looks for the text's end earlier in the text. `tokenizer` is that of the model whose text it is.
///
/// # Errors
/// When the model cannot be opened, one of both has no tokenizer, or they have different vocabularies.
pub fn drafter(
    drafts: bool,
    model: Option<&Path>,
    tokenizer: Option<&TokenizerHandle>,
) -> Result<Option<Box<dyn Drafter>>> {
    Ok(match model.filter(|_| drafts) {
        Some(path) => Some(Box::new(model_drafter(path, tokenizer)?)),
        None => drafts.then(SuffixDrafter::boxed),
    })
}

/// Longest text that a small model drafts, in tokens, as far as the model can.
const CONTEXT: u32 = 8192;

/// A drafter that asks a small model: a plan, a checkpoint's directory, a GGUF file, or a spec whose weights
/// lie beside it. It runs on one thread, while the large model waits.
fn model_drafter(path: &Path, tokenizer: Option<&TokenizerHandle>) -> Result<ModelDrafter> {
    let options = Options::default().with(|options| options.threads = Some(1));
    let mut small = Opened::open(locate(path)?, &options)?;
    let name = path.display();
    let (Some(own), Some(other)) = (small.tokenizer(), tokenizer) else {
        let what = "drafts of a model need a tokenizer in both, so that their tokens can be compared";
        return Err(Error::bad_input(format!("{name}: {what}")));
    };
    if let Some((id, [own, other])) = difference(own.get()?, other.get()?, small.vocab() as u32) {
        let what = format!(
            "token {id} is {own:?}, and {other:?} in the model that it would draft for: both must have one vocabulary"
        );
        return Err(Error::bad_input(format!("{name}: {what}")));
    }
    let context = small.longest_context().min(CONTEXT);
    Ok(ModelDrafter::new(small.prepare(&options)?.load(&options, context, 1)?.engine))
}

/// The first token that two tokenizers spell in different ways.
fn difference(own: &Tokenizer, other: &Tokenizer, vocab: u32) -> Option<(u32, [String; 2])> {
    let spelt = |id: u32| [own.token(id), other.token(id)].map(Option::unwrap_or_default);
    (0..vocab).map(|id| (id, spelt(id))).find(|(_, [own, other])| own != other)
}

#[cfg(all(test, feature = "compiler"))]
mod tests {
    use super::*;
    use kernmill::Model;
    use kernmill_runtime::{Drafter, SamplerParams};
    use kernmill_serve::Request;

    fn nano() -> &'static Path {
        Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../model-specs/nano"))
    }

    #[test]
    fn a_model_as_drafter_changes_no_token() {
        let options = Options::default().with(|options| options.threads = Some(1));
        let model = Model::nano_with(&options).unwrap();
        let prompt = model.encode("A slice is").unwrap();
        let drafter: Box<dyn Drafter> = Box::new(model_drafter(nano(), model.tokenizer()).unwrap());
        let mut checked = 0;
        for temperature in [0.0, 0.3, 1.0] {
            let sampler = SamplerParams { temperature, seed: Some(1), ..SamplerParams::default() };
            let plain = Request { drafts: false, sampler, ..Request::greedy(prompt.clone(), 150) };
            let make = |request: Request| model.thread().text(request).unwrap().whole().unwrap();
            let expected = make(plain.clone());
            let drafted = make(Request { drafter: Some(drafter.clone()), ..plain });
            assert_eq!(drafted.tokens, expected.tokens);
            // The drafter is the model itself: what is likeliest is known to it.
            let drafts = drafted.drafts;
            assert!(temperature > 0.0 || drafts.accepted == drafts.tokens, "{drafts:?}");
            checked += drafts.tokens;
        }
        // It takes as long as it saves, and is tried now and then.
        assert!(checked > 0);
    }

    #[test]
    fn models_of_other_vocabularies_are_refused() {
        let refused = |tokenizer: Option<&TokenizerHandle>| {
            model_drafter(nano(), tokenizer).map(drop).unwrap_err().to_string()
        };
        assert!(refused(None).contains("need a tokenizer in both"));
        let json = include_bytes!("../../model-specs/nano/tokenizer.json");
        let changed = String::from_utf8(json.to_vec()).unwrap().replace("<|call|>", "<|cull|>");
        assert_ne!(changed.as_bytes(), &json[..]);
        let changed = Tokenizer::from_json(changed.as_bytes(), 3072).unwrap();
        let refusal = refused(Some(&changed.into()));
        assert!(
            refusal.contains("both must have one vocabulary") && refusal.contains("<|cull|>"),
            "{refusal}"
        );
        let missing = model_drafter(Path::new("no-such-model"), None).map(drop).unwrap_err();
        assert!(missing.to_string().contains("no-such-model"), "{missing}");
    }
}
