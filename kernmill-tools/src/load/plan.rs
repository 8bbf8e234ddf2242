//! A load before it runs: conversations, and when they come.

use super::conversation::LoadConversation;
use super::mix::{Mix, exponential};
use super::trace::LoadTrace;
use fastrand::Rng;
use kernmill::Result;
use kernmill_server::lines::open_requests;
use std::path::Path;
use std::time::Duration;

/// When conversations come.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Arrivals {
    /// At random times, so many requests a second in the mean, whether or not others have ended.
    Rate(f64),
    /// So many at once: when one has ended, the next begins.
    Clients(u32),
    /// When their turns say ([`super::ConversationRequest::at`]).
    AsPlanned,
}

/// Conversations, and when they come.
#[derive(Clone, Debug, PartialEq)]
pub struct Load {
    /// The conversations, in this order.
    pub conversations: Vec<LoadConversation>,
    /// When it comes.
    pub arrivals: Arrivals,
    /// The requests, in words.
    pub about: String,
}

/// The options of a load.
#[derive(Clone, Copy, Debug)]
pub struct LoadOptions<'a> {
    /// Requests per second that come at random times.
    pub rate: Option<f64>,
    /// Clients that wait for their answers, where there is no rate; without either, a trace comes at its own
    /// times, and other requests from 8 clients.
    pub clients: Option<u32>,
    /// Requests; without it all of a trace, or 64.
    pub requests: Option<u32>,
    /// The mix of requests.
    pub mix: &'a Mix,
    /// File of requests that come instead.
    pub trace: Option<&'a Path>,
}

/// Clients, and sequences that run at once, unless options say another number.
pub const DEFAULT_CLIENTS: u32 = 8;
const DEFAULT_REQUESTS: u32 = 64;

impl Load {
    /// Options of `kernmill bench` that a load has no use for.
    pub const OTHERS: [&str; 11] =
        ["pp", "tg", "depth", "pp-depth", "fill", "batch", "repeat", "profile", "layers", "timeline", "read"];

    /// The load of some options, for a model of `vocab` tokens, a context of `longest`, and adapters by their
    /// names.
    ///
    /// # Errors
    /// When a trace cannot be read.
    pub fn open(options: &LoadOptions<'_>, vocab: u32, longest: u32, adapters: &[String]) -> Result<Load> {
        let arrivals = match (options.rate, options.clients, options.trace) {
            (Some(rate), _, _) => Arrivals::Rate(rate),
            (None, None, Some(_)) => Arrivals::AsPlanned,
            (None, clients, _) => Arrivals::Clients(clients.unwrap_or(DEFAULT_CLIENTS)),
        };
        let requests = options.requests;
        Ok(match options.trace {
            Some(path) => {
                let mut input = open_requests(path)?;
                let most = requests.map_or(usize::MAX, |requests| requests as usize);
                Load::of_trace(LoadTrace::read(&mut *input, path, vocab, most)?, arrivals)
            }
            None => {
                let requests = requests.unwrap_or(DEFAULT_REQUESTS);
                Load::of_mix(options.mix, arrivals, requests, vocab, longest, adapters)
            }
        })
    }

    /// A load that a mix draws: `requests` requests for a model of `vocab` tokens and a context of `longest`.
    pub fn of_mix(
        mix: &Mix,
        arrivals: Arrivals,
        requests: u32,
        vocab: u32,
        longest: u32,
        adapters: &[String],
    ) -> Load {
        let mut conversations = mix.conversations(requests, vocab, longest, adapters);
        if let Arrivals::Rate(rate) = arrivals {
            arrive(&mut conversations, rate, mix.seed);
        }
        Load { conversations, arrivals, about: mix.to_string() }
    }

    /// The load of a trace. With [`Arrivals::Rate`] conversations come at random times instead of the trace's
    /// own.
    pub fn of_trace(trace: LoadTrace, arrivals: Arrivals) -> Load {
        let LoadTrace { mut conversations, name } = trace;
        match arrivals {
            Arrivals::Rate(rate) => arrive(&mut conversations, rate, 0),
            Arrivals::Clients(_) => {
                let turns = conversations.iter_mut().flat_map(|one| &mut one.turns);
                turns.for_each(|turn| turn.at = Duration::ZERO);
            }
            Arrivals::AsPlanned => {}
        }
        Load { conversations, arrivals, about: format!("trace {name}") }
    }

    /// Requests.
    pub fn requests(&self) -> usize {
        self.conversations.iter().map(|one| one.turns.len()).sum()
    }

    /// Tokens of the longest conversation.
    pub fn longest(&self) -> u32 {
        self.conversations.iter().map(LoadConversation::tokens).max().unwrap_or(1)
    }
}

/// Has conversations come as a Poisson process does, so that there are `rate` requests a second in the mean.
fn arrive(conversations: &mut [LoadConversation], rate: f64, seed: u64) {
    let requests: usize = conversations.iter().map(|one| one.turns.len()).sum();
    let between = requests as f64 / conversations.len().max(1) as f64 / rate;
    // Another stream of numbers than that of the contents.
    let mut random = Rng::with_seed(seed ^ 0x9e37_79b9_7f4a_7c15);
    let mut at = 0.0;
    for one in conversations {
        let time = Duration::try_from_secs_f64(at).unwrap_or(Duration::MAX);
        one.turns.iter_mut().for_each(|turn| turn.at = time);
        at += exponential(&mut random, between);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rate_is_kept_in_the_mean() {
        let mix: Mix = "turns=3,seed=5".parse().unwrap();
        let load = Load::of_mix(&mix, Arrivals::Rate(6.0), 6000, 50, 4096, &[]);
        assert_eq!(load.requests(), 6000);
        let times: Vec<f64> = load.conversations.iter().map(|one| one.turns[0].at.as_secs_f64()).collect();
        assert_eq!(times[0], 0.0);
        // 2000 conversations of 3 requests: 1000 s, whose standard deviation is 22 s.
        let last = times[times.len() - 1];
        assert!((last - 1000.0).abs() < 90.0, "{last}");
        let gaps: Vec<f64> = times.windows(2).map(|pair| pair[1] - pair[0]).collect();
        // As many gaps are longer than the mean as those of a Poisson process: 1 / e.
        let long = gaps.iter().filter(|gap| **gap > 0.5).count() as f64 / gaps.len() as f64;
        assert!((long - 0.368).abs() < 0.045, "{long}");
        assert_eq!(load, Load::of_mix(&mix, Arrivals::Rate(6.0), 6000, 50, 4096, &[]));
    }
}
