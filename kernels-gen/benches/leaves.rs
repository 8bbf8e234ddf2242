//! Dot leaves against the memory: GB/s of one-token leaves over a gigabyte of tiles, beside a plain read of the same bytes, with one
//! and with two threads; and the rate of every token count on tiles that stay in cache.
//!
//! `cargo bench -p kernmill-kernels --bench leaves` prints one JSON object per line; medians of 7.

use kernmill_kernels::generate::generate_leaves;
use kernmill_kernels::leaf::Leaf;
use kernmill_plan::format::{Q8Row, WeightFormat};
use kernmill_plan::region::WeightRegion;
use kernmill_plan::target::Level;
use memmap2::MmapMut;
use std::time::Instant;

const K: usize = 2880;
const STREAM: usize = 1 << 30;
const REPETITIONS: usize = 7;
/// Fills weights and activations: every scale it makes is a normal number, and so is every product (denormals would be measured
/// instead of the leaf).
const FILL: u8 = 0x3c;

type Dot = unsafe extern "C" fn(*const u8, *const u64, *mut f32, u64);

fn median(mut run: impl FnMut()) -> f64 {
    let mut times: Vec<f64> = (0..REPETITIONS)
        .map(|_| {
            let start = Instant::now();
            run();
            start.elapsed().as_secs_f64()
        })
        .collect();
    times.sort_by(f64::total_cmp);
    times[REPETITIONS / 2]
}

/// Calls `work(first, end)` on every thread's share of `count`.
fn shared(threads: usize, count: usize, work: impl Fn(usize, usize) + Sync) {
    std::thread::scope(|scope| {
        for i in 0..threads {
            let work = &work;
            scope.spawn(move || work(count * i / threads, count * (i + 1) / threads));
        }
    });
}

/// Reads every line of a slice of whole lines.
fn read(bytes: &[u64]) -> u64 {
    bytes
        .chunks_exact(32)
        .fold([0u64; 32], |mut sums, chunk| {
            sums.iter_mut().zip(chunk).for_each(|(sum, word)| *sum ^= word);
            sums
        })
        .iter()
        .fold(0, |a, b| a ^ b)
}

fn main() {
    let level = *Level::supported().last().expect("x86-64-v3 or better");
    let mut region = WeightRegion::anonymous(STREAM).expect("a gigabyte of memory");
    region.as_mut_slice().fill(FILL);
    let words = region.as_slice().as_ptr().cast::<u64>();
    // SAFETY: the region holds `STREAM` initialised bytes, aligned to pages.
    let words = unsafe { std::slice::from_raw_parts(words, STREAM / 8) };
    for threads in [1, 2] {
        let time = median(|| {
            shared(threads, STREAM / 4096, |first, end| {
                std::hint::black_box(read(&words[first * 512..end * 512]));
            });
        });
        println!(
            "{{\"what\": \"plain read\", \"threads\": {threads}, \"gb_per_second\": {:.1}}}",
            STREAM as f64 / time / 1e9
        );
    }
    for format in [WeightFormat::Mxfp4, WeightFormat::Int8, WeightFormat::Int4] {
        let leaves: Vec<Leaf> =
            Leaf::dot_tokens(true).iter().map(|t| Leaf::DotQ8 { format, k: K, tokens: *t }).collect();
        let blob = generate_leaves(&leaves, level, true).expect("leaves generate");
        let mut map = MmapMut::map_anon(blob.bytes.len()).expect("memory for code");
        map.copy_from_slice(&blob.bytes);
        let map = map.make_exec().expect("executable memory");
        let tile = format.tile(K).bytes();
        let stride = Q8Row { k: K }.stride();
        for (i, tokens) in Leaf::dot_tokens(true).iter().enumerate() {
            let address = &raw const map[blob.symbols[i].offset as usize];
            // SAFETY: symbol i is a dot leaf.
            let dot: Dot = unsafe { std::mem::transmute(address) };
            let run = |first: usize, end: usize, tiles: usize| {
                let rows = vec![FILL; stride * tokens];
                let list: Vec<u64> =
                    (0..*tokens).map(|t| rows.as_ptr() as u64 + (t * stride) as u64).collect();
                let mut out = vec![0f32; 16 * tokens];
                for number in first..end {
                    // SAFETY: the tile lies in the region, rows and results are as large as the leaf's contract asks.
                    unsafe {
                        let weights = region.as_slice().as_ptr().add(number % tiles * tile);
                        dot(weights, list.as_ptr(), out.as_mut_ptr(), 64);
                    }
                }
                std::hint::black_box(&out);
            };
            let all = STREAM / tile;
            if *tokens == 1 {
                for threads in [1, 2] {
                    let time = median(|| shared(threads, all, |first, end| run(first, end, all)));
                    println!(
                        "{{\"what\": \"{}\", \"level\": \"{}\", \"threads\": {threads}, \"gb_per_second\": {:.1}}}",
                        leaves[i],
                        level.name(),
                        (all * tile) as f64 / time / 1e9
                    );
                }
            }
            let calls = 20_000;
            let time = median(|| run(0, calls, 2));
            println!(
                "{{\"what\": \"{} in cache\", \"level\": \"{}\", \"gb_per_second\": {:.1}, \"tera_ops_per_second\": {:.3}}}",
                leaves[i],
                level.name(),
                (calls * tile) as f64 / time / 1e9,
                (calls * 16 * K * tokens * 2) as f64 / time / 1e12
            );
        }
    }
}
