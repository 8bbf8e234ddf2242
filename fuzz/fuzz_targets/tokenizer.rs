#![no_main]

libfuzzer_sys::fuzz_target!(
    // The reader contains panics of the library that it wraps: the hook that turns every panic into a crash
    // is put off. A panic that gets out of the target still ends the process.
    init: { let _ = std::panic::take_hook(); },
    |data: &[u8]| kernmill_fuzz::targets::tokenizer(data)
);
