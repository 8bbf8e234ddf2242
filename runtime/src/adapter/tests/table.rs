//! The table of slots that kernels read.

use super::super::table::LoraTargetSet;
use super::super::{AdapterTable, PackedAdapter};
use kernmill_os::region::RegionError;
use kernmill_plan::adapter::{Adapters, LoraTarget, LoraTargetShape, LoraTargetSlice, PackedAt};
use kernmill_plan::format::WeightFormat;
use std::sync::Arc;

fn adapters(lora_targets: u32) -> Adapters {
    let weights = PackedAt { format: WeightFormat::F32, offset: 0, tile_stride: 256, expert_stride: 0 };
    let lora_target = |k| {
        let outs = vec![LoraTargetSlice { name: "w".into(), rows: 20, first: 0, step: 1, weights }];
        LoraTarget { name: "s".into(), tensor: "t".into(), k, experts: 0, outs }
    };
    Adapters {
        format: WeightFormat::F32,
        lora_targets: (1..=lora_targets).map(|i| lora_target(4 * i)).collect(),
    }
}

fn packed(adapters: &Adapters, ranks: &[usize]) -> Arc<PackedAdapter> {
    let shape = |rank: &usize| (*rank > 0).then_some(LoraTargetShape { rank: *rank, factors: false });
    let shapes: Vec<_> = ranks.iter().map(shape).collect();
    Arc::new(PackedAdapter::pack::<RegionError>(adapters, &shapes, &mut |_, _, _| Ok(())).unwrap())
}

#[test]
fn slots_say_which_steps_run() {
    let adapters = adapters(70);
    let mut table = AdapterTable::new(Some(&adapters), 2);
    let mut ranks = vec![0; 70];
    (ranks[3], ranks[68]) = (5, 33);
    table.set(1, Some(packed(&adapters, &ranks)));
    let mut lora_targets = LoraTargetSet::default();
    assert_eq!(table.in_use([0, 0].into_iter(), &mut lora_targets), None);
    assert!(lora_targets.want(&[]) && !lora_targets.want(&[3, 68]));
    table.grow(4);
    assert_eq!(table.in_use([0, 3, 1].into_iter(), &mut lora_targets), Some(3));
    assert!(lora_targets.want(&[2, 68]) && lora_targets.want(&[3]) && !lora_targets.want(&[2, 4, 69]));
    assert_eq!(table.entries(1)[3].ranks, 8);
    assert!(table.set(1, None).is_some() && table.get(1).is_none());
    assert_eq!(table.in_use([1].into_iter(), &mut lora_targets), None);
    assert_eq!((table.len(), table.stride(), table.entries(4).len()), (4, 70 * 64, 0));
}

#[test]
#[should_panic(expected = "packed for other LoRA targets")]
fn an_adapter_for_other_lora_targets_is_refused() {
    let mut table = AdapterTable::new(Some(&adapters(2)), 2);
    let mut other = adapters(2);
    other.lora_targets[1].k = 12;
    table.set(1, Some(packed(&other, &[1, 1])));
}
