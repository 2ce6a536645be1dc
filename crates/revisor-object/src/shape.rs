//! [`Shape`]: the shape in which an object is shown. What is made of a stored object is remembered beside it under its
//! shape, and nothing else decides whether two readers may share it.

/// The shape in which an object is shown: as it is stored, or as a version shows it in one state of what defines that
/// version.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Shape {
    /// Which of the versions of the resource.
    version: u64,
    /// Which state of its definition and of the conversion that belongs to it; zero where neither changes.
    state: u64,
}

impl Shape {
    /// As objects are stored.
    pub const STORED: Shape = Shape { version: 0, state: 0 };

    /// That of a version that is the same for as long as the program runs. The number is its own among the versions of
    /// its resource, and not zero.
    pub fn of_built_in(version: u64) -> Shape {
        Shape { version, state: 0 }
    }

    /// That of a version of a definition. The state is not zero, and no other state of any definition has its number.
    pub fn of_defined(version: usize, state: u64) -> Shape {
        Shape { version: version as u64, state }
    }

    /// Whether objects are shown as they are stored.
    pub fn is_stored(self) -> bool {
        self == Shape::STORED
    }
}
