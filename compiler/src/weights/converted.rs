//! A note where no format holds what a checkpoint has quantised.

use kernmill_checkpoint::Checkpoint;

/// A sentence for users for each reason for which quantised matrices count as f32, which the preset of this
/// name rounds anew, unless it is `exact`.
pub fn converted(checkpoint: &Checkpoint, preset: &str) -> Vec<String> {
    let becomes = match preset {
        "exact" => "preset exact keeps that".to_owned(),
        _ => format!("preset {preset} rounds that anew, to int8 for most"),
    };
    let note = |converted: &kernmill_checkpoint::quantised::Converted| {
        let (count, what) = (converted.count, converted.what);
        let (matrices, count_as) = if count == 1 { ("matrix", "counts") } else { ("matrices", "count") };
        format!("{count} {matrices} {what} {count_as} as f32, and {becomes} (such as {})", converted.first)
    };
    checkpoint.converted().iter().map(note).collect()
}
