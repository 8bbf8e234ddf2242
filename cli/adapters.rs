//! `--lora`: adapters from the command line to the engine.

use kernmill::adapters::AdapterSource;
use std::path::Path;

/// Adapters to run with.
#[derive(Clone, Debug, Default, clap::Args)]
pub struct AdapterArgs {
    /// Adapter (LoRA or DoRA): a directory that PEFT's save_pretrained wrote, with a name for it. SCALE
    /// multiplies what it adds, beside its own alpha. May be given several times: run and logits add them all
    /// up, bench gives them to its sequences in turn
    #[arg(long = "lora", value_name = "NAME=DIR[:SCALE]", value_parser = adapter)]
    #[cfg_attr(feature = "compiler", arg(conflicts_with = "no_adapters"))]
    pub adapters: Vec<AdapterSource>,
}

/// Reads `NAME=DIR[:SCALE]`. What follows the last colon is a scale if it is a number, unless there is a file
/// or directory of the whole name.
pub fn adapter(text: &str) -> Result<AdapterSource, String> {
    let parts = text.split_once('=').filter(|(name, rest)| !name.is_empty() && !rest.is_empty());
    let Some((name, rest)) = parts else {
        return Err(
            "expected NAME=DIR or NAME=DIR:SCALE, such as poet=adapters/poet or poet=adapters/poet:0.5"
                .to_owned(),
        );
    };
    let scaled = rest.rsplit_once(':').and_then(|(dir, scale)| Some((dir, scale.parse::<f32>().ok()?)));
    let scaled = scaled.filter(|_| !Path::new(rest).exists());
    let (directory, scale) = scaled.unwrap_or((rest, 1.0));
    if !scale.is_finite() {
        return Err(format!("the scale is {scale}, expected a finite number"));
    }
    Ok(AdapterSource { name: name.to_owned(), directory: directory.into(), scale })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_directories_and_scales_are_told_apart() {
        let of = |name: &str, directory: &str, scale| {
            Ok(AdapterSource { name: name.into(), directory: directory.into(), scale })
        };
        assert_eq!(adapter("a=b"), of("a", "b", 1.0));
        assert_eq!(adapter("a=b/c:0.5"), of("a", "b/c", 0.5));
        assert_eq!(adapter("a=b:c=d:-2"), of("a", "b:c=d", -2.0));
        assert_eq!(adapter("a=b:c"), of("a", "b:c", 1.0));
        // A directory named after the time of day is no scale of its neighbour.
        let dir = std::env::temp_dir().join(format!("kernmill-adapter-{}-T10:30", std::process::id()));
        let at = |end: &str| format!("a={}{end}", dir.display());
        let cut = dir.display().to_string().replace("T10:30", "T10");
        assert_eq!(adapter(&at("")), of("a", &cut, 30.0));
        std::fs::create_dir(&dir).unwrap();
        assert_eq!(adapter(&at("")), of("a", &dir.display().to_string(), 1.0));
        assert_eq!(adapter(&at(":0.25")), of("a", &dir.display().to_string(), 0.25));
        std::fs::remove_dir(&dir).unwrap();
        for wrong in ["a", "=b", "a=", "a=b:inf", "a=b:NaN"] {
            assert!(adapter(wrong).is_err(), "{wrong}");
        }
    }
}
