//! Facts about the values of a fused-op sample before they are made.

use crate::ir::RowKind;
use crate::ir::expr;
use kernmill_kernels_gen::expr::Expr;
use std::collections::BTreeMap;

/// Experts per token of a sample.
pub const TOP_K: u32 = 2;

/// Sizes of a sample.
pub struct Sizes {
    /// Experts.
    pub experts: usize,
    /// KV heads.
    pub kv_heads: usize,
    /// Query heads per KV head.
    pub group: usize,
    /// Elements of a head's queries and keys.
    pub head_dim: usize,
    /// Elements of a head's values.
    pub v_head_dim: usize,
    /// Tokens of the vocabulary.
    pub vocab: usize,
}

/// Facts about values, by their names in a pattern.
pub struct KnownValues<'s> {
    /// Sizes of the sample.
    pub sizes: &'s Sizes,
    /// Class of equal columns, by name.
    pub class: BTreeMap<String, usize>,
    /// Classes that are one.
    pub same: Vec<(usize, usize)>,
    /// Columns of classes; of several the first counts.
    pub fixed: Vec<(usize, usize)>,
    /// Classes whose columns are whole heads.
    pub heads: Vec<usize>,
    /// Kinds of rows, by name.
    pub rows: BTreeMap<String, RowKind>,
    /// Names with the same kind of rows.
    pub alike: Vec<(String, String)>,
    /// Names of routings.
    pub routing: Vec<String>,
    /// Names of token ids.
    pub ids: Vec<String>,
}

impl<'s> KnownValues<'s> {
    /// The facts about a sample of these sizes before anything is found out.
    pub fn new(sizes: &'s Sizes) -> KnownValues<'s> {
        KnownValues {
            sizes,
            class: BTreeMap::new(),
            same: Vec::new(),
            fixed: Vec::new(),
            heads: Vec::new(),
            rows: BTreeMap::new(),
            alike: Vec::new(),
            routing: Vec::new(),
            ids: Vec::new(),
        }
    }

    /// The class of a value.
    pub fn class(&mut self, name: &str) -> usize {
        let next = self.class.len();
        *self.class.entry(name.to_owned()).or_insert(next)
    }

    /// Two values have as many columns.
    pub fn same_cols(&mut self, a: &str, b: &str) {
        let pair = (self.class(a), self.class(b));
        self.same.push(pair);
    }

    /// A value has that many columns.
    pub fn cols_are(&mut self, name: &str, cols: usize) {
        let class = self.class(name);
        self.fixed.push((class, cols));
    }

    /// Two values have the same kind of rows.
    pub fn same_rows(&mut self, a: &str, b: &str) {
        self.alike.push((a.to_owned(), b.to_owned()));
    }

    /// A value has such rows.
    pub fn rows_are(&mut self, name: &str, rows: RowKind) {
        self.rows.insert(name.to_owned(), rows);
    }

    /// A value's columns are whole heads.
    pub fn has_heads(&mut self, name: &str) {
        let class = self.class(name);
        self.heads.push(class);
    }
}

/// An expression of that many inputs which none of them leaves out.
pub fn expression(inputs: usize) -> Expr {
    let names: Vec<String> = (0..inputs).map(|i| format!("x{i}")).collect();
    let vars: Vec<&str> = names.iter().map(String::as_str).collect();
    let rest: String = vars[1..].iter().map(|name| format!(" * (0.5 + {name})")).collect();
    expr::parse(&format!("silu(x0){rest}"), &vars).expect("a right expression")
}
