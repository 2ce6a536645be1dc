//! `revisor credentials`: what was issued to the administrator of a server, how to have it anew, how to take it back.

use std::time::SystemTime;

use revisor_auth::{ListedCredential, list_credentials, renew_administrator, revoke_credentials};
use serde_json::Value;

use crate::flags::{CredentialsCommand, OutputFormat};
use crate::private_folder;
use crate::reports::report;

const COLUMNS: [&str; 7] = ["name", "groups", "serial", "issued", "expires", "state", "current"];

/// Does what is asked for and answers which credentials it is about.
pub(crate) fn run(command: &CredentialsCommand) -> anyhow::Result<String> {
    let now = SystemTime::now();
    let (CredentialsCommand::List(flags)
    | CredentialsCommand::Renew { flags, .. }
    | CredentialsCommand::Revoke { flags, .. }) = command;
    let folder = flags.certificates();
    // The server refuses what belongs to somebody else, so nobody else may leave files there either.
    private_folder::require_own(&folder)?;
    let credentials = match command {
        CredentialsCommand::List(_) => list_credentials(&folder, now)?,
        CredentialsCommand::Renew { revoke_old, .. } => {
            renew_administrator(&folder, &flags.data_dir.join("kubeconfig"), *revoke_old, now)?
        }
        CredentialsCommand::Revoke { which, .. } => revoke_credentials(&folder, which, now)?,
    };
    table(&credentials, now, flags.output)
}

fn table(credentials: &[ListedCredential], now: SystemTime, output: OutputFormat) -> anyhow::Result<String> {
    let mut rows = Vec::with_capacity(credentials.len());
    for listed in credentials {
        let mut facts = serde_json::to_value(&listed.credential)?;
        facts["state"] = listed.credential.state(now).into();
        facts["current"] = listed.is_current.into();
        rows.push(COLUMNS.map(|column| facts.get_mut(column).map(Value::take).unwrap_or_default()).to_vec());
    }
    Ok(report(&COLUMNS, rows, output))
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use clap::Parser;
    use revisor_auth::{Certificates, server_names};

    use super::*;
    use crate::flags::{Arguments, Command};

    fn try_do(line: &str, data: &Path) -> Result<String, String> {
        let data = format!("--data-dir={}", data.display());
        let arguments = ["revisor", "credentials"].into_iter().chain(line.split_whitespace()).chain([data.as_str()]);
        let arguments = Arguments::try_parse_from(arguments).map_err(|error| error.to_string())?;
        let Command::Credentials { command } = arguments.command else { panic!("{line} is about credentials") };
        run(&command).map_err(|error| error.to_string())
    }

    fn rows(line: &str, data: &Path) -> Vec<Value> {
        let text = try_do(&format!("{line} -o json"), data).expect(line);
        serde_json::from_str(&text).unwrap_or_else(|error| panic!("{line}: {error}: {text}"))
    }

    fn folder() -> tempfile::TempDir {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let certificates = folder.path().join("certificates");
        Certificates::load_or_create(&certificates, &server_names([]), SystemTime::now()).expect("the folder is empty");
        folder
    }

    #[test]
    fn credentials_are_listed_renewed_and_revoked() {
        let folder = folder();
        let data = folder.path();
        let listed = rows("list", data);
        assert_eq!(listed.len(), 1);
        assert_eq!(listed[0]["name"], "kubernetes-admin");
        assert_eq!(listed[0]["groups"], serde_json::json!(["system:masters"]));
        assert_eq!((&listed[0]["state"], &listed[0]["current"]), (&"valid".into(), &true.into()));
        let first = listed[0]["serial"].as_str().expect("a serial").to_owned();
        let text = try_do("list", data).expect("the folder is fine");
        let words: Vec<&str> = text.split_whitespace().collect();
        assert_eq!(words[..7], ["NAME", "GROUPS", "SERIAL", "ISSUED", "EXPIRES", "STATE", "CURRENT"]);
        assert_eq!(words[7..10], ["kubernetes-admin", "system:masters", &first]);

        let renewed = rows("renew", data);
        assert_eq!((renewed.len(), &renewed[0]["state"]), (1, &"valid".into()));
        assert_eq!(rows(&format!("revoke {}", first.to_lowercase()), data)[0]["state"], "revoked");
        let states: Vec<_> = rows("list", data).iter().map(|row| row["state"].clone()).collect();
        assert_eq!(states, ["revoked", "valid"]);
        assert_eq!(rows("renew --revoke-old", data).len(), 2);
        assert_eq!(rows("revoke admin", data).len(), 1);
        assert!(rows("list", data).iter().all(|row| row["state"] == "revoked"));
        assert_eq!(rows("revoke admin", data).len(), 0);
        let unknown = try_do("revoke 0A:0B", data).expect("any number can be revoked");
        assert!(unknown.contains("<none>") && unknown.contains("0A0B"), "{unknown}");
    }

    #[test]
    fn what_cannot_be_done_is_said_in_a_sentence() {
        let folder = folder();
        let empty = tempfile::tempdir().expect("a temporary folder");
        for (line, data, want) in [
            ("list", empty.path(), "there are no certificates in "),
            ("renew", empty.path(), "there are no certificates in "),
            ("revoke admin", empty.path(), "there are no certificates in "),
            ("revoke nobody", folder.path(), "not the serial number of a certificate"),
            ("revoke", folder.path(), "WHICH"),
        ] {
            let error = try_do(line, data).expect_err(line);
            assert!(error.contains(want), "{line}: {error}");
        }
    }
}
