//! The random numbers of a synthetic checkpoint: which scatter a tensor has, and its bytes.

use super::blocks::{FP4_PAIRS, RandomBlocks, fp4_scale};
use crate::ir::{Graph, Node, Role, Tensor};
use half::{bf16, f16};

/// Bytes made at once, at most; a piece's bytes depend on the seed, the tensor's name and the piece's offset
/// alone.
const CHUNK: usize = 1 << 20;

/// Mean and standard deviation of a tensor's elements.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Scatter {
    pub(super) mean: f32,
    pub(super) std: f32,
}

/// How bytes are made.
#[derive(Clone, Copy, Debug)]
pub(super) enum ByteFill {
    Bf16(Scatter),
    F16(Scatter),
    F32(Scatter),
    /// Pairs of E2M1 codes.
    Fp4Codes,
    /// E8M0 scales that give the elements this scatter.
    Fp4Scales(Scatter),
    /// Blocks of a GGUF file.
    Blocks(RandomBlocks),
}

impl ByteFill {
    /// Bytes of a piece that is made at once: whole blocks.
    pub(super) fn piece(&self) -> usize {
        match self {
            ByteFill::Blocks(blocks) => CHUNK / blocks.bytes() * blocks.bytes(),
            _ => CHUNK,
        }
    }
}

const BIAS_STD: f32 = 0.02;

/// The scatter of each tensor of the graph, from the use it is put to.
pub(super) fn scatters(graph: &Graph) -> Vec<Scatter> {
    let mut scatters = vec![Scatter { mean: 0.0, std: 1.0 }; graph.tensors.len()];
    let additions = graph.nodes.iter().filter(|n| n.is_add()).count().max(1);
    for node in &graph.nodes {
        // Terms of the residual stream are scaled so that all of them together have about its variance.
        let is_sum = |n: &&Node| n.is_add() || n.op.is_expert_sum();
        let is_residual = graph.nodes.iter().filter(is_sum).any(|n| n.inputs.contains(&node.output));
        for (i, id) in node.tensors.iter().enumerate() {
            let tensor = &graph.tensors[id.0 as usize];
            scatters[id.0 as usize] = match &node.op {
                op if op.norm().is_some() && i == 0 => Scatter { mean: 1.0 - tensor.plus, std: 0.05 },
                op if op.attention().is_some() || tensor.role == Role::Table => {
                    Scatter { mean: 0.0, std: 1.0 }
                }
                _ if i > 0 || tensor.role == Role::Vector => Scatter { mean: 0.0, std: BIAS_STD },
                _ => Scatter { mean: 0.0, std: matrix_std(tensor, is_residual.then_some(additions)) },
            };
        }
    }
    scatters
}

fn matrix_std(tensor: &Tensor, additions: Option<usize>) -> f32 {
    debug_assert!(matches!(tensor.role, Role::Matrix | Role::ExpertMatrix));
    let k = tensor.shape[tensor.shape.len() - 1] as f32;
    1.0 / (k * additions.unwrap_or(1) as f32).sqrt()
}

/// Makes bytes; holds the tables for it.
pub(super) struct Maker {
    seed: u64,
    /// 65536 normally distributed numbers of mean 0 and variance 1: a random u16 picks one.
    normal: Vec<f32>,
    /// Normally distributed numbers as bf16, for the scatter of the last tensor.
    bf16: Option<(Scatter, Vec<[u8; 2]>)>,
}

impl Maker {
    pub(super) fn new(seed: u64) -> Maker {
        Maker { seed, normal: normal_table(), bf16: None }
    }

    /// Fills `out` with bytes `offset..` of the tensor called `name`; `offset` is a multiple of
    /// [`ByteFill::piece`].
    pub(super) fn fill(&mut self, name: &str, fill: ByteFill, offset: u64, out: &mut [u8]) {
        let mut rng = fastrand::Rng::with_seed(stream_seed(self.seed, name, offset));
        rng.fill(out);
        match fill {
            ByteFill::Bf16(scatter) => {
                let table = self.bf16_table(scatter);
                for pair in out.as_chunks_mut::<2>().0 {
                    *pair = table[usize::from(u16::from_le_bytes(*pair))];
                }
            }
            ByteFill::F16(scatter) => {
                for pair in out.as_chunks_mut::<2>().0 {
                    let value = self.normal[usize::from(u16::from_le_bytes(*pair))];
                    *pair = f16::from_f32(value * scatter.std + scatter.mean).to_le_bytes();
                }
            }
            ByteFill::F32(scatter) => {
                for four in out.as_chunks_mut::<4>().0 {
                    let index = u32::from_le_bytes(*four) >> 16;
                    let value = self.normal[index as usize] * scatter.std + scatter.mean;
                    *four = value.to_le_bytes();
                }
            }
            ByteFill::Fp4Codes => out.iter_mut().for_each(|byte| *byte = FP4_PAIRS[usize::from(*byte)]),
            ByteFill::Fp4Scales(scatter) => {
                let (low, threshold) = fp4_scale(scatter.std);
                out.iter_mut().for_each(|byte| *byte = low + u8::from(*byte < threshold));
            }
            ByteFill::Blocks(blocks) => blocks.make(out),
        }
    }

    fn bf16_table(&mut self, scatter: Scatter) -> &[[u8; 2]] {
        if self.bf16.as_ref().is_none_or(|(made_for, _)| *made_for != scatter) {
            let element = |x: &f32| bf16::from_f32(x * scatter.std + scatter.mean).to_bits().to_le_bytes();
            self.bf16 = Some((scatter, self.normal.iter().map(element).collect()));
        }
        &self.bf16.as_ref().expect("made above").1
    }
}

/// Normal numbers by Box and Muller's method, in a platform-independent way.
fn normal_table() -> Vec<f32> {
    let mut rng = fastrand::Rng::with_seed(0);
    let mut table = Vec::with_capacity(1 << 16);
    while table.len() < 1 << 16 {
        let (u, v) = (1.0 - rng.f64(), rng.f64());
        let radius = (-2.0 * libm::log(u)).sqrt();
        let angle = std::f64::consts::TAU * v;
        table.push((radius * libm::cos(angle)) as f32);
        table.push((radius * libm::sin(angle)) as f32);
    }
    table
}

/// A separate seed for each piece of each tensor: FNV-1a over name and place, from the checkpoint's seed.
fn stream_seed(seed: u64, name: &str, offset: u64) -> u64 {
    let place = offset.to_le_bytes();
    let bytes = name.bytes().chain(place);
    bytes.fold(seed ^ 0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    })
}
