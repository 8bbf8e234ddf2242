//! Edits of data that is sound: lists of instructions of 8 bytes each.

use serde_json::Value;

/// Instructions that an input may have.
const MAX_EDITS: usize = 32;

/// An instruction.
pub struct Edit {
    /// The part that is edited.
    pub part: u8,
    /// In what way.
    pub how: u8,
    /// Where.
    pub at: usize,
    /// With what.
    pub value: u32,
}

/// The instructions in `data`: part, how, place (2 bytes), value (4 bytes).
pub fn edits(data: &[u8]) -> impl Iterator<Item = Edit> {
    data.chunks_exact(8).take(MAX_EDITS).map(|bytes| Edit {
        part: bytes[0],
        how: bytes[1],
        at: u16::from_le_bytes([bytes[2], bytes[3]]).into(),
        value: u32::from_le_bytes([bytes[4], bytes[5], bytes[6], bytes[7]]),
    })
}

/// Changes value number `at` (depth first, modulo their number): `how` says in what way.
pub fn edit(json: &mut Value, at: usize, how: u8, value: u32) {
    let count = count(json);
    let Some(place) = find(json, &mut (at % count)) else { return };
    let number = number(how, value, place.as_u64().unwrap_or(0));
    match place {
        Value::Array(items) if !items.is_empty() => {
            let index = value as usize % items.len();
            match how % 4 {
                0 => drop(items.remove(index)),
                1 => items.insert(index, items[index].clone()),
                2 => items.swap(0, index),
                _ => items.truncate(index),
            }
        }
        Value::Number(_) => *place = number.into(),
        Value::Null => *place = (number % 1024).into(),
        Value::Bool(flag) => *flag = !*flag,
        Value::String(text) => match text.as_str() {
            "full" => *text = "sliding".into(),
            "sliding" => *text = "full".into(),
            _ => text.push('~'),
        },
        Value::Array(_) | Value::Object(_) => {}
    }
}

/// A number that is likely to be trouble where `old` was right.
pub fn number(how: u8, value: u32, old: u64) -> u64 {
    match how % 12 {
        0 => 0,
        1 => old.wrapping_add(1),
        2 => old.wrapping_sub(1),
        3 => old.wrapping_add(64),
        4 => old.wrapping_sub(64),
        5 => u64::MAX,
        6 => u64::MAX - 63,
        7 => u32::MAX.into(),
        8 => 1 << (value % 64),
        9 => old.wrapping_mul(2),
        10 => u64::from(value) << 32,
        _ => value.into(),
    }
}

fn children(json: &mut Value) -> Vec<&mut Value> {
    match json {
        Value::Array(items) => items.iter_mut().collect(),
        Value::Object(map) => map.values_mut().collect(),
        _ => Vec::new(),
    }
}

fn count(json: &mut Value) -> usize {
    1 + children(json).into_iter().map(count).sum::<usize>()
}

fn find<'a>(json: &'a mut Value, skip: &mut usize) -> Option<&'a mut Value> {
    if *skip == 0 {
        return Some(json);
    }
    *skip -= 1;
    children(json).into_iter().find_map(|child| find(child, skip))
}
