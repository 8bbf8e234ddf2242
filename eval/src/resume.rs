//! Files of runs that were ended: a line of JSON for every item that is known, in any order.

use kernmill::{Error, Result};
use kernmill_os::files::{open_to_append, read_regular};
use serde_json::Value;
use std::collections::BTreeMap;
use std::fs::{File, OpenOptions};
use std::io::{ErrorKind, Write};
use std::path::{Path, PathBuf};

/// Bytes of such a file at most.
const MOST_BYTES: u64 = 1 << 30;

/// Results of an item that a log keeps.
pub trait Logged: Sized {
    /// The result as an object.
    fn to_json(&self) -> Value;

    /// The result that an object holds; `None` if it holds none.
    fn from_json(value: &Value) -> Option<Self>;
}

/// A run's results so far, in a file or nowhere.
pub struct Log<T> {
    file: Option<(PathBuf, File)>,
    /// By item.
    pub known: BTreeMap<usize, T>,
}

impl<T: Logged> Log<T> {
    /// Goes on with the file at `path`, or begins it. `run` says what its items are of, and `fits` whether a
    /// result may be an item's. A line that was cut is left out.
    ///
    /// # Errors
    /// When the file is of another run, or cannot be read or written.
    pub fn open(path: Option<&Path>, run: &Value, fits: &dyn Fn(usize, &T) -> bool) -> Result<Log<T>> {
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
            let item = value["item"].as_u64().ok_or_else(wrong)? as usize;
            let found = T::from_json(&value).filter(|found| fits(item, found)).ok_or_else(wrong)?;
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
    pub fn add(&mut self, item: usize, found: T) -> Result<()> {
        if let Some((path, file)) = &mut self.file {
            let mut line = found.to_json();
            line["item"] = item.into();
            file.write_all(format!("{line}\n").as_bytes()).map_err(Error::write(path))?;
        }
        self.known.insert(item, found);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::{Log, Logged};
    use serde_json::{Value, json};

    #[derive(Clone, Debug, PartialEq)]
    struct Numbers(Vec<u64>);

    impl Logged for Numbers {
        fn to_json(&self) -> Value {
            json!({ "numbers": self.0 })
        }

        fn from_json(value: &Value) -> Option<Numbers> {
            value["numbers"].as_array()?.iter().map(Value::as_u64).collect::<Option<_>>().map(Numbers)
        }
    }

    fn found(number: u64) -> Numbers {
        Numbers(vec![number, 7])
    }

    #[test]
    fn a_run_that_was_killed_anywhere_goes_on() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("run.jsonl");
        let run = json!({ "model": "m" });
        let open = || Log::open(Some(&path), &run, &|item, found: &Numbers| item < 9 && found.0.len() == 2);
        let mut log = open().unwrap();
        log.add(3, found(5)).unwrap();
        log.add(1, found(1 << 60)).unwrap();
        let whole = std::fs::read(&path).unwrap();
        for cut in 0..=whole.len() {
            std::fs::write(&path, &whole[..cut]).unwrap();
            let mut log = open().unwrap();
            let lines = whole[..cut].iter().filter(|byte| **byte == b'\n').count();
            assert_eq!(log.known.len(), lines.saturating_sub(1), "cut at {cut}");
            [(3, found(5)), (1, found(1 << 60))].into_iter().for_each(|(item, numbers)| {
                if !log.known.contains_key(&item) {
                    log.add(item, numbers).unwrap();
                }
            });
            assert_eq!(std::fs::read(&path).unwrap(), whole, "cut at {cut}");
        }
        let refused = |run, size: usize| {
            Log::open(Some(&path), &run, &|_, found: &Numbers| found.0.len() == size)
                .err()
                .expect("an error")
                .to_string()
        };
        assert!(refused(json!({ "model": "n" }), 2).contains("it is of another run"));
        assert!(refused(run.clone(), 3).contains("line 2: expected an item of this run"));
    }
}
