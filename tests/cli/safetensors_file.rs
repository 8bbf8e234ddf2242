//! Safetensors files taken apart and put together again, well formed or not.

use serde_json::{Map, Value, json};
use std::fs;
use std::path::{Path, PathBuf};

/// One tensor.
#[derive(Clone)]
pub struct Entry {
    pub name: String,
    pub dtype: String,
    pub shape: Vec<usize>,
    pub bytes: Vec<u8>,
}

/// A file's tensors in the order of their data.
pub struct SafetensorsFile {
    path: PathBuf,
    pub entries: Vec<Entry>,
}

impl SafetensorsFile {
    pub fn read(path: &Path) -> SafetensorsFile {
        let file = fs::read(path).unwrap();
        let (length, rest) = file.split_first_chunk::<8>().unwrap();
        let (json, data) = rest.split_at(u64::from_le_bytes(*length) as usize);
        let header: Map<String, Value> = serde_json::from_slice(json).unwrap();
        let number = |value: &Value| value.as_u64().unwrap() as usize;
        let mut entries: Vec<(usize, Entry)> = Vec::new();
        for (name, value) in header.into_iter().filter(|(name, _)| name != "__metadata__") {
            let (start, end) = (number(&value["data_offsets"][0]), number(&value["data_offsets"][1]));
            let shape = value["shape"].as_array().unwrap().iter().map(number).collect();
            let dtype = value["dtype"].as_str().unwrap().to_owned();
            entries.push((start, Entry { name, dtype, shape, bytes: data[start..end].to_vec() }));
        }
        entries.sort_by_key(|(start, _)| *start);
        SafetensorsFile {
            path: path.to_owned(),
            entries: entries.into_iter().map(|(_, entry)| entry).collect(),
        }
    }

    /// The tensor called `name`.
    pub fn entry(&mut self, name: &str) -> &mut Entry {
        self.entries.iter_mut().find(|entry| entry.name == name).unwrap()
    }

    pub fn write(&self) {
        self.write_with(|_| {});
    }

    /// Writes it with a header that `change` has had its way with.
    pub fn write_with(&self, change: impl FnOnce(&mut Map<String, Value>)) {
        let mut header = Map::new();
        let mut data = Vec::new();
        for Entry { name, dtype, shape, bytes } in &self.entries {
            let offsets = [data.len(), data.len() + bytes.len()];
            header.insert(name.clone(), json!({ "dtype": dtype, "shape": shape, "data_offsets": offsets }));
            data.extend_from_slice(bytes);
        }
        change(&mut header);
        let json = serde_json::to_vec(&header).unwrap();
        let length = (json.len() as u64).to_le_bytes();
        fs::write(&self.path, [&length[..], &json, &data].concat()).unwrap();
    }
}
