//! Most bytes of each kind of file or text from elsewhere. Published files are far below; what is above is
//! refused before it is parsed.

/// A model's `config.json` or `generation_config.json`.
pub const CONFIG_BYTES: u64 = 1 << 20;
/// A model's `tokenizer_config.json`, which repeats thousands of added tokens: the largest published ones
/// have 1.2 MB.
pub const TOKENIZER_CONFIG_BYTES: u64 = 8 << 20;
/// A chat template.
pub const TEMPLATE_BYTES: u64 = 1 << 20;
/// All chat templates of a model together.
pub const TEMPLATES_BYTES: u64 = 4 << 20;
/// The section of a plan with chat templates and the tokens that they name.
pub const PLAN_CHAT_BYTES: u64 = 5 << 20;
/// An adapter's `adapter_config.json`.
pub const ADAPTER_CONFIG_BYTES: u64 = 64 << 10;
/// The header of an adapter's safetensors file.
pub const ADAPTER_HEADER_BYTES: u64 = 4 << 20;
/// The header of a model's safetensors file: the published format's own limit.
pub const HEADER_BYTES: u64 = 100_000_000;
/// Regular expressions in an adapter's config that are more than plain names.
pub const ADAPTER_PATTERNS: usize = 64;
/// Adapters of an engine that are in memory or being loaded. Each has a mapping, of which a process may have
/// 65,530 by default.
pub const ADAPTERS: usize = 8192;
/// `tokenizer.json`: the largest published ones have 33 MB.
pub const TOKENIZER_BYTES: u64 = 64 << 20;
/// A part of `tokenizer.json` that lists components: its normalizer, pre-tokenizer, post-processor or
/// decoder.
pub const TOKENIZER_PART_BYTES: u64 = 1 << 20;
/// Components of such a part.
pub const TOKENIZER_COMPONENTS: usize = 16;
/// Regular expressions by which a tokenizer cuts a text into words.
pub const TOKENIZER_SPLITS: usize = 8;
/// Bytes of one of the regular expressions by which a tokenizer cuts a text into words.
pub const TOKENIZER_REGEX_BYTES: usize = 8 << 10;
/// Ids, and pieces, of a template that a tokenizer puts around a text.
pub const TOKENIZER_TEMPLATE_IDS: usize = 64;
/// A text to encode.
pub const PROMPT_BYTES: usize = 16 << 20;
/// `model.safetensors.index.json`.
pub const INDEX_BYTES: u64 = 32 << 20;
/// A model spec or fused-op spec.
pub const SPEC_BYTES: u64 = 4 << 20;
/// A description of a machine.
pub const MACHINE_BYTES: u64 = 1 << 20;
/// The metadata section of a plan.
pub const PLAN_METADATA_BYTES: u64 = 16 << 20;
/// Files that a GGUF model is split into.
pub const GGUF_PARTS: u64 = 1000;
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
