//! The contract suite on etcd.

revisor_store::contract_tests!(crate::etcd::Etcd::start());
