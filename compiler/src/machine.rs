//! Descriptions of machines: what `kernmill cpu --measure --json` writes of a host, read back where code is
//! made for it. The reader believes nothing of the file.

use crate::passes::quant::Preset;
use crate::passes::select::costs_of_machine::{MACHINE, Machine};
use kernmill_os::affinity::CpuSet;
use kernmill_os::text::shortened;
use kernmill_plan::limit;
use kernmill_plan::target::{Features, Level, Tuning};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::ops::RangeInclusive;

/// Schema of a description; the number grows when a field goes or changes its meaning.
pub const SCHEMA: &str = "kernmill.cpu/2";

/// The command that writes a description, for messages.
const WRITER: &str = "`kernmill cpu --measure --json`";

/// Threads that a machine may be measured with, and so the most entries.
const THREADS: RangeInclusive<u64> = 1..=1024;
/// Bytes per second in billions: from a microcontroller's to more than any memory gives.
const GB_PER_S: RangeInclusive<f64> = 0.01..=100_000.0;
/// Operations per second in trillions.
const TOPS_PER_S: RangeInclusive<f64> = 1e-6..=100_000.0;
/// Microseconds of a barrier or a step: a second is more than any takes.
const MICROSECONDS: RangeInclusive<f64> = 0.0..=1e6;
/// One time as a share of another: a thousandth to a thousand times as long.
const SHARE: RangeInclusive<f64> = 1e-3..=1e3;
/// Tiles are a target where they take less than this share of what vectors take, in cache. Whole prompts took
/// as long with either where tiles had shares of 0.66 and 0.55 (`benches/runs/2026-11-27-amx-tiles.md`).
const TILES_PAY: f64 = 0.55;
/// Bytes of a memory or cache.
const BYTES: RangeInclusive<u64> = 0..=1 << 50;

/// A machine, as it was measured.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Description {
    /// Name of the CPU.
    pub cpu: String,
    /// Version of the kernmill that measured it.
    pub version: String,
    /// CPU features that targets ask for.
    pub features: Features,
    /// Whether the system permits AMX tiles.
    pub tiles: bool,
    /// A row's products on AMX tiles as a share of what vectors take for them: of bf16, and of int8. `None`
    /// where they were not measured.
    pub tile_shares: Option<[f64; 2]>,
    /// Family that code is tuned for.
    pub family: Tuning,
    /// Bytes of memory that were available.
    pub available_memory: Option<u64>,
    /// Bytes of a core's second level of cache; 0 where the system does not say.
    pub core_cache: u64,
    /// Bytes of the last level of cache; 0 where the system does not say.
    pub last_level_cache: u64,
    /// Nodes of memory; 0 where the system does not say.
    pub nodes: usize,
    /// Last levels of cache, each of some CPUs; 0 where the file does not say.
    pub caches: usize,
    /// Pairs of CPUs that are hardware threads of one core, and that the system does not name so.
    pub hidden_pairs: usize,
    /// The speeds of numbers of threads, ascending; the first is one thread.
    pub measured: Vec<ReachedSpeeds>,
}

/// The speeds that a number of threads reaches.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct ReachedSpeeds {
    /// Threads.
    pub threads: usize,
    /// Bytes per second from memory, in billions.
    pub gb_per_s: f64,
    /// Integer operations per second, in trillions.
    pub tops_per_s: f64,
    /// Microseconds of a barrier of these threads.
    pub barrier_us: f64,
    /// Microseconds that a step more costs where all read memory: its barrier, and memory that waits for it.
    pub step_us: f64,
}

/// Why a text describes no machine: one line, which names the field.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct DescriptionError(String);

type Result<T> = std::result::Result<T, DescriptionError>;

impl Description {
    /// Reads a description.
    ///
    /// # Errors
    /// When the text is no description, has another version, or a field is missing or out of bounds.
    pub fn parse(text: &str) -> Result<Description> {
        if text.len() as u64 > limit::MACHINE_BYTES {
            return bad(format!("it has {} bytes, expected at most {}", text.len(), limit::MACHINE_BYTES));
        }
        let value: Value = match serde_json::from_str(text) {
            Ok(value @ Value::Object(_)) => value,
            Ok(_) => return bad(format!("expected a JSON object, as {WRITER} writes it")),
            Err(error) => return bad(format!("not JSON: {error}; expected what {WRITER} writes")),
        };
        let all = DescriptionFields { value: &value, place: String::new() };
        match value.get("schema").and_then(Value::as_str) {
            Some(SCHEMA) => {}
            Some(other) => {
                let other = shortened(other);
                return bad(format!("`schema` is {other}, expected {SCHEMA}: measure with this version"));
            }
            None => return bad(format!("`schema` is missing, expected {SCHEMA}, which {WRITER} writes")),
        }
        let family = all.text("family")?;
        let Some(family) = Tuning::ALL.into_iter().find(|tuning| tuning.name() == family) else {
            let names = Tuning::ALL.map(Tuning::name).join(", ");
            return bad(format!("`family` is {}, expected one of {names}", shortened(&family)));
        };
        Ok(Description {
            cpu: shortened(&all.text("cpu")?).into_owned(),
            version: shortened(&all.text("version")?).into_owned(),
            features: features(&all)?,
            tiles: all.object("amx")?.flag("permitted")?,
            tile_shares: tile_shares(&all.object("amx")?)?,
            family,
            available_memory: match value.get("available_memory") {
                Some(Value::Null) => None,
                _ => Some(all.integer("available_memory", BYTES)?),
            },
            core_cache: all.integer("core_cache", BYTES)?,
            last_level_cache: all.integer("last_level_cache", BYTES)?,
            nodes: cpu_lists(&all, "nodes")?,
            caches: cpu_lists(&all, "caches")?,
            hidden_pairs: cpu_lists(&all, "hidden_pairs")?,
            measured: measured(&all)?,
        })
    }

    /// The best target of the machine for a preset, and so the one that code is made for. Presets whose
    /// prompts vectors multiply as well take tiles where these were measured and are faster.
    pub fn level(&self, preset: Preset) -> Level {
        let pays = |shares: [f64; 2]| shares.iter().any(|share| *share < TILES_PAY);
        let tiles = self.tiles && (preset.has_tiles() || self.tile_shares.is_some_and(pays));
        let runs = |level: &Level| self.features.has(level.features()) && (tiles || !level.has_tiles());
        // The reader has found that it has the floor.
        Level::ALL.into_iter().rfind(runs).unwrap_or(Level::V3)
    }

    /// The speeds of the most threads that were measured: they are the workers.
    pub fn workers(&self) -> ReachedSpeeds {
        self.measured[self.measured.len() - 1]
    }

    /// The machine as the cost model sees it: workers, memory and the cost of a step are the measured ones.
    pub fn costs(&self) -> Machine {
        let (one, all) = (self.measured[0], self.workers());
        Machine {
            workers: all.threads,
            all_bytes: all.gb_per_s,
            worker_bytes: one.gb_per_s,
            barrier: all.step_us * 1e3,
            tile_shares: self.tile_shares.unwrap_or(MACHINE.tile_shares),
            ..MACHINE
        }
    }
}

/// The CPU features; at least those that every target needs.
fn features(all: &DescriptionFields<'_>) -> Result<Features> {
    let mut features = Features::NONE;
    for (at, name) in all.list("features", Features::NAMED.len() as u64 * 4)?.iter().enumerate() {
        let known = name.as_str().and_then(Features::from_name);
        let Some(known) = known else {
            let found = shortened(&name.to_string()).into_owned();
            return bad(format!("`features[{at}]` is {found}, expected a CPU feature that targets ask for"));
        };
        features = features.and(known);
    }
    let lacks = Features::FLOOR.names().find(|name| {
        let needed = Features::from_name(name).unwrap_or(Features::NONE);
        !features.has(needed)
    });
    match lacks {
        Some(name) => bad(format!("`features` lacks {name}, which every target needs")),
        None => Ok(features),
    }
}

/// Shares of tiles, which a machine without tiles does not have.
fn tile_shares(amx: &DescriptionFields<'_>) -> Result<Option<[f64; 2]>> {
    if matches!(amx.value.get("tile_shares"), None | Some(Value::Null)) {
        return Ok(None);
    }
    let shares = amx.object("tile_shares")?;
    Ok(Some([shares.number("bf16", SHARE)?, shares.number("int8", SHARE)?]))
}

/// How many lists of CPUs there are; older descriptions have none.
fn cpu_lists(all: &DescriptionFields<'_>, name: &str) -> Result<usize> {
    if all.value.get(name).is_none() {
        return Ok(0);
    }
    let lists = all.list(name, *THREADS.end())?;
    for (at, list) in lists.iter().enumerate() {
        if list.as_str().is_none_or(|list| list.parse::<CpuSet>().is_err()) {
            let found = shortened(&list.to_string()).into_owned();
            return bad(format!("`{name}[{at}]` is {found}, expected CPUs such as \"0-3,8\""));
        }
    }
    Ok(lists.len())
}

fn measured(all: &DescriptionFields<'_>) -> Result<Vec<ReachedSpeeds>> {
    if all.value.get("measured").is_none() {
        return bad("`measured` is missing: write the description with --measure".to_owned());
    }
    let mut reached: Vec<ReachedSpeeds> = Vec::new();
    for (at, value) in all.list("measured", *THREADS.end())?.iter().enumerate() {
        let one = DescriptionFields { value, place: format!("measured[{at}].") };
        let threads = one.integer("threads", THREADS)? as usize;
        let least = reached.last().map_or(1, |last| last.threads + 1);
        if threads < least || at == 0 && threads != 1 {
            let expected = if at == 0 { "1".to_owned() } else { format!("at least {least}") };
            return bad(format!("`measured[{at}].threads` is {threads}, expected {expected}"));
        }
        reached.push(ReachedSpeeds {
            threads,
            gb_per_s: one.number("gb_per_s", GB_PER_S)?,
            tops_per_s: one.number("tops_per_s", TOPS_PER_S)?,
            barrier_us: one.number("barrier_us", MICROSECONDS)?,
            step_us: one.number("step_us", MICROSECONDS)?,
        });
    }
    match reached.is_empty() {
        true => bad("`measured` is empty, expected at least one thread's figures".to_owned()),
        false => Ok(reached),
    }
}

fn bad<T>(what: String) -> Result<T> {
    Err(DescriptionError(what))
}

/// Fields of an object in a description.
struct DescriptionFields<'a> {
    value: &'a Value,
    /// The prefix of their names in messages.
    place: String,
}

impl<'a> DescriptionFields<'a> {
    /// The error for a field that is not what it must be.
    fn wrong<T>(&self, name: &str, expected: &str) -> Result<T> {
        let place = &self.place;
        match self.value.get(name) {
            None => bad(format!("`{place}{name}` is missing, expected {expected}")),
            Some(found) => {
                let found = match found {
                    Value::Array(_) => "a list".to_owned(),
                    Value::Object(_) => "an object".to_owned(),
                    other => shortened(&other.to_string()).into_owned(),
                };
                bad(format!("`{place}{name}` is {found}, expected {expected}"))
            }
        }
    }

    fn text(&self, name: &str) -> Result<String> {
        let found = self.value.get(name).and_then(Value::as_str);
        found.map_or_else(|| self.wrong(name, "a text"), |text| Ok(text.to_owned()))
    }

    fn flag(&self, name: &str) -> Result<bool> {
        let found = self.value.get(name).and_then(Value::as_bool);
        found.map_or_else(|| self.wrong(name, "true or false"), Ok)
    }

    fn object(&self, name: &str) -> Result<DescriptionFields<'a>> {
        match self.value.get(name).filter(|value| value.is_object()) {
            Some(value) => Ok(DescriptionFields { value, place: format!("{}{name}.", self.place) }),
            None => self.wrong(name, "an object"),
        }
    }

    fn list(&self, name: &str, most: u64) -> Result<&'a [Value]> {
        match self.value.get(name).and_then(Value::as_array) {
            Some(list) if list.len() as u64 <= most => Ok(list),
            Some(list) => {
                bad(format!("`{}{name}` has {} entries, expected at most {most}", self.place, list.len()))
            }
            None => self.wrong(name, "a list"),
        }
    }

    fn integer(&self, name: &str, range: RangeInclusive<u64>) -> Result<u64> {
        let found = self.value.get(name).and_then(Value::as_u64).filter(|found| range.contains(found));
        let expected = || format!("a whole number from {} to {}", range.start(), range.end());
        found.map_or_else(|| self.wrong(name, &expected()), Ok)
    }

    fn number(&self, name: &str, range: RangeInclusive<f64>) -> Result<f64> {
        let found = self.value.get(name).and_then(Value::as_f64).filter(|found| range.contains(found));
        let expected = || format!("a number from {} to {}", range.start(), range.end());
        found.map_or_else(|| self.wrong(name, &expected()), Ok)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn sound() -> Value {
        json!({
            "schema": SCHEMA,
            "version": "0.1.0",
            "cpu": "A CPU",
            "features": Level::V4Vnni.features().names().collect::<Vec<_>>(),
            "family": "zen5",
            "amx": { "present": false, "permitted": false },
            "available_memory": 64_000_000_000u64,
            "core_cache": 1 << 20,
            "last_level_cache": 32 << 20,
            "nodes": ["0-7,16-23", "8-15,24-31"],
            "caches": ["0-31"],
            "measured": [
                { "threads": 1, "gb_per_s": 20.5, "tops_per_s": 0.7, "barrier_us": 0.01, "step_us": 0.2 },
                { "threads": 16, "gb_per_s": 210.0, "tops_per_s": 9.0, "barrier_us": 2.5, "step_us": 7.0 },
            ],
        })
    }

    #[test]
    fn a_description_is_the_machine_that_costs_are_for() {
        let read = Description::parse(&sound().to_string()).unwrap();
        assert_eq!((read.level(Preset::Faithful), read.family), (Level::V4Vnni, Tuning::Zen5));
        let costs = read.costs();
        assert_eq!(
            (costs.workers, costs.all_bytes, costs.worker_bytes, costs.barrier),
            (16, 210.0, 20.5, 7000.0)
        );
        // 13.1 GB/s are each worker's share; one alone would get 20.5.
        assert_eq!(costs.bytes(), 13.125);
        assert_eq!(Machine { workers: 2, ..costs }.bytes(), 20.5);
        assert_eq!(costs.exposed, MACHINE.exposed);
        assert_eq!(read.available_memory, Some(64_000_000_000));
        assert_eq!((read.nodes, read.caches, read.hidden_pairs), (2, 1, 0));
    }

    #[test]
    fn tiles_are_a_target_where_they_are_permitted_and_of_use() {
        let mut value = sound();
        value["features"] = json!(Level::Amx.features().names().collect::<Vec<_>>());
        let level = |value: &Value, preset| Description::parse(&value.to_string()).unwrap().level(preset);
        assert_eq!(level(&value, Preset::Bf16), Level::V4Vnni);
        value["amx"]["permitted"] = json!(true);
        assert_eq!(level(&value, Preset::Bf16), Level::Amx);
        assert_eq!(level(&value, Preset::Faithful), Level::V4Vnni);
        // The measured speeds decide whether prompts in vectors have to give way.
        for (bf16, int8, best) in [(0.5, 0.7, Level::Amx), (1.2, 0.5, Level::Amx), (0.6, 0.7, Level::V4Vnni)]
        {
            value["amx"]["tile_shares"] = json!({ "bf16": bf16, "int8": int8 });
            assert_eq!(level(&value, Preset::Faithful), best, "{bf16} {int8}");
            assert_eq!(level(&value, Preset::Bf16), Level::Amx);
            let costs = Description::parse(&value.to_string()).unwrap().costs();
            assert_eq!(costs.tile_shares, [bf16, int8]);
        }
        value["amx"]["permitted"] = json!(false);
        value["amx"]["tile_shares"] = json!({ "bf16": 0.5, "int8": 0.5 });
        assert_eq!(level(&value, Preset::Faithful), Level::V4Vnni);
    }

    #[test]
    fn what_is_wrong_is_named() {
        let cases: [(&[&str], Value, &str); 20] = [
            (&["schema"], json!("kernmill.cpu/3"), "`schema` is kernmill.cpu/3, expected kernmill.cpu/2"),
            (&["schema"], json!(2), "`schema` is missing"),
            (&["cpu"], json!(["x"]), "`cpu` is a list, expected a text"),
            (&["version"], Value::Null, "`version` is null, expected a text"),
            (&["features"], json!(["avx2", "sse9"]), "`features[1]` is \"sse9\", expected"),
            (&["features"], json!(["avx2"]), "`features` lacks fma"),
            (&["family"], json!("vax"), "`family` is vax, expected one of generic, intel"),
            (&["amx"], json!(1), "`amx` is 1, expected an object"),
            (&["amx", "permitted"], json!("no"), "`amx.permitted` is \"no\", expected true or false"),
            (&["amx", "tile_shares"], json!(0.5), "`amx.tile_shares` is 0.5, expected an object"),
            (
                &["amx", "tile_shares"],
                json!({ "bf16": 0.5, "int8": 0 }),
                "`amx.tile_shares.int8` is 0, expected a number from 0.001 to 1000",
            ),
            (&["available_memory"], json!(-1), "`available_memory` is -1, expected a whole number from 0"),
            (&["last_level_cache"], json!(1.5), "`last_level_cache` is 1.5, expected a whole number"),
            (&["nodes"], json!(2), "`nodes` is 2, expected a list"),
            (&["caches"], json!(["0-3", "4-"]), "`caches[1]` is \"4-\", expected CPUs such as"),
            (&["measured"], json!([]), "`measured` is empty"),
            (&["measured", "0", "threads"], json!(2), "`measured[0].threads` is 2, expected 1"),
            (&["measured", "1", "threads"], json!(1), "`measured[1].threads` is 1, expected at least 2"),
            (&["measured", "1", "gb_per_s"], json!(1e300), "`measured[1].gb_per_s` is 1e+300, expected"),
            (&["measured", "1", "step_us"], json!({}), "`measured[1].step_us` is an object, expected"),
        ];
        for (path, new, says) in cases {
            let mut value = sound();
            let mut at = &mut value;
            for step in path {
                at = match step.parse::<usize>() {
                    Ok(index) => &mut at[index],
                    Err(_) => &mut at[*step],
                };
            }
            *at = new;
            let error = Description::parse(&value.to_string()).unwrap_err().to_string();
            assert!(error.contains(says) && !error.contains('\n'), "{says}: {error}");
        }
        let without = |name: &str| {
            let mut value = sound();
            value.as_object_mut().unwrap().remove(name);
            Description::parse(&value.to_string()).unwrap_err().to_string()
        };
        assert!(without("measured").contains("--measure"));
        assert!(without("core_cache").contains("`core_cache` is missing, expected a whole number"));
        for text in ["", "[]", "{", "{}", "null"] {
            let error = Description::parse(text).unwrap_err().to_string();
            assert!(error.contains("kernmill cpu --measure --json"), "{text:?}: {error}");
        }
        let long = format!("{}{}", " ".repeat(limit::MACHINE_BYTES as usize), sound());
        assert!(Description::parse(&long).unwrap_err().to_string().contains("at most"));
    }
}
