//! Lists in pages: one state, whatever happens in between, and tokens that say where to go on.

use serde_json::json;

use crate::client::{Client, MERGE, Reply};
use crate::harness::{Server, eventually};
use crate::objects::{CONFIG_MAPS, SECRETS, config_map, make_config_maps};

fn token(reply: &Reply) -> Option<String> {
    reply.json()["metadata"]["continue"].as_str().map(str::to_owned)
}

async fn next_page(client: &Client, token: &str) -> Reply {
    client.get(&format!("{CONFIG_MAPS}?limit=3&continue={token}")).await
}

#[tokio::test]
async fn pages_show_one_state_while_writes_go_on() {
    let server = Server::start(&[]).await;
    let client = server.client();
    let names = ["n00", "n01", "n02", "n03", "n04", "n05", "n06", "n07", "n08", "n09", "n10"];
    make_config_maps(&client, &names).await;
    let whole = client.get(CONFIG_MAPS).await.expect(200).json();

    let mut page = client.get(&format!("{CONFIG_MAPS}?limit=3")).await.expect(200);
    let mut items = Vec::new();
    let mut remaining = Vec::new();
    for turn in 0.. {
        let list = page.json();
        assert_eq!(list["metadata"]["resourceVersion"], whole["metadata"]["resourceVersion"]);
        assert_eq!(page.header("servedatresourceversion"), whole["metadata"]["resourceVersion"].as_str());
        remaining.push(list["metadata"]["remainingItemCount"].as_u64());
        items.extend(list["items"].as_array().expect("a list").iter().cloned());
        let Some(token) = token(&page) else { break };
        client.delete(&format!("{CONFIG_MAPS}/{}", names[10 - turn])).await.expect(200);
        let patch = json!({"data": {"k": "changed"}});
        client.patch(&format!("{CONFIG_MAPS}/{}", names[9 - turn]), MERGE, &patch).await.expect(200);
        client.post(CONFIG_MAPS, &config_map(&format!("n05-{turn}"), "new")).await.expect(201);
        page = next_page(&client, &token).await.expect(200);
    }
    assert_eq!(json!(items), whole["items"]);
    assert_eq!(remaining, [Some(8), Some(5), Some(2), None]);
    assert_ne!(json!(client.get(CONFIG_MAPS).await.names()), json!(names), "there were changes to be kept out");
}

#[tokio::test]
async fn tokens_survive_a_restart_and_nobody_else_can_make_them() {
    let server = Server::start(&[]).await;
    let client = server.client();
    make_config_maps(&client, &["a", "b", "c", "d", "e"]).await;
    let first = client.get(&format!("{CONFIG_MAPS}?limit=3")).await.expect(200);
    let sealed = token(&first).expect("there is more");
    client.delete(&format!("{CONFIG_MAPS}/e")).await.expect(200);

    let stranger = Server::start(&[]).await;
    next_page(&stranger.client(), &sealed).await.fails(400, "BadRequest");
    let mut server = server;
    for in_order in [true, false] {
        server = if in_order { server.restart_in_order().await } else { server.restart().await };
        let second = next_page(&server.client(), &sealed).await.expect(200);
        assert_eq!((second.version(), second.names()), (first.version(), vec!["d".to_owned(), "e".to_owned()]));
    }

    let client = server.client();
    let mut bytes = sealed.clone().into_bytes();
    for at in 0..bytes.len() {
        let kept = bytes[at];
        bytes[at] = if kept == b'A' { b'B' } else { b'A' };
        let forged = String::from_utf8(bytes.clone()).expect("still a text");
        next_page(&client, &forged).await.fails(400, "BadRequest");
        bytes[at] = kept;
    }
    for (path, token) in [
        (CONFIG_MAPS, &sealed[1..]),
        (CONFIG_MAPS, &sealed[..sealed.len() - 1]),
        (CONFIG_MAPS, "nonsense"),
        (SECRETS, &sealed),
        ("/api/v1/namespaces/kube-system/configmaps", &sealed),
        ("/api/v1/configmaps", &sealed),
    ] {
        client.get(&format!("{path}?limit=3&continue={token}")).await.fails(400, "BadRequest");
    }
    let status =
        client.get(&format!("{CONFIG_MAPS}?resourceVersion=1&continue={sealed}")).await.fails(400, "BadRequest");
    assert_eq!(status["message"], "specifying resource version is not allowed when using continue");
    let status = client.get(&format!("{CONFIG_MAPS}?resourceVersion=1&continue=e30")).await.fails(400, "BadRequest");
    let message = status["message"].as_str().expect("a text");
    assert!(message.starts_with("invalid continue token: "), "what is no token is told first: {message}");
}

#[tokio::test]
async fn an_expired_token_brings_one_that_goes_on_with_the_newest_state() {
    let server = Server::start(&["--history=1s"]).await;
    let client = server.client();
    make_config_maps(&client, &["a", "b", "c", "d", "e", "f"]).await;
    let first = client.get(&format!("{CONFIG_MAPS}?limit=3")).await.expect(200);
    let sealed = token(&first).expect("there is more");
    client.delete(&format!("{CONFIG_MAPS}/d")).await.expect(200);
    let newest = client.post(CONFIG_MAPS, &config_map("g", "1")).await.expect(201).version();

    let expired = eventually(|| async {
        let reply = next_page(&client, &sealed).await;
        (reply.code != 200).then_some(reply)
    })
    .await;
    let fresh = token(&expired).expect("a token to go on with");
    expired.fails(410, "Expired");
    let rest = next_page(&client, &fresh).await.expect(200);
    assert_eq!((rest.version(), rest.names()), (newest, vec!["e".to_owned(), "f".to_owned(), "g".to_owned()]));

    // The states before are gone with it, but a newer one may stand in where the client allows that.
    let version = first.version();
    let exact = format!("{CONFIG_MAPS}?resourceVersionMatch=Exact&resourceVersion={version}");
    client.get(&exact).await.fails(410, "Expired");
    client
        .get(&format!("{CONFIG_MAPS}/a?resourceVersionMatch=Exact&resourceVersion={version}"))
        .await
        .fails(410, "Expired");
    let newer = format!("{CONFIG_MAPS}?resourceVersionMatch=NotOlderThan&resourceVersion={version}");
    assert_eq!(client.get(&newer).await.expect(200).version(), newest);
    let mut watch = client.watch(CONFIG_MAPS, &format!("resourceVersion={version}")).await;
    let error = watch.event().await;
    assert_eq!((&*error.kind, &error.object["code"]), ("ERROR", &json!(410)), "{}", error.object);
    assert_eq!(error.object["reason"], "Expired");
    assert!(watch.next().await.is_none());
}
