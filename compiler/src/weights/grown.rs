//! A note where packed weights take more than the files that they come from.

use crate::ir::Graph;
use kernmill_os::text::size;

/// How many times the bytes of its files a model may take before that is worth a word: scales in whole bytes,
/// and tables that are kept twice, take a little in any preset.
const WORTH_A_WORD: f64 = 1.15;

/// One sentence for users whose model takes `packed` bytes of weights in the preset of this name, if that is
/// well above the `stored` ones of its files: F16 has no format of 16 bits here, and is f32 in `exact`.
pub fn grown(graph: &Graph, stored: u64, preset: &str, packed: u64) -> Option<String> {
    let bits = |bytes: u64| bytes as f64 * 8.0 / graph.weights().max(1) as f64;
    (packed as f64 > stored as f64 * WORTH_A_WORD).then(|| {
        format!(
            "the files have {:.1} bits a weight, preset {preset} keeps {:.1}: {} become {}",
            bits(stored),
            bits(packed),
            size(stored),
            size(packed)
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::front::spec::{Spec, lower};

    #[test]
    fn weights_that_take_more_than_their_files_are_told_of() {
        let text = std::fs::read_to_string("../model-specs/nano/nano.toml").expect("nano has a spec");
        let graph = lower(&Spec::parse("nano.toml", &text).expect("it is one")).expect("it fits");
        let (half, whole) = (graph.weights() * 2, graph.weights() * 4);
        let note = grown(&graph, half, "exact", whole).expect("it is twice as much");
        assert!(note.starts_with("the files have 16.0 bits a weight, preset exact keeps 32.0: "), "{note}");
        assert_eq!(grown(&graph, half, "exact", half + 1000), None);
        assert_eq!(grown(&graph, half, "faithful", half / 2), None);
    }
}
