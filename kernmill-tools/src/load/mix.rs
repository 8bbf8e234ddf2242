//! The mix of requests: lengths, beginnings in common, turns of conversations, adapters and tenants, drawn
//! from a seed.

use super::conversation::{ConversationRequest, LoadConversation};
use fastrand::Rng;
use std::fmt;
use std::str::FromStr;
use std::time::Duration;

/// How long something is, in tokens (or turns).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Length {
    /// Always so long.
    Fixed(u32),
    /// Every length from the first to the second is as likely as any other.
    Uniform(u32, u32),
    /// Exponentially distributed with this mean, from 1 to eight times the mean.
    Around(u32),
}

/// The mix of requests.
#[derive(Clone, Debug, PartialEq)]
pub struct Mix {
    /// Tokens of what is new in a turn: of the whole prompt in the first.
    pub prompt: Length,
    /// Tokens of an answer.
    pub answer: Length,
    /// Turns of a conversation: each one's prompt is all that was said before, and something new.
    pub turns: Length,
    /// The part of a first prompt that is a beginning which all conversations share, 0 to 1.
    pub prefix: f64,
    /// Seconds between an answer and the next turn, in the mean.
    pub think: f64,
    /// Exponent of the Zipf distribution over adapters: 0 makes all as likely, 1 the first twice as likely as
    /// the second.
    pub zipf: f64,
    /// Tenants, among which conversations are spread evenly.
    pub tenants: u32,
    /// Seed of all that is drawn.
    pub seed: u64,
}

impl Default for Mix {
    fn default() -> Mix {
        Mix {
            prompt: Length::Uniform(32, 160),
            answer: Length::Uniform(8, 32),
            turns: Length::Fixed(1),
            prefix: 0.25,
            think: 0.0,
            zipf: 1.0,
            tenants: 4,
            seed: 0,
        }
    }
}

/// The notation of a [`Mix`].
const EXPECTED: &str =
    "expected parts such as prompt=64-192,answer=~32,turns=4,prefix=0.5,think=2,zipf=1,tenants=4,seed=7";

impl Length {
    fn draw(self, random: &mut Rng) -> u32 {
        match self {
            Length::Fixed(length) => length,
            Length::Uniform(least, most) => random.u32(least..=most),
            Length::Around(mean) => {
                (exponential(random, f64::from(mean)).round() as u32).clamp(1, self.most())
            }
        }
    }

    fn most(self) -> u32 {
        match self {
            Length::Fixed(length) | Length::Uniform(_, length) => length,
            Length::Around(mean) => mean.saturating_mul(8),
        }
    }
}

/// A number from an exponential distribution.
pub(super) fn exponential(random: &mut Rng, mean: f64) -> f64 {
    -mean * (1.0 - random.f64()).ln()
}

impl FromStr for Length {
    type Err = String;

    fn from_str(text: &str) -> Result<Length, String> {
        let number = |text: &str| text.parse::<u32>().ok().filter(|number| *number > 0);
        let length = if let Some(mean) = text.strip_prefix('~') {
            number(mean).map(Length::Around)
        } else if let Some((least, most)) = text.split_once('-') {
            let range = number(least).zip(number(most)).filter(|(least, most)| least <= most);
            range.map(|(least, most)| Length::Uniform(least, most))
        } else {
            number(text).map(Length::Fixed)
        };
        length.ok_or_else(|| {
            format!("`{text}` is no length: expected 64, 32-128 (evenly spread) or ~64 (around it)")
        })
    }
}

impl fmt::Display for Length {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Length::Fixed(length) => write!(f, "{length}"),
            Length::Uniform(least, most) => write!(f, "{least}-{most}"),
            Length::Around(mean) => write!(f, "~{mean}"),
        }
    }
}

impl FromStr for Mix {
    type Err = String;

    fn from_str(text: &str) -> Result<Mix, String> {
        let mut mix = Mix::default();
        for part in text.split(',').filter(|part| !part.is_empty()) {
            let (name, value) = part.split_once('=').ok_or_else(|| format!("`{part}`: {EXPECTED}"))?;
            let number = |most: f64| {
                let number = value.parse::<f64>().ok().filter(|number| (0.0..=most).contains(number));
                number.ok_or_else(|| format!("`{part}`: expected a number from 0 to {most}"))
            };
            match name {
                "prompt" => mix.prompt = value.parse()?,
                "answer" => mix.answer = value.parse()?,
                "turns" => mix.turns = value.parse()?,
                "prefix" => mix.prefix = number(1.0)?,
                "think" => mix.think = number(1e6)?,
                "zipf" => mix.zipf = number(10.0)?,
                "tenants" => mix.tenants = number(1e6)?.max(1.0) as u32,
                "seed" => {
                    mix.seed = value.parse().map_err(|_| format!("`{part}`: expected a whole number"))?
                }
                _ => return Err(format!("`{name}` is unknown: {EXPECTED}")),
            }
        }
        Ok(mix)
    }
}

impl fmt::Display for Mix {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Mix { prompt, answer, turns, prefix, think, zipf, tenants, seed } = self;
        write!(
            f,
            "prompt={prompt},answer={answer},turns={turns},prefix={prefix},think={think},zipf={zipf},\
             tenants={tenants},seed={seed}"
        )
    }
}

impl Mix {
    /// Conversations with `requests` turns in all, whose ids are below `vocab`, and each of which fits a
    /// context of `longest` tokens: turns that would not are left for the next conversation. The same seed
    /// gives the same conversations.
    pub fn conversations(
        &self,
        requests: u32,
        vocab: u32,
        longest: u32,
        adapters: &[String],
    ) -> Vec<LoadConversation> {
        let mut random = Rng::with_seed(self.seed);
        let common = ids(&mut random, self.prompt.most().min(longest), vocab);
        let weights: Vec<f64> = (1..=adapters.len()).map(|rank| (rank as f64).powf(-self.zipf)).collect();
        let mut conversations = Vec::new();
        let mut left = requests;
        while left > 0 {
            let adapter = pick(&mut random, &weights).map(|at| adapters[at].clone());
            let tenant = 1 + u64::from(random.u32(0..self.tenants));
            let mut turns: Vec<ConversationRequest> = Vec::new();
            let mut room = longest;
            for _ in 0..self.turns.draw(&mut random).min(left) {
                // The first turn always fits: it is cut.
                let answer = self.answer.draw(&mut random).min(longest / 2).max(1);
                let length = self.prompt.draw(&mut random).min(longest.saturating_sub(answer)).max(1);
                if length + answer > room && !turns.is_empty() {
                    break;
                }
                room = room.saturating_sub(length + answer);
                let shared =
                    if turns.is_empty() { (f64::from(length) * self.prefix).round() as usize } else { 0 };
                let mut new = common[..shared.min(common.len())].to_vec();
                new.extend(ids(&mut random, length - new.len() as u32, vocab));
                let pause = if turns.is_empty() { 0.0 } else { exponential(&mut random, self.think) };
                turns.push(ConversationRequest {
                    at: Duration::ZERO,
                    pause: Duration::from_secs_f64(pause),
                    new,
                    answer,
                });
            }
            left -= turns.len() as u32;
            conversations.push(LoadConversation { tenant, adapter, turns });
        }
        conversations
    }
}

fn ids(random: &mut Rng, count: u32, vocab: u32) -> Vec<u32> {
    (0..count).map(|_| random.u32(0..vocab)).collect()
}

/// An index, as likely as its weight says; `None` without weights.
fn pick(random: &mut Rng, weights: &[f64]) -> Option<usize> {
    let mut at = random.f64() * weights.iter().sum::<f64>();
    for (index, weight) in weights.iter().enumerate() {
        at -= weight;
        if at < 0.0 {
            return Some(index);
        }
    }
    weights.len().checked_sub(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mix_is_read_as_it_is_written() {
        let text = "prompt=~100,answer=3-9,turns=5,prefix=0.5,think=1.5,zipf=0.9,tenants=2,seed=18446744073709551615";
        let mix: Mix = text.parse().unwrap();
        assert_eq!(mix.to_string(), text);
        assert_eq!("".parse(), Ok(Mix::default()));
        assert_eq!("seed=7".parse(), Ok(Mix { seed: 7, ..Mix::default() }));
        for (text, says) in [
            ("prompt", "expected parts such as"),
            ("promt=3", "`promt` is unknown"),
            ("prompt=0", "`0` is no length"),
            ("answer=9-3", "`9-3` is no length"),
            ("turns=~", "`~` is no length"),
            ("prefix=1.5", "from 0 to 1"),
            ("zipf=-1", "from 0 to 10"),
            ("think=nan", "from 0 to"),
            ("seed=x", "a whole number"),
        ] {
            let error = text.parse::<Mix>().unwrap_err();
            assert!(error.contains(says), "{text}: {error}");
        }
    }

    #[test]
    fn the_same_seed_gives_the_same_load() {
        let mix: Mix = "turns=1-4,seed=3".parse().unwrap();
        let adapters = ["a".to_owned(), "b".to_owned()];
        let of = |mix: &Mix| mix.conversations(50, 100, 512, &adapters);
        assert_eq!(of(&mix), of(&mix));
        assert_ne!(of(&mix), of(&Mix { seed: 4, ..mix.clone() }));
        let all = of(&mix);
        assert_eq!(all.iter().map(|one| one.turns.len()).sum::<usize>(), 50);
        for one in &all {
            assert!((1..=4).contains(&one.tenant) && one.adapter.is_some());
            assert!(one.tokens() <= 512);
            assert!(one.turns.iter().all(|turn| turn.new.iter().all(|id| *id < 100)));
        }
    }

    /// Frequencies and means are those of the distributions, within four standard deviations.
    #[test]
    fn what_is_drawn_follows_its_distribution() {
        let adapters: Vec<String> = (0..4).map(|n| n.to_string()).collect();
        let mix: Mix = "prompt=~40,answer=10-20,prefix=0.5,zipf=1,tenants=3".parse().unwrap();
        let all = mix.conversations(4000, 100, 4096, &adapters);
        let share = |found: &dyn Fn(&LoadConversation) -> bool| {
            all.iter().filter(|one| found(one)).count() as f64 / all.len() as f64
        };
        // 1 + 1/2 + 1/3 + 1/4.
        let sum = 25.0 / 12.0;
        for rank in 1..=4 {
            let name = (rank - 1).to_string();
            let (found, expected) =
                (share(&|one| one.adapter.as_ref() == Some(&name)), 1.0 / f64::from(rank) / sum);
            assert!((found - expected).abs() < 0.032, "{rank}: {found}, expected {expected}");
        }
        for tenant in 1..=3 {
            assert!((share(&|one| one.tenant == tenant) - 1.0 / 3.0).abs() < 0.03, "{tenant}");
        }
        let mean = |of: &dyn Fn(&ConversationRequest) -> f64| {
            all.iter().map(|one| of(&one.turns[0])).sum::<f64>() / 4000.0
        };
        assert!((mean(&|turn| turn.new.len() as f64) - 40.0).abs() < 3.0);
        assert!((mean(&|turn| f64::from(turn.answer)) - 15.0).abs() < 0.25);
        let shares = all.iter().filter(|one| one.turns[0].new.len() > 8).map(|one| &one.turns[0].new);
        let shares: Vec<&Vec<u32>> = shares.collect();
        let is_shared = |new: &&&Vec<u32>| new[..4] == shares[0][..4];
        assert_eq!(shares.iter().filter(is_shared).count(), shares.len(), "half of every prompt is shared");
    }

    #[test]
    fn a_conversation_fits_the_context() {
        let mix: Mix = "prompt=100,answer=50,turns=10".parse().unwrap();
        let all = mix.conversations(20, 50, 310, &[]);
        assert!(all.iter().all(|one| one.tokens() <= 310 && one.turns.len() == 2), "{:?}", all.len());
        let tiny = mix.conversations(3, 50, 8, &[]);
        assert!(tiny.iter().all(|one| one.tokens() <= 8 && one.turns.len() == 1));
    }
}
