use crate::gptq::sweep_tests::files;
use crate::state::{WorkKey, WorkState};
use crate::tests::quantize;
use kernmill::observe::Silent;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

/// Pieces of a work in the order in which they were kept.
fn pieces(dir: &Path) -> Vec<PathBuf> {
    let mut pieces: Vec<(SystemTime, PathBuf)> = fs::read_dir(dir)
        .unwrap()
        .map(|entry| entry.unwrap())
        .map(|entry| (entry.metadata().unwrap().modified().unwrap(), entry.path()))
        .collect();
    pieces.sort();
    pieces.into_iter().map(|(_, path)| path).collect()
}

/// The state that a work leaves that ends behind its first pieces.
fn ended_behind(pieces: &[PathBuf], dir: &Path) {
    let _ = fs::remove_dir_all(dir);
    fs::create_dir(dir).unwrap();
    for piece in pieces {
        fs::copy(piece, dir.join(piece.file_name().unwrap())).unwrap();
    }
}

#[test]
fn works_that_ended_early_go_on_to_the_same_file() {
    let dir = files();
    let at = |name: &str| dir.path().join(name);
    let work = "--bits 5.6 --calibration text.txt --tokens 300";
    quantize(dir.path(), 2, &format!("-o a.gguf {work} --report a.json"), &Silent).unwrap();
    let again = |state: &str| {
        let args = format!("-o b.gguf {work} --report b.json --state .{state}");
        quantize(dir.path(), 3, &args, &Silent).map_err(|error| error.to_string())?;
        assert!(fs::read(at("a.gguf")).unwrap() == fs::read(at("b.gguf")).unwrap());
        assert_eq!(fs::read_to_string(at("a.json")).unwrap(), fs::read_to_string(at("b.json")).unwrap());
        Ok::<(), String>(())
    };
    again("whole").unwrap();
    let all = pieces(&at(".whole"));
    let names: Vec<&str> = all.iter().map(|path| path.file_name().unwrap().to_str().unwrap()).collect();
    assert_eq!(names[..3], ["work", "calibration", "sensitivities-0"]);
    assert!(names.contains(&"layer-1") && names.iter().any(|name| name.starts_with("tensor-")), "{names:?}");
    for ended in [1, 2, 3, all.len() / 2, all.len() - 1, all.len()] {
        ended_behind(&all[..ended], &at(".part"));
        again("part").unwrap();
    }
    // A piece that is cut off, changed, or not what it is called is made again.
    let last = at(".part").join(all.last().unwrap().file_name().unwrap());
    let whole = fs::read(&last).unwrap();
    let mut changed = whole.clone();
    changed[40] ^= 1;
    let other = fs::read(at(".part").join("calibration")).unwrap();
    for bytes in [&whole[..whole.len() - 1], &whole[..5], &[], &changed, &other] {
        fs::write(&last, bytes).unwrap();
        again("part").unwrap();
        assert!(fs::read(&last).unwrap() == whole);
    }
    // Another work is refused: other arguments, other texts, another model.
    let args = "-o b.gguf --bits 5.7 --calibration text.txt --tokens 300 --state .part";
    let error = quantize(dir.path(), 2, args, &Silent).unwrap_err().to_string();
    assert!(error.contains("--state: it is of another model, other arguments or texts"), "{error}");
    fs::write(at("text.txt"), "Something else.\n".repeat(100)).unwrap();
    assert!(again("part").unwrap_err().contains("of another model, other arguments or texts"));
    fs::remove_file(at(".part").join("work")).unwrap();
    assert!(again("part").unwrap_err().contains("it has files, and none that says what they are"));
}

#[test]
fn pieces_come_back_bit_for_bit_or_not_at_all() {
    let dir = tempfile::tempdir().unwrap();
    let state = WorkState::open(&dir.path().join("s"), &WorkKey::new("a")).unwrap();
    let numbers = vec![0.1, f64::MIN_POSITIVE, -0.0, f64::INFINITY];
    let made = |count: usize| -> Vec<f64> { state.kept_or("n", || Ok(numbers[..count].to_vec())).unwrap() };
    let bits = |numbers: Vec<f64>| numbers.into_iter().map(f64::to_bits).collect::<Vec<u64>>();
    assert_eq!(bits(made(4)), bits(numbers.clone()));
    // The second time it is not made.
    assert_eq!(bits(made(1)), bits(numbers.clone()));
    // A count that the bytes cannot have.
    state.keep("n", &[255; 24]).unwrap();
    assert_eq!(made(2).len(), 2);
    assert!(WorkState::open(&dir.path().join("s"), &WorkKey::new("b")).is_err());
    let none = WorkState::none();
    assert!(none.piece("n").is_none() && none.keep("n", &[1]).is_ok());
}
