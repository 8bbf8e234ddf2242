//! Gathers the tensors of each quantised matrix, and holds their shapes to each other.

use super::keep::{Converted, encoding_of};
use super::matrix::{CodeLayout, GroupFloats, Quantised, StoredPiece, Zeros, bytes_of};
use super::method::{Method, MlxKind};
use crate::error::{CheckpointError, Result};
use crate::tensors::{Checkpoint, MappedTensor};
use kernmill_os::text::shortened;
use safetensors::Dtype;

/// Types of words.
const WORDS: [Dtype; 2] = [Dtype::I32, Dtype::U32];
/// Types of scales and biases.
const FLOATS: [Dtype; 3] = [Dtype::F16, Dtype::BF16, Dtype::F32];
/// Rows and columns of a block of FP8 where nothing says others.
const BLOCK_SIDES: [usize; 2] = [128, 128];
/// Ends of the names of tensors that say how a GPU rounds inputs or keeps keys and values, which presets
/// decide here.
const OF_INPUTS: [&str; 7] = [
    ".input_scale",
    ".input_zero_point",
    ".output_scale",
    ".activation_scale",
    ".k_scale",
    ".v_scale",
    ".q_scale",
];

/// Puts a tensor in place of those of each quantised matrix.
///
/// # Errors
/// If a matrix lacks a tensor, has one of another type or shape, or its inputs are in another order.
pub(super) fn gather(checkpoint: &mut Checkpoint, method: &Method) -> Result<Vec<Converted>> {
    let mark = match method {
        Method::Gptq { .. } | Method::Awq { .. } => ".qweight",
        Method::CompressedTensors { .. } | Method::Fp8 { .. } => {
            checkpoint.tensors.retain(|name, _| !OF_INPUTS.iter().any(|end| name.ends_with(end)));
            ".weight"
        }
        Method::Mlx { .. } => ".scales",
    };
    let of = |name: &String| {
        let packed = name.strip_suffix(".weight_packed").filter(|_| mark == ".weight");
        packed.or_else(|| name.strip_suffix(mark)).map(str::to_owned)
    };
    let modules: Vec<String> = checkpoint.tensors.keys().filter_map(of).collect();
    let mut converted: Vec<Converted> = Vec::new();
    for module in modules {
        let mut module = Module { checkpoint, name: module };
        let Some((codes, rows, matrix)) = module.matrix(method)? else { continue };
        let shards = &module.checkpoint.shards;
        let (encoding, what) = encoding_of(&matrix, shards, bytes_of(shards, &codes), rows);
        let (name, width) = (format!("{}.weight", module.name), codes.shape.last().copied().unwrap_or(1));
        if !what.is_empty() {
            match converted.iter_mut().find(|converted| converted.what == what) {
                Some(converted) => converted.count += 1,
                None => converted.push(Converted { what, count: 1, first: name.clone() }),
            }
        }
        let shape = vec![rows, matrix.columns];
        let entry = MappedTensor {
            dtype: Dtype::F32,
            encoding,
            shape,
            quantised: Some(Box::new((matrix, width))),
            paired: None,
            shard: codes.shard,
            range: codes.range,
        };
        if checkpoint.tensors.insert(name.clone(), entry).is_some() {
            let what = format!("tensor `{}` is there both quantised and not", shortened(&name));
            return Err(CheckpointError::corrupt(&checkpoint.path, what));
        }
        checkpoint.release(&name, 0..usize::MAX);
    }
    Ok(converted)
}

/// The tensors whose names begin with a module's.
struct Module<'a> {
    checkpoint: &'a mut Checkpoint,
    name: String,
}

/// The tensor of codes, the number of rows, and the rest.
type FoundMatrix = (StoredPiece, usize, Quantised);

impl Module<'_> {
    fn matrix(&mut self, method: &Method) -> Result<Option<FoundMatrix>> {
        match method {
            Method::Gptq { bits, group, whole_zeros } => {
                let more = u8::from(!whole_zeros);
                self.across(CodeLayout::Across { bits: *bits }, *group, more).map(Some)
            }
            Method::Awq { group } => self.across(CodeLayout::Awq, *group, 0).map(Some),
            Method::CompressedTensors { groups } => self.compressed(groups),
            Method::Fp8 { block } => self.fp8(block.unwrap_or(BLOCK_SIDES)),
            Method::Mlx { all, own } => {
                let kind = own.get(&self.name).copied().unwrap_or(*all);
                self.mlx(kind).map(Some)
            }
        }
    }

    /// An error about one of the module's tensors.
    fn wrong<T>(&self, tensor: &str, what: &str) -> Result<T> {
        let what = format!("tensor `{}.{tensor}` {what}", shortened(&self.name));
        Err(CheckpointError::corrupt(&self.checkpoint.path, what))
    }

    fn has(&self, tensor: &str, dtypes: &[Dtype]) -> bool {
        let found = self.checkpoint.tensors.get(&format!("{}.{tensor}", self.name));
        found.is_some_and(|found| dtypes.contains(&found.dtype))
    }

    /// Takes a tensor of one of these types out of the checkpoint, if it is there.
    fn take(&mut self, tensor: &str, dtypes: &[Dtype]) -> Result<Option<StoredPiece>> {
        let Some(found) = self.checkpoint.tensors.remove(&format!("{}.{tensor}", self.name)) else {
            return Ok(None);
        };
        if dtypes.contains(&found.dtype) {
            let MappedTensor { shard, dtype, shape, range, .. } = found;
            return Ok(Some(StoredPiece { shard, dtype, shape, range }));
        }
        let expected: Vec<String> = dtypes.iter().map(|dtype| format!("{dtype:?}")).collect();
        self.wrong(tensor, &format!("is {:?}, expected {}", found.dtype, expected.join(" or ")))
    }

    /// Takes a tensor that must be there, with rows and columns.
    fn matrix_of(&mut self, tensor: &str, dtypes: &[Dtype]) -> Result<(StoredPiece, [usize; 2])> {
        let Some(found) = self.take(tensor, dtypes)? else {
            return self.wrong(tensor, "is missing: its matrix is quantised");
        };
        match *found.shape.as_slice() {
            [rows, columns] if rows > 0 && columns > 0 => Ok((found, [rows, columns])),
            _ => {
                let what = format!("has shape {:?}, expected rows and columns", found.shape);
                self.wrong(tensor, &what)
            }
        }
    }

    /// An error unless a tensor has this shape.
    fn check(&self, tensor: &str, found: &[usize], expected: &[usize]) -> Result<()> {
        if found == expected {
            return Ok(());
        }
        self.wrong(tensor, &format!("has shape {found:?}, expected {expected:?}"))
    }

    /// Inputs that share one of `groups` scales of a row; `stated` are those that config.json says, if any.
    fn group(&self, tensor: &str, columns: usize, groups: usize, stated: &[usize]) -> Result<usize> {
        let is_stated = |group: usize| groups == 1 || stated.is_empty() || stated.contains(&group);
        if columns.is_multiple_of(groups) && is_stated(columns / groups) {
            return Ok(columns / groups);
        }
        let sizes = match stated {
            [] => "of one size".to_owned(),
            sizes => format!("of {}", sizes.iter().map(usize::to_string).collect::<Vec<_>>().join(" or ")),
        };
        self.wrong(tensor, &format!("has {groups} groups for {columns} inputs, expected groups {sizes}"))
    }

    /// GPTQ and AWQ: words across rows.
    fn across(&mut self, codes: CodeLayout, stated: Option<usize>, more: u8) -> Result<FoundMatrix> {
        let per = codes.per_word();
        let (words, [lines, width]) = self.matrix_of("qweight", &WORDS)?;
        let (rows, columns) = match codes {
            CodeLayout::Awq => (width * per, lines),
            _ => (width, lines * per),
        };
        let (scales, [groups, scale_rows]) = self.matrix_of("scales", &FLOATS)?;
        self.check("scales", &[groups, scale_rows], &[groups, rows])?;
        let stated: Vec<usize> = stated.into_iter().collect();
        let group = self.group("scales", columns, groups, &stated)?;
        let (zeros, shape) = self.matrix_of("qzeros", &WORDS)?;
        self.check("qzeros", &shape, &[groups, rows.div_ceil(per)])?;
        if let Some(order) = self.take("g_idx", &WORDS)? {
            self.check("g_idx", &order.shape, &[columns])?;
            self.check_order("g_idx", &order, group)?;
        }
        let scales = GroupFloats { tensor: scales, of: [1, group], stride: [1, rows] };
        let zeros = Zeros::Groups { tensor: zeros, codes, more };
        Ok((words, rows, Quantised { columns, codes, scales, zeros }))
    }

    /// An error unless each input is in the group that its number says.
    fn check_order(&self, name: &str, order: &StoredPiece, group: usize) -> Result<()> {
        let groups = bytes_of(&self.checkpoint.shards, order).as_chunks::<4>().0;
        let in_order = |(i, group_of): (usize, &[u8; 4])| u32::from_le_bytes(*group_of) as usize == i / group;
        if groups.iter().enumerate().all(in_order) {
            return Ok(());
        }
        let what = format!(
            "tensor `{}.{name}` has inputs in another order (`desc_act` or `actorder`), which is not read: \
             use a checkpoint that was quantised without it, or a GGUF file",
            shortened(&self.name)
        );
        Err(CheckpointError::Unsupported { path: self.checkpoint.path.clone(), what })
    }

    /// A matrix as compressed-tensors writes it; nothing if it is not quantised.
    fn compressed(&mut self, stated: &[usize]) -> Result<Option<FoundMatrix>> {
        if self.has("weight", &[Dtype::F8_E4M3]) {
            return self.fp8(BLOCK_SIDES);
        }
        let (data, rows, columns, codes) = if self.has("weight_packed", &WORDS) {
            let (words, [rows, width]) = self.matrix_of("weight_packed", &WORDS)?;
            let columns = self.packed_columns(rows, width)?;
            let bits = if columns.div_ceil(8) == width { 4 } else { 8 };
            if columns.div_ceil(32 / bits) != width {
                let what = format!("has {width} words for {columns} inputs, expected 4 or 8 bits");
                return self.wrong("weight_packed", &what);
            }
            (words, rows, columns, CodeLayout::Along { bits })
        } else if self.has("weight", &[Dtype::I8]) {
            let (bytes, [rows, columns]) = self.matrix_of("weight", &[Dtype::I8])?;
            (bytes, rows, columns, CodeLayout::Bytes)
        } else {
            return Ok(None);
        };
        let Some(scales) = self.take("weight_scale", &FLOATS)? else {
            return self.wrong("weight_scale", "is missing: its matrix is quantised");
        };
        let scales = self.factors("weight_scale", scales, [rows, columns], stated, None)?;
        let group = scales.of[1];
        let zeros = self.compressed_zeros(&scales, rows, columns, codes.bits())?;
        if let Some(order) = self.take("weight_g_idx", &WORDS)? {
            self.check("weight_g_idx", &order.shape, &[columns])?;
            self.check_order("weight_g_idx", &order, group)?;
        }
        Ok(Some((data, rows, Quantised { columns, codes, scales, zeros })))
    }

    /// Columns of a matrix in words, as `weight_shape` says.
    fn packed_columns(&mut self, rows: usize, width: usize) -> Result<usize> {
        let Some(shape) = self.take("weight_shape", &[Dtype::I64, Dtype::I32])? else {
            return self.wrong("weight_shape", "is missing: its matrix is quantised");
        };
        self.check("weight_shape", &shape.shape, &[2])?;
        let bytes = bytes_of(&self.checkpoint.shards, &shape);
        let number = |bytes: &[u8]| bytes.iter().rev().fold(0u64, |n, byte| n << 8 | u64::from(*byte));
        let [found, columns] = [0, 1].map(|i| number(&bytes[i * bytes.len() / 2..(i + 1) * bytes.len() / 2]));
        if found != rows as u64 || columns == 0 || columns > 8 * width as u64 {
            let what = format!("says {found} rows and {columns} columns of {rows} rows of {width} words");
            return self.wrong("weight_shape", &what);
        }
        Ok(columns as usize)
    }

    /// The zeros of a matrix of compressed-tensors: half of the range of its codes where it has none.
    fn compressed_zeros(
        &mut self,
        scales: &GroupFloats,
        rows: usize,
        columns: usize,
        bits: usize,
    ) -> Result<Zeros> {
        let Some(tensor) = self.take("weight_zero_point", &[Dtype::I8, Dtype::I32])? else {
            return Ok(Zeros::Same(1 << (bits - 1)));
        };
        let groups = columns / scales.of[1];
        if tensor.dtype == Dtype::I8 {
            let all_zero = bytes_of(&self.checkpoint.shards, &tensor).iter().all(|zero| *zero == 0);
            if all_zero {
                return Ok(Zeros::Same(1 << (bits - 1)));
            }
            match tensor.shape.as_slice() {
                [found] => self.check("weight_zero_point", &[*found, 1], &[rows, groups])?,
                found => self.check("weight_zero_point", found, &[rows, groups])?,
            }
            return Ok(Zeros::Bytes { tensor, bits });
        }
        self.check("weight_zero_point", &tensor.shape, &[rows.div_ceil(32 / bits), groups])?;
        Ok(Zeros::Rows { tensor, bits })
    }

    /// Scales of a matrix: one, or one for each row, for each of its groups, or for each block.
    fn factors(
        &self,
        name: &str,
        tensor: StoredPiece,
        [rows, columns]: [usize; 2],
        stated: &[usize],
        block: Option<[usize; 2]>,
    ) -> Result<GroupFloats> {
        let (of, stride) = match (tensor.shape.as_slice(), block) {
            ([] | [1] | [1, 1], _) => ([rows, columns], [0, 0]),
            (&[found], _) if found == rows => ([1, columns], [1, 0]),
            (&[lines, groups], Some([high, wide]))
                if lines != rows && [lines, groups] == [rows.div_ceil(high), columns.div_ceil(wide)] =>
            {
                ([high, wide], [groups, 1])
            }
            (&[found, groups], _) if found == rows && groups > 0 => {
                ([1, self.group(name, columns, groups, stated)?], [groups, 1])
            }
            (found, _) => {
                let what = format!("has shape {found:?}, expected one for each of {rows} rows");
                return self.wrong(name, &what);
            }
        };
        Ok(GroupFloats { tensor, of, stride })
    }

    /// FP8; nothing if the matrix is not in it.
    fn fp8(&mut self, block: [usize; 2]) -> Result<Option<FoundMatrix>> {
        if !self.has("weight", &[Dtype::F8_E4M3]) {
            return Ok(None);
        }
        let (bytes, [rows, columns]) = self.matrix_of("weight", &[Dtype::F8_E4M3])?;
        let mut name = "weight_scale_inv";
        let mut scales = self.take(name, &FLOATS)?;
        if scales.is_none() {
            name = "weight_scale";
            scales = self.take(name, &FLOATS)?;
        }
        let Some(scales) = scales else {
            return self.wrong(name, "is missing: its matrix is in FP8");
        };
        let scales = self.factors(name, scales, [rows, columns], &[], Some(block))?;
        Ok(Some((bytes, rows, Quantised { columns, codes: CodeLayout::E4m3, scales, zeros: Zeros::Same(0) })))
    }

    /// MLX: words along rows.
    fn mlx(&mut self, kind: MlxKind) -> Result<FoundMatrix> {
        let MlxKind { bits, group } = kind;
        let (words, [rows, width]) = self.matrix_of("weight", &WORDS)?;
        let columns = width * (32 / bits);
        let (scales, shape) = self.matrix_of("scales", &FLOATS)?;
        self.check("scales", &[shape[0]], &[rows])?;
        self.group("scales", columns, shape[1], &[group])?;
        let (biases, biases_shape) = self.matrix_of("biases", &FLOATS)?;
        self.check("biases", &biases_shape, &shape)?;
        let factors = |tensor| GroupFloats { tensor, of: [1, columns / shape[1]], stride: [shape[1], 1] };
        let (scales, zeros) = (factors(scales), Zeros::Biases(factors(biases)));
        Ok((words, rows, Quantised { columns, codes: CodeLayout::Along { bits }, scales, zeros }))
    }
}
