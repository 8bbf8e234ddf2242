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
pub(super) struct Histories {
    /// By tenant and salt: when these were last asked for, and their answers.
    tenants: BTreeMap<Tenant, (u64, History)>,
    asked: u64,
}

impl Histories {
    /// The answers of a tenant with a salt. Those that were not asked for longest make way.
    pub(super) fn of(&mut self, tenant: Tenant) -> History {
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
    pub(super) fn add(&mut self, tenant: Tenant, answer: &[u32]) {
        if answer.len() >= SHORT {
            self.of(tenant).add(answer);
        }
    }
}
