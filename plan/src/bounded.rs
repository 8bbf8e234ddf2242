//! Lists and texts of bounded length, for `#[serde(deserialize_with)]`: a byte of a file that means harm may
//! stand for an element of a hundred.

use serde::de::{Deserialize, Deserializer, Error, SeqAccess, Visitor};
use std::fmt;
use std::marker::PhantomData;

/// Elements that a list has room for before any has been read.
const ROOM: usize = 64;

/// A list of at most `MOST` elements.
///
/// # Errors
/// The deserializer's; also when there are more.
pub fn list<'de, D, T, const MOST: usize>(deserializer: D) -> Result<Vec<T>, D::Error>
where
    D: Deserializer<'de>,
    T: Deserialize<'de>,
{
    deserializer.deserialize_seq(BoundedList::<T, MOST>(PhantomData))
}

/// A text of at most `MOST` bytes.
///
/// # Errors
/// The deserializer's; also when it is longer.
pub fn text<'de, D: Deserializer<'de>, const MOST: usize>(deserializer: D) -> Result<String, D::Error> {
    deserializer.deserialize_str(BoundedText::<MOST>)
}

/// A list of at most `MOST` texts of at most `BYTES` bytes each.
///
/// # Errors
/// The deserializer's; also when there are more, or one is longer.
pub fn texts<'de, D, const MOST: usize, const BYTES: usize>(deserializer: D) -> Result<Vec<String>, D::Error>
where
    D: Deserializer<'de>,
{
    let texts: Vec<Bounded<BYTES>> = list::<D, _, MOST>(deserializer)?;
    Ok(texts.into_iter().map(|text| text.0).collect())
}

struct BoundedList<T, const MOST: usize>(PhantomData<T>);

impl<'de, T: Deserialize<'de>, const MOST: usize> Visitor<'de> for BoundedList<T, MOST> {
    type Value = Vec<T>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "a list of at most {MOST} elements")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut elements: A) -> Result<Vec<T>, A::Error> {
        let mut list = Vec::with_capacity(elements.size_hint().unwrap_or(0).min(ROOM));
        while let Some(element) = elements.next_element()? {
            if list.len() == MOST {
                return Err(A::Error::invalid_length(MOST + 1, &self));
            }
            list.push(element);
        }
        Ok(list)
    }
}

struct BoundedText<const MOST: usize>;

impl<const MOST: usize> Visitor<'_> for BoundedText<MOST> {
    type Value = String;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "a text of at most {MOST} bytes")
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<String, E> {
        if text.len() > MOST {
            return Err(E::invalid_length(text.len(), &self));
        }
        Ok(text.to_owned())
    }
}

struct Bounded<const MOST: usize>(String);

impl<'de, const MOST: usize> Deserialize<'de> for Bounded<MOST> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Bounded<MOST>, D::Error> {
        text::<D, MOST>(deserializer).map(Bounded)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde::Serialize;

    #[derive(Debug, PartialEq, Serialize, serde::Deserialize)]
    struct Lists {
        #[serde(deserialize_with = "list::<_, _, 3>")]
        numbers: Vec<u32>,
        #[serde(deserialize_with = "texts::<_, 2, 4>")]
        names: Vec<String>,
        #[serde(deserialize_with = "text::<_, 5>")]
        text: String,
    }

    fn lists(numbers: usize, names: &[&str], text: usize) -> Lists {
        let names = names.iter().map(|name| (*name).to_owned()).collect();
        Lists { numbers: vec![7; numbers], names, text: "x".repeat(text) }
    }

    #[test]
    fn what_is_within_the_bounds_is_read_and_nothing_else() {
        for (value, fits) in [
            (lists(3, &["abcd", ""], 5), true),
            (lists(0, &[], 0), true),
            (lists(4, &[], 0), false),
            (lists(0, &["", "", ""], 0), false),
            (lists(0, &["abcde"], 0), false),
            (lists(0, &[], 6), false),
        ] {
            let bytes = postcard::to_allocvec(&value).unwrap();
            assert_eq!(
                postcard::from_bytes(&bytes).is_ok_and(|read: Lists| read == value),
                fits,
                "{value:?}"
            );
            let json = serde_json::to_string(&value).unwrap();
            assert_eq!(serde_json::from_str(&json).is_ok_and(|read: Lists| read == value), fits, "{json}");
        }
        let error = serde_json::from_str::<Lists>(r#"{"numbers":[1,2,3,4]}"#).unwrap_err().to_string();
        assert!(error.starts_with("invalid length 4, expected a list of at most 3 elements"), "{error}");
    }
}
