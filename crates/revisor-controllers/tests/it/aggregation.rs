//! Cluster roles that gather the rules of others.

use revisor_controllers::Controller;
use revisor_object::{Object, Value};

use crate::fixture::{Fixture, text_at};

/// The verbs of the rules of a role, in their order.
fn verbs(role: &Object) -> Vec<&str> {
    let rules = role.array("rules").iter().filter_map(Value::as_object);
    rules.flat_map(|rule| rule.array("verbs")).filter_map(Value::as_str).collect()
}

fn part(name: &str, label: &str, verb: &str) -> String {
    format!(
        r#"{{"metadata":{{"name":"{name}","labels":{{"{label}":"true"}}}},"rules":[{{"verbs":["{verb}"],"apiGroups":["x"],"resources":["ys"]}}]}}"#
    )
}

#[tokio::test]
async fn rules_are_gathered_as_roles_come_change_and_go() {
    let fixture = Fixture::new().await;
    let _controllers = fixture.start(&[Controller::ClusterRoleAggregation]);
    let whole = r#"{"metadata":{"name":"whole"},"aggregationRule":{"clusterRoleSelectors":[{"matchLabels":{"one":"true"}},{"matchLabels":{"two":"true"}}]}}"#;
    fixture.create("clusterroles", None, &part("c", "two", "get")).await;
    fixture.create("clusterroles", None, whole).await;
    let becomes = async |want: &[&str]| {
        let role = || fixture.get("clusterroles", None, "whole").filter(|role| verbs(role) == want);
        fixture.until("clusterroles", role).await
    };
    becomes(&["get"]).await;
    fixture.create("clusterroles", None, &part("b", "one", "list")).await;
    fixture.create("clusterroles", None, &part("a", "one", "watch")).await;
    fixture.create("clusterroles", None, &part("d", "one", "get")).await;
    let role = becomes(&["watch", "list", "get"]).await;
    let managers = role.object("metadata").map(|metadata| metadata.array("managedFields")).unwrap_or_default();
    let manager = managers.iter().filter_map(Value::as_object).find(|entry| entry.str("operation") == Some("Apply"));
    assert_eq!(manager.and_then(|entry| entry.str("manager")), Some("clusterrole-aggregation-controller"));

    fixture.patch("clusterroles", None, "a", r#"{"metadata":{"labels":{"one":"false"}}}"#).await;
    becomes(&["list", "get"]).await;
    fixture.delete("clusterroles", None, "b", "").await;
    becomes(&["get"]).await;
    // What others write into it does not stay.
    fixture.patch("clusterroles", None, "whole", r#"{"rules":[]}"#).await;
    becomes(&["get"]).await;
}

#[tokio::test]
async fn the_roles_of_users_are_filled_one_from_the_other() {
    let fixture = Fixture::new().await;
    let _controllers = fixture.start(&[Controller::ClusterRoleAggregation]);
    let filled = async |name: &str, with: &[Value]| {
        let has_more = |role: &Object| {
            let rules = role.array("rules");
            rules.len() > with.len() && with.iter().all(|rule| rules.contains(rule))
        };
        fixture.until("clusterroles", || fixture.get("clusterroles", None, name).filter(has_more)).await
    };
    // Whichever is filled first, in the end each has all that the lesser one has.
    let view = filled("view", &[]).await;
    let edit = filled("edit", view.array("rules")).await;
    let admin = filled("admin", edit.array("rules")).await;
    assert_eq!(text_at(&admin, &["metadata", "name"]), "admin");
}
