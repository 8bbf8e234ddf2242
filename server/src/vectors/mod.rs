//! Vectors of texts, and scores of documents: OpenAI's, Jina's, Cohere's, vLLM's and Ollama's routes for
//! them.

mod asking;
mod embeddings;
mod ollama;
mod scores;

pub use embeddings::{EMBEDDINGS, Embeddings, embeddings};
pub use ollama::{EMBED, OLDER, embed, older};
pub use scores::{RERANK, SCORE, rerank, score};
