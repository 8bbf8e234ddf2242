//! Conditions on a match, each with the reason for it.

use crate::ir::RowKind;
use kernmill_plan::format::WeightFormat;

/// A condition with the reason for it.
#[derive(Clone, Debug, PartialEq)]
pub struct Guard {
    /// The check.
    pub check: GuardCheck,
    /// Checked only when this optional capture is present.
    pub when: Option<String>,
    /// Why the kernel needs it; ends the refusal's message.
    pub why: String,
}

/// The condition of a guard; captures by name, absent optional ones stand for their input.
#[derive(Clone, Debug, PartialEq)]
pub enum GuardCheck {
    /// The value is read by this one node only (and is not the graph's output).
    UsedOnlyBy {
        /// Capture whose value it is.
        value: String,
        /// The one reader.
        user: String,
    },
    /// The value is the graph's output.
    IsOutput {
        /// Capture.
        value: String,
    },
    /// A number is a multiple of another.
    MultipleOf {
        /// The number.
        quantity: Quantity,
        /// Divisor of the number, above 0.
        divisor: usize,
    },
    /// A number lies in a range, ends included.
    Between {
        /// The number.
        quantity: Quantity,
        /// The least.
        min: usize,
        /// The most.
        max: usize,
    },
    /// The captures' outputs have the same columns.
    SameCols {
        /// Captures.
        of: Vec<String>,
    },
    /// The captured node's matrix has one of these formats.
    Format {
        /// Capture.
        of: String,
        /// Formats that are allowed.
        formats: Vec<WeightFormat>,
    },
    /// The captured value has such rows.
    RowsOf {
        /// Capture.
        of: String,
        /// Kind of the rows.
        rows: RowKind,
    },
    /// The level that code is generated for has all these CPU features.
    Features {
        /// By their names in `/proc/cpuinfo`.
        names: Vec<String>,
    },
}

/// A number that guards speak about.
#[derive(Clone, Debug, PartialEq)]
pub enum Quantity {
    /// Columns of a capture's output.
    Cols(String),
    /// `heads / kv_heads * v_head_dim` of an attention: columns of the results of heads that share a KV head.
    GroupCols(String),
    /// Columns of the captured node's matrix: its inner dimension.
    Inner(String),
}

/// Makes a quantity of a capture.
pub type MakeQuantity = fn(String) -> Quantity;

impl Quantity {
    /// Every quantity by its key in specs.
    pub const NAMED: [(&'static str, MakeQuantity); 3] =
        [("cols", Quantity::Cols), ("group_cols", Quantity::GroupCols), ("inner", Quantity::Inner)];

    /// The capture that the quantity is of.
    pub fn capture(&self) -> &str {
        match self {
            Quantity::Cols(name) | Quantity::GroupCols(name) | Quantity::Inner(name) => name,
        }
    }
}

impl Guard {
    /// Captures that the guard speaks about.
    pub fn captures(&self) -> Vec<&str> {
        match &self.check {
            GuardCheck::UsedOnlyBy { value, user } => vec![value, user],
            GuardCheck::IsOutput { value } => vec![value],
            GuardCheck::MultipleOf { quantity, .. } | GuardCheck::Between { quantity, .. } => {
                vec![quantity.capture()]
            }
            GuardCheck::SameCols { of } => of.iter().map(String::as_str).collect(),
            GuardCheck::Format { of, .. } | GuardCheck::RowsOf { of, .. } => vec![of],
            GuardCheck::Features { .. } => Vec::new(),
        }
    }
}
