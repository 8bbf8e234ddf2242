//! Where a program is cut into stages, so that several processes run the layers of one model.
//!
//! A cut lies between two attention layers, where the fewest bytes cross it: the residual stream, in models
//! of today. The first stage also has what follows the last layer, up to the logits, so that a batch comes
//! back to it. All stages run the same program over the same rows, and no sum is split: the bits are those of
//! one process.

use kernmill_plan::contract::Need;
use kernmill_plan::program::{Operand, Program, Step, TokenClass};
use std::ops::Range;

/// Why a program cannot be cut.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CutError {
    /// There are not so many layers.
    #[error(
        "{stages} stages were asked for, and the model has {layers} attention layers: each stage has one at least"
    )]
    Layers {
        /// Stages that were asked for.
        stages: u32,
        /// Attention layers of the model.
        layers: u32,
    },
    /// The other side cuts elsewhere than a program can be cut.
    #[error(
        "stages that begin at the layers {found:?} are not those of a model with {layers} attention layers"
    )]
    Bounds {
        /// First layer of each stage, and the end.
        found: Vec<u32>,
        /// Attention layers of the model.
        layers: u32,
    },
    /// Steps of two layers are in each other's way.
    #[error(
        "the program cannot be cut before attention layer {layer}: a step belongs to layers of both sides"
    )]
    Mixed {
        /// The layer.
        layer: u32,
    },
    /// Classes of batches would send other rows.
    #[error(
        "the program cannot be cut before attention layer {layer}: a token's rows depend on the size of the batch"
    )]
    Uneven {
        /// The layer.
        layer: u32,
    },
}

/// A place between two steps, and the rows that are handed over there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Cut {
    /// Number of the first step behind it.
    pub step: usize,
    /// Arena offset of each buffer that lives on, and its bytes for each token.
    pub rows: Vec<(usize, usize)>,
}

/// The cuts of a program, one behind each stage. The last one leads back to the first stage.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Cuts {
    /// The first attention layer of each stage, and the number of layers.
    layers: Vec<u32>,
    /// By token class and stage.
    classes: Vec<Vec<Cut>>,
}

impl Cuts {
    /// Cuts a program so that the stages read about equally many bytes of weights for a token.
    ///
    /// # Errors
    /// When there are more stages than layers, or the program cannot be cut.
    pub(crate) fn even(program: &Program, stages: u32) -> Result<Cuts, CutError> {
        let layers = program.model.kv.layers.len() as u32;
        if stages == 0 || stages > layers {
            return Err(CutError::Layers { stages, layers });
        }
        let Some(class) = program.classes.first() else { return Err(CutError::Layers { stages, layers }) };
        // There is no place before a layer where later ones read the cache of one before it.
        let before: Vec<Option<f64>> = (1..=layers)
            .map(|layer| Some(read_by(class, 0..place(class, layer, layers).ok()?.step)))
            .collect();
        let all = read_by(class, 0..class.steps.len());
        let logits: f64 = class.logit_steps.iter().map(|step| bytes_of(class, step)).sum();
        // The first stage has these besides its layers.
        let behind = all - before.last().copied().flatten().unwrap_or(all) + logits;
        let share = (all + logits) / f64::from(stages);
        let mut bounds = vec![0];
        for stage in 1..stages {
            let wanted = (share * f64::from(stage) - behind).max(0.0);
            let least = bounds[stage as usize - 1] + 1;
            let most = layers - (stages - stage);
            let off = |layer| before[layer as usize - 1].map(|before| ((before - wanted).abs(), layer));
            let nearest = (least..=most).filter_map(off).min_by(|a, b| a.0.total_cmp(&b.0));
            bounds.push(nearest.ok_or(CutError::Mixed { layer: least })?.1);
        }
        bounds.push(layers);
        Cuts::at(program, &bounds)
    }

    /// Cuts a program before given attention layers: the first of each stage, and the number of all.
    ///
    /// # Errors
    /// When these are no such layers, or the program cannot be cut.
    pub(crate) fn at(program: &Program, bounds: &[u32]) -> Result<Cuts, CutError> {
        let layers = program.model.kv.layers.len() as u32;
        let rises = bounds.windows(2).all(|pair| pair[0] < pair[1]);
        if bounds.len() < 2 || bounds.first() != Some(&0) || bounds.last() != Some(&layers) || !rises {
            return Err(CutError::Bounds { found: bounds.to_vec(), layers });
        }
        let cuts_of = |class: &TokenClass| {
            let behind = bounds[1..].iter().map(|layer| {
                let CutPoint { step, live } = place(class, *layer, layers)?;
                let rows = live.iter().map(|index| {
                    let bytes =
                        token_bytes(program, class, *index).ok_or(CutError::Mixed { layer: *layer })?;
                    Ok((class.buffers[*index].offset as usize, bytes))
                });
                Ok(Cut { step, rows: rows.collect::<Result<_, CutError>>()? })
            });
            behind.collect::<Result<Vec<Cut>, CutError>>()
        };
        let classes = program.classes.iter().map(cuts_of).collect::<Result<Vec<_>, _>>()?;
        let cuts = Cuts { layers: bounds.to_vec(), classes };
        for (stage, layer) in bounds[1..].iter().enumerate() {
            let bytes = |class: &Vec<Cut>| class[stage].rows.iter().map(|row| row.1).collect::<Vec<_>>();
            if cuts.classes.windows(2).any(|pair| bytes(&pair[0]) != bytes(&pair[1])) {
                return Err(CutError::Uneven { layer: *layer });
            }
        }
        Ok(cuts)
    }

    /// Number of stages.
    pub(crate) fn stages(&self) -> u32 {
        self.layers.len() as u32 - 1
    }

    /// The first attention layer of each stage, and the number of all.
    pub(crate) fn bounds(&self) -> &[u32] {
        &self.layers
    }

    /// The attention layers of a stage, which are counted from 1.
    pub(crate) fn layers(&self, stage: u32) -> Range<usize> {
        self.layers[stage as usize - 1] as usize..self.layers[stage as usize] as usize
    }

    /// The cut behind a stage, in a class.
    pub(crate) fn behind(&self, class: usize, stage: u32) -> &Cut {
        &self.classes[class][stage as usize - 1]
    }

    /// Bytes that a token sends across the cut behind a stage.
    pub(crate) fn token_bytes(&self, stage: u32) -> usize {
        self.classes.first().map_or(0, |class| class[stage as usize - 1].rows.iter().map(|row| row.1).sum())
    }

    /// The part of the weights that a stage reads for a token, from 0 to 1.
    pub(crate) fn share(&self, program: &Program, stage: u32) -> f64 {
        let Some(class) = program.classes.first() else { return 1.0 };
        let logits: f64 = class.logit_steps.iter().map(|step| bytes_of(class, step)).sum();
        let all = read_by(class, 0..class.steps.len()) + logits;
        let to = self.behind(0, stage).step;
        let own = match stage {
            1 => {
                read_by(class, 0..to)
                    + read_by(class, self.behind(0, self.stages()).step..class.steps.len())
                    + logits
            }
            _ => read_by(class, self.behind(0, stage - 1).step..to),
        };
        if all > 0.0 { own / all } else { 1.0 }
    }
}

/// A place in a class's steps, and the buffers that live across it.
struct CutPoint {
    step: usize,
    live: Vec<usize>,
}

/// The best place between attention layer `layer - 1` and the next one: where the fewest bytes live on.
fn place(class: &TokenClass, layer: u32, layers: u32) -> Result<CutPoint, CutError> {
    let touches = |step: &Step, of: Range<u32>| {
        step.operands.iter().any(|operand| matches!(operand, Operand::Kv { layer, .. } if of.contains(layer)))
    };
    // Later layers may read an earlier one's cache, which is in its stage alone.
    let last = class.steps.iter().rposition(|step| touches(step, 0..layer)).map_or(1, |last| last + 1);
    let next = match layer < layers {
        true => class.steps.iter().position(|step| touches(step, layer..layers)).unwrap_or(class.steps.len()),
        false => class.steps.len(),
    };
    let best = (last..=next)
        .rev()
        .min_by_key(|step| live(class, *step).map(|index| class.buffers[index].bytes).sum::<u64>());
    let step = best.ok_or(CutError::Mixed { layer })?;
    Ok(CutPoint { step, live: live(class, step).collect() })
}

/// Buffers that steps before `step` write, and others from there on read.
fn live(class: &TokenClass, step: usize) -> impl Iterator<Item = usize> + '_ {
    let lives = class.buffers.iter().enumerate();
    let crossing = move |buffer: &kernmill_plan::program::Buffer| {
        (buffer.first as usize) < step && buffer.last as usize >= step
    };
    lives.filter(move |(_, buffer)| crossing(buffer)).map(|(index, _)| index)
}

/// Bytes of a token in a buffer, as the kernels that use it say.
fn token_bytes(program: &Program, class: &TokenClass, buffer: usize) -> Option<usize> {
    class.steps.iter().find_map(|step| {
        let contract = program.code.symbols.get(step.kernel as usize)?.contract.as_ref()?;
        let mut pairs = step.operands.iter().zip(&contract.operands);
        let (_, need) = pairs.find(|(operand, _)| **operand == Operand::Buffer(buffer as u32))?;
        match *need {
            Need::Buffer { slots, wanted: false, row_bytes, .. } if slots > 0 => {
                Some(slots as usize * row_bytes as usize)
            }
            _ => None,
        }
    })
}

/// Bytes of weights that steps read for one token.
fn read_by(class: &TokenClass, steps: Range<usize>) -> f64 {
    class.steps[steps].iter().map(|step| bytes_of(class, step)).sum()
}

fn bytes_of(class: &TokenClass, step: &Step) -> f64 {
    let work = &step.work;
    let routing = work.routing.and_then(|routing| class.routings.get(routing as usize));
    let chosen = routing.map_or(0, |routing| u64::from(routing.top_k));
    (work.shared_bytes + work.row_bytes + work.expert_bytes * chosen) as f64
}
