//! Texts that a model makes, many at once, and the log by which a run goes on.

use crate::given::Count;
use crate::lm_eval::hash;
use crate::measured::{progress, with_tokenizer};
use crate::resume::{Log, Logged};
use kernmill::observe::Progress;
use kernmill::{Answer, Error, Model, Opened, Options, Result, Sampling, SchedulerConfig, Text};
use serde_json::{Value, json};
use std::collections::VecDeque;
use std::path::PathBuf;

/// Texts that wait for each one that runs, so that the scheduler always has some.
const AHEAD: usize = 4;

/// How texts are made.
#[derive(Clone, Debug, clap::Args)]
pub struct MakingArgs {
    /// Texts for each question; more than one needs --temp
    #[arg(long, value_name = "K", default_value = "1")]
    pub samples: Count,
    /// Temperature; with 0 each token is the likeliest
    #[arg(long, value_name = "T", default_value_t = 0.0)]
    pub temp: f32,
    /// Draw from the likeliest tokens that have this probability together
    #[arg(long, value_name = "P", default_value_t = 1.0)]
    pub top_p: f32,
    /// Seed of the drawn tokens: the same one gives the same texts
    #[arg(long, value_name = "N", default_value_t = 1234)]
    pub seed: u64,
    /// Tokens of a text at most; by default those of lm-eval's task
    #[arg(short = 'n', long, value_name = "N")]
    pub max_tokens: Option<Count>,
    /// Texts that are made at once
    #[arg(long, value_name = "N", default_value_t = 8, value_parser = clap::value_parser!(u32).range(1..=512))]
    pub parallel: u32,
    /// Write what is known to this file, and go on with what it has: a run that was ended loses little
    #[arg(long, value_name = "FILE")]
    pub resume: Option<PathBuf>,
}

/// A text that was made.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MadeText {
    /// The text.
    pub text: String,
    /// Tokens of the text.
    pub tokens: u64,
    /// Whether it was cut where it could have gone on.
    pub is_cut: bool,
}

/// All texts of a run, and what they are of.
pub struct AllMade {
    /// By question, as many as were asked for.
    pub texts: Vec<Vec<MadeText>>,
    /// Name of the model.
    pub model: String,
    /// Identity of the model by weights and arithmetic.
    pub identity: String,
    /// Tokens that were made in this run.
    pub tokens_made: u64,
    /// Prompts that lost their beginning.
    pub cut: usize,
}

impl Logged for MadeText {
    fn to_json(&self) -> Value {
        json!({ "text": self.text, "tokens": self.tokens, "is_cut": self.is_cut })
    }

    fn from_json(value: &Value) -> Option<MadeText> {
        let (tokens, is_cut) = (value["tokens"].as_u64()?, value["is_cut"].as_bool()?);
        Some(MadeText { text: value["text"].as_str()?.to_owned(), tokens, is_cut })
    }
}

impl AllMade {
    /// Texts that were cut.
    pub fn cut_texts(&self) -> usize {
        self.texts.iter().flatten().filter(|text| text.is_cut).count()
    }

    /// Tokens of all texts.
    pub fn tokens(&self) -> u64 {
        self.texts.iter().flatten().map(|text| text.tokens).sum()
    }
}

impl MakingArgs {
    /// How the `sample`th text of a question is made.
    fn sampling(&self, most: u32, stop: &[String], question: usize, sample: usize) -> Sampling {
        let mixed = ((question as u64) << 20).wrapping_add(sample as u64);
        let seed = fastrand::Rng::with_seed(self.seed ^ mixed.wrapping_mul(0x9e37_79b9_7f4a_7c15)).u64(..);
        let mut sampling = Sampling::greedy().max_tokens(most as usize).seed(seed);
        sampling.stop = stop.to_vec();
        sampling.with(|it| (it.sampler.temperature, it.sampler.top_p) = (self.temp, self.top_p))
    }

    /// As lm-eval's samples tell it.
    pub fn told(&self, stop: &[String], most: u32) -> Value {
        let told = json!({ "until": stop, "do_sample": self.temp > 0.0, "temperature": self.temp });
        match (self.temp > 0.0, self.max_tokens) {
            (false, None) => told,
            _ => {
                let mut told = told;
                told["max_gen_toks"] = json!(most);
                if self.temp > 0.0 {
                    (told["top_p"], told["seed"]) = (json!(self.top_p), json!(self.seed));
                }
                told
            }
        }
    }

    /// Refuses what cannot be.
    ///
    /// # Errors
    /// When several texts would all be the same.
    pub fn check(&self) -> Result<()> {
        if self.samples.0 > 1 && self.temp == 0.0 {
            let what =
                format!("--samples is {}, and without --temp all of them are the same", self.samples.0);
            return Err(Error::bad_input(what));
        }
        Ok(())
    }

    /// Makes the texts behind prompts, at most `most` tokens each. `task` says what the prompts are of.
    ///
    /// # Errors
    /// When the model makes no texts, or the engine fails.
    pub fn make(
        &self,
        mut opened: Opened,
        options: &Options,
        prompts: &[String],
        stop: &[String],
        most: u32,
        task: &Value,
    ) -> Result<AllMade> {
        self.check()?;
        let longest = opened.longest_context();
        if most >= longest {
            let what = format!("--max-tokens is {most}, expected less than {longest}, the longest context");
            return Err(Error::bad_input(what));
        }
        let room = (longest - most) as usize;
        let (ids, cut) = with_tokenizer(&mut opened, |tokenizer| {
            let mut cut = 0;
            let encode = |prompt: &String| {
                let mut ids = tokenizer.encode(prompt, true)?;
                cut += usize::from(ids.len() > room);
                ids.drain(..ids.len().saturating_sub(room));
                Ok(ids)
            };
            let ids: Result<Vec<Vec<u32>>> = prompts.iter().map(encode).collect();
            Ok((ids?, cut))
        })?;
        if cut > 0 {
            let what = format!(
                "{cut} prompts leave no room for {most} tokens behind them, and lost their beginning"
            );
            options.observer.note(&what);
        }
        let context = ids.iter().map(Vec::len).max().unwrap_or(1) as u32 + most;
        let (model, identity) = texts_of(opened, options, context, self.parallel)?;
        let samples = self.samples.0 as usize;
        let adapters: Vec<String> = options.adapters.iter().map(|adapter| format!("{adapter:?}")).collect();
        let run = json!({
            "kernmill_eval": "texts", "version": 1, "identity": identity, "adapters": adapters, "task": task,
            "prompts": hash(&prompts.concat()), "samples": samples, "temp": self.temp, "top_p": self.top_p,
            "seed": self.seed, "max_tokens": most, "stop": stop,
        });
        let all = ids.len() * samples;
        let mut log: Log<MadeText> = Log::open(self.resume.as_deref(), &run, &|item, _| item < all)?;
        let bar = progress(options, "making texts", all);
        bar.advance(log.known.len() as u64);
        let missing: Vec<usize> = (0..all).filter(|item| !log.known.contains_key(item)).collect();
        let mut running: VecDeque<(usize, Text)> = VecDeque::new();
        let mut tokens_made = 0;
        for item in missing {
            if running.len() >= AHEAD * self.parallel as usize {
                tokens_made += self.take(&mut running, &mut log, &*bar)?;
            }
            let (question, sample) = (item / samples, item % samples);
            let sampling = self.sampling(most, stop, question, sample);
            let request = model.request(ids[question].clone(), &sampling)?;
            running.push_back((item, model.thread().text(request)?));
        }
        while !running.is_empty() {
            tokens_made += self.take(&mut running, &mut log, &*bar)?;
        }
        let known: Vec<MadeText> = log.known.into_values().collect();
        let texts = known.chunks(samples).map(<[MadeText]>::to_vec).collect();
        let name = model.image().program().model.name.clone();
        Ok(AllMade { texts, model: name, identity, tokens_made, cut })
    }

    /// Waits for the text that has run longest.
    fn take(
        &self,
        running: &mut VecDeque<(usize, Text)>,
        log: &mut Log<MadeText>,
        bar: &dyn Progress,
    ) -> Result<u64> {
        let Some((item, text)) = running.pop_front() else { return Ok(0) };
        let Answer { text, tokens, finish, .. } = text.whole()?;
        if let Some(error) = finish.error() {
            return Err(error.into());
        }
        let tokens = tokens.len() as u64;
        log.add(item, MadeText { text, tokens, is_cut: finish.is_cut() })?;
        bar.advance(1);
        Ok(tokens)
    }
}

/// A model that makes `parallel` texts of `context` tokens at once, and its identity.
///
/// # Errors
/// When it makes no texts, or cannot be compiled or loaded.
pub fn texts_of(opened: Opened, options: &Options, context: u32, parallel: u32) -> Result<(Model, String)> {
    let options = options.clone().with(|it| it.kv_yields = true);
    let end_tokens = opened.end_tokens()?;
    let mut loaded = opened.prepare(&options)?.load(&options, context, parallel)?;
    if loaded.engine.model().vectors().is_some() {
        return Err(Error::bad_input("the model makes vectors of texts, expected one that makes texts"));
    }
    let adapters = loaded.load_adapters(&options)?;
    let identity = loaded.image.identity().iter().flatten().map(|byte| format!("{byte:02x}")).collect();
    let config = SchedulerConfig {
        max_queue: u32::MAX / 4,
        max_wait: [None; 3],
        ..SchedulerConfig::default().with_sequences(parallel)
    };
    Ok((Model::of(loaded, config, end_tokens, adapters)?, identity))
}
