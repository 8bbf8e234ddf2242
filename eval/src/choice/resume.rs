//! Files of runs that were ended: a line of JSON for every item that is known, in any order.

use super::likelihood::Likelihood;
use kernmill::{Error, Result};
use kernmill_os::files::{open_to_append, read_regular};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::fs::{File, OpenOptions};
use std::io::{ErrorKind, Write};
use std::path::{Path, PathBuf};

/// Bytes of such a file at most.
const MOST_BYTES: u64 = 1 << 30;

/// A run's likelihoods so far, in a file or nowhere.
pub struct Log {
    file: Option<(PathBuf, File)>,
    /// By item.
    pub known: BTreeMap<usize, Vec<Likelihood>>,
}

impl Log {
    /// Goes on with the file at `path`, or begins it. `run` says what its items are of. A line that was cut
    /// is left out.
    ///
    /// # Errors
    /// When the file is of another run, or cannot be read or written.
    pub fn open(path: Option<&Path>, run: &Value, choices: &dyn Fn(usize) -> usize) -> Result<Log> {
        let Some(path) = path else { return Ok(Log { file: None, known: BTreeMap::new() }) };
        let head = format!("{run}\n");
        let text = match read_regular(path, MOST_BYTES) {
            Ok(text) => text,
            Err(error) if error.kind() == ErrorKind::NotFound => Vec::new(),
            Err(error) => return Err(Error::read(path)(error)),
        };
        if text.is_empty() || head.as_bytes().starts_with(&text) {
            let mut options = OpenOptions::new();
            let mut file =
                options.write(true).create(true).truncate(true).open(path).map_err(Error::write(path))?;
            file.write_all(head.as_bytes()).map_err(Error::write(path))?;
            return Ok(Log { file: Some((path.to_owned(), file)), known: BTreeMap::new() });
        }
        let Some(lines) = text.strip_prefix(head.as_bytes()) else {
            let what = "it is of another run (model, task or file), or no such file: give another name, or \
                delete it";
            return Err(Error::input(path, what));
        };
        let whole = lines.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
        let mut known = BTreeMap::new();
        for (at, line) in
            lines[..whole].split(|byte| *byte == b'\n').filter(|line| !line.is_empty()).enumerate()
        {
            let wrong = || Error::input(path, format!("line {}: expected an item of this run", at + 2));
            let value: Value = serde_json::from_slice(line).map_err(|_| wrong())?;
            let (item, found) = read(&value).ok_or_else(wrong)?;
            if found.len() != choices(item) {
                return Err(wrong());
            }
            known.insert(item, found);
        }
        let file = open_to_append(path).map_err(Error::read(path))?;
        file.set_len((head.len() + whole) as u64).map_err(Error::write(path))?;
        Ok(Log { file: Some((path.to_owned(), file)), known })
    }

    /// Adds an item.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn add(&mut self, item: usize, found: Vec<Likelihood>) -> Result<()> {
        if let Some((path, file)) = &mut self.file {
            // As bits, so that nothing is rounded.
            let bits: Vec<u64> = found.iter().map(|likelihood| likelihood.log.to_bits()).collect();
            let greedy: Vec<bool> = found.iter().map(|likelihood| likelihood.is_greedy).collect();
            let line = format!("{}\n", json!({ "item": item, "bits": bits, "greedy": greedy }));
            file.write_all(line.as_bytes()).map_err(Error::write(path))?;
        }
        self.known.insert(item, found);
        Ok(())
    }
}

fn read(value: &Value) -> Option<(usize, Vec<Likelihood>)> {
    let (bits, greedy) = (value["bits"].as_array()?, value["greedy"].as_array()?);
    let one = |(bits, greedy): (&Value, &Value)| {
        Some(Likelihood { log: f64::from_bits(bits.as_u64()?), is_greedy: greedy.as_bool()? })
    };
    let all: Option<Vec<Likelihood>> = bits.iter().zip(greedy).map(one).collect();
    Some((value["item"].as_u64()? as usize, all.filter(|_| bits.len() == greedy.len())?))
}

#[cfg(test)]
mod tests {
    use super::{Likelihood, Log};
    use serde_json::json;

    fn found(log: f64) -> Vec<Likelihood> {
        [log, -0.1].map(|log| Likelihood { log, is_greedy: log > -1.0 }).to_vec()
    }

    #[test]
    fn a_run_that_was_killed_anywhere_goes_on() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("run.jsonl");
        let run = json!({ "model": "m" });
        let open = || Log::open(Some(&path), &run, &|item| if item < 9 { 2 } else { 0 });
        let mut log = open().unwrap();
        log.add(3, found(-1.0 / 3.0)).unwrap();
        log.add(1, found(-2e-40)).unwrap();
        let whole = std::fs::read(&path).unwrap();
        for cut in 0..=whole.len() {
            std::fs::write(&path, &whole[..cut]).unwrap();
            let mut log = open().unwrap();
            let lines = whole[..cut].iter().filter(|byte| **byte == b'\n').count();
            assert_eq!(log.known.len(), lines.saturating_sub(1), "cut at {cut}");
            [(3, found(-1.0 / 3.0)), (1, found(-2e-40))].into_iter().for_each(|(item, likelihoods)| {
                if !log.known.contains_key(&item) {
                    log.add(item, likelihoods).unwrap();
                }
            });
            assert_eq!(std::fs::read(&path).unwrap(), whole, "cut at {cut}");
        }
        let refused = |run, choices: usize| {
            Log::open(Some(&path), &run, &|_| choices).err().expect("an error").to_string()
        };
        assert!(refused(json!({ "model": "n" }), 2).contains("it is of another run"));
        assert!(refused(run.clone(), 3).contains("line 2: expected an item of this run"));
    }
}
