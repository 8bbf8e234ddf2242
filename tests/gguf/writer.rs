//! Whole GGUF files of tests: the project's writer, with the data in memory, and with what is wrong in
//! damaged files.

pub use kernmill_checkpoint::gguf::GgufValue as Value;
use kernmill_checkpoint::gguf::NewGguf;

/// A tensor: its dimensions begin with the elements of a row.
#[derive(Clone)]
pub struct Tensor {
    pub name: String,
    pub dims: Vec<u64>,
    pub kind: u32,
    pub data: Vec<u8>,
    /// Where the file says that the data is; the right place if `None`.
    pub offset: Option<u64>,
}

/// The contents of a file.
#[derive(Clone, Default)]
pub struct Writer {
    pub version: Option<u32>,
    pub alignment: Option<u32>,
    pub keys: Vec<(String, Value)>,
    pub tensors: Vec<Tensor>,
}

pub const F32: u32 = 0;
pub const F16: u32 = 1;
pub const Q4_0: u32 = 2;
pub const Q8_0: u32 = 8;
pub const BF16: u32 = 30;
pub const MXFP4: u32 = 39;

/// Where a file has its version.
const VERSION: std::ops::Range<usize> = 4..8;

impl Writer {
    pub fn set(&mut self, key: &str, value: impl Into<Value>) {
        self.remove(key);
        self.keys.push((key.to_owned(), value.into()));
    }

    pub fn remove(&mut self, key: &str) {
        self.keys.retain(|(other, _)| other != key);
    }

    pub fn add(&mut self, name: &str, dims: &[u64], kind: u32, data: Vec<u8>) {
        self.tensors.push(Tensor { name: name.to_owned(), dims: dims.to_vec(), kind, data, offset: None });
    }

    pub fn tensor(&mut self, name: &str) -> &mut Tensor {
        self.tensors.iter_mut().find(|tensor| tensor.name == name).unwrap()
    }

    /// The file.
    pub fn bytes(&self) -> Vec<u8> {
        let mut new = NewGguf { alignment: self.alignment, keys: self.keys.clone(), ..NewGguf::default() };
        for tensor in &self.tensors {
            new.add(&tensor.name, &tensor.dims, tensor.kind, tensor.data.len() as u64);
        }
        let offsets = new.offsets();
        let stated = self.tensors.iter().zip(&offsets).map(|(tensor, &right)| tensor.offset.unwrap_or(right));
        let mut file = new.head(&stated.collect::<Vec<_>>());
        if let Some(version) = self.version {
            file[VERSION].copy_from_slice(&version.to_le_bytes());
        }
        let data = file.len();
        file.resize(data + new.data_bytes() as usize, 0);
        for (tensor, &offset) in self.tensors.iter().zip(&offsets) {
            file[data + offset as usize..][..tensor.data.len()].copy_from_slice(&tensor.data);
        }
        file
    }
}
