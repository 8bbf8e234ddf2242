//! Tensors and configurations that are wrong: one line says which, and what was expected.

use super::*;

/// `tensors` with one changed: of another type, of another shape with as many bytes, or gone.
fn changed(tensors: &[Stored], name: &str, to: Option<(Dtype, &[usize])>) -> Vec<Stored> {
    let mut tensors = tensors.to_vec();
    let at = tensors.iter().position(|tensor| tensor.0 == format!("m.{name}")).unwrap();
    match to {
        None => drop(tensors.remove(at)),
        Some((dtype, shape)) => {
            let bytes = shape.iter().product::<usize>() * dtype.bitsize() / 8;
            tensors[at].1 = dtype;
            tensors[at].2 = shape.to_vec();
            tensors[at].3.resize(bytes, 0);
        }
    }
    tensors
}

#[test]
fn tensors_that_do_not_fit_each_other_are_named() {
    let known = Known::new(4, 32, None);
    let gptq = gptq_config(r#""bits": 4, "group_size": 32"#);
    let other = gptq_config(r#""bits": 4, "group_size": 64"#);
    let awq = r#"{"quantization_config": {"quant_method": "awq", "w_bit": 4, "q_group_size": 32}}"#;
    let mlx = r#"{"quantization": {"bits": 4, "group_size": 32}}"#;
    let (first, packed) = (known.gptq(1), known.packed(true, Dtype::BF16));
    let cases: Vec<(Vec<Stored>, &str, &str)> = vec![
        (changed(&first, "scales", None), &gptq, "tensor `m.scales` is missing: its matrix is quantised"),
        (changed(&first, "qzeros", None), &gptq, "tensor `m.qzeros` is missing"),
        (
            changed(&first, "qweight", Some((Dtype::F32, &[16, 24]))),
            &gptq,
            "`m.qweight` is F32, expected I32 or U32",
        ),
        (
            changed(&first, "qweight", Some((Dtype::I32, &[16 * 24]))),
            &gptq,
            "has shape [384], expected rows and columns",
        ),
        (changed(&first, "qweight", Some((Dtype::I32, &[0, 24]))), &gptq, "has shape [0, 24], expected rows"),
        (
            changed(&first, "qweight", Some((Dtype::I32, &[24, 16]))),
            &gptq,
            "`m.scales` has shape [4, 24], expected [4, 16]",
        ),
        (
            changed(&first, "scales", Some((Dtype::F16, &[3, 24]))),
            &gptq,
            "has 3 groups for 128 inputs, expected groups of 32",
        ),
        (changed(&first, "scales", Some((Dtype::F16, &[0, 24]))), &gptq, "has shape [0, 24]"),
        (
            changed(&first, "scales", Some((Dtype::I8, &[4, 24]))),
            &gptq,
            "`m.scales` is I8, expected F16 or BF16 or F32",
        ),
        (
            changed(&first, "qzeros", Some((Dtype::I32, &[4, 4]))),
            &gptq,
            "`m.qzeros` has shape [4, 4], expected [4, 3]",
        ),
        (
            changed(&first, "g_idx", Some((Dtype::I32, &[64]))),
            &gptq,
            "`m.g_idx` has shape [64], expected [128]",
        ),
        (first.clone(), &other, "has 4 groups for 128 inputs, expected groups of 64"),
        (
            changed(&known.awq(), "qweight", Some((Dtype::I32, &[128, 2]))),
            awq,
            "`m.scales` has shape [4, 24], expected [4, 16]",
        ),
        (changed(&packed, "weight_shape", None), COMPRESSED, "`m.weight_shape` is missing"),
        (
            changed(&packed, "weight_shape", Some((Dtype::I64, &[1]))),
            COMPRESSED,
            "has shape [1], expected [2]",
        ),
        (changed(&packed, "weight_scale", None), COMPRESSED, "`m.weight_scale` is missing"),
        (
            changed(&packed, "weight_scale", Some((Dtype::BF16, &[24, 0]))),
            COMPRESSED,
            "has shape [24, 0], expected one for each of 24 rows",
        ),
        (
            changed(&packed, "weight_scale", Some((Dtype::BF16, &[24, 5]))),
            COMPRESSED,
            "has 5 groups for 128 inputs, expected groups of one size",
        ),
        (
            changed(&packed, "weight_zero_point", Some((Dtype::I32, &[4, 3]))),
            COMPRESSED,
            "`m.weight_zero_point` has shape [4, 3], expected [3, 4]",
        ),
        (
            changed(&packed, "weight_packed", Some((Dtype::I32, &[24, 20]))),
            COMPRESSED,
            "has 20 words for 128 inputs, expected 4 or 8 bits",
        ),
        (changed(&known.mlx(), "biases", None), mlx, "`m.biases` is missing"),
        (
            changed(&known.mlx(), "scales", Some((Dtype::F16, &[24, 2]))),
            mlx,
            "has 2 groups for 128 inputs, expected groups of 32",
        ),
        (changed(&known.mlx(), "weight", Some((Dtype::F32, &[24, 16]))), mlx, "`m.weight` is F32"),
    ];
    for (tensors, config, says) in cases {
        let error = open(&tensors, config).unwrap_err();
        assert!(error.contains(says) && !error.contains('\n'), "{says}: {error}");
    }
    let mut twice = first.clone();
    twice.push(stored("weight", Dtype::F16, &[1], vec![0; 2]));
    assert!(open(&twice, &gptq).unwrap_err().contains("`m.weight` is there both quantised and not"));
    let mut shuffled = first;
    shuffled[3].3.rotate_left(4);
    let error = open(&shuffled, &gptq).unwrap_err();
    assert!(
        error.contains("not supported: tensor `m.g_idx` has inputs in another order (`desc_act`"),
        "{error}"
    );
    let mut shape = packed;
    shape[2].3[8] = 200;
    assert!(
        open(&shape, COMPRESSED).unwrap_err().contains("says 24 rows and 200 columns of 24 rows of 16 words")
    );
}

#[test]
fn what_a_config_asks_for_and_is_not_read_is_named() {
    let own = |method: &str, more: &str| {
        format!(r#"{{"quantization_config": {{"quant_method": "{method}", {more}}}}}"#)
    };
    let kinds = |weights: &str| format!(r#""config_groups": {{"group_0": {{"weights": {weights}}}}}"#);
    for (config, says) in [
        (own("gptq", r#""bits": 3, "group_size": 32"#), "`quantization_config.bits` is 3: expected 4 or 8"),
        (
            own("gptq", r#""bits": 4, "group_size": 0"#),
            "`quantization_config.group_size` is 0: expected a whole",
        ),
        (own("gptq", r#""bits": 4"#), "`quantization_config.group_size` is missing"),
        (
            own("gptq", r#""bits": 4, "group_size": 32, "checkpoint_format": "marlin""#),
            "expected gptq or gptq_v2",
        ),
        (
            own("awq", r#""bits": 4, "group_size": 32, "version": "gemv""#),
            "`quantization_config.version` is \"gemv\"",
        ),
        (own("awq", r#""bits": 8, "group_size": 32"#), "bits` is 8: expected 4 "),
        (
            own("compressed-tensors", r#""format": "nvfp4-pack-quantized""#),
            "expected pack-quantized, int-quantized",
        ),
        (own("compressed-tensors", &kinds(r#"{"num_bits": 2}"#)), "num_bits` is 2: expected 4 or 8"),
        (
            own("compressed-tensors", r#""sparsity_config": {"format": "sparse-24-bitmask"}"#),
            "sparse matrices",
        ),
        (own("fp8", r#""fmt": "e5m2""#), "`quantization_config.fmt` is \"e5m2\": expected e4m3"),
        (own("fp8", r#""weight_block_size": [128, 0]"#), "expected two whole numbers"),
        (r#"{"quantization": {"bits": 3, "group_size": 32}}"#.into(), "`quantization.bits` is 3"),
        (r#"{"quantization": {"bits": 4, "group_size": 32, "mode": "mxfp4"}}"#.into(), "expected affine"),
    ] {
        let error = open(&[], &config).unwrap_err();
        assert!(error.starts_with("config.json: not supported: ") && error.contains(says), "{says}: {error}");
    }
    for config in
        ["", "[]", "{}", r#"{"quantization_config": {"quant_method": "mxfp4"}}"#, r#"{"quantization": 1}"#]
    {
        open(&[], config).unwrap();
    }
}
