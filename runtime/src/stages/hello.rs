//! How two stages agree: both show that they know the key, and that they run the same model in the same
//! sizes.
//!
//! The stage that is called sends a magic text and a number of its own. The caller sends the magic text, a
//! number of its own, what it wants, and a seal over all of it. The stage answers with a word, a reason, and
//! a seal. Numbers are drawn anew for every connection, so that nothing can be played back.

use super::StageKey;
use super::wire::NumberReader;
use crate::kv::{KvBudget, KvShape};
use std::fs::File;
use std::io::{self, ErrorKind, Read, Write};
use std::net::TcpStream;
use std::time::Duration;

/// The protocol's name and version.
const MAGIC: &[u8; 16] = b"kernmill-stage/1";
/// How long either side waits for the other while they agree.
pub(super) const PATIENCE: Duration = Duration::from_secs(5);
/// Bytes of a wish, or of a reason, at most.
const MOST: usize = 1 << 16;

/// The caller's wishes for a stage.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Wish {
    /// The model, as [`crate::PlanImage::identity`] names it.
    pub identity: [u8; 32],
    /// Number of the stage that is called, from 2 on.
    pub stage: u32,
    /// The first attention layer of each stage, and the number of all.
    pub bounds: Vec<u32>,
    /// By cut, the bytes of a token's rows.
    pub token_bytes: Vec<u32>,
    pub shape: KvShape,
}

impl Wish {
    pub(super) fn write(&self) -> Vec<u8> {
        let (is_bytes, budget) = match self.shape.budget {
            KvBudget::WorstCase => (0, 0),
            KvBudget::Bytes(bytes) => (1, bytes),
        };
        let mut bytes = self.identity.to_vec();
        let shape = &self.shape;
        let numbers =
            [self.stage, shape.context, shape.sequences, shape.chunk, is_bytes, self.bounds.len() as u32];
        let all = numbers.iter().chain(&self.bounds).chain(&self.token_bytes);
        all.for_each(|number| bytes.extend_from_slice(&number.to_le_bytes()));
        bytes.extend_from_slice(&budget.to_le_bytes());
        bytes
    }

    pub(super) fn read(bytes: &[u8]) -> Option<Wish> {
        let mut rest = NumberReader(bytes);
        let identity = rest.bytes()?;
        let [stage, context, sequences, chunk, is_bytes, count] = rest.fixed()?;
        let bounds = rest.list(count as usize)?;
        let token_bytes = rest.list((count as usize).checked_sub(1)?)?;
        let bytes = u64::from_le_bytes(rest.bytes()?);
        let budget = if is_bytes == 0 { KvBudget::WorstCase } else { KvBudget::Bytes(bytes) };
        let shape = KvShape { context, sequences, chunk, budget };
        rest.0.is_empty().then_some(Wish { identity, stage, bounds, token_bytes, shape })
    }
}

/// The numbers that a connection's seals are about.
pub(super) struct Agreeing {
    called: [u8; 32],
    caller: [u8; 32],
}

/// Makes a connection ready: small packets go at once, and nobody waits for ever.
pub(super) fn prepare(stream: &TcpStream) -> io::Result<()> {
    stream.set_nodelay(true)?;
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.set_write_timeout(Some(PATIENCE))
}

/// Calls a stage: tells what is wanted, and waits for its word.
///
/// # Errors
/// When the other side is no stage, has another key, or refuses. The error says why.
pub(super) fn call(stream: &mut TcpStream, key: &StageKey, wish: &Wish) -> io::Result<()> {
    let magic: [u8; 16] = read(stream)?;
    if magic != *MAGIC {
        return Err(invalid("it is no stage of this version of kernmill"));
    }
    let agreeing = Agreeing { called: read(stream)?, caller: nonce()? };
    let wish = wish.write();
    let seal = key.seal(&[b"wish", &agreeing.called, &agreeing.caller, &wish]);
    let mut bytes = MAGIC.to_vec();
    bytes.extend_from_slice(&agreeing.caller);
    bytes.extend_from_slice(&(wish.len() as u32).to_le_bytes());
    bytes.extend_from_slice(&wish);
    bytes.extend_from_slice(&seal);
    stream.write_all(&bytes)?;
    let [is_welcome] = read(stream)?;
    let reason = read_long(stream)?;
    let seal: [u8; 32] = read(stream)?;
    if !key.knows(&[b"word", &agreeing.caller, &agreeing.called, &[is_welcome], &reason], &seal) {
        return Err(invalid("its key is another one: give both the same --stage-key"));
    }
    if is_welcome == 1 { Ok(()) } else { Err(invalid(&String::from_utf8_lossy(&reason))) }
}

/// Answers a caller: what it wants, if it knows the key.
///
/// # Errors
/// When the caller is no stage, or has another key; it is told so.
pub(super) fn answer(stream: &mut TcpStream, key: &StageKey) -> io::Result<(Agreeing, Wish)> {
    let called = nonce()?;
    let mut bytes = MAGIC.to_vec();
    bytes.extend_from_slice(&called);
    stream.write_all(&bytes)?;
    let magic: [u8; 16] = read(stream)?;
    if magic != *MAGIC {
        return Err(invalid("the caller is no stage of this version of kernmill"));
    }
    let agreeing = Agreeing { called, caller: read(stream)? };
    let wish = read_long(stream)?;
    let seal: [u8; 32] = read(stream)?;
    if !key.knows(&[b"wish", &agreeing.called, &agreeing.caller, &wish], &seal) {
        // With this side's key: the caller finds out that they differ.
        word(stream, key, &agreeing, Err("the keys differ"))?;
        return Err(invalid("the caller's key is another one: give both the same --stage-key"));
    }
    let wish = Wish::read(&wish).ok_or_else(|| invalid("the caller's wish is damaged"))?;
    Ok((agreeing, wish))
}

/// Gives the caller its answer.
pub(super) fn word(
    stream: &mut TcpStream,
    key: &StageKey,
    agreeing: &Agreeing,
    word: Result<(), &str>,
) -> io::Result<()> {
    let (is_welcome, reason) = match word {
        Ok(()) => (1, ""),
        Err(reason) => (0, reason),
    };
    let seal = key.seal(&[b"word", &agreeing.caller, &agreeing.called, &[is_welcome], reason.as_bytes()]);
    let mut bytes = vec![is_welcome];
    bytes.extend_from_slice(&(reason.len() as u32).to_le_bytes());
    bytes.extend_from_slice(reason.as_bytes());
    bytes.extend_from_slice(&seal);
    stream.write_all(&bytes)
}

fn invalid(what: &str) -> io::Error {
    io::Error::new(ErrorKind::InvalidData, what)
}

/// A number that nobody can foresee.
fn nonce() -> io::Result<[u8; 32]> {
    let mut bytes = [0; 32];
    File::open("/dev/urandom")?.read_exact(&mut bytes)?;
    Ok(bytes)
}

fn read<const N: usize>(stream: &mut TcpStream) -> io::Result<[u8; N]> {
    let mut bytes = [0; N];
    stream.read_exact(&mut bytes)?;
    Ok(bytes)
}

fn read_long(stream: &mut TcpStream) -> io::Result<Vec<u8>> {
    let length = u32::from_le_bytes(read(stream)?) as usize;
    if length > MOST {
        return Err(invalid("its answer is too long"));
    }
    let mut bytes = vec![0; length];
    stream.read_exact(&mut bytes)?;
    Ok(bytes)
}
