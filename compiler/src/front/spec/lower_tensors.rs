//! The tensors of a [`Spec`](super::Spec) that its nodes read, as tensors of the graph.

use super::lowering::{GraphLowering, MAX_EXTENT};
use super::scope::NameScope;
use super::{Result, RowsDef, Spanned, SpecError, TensorDef, TensorFormat};
use crate::ir::{EXPERT, Role, RowSelect, Tensor, TensorId, TensorSource, whole_columns};
use kernmill_plan::format::WeightFormat;

/// Elements of a tensor at most.
const MAX_ELEMENTS: u64 = 1 << 42;

impl<'a> GraphLowering<'a> {
    /// The graph's tensor for `name.value`, in `role`.
    pub(crate) fn tensor(
        &mut self,
        scope: &NameScope<'a>,
        name: &Spanned<String>,
        role: Role,
    ) -> Result<TensorId> {
        let find = |defs: &'a [TensorDef]| defs.iter().find(|t| t.name.value == name.value);
        let layer_defs: &[TensorDef] = match (&self.spec.layer, scope.layer) {
            (Some(layer), Some(_)) => &layer.tensors,
            _ => &[],
        };
        let (block_defs, block): (&[TensorDef], _) = match scope.block {
            Some((block, _)) => (&block.tensors, block.name.value.as_str()),
            None => (&[], ""),
        };
        let (in_layer, in_block) = (format!("layers.{}", scope.layer.unwrap_or(0)), find(block_defs));
        let (full, def) = match (in_block, find(layer_defs), find(&self.spec.tensors)) {
            (Some(def), ..) => (format!("{in_layer}.{block}.{}", name.value), def),
            (None, Some(def), _) => (format!("{in_layer}.{}", name.value), def),
            (None, None, Some(def)) => (name.value.clone(), def),
            (None, None, None) => {
                let message = format!("there is no tensor `{}`", name.value);
                let label = match scope.block {
                    Some(_) => {
                        "expected the name of a tensor of the block, of [layer.tensors] or of [tensors]"
                    }
                    None => "expected the name of a tensor of [tensors] or [layer.tensors]",
                };
                let error = SpecError::new(scope.source(), name.span.clone(), message, label);
                let known = block_defs.iter().chain(layer_defs).chain(&self.spec.tensors);
                return Err(error.near(&name.value, known.map(|t| t.name.value.as_str())));
            }
        };
        self.used_tensors.insert(def.name.span.start);
        if let Some(&id) = self.made.get(&full) {
            let other = self.graph.tensors[id.0 as usize].role;
            if other == role {
                return Ok(id);
            }
            let message =
                format!("tensor `{full}` is used both as {} and as {}", role_name(other), role_name(role));
            let error =
                scope.error(name.span.clone(), &message, format!("expected {} only", role_name(other)));
            return Err(error.help("give it a second name for the second use"));
        }
        let tensor = make_tensor(scope, def, role, full.clone())?;
        let id = TensorId(self.graph.tensors.len() as u32);
        self.graph.tensors.push(tensor);
        self.made.insert(full, id);
        Ok(id)
    }
}

fn role_name(role: Role) -> &'static str {
    match role {
        Role::Matrix => "a matrix [n, k]",
        Role::ExpertMatrix => "a grouped matrix [experts, n, k]",
        Role::Vector => "a vector [n]",
        Role::ExpertVector => "grouped vectors [experts, n]",
        Role::Table => "a table [vocab, cols]",
    }
}

fn make_tensor(scope: &NameScope<'_>, def: &TensorDef, role: Role, name: String) -> Result<Tensor> {
    let (rank, may_have_blocks) = match role {
        Role::Vector => (1, false),
        Role::ExpertVector => (2, false),
        Role::Matrix | Role::Table => (2, true),
        Role::ExpertMatrix => (3, true),
    };
    let dims = &def.shape;
    if dims.value.len() != rank {
        let message =
            format!("tensor `{name}` has {} dims but is used as {}", dims.value.len(), role_name(role));
        return Err(scope.error(dims.span.clone(), &message, format!("expected {rank} dims")));
    }
    let mut shape = Vec::with_capacity(rank);
    let mut elements = 1u64;
    for dim in &dims.value {
        let extent = scope.whole(dim, &format!("this dim of tensor `{name}`"), 1, MAX_EXTENT)?;
        elements = elements.saturating_mul(extent);
        shape.push(extent as usize);
    }
    if elements > MAX_ELEMENTS {
        let message = format!("tensor `{name}` has {elements} elements");
        return Err(scope.error(dims.span.clone(), &message, format!("expected at most {MAX_ELEMENTS}")));
    }
    let format = match (&def.format, scope.layer) {
        (TensorFormat::ByLayer(list), Some(layer)) => &list.value[layer],
        (format, _) => &format.all()[0],
    };
    if format.value.is_blocked() {
        let stored = format.value.name();
        if !may_have_blocks {
            let message = format!("tensor `{name}` is {}, which cannot be {stored}", role_name(role));
            return Err(scope.error(format.span.clone(), &message, "expected bf16, f16 or f32"));
        }
        let (last, columns) = (shape[rank - 1], whole_columns(format.value));
        if !last.is_multiple_of(columns) {
            let message = format!("rows of {stored} tensor `{name}` have {last} elements");
            let label = format!("expected a multiple of {columns}");
            return Err(scope.error(dims.value[rank - 1].span.clone(), &message, label));
        }
    }
    if let (Some(scales), Role::Table) = (&def.scales, role) {
        let message = format!("tensor `{name}` is {}, which has its scales within", role_name(role));
        return Err(scope.error(scales.span.clone(), &message, "expected with matrices only"));
    }
    let vector = matches!(role, Role::Vector | Role::ExpertVector);
    let fill = |name: &Spanned<String>| match scope.layer {
        Some(layer) => name.value.replace("{layer}", &layer.to_string()),
        None => name.value.clone(),
    };
    if let Some(span) = &def.transposed
        && !matches!(role, Role::Matrix | Role::ExpertMatrix)
    {
        let message = format!("tensor `{name}` is {}, which cannot be transposed", role_name(role));
        return Err(scope.error(span.clone(), &message, "expected with matrices only"));
    }
    let grouped = matches!(role, Role::ExpertMatrix | Role::ExpertVector);
    if def.from.value.contains(EXPERT) && !grouped {
        let message = format!("tensor `{name}` is {}, which has no experts", role_name(role));
        let label = format!("expected a name without {EXPERT}");
        return Err(scope.error(def.from.span.clone(), &message, label));
    }
    let plus = match &def.plus {
        Some(number) => {
            if role != Role::Vector {
                let message =
                    format!("tensor `{name}` is {}, to which nothing can be added", role_name(role));
                return Err(scope.error(number.span.clone(), &message, "expected with vectors only"));
            }
            scope.evaluate(number)?.to_f64() as f32
        }
        None => 0.0,
    };
    let mut tensor = Tensor {
        plus,
        source: TensorSource {
            name: fill(&def.from),
            scales: def.scales.as_ref().map(fill),
            rows: RowSelect::ALL,
            transposed: def.transposed.is_some(),
        },
        name,
        role,
        shape,
        stored: format.value,
        format: if vector { WeightFormat::F32 } else { format.value },
    };
    if let Some(rows) = &def.rows {
        tensor.source.rows = select_rows(scope, def, rows, &tensor)?;
    }
    Ok(tensor)
}

/// The rows of the checkpoint tensor that are the tensor's.
fn select_rows(scope: &NameScope<'_>, def: &TensorDef, rows: &RowsDef, tensor: &Tensor) -> Result<RowSelect> {
    let name = &tensor.name;
    let of = scope.whole(&rows.of, "`of`", 1, MAX_EXTENT)?;
    let first = scope.whole(&rows.first, "the first row", 0, of - 1)?;
    let end = scope.whole(&rows.end, "the end of the rows", first + 1, of)?;
    let dim = tensor.row_dim();
    let (taken, extent) = (end - first, tensor.shape[dim] as u64);
    let span = || def.shape.value[dim].span.clone();
    if !extent.is_multiple_of(taken) {
        let message = format!("tensor `{name}` takes {taken} rows of every {of}, and has {extent}");
        return Err(scope.error(span(), &message, format!("expected a multiple of {taken}")));
    }
    let others = tensor.shape.iter().product::<usize>() as u64 / extent;
    let stored = (extent / taken).saturating_mul(of);
    if stored > MAX_EXTENT || stored.saturating_mul(others) > MAX_ELEMENTS {
        let message = format!("tensor `{name}` is {extent} rows of {stored}");
        return Err(scope.error(
            span(),
            &message,
            format!("expected at most {MAX_EXTENT} rows, {MAX_ELEMENTS} elements"),
        ));
    }
    Ok(RowSelect::new(of as usize, first as usize..end as usize).expect("the numbers are in order"))
}
