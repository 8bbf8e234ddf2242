//! Shares of tenants and of classes.

use crate::figures;
use crate::world::{Job, PLENTY, Truth, World};
use kernmill_scheduler::{Class, SchedulerConfig, TenantId};
use std::collections::BTreeMap;
use std::time::Duration;

fn config() -> SchedulerConfig {
    SchedulerConfig { max_wait: [None; 3], max_queue: 10_000, ..SchedulerConfig::default() }
}

/// Jobs that are all there at once.
fn backlog(rng: &mut fastrand::Rng, tenant: u64, class: Class, count: u64) -> Vec<Job> {
    let job = |n: u64| Job::chat(tenant * 10_000 + n, 0.0, rng.u32(50..400), rng.u32(10..60));
    (0..count).map(job).map(|job| job.of(tenant, class)).collect()
}

/// Parts of the machine's time, by class and tenant.
fn parts(world: &World) -> BTreeMap<(Class, TenantId), f64> {
    let all: f64 = world.spent.values().sum();
    world.spent.iter().map(|(whose, seconds)| (*whose, seconds / all)).collect()
}

#[test]
fn tenants_with_much_work_get_their_shares() {
    let mut worst: f64 = 0.0;
    for seed in 0..3 {
        let mut rng = fastrand::Rng::with_seed(seed);
        let tenant_weights = BTreeMap::from([(TenantId(3), 2.0)]);
        let mut world =
            World::new(SchedulerConfig { tenant_weights, ..config() }, PLENTY, Truth::NOISY, seed);
        // The first has ten times as many requests as the others.
        let mut jobs = backlog(&mut rng, 1, Class::Interactive, 600);
        jobs.extend(backlog(&mut rng, 2, Class::Interactive, 200));
        jobs.extend(backlog(&mut rng, 3, Class::Interactive, 300));
        world.stop_at = Some(300.0);
        world.run(&jobs, &[]);
        let parts = parts(&world);
        for (tenant, due) in [(1, 0.25), (2, 0.25), (3, 0.5)] {
            worst = worst.max((parts[&(Class::Interactive, TenantId(tenant))] - due).abs());
        }
    }
    println!("worst error of a tenant's share: {:.1} % of the machine", 100.0 * worst);
    assert!(worst < 0.05, "{worst}");
}

#[test]
fn a_greedy_tenant_does_not_keep_modest_ones_waiting() {
    let mut rng = fastrand::Rng::with_seed(5);
    // Waits over a minute are refused, as by default: to the greedy one alone.
    let config = SchedulerConfig { max_wait: SchedulerConfig::default().max_wait, ..config() };
    let mut world = World::new(config, PLENTY, Truth::NOISY, 5);
    // Nothing is refused before the machine's speed is known.
    let mut jobs = vec![Job::chat(1, 0.0, 50, 30).of(1, Class::Interactive)];
    // Long answers, so that all places are taken for long.
    jobs.extend((2000..2200).map(|id| Job::chat(id, 10.0, rng.u32(100..800), 2000)));
    for tenant in 1..=3 {
        for n in 0..15 {
            let at = 20.0 + f64::from(n) * 20.0 + rng.f64() * 5.0;
            let id = tenant * 100 + u64::from(n as u32);
            jobs.push(Job::chat(id, at, rng.u32(30..200), 30).of(tenant, Class::Interactive));
        }
    }
    world.stop_at = Some(400.0);
    world.run(&jobs, &[]);
    println!("{}", figures::line("a greedy tenant and three modest ones", &world));
    let modest = world.records.values().filter(|record| record.job.arrival.tenant.0 > 0);
    assert!(figures::ends(&world)["refused: TooLongWait"] > 50, "{:?}", figures::ends(&world));
    let mut waits: Vec<f64> =
        modest.map(|record| record.first_token.expect("it was served") - record.job.at).collect();
    waits.sort_by(f64::total_cmp);
    let (median, longest) = (waits[waits.len() / 2], waits[waits.len() - 1]);
    println!("modest tenants wait {median:.1} s in the median, {longest:.1} s at most");
    assert!(longest < 25.0 && median < 10.0, "{waits:?}");
}

#[test]
fn interactive_and_batch_share_four_to_one() {
    let mut worst: f64 = 0.0;
    for seed in 0..3 {
        let mut rng = fastrand::Rng::with_seed(seed);
        let mut world = World::new(config(), PLENTY, Truth::NOISY, seed);
        let mut jobs = backlog(&mut rng, 1, Class::Interactive, 500);
        jobs.extend(backlog(&mut rng, 2, Class::Batch, 300));
        jobs.extend(backlog(&mut rng, 3, Class::Background, 100));
        world.stop_at = Some(300.0);
        world.run(&jobs, &[]);
        let parts = parts(&world);
        assert_eq!(parts.get(&(Class::Background, TenantId(3))), None, "{parts:?}");
        worst = worst.max((parts[&(Class::Batch, TenantId(2))] - 0.2).abs());
    }
    println!("worst error of the classes' shares: {:.1} % of the machine", 100.0 * worst);
    assert!(worst < 0.06, "{worst}");
}

#[test]
fn batch_work_gives_way_to_a_chat() {
    let mut rng = fastrand::Rng::with_seed(9);
    let mut jobs = backlog(&mut rng, 1, Class::Batch, 200);
    for n in 0..20 {
        jobs.push(Job::chat(n, 30.0 + 10.0 * n as f64, 60, 20));
    }
    let mut world = World::new(config(), PLENTY, Truth::NOISY, 9);
    world.stop_at = Some(400.0);
    world.run(&jobs, &[]);
    println!("{}", figures::line("chats beside batch work", &world));
    let slowest = (0..20).map(|id| world.first_token(id)).fold(0.0, f64::max);
    println!("a chat's first token came after {slowest:.1} s at most");
    assert!(slowest < 6.0, "{slowest}");
    assert!(figures::lowest_rate(&world) > 0.85, "{}", figures::lowest_rate(&world));
}

#[test]
fn background_work_is_done_while_nobody_has_other_work() {
    let mut rng = fastrand::Rng::with_seed(10);
    let mut jobs = backlog(&mut rng, 1, Class::Background, 10);
    for n in 0..5 {
        jobs.push(Job::chat(n, 5.0 + 60.0 * n as f64, 60, 20));
    }
    let mut world = World::new(config(), PLENTY, Truth::QUIET, 10);
    world.run(&jobs, &[]);
    assert!(jobs.iter().all(|job| world.is_complete(job.arrival.id.0)));
    // Less than the longest step: what runs is not interrupted, and nothing else is in the way.
    let slowest = (0..5).map(|id| world.first_token(id)).fold(0.0, f64::max);
    assert!(slowest < 3.0, "{slowest}");
}

/// Two tenants' prompts take all of the memory each, so that one evicts the tokens of the other.
#[test]
fn prompts_that_only_fit_alone_do_not_take_turns_forever() {
    for class in Class::ALL {
        let config = SchedulerConfig { max_batch_tokens: 8, share_lag: Duration::from_secs(1), ..config() };
        let mut world = World::new(config, [52, 15], Truth::QUIET, 12);
        let jobs = [(1, 557), (2, 612)].map(|(id, prompt)| Job::chat(id, 0.0, prompt, 30).of(id, class));
        world.run(&jobs, &[]);
        assert!(jobs.iter().all(|job| world.is_complete(job.arrival.id.0)));
        let lost: Vec<usize> = world.records.values().map(|record| record.preempted.len()).collect();
        // Deficits are at most 20 s either way, so that six doublings of a second are more than any.
        assert!(lost.iter().all(|lost| *lost <= 6), "{lost:?}");
    }
}
