//! Python's random numbers, by which lm-eval draws its examples.

/// Words of the state.
const N: usize = 624;
const M: usize = 397;

/// `random.Random` with a seed: a Mersenne Twister.
pub struct PythonRandom {
    state: [u32; N],
    at: usize,
}

impl PythonRandom {
    /// `random.Random(seed)`.
    pub fn new(seed: u32) -> PythonRandom {
        let mut state = [19_650_218_u32; N];
        let mixed = |before: u32, by: u32| (before ^ (before >> 30)).wrapping_mul(by);
        for at in 1..N {
            state[at] = mixed(state[at - 1], 1_812_433_253).wrapping_add(at as u32);
        }
        // The key is one word, the seed.
        let mut at = 1;
        for _ in 0..N {
            state[at] = (state[at] ^ mixed(state[at - 1], 1_664_525)).wrapping_add(seed);
            at += 1;
            if at == N {
                state[0] = state[N - 1];
                at = 1;
            }
        }
        for _ in 0..N - 1 {
            state[at] = (state[at] ^ mixed(state[at - 1], 1_566_083_941)).wrapping_sub(at as u32);
            at += 1;
            if at == N {
                state[0] = state[N - 1];
                at = 1;
            }
        }
        state[0] = 0x8000_0000;
        PythonRandom { state, at: N }
    }

    fn word(&mut self) -> u32 {
        if self.at == N {
            for at in 0..N {
                let both = (self.state[at] & 0x8000_0000) | (self.state[(at + 1) % N] & 0x7fff_ffff);
                let odd = if both & 1 == 1 { 0x9908_b0df } else { 0 };
                self.state[at] = self.state[(at + M) % N] ^ (both >> 1) ^ odd;
            }
            self.at = 0;
        }
        let mut word = self.state[self.at];
        self.at += 1;
        word ^= word >> 11;
        word ^= (word << 7) & 0x9d2c_5680;
        word ^= (word << 15) & 0xefc6_0000;
        word ^ (word >> 18)
    }

    /// A number below `n`, which is at least 1.
    fn below(&mut self, n: usize) -> usize {
        let bits = (usize::BITS - n.leading_zeros()).min(32);
        loop {
            let found = (self.word() >> (32 - bits)) as usize;
            if found < n {
                return found;
            }
        }
    }

    /// `sample(range(n), k)`; `k` is at most `n`, and `n` below 2^32.
    pub fn sample(&mut self, n: usize, k: usize) -> Vec<usize> {
        // Python keeps a list of all below this size, and a set of those drawn above.
        let mut set_size = 21;
        if k > 5 {
            let mut power = 1;
            while power < k * 3 {
                power *= 4;
            }
            set_size += power;
        }
        let mut found = Vec::with_capacity(k);
        if n <= set_size {
            let mut pool: Vec<usize> = (0..n).collect();
            for drawn in 0..k.min(n) {
                let at = self.below(n - drawn);
                found.push(pool[at]);
                pool[at] = pool[n - drawn - 1];
            }
        } else {
            for _ in 0..k {
                let mut at = self.below(n);
                while found.contains(&at) {
                    at = self.below(n);
                }
                found.push(at);
            }
        }
        found
    }
}

#[cfg(test)]
mod tests {
    use super::PythonRandom;

    #[test]
    fn samples_are_those_of_python() {
        // CPython 3.11: r = random.Random(1234); r.sample(range(7473), 5), and so on.
        let mut random = PythonRandom::new(1234);
        let found = [(7473, 5), (7473, 5), (10, 3), (21, 5), (86, 9), (84, 9), (5, 5)]
            .map(|(n, k)| random.sample(n, k));
        let expected: [&[usize]; 7] = [
            &[6374, 3610, 957, 61, 742],
            &[7462, 6610, 4769, 286, 5501],
            &[1, 9, 5],
            &[7, 0, 19, 18, 11],
            &[82, 79, 61, 78, 59, 19, 11, 23, 14],
            &[1, 64, 62, 31, 8, 69, 59, 79, 11],
            &[4, 0, 1, 3, 2],
        ];
        assert_eq!(found, expected);
        assert_eq!(PythonRandom::new(0).sample(100, 5), [49, 97, 53, 5, 33]);
    }
}
