use super::check::check;
use super::*;
use proptest::prelude::*;

fn request(name: &str, bytes: u64, first: u32, last: u32) -> BufferRequest {
    BufferRequest { name: name.into(), bytes, first, last }
}

/// Every buffer lies in the arena at a multiple of 64, and no two share a byte at a step at which both are
/// live.
fn is_sound(plan: &MemoryPlan) -> bool {
    let meet = |a: &Buffer, b: &Buffer| {
        a.first <= b.last
            && b.first <= a.last
            && a.offset < b.offset + b.bytes
            && b.offset < a.offset + a.bytes
    };
    let apart = |(i, a): (usize, &Buffer)| plan.buffers[..i].iter().all(|b| !meet(a, b));
    let inside = |b: &Buffer| b.offset.is_multiple_of(64) && b.offset + b.bytes <= plan.bytes;
    plan.buffers.iter().all(inside) && plan.buffers.iter().enumerate().all(apart)
}

fn requests() -> impl Strategy<Value = Vec<BufferRequest>> {
    let bytes = prop_oneof![1 => Just(0u64), 8 => 1u64..3000, 2 => (1u64..40).prop_map(|lines| 64 * lines)];
    let one = (bytes, 0u32..40, 0u32..12)
        .prop_map(|(bytes, first, length)| request("b", bytes, first, first + length));
    prop::collection::vec(one, 0..60)
}

proptest! {
    #[test]
    fn plans_are_sound_and_of_the_requests(requests in requests()) {
        let plan = plan_memory(&requests).unwrap();
        check(&requests, &plan).unwrap();
        prop_assert!(is_sound(&plan));
        // The bound, step by step.
        let live = |step| requests.iter().filter(move |r| (r.first..=r.last).contains(&step));
        let bound = (0..60).map(|step| live(step).map(|r| r.bytes.div_ceil(64) * 64).sum::<u64>()).max().unwrap();
        prop_assert_eq!(plan.lower_bound, bound);
        prop_assert!(plan.bytes >= bound);
        let all: u64 = requests.iter().map(padded).sum();
        prop_assert!(plan.bytes <= all);
        prop_assert!(plan.bytes.is_multiple_of(64));
    }
}

#[test]
fn a_chain_of_steps_reuses_memory() {
    // a -> b -> c -> d: only neighbours are live together.
    let names = ["a", "b", "c", "d"];
    let chain: Vec<_> = (0..4).map(|i| request(names[i as usize], 1000, i, i + 1)).collect();
    let plan = plan_memory(&chain).unwrap();
    assert_eq!((plan.bytes, plan.lower_bound), (2048, 2048));
}

#[test]
fn the_smallest_gap_is_taken() {
    assert_eq!(best_fit(vec![(0, 64), (256, 320), (384, 512)], 64), 320);
    assert_eq!(best_fit(vec![(0, 64), (256, 320), (384, 512)], 128), 64);
    assert_eq!(best_fit(vec![(0, 64), (256, 320), (384, 512)], 256), 512);
    assert_eq!(best_fit(vec![(64, 512), (128, 256), (320, 384)], 64), 0);
    assert_eq!(best_fit(vec![], 64), 0);
}

#[test]
fn the_listing() {
    let plan =
        plan_memory(&[request("x", 4096, 0, 3), request("h", 100, 1, 1), request("y", 100, 2, 2)]).unwrap();
    let expected = "      offset        bytes       steps  name
           0         4096        0..3  x
        4096          100        1..1  h
        4096          100        2..2  y
arena 4224 bytes, lower bound 4224 bytes
";
    assert_eq!(plan.to_string(), expected);
}

#[test]
fn bad_requests_are_refused() {
    let error = plan_memory(&[request("x", 64, 3, 2)]).unwrap_err();
    assert_eq!(error, MemoryError::EmptyInterval { name: "x".into(), first: 3, last: 2 });
    let error = plan_memory(&[request("x", u64::MAX, 0, 0)]).unwrap_err();
    assert_eq!(error, MemoryError::TooLarge { name: "x".into(), bytes: u64::MAX });
    let many: Vec<_> = (0..5).map(|_| request("x", u64::MAX / 4, 0, 0)).collect();
    assert!(matches!(plan_memory(&many), Err(MemoryError::TooLarge { .. })));
}

#[test]
fn the_plan_is_of_these_buffers() {
    let requests = [request("x", 64, 0, 1), request("y", 100, 1, 2)];
    let plan = plan_memory(&requests).unwrap();
    check(&requests, &plan).unwrap();
    let error = check(&requests[..1], &plan).unwrap_err();
    assert_eq!((error.index, error.requested), (1, None));
    for change in
        [request("z", 100, 1, 2), request("y", 99, 1, 2), request("y", 100, 0, 2), request("y", 100, 1, 3)]
    {
        let error = check(&[requests[0].clone(), change.clone()], &plan).unwrap_err();
        assert_eq!((error.index, error.requested), (1, Some(change)));
    }
}
