#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| kernmill_fuzz::targets::imatrix(data));
