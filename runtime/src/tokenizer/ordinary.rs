//! Encoding texts of strangers: whatever is written in them is text.

use super::{Tokenizer, TokenizerError, check_bytes, contained};
use tokenizers::{AddedVocabulary, Model, ModelWrapper, OffsetType, PreTokenizer};

impl Tokenizer {
    /// Ids of a text in which nothing is a special token: `</s>` is four characters. Tokens that the
    /// tokenizer puts around a text are left out. Only what a vocabulary cannot spell becomes its token for
    /// the unknown.
    ///
    /// Between special tokens that a program itself puts, such as those of a chat, the texts of users are
    /// encoded so; otherwise they could end their turn and speak as somebody else.
    ///
    /// # Errors
    /// As [`Tokenizer::encode`]; also when the vocabulary has no other way to spell a special token's text.
    pub fn encode_ordinary(&self, text: &str) -> Result<Vec<u32>, TokenizerError> {
        check_bytes(text)?;
        let ids =
            contained(|| self.ordinary_ids(text)).map_err(|message| TokenizerError::Encode { message })?;
        self.check(ids)
    }

    fn ordinary_ids(&self, text: &str) -> Result<Vec<u32>, String> {
        let added = self.ordinary.get_or_init(|| {
            let mut added = self.inner.get_added_vocabulary().clone();
            added.set_encode_special_tokens(true);
            added
        });
        let mut pieces = added.extract_and_normalize(self.inner.get_normalizer(), text);
        if let Some(words) = self.inner.get_pre_tokenizer() {
            words.pre_tokenize(&mut pieces).map_err(|error| error.to_string())?;
        }
        let model = self.inner.get_model();
        pieces.tokenize(|piece| model.tokenize(piece.get())).map_err(|error| error.to_string())?;
        let encoding = pieces.into_encoding(None, 0, OffsetType::None).map_err(|error| error.to_string())?;
        let mut ids = Vec::with_capacity(encoding.get_ids().len());
        for id in encoding.get_ids() {
            self.push_ordinary(*id, added, &mut ids)?;
        }
        Ok(ids)
    }

    /// Appends an id that merging gave. Where that is a special token's, as with vocabularies that hold the
    /// whole word, its characters' ids.
    fn push_ordinary(&self, id: u32, added: &AddedVocabulary, ids: &mut Vec<u32>) -> Result<(), String> {
        let model = self.inner.get_model();
        let unknown = self.unknown_token();
        let is_special = |token: &str| added.is_special_token(token) && Some(token) != unknown.as_deref();
        let Some(special) = self.token(id).filter(|token| is_special(token)) else {
            ids.push(id);
            return Ok(());
        };
        for c in special.chars() {
            for token in model.tokenize(c.encode_utf8(&mut [0; 4])).map_err(|error| error.to_string())? {
                if is_special(&token.value) {
                    return Err(format!("the text `{special}` has no other form than the special token"));
                }
                ids.push(token.id);
            }
        }
        Ok(())
    }

    /// The token that stands for what a vocabulary cannot spell.
    fn unknown_token(&self) -> Option<String> {
        match self.inner.get_model() {
            ModelWrapper::BPE(bpe) => bpe.get_unk_token().clone(),
            ModelWrapper::WordPiece(pieces) => Some(pieces.unk_token.clone()),
            ModelWrapper::WordLevel(words) => Some(words.unk_token.clone()),
            ModelWrapper::Unigram(pieces) => pieces.id_to_token(self.unknown?),
        }
    }
}
