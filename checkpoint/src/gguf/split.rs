//! Models in several GGUF files: `name-00001-of-00003.gguf` and so on. The first has the metadata, each has
//! tensors.

use super::Gguf;
use crate::error::{CheckpointError, Result};
use kernmill_plan::limit;
use std::path::{Path, PathBuf};

/// Missing parts named in an error.
const NAMED: usize = 4;

/// Which part of how many a file is, by its metadata.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct SplitNumber {
    /// From 0.
    pub(super) part: u64,
    pub(super) count: u64,
}

impl Gguf {
    /// Which of several parts it is; `None` of a whole file.
    pub(super) fn split(&self) -> Result<Option<SplitNumber>> {
        let count = self.whole("split.count")?.unwrap_or(1);
        if count < 2 {
            return Ok(None);
        }
        let Some(part) = self.whole("split.no")? else {
            return self
                .bad("key `split.no` is missing beside `split.count`: expected the number of the part");
        };
        if part >= count {
            return self.bad(format!("key `split.no` is {part}: expected less than `split.count`, {count}"));
        }
        if count > limit::GGUF_PARTS {
            return self
                .bad(format!("key `split.count` is {count}: expected at most {} parts", limit::GGUF_PARTS));
        }
        Ok(Some(SplitNumber { part, count }))
    }
}

/// The model that `opened` is a part of.
pub(super) fn complete(opened: Gguf, split: SplitNumber) -> Result<Gguf> {
    let paths = part_paths(&opened, split)?;
    let missing: Vec<&Path> = paths.iter().filter(|path| !path.exists()).map(PathBuf::as_path).collect();
    if !missing.is_empty() {
        return opened.bad(missing_parts(&missing, split));
    }
    let mut opened = Some(opened);
    let mut parts = Vec::with_capacity(paths.len());
    for (part, path) in (0..).zip(&paths) {
        let gguf = match opened.take_if(|_| part == split.part) {
            Some(gguf) => gguf,
            None => Gguf::open_part(path)?,
        };
        if gguf.split()? != Some(SplitNumber { part, count: split.count }) {
            return gguf.bad(format!(
                "its name says part {} of {}, and its keys `split.no` and `split.count` another: is it of \
                 another model?",
                part + 1,
                split.count
            ));
        }
        parts.push(gguf);
    }
    join(parts)
}

/// One model of its parts, whose tensors must be as many as the first part says, each in one part only.
fn join(parts: Vec<Gguf>) -> Result<Gguf> {
    let mut parts = parts.into_iter();
    let mut whole = parts.next().expect("there are at least 2 parts");
    for part in parts {
        let first = whole.parts.len();
        whole.tensors.extend(part.tensors.into_iter().map(|mut info| {
            info.part += first;
            info
        }));
        whole.parts.extend(part.parts);
    }
    whole.tensors.sort_by(|a, b| a.name.cmp(&b.name));
    if let Some([a, b]) = whole.tensors.array_windows().find(|[a, b]| a.name == b.name) {
        return Err(CheckpointError::Duplicate {
            name: a.name.clone(),
            first: whole.parts[a.part].path.clone(),
            second: whole.parts[b.part].path.clone(),
        });
    }
    let count = whole.tensors.len() as u64;
    match whole.whole("split.tensors.count")? {
        Some(stated) if stated != count => {
            whole.bad(format!("its parts hold {count} tensors, and key `split.tensors.count` is {stated}"))
        }
        _ => Ok(whole),
    }
}

/// The files of all parts, by the name of one.
fn part_paths(opened: &Gguf, split: SplitNumber) -> Result<Vec<PathBuf>> {
    let SplitNumber { part, count } = split;
    let path = opened.path();
    let suffix = |part: u64| format!("-{:05}-of-{count:05}.gguf", part + 1);
    let stem =
        path.file_name().and_then(|name| name.to_str()).and_then(|name| name.strip_suffix(&suffix(part)));
    match stem {
        Some(stem) => {
            Ok((0..count).map(|part| path.with_file_name(format!("{stem}{}", suffix(part)))).collect())
        }
        None => opened.bad(format!(
            "it is part {} of {count} of a model: expected a name that ends in `{}`, and the other parts beside it",
            part + 1,
            suffix(part)
        )),
    }
}

fn missing_parts(missing: &[&Path], split: SplitNumber) -> String {
    let names: Vec<_> = missing
        .iter()
        .take(NAMED)
        .filter_map(|path| path.file_name())
        .map(|name| name.to_string_lossy())
        .collect();
    let more = if missing.len() > NAMED { ", ..." } else { "" };
    format!(
        "it is part {} of {} of a model, and {} missing beside it: {}{more}",
        split.part + 1,
        split.count,
        if missing.len() == 1 { "one part is".to_owned() } else { format!("{} parts are", missing.len()) },
        names.join(", ")
    )
}
