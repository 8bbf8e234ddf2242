//! Values of options.

use std::str::FromStr;

/// A whole number from 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Count(pub u32);

impl FromStr for Count {
    type Err = String;

    fn from_str(text: &str) -> Result<Count, String> {
        match text.parse() {
            Ok(count) if count > 0 => Ok(Count(count)),
            _ => Err("expected a whole number from 1".to_owned()),
        }
    }
}
