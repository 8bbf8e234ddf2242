//! kernmill's base: magic, bytes of the head, the head as JSON, the windows' tokens, and a record for each
//! measured token: two f64, the next token's logit, and the top and the drawn tokens with their logits. All
//! numbers are little-endian.

use super::{Base, BaseForm, MOST_CONTEXT, MOST_VOCAB, bytes, check_length, check_tokens, number, numbers};
use crate::distance::{DRAWN, Known, TOP, TopRecord};
use crate::texts::Window;
use serde_json::{Value, json};
use std::io::{self, Read, Write};

pub const MAGIC: &[u8; 8] = b"KMBASE01";
/// Bytes of a head at most.
const MOST_HEAD: u32 = 1 << 26;

/// Bytes of a record.
pub fn record_bytes(vocab: usize) -> usize {
    20 + 8 * (TOP.min(vocab) + if vocab > TOP { DRAWN } else { 0 })
}

pub fn read<R: Read>(mut reader: R, length: u64) -> Result<Base<R>, String> {
    let head_bytes = number(&mut reader)?;
    if head_bytes > MOST_HEAD || u64::from(head_bytes) + 12 > length {
        return Err(format!("the base's head has {head_bytes} bytes, expected less than the file"));
    }
    let wrong = |what: &str| format!("the base's head is damaged: {what}");
    let head: Value = serde_json::from_slice(&bytes(&mut reader, head_bytes as usize)?)
        .map_err(|error| wrong(&error.to_string()))?;
    let vocab = head["vocab"].as_u64().filter(|vocab| (1..=u64::from(MOST_VOCAB)).contains(vocab));
    let vocab = vocab.ok_or_else(|| wrong("expected a \"vocab\""))? as u32;
    let model = head["model"].as_str().ok_or_else(|| wrong("expected a \"model\""))?.to_owned();
    let listed = head["windows"].as_array().ok_or_else(|| wrong("expected \"windows\""))?;
    let window = |window: &Value| -> Option<(usize, Window)> {
        let at = |at: usize| window[at].as_u64().filter(|number| *number <= u64::from(MOST_CONTEXT) << 4);
        let (tokens, from) = (at(0)? as usize, at(1)? as usize);
        let bytes = window[3].as_f64().filter(|bytes| bytes.is_finite() && *bytes >= 0.0)?;
        let fits = tokens <= MOST_CONTEXT as usize && from >= 1 && from < tokens;
        fits.then_some((tokens, Window { ids: Vec::new(), from, bytes, document: at(2)? as usize }))
    };
    let sizes: Option<Vec<_>> = listed.iter().map(window).collect();
    let sizes = sizes.ok_or_else(|| wrong("expected windows of tokens, first one, document, bytes"))?;
    let all = sizes.iter().map(|(tokens, window)| {
        *tokens as u64 * 4 + (tokens - window.from) as u64 * record_bytes(vocab as usize) as u64
    });
    check_length(length, all.into_iter().try_fold(12 + u64::from(head_bytes), u64::checked_add))?;
    let mut windows = Vec::with_capacity(sizes.len());
    for (tokens, window) in sizes {
        let ids: Vec<u32> = numbers(&bytes(&mut reader, tokens * 4)?).collect();
        check_tokens(&ids, vocab)?;
        windows.push(Window { ids, ..window });
    }
    Ok(Base { windows, vocab: vocab as usize, model, takes_start: false, form: BaseForm::Own, reader })
}

pub fn record<R: Read>(reader: &mut R, vocab: usize) -> Result<Known, String> {
    let bytes = bytes(reader, record_bytes(vocab))?;
    let wide = |at: usize| {
        let eight = numbers(&bytes[at..at + 8])
            .fold((0, 0), |(bits, shift), four| (bits | u64::from(four) << shift, shift + 32));
        f64::from_bits(eight.0)
    };
    let four: Vec<u32> = numbers(&bytes[16..]).collect();
    let pairs = four[1..].chunks_exact(2).map(|pair| (pair[0], f32::from_bits(pair[1])));
    let mut top: Vec<(u32, f32)> = pairs.collect();
    check_tokens(&top.iter().map(|(id, _)| *id).collect::<Vec<_>>(), vocab as u32)?;
    let mut drawn = top.split_off(TOP.min(vocab));
    let (log_sum, log_rest) = (wide(0), wide(8));
    if log_rest == f64::NEG_INFINITY {
        drawn.clear();
    }
    let record = TopRecord { log_sum, log_rest, next: f32::from_bits(four[0]), top, drawn };
    if !record.log_sum.is_finite() || record.log_rest.is_nan() || record.log_rest > record.log_sum {
        return Err(format!(
            "the base has sums {} and {} of all and the rest",
            record.log_sum, record.log_rest
        ));
    }
    Ok(Known::Top(record))
}

/// Writes a base.
pub struct Writer<W> {
    out: W,
    vocab: usize,
}

impl<W: Write> Writer<W> {
    /// Writes head and windows.
    ///
    /// # Errors
    /// When the writer fails.
    pub fn new(
        mut out: W,
        model: &str,
        identity: &str,
        vocab: usize,
        windows: &[Window],
    ) -> io::Result<Writer<W>> {
        let listed: Vec<Value> = windows
            .iter()
            .map(|window| json!([window.ids.len(), window.from, window.document, window.bytes]))
            .collect();
        let head =
            json!({ "model": model, "identity": identity, "vocab": vocab, "windows": listed }).to_string();
        out.write_all(MAGIC)?;
        out.write_all(&(head.len() as u32).to_le_bytes())?;
        out.write_all(head.as_bytes())?;
        for id in windows.iter().flat_map(|window| &window.ids) {
            out.write_all(&id.to_le_bytes())?;
        }
        Ok(Writer { out, vocab })
    }

    /// Writes the record of the next measured token.
    ///
    /// # Errors
    /// When the writer fails.
    pub fn record(&mut self, record: &TopRecord) -> io::Result<()> {
        let mut bytes = [record.log_sum.to_le_bytes(), record.log_rest.to_le_bytes()].concat();
        bytes.extend(record.next.to_le_bytes());
        for (id, logit) in record.top.iter().chain(&record.drawn) {
            bytes.extend(id.to_le_bytes());
            bytes.extend(logit.to_le_bytes());
        }
        bytes.resize(record_bytes(self.vocab), 0);
        self.out.write_all(&bytes)
    }

    /// Flushes what was written, and returns the writer.
    ///
    /// # Errors
    /// When the writer fails.
    pub fn finish(mut self) -> io::Result<W> {
        self.out.flush()?;
        Ok(self.out)
    }
}

#[cfg(test)]
mod tests {
    use super::super::read;
    use super::{Known, TopRecord, Window, Writer};

    fn windows() -> Vec<Window> {
        let window = |ids: &[u32], from, document| Window { ids: ids.to_vec(), from, bytes: 2.5, document };
        vec![window(&[0, 1, 2], 1, 0), window(&[2, 1, 1, 0], 3, 1)]
    }

    fn file() -> (Vec<u8>, Vec<TopRecord>) {
        let rows = [[0.5, 1.0, -2.0], [3.0, 3.0, 1.0], [0.0, f32::NEG_INFINITY, 0.25]];
        let records: Vec<TopRecord> = rows.iter().map(|row| TopRecord::of(row, 1)).collect();
        let mut writer = Writer::new(Vec::new(), "m", "00ff", 3, &windows()).unwrap();
        records.iter().for_each(|record| writer.record(record).unwrap());
        (writer.finish().unwrap(), records)
    }

    #[test]
    fn a_base_is_read_as_it_was_written() {
        let (file, records) = file();
        let mut base = read(&file[..], file.len() as u64).unwrap().unwrap();
        assert_eq!((base.windows.clone(), base.vocab, base.model.as_str()), (windows(), 3, "m"));
        for record in records {
            assert_eq!(base.next_known(), Ok(Known::Top(record)));
        }
        assert!(base.next_known().is_err());
        assert!(read(&b"GGUF...."[..], 8).unwrap().is_none() && read(&b"KM"[..], 2).unwrap().is_none());
    }

    #[test]
    fn damage_is_refused_and_never_believed() {
        let (file, _) = file();
        let refused = |file: &[u8]| read(file, file.len() as u64).err().expect("an error");
        assert!(refused(&file[..file.len() - 1]).contains("it is cut or damaged"));
        assert!(refused(&file[..11]).starts_with("the base ends early"));
        assert!(refused(&[&file[..8], &[255; 4], &file[12..]].concat()).starts_with("the base's head has"));
        // Whatever a byte becomes, reading ends with a message or with records.
        for at in 8..file.len() {
            for byte in [0, 1, 0x7f, 0xff] {
                let mut damaged = file.clone();
                damaged[at] = byte;
                if let Ok(Some(mut base)) = read(&damaged[..], file.len() as u64) {
                    let rows: usize = base.windows.iter().map(|window| window.measured().len()).sum();
                    assert!((0..=rows).map(|_| base.next_known()).any(|record| record.is_err()), "byte {at}");
                }
            }
        }
    }
}
