//! What a user relies on, whatever the kind: reading, writing, deleting, and in which form objects travel.

mod applying;
mod deleting;
mod discovery;
mod encodings;
mod forms;
mod kinds;
mod namespaces;
mod representations;
mod writing;
