//! The contract suite on etcd: a current one, and the oldest that is to work.

mod current {
    revisor_store::contract_tests!(crate::etcd::Etcd::start());
}

mod oldest {
    revisor_store::contract_tests!(crate::etcd::Etcd::start_oldest());
}
