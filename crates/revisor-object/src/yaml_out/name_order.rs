//! The order of the members of a mapping.

use std::cmp::Ordering;

use crate::Value;

/// Members in the order of their names. The comparison is the original's, and it goes in circles over names such as
/// `1e3`, `9` and `190`. Merging copes with that; the sorting of the standard library may panic.
pub(super) fn sorted<'a>(mut members: Vec<(&'a str, &'a Value)>) -> Vec<(&'a str, &'a Value)> {
    if members.len() < 2 {
        return members;
    }
    let right = sorted(members.split_off(members.len() / 2));
    let left = sorted(members);
    let mut merged = Vec::with_capacity(left.len() + right.len());
    let mut right = right.into_iter().peekable();
    for member in left {
        while let Some(earlier) = right.next_if(|(name, _)| compare_names(name, member.0) == Ordering::Less) {
            merged.push(earlier);
        }
        merged.push(member);
    }
    merged.extend(right);
    merged
}

/// The order of names: letters after everything else, numbers by their value.
fn compare_names(one: &str, other: &str) -> Ordering {
    if one.bytes().chain(other.bytes()).all(|byte| byte.is_ascii_alphabetic()) {
        return one.cmp(other);
    }
    let (one, other): (Vec<char>, Vec<char>) = (one.chars().collect(), other.chars().collect());
    let Some(at) = one.iter().zip(&other).position(|(one, other)| one != other) else {
        return one.len().cmp(&other.len());
    };
    let (left, right) = (one[at], other[at]);
    match (left.is_alphabetic(), right.is_alphabetic()) {
        (true, true) => return left.cmp(&right),
        (true, false) => return Ordering::Greater,
        (false, true) => return Ordering::Less,
        (false, false) => {}
    }
    // A zero inside a number counts as a digit of it.
    let before = one[..at].iter().rev().take_while(|character| character.is_ascii_digit());
    let is_inside = (left == '0' || right == '0') && before.clone().any(|digit| *digit != '0');
    let number = |text: &[char]| {
        let digits = text[at..].iter().map_while(|character| character.to_digit(10));
        digits.fold((i64::from(is_inside), 0), |(value, count): (i64, usize), digit| {
            (value.wrapping_mul(10).wrapping_add(i64::from(digit)), count + 1)
        })
    };
    number(&one).cmp(&number(&other)).then(left.cmp(&right))
}
