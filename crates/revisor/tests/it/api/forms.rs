//! In which form objects travel: YAML, laid out, compressed, and with the version at which they were read.

use std::io::Read;

use flate2::read::GzDecoder;
use http::Method;
use serde_json::json;

use crate::client::{Client, MERGE};
use crate::harness::Server;
use crate::objects::{CONFIG_MAPS, config_map, labelled};

#[tokio::test]
async fn bodies_can_be_yaml() {
    let server = Server::start(&[]).await;
    let client = server.client();
    let yaml = [("content-type", "application/yaml")];
    let text = "# a comment\napiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: a\ndata:\n  k: \"1\"\n  lines: |\n    \
                first\n    second\n";
    let made = client.send(Method::POST, CONFIG_MAPS, &yaml, text).await.expect(201).json();
    assert_eq!(made["data"], json!({"k": "1", "lines": "first\nsecond\n"}));
    let text = "metadata: {name: a}\ndata: {k: 'two'}\n";
    let replaced = client.send(Method::PUT, &format!("{CONFIG_MAPS}/a"), &yaml, text).await.expect(200).json();
    assert_eq!(replaced["data"], json!({"k": "two"}));
    let options = "kind: DeleteOptions\napiVersion: v1\ndryRun: [All]\n";
    client.send(Method::DELETE, &format!("{CONFIG_MAPS}/a"), &yaml, options).await.expect(200);
    client.get(&format!("{CONFIG_MAPS}/a")).await.expect(200);
}

#[tokio::test]
async fn answers_are_laid_out_for_people() {
    let server = Server::start(&[]).await;
    let client = server.client();
    let made = client.post(CONFIG_MAPS, &config_map("a", "1")).await.expect(201);
    let one = format!("{CONFIG_MAPS}/a");
    for (path, agent, is_pretty) in [
        (format!("{one}?pretty=true"), "go", true),
        (format!("{one}?pretty=false"), "curl/8.0", false),
        (one.clone(), "curl/8.0", true),
        (one.clone(), "kubectl/v1.36", false),
        (format!("{CONFIG_MAPS}?pretty=1"), "go", true),
        (format!("{one}-missing?pretty=1"), "go", true),
        ("/version?pretty=1".to_owned(), "go", true),
    ] {
        let reply = client.send(Method::GET, &path, &[("user-agent", agent)], "").await;
        assert_eq!(reply.text().starts_with("{\n  \""), is_pretty, "{path} {agent}: {}", reply.text());
        if path.starts_with(&format!("{one}?")) {
            assert_eq!(reply.json(), made.json());
        }
    }
}

#[tokio::test]
async fn large_answers_are_compressed_for_those_who_can_read_that() {
    let server = Server::start(&[]).await;
    let client = server.client();
    let large = "0123456789abcdef".repeat(16 * 1024);
    client.post(CONFIG_MAPS, &config_map("a", &large)).await.expect(201);
    client.post("/api/v1/namespaces/kube-system/configmaps", &config_map("small", "1")).await.expect(201);
    for client in [client.clone(), client.clone().over_http1()] {
        for path in [CONFIG_MAPS.to_owned(), format!("{CONFIG_MAPS}/a")] {
            let plain = client.get(&path).await.expect(200);
            assert_eq!(plain.header("content-encoding"), None);
            let reply = client.send(Method::GET, &path, &[("accept-encoding", "gzip")], "").await.expect(200);
            assert_eq!(reply.header("content-encoding"), Some("gzip"), "{path}");
            assert!(reply.body.len() < plain.body.len() / 10, "{} bytes", reply.body.len());
            let mut text = Vec::new();
            GzDecoder::new(&reply.body[..]).read_to_end(&mut text).expect("gzip");
            assert_eq!(text, plain.body, "{path}");
        }
        let small = "/api/v1/namespaces/kube-system/configmaps";
        let reply = client.send(Method::GET, small, &[("accept-encoding", "gzip")], "").await.expect(200);
        assert_eq!(reply.header("content-encoding"), None);
    }
}

fn served_at(reply: &crate::client::Reply) -> u64 {
    let value = reply.header("servedatresourceversion").expect("every read says at which version it was served");
    value.parse().expect("a number")
}

#[tokio::test]
async fn reads_say_at_which_version_they_were_served() {
    let server = Server::start(&[]).await;
    let client = server.client();
    let one = format!("{CONFIG_MAPS}/a");
    let mut versions = Vec::new();
    versions.push(client.post(CONFIG_MAPS, &config_map("a", "1")).await.expect(201).version());
    for value in ["2", "3"] {
        let patch = json!({"data": {"k": value}});
        versions.push(client.patch(&one, MERGE, &patch).await.expect(200).version());
    }
    let later = client.post(CONFIG_MAPS, &config_map("b", "1")).await.expect(201).version();
    let got = client.get(&one).await.expect(200);
    assert_eq!((got.version(), served_at(&got)), (versions[2], later));
    let listed = client.get(CONFIG_MAPS).await.expect(200);
    assert_eq!((listed.version(), served_at(&listed)), (later, later));

    for (version, value) in versions.iter().zip(["1", "2", "3"]) {
        let then = exactly(&client, &one, *version).await.expect(200);
        assert_eq!((then.version(), served_at(&then)), (*version, *version));
        assert_eq!(then.json()["data"]["k"], value);
        let then = exactly(&client, CONFIG_MAPS, *version).await.expect(200);
        assert_eq!((then.version(), served_at(&then)), (*version, *version));
    }
    let between = exactly(&client, &one, later).await.expect(200);
    assert_eq!((between.version(), served_at(&between)), (versions[2], later));
    exactly(&client, &one, versions[0] - 1).await.fails(404, "NotFound");
    client.delete(&one).await.expect(200);
    exactly(&client, &one, later).await.expect(200);
    client.get(&one).await.fails(404, "NotFound");
    // As in the original, a get is not held to what it cannot be held to.
    client.get(&format!("{one}?resourceVersionMatch=Exact")).await.fails(404, "NotFound");
    client.get(&format!("{one}?resourceVersionMatch=Sometimes&resourceVersion=1")).await.fails(404, "NotFound");
}

async fn exactly(client: &Client, path: &str, version: u64) -> crate::client::Reply {
    client.get(&format!("{path}?resourceVersion={version}&resourceVersionMatch=Exact")).await
}

#[tokio::test]
async fn lists_are_selected_by_labels_and_fields() {
    let server = Server::start(&[]).await;
    let client = server.client();
    for (name, value) in [("a", "x"), ("b", "y"), ("c", "x")] {
        client.post(CONFIG_MAPS, &labelled(name, "l", value)).await.expect(201);
    }
    client.post(CONFIG_MAPS, &config_map("d", "1")).await.expect(201);
    for (query, want) in [
        ("labelSelector=l%3Dx", vec!["a", "c"]),
        ("labelSelector=l!%3Dx", vec!["b", "d"]),
        ("labelSelector=l%20in%20(x,y)", vec!["a", "b", "c"]),
        ("labelSelector=!l", vec!["d"]),
        ("fieldSelector=metadata.name%3Db", vec!["b"]),
        ("fieldSelector=metadata.name!%3Db,metadata.namespace%3Ddefault", vec!["a", "c", "d"]),
        ("labelSelector=l%3Dx&fieldSelector=metadata.name%3Dc", vec!["c"]),
        ("labelSelector=l%3Dnothing", vec![]),
    ] {
        for path in [CONFIG_MAPS, "/api/v1/configmaps"] {
            let mut names = client.get(&format!("{path}?{query}")).await.expect(200).names();
            // The server has some of its own in kube-system.
            names.retain(|name| !name.contains("apiserver"));
            assert_eq!(names, want, "{path} {query}");
        }
    }
    for query in ["labelSelector=%3D", "fieldSelector=data.k%3D1", "fieldSelector=x"] {
        client.get(&format!("{CONFIG_MAPS}?{query}")).await.fails(400, "BadRequest");
    }
}
