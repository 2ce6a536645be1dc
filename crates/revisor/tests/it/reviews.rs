//! Questions that are answered at once, and the tokens of service accounts.

use serde_json::{Value, json};

use crate::client::Client;
use crate::harness::{GUEST_TOKEN, Server};

const ACCOUNTS: &str = "/api/v1/namespaces/default/serviceaccounts";
const WHO_AM_I: &str = "/apis/authentication.k8s.io/v1/selfsubjectreviews";
const WHOSE_TOKEN: &str = "/apis/authentication.k8s.io/v1/tokenreviews";
const MAY_I: &str = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews";
const MAY_THEY: &str = "/apis/authorization.k8s.io/v1/subjectaccessreviews";

async fn user(client: &Client) -> Value {
    client.post(WHO_AM_I, &json!({})).await.expect(201).json()["status"]["userInfo"].take()
}

#[tokio::test]
async fn everybody_may_ask_about_themselves() {
    let server = Server::start(&[]).await;
    let (admin, guest) = (server.client(), server.client().with_token(GUEST_TOKEN));
    assert_eq!(user(&guest).await["groups"], json!(["guests", "readers", "system:authenticated"]));
    let pods = json!({"spec": {"resourceAttributes": {"verb": "list", "resource": "pods", "namespace": "default"}}});
    for (client, allowed) in [(&admin, true), (&guest, false)] {
        let review = client.post(MAY_I, &pods).await.expect(201).json();
        assert_eq!(review["status"]["allowed"], allowed);
        assert_eq!(review["spec"], pods["spec"]);
    }
    guest.post(MAY_THEY, &pods).await.fails(403, "Forbidden");
    let status = admin.post(MAY_THEY, &json!({"spec": {}})).await.fails(422, "Invalid");
    assert_eq!(status["details"]["causes"].as_array().map(Vec::len), Some(2));
    // Questions are not kept: there is nothing to read.
    admin.get(MAY_I).await.fails(405, "MethodNotAllowed");
}

#[tokio::test]
async fn tokens_are_good_as_long_as_what_they_are_bound_to() {
    let server = Server::start(&["--service-account-max-token-expiration=1h"]).await;
    let admin = server.client();
    admin.post(ACCOUNTS, &json!({"metadata": {"name": "a"}})).await.expect(201);
    let secrets = "/api/v1/namespaces/default/secrets";
    admin.post(secrets, &json!({"metadata": {"name": "s"}})).await.expect(201);
    let tokens = format!("{ACCOUNTS}/a/token");
    let bound = json!({"spec": {"expirationSeconds": 7200, "boundObjectRef": {"kind": "Secret", "apiVersion": "v1", "name": "s"}}});
    let reply = admin.post(&tokens, &bound).await.expect(201);
    assert_eq!(reply.warnings(), ["299 - \"requested expiration of 7200 seconds shortened to 3600 seconds\""]);
    let answer = reply.json();
    assert_eq!((&answer["kind"], &answer["spec"]["expirationSeconds"]), (&json!("TokenRequest"), &json!(3600)));
    let token = answer["status"]["token"].as_str().expect("is there").to_owned();

    let account = Client::new(server.kubeconfig.clone()).with_token(&token);
    let known = user(&account).await;
    assert_eq!(known["username"], "system:serviceaccount:default:a");
    assert_eq!(known["groups"][1], "system:serviceaccounts:default");
    let review = json!({"spec": {"token": token}});
    assert_eq!(admin.post(WHOSE_TOKEN, &review).await.expect(201).json()["status"]["authenticated"], true);
    let elsewhere = json!({"spec": {"token": token, "audiences": ["elsewhere"]}});
    let refused = admin.post(WHOSE_TOKEN, &elsewhere).await.expect(201).json();
    assert!(refused["status"]["error"].as_str().is_some_and(|error| error.contains("audiences")), "{refused}");

    // A restart changes nothing: the key is kept.
    let server = server.restart().await;
    let account = Client::new(server.kubeconfig.clone()).with_token(&token);
    assert_eq!(user(&account).await, known);
    server.client().delete(&format!("{secrets}/s")).await.expect(200);
    account.apart().post(WHO_AM_I, &json!({})).await.fails(401, "Unauthorized");
}

#[tokio::test]
async fn a_server_knows_what_it_serves_and_how_requests_are_told_apart() {
    let server = Server::start(&[]).await;
    let admin = server.client();
    let core = admin.get("/apis/apiregistration.k8s.io/v1/apiservices/v1.").await.expect(200).json();
    assert_eq!(core["spec"], json!({"version": "v1", "groupPriorityMinimum": 18000, "versionPriority": 1}));
    assert_eq!(core["status"]["conditions"][0]["type"], "Available");
    let schema = "/apis/flowcontrol.apiserver.k8s.io/v1/flowschemas/catch-all";
    assert_eq!(admin.get(schema).await.expect(200).json()["status"]["conditions"][0]["reason"], "Found");
}
