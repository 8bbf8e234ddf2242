//! Writing GGUF files: what stands before the tensors' data, from metadata and descriptions of tensors.

use super::layout::DEFAULT_ALIGNMENT;
use super::value::MAGIC;

/// The version that is written.
const VERSION: u32 = 3;

/// A value of the metadata to be: the number of its type, and its bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GgufValue(pub u32, pub Vec<u8>);

/// A tensor of a file to be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewTensor {
    /// Name of the tensor.
    pub name: String,
    /// Dimensions: the elements of a row first.
    pub dims: Vec<u64>,
    /// Number of its type.
    pub kind: u32,
    /// Bytes of its data.
    pub bytes: u64,
}

/// A GGUF file to be, but for the data of its tensors. It writes what it is told, right or wrong.
///
/// ```
/// # use kernmill_checkpoint::gguf::NewGguf;
/// let mut file = NewGguf::default();
/// file.set("general.architecture", "llama");
/// file.add("output_norm.weight", &[64], 0, 256);
/// let offsets = file.offsets();
/// assert_eq!(offsets, [0]);
/// assert_eq!(file.head(&offsets).len() % 32, 0);
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NewGguf {
    /// The alignment of offsets, if the file is to state it; 32 otherwise.
    pub alignment: Option<u32>,
    /// Keys and values, in their order.
    pub keys: Vec<(String, GgufValue)>,
    /// Tensors, in the order of their data.
    pub tensors: Vec<NewTensor>,
}

impl NewGguf {
    /// Sets a key, instead of what it was.
    pub fn set(&mut self, key: &str, value: impl Into<GgufValue>) {
        self.remove(key);
        self.keys.push((key.to_owned(), value.into()));
    }

    /// Takes a key out.
    pub fn remove(&mut self, key: &str) {
        self.keys.retain(|(other, _)| other != key);
    }

    /// Adds a tensor of the type with number `kind`, whose data has `bytes` bytes.
    pub fn add(&mut self, name: &str, dims: &[u64], kind: u32, bytes: u64) {
        self.tensors.push(NewTensor { name: name.to_owned(), dims: dims.to_vec(), kind, bytes });
    }

    fn aligned(&self, bytes: u64) -> u64 {
        bytes.next_multiple_of(self.alignment.map_or(DEFAULT_ALIGNMENT as u64, u64::from).max(1))
    }

    /// Where the data of each tensor begins, behind the head.
    pub fn offsets(&self) -> Vec<u64> {
        let mut end = 0;
        let place = |tensor: &NewTensor| {
            let offset = end;
            end = self.aligned(end + tensor.bytes);
            offset
        };
        self.tensors.iter().map(place).collect()
    }

    /// Bytes of the data of all tensors, what aligns them included.
    pub fn data_bytes(&self) -> u64 {
        self.tensors.iter().map(|tensor| self.aligned(tensor.bytes)).sum()
    }

    /// All that stands before the data; `offsets` are those of [`NewGguf::offsets`].
    pub fn head(&self, offsets: &[u64]) -> Vec<u8> {
        let alignment = self.alignment.map(|bytes| ("general.alignment".to_owned(), bytes.into()));
        let keys: Vec<_> = self.keys.iter().cloned().chain(alignment).collect();
        let mut head = MAGIC.to_vec();
        head.extend(VERSION.to_le_bytes());
        head.extend((self.tensors.len() as u64).to_le_bytes());
        head.extend((keys.len() as u64).to_le_bytes());
        for (key, GgufValue(kind, bytes)) in keys {
            head.extend(string(&key));
            head.extend(kind.to_le_bytes());
            head.extend(bytes);
        }
        for (tensor, offset) in self.tensors.iter().zip(offsets) {
            head.extend(string(&tensor.name));
            head.extend((tensor.dims.len() as u32).to_le_bytes());
            tensor.dims.iter().for_each(|dim| head.extend(dim.to_le_bytes()));
            head.extend(tensor.kind.to_le_bytes());
            head.extend(offset.to_le_bytes());
        }
        head.resize(self.aligned(head.len() as u64) as usize, 0);
        head
    }
}

impl From<u32> for GgufValue {
    fn from(number: u32) -> GgufValue {
        GgufValue(4, number.to_le_bytes().to_vec())
    }
}

impl From<f32> for GgufValue {
    fn from(number: f32) -> GgufValue {
        GgufValue(6, number.to_le_bytes().to_vec())
    }
}

impl From<bool> for GgufValue {
    fn from(flag: bool) -> GgufValue {
        GgufValue(7, vec![flag.into()])
    }
}

impl From<&str> for GgufValue {
    fn from(text: &str) -> GgufValue {
        GgufValue(8, string(text))
    }
}

impl From<&[&str]> for GgufValue {
    fn from(texts: &[&str]) -> GgufValue {
        array(8, texts.len(), texts.iter().map(|text| string(text)))
    }
}

impl From<&[i32]> for GgufValue {
    fn from(numbers: &[i32]) -> GgufValue {
        array(5, numbers.len(), numbers.iter().map(|n| n.to_le_bytes().to_vec()))
    }
}

impl From<&[f32]> for GgufValue {
    fn from(numbers: &[f32]) -> GgufValue {
        array(6, numbers.len(), numbers.iter().map(|n| n.to_le_bytes().to_vec()))
    }
}

fn array(kind: u32, count: usize, elements: impl Iterator<Item = Vec<u8>>) -> GgufValue {
    let mut bytes = kind.to_le_bytes().to_vec();
    bytes.extend((count as u64).to_le_bytes());
    bytes.extend(elements.flatten());
    GgufValue(9, bytes)
}

fn string(text: &str) -> Vec<u8> {
    [&(text.len() as u64).to_le_bytes()[..], text.as_bytes()].concat()
}
