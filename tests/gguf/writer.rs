//! A writer of GGUF files, by the format's description alone: it shares nothing with the reader.

/// A value of the metadata: its type's number and its bytes.
#[derive(Clone)]
pub struct Value(pub u32, pub Vec<u8>);

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

impl From<u32> for Value {
    fn from(number: u32) -> Value {
        Value(4, number.to_le_bytes().to_vec())
    }
}

impl From<f32> for Value {
    fn from(number: f32) -> Value {
        Value(6, number.to_le_bytes().to_vec())
    }
}

impl From<bool> for Value {
    fn from(flag: bool) -> Value {
        Value(7, vec![flag.into()])
    }
}

impl From<&str> for Value {
    fn from(text: &str) -> Value {
        Value(8, string(text))
    }
}

impl From<&[&str]> for Value {
    fn from(texts: &[&str]) -> Value {
        array(8, texts.len(), texts.iter().map(|text| string(text)))
    }
}

impl From<&[i32]> for Value {
    fn from(numbers: &[i32]) -> Value {
        array(5, numbers.len(), numbers.iter().map(|n| n.to_le_bytes().to_vec()))
    }
}

impl From<&[f32]> for Value {
    fn from(numbers: &[f32]) -> Value {
        array(6, numbers.len(), numbers.iter().map(|n| n.to_le_bytes().to_vec()))
    }
}

fn array(kind: u32, count: usize, elements: impl Iterator<Item = Vec<u8>>) -> Value {
    let mut bytes = kind.to_le_bytes().to_vec();
    bytes.extend((count as u64).to_le_bytes());
    bytes.extend(elements.flatten());
    Value(9, bytes)
}

fn string(text: &str) -> Vec<u8> {
    [&(text.len() as u64).to_le_bytes()[..], text.as_bytes()].concat()
}

impl Writer {
    pub fn set(&mut self, key: &str, value: impl Into<Value>) {
        self.keys.retain(|(other, _)| other != key);
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
        let mut keys = self.keys.clone();
        if let Some(alignment) = self.alignment {
            keys.push(("general.alignment".into(), alignment.into()));
        }
        let alignment = self.alignment.unwrap_or(32).max(1) as usize;
        let mut file = b"GGUF".to_vec();
        file.extend(self.version.unwrap_or(3).to_le_bytes());
        file.extend((self.tensors.len() as u64).to_le_bytes());
        file.extend((keys.len() as u64).to_le_bytes());
        for (key, Value(kind, bytes)) in keys {
            file.extend(string(&key));
            file.extend(kind.to_le_bytes());
            file.extend(bytes);
        }
        let mut data: Vec<u8> = Vec::new();
        for tensor in &self.tensors {
            file.extend(string(&tensor.name));
            file.extend((tensor.dims.len() as u32).to_le_bytes());
            tensor.dims.iter().for_each(|dim| file.extend(dim.to_le_bytes()));
            file.extend(tensor.kind.to_le_bytes());
            file.extend(tensor.offset.unwrap_or(data.len() as u64).to_le_bytes());
            data.extend(&tensor.data);
            data.resize(data.len().next_multiple_of(alignment), 0);
        }
        file.resize(file.len().next_multiple_of(alignment), 0);
        file.extend(data);
        file
    }
}
