//! The contract suite on the embedded engine.

revisor_store::contract_tests!(crate::fixture::Folder::new());
