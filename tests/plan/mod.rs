//! Plan files by the library: damage of every kind, and weights of any bytes.

use crate::hostile::targets::small_model::{Mlp, ModelShape, build};
use crate::hostile::targets::{sound_plan, weights_of};
use fastrand::Rng;
use kernmill_compiler::output::plan_file::{PlanParts, PlanWriter};
use kernmill_compiler::passes::fuse::FusedSet;
use kernmill_compiler::passes::quant::Preset;
use kernmill_compiler::pipeline::{CompilerOptions, compile};
use kernmill_plan::file::SectionKind;
use kernmill_plan::file::check::{FileError, PlanFile, Section};
use kernmill_plan::format::WeightFormat;
use kernmill_plan::target::Level;
use kernmill_runtime::pool::PoolConfig;
use kernmill_runtime::{Engine, EngineConfig, Plan, SequenceTokens, Steps};
use std::fs::File;
use std::os::unix::fs::FileExt;
use tempfile::NamedTempFile;

/// The loader's reads before a first token, and those that it may do later.
fn read(file: &[u8]) -> Result<(), FileError> {
    let plan = PlanFile::open(file)?;
    plan.spec()?;
    plan.tokenizer_json()?;
    plan.chat_templates()?;
    (0..plan.metadata().targets.len()).try_for_each(|target| plan.program(target).map(drop))
}

#[test]
fn a_thousand_damaged_bytes_are_all_refused() {
    let good = sound_plan();
    read(good).unwrap();
    let plan = PlanFile::open(good).unwrap();
    let mut places: Vec<(String, u64, u64)> = vec![("header".to_owned(), 0, 4096)];
    let is_before =
        |section: &&Section| !matches!(section.kind, SectionKind::WeightHashes | SectionKind::Weights);
    let before_weights = plan.sections().iter().filter(is_before);
    places.extend(before_weights.map(|section| (section.name(), section.offset, section.bytes)));
    assert_eq!(
        places.len(),
        8,
        "header, metadata, spec, tokenizer, template, chat, program, code: {places:?}"
    );
    let mut rng = Rng::with_seed(11);
    let mut file = good.to_vec();
    for n in 0..1000 {
        let (name, offset, bytes) = &places[n % places.len()];
        let at = (offset + rng.u64(..*bytes)) as usize;
        file[at] ^= rng.u8(1..);
        let Err(error) = read(&file) else {
            panic!("byte {at} ({name}) changed to {}: not refused", file[at])
        };
        assert!(error.to_string().len() > 10, "{error}");
        file[at] = good[at];
    }
    assert!(read(&file).is_ok());
}

#[test]
fn every_byte_between_the_sections_counts_as_well() {
    let good = sound_plan();
    let plan = PlanFile::open(good).unwrap();
    let mut file = good.to_vec();
    for pair in plan.sections().windows(2) {
        for at in [pair[0].end(), pair[1].offset - 1].map(|at| at as usize) {
            if (pair[0].end() as usize..pair[1].offset as usize).contains(&at) {
                file[at] = 1;
                assert!(PlanFile::open(&file[..]).is_err(), "byte {at}");
                file[at] = 0;
            }
        }
    }
}

#[test]
fn files_cut_off_anywhere_are_refused() {
    let good = sound_plan();
    let mut rng = Rng::with_seed(3);
    for _ in 0..200 {
        assert!(read(&good[..rng.usize(..good.len())]).is_err());
    }
}

#[test]
fn weights_of_any_bytes_run_without_a_fault() {
    let oss = ModelShape::mini_gpt_oss();
    let many = Mlp::Experts { experts: 16, top_k: 4, inner: 96, format: WeightFormat::Mxfp4 };
    for shape in [oss.clone(), ModelShape { mlp: many, ..oss }, ModelShape::mini_llama()] {
        let graph = build(&shape).unwrap();
        for preset in [Preset::Exact, Preset::Faithful] {
            let options = |level| CompilerOptions { preset, chunk: 32, ..CompilerOptions::new(level) };
            let levels = Level::supported().into_iter();
            let compiled: Vec<_> = levels.map(|level| compile(&graph, &options(level)).unwrap()).collect();
            let parts = PlanParts {
                producer: "kernmill tests",
                compiled: &compiled,
                choices: None,
                fused: true,
                fused_specs: &FusedSet::builtin(),
                spec: "",
                tokenizer_json: None,
                end_tokens: &[],
                chat_templates: None,
            };
            let file = NamedTempFile::new().unwrap();
            let writer = PlanWriter::new(&parts).unwrap();
            writer.write(file.as_file(), &weights_of(&graph), 2, &|_| {}).unwrap();
            run_with_damaged_weights(file.as_file(), file.path(), graph.vocab as u32);
        }
    }
}

/// Runs every target over random bytes, bytes that make NaNs, and the largest and smallest numbers. Before
/// and behind the mapped weights lie pages that fault.
fn run_with_damaged_weights(file: &File, path: &std::path::Path, vocab: u32) {
    let mut rng = Rng::with_seed(5);
    let weights = *PlanFile::open(file.try_clone().unwrap()).unwrap().weights();
    for pattern in 0..4 {
        let bytes: Vec<u8> = (0..weights.bytes as usize)
            .map(|at| match pattern {
                0 => rng.u8(..),
                1 => 0xff,
                2 => [0, 0, 0xc0, 0x7f][at % 4],
                _ => [0xff, 0xff, 0x7f, 0x7f][at % 4],
            })
            .collect();
        file.write_all_at(&bytes, weights.offset).unwrap();
        let plan = Plan::open(path).unwrap();
        for target in 0..plan.metadata().targets.len() {
            let image = plan.image(target).unwrap();
            let pool = PoolConfig { threads: Some(2), ..PoolConfig::default() };
            let config = EngineConfig {
                pool,
                context: Some(64),
                sequences: 1,
                chunk: None,
                ..EngineConfig::default()
            };
            let mut engine = Engine::new(&image, config).unwrap();
            let id = engine.create().unwrap();
            let tokens: Vec<u32> = (0..40).map(|_| rng.u32(..vocab)).collect();
            let mut rows = 0;
            for piece in [&tokens[..33], &tokens[33..39], &tokens[39..]] {
                engine.extend_in_order(&[SequenceTokens::all(id, piece)], &mut |_| rows += 1).unwrap();
            }
            assert_eq!(rows, 40);
        }
    }
}
