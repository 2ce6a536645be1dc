//! [`name_prefix`]: the beginning of a name as a number, by which names are compared at little cost.

/// The first eight bytes of a name as a number. Where the numbers of two names differ, the names are in the same order;
/// where they are the same, the names have to be compared.
pub fn name_prefix(name: &str) -> u64 {
    let bytes = name.as_bytes();
    match bytes.first_chunk() {
        Some(first) => u64::from_be_bytes(*first),
        // Byte by byte: to copy as many as there are would be a call for each name.
        None => bytes.iter().rev().fold(0, |number, byte| (number >> 8) | (u64::from(*byte) << 56)),
    }
}
