//! `--lora`: adapters from the command line to the engine.

use kernmill::adapters::AdapterSource;

/// Adapters to run with.
#[derive(Clone, Debug, Default, clap::Args)]
pub struct AdapterArgs {
    /// Adapter (LoRA or DoRA): a directory that PEFT's save_pretrained wrote, with a name for it. SCALE
    /// multiplies what it adds, beside its own alpha. May be given several times: run and logits add them all
    /// up, bench gives them to its sequences in turn
    #[arg(long = "lora", value_name = "NAME=DIR[:SCALE]")]
    #[cfg_attr(feature = "compiler", arg(conflicts_with = "no_adapters"))]
    pub adapters: Vec<AdapterSource>,
}
