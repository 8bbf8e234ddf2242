//! Types of tensors that files may have and that are not read.

/// Advice for weights in few bits.
const QUANTISE: &str = "take a file of the model in Q4_K_M or another type that is read, or quantise it so";
const INTERMEDIATE: &str = "runtimes use it for activations; quantise the model to another type";
const REPACKED: &str = "it is an older layout for one kind of CPU; take the Q4_0 or IQ4_NL file of the \
    model, which has the same values";
const NUMBERS: &str = "weights are expected in floating-point types of up to 32 bits, or in blocks";

/// Number, name, and what helps.
const REFUSED: [(u32, &str, &str); 23] = [
    (4, "Q4_2", QUANTISE),
    (5, "Q4_3", QUANTISE),
    (9, "Q8_1", INTERMEDIATE),
    (15, "Q8_K", INTERMEDIATE),
    (16, "IQ2_XXS", QUANTISE),
    (17, "IQ2_XS", QUANTISE),
    (18, "IQ3_XXS", QUANTISE),
    (19, "IQ1_S", QUANTISE),
    (21, "IQ3_S", QUANTISE),
    (22, "IQ2_S", QUANTISE),
    (24, "I8", NUMBERS),
    (25, "I16", NUMBERS),
    (26, "I32", NUMBERS),
    (27, "I64", NUMBERS),
    (28, "F64", NUMBERS),
    (29, "IQ1_M", QUANTISE),
    (31, "Q4_0_4_4", REPACKED),
    (32, "Q4_0_4_8", REPACKED),
    (33, "Q4_0_8_8", REPACKED),
    (36, "IQ4_NL_4_4", REPACKED),
    (37, "IQ4_NL_4_8", REPACKED),
    (38, "IQ4_NL_8_8", REPACKED),
    (41, "Q1_0", QUANTISE),
];

/// Name and advice of a type that is known and not read.
pub(crate) fn refused(number: u32) -> Option<(&'static str, &'static str)> {
    REFUSED.iter().find(|(n, ..)| *n == number).map(|&(_, name, help)| (name, help))
}
