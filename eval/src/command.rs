//! The commands below `kernmill eval`.

use crate::choice::Choice;
use crate::code::Code;
use crate::compare::CompareRuns;
use crate::generate::GenerateTexts;
use crate::kl::Kl;
use crate::prompts::StandardPrompts;
use crate::report::Outcome;
use crate::text::TextLoss;
use kernmill::{Error, Opened, Options};
use std::path::{Path, PathBuf};

/// A command, with the arguments `M` by which the program opens models.
#[derive(Debug, clap::Subcommand)]
pub enum EvalCommand<M: clap::Args> {
    /// Measures how well the model guesses a text: bits per byte, perplexity
    Text(Box<TextLoss<M>>),
    /// Measures how far the model's guesses are from a reference's: Kullback-Leibler divergence
    Kl(Box<Kl<M>>),
    /// Asks the model questions with several answers: HellaSwag, ARC, MMLU and others
    Choice(Box<Choice<M>>),
    /// Asks the model questions that it answers by a text: GSM8K and others of its form
    Generate(Box<GenerateTexts<M>>),
    /// Has the model write programs, and runs them in a sandbox: HumanEval, MBPP
    Code(Box<Code<M>>),
    /// Answers ten standard prompts, and tells how fast: tokens/s, first token, guesses that were right
    Prompts(Box<StandardPrompts<M>>),
    /// Tells how two runs differ, and whether they could differ by chance
    Compare(CompareRuns),
}

/// Opens the model of the arguments.
type Opens<'a, M, E> = dyn Fn(&M) -> Result<(Opened, Options), E> + 'a;

impl<M: clap::Args> EvalCommand<M> {
    /// Files that the command was told to write. None of them may be a file of the model.
    pub fn outputs(&self) -> Vec<&Path> {
        let outputs = match self {
            EvalCommand::Text(text) => [&text.report.out, &None],
            EvalCommand::Kl(kl) => [&kl.report.out, &kl.save],
            EvalCommand::Choice(choice) => [&choice.resume, &None],
            EvalCommand::Generate(generate) => [&generate.making.resume, &None],
            EvalCommand::Code(code) => [&code.making.resume, &None],
            EvalCommand::Prompts(prompts) => [&prompts.out, &None],
            EvalCommand::Compare(_) => [&None, &None],
        };
        outputs.into_iter().flatten().map(PathBuf::as_path).collect()
    }

    /// Runs the command. `open` opens the model of the arguments.
    ///
    /// # Errors
    /// When the model cannot be opened, or the input cannot be used.
    pub fn run<E: From<Error>>(&self, open: &Opens<'_, M, E>) -> Result<Outcome, E> {
        // Results say which weights and which arithmetic they are of.
        let open =
            |args: &M| open(args).map(|(opened, options)| (opened, options.with(|it| it.identity = true)));
        match self {
            EvalCommand::Text(text) => {
                let (opened, options) = open(&text.model)?;
                Ok(text.run(opened, &options)?)
            }
            EvalCommand::Kl(kl) => {
                let (opened, options) = open(&kl.model)?;
                Ok(kl.run(opened, &options)?)
            }
            EvalCommand::Choice(choice) => {
                let (opened, options) = open(&choice.model)?;
                Ok(choice.run(opened, &options)?)
            }
            EvalCommand::Generate(generate) => {
                let (opened, options) = open(&generate.model)?;
                Ok(generate.run(opened, &options)?)
            }
            EvalCommand::Code(code) => code.run(|| open(&code.model)),
            EvalCommand::Prompts(prompts) => {
                let (opened, options) = open(&prompts.model)?;
                Ok(prompts.run(opened, &options)?)
            }
            EvalCommand::Compare(compare) => Ok(compare.run()?),
        }
    }
}
