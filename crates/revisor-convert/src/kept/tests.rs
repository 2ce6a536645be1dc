//! What is kept, found again, and read again.

use super::*;

fn parse(text: &str) -> Value {
    revisor_object::parse_json(text.as_bytes()).expect("is JSON").value
}

fn object(members: &[(&str, Keep)], is_own: bool) -> Keep {
    let members = members.iter().map(|(name, keep)| (Box::from(*name), keep.clone())).collect();
    Keep::Object(Box::new(KeepObject { members, others: Keep::Nothing, is_own }))
}

/// What is kept of `real`, and what comes of it when something else is made.
#[track_caller]
fn check(keep: &Keep, real: &str, made: &str, kept: Option<&str>, then_made: &str, want: &str) {
    let (real, made) = (parse(real), parse(made));
    let found = keep.difference(Some(&real), Some(&made));
    assert_eq!(found.as_ref().map(|kept| kept.to_json().to_json()).as_deref(), kept);
    let mut back = Some(made);
    let mut then = Some(parse(then_made));
    if let Some(found) = &found {
        assert_eq!(Kept::read(&found.to_json()).as_ref(), Ok(found));
        keep.restore(found, &mut back);
        keep.restore(found, &mut then);
    }
    assert_eq!(back, Some(real), "at once");
    assert_eq!(then.map(|value| value.to_json()).unwrap_or_default(), want, "later");
}

#[test]
fn what_only_one_side_has_comes_back() {
    let keep = object(&[("a", Keep::Whole), ("o", object(&[("in", Keep::Whole)], false))], false);
    check(&keep, r#"{"a":1,"n":2}"#, r#"{"n":2}"#, Some(r#"{".a":[1]}"#), r#"{"n":3}"#, r#"{"a":1,"n":3}"#);
    check(&keep, r#"{"n":2}"#, r#"{"a":"filled","n":2}"#, Some(r#"{".a":[]}"#), r#"{"a":"filled"}"#, "{}");
    check(&keep, r#"{"n":1}"#, r#"{"n":1}"#, None, r#"{"n":2}"#, r#"{"n":2}"#);
    check(&keep, r#"{"o":{"in":1}}"#, r#"{"o":{}}"#, Some(r#"{".o":{".in":[1]}}"#), r#"{"n":1}"#, r#"{"n":1}"#);
}

#[test]
fn an_object_of_its_own_stays_and_a_shared_one_goes_if_it_was_not_there() {
    let own = object(&[("own", object(&[("x", Keep::Whole)], true))], false);
    check(&own, r#"{"own":{"x":1}}"#, "{}", Some(r#"{".own":{".x":[1]}}"#), r#"{"n":1}"#, r#"{"n":1,"own":{"x":1}}"#);
    check(&own, r#"{"own":{}}"#, "{}", Some(r#"{".own":{}}"#), "{}", r#"{"own":{}}"#);
    let shared = object(&[("s", object(&[("fill", Keep::Whole)], false))], false);
    check(&shared, r#"{"s":{}}"#, "{}", Some(r#"{".s":{}}"#), r#"{"n":1}"#, r#"{"n":1,"s":{}}"#);
    check(&shared, "{}", r#"{"s":{"fill":1}}"#, Some(r#"{".s":[]}"#), r#"{"s":{"fill":1,"n":2}}"#, r#"{"s":{"n":2}}"#);
}

#[test]
fn items_are_found_by_key_then_equality_then_position() {
    let item = object(&[("k", Keep::Whole)], false);
    let keyed = Keep::Items(Box::new(item.clone()), vec!["id".into()]);
    let real = r#"[{"id":1,"k":"a","n":1},{"id":2,"n":1},{"id":3,"k":"c","n":1}]"#;
    let made = r#"[{"id":1,"n":1},{"id":2,"n":1},{"id":3,"n":1}]"#;
    let (real_value, made_value) = (parse(real), parse(made));
    let kept = keyed.difference(Some(&real_value), Some(&made_value)).expect("differs");
    let mut place = Some(parse(r#"[{"id":3,"n":9},{"id":4},{"id":2}]"#));
    keyed.restore(&kept, &mut place);
    assert_eq!(place.map(|value| value.to_json()).as_deref(), Some(r#"[{"id":3,"k":"c","n":9},{"id":4},{"id":2}]"#));

    let plain = Keep::Items(Box::new(item), Vec::new());
    let kept = plain.difference(Some(&real_value), Some(&made_value)).expect("differs");
    for (name, list, want) in [
        (
            "reversed",
            r#"[{"id":3,"n":1},{"id":2,"n":1},{"id":1,"n":1}]"#,
            r#"[{"id":3,"k":"c","n":1},{"id":2,"n":1},{"id":1,"k":"a","n":1}]"#,
        ),
        ("the first changed", r#"[{"id":9},{"id":2,"n":1}]"#, r#"[{"id":9,"k":"a"},{"id":2,"n":1}]"#),
        ("the first is gone", r#"[{"id":2,"n":1},{"id":3,"n":1}]"#, r#"[{"id":2,"n":1},{"id":3,"k":"c","n":1}]"#),
        (
            "one came",
            r#"[{"id":1,"n":1},{"id":7},{"id":2,"n":1},{"id":3,"n":1}]"#,
            r#"[{"id":1,"k":"a","n":1},{"id":7},{"id":2,"n":1},{"id":3,"k":"c","n":1}]"#,
        ),
    ] {
        let mut place = Some(parse(list));
        plain.restore(&kept, &mut place);
        assert_eq!(place.map(|value| value.to_json()).as_deref(), Some(want), "{name}");
    }
}

#[test]
fn the_others_of_a_list_follow_the_first_and_go_with_it() {
    let keep = object(&[("l", Keep::Tail(Box::new(object(&[("x", Keep::Whole)], false)), Vec::new()))], false);
    check(&keep, r#"{"l":[1,2,3]}"#, r#"{"l":[1]}"#, Some(r#"{".l":{"+":[2,3]}}"#), r#"{"l":[9]}"#, r#"{"l":[9,2,3]}"#);
    check(&keep, r#"{"l":[1,2]}"#, r#"{"l":[1]}"#, Some(r#"{".l":{"+":[2]}}"#), "{}", "{}");
    check(&keep, r#"{"l":[]}"#, "{}", Some(r#"{".l":{"+":[]}}"#), r#"{"l":[9]}"#, r#"{"l":[9]}"#);
    check(
        &keep,
        r#"{"l":[{"n":1,"x":2},7]}"#,
        r#"{"l":[{"n":1}]}"#,
        Some(r#"{".l":{"+":[7],"0":{".x":[2]}}}"#),
        r#"{"l":[{"n":3}]}"#,
        r#"{"l":[{"n":3,"x":2},7]}"#,
    );
}

#[test]
fn what_is_damaged_or_forged_does_nothing_where_nothing_is_kept() {
    for text in [
        r#"1"#,
        r#""x""#,
        r#"[1,2]"#,
        r#"{"spec":[1]}"#,
        r#"{"*":1}"#,
        r##"{"#":[["x",[]]]}"##,
        r#"{"+":1}"#,
        r#"{".a":7}"#,
    ] {
        assert!(Kept::read(&parse(text)).is_err(), "{text}");
    }
    let keep = object(&[("a", Keep::Whole), ("l", Keep::Items(Box::new(Keep::Whole), Vec::new()))], false);
    for forged in [
        r#"{".n":[7]}"#,
        r#"[]"#,
        r#"{".l":[1]}"#,
        r#"{".a":{".b":[1]}}"#,
        r#"{"+":[1]}"#,
        r##"{".l":{"#":[[1,[2]]]}}"##,
    ] {
        let mut place = Some(parse(r#"{"l":["x"],"n":1}"#));
        keep.restore(&Kept::read(&parse(forged)).expect(forged), &mut place);
        assert_eq!(place.map(|value| value.to_json()).as_deref(), Some(r#"{"l":["x"],"n":1}"#), "{forged}");
    }
}
