//! Which formats the layers of a model have, and how that is written.

use super::{KvFormat, KvPlane, LayerKind};
use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;

/// Formats of the keys and the values of a layer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct KvPair {
    /// Format of keys.
    pub k: KvFormat,
    /// Format of values.
    pub v: KvFormat,
}

impl KvPair {
    /// One format for both.
    pub const fn both(format: KvFormat) -> KvPair {
        KvPair { k: format, v: format }
    }

    /// The format of a plane.
    pub fn of(self, plane: KvPlane) -> KvFormat {
        match plane {
            KvPlane::K => self.k,
            KvPlane::V => self.v,
        }
    }
}

/// `f16`, or `k=int8, v=f16`.
impl fmt::Display for KvPair {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.k == self.v {
            true => f.write_str(self.k.name()),
            false => write!(f, "k={}, v={}", self.k.name(), self.v.name()),
        }
    }
}

/// Formats of all layers, by kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct KvFormats {
    /// Formats of full layers.
    pub full: KvPair,
    /// Formats of sliding layers.
    pub sliding: KvPair,
}

/// The text is that of [`KvPair`]; `int8, sliding f16` where kinds differ.
impl fmt::Display for KvFormats {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.full == self.sliding {
            true => write!(f, "{}", self.full),
            false => write!(f, "{}, sliding {}", self.full, self.sliding),
        }
    }
}

impl KvFormats {
    /// One format for everything.
    pub const fn uniform(format: KvFormat) -> KvFormats {
        KvFormats { full: KvPair::both(format), sliding: KvPair::both(format) }
    }

    /// The formats of layers of a kind.
    pub fn of(&self, kind: LayerKind) -> KvPair {
        match kind {
            LayerKind::Full => self.full,
            LayerKind::Sliding => self.sliding,
        }
    }
}

/// Formats that somebody asks for, as text: `int8`, or parts of it by name, `k=int8,v=f16,sliding=int8`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct KvRequest {
    /// Keys of full layers.
    pub k: Option<KvFormat>,
    /// Values of full layers.
    pub v: Option<KvFormat>,
    /// Keys of sliding layers.
    pub sliding_k: Option<KvFormat>,
    /// Values of sliding layers.
    pub sliding_v: Option<KvFormat>,
}

impl KvRequest {
    /// The formats asked for, and those of `default` where nothing is said.
    pub fn of(&self, default: KvFormats) -> KvFormats {
        let pair = |k: Option<KvFormat>, v: Option<KvFormat>, default: KvPair| KvPair {
            k: k.unwrap_or(default.k),
            v: v.unwrap_or(default.v),
        };
        KvFormats {
            full: pair(self.k, self.v, default.full),
            sliding: pair(self.sliding_k, self.sliding_v, default.sliding),
        }
    }
}

/// A format by itself is that of full layers, whose keys and values grow with the context; one of 16 bits or
/// more is that of sliding layers too. An empty text asks for nothing.
impl FromStr for KvRequest {
    type Err = String;

    fn from_str(text: &str) -> Result<KvRequest, String> {
        let mut request = KvRequest::default();
        if text.is_empty() {
            return Ok(request);
        }
        for part in text.split(',').map(str::trim) {
            let (place, name) =
                part.split_once('=').map_or(("", part), |(place, name)| (place.trim(), name.trim()));
            let format = KvFormat::from_name(name).ok_or_else(|| {
                let names: Vec<&str> = KvFormat::ALL.into_iter().map(KvFormat::name).collect();
                format!("`{name}` is no format of the KV cache, expected one of {}", names.join(", "))
            })?;
            let wide = format.descriptor().bits >= 16;
            let places: &mut [&mut Option<KvFormat>] = match place {
                "" if wide => {
                    &mut [&mut request.k, &mut request.v, &mut request.sliding_k, &mut request.sliding_v]
                }
                "" => &mut [&mut request.k, &mut request.v],
                "k" => &mut [&mut request.k],
                "v" => &mut [&mut request.v],
                "sliding" => &mut [&mut request.sliding_k, &mut request.sliding_v],
                "sliding-k" => &mut [&mut request.sliding_k],
                "sliding-v" => &mut [&mut request.sliding_v],
                other => {
                    return Err(format!(
                        "`{other}` is no part of the KV cache, expected k, v, sliding, sliding-k or \
                         sliding-v, as in k=int8,v=f16"
                    ));
                }
            };
            places.iter_mut().for_each(|place| **place = Some(format));
        }
        Ok(request)
    }
}

/// The rounding of rows of keys or values before they enter the cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct KvRow {
    /// The format.
    pub format: KvFormat,
    /// Elements that share a scale, a head; 0 of formats without scales, which do not ask.
    pub head_dim: usize,
}

impl KvRow {
    /// Rows of heads of `head_dim` elements in a format.
    pub fn new(format: KvFormat, head_dim: usize) -> KvRow {
        KvRow { format, head_dim: if format.is_scaled() { head_dim } else { 0 } }
    }

    /// Whether a row of `n` elements is whole heads.
    pub fn divides(self, n: usize) -> bool {
        !self.format.is_scaled() || (self.head_dim > 0 && n.is_multiple_of(self.head_dim))
    }

    /// Bytes of `n` elements outside of the cache: integers of a byte each, then the scales of their heads,
    /// f32; of a format without scales what the cache has.
    pub fn bytes(self, n: usize) -> usize {
        match self.format.is_scaled() {
            true => self.scales(n) + n.checked_div(self.head_dim).unwrap_or(0) * 4,
            false => self.format.elements_bytes(n),
        }
    }

    /// Byte offset of the scales in a row of `n` elements.
    pub fn scales(self, n: usize) -> usize {
        n.next_multiple_of(4)
    }
}

impl KvRow {
    /// The value whose name [`KvRow`]'s `Display` writes.
    pub fn from_name(name: &str) -> Option<KvRow> {
        let (format, head_dim) = match name.split_once('x') {
            Some((format, head_dim)) => (format, head_dim.parse().ok()?),
            None => (name, 0),
        };
        let row = KvRow { format: KvFormat::from_name(format)?, head_dim };
        (row.format.is_scaled() == (head_dim > 0)).then_some(row)
    }
}

/// `f16`, or `int8x64` for heads of 64 with a scale each.
impl fmt::Display for KvRow {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.format.is_scaled() {
            true => write!(f, "{}x{}", self.format.name(), self.head_dim),
            false => f.write_str(self.format.name()),
        }
    }
}
