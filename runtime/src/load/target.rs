//! Which of a plan's targets is run.

use kernmill_os::cpu::host_has;
use kernmill_os::tiles;
use kernmill_plan::abi::ABI_VERSION;
use kernmill_plan::file::TargetInfo;
use kernmill_plan::target::Level;
use std::fmt;
use std::io;

/// A target and whether it runs here.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TargetFit {
    /// Name of the target's level.
    pub name: String,
    /// Whether the target runs here.
    pub fit: TargetSupport,
}

/// Whether a target runs here, or why not.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TargetSupport {
    /// The target runs here, at this level.
    Runs(Level),
    /// This CPU lacks these features, which the target needs.
    Lacks(Vec<String>),
    /// The system does not permit this process to use AMX tiles; its answer.
    Tiles(String),
    /// The target's kernels are called in another way: this is their ABI version.
    Abi(u32),
    /// This version of kernmill does not know the target's level.
    Unknown,
}

impl fmt::Display for TargetSupport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            TargetSupport::Runs(_) => f.write_str("this CPU supports it"),
            TargetSupport::Lacks(features) => write!(f, "this CPU lacks {}", features.join(", ")),
            TargetSupport::Tiles(answer) => write!(f, "the system does not permit AMX tiles: {answer}"),
            TargetSupport::Abi(found) => {
                write!(f, "its kernels have ABI version {found}, this kernmill calls version {ABI_VERSION}")
            }
            TargetSupport::Unknown => f.write_str("this kernmill does not know it"),
        }
    }
}

/// Judges each target.
pub(super) fn fits(targets: &[TargetInfo]) -> Vec<TargetFit> {
    targets.iter().map(|info| TargetFit { name: info.level.clone(), fit: fit(info) }).collect()
}

fn fit(info: &TargetInfo) -> TargetSupport {
    let Some(level) = Level::from_name(&info.level) else { return TargetSupport::Unknown };
    if info.abi != ABI_VERSION {
        return TargetSupport::Abi(info.abi);
    }
    // The features that the plan states, and those of the level in this version: neither is believed alone.
    let stated = info.features.iter().map(String::as_str).filter(|feature| !host_has(feature));
    let mut lacking: Vec<String> = stated.chain(level.missing()).map(str::to_owned).collect();
    lacking.sort_unstable();
    lacking.dedup();
    match (lacking.is_empty(), level.has_tiles()) {
        (false, _) => TargetSupport::Lacks(lacking),
        (true, true) => fit_of_tiles(level, tiles::request()),
        (true, false) => TargetSupport::Runs(level),
    }
}

/// Fit of a target with tiles, on a CPU that has them.
fn fit_of_tiles(level: Level, permission: io::Result<()>) -> TargetSupport {
    match permission {
        Ok(()) => TargetSupport::Runs(level),
        Err(error) => TargetSupport::Tiles(error.to_string()),
    }
}

/// The target of level `wanted`, or else of the best level that runs; or what each one would need.
pub(super) fn choose(targets: &[TargetFit], wanted: Option<Level>) -> Result<usize, String> {
    let runs = |target: &TargetFit| match target.fit {
        TargetSupport::Runs(level) => Some(level),
        _ => None,
    };
    let running: Vec<Level> = targets.iter().filter_map(runs).collect();
    let best = match wanted {
        Some(level) => Some(level),
        None => Level::best(&running),
    };
    let place = targets.iter().rposition(|target| best.is_some() && runs(target) == best);
    place.ok_or_else(|| {
        let list = |target: &TargetFit| format!("{} ({})", target.name, target.fit);
        let all = targets.iter().map(list).collect::<Vec<_>>().join(", ");
        match wanted {
            Some(level) => format!("no target {} that runs here; the plan has {all}", level.name()),
            None => format!("no target runs here; the plan has {all}"),
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn info(level: &str, features: &[&str], abi: u32) -> TargetInfo {
        let features = features.iter().map(|feature| (*feature).to_owned()).collect();
        TargetInfo { level: level.to_owned(), features, abi }
    }

    #[test]
    fn the_best_level_that_runs_is_chosen_and_others_say_why_not() {
        let targets = [
            info("x86-64-v3", &["avx2"], ABI_VERSION),
            info("x86-64-v3", &["avx2", "telepathy"], ABI_VERSION),
            info("x86-64-v3", &[], ABI_VERSION + 1),
            info("x86-64-v9", &[], ABI_VERSION),
        ];
        let fits = fits(&targets);
        assert_eq!(choose(&fits, None), Ok(0));
        assert_eq!(choose(&fits, Some(Level::V3)), Ok(0));
        assert_eq!(fits[1].fit, TargetSupport::Lacks(vec!["telepathy".to_owned()]));
        let refused = choose(&fits[1..], None).unwrap_err();
        let newer = format!("ABI version {}", ABI_VERSION + 1);
        for part in ["lacks telepathy", &newer, "x86-64-v9 (this kernmill does not know it)"] {
            assert!(refused.contains(part), "{refused}");
        }
        assert!(choose(&fits, Some(Level::V4)).unwrap_err().starts_with("no target x86-64-v4 that runs"));
    }

    #[test]
    fn tiles_run_where_there_are_some_and_they_are_permitted() {
        let features: Vec<&str> = Level::Amx.features().names().collect();
        let fit = fits(&[info("amx", &features, ABI_VERSION)]).remove(0).fit;
        match Level::Amx.missing().is_empty() {
            true => assert_eq!(fit, fit_of_tiles(Level::Amx, tiles::request())),
            false => assert!(matches!(fit, TargetSupport::Lacks(_)), "{fit}"),
        }
        let target = |level: Level, fit| TargetFit { name: level.name().to_owned(), fit };
        let refused = fit_of_tiles(Level::Amx, Err(io::Error::from_raw_os_error(libc::EPERM)));
        let targets =
            |amx| [target(Level::V4Vnni, TargetSupport::Runs(Level::V4Vnni)), target(Level::Amx, amx)];
        assert_eq!(choose(&targets(fit_of_tiles(Level::Amx, Ok(()))), None), Ok(1));
        assert_eq!(choose(&targets(refused.clone()), None), Ok(0));
        let message = choose(&targets(refused), Some(Level::Amx)).unwrap_err();
        assert!(message.contains("amx (the system does not permit AMX tiles: "), "{message}");
    }

    #[test]
    fn higher_levels_come_before_lower_ones_wherever_they_stand() {
        let fit = |level: Level| TargetFit { name: level.name().to_owned(), fit: TargetSupport::Runs(level) };
        let fits = [fit(Level::V4), fit(Level::V4Vnni), fit(Level::V3)];
        assert_eq!(choose(&fits, None), Ok(1));
        assert_eq!(choose(&fits, Some(Level::V3)), Ok(2));
    }
}
