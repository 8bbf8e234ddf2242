//! Conversations and generated ids with the real vocabulary of GPT-OSS.

mod bounds;
mod cuts;
mod families;
#[path = "../../../constrain/tests/constrain/follow.rs"]
mod follow;
#[path = "../../../constrain/tests/constrain/o200k.rs"]
mod o200k;
mod parsing;
#[path = "../../../constrain/tests/constrain/random.rs"]
mod random;
mod rendering;
mod takes;
mod templates;
mod texts;
mod turns;

use o200k::O200k;
use std::sync::LazyLock;

/// Loading the vocabulary takes a second.
static VOCABULARY: LazyLock<O200k> = LazyLock::new(O200k::new);

/// The first id past those of texts: special tokens, most of them reserved.
const SPECIAL: u32 = 199_998;
