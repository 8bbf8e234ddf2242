//! The text form of a graph; [`super::parse`] reads it back.

use super::cursor::quote;
use super::{Graph, Node, Role, RopeParameters, RopeScaling, RowSelect, Rows, Tensor, Type};
use kernmill_kernels_gen::row_op::{HeadRotation, RopePairs};
use std::fmt::{self, Display, Write};

impl Display for Graph {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "model {} vocab {} context {}", quote(&self.name), self.vocab, self.max_context)?;
        for start in &self.left_out {
            writeln!(f, "left_out {}", quote(start))?;
        }
        for (i, rope) in self.ropes.iter().enumerate() {
            writeln!(f, "rope {i} {}", rope_text(rope))?;
        }
        for tensor in &self.tensors {
            writeln!(f, "tensor {}", tensor_text(tensor))?;
        }
        writeln!(f, "input %{} : {}", self.values[0].name, self.values[0].ty.text())?;
        for node in &self.nodes {
            writeln!(f, "{}", self.node_text(node))?;
        }
        write!(f, "output %{}", self.value(self.output).name)?;
        if let Some(form) = self.vectors {
            let normalised = if form.normalise { " normalised" } else { "" };
            write!(f, " vectors {}{normalised}", form.pooling.name())?;
        }
        writeln!(f)
    }
}

impl Graph {
    /// One node's line.
    pub fn node_text(&self, node: &Node) -> String {
        let output = self.value(node.output);
        let mut text = format!("%{} = {}", output.name, node.op_text());
        let inputs = node.inputs.iter().map(|&value| format!("%{}", self.value(value).name));
        let tensors = node.tensors.iter().map(|&tensor| format!("@{}", self.tensor(tensor).name));
        for (i, operand) in inputs.chain(tensors).enumerate() {
            let _ = write!(text, "{}{operand}", if i == 0 { " " } else { ", " });
        }
        let _ = write!(text, " : {}", output.ty.text());
        text
    }
}

fn rope_text(rope: &RopeParameters) -> String {
    let scaling = match &rope.scaling {
        RopeScaling::Plain => "plain".into(),
        RopeScaling::Linear { factor } => format!("linear factor {factor:?}"),
        RopeScaling::Yarn { factor, beta_fast, beta_slow, original_context, truncate } => format!(
            "yarn factor {factor:?} beta_fast {beta_fast:?} beta_slow {beta_slow:?} original_context \
             {original_context:?} truncate {truncate}"
        ),
        RopeScaling::Llama3 { factor, low_freq_factor, high_freq_factor, original_context } => format!(
            "llama3 factor {factor:?} low_freq_factor {low_freq_factor:?} high_freq_factor \
             {high_freq_factor:?} original_context {original_context:?}"
        ),
    };
    let HeadRotation { head_dim, rotary_dim, pairs } = rope.head;
    let mut text = format!("head_dim {head_dim} theta {:?} {scaling}", rope.theta);
    if rotary_dim < head_dim {
        let _ = write!(text, " rotary_dim {rotary_dim}");
    }
    if pairs == RopePairs::Neighbours {
        text.push_str(" neighbours");
    }
    if !rope.factors.is_empty() {
        let factors: Vec<String> = rope.factors.iter().map(|factor| format!("{factor:?}")).collect();
        let _ = write!(text, " factors [{}]", factors.join(", "));
    }
    if let Some(factor) = rope.attention_factor {
        let _ = write!(text, " attention_factor {factor:?}");
    }
    text
}

fn tensor_text(tensor: &Tensor) -> String {
    let shape: Vec<String> = tensor.shape.iter().map(ToString::to_string).collect();
    let mut text =
        format!("@{} {} {}[{}]", tensor.name, tensor.role.name(), tensor.format.name(), shape.join(", "));
    if tensor.stored != tensor.format {
        let _ = write!(text, " stored {}", tensor.stored.name());
    }
    let _ = write!(text, " from {}", quote(&tensor.source.name));
    if let Some(scales) = &tensor.source.scales {
        let _ = write!(text, " scales {}", quote(scales));
    }
    match tensor.source.rows {
        RowSelect::ALL => {}
        RowSelect::EVEN => text.push_str(" rows even"),
        RowSelect::ODD => text.push_str(" rows odd"),
        rows => drop(write!(text, " rows {}..{} of {}", rows.take().start, rows.take().end, rows.of())),
    }
    if tensor.source.transposed {
        text.push_str(" transposed");
    }
    if tensor.plus != 0.0 {
        let _ = write!(text, " plus {:?}", tensor.plus);
    }
    text
}

impl Rows {
    /// `T`, `T*4`, `R`.
    pub fn text(self) -> String {
        match self {
            Rows::Tokens => "T".into(),
            Rows::Slots(k) => format!("T*{k}"),
            Rows::LogitRows => "R".into(),
        }
    }
}

impl Type {
    /// Text of the type, such as `f32[T, 512]`.
    pub fn text(self) -> String {
        match self {
            Type::TokenIds => "ids[T]".into(),
            Type::F32(rows, cols) => format!("f32[{}, {cols}]", rows.text()),
            Type::Q8(rows, cols) => format!("q8[{}, {cols}]", rows.text()),
            Type::Q8x2(rows, cols) => format!("q8x2[{}, {cols}]", rows.text()),
            Type::F16(rows, cols) => format!("f16[{}, {cols}]", rows.text()),
            Type::Bf16(rows, cols) => format!("bf16[{}, {cols}]", rows.text()),
            Type::Kv(row, cols) => format!("{row}[T, {cols}]"),
            Type::Routing(k) => format!("routing[T, {k}]"),
        }
    }
}

impl Role {
    /// Every role.
    pub const ALL: [Role; 5] =
        [Role::Matrix, Role::ExpertMatrix, Role::Vector, Role::ExpertVector, Role::Table];

    /// The name in graph text.
    pub fn name(self) -> &'static str {
        match self {
            Role::Matrix => "matrix",
            Role::ExpertMatrix => "expert_matrix",
            Role::Vector => "vector",
            Role::ExpertVector => "expert_vector",
            Role::Table => "table",
        }
    }

    /// Number of dimensions.
    pub fn dims(self) -> usize {
        match self {
            Role::Vector => 1,
            Role::Matrix | Role::ExpertVector | Role::Table => 2,
            Role::ExpertMatrix => 3,
        }
    }
}
