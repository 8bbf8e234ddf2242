//! Messages of a connection once both sides have agreed: frames of a length, a kind and contents. All numbers
//! are little-endian.

use std::io::{self, ErrorKind, Read, Write};
use std::net::TcpStream;
use std::sync::Mutex;
use std::time::{Duration, Instant};

/// Says that a side is there.
pub(super) const ALIVE: u8 = 0;
/// A batch for the next stage.
pub(super) const STEP: u8 = 1;
/// The outcome of a batch.
pub(super) const ROWS: u8 = 2;
/// Why there is nothing more to come.
pub(super) const LOST: u8 = 3;

/// How often a side says that it is there.
pub(super) const PULSE: Duration = Duration::from_secs(1);
/// A side that says nothing for so long is taken for lost.
pub(super) const SILENCE: Duration = Duration::from_secs(5);
/// Bytes that are read at once.
const PIECE: usize = 1 << 16;
/// Bytes of a frame's length and kind.
const HEAD: usize = 5;

/// Frames as they come.
pub(super) struct Frames {
    stream: TcpStream,
    bytes: Vec<u8>,
    /// Bytes of a frame's contents at most.
    most: usize,
}

impl Frames {
    pub(super) fn new(stream: TcpStream, most: usize) -> Frames {
        Frames { stream, bytes: Vec::new(), most }
    }

    /// The next frame's kind and contents; `None` when the time for reading has passed before it was there.
    pub(super) fn next(&mut self) -> io::Result<Option<(u8, Vec<u8>)>> {
        loop {
            if let Some(head) = self.bytes.first_chunk::<HEAD>() {
                let length = u32::from_le_bytes([head[0], head[1], head[2], head[3]]) as usize;
                if length > self.most {
                    let what = format!("a frame of {length} bytes, expected at most {}", self.most);
                    return Err(io::Error::new(ErrorKind::InvalidData, what));
                }
                if self.bytes.len() >= HEAD + length {
                    let rest = self.bytes.split_off(HEAD + length);
                    let mut frame = std::mem::replace(&mut self.bytes, rest);
                    let kind = frame[HEAD - 1];
                    frame.drain(..HEAD);
                    return Ok(Some((kind, frame)));
                }
            }
            let had = self.bytes.len();
            self.bytes.resize(had + PIECE, 0);
            let read = self.stream.read(&mut self.bytes[had..]);
            self.bytes.truncate(had + read.as_ref().copied().unwrap_or(0));
            match read {
                Ok(0) => return Err(io::Error::new(ErrorKind::UnexpectedEof, "the other side has ended")),
                Ok(_) => {}
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {
                    return Ok(None);
                }
                Err(error) => return Err(error),
            }
        }
    }
}

/// Reads frames and says all the while that this side is there, until `take` has a reason to end, or the
/// other side is silent for too long; the reason.
pub(super) fn attend(
    frames: &mut Frames,
    writer: &Mutex<TcpStream>,
    mut take: impl FnMut(u8, Vec<u8>) -> Option<String>,
) -> io::Result<String> {
    let (mut heard, mut said) = (Instant::now(), Instant::now());
    loop {
        if said.elapsed() >= PULSE {
            // The holder of the lock is sending something.
            if let Ok(mut writer) = writer.try_lock() {
                send(&mut writer, ALIVE, &[])?;
            }
            said = Instant::now();
        }
        match frames.next()? {
            Some((kind, contents)) => {
                heard = Instant::now();
                if kind != ALIVE
                    && let Some(why) = take(kind, contents)
                {
                    return Ok(why);
                }
            }
            None if heard.elapsed() >= SILENCE => {
                return Ok(format!("it has said nothing for {} s", SILENCE.as_secs()));
            }
            None => {}
        }
    }
}

/// Sends a frame whose contents are `parts`, one behind the other.
pub(super) fn send(stream: &mut TcpStream, kind: u8, parts: &[&[u8]]) -> io::Result<()> {
    let length: usize = parts.iter().map(|part| part.len()).sum();
    let length = u32::try_from(length).map_err(|_| io::Error::other("a frame of more than 4 GB"))?;
    let mut head = [0; HEAD];
    head[..4].copy_from_slice(&length.to_le_bytes());
    head[4] = kind;
    // One packet where it fits into one.
    let mut bytes = Vec::with_capacity(HEAD + length as usize);
    bytes.extend_from_slice(&head);
    parts.iter().for_each(|part| bytes.extend_from_slice(part));
    stream.write_all(&bytes)
}

/// Entries of a block table that are new to the other side.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Update {
    /// [`LayerKind::index`](kernmill_plan::kv::LayerKind::index).
    pub kind: u32,
    /// Index of the first entry.
    pub at: u32,
    pub ids: Vec<u32>,
}

/// A batch on its way, without its rows.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct BatchHeader {
    /// Blocks that are copied before: kind of layers, from, to.
    pub copies: Vec<[u32; 3]>,
    pub updates: Vec<Update>,
    /// Ids of the tokens. The layers of most models do not look at them.
    pub tokens: Vec<u32>,
    /// By token.
    pub positions: Vec<u32>,
    /// By token: the slot of its sequence.
    pub sequences: Vec<u32>,
    /// Rows whose logits are wanted, ascending.
    pub wanted: Vec<u32>,
}

impl BatchHeader {
    /// Bytes of the largest one for so many tokens, table entries and bytes of rows.
    pub(super) fn most_bytes(tokens: usize, entries: usize, token_bytes: usize) -> usize {
        // A token wants at most one copy, and entries come in runs of one at worst.
        16 + tokens * (4 * 4 + 2 * 12 + token_bytes) + entries * 16
    }

    pub(super) fn write(&self, to: &mut Vec<u8>) {
        let mut put = |n: usize| to.extend_from_slice(&(n as u32).to_le_bytes());
        put(self.positions.len());
        put(self.wanted.len());
        put(self.copies.len());
        put(self.updates.len());
        let mut all = |numbers: &[u32]| numbers.iter().for_each(|n| to.extend_from_slice(&n.to_le_bytes()));
        self.copies.iter().for_each(|copy| all(copy));
        for update in &self.updates {
            all(&[update.kind, update.at, update.ids.len() as u32]);
            all(&update.ids);
        }
        all(&self.tokens);
        all(&self.positions);
        all(&self.sequences);
        all(&self.wanted);
    }

    /// Reads an order; the bytes behind it, which are the rows.
    pub(super) fn read(bytes: &[u8]) -> Option<(BatchHeader, &[u8])> {
        let mut rest = NumberReader(bytes);
        let [tokens, wanted, copies, updates] = rest.fixed()?.map(|n| n as usize);
        // The bytes that a count promises must be there before memory is taken for it.
        let mut order = BatchHeader::default();
        for _ in 0..copies {
            order.copies.push(rest.fixed()?);
        }
        for _ in 0..updates {
            let [kind, at, count] = rest.fixed()?;
            order.updates.push(Update { kind, at, ids: rest.list(count as usize)? });
        }
        order.tokens = rest.list(tokens)?;
        order.positions = rest.list(tokens)?;
        order.sequences = rest.list(tokens)?;
        order.wanted = rest.list(wanted)?;
        Some((order, rest.0))
    }
}

/// Numbers that are taken off the front of some bytes.
pub(super) struct NumberReader<'a>(pub &'a [u8]);

impl<'a> NumberReader<'a> {
    pub(super) fn bytes<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (first, rest) = self.0.split_first_chunk::<N>()?;
        self.0 = rest;
        Some(*first)
    }

    pub(super) fn fixed<const N: usize>(&mut self) -> Option<[u32; N]> {
        let mut numbers = [0; N];
        for number in &mut numbers {
            *number = u32::from_le_bytes(self.bytes()?);
        }
        Some(numbers)
    }

    pub(super) fn list(&mut self, count: usize) -> Option<Vec<u32>> {
        let (own, rest) = self.0.split_at_checked(count.checked_mul(4)?)?;
        self.0 = rest;
        let number = |bytes: &[u8]| u32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]);
        Some(own.chunks_exact(4).map(number).collect())
    }
}
