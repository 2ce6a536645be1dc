//! The measurements themselves: what is measured, not how long it takes.

use std::collections::HashSet;
use std::time::Duration;

use revisor_growth::growth::Growth;
use revisor_growth::objects::{renamed, small};
use revisor_growth::places::Place;
use revisor_growth::report::{Measured, Report};
use revisor_growth::server::Server;
use revisor_growth::survey::{Extent, Survey};
use revisor_growth::{custom, texts};
use revisor_schema::{Shape, StructId, Types};

#[test]
fn every_list_and_map_of_every_kind_is_measured() {
    let server = Server::start().expect("a server");
    let catalog = server.catalog();
    for resource in catalog.resources() {
        let (types, root) = resource.typed();
        let places = Place::all(types, root);
        let measured: HashSet<(StructId, &str)> =
            places.iter().filter_map(|place| Some((place.owner, &**place.path.last()?))).collect();
        for id in reachable(types, root) {
            for field in &types.get(id).fields {
                if matches!(field.shape, Shape::List(_) | Shape::Map(_)) {
                    assert!(measured.contains(&(id, &*field.name)), "{resource:?} {}", field.name);
                }
            }
        }
    }
}

/// All types that a type is made of.
fn reachable(types: &Types, root: StructId) -> HashSet<StructId> {
    let mut found = HashSet::from([root]);
    let mut pending = vec![root];
    while let Some(id) = pending.pop() {
        for field in &types.get(id).fields {
            let mut shape = &field.shape;
            while let Shape::List(element) | Shape::Map(element) = shape {
                shape = element;
            }
            if let Shape::Struct(id) | Shape::Either(_, id) = shape
                && found.insert(*id)
            {
                pending.push(*id);
            }
        }
    }
    found
}

#[test]
fn there_is_something_small_to_begin_with_of_every_kind() {
    let server = Server::start().expect("a server");
    let mut refused = Vec::new();
    for (number, resource) in server.catalog().resources().filter(|resource| resource.is_stored()).enumerate() {
        let object = renamed(&small(resource), number);
        if let Err(error) = server.store(resource, &object) {
            refused.push(format!("{} {}: {error:?}", resource.api_version, resource.plural));
        }
        server.remove(resource, &object);
    }
    assert_eq!(refused, Vec::<String>::new());
}

#[test]
fn each_way_of_writing_is_measured() {
    let server = Server::start().expect("a server");
    for (only, want) in [
        ("v1 services spec.ports", &["create", "update", "strategic", "merge", "apply", "table"][..]),
        ("v1 nodes status.addresses", &["status", "table"]),
        ("custom list by a key", &["create", "update", "merge", "apply", "table"]),
        ("YAML", &["read"]),
    ] {
        let extent = Extent { items: 16, bytes: 10_000, only: only.to_owned(), is_quick: false };
        let mut report = Report::default();
        Survey::new(&server, &extent).run(&mut report, |_| {});
        custom::run(&server, &extent, &mut report).expect("definitions are taken");
        texts::run(&server, &extent, &mut report).expect("there are texts");
        let ways: HashSet<&str> = report.measured().iter().map(|measured| measured.way).collect();
        assert_eq!(ways, want.iter().copied().collect(), "{only}");
        assert_eq!(report.refused(), &[] as &[String], "{only}");
    }
}

#[test]
fn what_grows_faster_than_its_input_is_named() {
    let mut report = Report::default();
    for (place, large) in [("linear", 4), ("quadratic", 16), ("constant", 1)] {
        report.add(Measured {
            subject: "v1 things".to_owned(),
            place: place.to_owned(),
            variation: "distinct",
            way: "create",
            growth: Growth {
                items: 100,
                small: Duration::from_millis(1),
                large: Duration::from_millis(large),
                reading: None,
            },
            is_taken: true,
        });
    }
    let named: Vec<&str> = report.above(1.2).iter().map(|measured| measured.place.as_str()).collect();
    assert_eq!(named, ["quadratic"]);
    let shown = report.table(0, 1.2);
    assert!(shown.contains("2.00") && shown.contains("v1 things quadratic") && !shown.contains("linear"), "{shown}");
}
