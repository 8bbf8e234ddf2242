//! Numbers of comparisons, as `vcmpps` and `vpcmpd` take them.

/// Not equal, or unordered.
pub const NOT_EQUAL: i32 = 4;
/// Not less than, or unordered.
pub const NOT_LESS: i32 = 5;
