use super::*;

/// An importance matrix of a dense matrix and one of two experts.
fn sound(dataset: &str) -> Imatrix {
    let dense = ImatrixEntry { sums: vec![2.0, 8.0, 0.5], counts: vec![4.0] };
    let experts = ImatrixEntry { sums: vec![1.0, 3.0, 5.0, 7.0], counts: vec![2.0, 0.0] };
    let entries = [("blk.0.attn_q.weight", dense), ("blk.0.ffn_up_exps.weight", experts)];
    Imatrix {
        datasets: vec![dataset.to_owned()],
        chunks: 3,
        chunk_size: 512,
        entries: entries.map(|(name, entry)| (name.to_owned(), entry)).into(),
    }
}

/// A file of the older form: entries of a name, chunks and values; then what stands behind them.
fn legacy_file(entries: &[(&str, i32, &[f32])], behind: &[u8]) -> Vec<u8> {
    let mut file = (entries.len() as i32).to_le_bytes().to_vec();
    for (name, calls, values) in entries {
        file.extend((name.len() as i32).to_le_bytes());
        file.extend(name.as_bytes());
        file.extend(calls.to_le_bytes());
        file.extend((values.len() as i32).to_le_bytes());
        values.iter().for_each(|value| file.extend(value.to_le_bytes()));
    }
    [&file, behind].concat()
}

#[test]
fn what_is_written_is_read_and_sums_of_several_texts_add_up() {
    let one = sound("one.txt");
    assert_eq!(Imatrix::from_bytes("one", one.to_gguf()).unwrap(), one);
    let mut both = one.clone();
    both.merge(sound("two.txt")).unwrap();
    let dense = &both.entries["blk.0.attn_q.weight"];
    assert_eq!((&dense.sums[..], &dense.counts[..]), (&[4.0, 16.0, 1.0][..], &[8.0][..]));
    assert_eq!((both.datasets, both.chunks), (vec!["one.txt".to_owned(), "two.txt".to_owned()], 6));
    // A matrix that only one of them has is taken over; one of another size is refused, and nothing changes.
    let mut changed = Imatrix::default();
    changed.merge(one.clone()).unwrap();
    assert_eq!(changed, one);
    changed.entries.get_mut("blk.0.attn_q.weight").unwrap().sums.pop();
    let before = changed.clone();
    let error = changed.merge(one).unwrap_err().to_string();
    assert_eq!(error, "`blk.0.attn_q.weight` has 2 columns of 1 matrices here and 3 of 1 there");
    assert_eq!(changed, before);
}

#[test]
fn means_are_those_of_the_expert_and_of_the_size_that_is_asked_for() {
    let read = sound("one.txt");
    let dense = &read.entries["blk.0.attn_q.weight"];
    assert_eq!(dense.means(0, 1, 3), Some(vec![0.5, 2.0, 0.125]));
    assert_eq!((dense.means(0, 1, 4), dense.means(0, 3, 3)), (None, None));
    let experts = &read.entries["blk.0.ffn_up_exps.weight"];
    // No token reached the second.
    assert_eq!((experts.means(0, 2, 2), experts.means(1, 2, 2)), (Some(vec![0.5, 1.5]), None));
}

#[test]
fn the_older_form_is_read_with_and_without_its_end() {
    let entries = [("a.weight", 2, &[6.0, 1.0][..]), ("b.weight", 0, &[1.0][..])];
    let whole = legacy_file(&entries, &[&7i32.to_le_bytes()[..], &8i32.to_le_bytes(), b"text.txt"].concat());
    let read = Imatrix::from_bytes("old", whole.clone()).unwrap();
    assert_eq!(read.entries["a.weight"].means(0, 1, 2), Some(vec![3.0, 0.5]));
    assert_eq!(read.entries["a.weight"].counts, [1024.0]);
    assert_eq!(read.entries["b.weight"].means(0, 1, 1), None);
    assert_eq!((read.chunks, &read.datasets[..]), (7, &["text.txt".to_owned()][..]));
    let bare = Imatrix::from_bytes("old", legacy_file(&entries, &[])).unwrap();
    assert_eq!((bare.chunks, bare.datasets.len()), (0, 0));
    assert_eq!(bare.entries, read.entries);
    // It is the same sums as GGUF.
    assert_eq!(Imatrix::from_bytes("new", read.to_gguf()).unwrap(), read);
}

#[test]
fn damaged_files_say_what_is_wrong() {
    let gguf = |change: fn(&mut NewGguf), data: &[f32]| {
        let mut file = NewGguf::default();
        file.set("general.type", "imatrix");
        file.add("a.weight.in_sum2", &[2, 1], 0, 8);
        file.add("a.weight.counts", &[1, 1], 0, 4);
        change(&mut file);
        let mut bytes = file.head(&file.offsets());
        bytes.extend(data.iter().flat_map(|number| number.to_le_bytes()));
        bytes.resize(bytes.len() + 64, 0);
        bytes
    };
    let same = |_: &mut NewGguf| {};
    assert!(Imatrix::from_bytes("fine", gguf(same, &[1.0, 2.0])).is_ok());
    let cases = [
        (gguf(|file| file.set("general.type", "model"), &[]), "it is no importance matrix"),
        (gguf(|file| drop(file.tensors.pop()), &[]), "`a.weight.in_sum2` is there without `a.weight.counts`"),
        (gguf(|file| drop(file.tensors.remove(0)), &[]), "`a.weight.counts` is there without `a.weight.in_"),
        (gguf(|file| file.tensors[1].dims = vec![3], &[]), "`a.weight` has 2 sums for 3 matrices"),
        (gguf(|file| file.tensors[1].kind = 1, &[]), "tensor `a.weight.counts` is F16, expected F32"),
        (gguf(same, &[f32::NAN]), "tensor `a.weight.in_sum2` has NaN, expected numbers from 0"),
        (gguf(same, &[-1.0]), "tensor `a.weight.in_sum2` has -1, expected numbers from 0"),
        (vec![1, 0], "the number of entries at byte 0 is 4 bytes long and runs past the end"),
        (legacy_file(&[], &[]), "but it has no entries"),
        (vec![255; 8], "but the number of entries is -1"),
        (legacy_file(&[("a", 1, &[])], &[]), "entry `a` has values that are no sums of squares"),
        (legacy_file(&[("a", -1, &[1.0])], &[]), "entry `a` has values that are no sums of squares"),
        (legacy_file(&[("a", 1, &[f32::INFINITY])], &[]), "entry `a` has values that are no sums"),
        (legacy_file(&[("a", 1, &[1.0]), ("a", 1, &[1.0])], &[]), "entry `a` is there twice"),
        (legacy_file(&[("a", 1, &[1.0]), ("b", 1, &[1.0])], &[])[..30].to_vec(), "runs past the end"),
        (b"name,sum\n".to_vec(), "expected an importance matrix, of GGUF or of the older form"),
    ];
    for (file, expected) in cases {
        let error = Imatrix::from_bytes("bad", file).unwrap_err().to_string();
        assert!(error.starts_with("bad: ") && error.contains(expected), "{expected}: {error}");
    }
}
