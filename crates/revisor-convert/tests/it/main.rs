//! Tests of conversions as a whole: rules in both directions, what is kept, ways between versions, laws.

mod examples;
mod inferring;
mod keeping;
mod laws;
mod properties;
mod rules;
mod ways;
