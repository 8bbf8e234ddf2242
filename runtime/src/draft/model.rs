//! The drafter that asks a small model.

use super::{Drafter, Guess};
use crate::engine::{Engine, EngineError, SeqId, Steps};
use crate::sampler::{Sampler, SamplerParams};
use std::sync::{Arc, Mutex, PoisonError};

/// Guesses what a small model would say next: its likeliest tokens. The small model has the vocabulary of the
/// one whose texts are drafted. Forks share its engine, each with a separate sequence.
///
/// The engine runs while the large model waits, so it is best made with one thread: two pools of workers on
/// the same cores are in each other's way.
#[derive(Debug)]
pub struct ModelDrafter {
    small: Arc<Small>,
    /// The text so far.
    text: Vec<u32>,
    /// The tokens that the sequence has: those of the text, and guesses behind them.
    held: Vec<u32>,
    sequence: Option<SeqId>,
    logits: Vec<f32>,
}

/// The small model's engine.
struct Small(Mutex<Engine>);

impl std::fmt::Debug for Small {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Small")
    }
}

impl Small {
    /// Does something with the engine. Guesses are all that a panic can have spoilt.
    fn with<R>(&self, work: impl FnOnce(&mut Engine) -> R) -> R {
        work(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl ModelDrafter {
    /// A drafter that asks an engine of the small model. Texts that are longer than its context are not
    /// drafted, and neither are those that find no free sequence.
    pub fn new(small: Engine) -> ModelDrafter {
        ModelDrafter::of(Arc::new(Small(Mutex::new(small))))
    }

    fn of(small: Arc<Small>) -> ModelDrafter {
        ModelDrafter { small, text: Vec::new(), held: Vec::new(), sequence: None, logits: Vec::new() }
    }

    /// Appends what the small model says next to `tokens`, as far as nothing is wrong.
    fn ask(&mut self, most: usize, tokens: &mut Vec<u32>) -> Result<(), EngineError> {
        let ModelDrafter { small, text, held, sequence, logits } = self;
        small.with(|engine| {
            let room = (engine.context() as usize).saturating_sub(text.len());
            if text.is_empty() || room == 0 {
                return Ok(());
            }
            let id = match *sequence {
                Some(id) => id,
                None => *sequence.insert(engine.create()?),
            };
            // The last token is run once more, for its logits.
            let alike = text.iter().zip(held.iter()).take_while(|(a, b)| a == b).count();
            let kept = alike.min(text.len() - 1);
            held.truncate(kept);
            if engine.truncate(id, kept as u32).is_err() {
                // A layer with a window does not go back as far.
                engine.drop_sequence(id);
                *sequence = None;
                held.clear();
                return Ok(());
            }
            let mut sampler = Sampler::new(SamplerParams::default(), engine.model().vocab as usize)?;
            let mut next = text[kept..].to_vec();
            for _ in 0..most.min(room) {
                engine.append(id, &next, logits)?;
                held.extend_from_slice(&next);
                let token = sampler.choose(logits, held.len() as u64, None)?;
                tokens.push(token);
                next = vec![token];
            }
            Ok(())
        })
    }
}

impl Drafter for ModelDrafter {
    fn follow(&mut self, tokens: &[u32]) {
        self.text.extend_from_slice(tokens);
    }

    fn guess(&mut self, most: usize, tokens: &mut Vec<u32>) -> Guess {
        // A small model that fails has said what it has said.
        let _ = self.ask(most, tokens);
        Guess { evidence: 0 }
    }

    fn is_free(&self) -> bool {
        false
    }

    fn fork(&self) -> Box<dyn Drafter> {
        let mut fork = ModelDrafter::of(Arc::clone(&self.small));
        fork.text.clone_from(&self.text);
        Box::new(fork)
    }
}

impl Drop for ModelDrafter {
    fn drop(&mut self) {
        if let Some(id) = self.sequence.take() {
            self.small.with(|engine| engine.drop_sequence(id));
        }
    }
}
