//! `kernmill eval kl`: how far a model's guesses are from a reference's, token by token.

use crate::base::{self, Base, Writer, record_bytes};
use crate::distance::{Distance, Known, TopRecord};
use crate::measured::{Measured, Slots, progress, with_tokenizer};
use crate::report::{
    Metric, Outcome, ReportArgs, check_output, figures, interval_json, short, with_interval,
};
use crate::stats::{BlockSum, Interval, interval, percentile};
use crate::text::{blocks, by_document};
use crate::texts::{TextArgs, Window, hash, start_token};
use kernmill::locate::locate;
use kernmill::{Error, Opened, Options, Result, check_space};
use kernmill_os::output::NewFile;
use serde_json::json;
use std::fs::File;
use std::io::{BufReader, BufWriter};
use std::path::{Path, PathBuf};

/// Bytes of a reference's rows that are in memory at once.
const ROWS_BYTES: usize = 64 << 20;

/// `kernmill eval kl`, with the arguments by which the model is opened.
#[derive(Debug, clap::Args)]
#[command(after_help = include_str!("help/kl.txt"))]
pub struct Kl<M: clap::Args> {
    /// Reference: a model, which runs beside MODEL; a base that --save wrote; or llama.cpp's, which
    /// `llama-perplexity --kl-divergence-base` wrote. A base brings its text along
    #[arg(long, short, value_name = "MODEL|BASE")]
    reference: Option<PathBuf>,
    /// Preset of a reference that is compiled here, in place of MODEL's: exact, faithful, bf16, fast
    #[cfg(feature = "compiler")]
    #[arg(long, value_name = "PRESET", requires = "reference", value_parser = preset)]
    reference_preset: Option<kernmill::Preset>,
    /// Store what MODEL says of the text in this file, to be the reference of others: the 256 largest logits
    /// behind every token, the sum of the rest, and 32 drawn from it. 2.3 KB a token
    #[arg(long, value_name = "BASE", conflicts_with = "reference")]
    pub save: Option<PathBuf>,
    #[command(flatten)]
    text: TextArgs,
    #[command(flatten)]
    pub report: ReportArgs,
    #[command(flatten)]
    pub model: M,
}

#[cfg(feature = "compiler")]
fn preset(name: &str) -> std::result::Result<kernmill::Preset, String> {
    let expected = || format!("expected {}", kernmill::Preset::ALL.map(kernmill::Preset::name).join(", "));
    kernmill::Preset::from_name(name).ok_or_else(expected)
}

/// Where the reference's rows come from.
enum ReferenceSource {
    Model(Box<Measured>),
    Base(Box<Base<BufReader<File>>>, PathBuf),
}

impl<M: clap::Args> Kl<M> {
    /// Runs the command with the model that was opened.
    ///
    /// # Errors
    /// When the text, the reference or the model cannot be used.
    pub fn run(&self, mut opened: Opened, options: &Options) -> Result<Outcome> {
        let read = [self.text.file.as_deref(), self.reference.as_deref()];
        self.report.check(&read)?;
        self.save.as_deref().map_or(Ok(()), |path| check_output(path, &read))?;
        let longest = opened.longest_context();
        let Some(path) = &self.reference else {
            let Some(save) = &self.save else {
                return Err(Error::bad_input(
                    "--reference is missing: expected a model or a base, or --save to make a base of MODEL",
                ));
            };
            let windows = with_tokenizer(&mut opened, |tokenizer| self.text.windows(tokenizer, longest))?;
            let mut model = Measured::load(opened, options, context(&windows), 1)?;
            return self.store(&mut model, &windows, save, options);
        };
        let (windows, reference) = match base::open(path)? {
            Some(base) => {
                if self.text.file.is_some() {
                    return Err(Error::bad_input("--file: the base brings the text that it was made of"));
                }
                (base_windows(&base, &mut opened, path, longest)?, Err(base))
            }
            None => {
                let windows = with_tokenizer(&mut opened, |tokenizer| self.text.windows(tokenizer, longest))?;
                let others = self.of_reference(options);
                let mut other = Opened::open(locate(path)?, &others)?;
                let longest = longest.min(other.longest_context());
                let same = with_tokenizer(&mut other, |tokenizer| self.text.windows(tokenizer, longest))?;
                if other.vocab() != opened.vocab() || same != windows {
                    return Err(Error::input(
                        path,
                        "its tokenizer is another than MODEL's, expected the same",
                    ));
                }
                (windows, Ok((other, others)))
            }
        };
        let mut model = Measured::load(opened, options, context(&windows), 1)?;
        let mut source = match reference {
            Err(base) => ReferenceSource::Base(Box::new(base), path.clone()),
            Ok((other, others)) => {
                ReferenceSource::Model(Box::new(Measured::load(other, &others, context(&windows), 1)?))
            }
        };
        let bar = progress(options, "measuring", windows.len());
        let mut found = Vec::with_capacity(windows.len());
        for window in &windows {
            found.push(distances(&mut model, &mut source, window)?);
            bar.advance(1);
        }
        drop(bar);
        self.tell(&model, &source, &windows, &found)
    }

    fn of_reference(&self, options: &Options) -> Options {
        options.clone().with(|it| {
            it.adapters.clear();
            #[cfg(feature = "compiler")]
            if let Some(preset) = self.reference_preset {
                it.compile.preset = preset;
            }
        })
    }

    fn store(
        &self,
        model: &mut Measured,
        windows: &[Window],
        save: &Path,
        options: &Options,
    ) -> Result<Outcome> {
        let tokens: usize = windows.iter().map(|window| window.measured().len()).sum();
        check_space(save, (tokens * record_bytes(model.vocab())) as u64)?;
        let file = NewFile::create(save).map_err(Error::read(save))?;
        let failed = Error::write(save);
        let bar = progress(options, "storing", windows.len());
        let mut work = || -> Result<std::io::Result<()>> {
            let out = BufWriter::new(file.file());
            let mut writer = match Writer::new(out, model.name(), &model.identity(), model.vocab(), windows) {
                Ok(writer) => writer,
                Err(error) => return Ok(Err(error)),
            };
            for window in windows {
                let measured = window.measured();
                let slots = Slots::new(measured.len());
                model.read(window, &|at, logits| slots.put(at, Ok(TopRecord::of(logits, measured[at]))))?;
                for record in slots.all()? {
                    if let Err(error) = writer.record(&record) {
                        return Ok(Err(error));
                    }
                }
                bar.advance(1);
            }
            Ok(writer.finish().map(drop))
        };
        work()?.and_then(|()| file.finish()).map_err(failed)?;
        let json = json!({ "model": model.name(), "tokens": tokens });
        let line = format!("{}: a base of {tokens} tokens of {}\n", save.display(), model.name());
        self.report.end("kernmill.eval-base/1", json, line, &[])
    }

    fn tell(
        &self,
        model: &Measured,
        source: &ReferenceSource,
        windows: &[Window],
        found: &[Vec<Distance>],
    ) -> Result<Outcome> {
        let tokens = |window: &Window| window.measured().len() as f64;
        let of = |value: &dyn Fn(&Distance) -> f64| -> (f64, Option<Interval>, Vec<BlockSum>, &'static str) {
            let sums: Vec<f64> = found.iter().map(|all| all.iter().map(value).sum()).collect();
            let blocks = blocks(windows, &sums, tokens);
            let (together, kind) = by_document(windows, &blocks);
            let weight: f64 = blocks.iter().map(|block| block.weight).sum();
            (sums.iter().sum::<f64>() / weight, interval(&together), blocks, kind)
        };
        let (kl, kl_in, kl_blocks, kind) = of(&|it| it.kl);
        let has_reverse = found.iter().flatten().all(|it| it.reverse.is_some());
        let reverse = has_reverse.then(|| of(&|it| it.reverse.unwrap_or(0.0)));
        let (same, same_in, ..) = of(&|it| f64::from(u8::from(it.is_same_top)));
        let (loss, loss_in, loss_blocks, _) = of(&|it| it.more_loss);
        let mut all: Vec<f64> = found.iter().flatten().map(|it| it.kl).collect();
        if let Some(at) = all.iter().position(|kl| kl.is_nan()) {
            return Err(Error::failed(format!("the divergence at measured token {at} is not a number")));
        }
        all.sort_by(f64::total_cmp);
        let [median, p99, largest] = [0.5, 0.99, 1.0].map(|share| percentile(&all, share));
        let seen = kl_in.map(Interval::half);
        let name = match source {
            ReferenceSource::Model(model) => model.name(),
            ReferenceSource::Base(base, _) => &base.model,
        };
        let none = || "not known of this base".to_owned();
        let named = [
            ("KL divergence", format!("{} nats per token", with_interval(kl, kl_in))),
            ("median, 99 %, largest", format!("{}, {}, {}", short(median), short(p99), short(largest))),
            ("the other way round", reverse.as_ref().map_or_else(none, |it| with_interval(it.0, it.1))),
            ("same likeliest token", with_interval(same, same_in)),
            ("more nats at the text", with_interval(loss, loss_in)),
            ("measured on", format!("{} tokens", all.len())),
            ("smallest KL seen", seen.map_or_else(|| "not known".to_owned(), short)),
        ];
        let json = json!({
            "model": model.name(),
            "identity": model.identity(),
            "reference": name,
            "kl": kl,
            "kl_interval": interval_json(kl_in),
            "kl_median": median,
            "kl_p99": p99,
            "kl_largest": largest,
            "reverse_kl": reverse.as_ref().map(|it| it.0),
            "reverse_kl_interval": interval_json(reverse.as_ref().and_then(|it| it.1)),
            "same_top": same,
            "same_top_interval": interval_json(same_in),
            "more_nats_per_token": loss,
            "more_nats_per_token_interval": interval_json(loss_in),
            "tokens": all.len(),
            "windows": windows.len(),
            "text_hash": hash(windows),
            "block": kind,
            "smallest_difference": seen,
        });
        let metrics = [
            Metric { name: "kl", blocks: &kl_blocks },
            Metric { name: "more_nats_per_token", blocks: &loss_blocks },
        ];
        let title = format!("{} against {name}", model.name());
        self.report.end("kernmill.eval-kl/1", json, figures(&title, &named), &metrics)
    }
}

/// Tokens of the longest window.
fn context(windows: &[Window]) -> u32 {
    windows.iter().map(|window| window.ids.len()).max().unwrap_or(1) as u32
}

/// A base's windows, as the model reads them.
fn base_windows<R>(base: &Base<R>, opened: &mut Opened, path: &Path, longest: u32) -> Result<Vec<Window>> {
    let (vocab, needed) = (opened.vocab(), context(&base.windows));
    if base.vocab != vocab {
        let what = format!("its vocabulary has {} tokens, expected MODEL's {vocab}", base.vocab);
        return Err(Error::input(path, what));
    }
    if needed > longest {
        let what = format!("its windows have {needed} tokens, expected at most {longest}, MODEL's longest");
        return Err(Error::input(path, what));
    }
    if base.windows.is_empty() {
        return Err(Error::input(path, "it has no windows"));
    }
    let mut windows = base.windows.clone();
    if base.takes_start
        && let Some(start) = with_tokenizer(opened, start_token)?
    {
        windows.iter_mut().for_each(|window| window.ids[0] = start);
    }
    Ok(windows)
}

/// Distances at a window's measured tokens. Both models read it piece by piece.
fn distances(model: &mut Measured, source: &mut ReferenceSource, window: &Window) -> Result<Vec<Distance>> {
    let measured = window.measured();
    let slots = Slots::new(measured.len());
    let piece = (ROWS_BYTES / 4 / model.vocab()).clamp(1, measured.len());
    let sequence = model.create()?;
    let beside = match source {
        ReferenceSource::Model(other) => Some(other.create()?),
        ReferenceSource::Base(..) => None,
    };
    let mut read = || -> Result<()> {
        let mut done = 0;
        for from in (0..measured.len()).step_by(piece) {
            let to = measured.len().min(from + piece);
            let tokens = &window.ids[done..window.from + to - 1];
            done = window.from + to - 1;
            let known: Vec<Known> = match (&mut *source, beside) {
                (ReferenceSource::Base(base, path), _) => (from..to)
                    .map(|_| base.next_known().map_err(|what| Error::input(path, what)))
                    .collect::<Result<_>>()?,
                (ReferenceSource::Model(other), Some(beside)) => {
                    let rows = Slots::new(to - from);
                    other.append(beside, tokens, to - from, &|at, row| {
                        rows.put(at, Ok(Known::All(row.to_vec())));
                    })?;
                    rows.all()?
                }
                (ReferenceSource::Model(_), None) => Vec::new(),
            };
            model.append(sequence, tokens, to - from, &|at, row| {
                slots.put(from + at, Ok(known[at].distance(row, measured[from + at])));
            })?;
        }
        Ok(())
    };
    let done = read();
    model.engine.drop_sequence(sequence);
    if let (ReferenceSource::Model(other), Some(beside)) = (source, beside) {
        other.engine.drop_sequence(beside);
    }
    done?;
    slots.all()
}
