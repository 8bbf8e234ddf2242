//! Sums of files: the SHA-256 of a large one, the git object of a small one. They are the names that files
//! have in the cache.

use ring::digest::{Context, SHA1_FOR_LEGACY_USE_ONLY, SHA256};
use std::fmt::Write;

/// The hash of a file's contents in a hub's list, in hexadecimal digits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Sum {
    /// The SHA-256 of the contents.
    Sha256(String),
    /// The name of the file's object in git: a SHA-1 of the length and the contents.
    Git(String),
}

impl Sum {
    /// A SHA-256, if the text is one.
    pub(super) fn sha256(text: &str) -> Option<Sum> {
        is_hex(text, 64).then(|| Sum::Sha256(text.to_owned()))
    }

    /// An object in git, if the text is the name of one.
    pub(super) fn git(text: &str) -> Option<Sum> {
        is_hex(text, 40).then(|| Sum::Git(text.to_owned()))
    }

    /// The digits.
    pub(super) fn digits(&self) -> &str {
        let (Sum::Sha256(digits) | Sum::Git(digits)) = self;
        digits
    }

    /// The name of the hash.
    pub(super) fn kind(&self) -> &'static str {
        match self {
            Sum::Sha256(_) => "SHA-256",
            Sum::Git(_) => "git object",
        }
    }

    /// Begins to sum a file of `bytes` bytes in the same way.
    pub(super) fn begin(&self, bytes: u64) -> RunningSum {
        match self {
            Sum::Sha256(_) => RunningSum(Context::new(&SHA256)),
            Sum::Git(_) => {
                let mut context = Context::new(&SHA1_FOR_LEGACY_USE_ONLY);
                context.update(format!("blob {bytes}\0").as_bytes());
                RunningSum(context)
            }
        }
    }
}

/// The sum of a file so far.
pub(super) struct RunningSum(Context);

impl RunningSum {
    /// Adds the next bytes.
    pub(super) fn add(&mut self, bytes: &[u8]) {
        self.0.update(bytes);
    }

    /// The digits of the whole.
    pub(super) fn finish(self) -> String {
        self.0.finish().as_ref().iter().fold(String::new(), |mut text, byte| {
            let _ = write!(text, "{byte:02x}");
            text
        })
    }
}

/// Whether a text is so many hexadecimal digits.
pub(super) fn is_hex(text: &str, digits: usize) -> bool {
    text.len() == digits && text.bytes().all(|byte| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sums_are_those_of_the_standards() {
        let of = |sum: &Sum, bytes: &[u8]| {
            let mut running = sum.begin(bytes.len() as u64);
            bytes.chunks(2).for_each(|piece| running.add(piece));
            running.finish()
        };
        let sha = Sum::sha256(&"0".repeat(64)).unwrap();
        assert_eq!(of(&sha, b"abc"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
        // printf abc | git hash-object --stdin
        let git = Sum::git(&"0".repeat(40)).unwrap();
        assert_eq!(of(&git, b"abc"), "f2ba8f84ab5c1bce84a7b441cb1959cfc7093b7f");
    }

    #[test]
    fn what_is_no_sum_is_none() {
        for text in ["", "../../x", &"A".repeat(64), &"g".repeat(64), &"0".repeat(65)] {
            assert_eq!((Sum::sha256(text), Sum::git(text)), (None, None), "{text}");
        }
    }
}
