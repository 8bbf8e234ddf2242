//! `kernmill eval text`: how well a model guesses texts, token by token.

use crate::measured::{Measured, Scorer, Slots, progress, with_tokenizer};
use crate::report::{Metric, Outcome, ReportArgs, figures, interval_json, with_interval};
use crate::stats::{BlockSum, FEWEST_BLOCKS, Interval, interval};
use crate::texts::{TextArgs, Window, hash};
use kernmill::observe::Progress;
use kernmill::{Opened, Options, Result};
use serde_json::json;
use std::f64::consts::LN_2;

/// `kernmill eval text`, with the arguments by which the model is opened.
#[derive(Debug, clap::Args)]
#[command(after_help = include_str!("help/text.txt"))]
pub struct TextLoss<M: clap::Args> {
    #[command(flatten)]
    text: TextArgs,
    #[command(flatten)]
    pub report: ReportArgs,
    #[command(flatten)]
    pub model: M,
}

impl<M: clap::Args> TextLoss<M> {
    /// Runs the command with the model that was opened.
    ///
    /// # Errors
    /// When the text or the model cannot be used.
    pub fn run(&self, mut opened: Opened, options: &Options) -> Result<Outcome> {
        self.report.check(&[self.text.file.as_deref()])?;
        let longest = opened.longest_context();
        let windows = with_tokenizer(&mut opened, |tokenizer| self.text.windows(tokenizer, longest))?;
        let context = windows.iter().map(|window| window.ids.len()).max().unwrap_or(1) as u32;
        let mut model = Measured::load(opened, options, context, 1)?;
        let losses = losses(&mut model, &windows, &*progress(options, "measuring", windows.len()))?;

        let tokens: usize = windows.iter().map(|window| window.measured().len()).sum();
        let bytes: f64 = windows.iter().map(|window| window.bytes).sum();
        let total: f64 = losses.iter().sum();
        let (loss, bits) = (total / tokens as f64, total / LN_2 / bytes);
        let of_windows = blocks(&windows, &losses, |window| window.measured().len() as f64);
        let (by_tokens, kind) = by_document(&windows, &of_windows);
        let of_loss = interval(&by_tokens);
        let by_bytes = blocks(&windows, &losses, |window| window.bytes * LN_2);
        let of_bits = interval(&by_document(&windows, &by_bytes).0);
        let of_perplexity = of_loss.map(|it| Interval { low: libm::exp(it.low), high: libm::exp(it.high) });
        let perplexity = libm::exp(loss);
        let named = [
            ("bits per byte", with_interval(bits, of_bits)),
            ("perplexity", with_interval(perplexity, of_perplexity)),
            ("nats per token", with_interval(loss, of_loss)),
            ("measured on", format!("{tokens} tokens, {bytes:.0} bytes, {}", self.text.about())),
            ("intervals by", format!("{} {kind}", by_tokens.len())),
        ];
        let json = json!({
            "model": model.name(),
            "identity": model.identity(),
            "bits_per_byte": bits,
            "bits_per_byte_interval": interval_json(of_bits),
            "perplexity": perplexity,
            "perplexity_interval": interval_json(of_perplexity),
            "nats_per_token": loss,
            "nats_per_token_interval": interval_json(of_loss),
            "tokens": tokens,
            "bytes": bytes.round(),
            "windows": windows.len(),
            "text_hash": hash(&windows),
            "blocks": by_tokens.len(),
            "block": kind,
        });
        let metrics = [Metric { name: "nats_per_token", blocks: &of_windows }];
        self.report.end("kernmill.eval-text/1", json, figures(model.name(), &named), &metrics)
    }
}

/// The loss of every window in nats.
fn losses(model: &mut Measured, windows: &[Window], progress: &dyn Progress) -> Result<Vec<f64>> {
    let scorer = Scorer::new(model.vocab());
    let mut losses = Vec::with_capacity(windows.len());
    for window in windows {
        let measured = window.measured();
        let slots = Slots::new(measured.len());
        model.read(window, &|at, logits| slots.put(at, scorer.score(logits, measured[at])))?;
        losses.push(-slots.all()?.iter().map(|scored| f64::from(scored.log)).sum::<f64>());
        progress.advance(1);
    }
    Ok(losses)
}

/// A block for each window: its sum, and its weight.
pub fn blocks(windows: &[Window], sums: &[f64], weight: impl Fn(&Window) -> f64) -> Vec<BlockSum> {
    windows.iter().zip(sums).map(|(window, sum)| BlockSum { sum: *sum, weight: weight(window) }).collect()
}

/// Blocks that hang together, with their name: documents, if there are enough of them, or else windows.
pub fn by_document(windows: &[Window], blocks: &[BlockSum]) -> (Vec<BlockSum>, &'static str) {
    let mut documents: Vec<(usize, BlockSum)> = Vec::new();
    for (window, block) in windows.iter().zip(blocks) {
        match documents.last_mut() {
            Some((document, all)) if *document == window.document => {
                all.sum += block.sum;
                all.weight += block.weight;
            }
            _ => documents.push((window.document, *block)),
        }
    }
    match documents.len() >= FEWEST_BLOCKS {
        true => (documents.into_iter().map(|(_, block)| block).collect(), "documents"),
        false => (blocks.to_vec(), "windows"),
    }
}
