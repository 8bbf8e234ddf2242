//! Conversations and generated ids with the real vocabulary of GPT-OSS.

mod o200k;
mod parsing;
mod rendering;
mod templates;

use o200k::O200k;
use std::sync::LazyLock;

/// Loading the vocabulary takes a second.
static VOCABULARY: LazyLock<O200k> = LazyLock::new(O200k::new);

/// The first id past those of texts: special tokens, most of them reserved.
const SPECIAL: u32 = 199_998;
