//! Telling kinds of files apart by their first bytes.

use kernmill_os::files::open_regular;
use kernmill_plan::file::MAGIC;
use std::io::{self, Read};
use std::path::Path;

/// The kind of a file, by its first bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FileKind {
    /// A plan that kernmill wrote.
    Plan,
    /// A GGUF file.
    Gguf,
    /// A safetensors file.
    Safetensors,
    /// The text that `git clone` leaves of a large file when git-lfs is not installed.
    LfsPointer,
    /// A zip archive, such as a pickled PyTorch file.
    Zip,
    /// A pickle without an archive around it.
    Pickle,
    /// A page of a web server, saved in place of the file.
    Html,
    /// A JSON object or list.
    Json,
    /// Text of another kind.
    Text,
    /// A file without any bytes.
    Empty,
    /// Anything else.
    Unknown,
}

/// Number of first bytes that [`FileKind::of`] looks at.
pub const KIND_BYTES: usize = 512;

impl FileKind {
    /// The kind of a file that begins with `start`: its first [`KIND_BYTES`], or all of a shorter one.
    pub fn of(start: &[u8]) -> FileKind {
        let starts = |prefix: &[u8]| start.starts_with(prefix);
        if start.is_empty() {
            return FileKind::Empty;
        }
        if starts(b"GGUF") {
            return FileKind::Gguf;
        }
        if starts(&MAGIC) {
            return FileKind::Plan;
        }
        if starts(b"version https://git-lfs") {
            return FileKind::LfsPointer;
        }
        if starts(b"PK\x03\x04") {
            return FileKind::Zip;
        }
        if starts(b"\x80\x02") || starts(b"\x80\x03") || starts(b"\x80\x04") || starts(b"\x80\x05") {
            return FileKind::Pickle;
        }
        // A header length below 2^32, and the JSON object behind it.
        if start.len() > 8 && start[4..8] == [0; 4] && start[8] == b'{' {
            return FileKind::Safetensors;
        }
        let text = match std::str::from_utf8(start) {
            Ok(text) => text,
            // The last character may be cut.
            Err(error) if start.len() - error.valid_up_to() < 4 && error.error_len().is_none() => {
                std::str::from_utf8(&start[..error.valid_up_to()]).unwrap_or_default()
            }
            Err(_) => return FileKind::Unknown,
        };
        let text = text.trim_start_matches('\u{feff}').trim_start();
        let lower = text.get(..text.len().min(16)).unwrap_or_default().to_ascii_lowercase();
        if lower.starts_with("<!doctype") || lower.starts_with("<html") {
            return FileKind::Html;
        }
        if text.starts_with('{') {
            return FileKind::Json;
        }
        if text.chars().any(|c| c.is_control() && !matches!(c, '\n' | '\r' | '\t')) {
            return FileKind::Unknown;
        }
        FileKind::Text
    }

    /// The kind of a file; a directory, pipe or device is [`FileKind::Unknown`].
    ///
    /// # Errors
    /// When the file cannot be opened or read.
    pub fn of_file(path: &Path) -> io::Result<FileKind> {
        let Ok(metadata) = std::fs::metadata(path).map(|metadata| metadata.file_type()) else {
            return open_regular(path).map(|_| FileKind::Unknown);
        };
        if !metadata.is_file() {
            return Ok(FileKind::Unknown);
        }
        let mut start = Vec::with_capacity(KIND_BYTES);
        open_regular(path)?.take(KIND_BYTES as u64).read_to_end(&mut start)?;
        Ok(FileKind::of(&start))
    }

    /// The kind and some advice, as the end of a message about a file that should be something else: "it is
    /// ..., ...".
    pub fn describe(self) -> &'static str {
        match self {
            FileKind::Plan => "it is a kernmill plan",
            FileKind::Gguf => "it is a GGUF file",
            FileKind::Safetensors => "it is a safetensors file",
            FileKind::LfsPointer => {
                "it is a git-lfs pointer, the file itself was not downloaded: run `git lfs pull` where it \
                 was cloned, or download it"
            }
            FileKind::Zip => {
                "it is a zip archive, as torch.save writes: save it as safetensors (save_pretrained does)"
            }
            FileKind::Pickle => {
                "it is a pickle, as torch.save writes: save it as safetensors (save_pretrained does)"
            }
            FileKind::Html => "it is a web page, probably saved in place of the file: download it again",
            FileKind::Json => "it is JSON text",
            FileKind::Text => "it is text",
            FileKind::Empty => "it is empty",
            FileKind::Unknown => "it is of no kind that kernmill knows",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_are_told_apart() {
        let cases: [(&[u8], FileKind); 12] = [
            (b"", FileKind::Empty),
            (b"GGUF\x03\0\0\0", FileKind::Gguf),
            (b"version https://git-lfs.github.com/spec/v1\noid", FileKind::LfsPointer),
            (b"PK\x03\x04\x14", FileKind::Zip),
            (b"\x80\x02}q\x00", FileKind::Pickle),
            (b"\x20\0\0\0\0\0\0\0{\"a\"", FileKind::Safetensors),
            (b"\n <!DOCTYPE html><html>", FileKind::Html),
            (b" {\"architectures\": []}", FileKind::Json),
            (b"[model]\nname = \"x\"", FileKind::Text),
            ("gr\u{fc}n".as_bytes(), FileKind::Text),
            (b"\xff\xfe\x00\x01", FileKind::Unknown),
            (b"\0\0\0\0\0\0\0\0\0", FileKind::Unknown),
        ];
        for (start, kind) in cases {
            assert_eq!(FileKind::of(start), kind, "{start:?}");
        }
    }
}
