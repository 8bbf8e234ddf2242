//! Access to a GGUF file's metadata: by type, or as it is stored.

use super::cursor::FileCursor;
use super::value::{MAGIC, MetadataValue, ValueType};
use super::{Gguf, GgufValue, layout};
use crate::error::Result;
use kernmill_os::text::shortened;

/// Largest whole number taken from a file, as in a `config.json`.
const MAX_WHOLE: u64 = 1 << 31;

impl Gguf {
    /// Whether the metadata has this key.
    pub fn has(&self, key: &str) -> bool {
        self.metadata.values.contains_key(key)
    }

    /// Every key.
    pub fn keys(&self) -> impl Iterator<Item = &str> {
        self.metadata.values.keys().map(String::as_str)
    }

    /// Every key and its value as the file has them, in its order, for a file that is made of this one.
    ///
    /// # Errors
    /// If the file is damaged, which opening it has found out.
    pub fn stored_keys(&self) -> Result<Vec<(String, GgufValue)>> {
        let bytes = &self.parts[0].bytes;
        let mut cursor = FileCursor::new(self.path(), bytes);
        // The magic number, the version, and the number of tensors.
        cursor.take(MAGIC.len() + 4 + 8, "the header")?;
        let count = cursor.u64("the number of keys")?;
        let mut keys = Vec::new();
        for index in 0..count {
            let key = cursor.string(&format!("key {index}"))?.to_owned();
            let kind = cursor.value_type(&key)?;
            let start = cursor.at;
            layout::value(&mut cursor, &key, kind)?;
            keys.push((key, GgufValue(kind as u32, bytes[start..cursor.at].to_vec())));
        }
        Ok(keys)
    }

    /// A number or flag of any type, a flag as 0 or 1; `None` of anything else.
    pub fn number(&self, key: &str) -> Option<f64> {
        match *self.metadata.values.get(key)? {
            MetadataValue::Unsigned(n) => Some(n as f64),
            MetadataValue::Signed(n) => Some(n as f64),
            MetadataValue::Float(x) => Some(x),
            MetadataValue::Bool(flag) => Some(f64::from(u8::from(flag))),
            MetadataValue::Text(_) | MetadataValue::Array { .. } => None,
        }
    }

    /// The value of a key that is there, as errors quote it.
    pub fn shown(&self, key: &str) -> String {
        self.metadata.values.get(key).map(MetadataValue::brief).unwrap_or_default()
    }

    /// A whole number, 0 included. An array of equal ones, which some writers give for the layers, counts as
    /// one.
    pub fn whole(&self, key: &str) -> Result<Option<u64>> {
        let Some(value) = self.metadata.values.get(key) else { return Ok(None) };
        let number = match value {
            MetadataValue::Array { .. } => self.equal_wholes(key)?,
            value => value.whole(),
        };
        match number.filter(|&n| n <= MAX_WHOLE) {
            Some(number) => Ok(Some(number)),
            None => self.wrong(key, value, &format!("a whole number up to {MAX_WHOLE}")),
        }
    }

    /// The value that all elements of an array share.
    fn equal_wholes(&self, key: &str) -> Result<Option<u64>> {
        let numbers = self.wholes(key)?.unwrap_or_default();
        let Some(&first) = numbers.first() else { return Ok(None) };
        match numbers.iter().find(|&&n| n != first) {
            None => Ok(Some(first)),
            Some(other) => self.unsupported(format!(
                "key `{key}` has {first} for some layers and {other} for others; supported is the same in all"
            )),
        }
    }

    /// A whole number from 1.
    pub fn require_whole(&self, key: &str) -> Result<u64> {
        match self.whole(key)? {
            Some(0) => self.bad(format!("key `{key}` is 0: expected a whole number from 1")),
            Some(number) => Ok(number),
            None => self.bad(format!("key `{key}` is missing: expected a whole number")),
        }
    }

    /// A finite number above 0, whole or not.
    pub fn positive(&self, key: &str) -> Result<Option<f64>> {
        let Some(value) = self.metadata.values.get(key) else { return Ok(None) };
        let number = match *value {
            MetadataValue::Float(x) => Some(x),
            MetadataValue::Unsigned(_) | MetadataValue::Signed(_) => value.whole().map(|n| n as f64),
            _ => None,
        };
        match number {
            Some(x) if x > 0.0 && x <= f64::from(f32::MAX) => Ok(Some(x)),
            _ => self.wrong(key, value, "a number above 0"),
        }
    }

    /// The positive number of `key`.
    ///
    /// # Errors
    /// If the key is missing, or its value is no positive number.
    pub fn require_positive(&self, key: &str) -> Result<f64> {
        match self.positive(key)? {
            Some(number) => Ok(number),
            None => self.bad(format!("key `{key}` is missing: expected a number above 0")),
        }
    }

    /// The truth value of `key`, if it is there.
    ///
    /// # Errors
    /// If its value is of another kind.
    pub fn flag(&self, key: &str) -> Result<Option<bool>> {
        match self.metadata.values.get(key) {
            None => Ok(None),
            Some(MetadataValue::Bool(flag)) => Ok(Some(*flag)),
            Some(value) => self.wrong(key, value, "true or false"),
        }
    }

    /// The string of `key`, if it is there.
    ///
    /// # Errors
    /// If its value is of another kind, or no UTF-8.
    pub fn text(&self, key: &str) -> Result<Option<&str>> {
        match self.metadata.values.get(key) {
            None => Ok(None),
            Some(MetadataValue::Text(range)) => match str::from_utf8(&self.parts[0].bytes[range.clone()]) {
                Ok(text) => Ok(Some(text)),
                Err(_) => self.corrupt(format!("key `{key}` is not UTF-8")),
            },
            Some(value) => self.wrong(key, value, "a string"),
        }
    }

    /// The list of strings of `key`, if it is there.
    ///
    /// # Errors
    /// If its value is of another kind, or no UTF-8.
    pub fn texts(&self, key: &str) -> Result<Option<Vec<&str>>> {
        let Some(value) = self.metadata.values.get(key) else { return Ok(None) };
        let MetadataValue::Array { element: ValueType::String, count, range } = value else {
            return self.wrong(key, value, "an array of strings");
        };
        let mut cursor = FileCursor::new(self.path(), &self.parts[0].bytes[range.clone()]);
        // The range has been walked through, so `count` strings are there.
        (0..*count)
            .map(|_| cursor.string(&format!("a string of key `{key}`")))
            .collect::<Result<_>>()
            .map(Some)
    }

    /// An array of whole numbers or flags.
    pub fn wholes(&self, key: &str) -> Result<Option<Vec<u64>>> {
        let Some(value) = self.metadata.values.get(key) else { return Ok(None) };
        if let MetadataValue::Array { element, range, .. } = value
            && let Some(size) = element.size()
        {
            let element = if *element == ValueType::Bool { ValueType::U8 } else { *element };
            let scalar = |bytes| MetadataValue::scalar(element, bytes).and_then(|v| v.whole());
            if let Some(numbers) = self.parts[0].bytes[range.clone()].chunks_exact(size).map(scalar).collect()
            {
                return Ok(Some(numbers));
            }
        }
        self.wrong(key, value, "an array of whole numbers")
    }

    /// A token's id; `None` also for a negative or huge number, which writers use for a missing token.
    pub fn token_id(&self, key: &str) -> Result<Option<u32>> {
        match self.metadata.values.get(key) {
            Some(MetadataValue::Signed(..0) | MetadataValue::Unsigned(0x8000_0000..)) => Ok(None),
            _ => Ok(self.whole(key)?.map(|id| id as u32)),
        }
    }

    /// An array of 32-bit floating-point numbers.
    pub fn floats(&self, key: &str) -> Result<Option<Vec<f32>>> {
        let Some(value) = self.metadata.values.get(key) else { return Ok(None) };
        let MetadataValue::Array { element: ValueType::F32, range, .. } = value else {
            return self.wrong(key, value, "an array of 32-bit floating-point numbers");
        };
        let number = |b: &[u8]| f32::from_le_bytes([b[0], b[1], b[2], b[3]]);
        Ok(Some(self.parts[0].bytes[range.clone()].chunks_exact(4).map(number).collect()))
    }

    /// An array of bytes.
    pub(super) fn bytes_of(&self, key: &str) -> Result<Option<&[u8]>> {
        let Some(value) = self.metadata.values.get(key) else { return Ok(None) };
        match value {
            MetadataValue::Array { element: ValueType::U8 | ValueType::I8, range, .. } => {
                Ok(Some(&self.parts[0].bytes[range.clone()]))
            }
            _ => self.wrong(key, value, "an array of bytes"),
        }
    }

    fn wrong<T>(&self, key: &str, value: &MetadataValue, expected: &str) -> Result<T> {
        self.bad(format!("key `{}` is {}: expected {expected}", shortened(key), value.brief()))
    }
}
