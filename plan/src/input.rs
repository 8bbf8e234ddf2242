//! Files that come from elsewhere: opening them without waiting, telling their kinds apart, and showing what they say.
//!
//! A directory that somebody hands over may hold named pipes, devices and links to them. What is found in one is opened with
//! [`open_regular`], which never waits, and read with [`read_regular`], which never reads more than its caller allows.

use std::borrow::Cow;
use std::fmt::Write as _;
use std::fs::File;
use std::io::{self, Read};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

/// Most bytes of each kind of file or text from elsewhere. Published files are far below; what is above is refused before it is parsed.
pub mod limit {
    /// A model's `config.json`, `generation_config.json` or `tokenizer_config.json`.
    pub const CONFIG_BYTES: u64 = 1 << 20;
    /// An adapter's `adapter_config.json`.
    pub const ADAPTER_CONFIG_BYTES: u64 = 64 << 10;
    /// The header of an adapter's safetensors file.
    pub const ADAPTER_HEADER_BYTES: u64 = 4 << 20;
    /// The header of a model's safetensors file: the published format's own limit.
    pub const HEADER_BYTES: u64 = 100_000_000;
    /// Regular expressions in an adapter's config that are more than plain names.
    pub const ADAPTER_PATTERNS: usize = 64;
    /// Adapters of an engine that are in memory or being loaded. Each has a mapping, of which a process may have 65,530 by default.
    pub const ADAPTERS: usize = 8192;
    /// `tokenizer.json`: the largest published ones have 33 MB.
    pub const TOKENIZER_BYTES: u64 = 64 << 20;
    /// A part of `tokenizer.json` that lists components: its normalizer, pre-tokenizer, post-processor or decoder.
    pub const TOKENIZER_PART_BYTES: u64 = 1 << 20;
    /// Components of such a part.
    pub const TOKENIZER_COMPONENTS: usize = 16;
    /// Regular expressions by which a tokenizer cuts a text into words.
    pub const TOKENIZER_SPLITS: usize = 8;
    /// Bytes of one of them.
    pub const TOKENIZER_REGEX_BYTES: usize = 8 << 10;
    /// Ids, and pieces, of a template that a tokenizer puts around a text.
    pub const TOKENIZER_TEMPLATE_IDS: usize = 64;
    /// A text to encode.
    pub const PROMPT_BYTES: usize = 16 << 20;
    /// `model.safetensors.index.json`.
    pub const INDEX_BYTES: u64 = 32 << 20;
    /// A model spec or fused-op spec.
    pub const SPEC_BYTES: u64 = 4 << 20;
    /// The metadata section of a plan.
    pub const PLAN_METADATA_BYTES: u64 = 16 << 20;
    /// Files that a GGUF model is split into.
    pub const GGUF_PARTS: u64 = 1000;
    /// A file of `/proc`: the list of a process's mappings has some megabytes at most.
    pub const PROC_BYTES: u64 = 16 << 20;
    /// A JSON list of token ids: 12 bytes for each of a million.
    pub const TOKEN_IDS_BYTES: u64 = 12 << 20;
    /// Token ids of a vocabulary.
    pub const VOCAB: usize = 1 << 26;
    /// Tokens of a context.
    pub const CONTEXT: usize = 1 << 24;
    /// KV heads of a layer.
    pub const KV_HEADS: usize = 1 << 12;
    /// Elements of a head.
    pub const HEAD_DIM: usize = 1 << 10;
    /// Query heads that share a KV head: kernels keep a register or a line of scratch for each.
    pub const QUERIES_PER_KV_HEAD: usize = 128;
    /// Experts of a layer: the runtime keeps two counters for each.
    pub const EXPERTS: usize = 1 << 16;
    /// Experts that a token chooses: kernels search for one after the other.
    pub const TOP_K: usize = 64;
    /// Columns of a row of activations, and so rows and columns of every matrix but the unembedding.
    pub const WIDTH: usize = 1 << 20;
    /// Tokens of a batch.
    pub const BATCH: usize = 1 << 16;
    /// Arena buffers of a token class.
    pub const BUFFERS: usize = 1 << 14;
    /// Token classes of a program.
    pub const CLASSES: usize = 64;
    /// Steps of a token class, and layers: a spec has a quarter as many nodes.
    pub const STEPS: usize = 1 << 17;
    /// Functions of a program.
    pub const SYMBOLS: usize = 1 << 16;
    /// Operands of a kernel.
    pub const OPERANDS: usize = 1 << 8;
    /// Characters that an error message repeats of a name or text from a file.
    pub const SHOWN_CHARS: usize = 200;
    /// Characters of a word of a message, as the exits show it: paths are shorter, and what is longer came from a file.
    pub const WORD_CHARS: usize = 1000;
    /// Characters of a whole message, as the exits show it.
    pub const MESSAGE_CHARS: usize = 8000;
}

/// Opens a regular file for reading. Links are followed; a pipe, a device or a directory is refused without waiting for it.
///
/// # Errors
/// When the file cannot be opened, or is not a regular file.
pub fn open_regular(path: &Path) -> io::Result<File> {
    // Without O_NONBLOCK, opening a named pipe waits for its writer.
    let file = File::options().read(true).custom_flags(libc::O_NONBLOCK | libc::O_NOCTTY).open(path)?;
    let kind = file.metadata()?.file_type();
    if kind.is_file() {
        return Ok(file);
    }
    let what = if kind.is_dir() { "it is a directory" } else { "it is a pipe or a device" };
    Err(io::Error::new(io::ErrorKind::InvalidInput, format!("{what}, expected a regular file")))
}

/// The bytes of a regular file that has at most `most` of them.
///
/// # Errors
/// As [`open_regular`]; also when the file is larger, or cannot be read.
pub fn read_regular(path: &Path, most: u64) -> io::Result<Vec<u8>> {
    let file = open_regular(path)?;
    let size = file.metadata()?.len();
    let too_large = |size: u64| {
        let what = format!("it has {size} bytes, expected at most {most}");
        Err(io::Error::new(io::ErrorKind::InvalidInput, what))
    };
    if size > most {
        return too_large(size);
    }
    let mut bytes = Vec::with_capacity(size as usize);
    // The file may grow meanwhile, and files of /proc state no size.
    file.take(most + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > most { too_large(bytes.len() as u64) } else { Ok(bytes) }
}

/// As [`read_regular`], for a text.
///
/// # Errors
/// As [`read_regular`]; also when the bytes are not UTF-8.
pub fn read_regular_text(path: &Path, most: u64) -> io::Result<String> {
    text(read_regular(path, most)?)
}

/// The bytes of what was named itself, on a command line for example: a file, or a pipe, which is waited for; at most `most` of them.
///
/// # Errors
/// When it cannot be opened or read, or brings more.
pub fn read_named(path: &Path, most: u64) -> io::Result<Vec<u8>> {
    read_all(File::open(path)?, most)
}

/// As [`read_named`], for a text.
///
/// # Errors
/// As [`read_named`]; also when the bytes are not UTF-8.
pub fn read_named_text(path: &Path, most: u64) -> io::Result<String> {
    text(read_named(path, most)?)
}

/// All that a reader brings, which is at most `most` bytes. It may never end.
///
/// # Errors
/// When it cannot be read, or brings more.
pub fn read_all(reader: impl Read, most: u64) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    reader.take(most + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 <= most {
        return Ok(bytes);
    }
    let what = format!("it has more than {most} bytes, expected at most so many");
    Err(io::Error::new(io::ErrorKind::InvalidInput, what))
}

/// As [`read_all`], for a text.
///
/// # Errors
/// As [`read_all`]; also when the bytes are not UTF-8.
pub fn read_all_text(reader: impl Read, most: u64) -> io::Result<String> {
    text(read_all(reader, most)?)
}

fn text(bytes: Vec<u8>) -> io::Result<String> {
    String::from_utf8(bytes).map_err(|_| io::Error::new(io::ErrorKind::InvalidData, "it is not UTF-8 text"))
}

/// What a file is, by its first bytes.
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
    /// Other text.
    Text,
    /// Nothing at all.
    Empty,
    /// Anything else.
    Unknown,
}

/// As many first bytes as [`FileKind::of`] looks at.
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
        if starts(&crate::file::MAGIC) {
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

    /// What it is and what helps, as the end of a message about a file that should be something else: "it is ..., ...".
    pub fn describe(self) -> &'static str {
        match self {
            FileKind::Plan => "it is a kernmill plan",
            FileKind::Gguf => "it is a GGUF file",
            FileKind::Safetensors => "it is a safetensors file",
            FileKind::LfsPointer => {
                "it is a git-lfs pointer, the file itself was not downloaded: run `git lfs pull` where it was cloned, or download it"
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

/// A text from elsewhere as it may be shown on a terminal: control characters and those that turn the writing direction become
/// `\u{..}`; line ends and tabs stay.
///
/// ```
/// use kernmill_plan::input::visible;
/// assert_eq!(visible("plain\n"), "plain\n");
/// assert_eq!(visible("a\u{1b}[2J"), "a\\u{1b}[2J");
/// ```
pub fn visible(text: &str) -> Cow<'_, str> {
    if !text.chars().any(is_hidden) {
        return Cow::Borrowed(text);
    }
    let mut shown = String::with_capacity(text.len() + 16);
    for c in text.chars() {
        if is_hidden(c) {
            let _ = write!(shown, "\\u{{{:x}}}", u32::from(c));
        } else {
            shown.push(c);
        }
    }
    Cow::Owned(shown)
}

fn is_hidden(c: char) -> bool {
    let turns = matches!(c, '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    turns || c.is_control() && !matches!(c, '\n' | '\t')
}

/// A message as it may be shown: [`visible`], its long words and itself cut at [`limit::WORD_CHARS`] and [`limit::MESSAGE_CHARS`].
/// Messages repeat names from files, which have any length.
///
/// ```
/// use kernmill_plan::input::message;
/// assert_eq!(message("error: m.plan: no such file"), "error: m.plan: no such file");
/// assert!(message(&format!("error: {}: unknown", "x".repeat(100_000))).len() < 1100);
/// ```
pub fn message(text: &str) -> Cow<'_, str> {
    let shown = visible(text);
    if shown.len() <= limit::WORD_CHARS {
        return shown;
    }
    let words: String = shown
        .split_inclusive(char::is_whitespace)
        .map(|word| word.split_at(word.trim_end().len()))
        .flat_map(|(word, space)| [cut(word, limit::WORD_CHARS), Cow::Borrowed(space)])
        .collect();
    Cow::Owned(cut(&words, limit::MESSAGE_CHARS).into_owned())
}

/// A name or text from a file, as an error message repeats it: what [`limit::SHOWN_CHARS`] leaves of it.
///
/// ```
/// use kernmill_plan::input::shortened;
/// assert_eq!(shortened("name"), "name");
/// assert!(shortened(&"x".repeat(1000)).ends_with("x... (1000 bytes)"));
/// ```
pub fn shortened(text: &str) -> Cow<'_, str> {
    cut(text, limit::SHOWN_CHARS)
}

/// At most `most` characters of a text, and then how long it was.
fn cut(text: &str, most: usize) -> Cow<'_, str> {
    match text.char_indices().nth(most) {
        Some((end, _)) => Cow::Owned(format!("{}... ({} bytes)", &text[..end], text.len())),
        None => Cow::Borrowed(text),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::ffi::CString;
    use std::os::unix::ffi::OsStrExt;

    fn pipe(path: &Path) {
        let name = CString::new(path.as_os_str().as_bytes()).unwrap();
        // SAFETY: the name ends with a NUL and lives through the call.
        assert_eq!(unsafe { libc::mkfifo(name.as_ptr(), 0o600) }, 0);
    }

    #[test]
    fn pipes_devices_and_directories_are_refused_at_once() {
        let dir = std::env::temp_dir().join(format!("kernmill-input-{}", std::process::id()));
        std::fs::create_dir(&dir).unwrap();
        pipe(&dir.join("pipe"));
        std::os::unix::fs::symlink("/dev/zero", dir.join("zero")).unwrap();
        for (name, says) in [("pipe", "pipe or a device"), ("zero", "pipe or a device"), (".", "directory")] {
            let error = read_regular(&dir.join(name), 100).unwrap_err();
            assert!(error.to_string().contains(says), "{name}: {error}");
        }
        std::fs::write(dir.join("file"), b"12345").unwrap();
        std::os::unix::fs::symlink("file", dir.join("link")).unwrap();
        assert_eq!(read_regular(&dir.join("link"), 5).unwrap(), b"12345");
        let error = read_regular(&dir.join("file"), 4).unwrap_err();
        assert_eq!(error.to_string(), "it has 5 bytes, expected at most 4");
        std::fs::remove_dir_all(&dir).unwrap();
    }

    #[test]
    fn what_was_named_is_read_up_to_its_limit_also_if_it_never_ends() {
        let error = read_named(Path::new("/dev/zero"), 1000).unwrap_err();
        assert_eq!(error.to_string(), "it has more than 1000 bytes, expected at most so many");
        assert_eq!(read_named(Path::new("/dev/null"), 0).unwrap(), b"");
        assert_eq!(read_all(&b"12345"[..], 5).unwrap(), b"12345");
        assert!(read_all(&b"12345"[..], 4).is_err());
        assert!(read_named_text(Path::new("/dev/zero"), 1000).is_err());
        let path = std::env::temp_dir().join(format!("kernmill-named-{}", std::process::id()));
        pipe(&path);
        let writer = path.clone();
        let writer = std::thread::spawn(move || std::fs::write(writer, b"\xff").unwrap());
        assert_eq!(read_named_text(&path, 10).unwrap_err().to_string(), "it is not UTF-8 text");
        writer.join().unwrap();
        std::fs::remove_file(path).unwrap();
    }

    #[test]
    fn messages_are_cut_where_names_are_endless() {
        let name = "x".repeat(5000);
        let text = message(&format!("error: {name}: unknown")).into_owned();
        assert!(text.starts_with("error: xxx") && text.ends_with("x... (5001 bytes) unknown"), "{text}");
        let words = message(&"word \u{1b} ".repeat(10_000)).into_owned();
        assert!(words.len() < limit::MESSAGE_CHARS + 50 && words.starts_with("word \\u{1b} word"), "{words}");
        assert!(words.ends_with(" bytes)"));
        let short = format!("{}\n{}", "y".repeat(limit::WORD_CHARS), "z".repeat(limit::WORD_CHARS));
        assert_eq!(message(&short), short);
    }

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
