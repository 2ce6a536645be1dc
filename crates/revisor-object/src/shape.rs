//! [`Shape`]: the shape in which an object is shown. What is made of a stored object is remembered beside it under its
//! shape, and nothing else decides whether two readers may share it.

use std::num::NonZeroU64;

/// The shape in which an object is shown: as it is stored, or as a version shows it in one state of what defines that
/// version. One number, because every stored object has room for it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Shape(NonZeroU64);

/// How many bits tell the versions of a definition apart, which has room for far fewer.
const VERSION_BITS: u32 = 16;

impl Shape {
    /// As objects are stored.
    pub const STORED: Shape = Shape(NonZeroU64::MAX);

    /// That of a version that is the same for as long as the program runs. The number is its own among the versions of
    /// its resource, and not zero.
    pub fn of_built_in(version: u64) -> Shape {
        Shape::numbered(version)
    }

    /// That of a version of a definition. The state is not zero, and no other state of any definition has its number.
    pub fn of_defined(version: usize, state: u64) -> Shape {
        let version = version as u64 & ((1 << VERSION_BITS) - 1);
        Shape::numbered(state << VERSION_BITS | version)
    }

    fn numbered(number: u64) -> Shape {
        Shape(NonZeroU64::new(number).unwrap_or(NonZeroU64::MIN))
    }

    /// Whether objects are shown as they are stored.
    pub fn is_stored(self) -> bool {
        self == Shape::STORED
    }
}
