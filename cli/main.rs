//! The `kernmill` command line.

fn main() {}
