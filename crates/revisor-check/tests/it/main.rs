//! What a change breaks, by tables: of schemas, of what definitions say beside them, and of versions beside each other.

mod beside;
mod definitions;
mod schemas;
