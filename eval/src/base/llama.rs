//! The base that llama.cpp's `llama-perplexity --kl-divergence-base` writes: magic, tokens of a window,
//! vocabulary, windows, all tokens. Then for each token of the second halves but the last one: a scale and a
//! least logarithm (f32), and a code of 16 bits for each token of the vocabulary, up to an even count.

use super::{Base, BaseForm, MOST_CONTEXT, MOST_VOCAB, bytes, check_length, check_tokens, number, numbers};
use crate::distance::Known;
use crate::texts::Window;
use std::io::Read;

pub const MAGIC: &[u8; 8] = b"_logits_";

/// Bytes of a record.
fn record_bytes(vocab: usize) -> usize {
    8 + vocab.next_multiple_of(2) * 2
}

pub fn read<R: Read>(mut reader: R, length: u64) -> Result<Base<R>, String> {
    let [context, vocab, windows] = [number(&mut reader)?, number(&mut reader)?, number(&mut reader)?];
    for (what, found, least, most) in
        [("tokens of a window", context, 4, MOST_CONTEXT), ("vocabulary", vocab, 1, MOST_VOCAB)]
    {
        if !(least..=most).contains(&found) {
            return Err(format!("the base's {what} is {found}, expected {least} to {most}"));
        }
    }
    let from = context as usize / 2 + 1;
    let rows = u64::from(context) - from as u64;
    let of_window = u64::from(context) * 4 + rows * record_bytes(vocab as usize) as u64;
    check_length(length, of_window.checked_mul(u64::from(windows)).and_then(|all| all.checked_add(20)))?;
    let mut found = Vec::new();
    for document in 0..windows as usize {
        let ids: Vec<u32> = numbers(&bytes(&mut reader, context as usize * 4)?).collect();
        check_tokens(&ids, vocab)?;
        found.push(Window { ids, from, bytes: 0.0, document });
    }
    let form = BaseForm::Llama;
    let model = "llama.cpp's base".to_owned();
    Ok(Base { windows: found, vocab: vocab as usize, model, takes_start: true, form, reader })
}

pub fn record<R: Read>(reader: &mut R, vocab: usize) -> Result<Known, String> {
    let bytes = bytes(reader, record_bytes(vocab))?;
    let mut head = numbers(&bytes[..8]).map(f32::from_bits);
    let (scale, least) = (head.next().unwrap_or(f32::NAN), head.next().unwrap_or(f32::NAN));
    if !(scale.is_finite() && scale >= 0.0 && least.is_finite()) {
        return Err(format!("the base has scale {scale} and least logarithm {least}, expected numbers"));
    }
    let codes = bytes[8..].chunks_exact(2).take(vocab).map(|two| u16::from_le_bytes([two[0], two[1]]));
    Ok(Known::Coded { scale, least, codes: codes.collect() })
}

#[cfg(test)]
mod tests {
    use super::super::read;
    use crate::distance::Known;

    /// Two windows of 6 tokens, of a vocabulary of 3.
    fn base() -> Vec<u8> {
        let mut file = b"_logits_".to_vec();
        for number in [6u32, 3, 2, 0, 1, 2, 0, 1, 2, 2, 2, 1, 1, 0, 0] {
            file.extend(number.to_le_bytes());
        }
        for row in 0..4u16 {
            file.extend(0.5f32.to_le_bytes());
            file.extend((-4f32).to_le_bytes());
            [row, 5, 7, 0].iter().for_each(|code| file.extend(code.to_le_bytes()));
        }
        file
    }

    #[test]
    fn a_base_of_llama_cpp_is_read() {
        let file = base();
        let mut base = read(&file[..], file.len() as u64).unwrap().unwrap();
        assert_eq!((base.windows.len(), base.vocab, base.windows[1].from), (2, 3, 4));
        assert_eq!(base.windows[1].ids, [2, 2, 1, 1, 0, 0]);
        for row in 0..4 {
            let codes = vec![row, 5, 7];
            assert_eq!(base.next_known(), Ok(Known::Coded { scale: 0.5, least: -4.0, codes }));
        }
        assert!(base.next_known().unwrap_err().starts_with("the base ends early"));
    }

    #[test]
    fn damaged_bases_are_refused() {
        let refused = |file: &[u8]| read(file, file.len() as u64).err().expect("an error");
        let file = base();
        assert!(refused(&file[..file.len() - 1]).contains("it is cut or damaged"));
        assert!(refused(&file[..15]).starts_with("the base ends early"));
        let with = |at: usize, number: u32| {
            let mut file = base();
            file[at..at + 4].copy_from_slice(&number.to_le_bytes());
            refused(&file)
        };
        assert_eq!(with(8, 3), "the base's tokens of a window is 3, expected 4 to 1048576");
        assert_eq!(with(12, 1 << 30), "the base's vocabulary is 1073741824, expected 1 to 4194304");
        assert!(with(16, u32::MAX).contains("it is cut or damaged"));
        assert_eq!(with(24, 3), "the base has token 3, expected less than 3, its vocabulary");
    }
}
