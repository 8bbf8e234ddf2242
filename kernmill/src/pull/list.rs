//! The files of a model on a hub, and those that the model needs.

use super::client::HubClient;
use super::sum::{Sum, is_hex};
use crate::error::{Error, Result};
use crate::hub_name::{HubName, gguf_type, is_gguf_of, is_plain_path};
use kernmill_checkpoint::{INDEX_FILE, SINGLE_FILE};
use kernmill_os::text::size;
use serde::Deserialize;
use std::collections::{BTreeMap, BTreeSet};

/// Files besides weights and their index that a checkpoint may have:
/// what it computes, how vectors are made, how
/// texts are cut, how conversations are written.
const BESIDE: [&str; 11] = [
    "config.json",
    "modules.json",
    "1_Pooling/config.json",
    "config_sentence_transformers.json",
    "kernmill.toml",
    "generation_config.json",
    "tokenizer.json",
    "tokenizer_config.json",
    "special_tokens_map.json",
    "chat_template.jinja",
    "chat_template.json",
];
/// Where named chat templates are.
const TEMPLATES: &str = "additional_chat_templates/";

/// A model's files at one commit.
#[derive(Debug)]
pub(super) struct FileList {
    /// The commit.
    pub(super) commit: String,
    files: Vec<HubFile>,
}

/// A file on a hub.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct HubFile {
    /// The path in the repository.
    pub(super) path: String,
    /// The number of bytes.
    pub(super) bytes: u64,
    /// The hash of its contents.
    pub(super) sum: Sum,
}

/// The files that are fetched of a model.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum WantedFiles {
    /// A checkpoint's files; where there is an index, without the shards that it names.
    Checkpoint(Vec<HubFile>),
    /// A GGUF file, or all parts of it in order.
    Gguf(Vec<HubFile>),
}

#[derive(Deserialize)]
struct RawList {
    sha: String,
    siblings: Vec<RawFile>,
}

#[derive(Deserialize)]
struct RawFile {
    rfilename: String,
    size: Option<u64>,
    #[serde(rename = "blobId")]
    blob_id: Option<String>,
    lfs: Option<RawLfs>,
}

#[derive(Deserialize)]
struct RawLfs {
    sha256: String,
    size: u64,
}

#[derive(Deserialize)]
struct RawIndex {
    weight_map: BTreeMap<String, String>,
}

impl FileList {
    /// Asks the hub.
    pub(super) fn of(client: &HubClient, name: &HubName) -> Result<FileList> {
        let json = client.list(&name.repository())?;
        FileList::parse(&json)
            .map_err(|what| Error::failed(client.says(format!("the hub's list of files: {what}"))))
    }

    fn parse(json: &[u8]) -> std::result::Result<FileList, String> {
        let list: RawList = serde_json::from_slice(json).map_err(|error| error.to_string())?;
        if !is_hex(&list.sha, 40) {
            return Err("its commit is none, expected 40 hexadecimal digits".to_owned());
        }
        let files = list.siblings.into_iter().filter_map(|file| {
            if !is_plain_path(&file.rfilename) {
                return Some(Err(format!(
                    "it names `{}`, which leads out of the model's directory",
                    file.rfilename
                )));
            }
            // A file without size and sum cannot be checked; it may not be needed.
            let (bytes, sum) = match file.lfs {
                Some(lfs) => (lfs.size, Sum::sha256(&lfs.sha256)?),
                None => (file.size?, Sum::git(&file.blob_id?)?),
            };
            Some(Ok(HubFile { path: file.rfilename, bytes, sum }))
        });
        Ok(FileList { commit: list.sha, files: files.collect::<std::result::Result<_, _>>()? })
    }

    fn file(&self, path: &str) -> Option<&HubFile> {
        self.files.iter().find(|file| file.path == path)
    }

    /// The files of the model of that name: the GGUF file that it names, a checkpoint, or the only GGUF file.
    pub(super) fn wanted(&self, name: &HubName) -> Result<WantedFiles> {
        let types = self.gguf_files();
        let refuse = |what: String| Err(Error::bad_input(format!("{name}: {what}")));
        if let Some(wanted) = &name.file {
            let named: Vec<&Vec<HubFile>> = types
                .values()
                .filter(|parts| parts.iter().any(|part| is_gguf_of(&part.path, wanted)))
                .collect();
            return match &named[..] {
                [parts] => Ok(WantedFiles::Gguf(parts.to_vec())),
                [] if types.is_empty() => {
                    refuse("it has no GGUF files: leave out what is behind the colon".to_owned())
                }
                [] => refuse(format!(
                    "no GGUF file of it is a `{wanted}`: it has {}",
                    self.shown(types.values(), false)
                )),
                several => refuse(format!(
                    "several of its GGUF files are a `{wanted}`: give one of {}",
                    self.shown(several.iter().copied(), true)
                )),
            };
        }
        let weights = [SINGLE_FILE, INDEX_FILE].iter().find_map(|path| self.file(path));
        match (weights, &types.values().collect::<Vec<_>>()[..]) {
            (Some(weights), _) => {
                let is_beside = |file: &&HubFile| {
                    let template =
                        file.path.strip_prefix(TEMPLATES).is_some_and(|name| name.ends_with(".jinja"));
                    template || BESIDE.contains(&file.path.as_str())
                };
                let beside = self.files.iter().filter(is_beside);
                Ok(WantedFiles::Checkpoint(beside.chain([weights]).cloned().collect()))
            }
            (None, [parts]) => Ok(WantedFiles::Gguf(parts.to_vec())),
            (None, []) => refuse(format!(
                "it has neither {SINGLE_FILE} nor {INDEX_FILE} nor a GGUF file: kernmill reads no other weights"
            )),
            (None, several) => refuse(format!(
                "it has {}: name one, such as `{}:{}`",
                self.shown(several.iter().copied(), false),
                name.repository(),
                self.label(several[0], false)
            )),
        }
    }

    /// The shards that an index names.
    pub(super) fn shards(&self, index: &[u8]) -> std::result::Result<Vec<HubFile>, String> {
        let index: RawIndex = serde_json::from_slice(index).map_err(|error| error.to_string())?;
        let names: BTreeSet<String> = index.weight_map.into_values().collect();
        let shard = |name: String| {
            self.file(&name)
                .cloned()
                .ok_or_else(|| format!("it names shard `{name}`, which the hub does not have"))
        };
        names.into_iter().map(shard).collect()
    }

    /// GGUF files that are models, each with its parts, by what their names have in common.
    fn gguf_files(&self) -> BTreeMap<&str, Vec<HubFile>> {
        let mut files: BTreeMap<&str, Vec<HubFile>> = BTreeMap::new();
        for file in self.files.iter().filter(|file| gguf_type(&file.path).is_some()) {
            files
                .entry(crate::hub_name::gguf_stem(&file.path).unwrap_or(&file.path))
                .or_default()
                .push(file.clone());
        }
        files.values_mut().for_each(|parts| parts.sort_by(|a, b| a.path.cmp(&b.path)));
        files
    }

    /// GGUF files by their types, or where these do not tell them apart by their paths, with their sizes.
    fn shown<'a>(&self, all: impl Iterator<Item = &'a Vec<HubFile>>, by_path: bool) -> String {
        let one = |parts: &Vec<HubFile>| {
            let bytes: u64 = parts.iter().map(|part| part.bytes).sum();
            format!("{} ({})", self.label(parts, by_path), size(bytes))
        };
        all.map(one).collect::<Vec<_>>().join(", ")
    }

    fn label(&self, parts: &[HubFile], by_path: bool) -> String {
        let path = &parts[0].path;
        let of = gguf_type(path).unwrap_or(path);
        let alike = self.gguf_files();
        let is_alone = alike.values().filter(|parts| is_gguf_of(&parts[0].path, of)).count() == 1;
        if is_alone && !by_path { of.to_owned() } else { path.clone() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn list(paths: &[&str]) -> FileList {
        let file = |path: &&str| -> Value {
            if path.ends_with(".json") {
                json!({ "rfilename": path, "size": 7, "blobId": "0".repeat(40) })
            } else {
                let lfs = json!({ "sha256": "1".repeat(64), "size": 2_000_000_000u64, "pointerSize": 130 });
                json!({ "rfilename": path, "size": 2_000_000_000u64, "blobId": "0".repeat(40), "lfs": lfs })
            }
        };
        let siblings: Vec<Value> = paths.iter().map(file).collect();
        FileList::parse(json!({ "sha": "a".repeat(40), "siblings": siblings }).to_string().as_bytes())
            .unwrap()
    }

    fn wanted(paths: &[&str], name: &str) -> std::result::Result<Vec<String>, String> {
        let wanted = list(paths).wanted(&HubName::of(name).unwrap()).map_err(|error| error.to_string())?;
        let (WantedFiles::Checkpoint(files) | WantedFiles::Gguf(files)) = wanted;
        Ok(files.into_iter().map(|file| file.path).collect())
    }

    #[test]
    fn a_checkpoint_is_what_kernmill_reads_of_it() {
        let all = [
            "README.md",
            "config.json",
            "original/model.safetensors",
            "tokenizer.json",
            "additional_chat_templates/rag.jinja",
            "model-00001-of-00002.safetensors",
            "model-00002-of-00002.safetensors",
            "model.safetensors.index.json",
            "pytorch_model.bin",
        ];
        let found = wanted(&all, "acme/tiny").unwrap();
        let expected = ["config.json", "tokenizer.json", "additional_chat_templates/rag.jinja", INDEX_FILE];
        assert_eq!(found, expected);
        let index = json!({ "weight_map": { "a": all[5], "b": all[6], "c": all[5] } }).to_string();
        let shards = list(&all).shards(index.as_bytes()).unwrap();
        assert_eq!(shards.iter().map(|file| file.path.as_str()).collect::<Vec<_>>(), all[5..7]);
        let index = json!({ "weight_map": { "a": "../x" } }).to_string();
        assert!(list(&all).shards(index.as_bytes()).unwrap_err().contains("`../x`"));
        assert!(wanted(&["pytorch_model.bin"], "acme/tiny").unwrap_err().contains("no other weights"));
    }

    #[test]
    fn a_gguf_file_is_taken_by_its_type_or_if_it_is_alone() {
        let two = [
            "tiny-Q4_0.gguf",
            "tiny-Q8_0-00002-of-00002.gguf",
            "tiny-Q8_0-00001-of-00002.gguf",
            "mmproj-F16.gguf",
        ];
        let parts = ["tiny-Q8_0-00001-of-00002.gguf", "tiny-Q8_0-00002-of-00002.gguf"];
        assert_eq!(wanted(&two, "acme/tiny:q8_0").unwrap(), parts);
        assert_eq!(wanted(&two, "acme/tiny:tiny-Q8_0-00002-of-00002.gguf").unwrap(), parts);
        assert_eq!(wanted(&two[..1], "acme/tiny").unwrap(), two[..1]);
        assert_eq!(
            wanted(&two, "acme/tiny").unwrap_err(),
            "acme/tiny: it has Q4_0 (2.00 GB), Q8_0 (4.00 GB): name one, such as `acme/tiny:Q4_0`"
        );
        assert!(wanted(&two, "acme/tiny:Q5_K").unwrap_err().contains("it has Q4_0 (2.00 GB), Q8_0"));
        let alike = ["a/tiny-Q4_0.gguf", "b/tiny-Q4_0.gguf"];
        assert!(
            wanted(&alike, "acme/tiny:Q4_0")
                .unwrap_err()
                .contains("give one of a/tiny-Q4_0.gguf (2.00 GB), b/")
        );
        assert_eq!(wanted(&alike, "acme/tiny:b/tiny-Q4_0.gguf").unwrap(), alike[1..]);
        assert!(wanted(&["model.safetensors"], "acme/tiny:Q4_0").unwrap_err().contains("no GGUF files"));
    }

    #[test]
    fn a_list_that_leads_astray_is_refused() {
        for path in ["../x.json", "a/../../x.json", "/etc/x.json", "a\\x.json", "a\n.json", ""] {
            let file = json!({ "rfilename": path, "size": 7, "blobId": "0".repeat(40) });
            let text = json!({ "sha": "a".repeat(40), "siblings": [file] }).to_string();
            assert!(FileList::parse(text.as_bytes()).unwrap_err().contains("leads out"), "{path}");
        }
        for text in ["{}", "[", r#"{"sha": "../..", "siblings": []}"#] {
            FileList::parse(text.as_bytes()).unwrap_err();
        }
    }
}
