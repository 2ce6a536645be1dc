//! What does not take memory must not begin to.

use allocation_counter::measure;
use revisor_costs::asking::Asking;
use revisor_costs::queueing::Queueing;

#[test]
fn whoever_is_known_is_allowed_without_taking_memory() {
    let asking = Asking::new().expect("keys can be made");
    type Ask = fn(&Asking) -> bool;
    for (name, ask) in [("certificate", Asking::by_certificate as Ask), ("token", Asking::by_token)] {
        // What is found out once is remembered.
        assert!(ask(&asking), "{name}");
        let taken = measure(|| assert!(ask(&asking), "{name}"));
        assert_eq!(taken.count_total, 0, "{name}");
    }
}

#[test]
fn whoever_finds_a_seat_is_served_without_taking_memory() {
    let mut queueing = Queueing::new().expect("is well-formed");
    assert!((0..1000).all(|_| queueing.pass()));
    let taken = measure(|| assert!(queueing.pass()));
    assert_eq!(taken.count_total, 0);
}
