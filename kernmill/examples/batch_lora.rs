//! Several sequences at once, each with its adapter (LoRA): one step of the engine makes a token for all of
//! them, so that the weights are read once.
//!
//! `cargo run --package kernmill --example batch_lora [MODEL ADAPTER...]`
//!
//! MODEL is a plan, a checkpoint's directory or a GGUF file, ADAPTER a directory that PEFT has written.
//! Without them, the embedded model runs with two random adapters.

#![allow(clippy::print_stdout)]

use kernmill::adapters::AdapterSource;
use kernmill::locate::{locate, nano};
use kernmill::{Opened, Options, Result};
use kernmill_compiler::synth::{AdapterShape, write_adapter};
use kernmill_runtime::{AdapterUse, Engine, LogitRow, Sampler, SamplerParams, SeqId, SequenceTokens, Steps};
use std::path::{Path, PathBuf};
use std::sync::Mutex;

const PROMPT: &str = "# References and Borrowing\n\nA reference is";
const TOKENS: u64 = 24;

/// A text in the making.
struct Text {
    sequence: SeqId,
    adapter: Option<String>,
    sampler: Sampler,
    /// Tokens that the engine has not seen yet.
    fresh: Vec<u32>,
    made: Vec<u32>,
}

fn main() -> Result<()> {
    let mut arguments = std::env::args_os().skip(1).map(PathBuf::from);
    let made = tempfile::tempdir().expect("a temporary directory");
    let (located, adapters) = match arguments.next() {
        Some(model) => (locate(&model)?, arguments.collect()),
        None => (nano(), random_adapters(made.path())?),
    };
    let adapters: Vec<AdapterSource> = adapters
        .into_iter()
        .enumerate()
        .map(|(n, directory)| AdapterSource { name: format!("adapter {}", n + 1), directory, scale: 1.0 })
        .collect();

    // One sequence for each adapter, and one without.
    let options = Options::default().with(|it| it.adapters = adapters.clone());
    let sequences = adapters.len() as u32 + 1;
    let mut opened = Opened::open(located, &options)?;
    let tokenizer = opened.tokenizer();
    let mut loaded = opened.prepare(&options)?.load(&options, 256, sequences)?;
    loaded.load_adapters(&options)?;
    let mut engine = loaded.engine;
    let prompt = match &tokenizer {
        Some(tokenizer) => tokenizer.get()?.encode(PROMPT, true)?,
        None => vec![1, 2, 3],
    };
    let names = adapters.iter().map(|adapter| Some(adapter.name.clone())).chain([None]);
    let texts = names.map(|adapter| start(&mut engine, adapter, &prompt)).collect::<Result<Vec<_>>>()?;
    let texts: Vec<Mutex<Text>> = texts.into_iter().map(Mutex::new).collect();

    for position in 0..TOKENS {
        // The workers sample, each row on the one that computed it.
        let fresh: Vec<(SeqId, Vec<u32>)> = texts.iter().map(take_fresh).collect();
        let entries: Vec<SequenceTokens<'_>> =
            fresh.iter().map(|(id, tokens)| SequenceTokens::last(*id, tokens)).collect();
        engine.extend(&entries, &|_worker: usize, row: LogitRow<'_>| {
            let mut text = texts[row.entry].lock().expect("no worker panics");
            let token =
                text.sampler.sample(row.logits, prompt.len() as u64 + position).expect("logits are numbers");
            text.fresh.push(token);
            text.made.push(token);
        })?;
    }
    for text in &texts {
        let text = text.lock().expect("no worker has panicked");
        let shown = match &tokenizer {
            Some(tokenizer) => tokenizer.get()?.decode(&text.made)?,
            None => format!("{:?}", text.made),
        };
        println!("== {}\n{PROMPT}{shown}\n", text.adapter.as_deref().unwrap_or("no adapter"));
    }
    Ok(())
}

fn start(engine: &mut Engine, adapter: Option<String>, prompt: &[u32]) -> Result<Text> {
    let uses: Vec<AdapterUse> = adapter.iter().map(AdapterUse::of).collect();
    let params = SamplerParams { temperature: 0.6, top_p: 0.9, seed: Some(0), ..SamplerParams::default() };
    let sampler = Sampler::new(params, engine.model().vocab as usize)?;
    Ok(Text {
        sequence: engine.create_with(&uses)?,
        adapter,
        sampler,
        fresh: prompt.to_vec(),
        made: Vec::new(),
    })
}

fn take_fresh(text: &Mutex<Text>) -> (SeqId, Vec<u32>) {
    let mut text = text.lock().expect("no worker has panicked");
    (text.sequence, std::mem::take(&mut text.fresh))
}

/// Two adapters of the embedded model, written as PEFT writes them.
fn random_adapters(dir: &Path) -> Result<Vec<PathBuf>> {
    let Opened::Source(source) = Opened::open(nano(), &Options::default())? else {
        unreachable!("the embedded model is compiled here")
    };
    let shape = AdapterShape { rank: 8, targets: vec!["q".to_owned(), "v".to_owned()], dora: false };
    let write = |seed: u64| {
        let directory = dir.join(seed.to_string());
        write_adapter(&source.model.graph, &directory, &shape, seed, &|_, _| {})?;
        Ok(directory)
    };
    (1..=2).map(write).collect()
}
