use super::*;

const PLANES: [KvPlane; 2] = [KvPlane::K, KvPlane::V];

/// A head of numbers of many sizes, the same for the same seed.
fn head(seed: u32, n: usize) -> Vec<f32> {
    let mut state = seed.wrapping_mul(2_654_435_761).wrapping_add(12345);
    let mut next = || {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (state >> 8) as f32 / (1 << 23) as f32 - 1.0
    };
    (0..n).map(|i| next() * if i % 7 == 0 { 4.0 } else { 1.0 }).collect()
}

#[test]
fn planes_come_back_as_they_were_stored() {
    for format in KvFormat::ALL {
        for head_dim in [32, 64, 96] {
            let tokens: Vec<KvElements> = (0..16).map(|t| format.round(&head(t, head_dim))).collect();
            for plane in PLANES {
                let bytes = store_plane(format, plane, head_dim, &tokens);
                assert_eq!(bytes.len(), format.plane_bytes(head_dim), "{format:?}");
                assert_eq!(load_plane(format, plane, head_dim, &bytes), tokens, "{format:?} {plane:?}");
                let part = store_plane(format, plane, head_dim, &tokens[..5]);
                assert_eq!(load_plane(format, plane, head_dim, &part)[..5], tokens[..5], "{format:?}");
            }
        }
    }
}

#[test]
fn rounding_twice_changes_nothing() {
    for format in KvFormat::ALL.into_iter().filter(|format| !format.is_scaled()) {
        let once = format.round(&head(3, 64));
        assert_eq!(format.round(&once.values), once, "{format:?}");
    }
}

#[test]
fn roundings_lose_no_more_than_their_bits_say() {
    for format in KvFormat::ALL {
        let x = head(9, 64);
        let rounded = format.round(&x);
        let largest = x.iter().fold(0f32, |m, x| m.max(x.abs()));
        // Floats have bits for their exponents.
        let bits = match format {
            _ if format.is_scaled() => format.descriptor().bits,
            KvFormat::F32 => 24,
            KvFormat::Fp8 => 5,
            _ => 9,
        };
        let step = largest / f32::from(2u8).powi(bits as i32 - 2);
        for (x, value) in x.iter().zip(&rounded.values) {
            let found = value * rounded.scale;
            assert!((x - found).abs() <= step, "{format:?}: {x} became {found}");
        }
    }
}

#[test]
fn planes_and_heads_lie_behind_each_other() {
    for (k, v) in KvFormat::ALL.into_iter().flat_map(|k| KvFormat::ALL.map(|v| (k, v))) {
        let geometry = KvGeometry { kv_heads: 3, head_dim: 64, v_head_dim: 64, formats: KvPair { k, v } };
        let mut end = BLOCK_HEADER;
        for head in 0..3 {
            for plane in PLANES {
                assert_eq!(geometry.offset(plane, head), end);
                assert_eq!(end % 64, 0, "vectors of a plane share no line with another's");
                end += geometry.plane_bytes(plane);
            }
        }
        assert_eq!(geometry.block_bytes(), end);
        assert_eq!(geometry.token_bytes(), (end - BLOCK_HEADER) / BLOCK_TOKENS);
    }
}

#[test]
fn requests_name_formats_and_parts() {
    let f16 = KvFormats::uniform(KvFormat::F16);
    let formats = |text: &str| text.parse::<KvRequest>().map(|request| request.of(f16).to_string());
    assert_eq!(formats("int8"), Ok("int8, sliding f16".to_owned()));
    assert_eq!(formats("f32"), Ok("f32".to_owned()));
    assert_eq!(formats(""), Ok("f16".to_owned()));
    assert_eq!(formats("k=int8, v=f16"), Ok("k=int8, v=f16, sliding f16".to_owned()));
    assert_eq!(formats("int8,sliding=int8"), Ok("int8".to_owned()));
    assert_eq!(formats("sliding-k=int8"), Ok("f16, sliding k=int8, v=f16".to_owned()));
    assert_eq!(formats("f32,v=f16,sliding-v=f16"), Ok("k=f32, v=f16".to_owned()));
    for (text, part) in [("int9", "`int9`"), (" ", "``"), ("q=int8", "`q`"), ("k=", "``"), ("int8,", "``")] {
        let error = formats(text).unwrap_err();
        assert!(error.contains(part) && error.contains("expected"), "{text}: {error}");
    }
    let mixed = "k=int8,sliding-v=f32".parse::<KvRequest>().unwrap().of(f16);
    assert_eq!(mixed.to_string(), "k=int8, v=f16, sliding k=f16, v=f32");
}

#[test]
fn rows_are_named() {
    for row in [KvRow::new(KvFormat::F16, 64), KvRow::new(KvFormat::Int8, 64), KvRow::new(KvFormat::Fp8, 64)]
    {
        assert_eq!(KvRow::from_name(&row.to_string()), Some(row));
    }
    for name in ["int8", "f16x64", "int8x", "int8x0", "int7x64", "x"] {
        assert_eq!(KvRow::from_name(name), None, "{name}");
    }
}

/// E4M3 from its published parameters: bias 7, 3 bits of mantissa, denormals.
#[test]
fn fp8_rounds_to_the_nearest_of_its_numbers() {
    let number = |code: u8| {
        let (exponent, mantissa) = (i32::from(code >> 3 & 15), f32::from(code & 7));
        let size = match exponent {
            0 => mantissa * 2f32.powi(-9),
            _ => (1.0 + mantissa / 8.0) * 2f32.powi(exponent - 7),
        };
        if code & 0x80 == 0 { size } else { -size }
    };
    let numbers: Vec<f32> = (0..0x7f).map(number).collect();
    let rounded = |x: f32| KvFormat::Fp8.round(&[x]).values[0];
    for (n, pair) in numbers.windows(2).enumerate() {
        let (low, high) = (pair[0], pair[1]);
        let middle = (low + high) / 2.0;
        let even = if n % 2 == 0 { low } else { high };
        for sign in [1.0, -1.0] {
            assert_eq!(rounded(sign * low).to_bits(), (sign * low).to_bits());
            assert_eq!(rounded(sign * middle), sign * even, "{low} to {high}");
            assert_eq!(rounded(sign * middle.next_down()), sign * low, "{low} to {high}");
            assert_eq!(rounded(sign * middle.next_up()), sign * high, "{low} to {high}");
        }
    }
    for (x, expected) in [(449.0, 448.0), (f32::INFINITY, 448.0), (-1e30, -448.0), (f32::NAN, 448.0)] {
        assert_eq!(rounded(x), expected, "{x}");
    }
    let mut codes = Vec::new();
    (KvFormat::Fp8.descriptor().encode)(&numbers, &mut codes);
    assert_eq!(codes, (0..0x7f).collect::<Vec<u8>>());
    let all: Vec<u8> = (0..=255).filter(|code| code & 0x7f != 0x7f).collect();
    assert_eq!(
        (KvFormat::Fp8.descriptor().decode)(&all),
        all.iter().map(|code| number(*code)).collect::<Vec<_>>()
    );
}

/// The elements of all 16 tokens of a plane of one head.
///
/// # Panics
/// When the plane has another number of bytes.
fn load_plane(format: KvFormat, plane: KvPlane, head_dim: usize, bytes: &[u8]) -> Vec<KvElements> {
    assert_eq!(bytes.len(), format.plane_bytes(head_dim));
    let (scales, elements) = bytes.split_at(format.scales_bytes());
    let descriptor = format.descriptor();
    let token = |t: usize| {
        let values = match (plane, descriptor.keys) {
            (KvPlane::K, KeyLayout::Words(words)) => {
                let word = |line: &[u8]| (words.unpack)(line[4 * t..][..4].try_into().expect("four bytes"));
                elements.chunks_exact(4 * BLOCK_TOKENS).flat_map(word).collect()
            }
            (KvPlane::K, KeyLayout::Elements) => {
                let width = format.elements_bytes(1);
                let element = |row: &[u8]| (descriptor.decode)(&row[width * t..][..width])[0];
                elements.chunks_exact(width * BLOCK_TOKENS).map(element).collect()
            }
            (KvPlane::V, _) => {
                let width = format.elements_bytes(head_dim);
                (descriptor.decode)(&elements[t * width..][..width])
            }
        };
        let scale = scales
            .get(4 * t..4 * t + 4)
            .map_or(1.0, |bytes| f32::from_le_bytes(bytes.try_into().expect("four bytes")));
        KvElements { values, scale }
    };
    (0..BLOCK_TOKENS).map(token).collect()
}
