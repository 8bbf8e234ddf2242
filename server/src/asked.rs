//! A request for a text that was read, whatever API it came by.

/// A request to a model, and the facts that its answer needs besides.
pub struct Asked<T, S = ()> {
    /// The request itself.
    pub ask: T,
    /// The parts that the answer shows, where the API lets a client choose them.
    pub shows: S,
    /// Name of the model or adapter, as the answer repeats it.
    pub model: String,
    /// Whether the answer comes in pieces.
    pub streams: bool,
    /// Names of fields that mean nothing here.
    pub unknown: Vec<String>,
}
