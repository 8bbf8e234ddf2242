//! How many of several independent events happen.

/// Probabilities of 0 to `n` of `n` independent events of probability `p`.
pub fn binomial(n: usize, p: f64) -> Vec<f64> {
    let mut shares = vec![0.0; n + 1];
    // From the most likely number outwards, where nothing can underflow; then the sum is made 1.
    let mode = (((n + 1) as f64 * p) as usize).min(n);
    shares[mode] = 1.0;
    for i in mode..n {
        shares[i + 1] = shares[i] * (n - i) as f64 / (i + 1) as f64 * p / (1.0 - p);
    }
    for i in (0..mode).rev() {
        shares[i] = shares[i + 1] * (i + 1) as f64 / (n - i) as f64 * (1.0 - p) / p;
    }
    let sum: f64 = shares.iter().sum();
    shares.iter().map(|share| share / sum).collect()
}

/// Numbers of rows that an expert can have, and how many experts have so many: every one is assumed to be as
/// likely as any other, so that its rows are binomially distributed.
pub fn expert_rows(experts: usize, top_k: usize, tokens: usize) -> impl Iterator<Item = (usize, f64)> {
    let likely = (top_k as f64 / experts as f64).min(1.0);
    let shares = binomial(tokens, likely).into_iter().enumerate().skip(1);
    shares.filter(|(_, share)| *share >= 1e-9).map(move |(rows, share)| (rows, share * experts as f64))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_shares_are_those_of_independent_events() {
        assert_eq!(binomial(2, 0.5), [0.25, 0.5, 0.25]);
        let shares = binomial(2048, 0.125);
        let mean: f64 = shares.iter().enumerate().map(|(rows, share)| rows as f64 * share).sum();
        assert!((mean - 256.0).abs() < 1e-6, "{mean}");
    }
}
