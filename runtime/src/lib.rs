//! kernmill's runtime: runs a program over a batch of tokens, keeps the KV cache, samples.
