//! What the server keeps on disk is its owner's only. The harness starts servers with a umask that leaves everything
//! open to everybody.

use std::fs::{self, Permissions};
use std::os::unix::fs::{PermissionsExt, chown};
use std::path::{Path, PathBuf};

use serde_json::json;

use crate::harness::{Process, Server};
use crate::objects::SECRETS;

/// All files and folders under `folder`, itself among them, with their rights.
fn all_modes(folder: &Path) -> Vec<(PathBuf, bool, u32)> {
    let mode = |path: &Path| fs::symlink_metadata(path).expect("it is there").permissions().mode() & 0o7777;
    let mut found = vec![(folder.to_owned(), true, mode(folder))];
    for item in fs::read_dir(folder).expect("the folder can be read") {
        let path = item.expect("the folder can be read").path();
        if path.is_dir() {
            found.extend(all_modes(&path));
        } else {
            let mode = mode(&path);
            found.push((path, false, mode));
        }
    }
    found
}

fn assert_private(folder: &Path) {
    let found = all_modes(folder);
    assert!(found.len() > 15, "the store, keys and certificates are there: {found:?}");
    for (path, is_folder, mode) in found {
        let want = if is_folder { 0o700 } else { 0o600 };
        assert_eq!(format!("{mode:o}"), format!("{want:o}"), "{}", path.display());
    }
}

#[tokio::test]
async fn nobody_else_gets_at_what_the_server_keeps() {
    let server = Server::start(&[]).await;
    let data = server.data();
    let secret = json!({"metadata": {"name": "a"}, "stringData": {"password": "word-that-is-secret"}});
    server.client().post(SECRETS, &secret).await.expect(201);
    assert_private(&data);
    assert!(!server.process.log().contains("were open to other users"), "there was nothing to repair");

    // As an older version or a backup may have left it.
    let (stopped, status) = server.terminate().await;
    assert!(status.success(), "{status}");
    for (path, is_folder, _) in all_modes(&data) {
        let open = Permissions::from_mode(if is_folder { 0o755 } else { 0o644 });
        fs::set_permissions(path, open).expect("the rights of an own file can be set");
    }
    let server = stopped.start().await;
    assert_private(&data);
    assert!(server.process.log().contains("were open to other users"), "{}", server.process.log());
    server.client().get(&format!("{SECRETS}/a")).await.expect(200);
}

#[tokio::test]
async fn a_data_folder_of_somebody_else_is_refused() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    // Root can give a folder away. Everybody else finds one that is not theirs at the root of the file system.
    let given = folder.path().join("given");
    fs::create_dir(&given).expect("a folder can be made");
    let foreign = if chown(&given, Some(65534), Some(65534)).is_ok() { given } else { PathBuf::from("/") };
    let arguments = ["serve".to_owned(), format!("--data-dir={}", foreign.display()), "--secure-port=0".to_owned()];
    let mut process = Process::start(&arguments, &folder.path().join("log"));
    assert_eq!(process.ended().await.code(), Some(1));
    let (_, log) = process.said();
    assert!(log.contains(&format!("revisor: {} belongs to user ", foreign.display())), "{log}");
    assert!(log.contains("but the server runs as user "), "{log}");
}

#[tokio::test]
async fn credentials_of_somebody_else_are_not_touched() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let data = folder.path().join("data");
    let certificates = data.join("certificates");
    fs::create_dir_all(&certificates).expect("a folder can be made");
    // As above; there is a folder of root's at every root.
    let is_root = chown(&certificates, Some(65534), Some(65534)).is_ok();
    let flag = if is_root { format!("--data-dir={}", data.display()) } else { "--cert-dir=/".to_owned() };
    for command in ["list", "renew"] {
        let arguments = ["credentials".to_owned(), command.to_owned(), flag.clone()];
        let mut process = Process::start(&arguments, &folder.path().join(command));
        assert_eq!(process.ended().await.code(), Some(1));
        let (_, log) = process.said();
        assert!(log.contains(" belongs to user "), "{log}");
    }
    assert_eq!(fs::read_dir(&certificates).expect("the folder can be read").count(), 0);
}
