//! Lists and pages as the registry plans them.

use revisor_registry::{ListVersions, RegistryError};

use crate::fixture::{Fixture, names, version};

async fn five() -> Fixture {
    let fixture = Fixture::new().await;
    for name in ["a", "b", "c", "d", "e"] {
        fixture.create("configmaps", &format!(r#"{{"metadata":{{"name":"{name}"}}}}"#)).await.expect("is created");
    }
    fixture
}

fn going_on(token: &str) -> ListVersions<'_> {
    ListVersions { continue_token: token, ..ListVersions::default() }
}

#[tokio::test]
async fn all_pages_of_a_list_are_one_snapshot_and_count_down() {
    let fixture = five().await;
    let first = fixture.list(ListVersions::default(), 2).await.expect("the first page");
    assert_eq!((names(&first), first.remaining), (vec!["a".to_owned(), "b".to_owned()], Some(3)));
    fixture.create("configmaps", r#"{"metadata":{"name":"bb"}}"#).await.expect("is created");
    fixture.update("configmaps", "c", r#"{"metadata":{"name":"c"},"data":{"k":"new"}}"#).await.expect("is updated");

    let token = first.continue_token.expect("there is more");
    let second = fixture.list(going_on(&token), 2).await.expect("the second page");
    assert_eq!((names(&second), second.remaining), (vec!["c".to_owned(), "d".to_owned()], Some(1)));
    let token = second.continue_token.expect("there is more");
    let third = fixture.list(going_on(&token), 2).await.expect("the third page");
    assert_eq!((names(&third), third.remaining, third.continue_token), (vec!["e".to_owned()], None, None));
    assert_eq!([second.revision, third.revision], [first.revision, first.revision]);
}

#[tokio::test]
async fn a_page_of_what_is_selected_goes_on_as_long_as_there_is_anything() {
    let fixture = Fixture::new().await;
    for name in ["a", "b", "c"] {
        let text = format!(r#"{{"metadata":{{"name":"{name}","labels":{{"l":"{name}"}}}}}}"#);
        fixture.create("configmaps", &text).await.expect("is created");
    }
    for (labels, limit, want, goes_on) in [
        ("l=a", 1, vec!["a"], true),
        ("l=a", 2, vec!["a"], false),
        ("l in (a,b)", 2, vec!["a", "b"], true),
        ("l in (a,c)", 2, vec!["a", "c"], false),
        ("l=c", 1, vec!["c"], false),
    ] {
        let page = fixture.list_selected((labels, ""), ListVersions::default(), limit).await.expect("a page");
        let said = (names(&page), page.remaining, page.continue_token.is_some());
        assert_eq!(said, (want.into_iter().map(str::to_owned).collect(), None, goes_on), "{labels} {limit}");
        if let Some(token) = page.continue_token {
            let rest = fixture.list_selected((labels, ""), going_on(&token), limit).await.expect("the next page");
            assert!(names(&rest).is_empty() && rest.continue_token.is_none(), "{labels} {limit}");
        }
    }
}

#[tokio::test]
async fn one_name_is_looked_up_in_no_older_a_version() {
    let fixture = five().await;
    let first = fixture.list(ListVersions::default(), 1).await.expect("a page");
    fixture.create("configmaps", r#"{"metadata":{"name":"f"}}"#).await.expect("is created");
    let version = first.revision.expect("has one").to_string();
    let versions = ListVersions { resource_version: &version, ..ListVersions::default() };
    let found = fixture.list_selected(("", "metadata.name=f"), versions, 1).await.expect("a page");
    assert_eq!((names(&found), found.continue_token), (vec!["f".to_owned()], None));
    let all = fixture.list(versions, 9).await.expect("a page");
    assert_eq!(names(&all), ["a", "b", "c", "d", "e"]);
}

#[tokio::test]
async fn a_token_whose_snapshot_is_gone_comes_with_one_that_goes_on() {
    let fixture = five().await;
    let first = fixture.list(ListVersions::default(), 2).await.expect("the first page");
    let changed = fixture.update("configmaps", "e", r#"{"metadata":{"name":"e"},"data":{"k":"v"}}"#).await;
    let newest = version(&changed.expect("is updated"));
    let newest = revisor_version::Revision::new(newest).expect("not zero");
    fixture.registry.cache().store_of("").compact(newest).await.expect("is compacted");

    let token = first.continue_token.expect("there is more");
    let error = fixture.list(going_on(&token), 2).await.expect_err("the snapshot is gone");
    let RegistryError::Expired { continue_token: Some(fresh), .. } = error else { panic!("{error:?}") };
    let rest = fixture.list(going_on(&fresh), 0).await.expect("goes on");
    assert_eq!(names(&rest), ["c", "d", "e"]);
    assert_eq!(rest.revision, Some(newest));
}

#[tokio::test]
async fn a_token_of_another_list_is_refused() {
    let fixture = five().await;
    let token = fixture.list(ListVersions::default(), 2).await.expect("a page").continue_token.expect("there is more");
    let mut forged = token.clone().into_bytes();
    forged[20] = if forged[20] == b'A' { b'B' } else { b'A' };
    let forged = String::from_utf8(forged).expect("is text");
    for broken in [forged.as_str(), &token[..10], "e30", "no token at all"] {
        let error = fixture.list(going_on(broken), 2).await.expect_err(broken);
        assert!(matches!(error, RegistryError::BadRequest(_)), "{broken}: {error:?}");
    }
}

#[tokio::test]
async fn a_version_that_was_not_reached_is_told_with_the_newest() {
    let fixture = five().await;
    let versions = ListVersions { resource_version: "1000000", ..ListVersions::default() };
    let error = fixture.list(versions, 0).await.expect_err("nobody writes that much");
    let RegistryError::TooLargeResourceVersion { asked, current } = error else { panic!("{error:?}") };
    assert_eq!(asked, 1_000_000);
    assert_eq!(Some(current), fixture.revision().map(|revision| revision.get()));
}
