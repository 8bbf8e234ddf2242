//! Seconds of the machine that each tenant and class has had, against its due.
//!
//! Time that was spent is due to all who have work, by their weights. The part of the due that one has not
//! had is its deficit, in seconds. Deficits are limited on both sides: who used little for an hour cannot
//! take the machine over for the next one.

use std::collections::BTreeMap;

/// Members without work that are remembered.
const IDLE: usize = 1024;

#[derive(Clone, Copy, Debug)]
struct Account {
    weight: f64,
    /// Seconds had, per weight, on the scale of `clock`.
    had: f64,
    /// Requests.
    users: u32,
    /// Order in which accounts were made; decides where nothing else does.
    number: u64,
}

/// Deficits of members: classes, or the tenants of a class.
#[derive(Clone, Debug)]
pub struct Shares<K> {
    accounts: BTreeMap<K, Account>,
    /// Seconds due to a member of weight 1 that has had work all the time.
    clock: f64,
    /// Largest deficit, and least one below zero.
    memory: f64,
    made: u64,
}

impl<K: Copy + Ord> Shares<K> {
    /// Shares without members, with deficits of `memory` seconds at most.
    pub fn new(memory: f64) -> Shares<K> {
        Shares { accounts: BTreeMap::new(), clock: 0.0, memory, made: 0 }
    }

    /// A request of a member begins to count.
    pub fn join(&mut self, member: K, weight: f64) {
        let (clock, number) = (self.clock, self.made);
        self.made += 1;
        let account = self.accounts.entry(member).or_insert(Account { weight, had: clock, users: 0, number });
        // A tenant without work is due nothing for that time.
        if account.users == 0 {
            account.had = account.had.max(clock);
        }
        account.weight = weight;
        account.users += 1;
    }

    /// A request of a member no longer counts.
    pub fn leave(&mut self, member: K) {
        if let Some(account) = self.accounts.get_mut(&member) {
            account.users = account.users.saturating_sub(1);
        }
        let clock = self.clock;
        self.accounts.retain(|_, account| account.users > 0 || account.had > clock);
        while self.accounts.len() > IDLE && self.accounts.values().any(|account| account.users == 0) {
            let idle = self.accounts.iter().filter(|(_, account)| account.users == 0);
            let least = idle.min_by(|a, b| a.1.had.total_cmp(&b.1.had).then(a.1.number.cmp(&b.1.number)));
            let Some(least) = least.map(|(member, _)| *member) else { break };
            self.accounts.remove(&least);
        }
    }

    /// Seconds were spent on members.
    pub fn spend(&mut self, spent: &BTreeMap<K, f64>) {
        let weights: f64 =
            self.accounts.values().filter(|account| account.users > 0).map(|account| account.weight).sum();
        if weights > 0.0 {
            self.clock += spent.values().sum::<f64>() / weights;
        }
        for (member, account) in &mut self.accounts {
            account.had += spent.get(member).copied().unwrap_or(0.0) / account.weight;
            let most = self.memory / account.weight;
            account.had = account.had.clamp(self.clock - most, self.clock + most);
        }
    }

    /// Seconds that a member is due; below zero if it has had more than its share.
    pub fn deficit(&self, member: K) -> f64 {
        self.accounts.get(&member).map_or(0.0, |account| (self.clock - account.had) * account.weight)
    }

    /// Members that have requests, with their deficits.
    pub fn active(&self) -> impl Iterator<Item = (K, f64)> + '_ {
        let active = self.accounts.iter().filter(|(_, account)| account.users > 0);
        active.map(|(member, account)| (*member, (self.clock - account.had) * account.weight))
    }

    /// Members that are remembered.
    #[cfg(test)]
    fn len(&self) -> usize {
        self.accounts.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn one(member: u32, seconds: f64) -> BTreeMap<u32, f64> {
        BTreeMap::from([(member, seconds)])
    }

    #[test]
    fn what_one_has_is_due_to_all() {
        let mut shares = Shares::new(100.0);
        shares.join(1, 1.0);
        shares.join(2, 3.0);
        shares.spend(&one(1, 8.0));
        assert_eq!((shares.deficit(1), shares.deficit(2)), (-6.0, 6.0));
        shares.spend(&one(2, 24.0));
        assert_eq!((shares.deficit(1), shares.deficit(2)), (0.0, 0.0));
        shares.spend(&one(1, 1000.0));
        assert_eq!((shares.deficit(1).round(), shares.deficit(2).round()), (-100.0, 100.0));
        assert_eq!(shares.deficit(3), 0.0);
    }

    #[test]
    fn debts_stay_and_claims_go_with_the_work() {
        let mut shares = Shares::new(100.0);
        shares.join(1, 1.0);
        shares.join(2, 1.0);
        shares.spend(&one(1, 8.0));
        shares.leave(2);
        shares.leave(1);
        assert_eq!(shares.active().count(), 0);
        shares.join(1, 1.0);
        shares.join(2, 1.0);
        assert_eq!((shares.deficit(1), shares.deficit(2)), (-4.0, 0.0));
    }

    #[test]
    fn members_without_work_are_forgotten() {
        let mut shares = Shares::new(1e9);
        shares.join(0, 1.0);
        for member in 1..5000 {
            shares.join(member, 1.0);
            shares.spend(&one(member, 1.0));
            shares.leave(member);
        }
        assert!(shares.len() <= IDLE + 1, "{}", shares.len());
        assert!(shares.active().map(|(member, _)| member).eq([0]));
    }
}
