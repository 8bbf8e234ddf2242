//! Earlier answers, in which drafts are looked for.

use kernmill_runtime::Tenant;
use kernmill_runtime::draft::History;
use std::collections::BTreeMap;

/// Tenants whose answers are kept. Each takes about 2 MB at most.
const TENANTS: usize = 64;
/// Answers that are too short to be found again.
const SHORT: usize = 8;

/// The latest answers of each tenant and salt. One's drafts never come from another's answers: how fast a
/// text comes would tell what others were told.
#[derive(Debug, Default)]
pub(crate) struct Histories {
    /// By tenant and salt: when these were last asked for, and their answers.
    tenants: BTreeMap<Tenant, (u64, History)>,
    asked: u64,
}

impl Histories {
    /// The answers of a tenant with a salt. Those that were not asked for longest make way.
    pub(crate) fn of(&mut self, tenant: Tenant) -> History {
        self.asked += 1;
        if self.tenants.len() >= TENANTS && !self.tenants.contains_key(&tenant) {
            let oldest = self.tenants.iter().min_by_key(|(_, (asked, _))| *asked).map(|(tenant, _)| *tenant);
            oldest.and_then(|oldest| self.tenants.remove(&oldest));
        }
        let (asked, history) = self.tenants.entry(tenant).or_default();
        *asked = self.asked;
        history.clone()
    }

    /// Adds an answer of a tenant with a salt.
    pub(crate) fn add(&mut self, tenant: Tenant, answer: &[u32]) {
        if answer.len() >= SHORT {
            self.of(tenant).add(answer);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Histories;
    use crate::cache_of;
    use kernmill_runtime::draft::{Drafter, SuffixDrafter};

    #[test]
    fn the_tenant_that_was_not_heard_of_longest_makes_way() {
        let mut histories = Histories::default();
        let answer: Vec<u32> = (0..20).collect();
        (0..64).for_each(|tenant| histories.add(cache_of(tenant, [0; 16]), &answer));
        let knows = |histories: &mut Histories, tenant| {
            let mut drafter = SuffixDrafter::with_history(histories.of(cache_of(tenant, [0; 16])));
            drafter.follow(&[5, 6, 7]);
            let mut tokens = Vec::new();
            drafter.guess(3, &mut tokens);
            tokens == [8, 9, 10]
        };
        assert!(knows(&mut histories, 0) && knows(&mut histories, 63));
        // Tenant 0 was heard of since, tenant 1 was not.
        histories.add(cache_of(64, [0; 16]), &answer);
        assert!(knows(&mut histories, 0) && !knows(&mut histories, 1));
        assert!(knows(&mut histories, 64) && knows(&mut histories, 40));
        // Salted answers are another's.
        histories.add(cache_of(70, [1; 16]), &answer);
        assert!(!knows(&mut histories, 70));
    }
}
