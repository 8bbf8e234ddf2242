//! Adapters.

use kernmill_compiler::import::from_config;
use kernmill_compiler::pipeline::{CompilerOptions, compile};
use kernmill_compiler::quant::Preset;
use kernmill_compiler::spec::{Spec, lower};
use kernmill_os::region::WeightRegion;
use kernmill_plan::adapter::MAX_RANK;
use kernmill_plan::target::Level;
use kernmill_runtime::adapter::{AdapterLoader, Loading};
use std::path::Path;
use std::str::from_utf8;
use std::sync::{Arc, OnceLock};

/// An adapter: its config, a zero byte, and its tensors.
pub fn adapter(data: &[u8]) {
    let Some(end) = data.iter().position(|byte| *byte == 0) else { return };
    let Ok(config) = from_utf8(&data[..end]) else { return };
    let tensors = data[end + 1..].to_vec();
    let loaded = adapter_loader().open_bytes(Path::new("fuzz"), config, tensors, 1.0);
    match loaded.and_then(Loading::run) {
        Ok(adapter) => assert!((1..=MAX_RANK).contains(&adapter.packed().rank())),
        Err(error) => assert!(!error.to_string().is_empty()),
    }
}

/// A loader for a small model with experts.
fn adapter_loader() -> &'static AdapterLoader {
    static LOADER: OnceLock<AdapterLoader> = OnceLock::new();
    LOADER.get_or_init(|| {
        let config = include_str!("../../fixtures/oracle/gptoss-base/config.json");
        let spec = from_config("small", config).expect("a config");
        let graph = Spec::parse("small.toml", &spec).and_then(|spec| lower(&spec)).expect("a spec");
        let options = CompilerOptions {
            preset: Preset::Exact,
            adapters: true,
            chunk: 16,
            ..CompilerOptions::new(Level::V3)
        };
        let program = compile(&graph, &options).expect("a supported model").program;
        let weights = WeightRegion::anonymous(program.weight_bytes as usize).expect("memory");
        let adapters = Arc::new(program.model.adapters.expect("sites"));
        AdapterLoader::new(adapters, weights.freeze().expect("memory"), "small".into())
    })
}
