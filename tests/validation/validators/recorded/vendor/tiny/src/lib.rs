pub const ZERO: i32 = 0;
