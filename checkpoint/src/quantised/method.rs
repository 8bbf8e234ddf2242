//! How a checkpoint's matrices are quantised, as its `config.json` says it.

use kernmill_os::text::shortened;
use serde_json::{Map, Value};
use std::collections::BTreeMap;

/// Sections of `config.json` that say it, in the order in which they are looked at. MLX writes its own under
/// both of the first two names.
pub const SECTIONS: [&str; 3] = ["quantization_config", "quantization", "compression_config"];
/// The methods that are read, for errors.
pub const METHODS: &str = "GPTQ, AWQ, compressed-tensors, FP8, MLX";

/// A way in which matrices are quantised.
#[derive(Clone, Debug, PartialEq)]
pub enum Method {
    /// Words of codes along the inputs.
    Gptq {
        /// Bits of a code.
        bits: usize,
        /// Inputs that share a scale; `None` for all of them.
        group: Option<usize>,
        /// Whether zeros are stored as they are, and not less 1.
        whole_zeros: bool,
    },
    /// Words of codes along the outputs, in an order of their own.
    Awq {
        /// Inputs that share a scale; `None` for all of them.
        group: Option<usize>,
    },
    /// Files of the library compressed-tensors: integers in words or bytes, or FP8.
    CompressedTensors {
        /// Inputs that share a scale, of each kind of matrix that states them.
        groups: Vec<usize>,
    },
    /// FP8, with one scale, one for each row, or one for each block of rows and columns.
    Fp8 {
        /// Rows and columns of a block.
        block: Option<[usize; 2]>,
    },
    /// Words of codes with scales and biases.
    Mlx {
        /// The kind of matrices that are not in `own`.
        all: MlxKind,
        /// The kinds of others, by the module's name.
        own: BTreeMap<String, MlxKind>,
    },
}

/// How MLX quantises a matrix.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct MlxKind {
    /// Bits of a code.
    pub bits: usize,
    /// Inputs that share a scale.
    pub group: usize,
}

impl Method {
    /// The method of `config`, the contents of a `config.json`; `None` if it names none, or one that is not
    /// read here.
    ///
    /// # Errors
    /// The reason, if the method is read but not all that the section asks for.
    pub fn of(config: &Map<String, Value>) -> Result<Option<Method>, String> {
        for name in SECTIONS {
            let Some(Value::Object(section)) = config.get(name) else { continue };
            let section = ConfigSection { name, map: section };
            let method = match section.text("quant_method") {
                Some("gptq") => section.gptq(),
                Some("awq") => section.awq(),
                Some("compressed-tensors") => section.compressed_tensors(),
                Some("fp8" | "fbgemm_fp8") => section.fp8(),
                None if section.has("group_size") && section.has("bits") => section.mlx(),
                _ => continue,
            };
            return method.map(Some);
        }
        Ok(None)
    }
}

/// A section of the file.
struct ConfigSection<'a> {
    name: &'static str,
    map: &'a Map<String, Value>,
}

impl<'a> ConfigSection<'a> {
    fn get(&self, key: &str) -> Option<&'a Value> {
        self.map.get(key).filter(|value| !value.is_null())
    }

    fn has(&self, key: &str) -> bool {
        self.get(key).is_some()
    }

    fn text(&self, key: &str) -> Option<&'a str> {
        self.get(key).and_then(Value::as_str)
    }

    fn is_on(&self, key: &str) -> bool {
        self.get(key) == Some(&Value::Bool(true))
    }

    /// The reason to refuse `key`, with what would be read.
    fn refuse<T>(&self, key: &str, expected: &str) -> Result<T, String> {
        let found = self
            .get(key)
            .map_or_else(|| "missing".to_owned(), |value| shortened(&value.to_string()).into_owned());
        Err(format!("`{}.{key}` is {found}: expected {expected}", self.name))
    }

    /// A whole number from 1 to 2^31 under one of two keys.
    fn count(&self, keys: [&str; 2]) -> Result<usize, String> {
        let key = if self.has(keys[1]) { keys[1] } else { keys[0] };
        let number = self.get(key).and_then(Value::as_u64).filter(|n| (1..=1 << 31).contains(n));
        number.map_or_else(|| self.refuse(key, "a whole number from 1"), |n| Ok(n as usize))
    }

    /// The inputs that share a scale: `None` for -1, which stands for all.
    fn group(&self, keys: [&str; 2]) -> Result<Option<usize>, String> {
        let is_all = keys.iter().any(|key| self.get(key).and_then(Value::as_i64) == Some(-1));
        if is_all { Ok(None) } else { self.count(keys).map(Some) }
    }

    /// The bits of a code, which must be among these.
    fn bits(&self, keys: [&str; 2], read: &[usize]) -> Result<usize, String> {
        let bits = self.count(keys)?;
        match read.contains(&bits) {
            true => Ok(bits),
            false => {
                let read: Vec<String> = read.iter().map(usize::to_string).collect();
                let expected = format!("{} (a GGUF file may have other bits)", read.join(" or "));
                self.refuse(if self.has(keys[1]) { keys[1] } else { keys[0] }, &expected)
            }
        }
    }

    fn gptq(&self) -> Result<Method, String> {
        let bits = self.bits(["bits", "bits"], &[4, 8])?;
        let whole_zeros = match self.text("checkpoint_format") {
            None | Some("gptq") => false,
            Some("gptq_v2") => true,
            Some(_) => return self.refuse("checkpoint_format", "gptq or gptq_v2"),
        };
        if self.is_on("is_marlin_format") {
            return self.refuse("is_marlin_format", "false: it is a layout for one kind of GPU");
        }
        Ok(Method::Gptq { bits, group: self.group(["group_size", "group_size"])?, whole_zeros })
    }

    fn awq(&self) -> Result<Method, String> {
        self.bits(["bits", "w_bit"], &[4])?;
        if let Some(version) = self.text("version")
            && !version.eq_ignore_ascii_case("gemm")
        {
            return self.refuse("version", "gemm, which is the layout of nearly all published files");
        }
        Ok(Method::Awq { group: self.group(["group_size", "q_group_size"])? })
    }

    fn compressed_tensors(&self) -> Result<Method, String> {
        let formats = ["pack-quantized", "int-quantized", "naive-quantized", "float-quantized"];
        let expected = formats.join(", ");
        let mut kinds = vec![ConfigSection { name: self.name, map: self.map }];
        let mut groups = Vec::new();
        if let Some(Value::Object(each)) = self.get("config_groups") {
            for kind in each.values().filter_map(Value::as_object) {
                kinds.push(ConfigSection { name: "quantization_config.config_groups", map: kind });
                if let Some(Value::Object(weights)) = kind.get("weights") {
                    let weights =
                        ConfigSection { name: "quantization_config.config_groups.weights", map: weights };
                    if weights.has("num_bits") {
                        weights.bits(["num_bits", "num_bits"], &[4, 8])?;
                    }
                    if weights.has("group_size")
                        && let Some(group) = weights.group(["group_size", "group_size"])?
                    {
                        groups.push(group);
                    }
                }
            }
        }
        for kind in kinds {
            if kind.text("format").is_some_and(|format| {
                format != "dense" && format != "mixed-precision" && !formats.contains(&format)
            }) {
                return kind.refuse("format", &expected);
            }
        }
        if let Some(Value::Object(sparsity)) = self.get("sparsity_config")
            && sparsity.get("format").and_then(Value::as_str).is_some_and(|format| format != "dense")
        {
            return self.refuse("sparsity_config", "none: sparse matrices are not read");
        }
        Ok(Method::CompressedTensors { groups })
    }

    fn fp8(&self) -> Result<Method, String> {
        if let Some(format) = self.text("fmt")
            && format != "e4m3"
        {
            return self.refuse("fmt", "e4m3");
        }
        let Some(block) = self.get("weight_block_size") else { return Ok(Method::Fp8 { block: None }) };
        let sides = block.as_array().map(|sides| sides.iter().filter_map(Value::as_u64).collect::<Vec<_>>());
        match sides.as_deref() {
            Some(&[rows, columns]) if [rows, columns].iter().all(|side| (1..=1 << 31).contains(side)) => {
                Ok(Method::Fp8 { block: Some([rows as usize, columns as usize]) })
            }
            _ => self.refuse("weight_block_size", "two whole numbers from 1"),
        }
    }

    fn mlx(&self) -> Result<Method, String> {
        let all = self.mlx_kind()?;
        let mut own = BTreeMap::new();
        for (module, value) in self.map {
            if let Value::Object(map) = value {
                own.insert(module.clone(), ConfigSection { name: self.name, map }.mlx_kind()?);
            }
        }
        Ok(Method::Mlx { all, own })
    }

    fn mlx_kind(&self) -> Result<MlxKind, String> {
        if self.text("mode").is_some_and(|mode| mode != "affine") {
            return self.refuse("mode", "affine");
        }
        let bits = self.bits(["bits", "bits"], &[4, 8])?;
        Ok(MlxKind { bits, group: self.count(["group_size", "group_size"])? })
    }
}
