//! Numbers of comparisons, as `vcmpps` and `vpcmpd` take them.

/// Less than, and ordered.
pub const LESS: i32 = 1;
/// Not equal, or unordered.
pub const NOT_EQUAL: i32 = 4;
/// Not less than, or unordered.
pub const NOT_LESS: i32 = 5;
