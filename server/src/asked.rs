//! A request for a text that was read, whatever API it came by.

/// What is asked of a model, and what its answer needs besides.
pub struct Asked<T, S = ()> {
    /// What is asked of the model.
    pub ask: T,
    /// What the answer shows, where its API can be told.
    pub shows: S,
    /// Name of the model or adapter, as the answer repeats it.
    pub model: String,
    /// Whether the answer comes in pieces.
    pub streams: bool,
    /// Names of fields that mean nothing here.
    pub unknown: Vec<String>,
}
