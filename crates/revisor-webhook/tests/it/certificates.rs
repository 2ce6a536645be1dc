//! Whom a call believes.

use bytes::Bytes;
use rcgen::{BasicConstraints, ExtendedKeyUsagePurpose, IsCa, date_time_ymd};
use revisor_webhook::{CallError, ClientConfig, NetError, Target};

use crate::harness::{Authority, Hook, Identity, PATIENCE, client, params, reply};

const LOOPBACK: &[&str] = &["127.0.0.1"];

/// What comes of calling a webhook with this identity and these authorities.
async fn call(identity: &Identity, bundle: &str) -> Result<(), String> {
    call_at(identity, bundle, "127.0.0.1").await
}

async fn call_at(identity: &Identity, bundle: &str, host: &str) -> Result<(), String> {
    let hook = Hook::start(identity, &["http/1.1"], |_, _| reply(200, "application/json", "{}")).await;
    let url = format!("https://{host}:{}/hook", hook.address.port());
    let config = ClientConfig { target: Target::Url(url.clone()), ca_bundle: bundle.into() };
    match client().post(&config, Bytes::from_static(b"{}"), PATIENCE).await {
        Ok(_) => Ok(()),
        Err(error) => {
            assert!(hook.requests().is_empty(), "nothing is sent to whom is not believed");
            if let CallError::Net { cause, .. } = &error {
                assert!(matches!(cause, NetError::Certificate(_)), "{error:?}");
            }
            let text = error.to_string();
            let begin = format!("Post \"{url}?timeout=30s\": tls: failed to verify certificate: ");
            Err(text.strip_prefix(&begin).map_or_else(|| text.clone(), ToOwned::to_owned))
        }
    }
}

#[tokio::test]
async fn the_bundle_vouches_for_the_webhook() {
    let authority = Authority::new("authority");
    let hook = authority.issue(params("hook", LOOPBACK));
    assert_eq!(call(&hook, &authority.pem).await, Ok(()));
    let both = format!("{}{}", Authority::new("other").pem, authority.pem);
    assert_eq!(call(&hook, &both).await, Ok(()));
}

#[tokio::test]
async fn a_certificate_that_is_its_own_bundle_is_believed() {
    for is_ca in [IsCa::NoCa, IsCa::ExplicitNoCa, IsCa::Ca(BasicConstraints::Unconstrained)] {
        let mut params = params("hook", LOOPBACK);
        params.is_ca = is_ca;
        let hook = Identity::self_signed(params);
        assert_eq!(call(&hook, &hook.pem).await, Ok(()));
    }
}

#[tokio::test]
async fn a_certificate_that_is_marked_as_an_authority_is_believed_of_its_issuer_alone() {
    let authority = Authority::new("authority");
    let mut params = params("hook", LOOPBACK);
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let hook = authority.issue(params);
    assert_eq!(call(&hook, &authority.pem).await, Ok(()));
    let unknown = "x509: certificate signed by unknown authority";
    assert_eq!(call(&hook, &Authority::new("other").pem).await, Err(unknown.into()));
}

#[tokio::test]
async fn nobody_else_is_believed() {
    let authority = Authority::new("authority");
    let unknown = "x509: certificate signed by unknown authority";
    let namesake = format!(
        "{unknown} (possibly because of \"x509: ECDSA verification failure\" while trying to verify candidate authority \
         certificate \"authority\")"
    );
    let hook = authority.issue(params("hook", LOOPBACK));
    assert_eq!(call(&hook, &Authority::new("other").pem).await, Err(unknown.into()));
    assert_eq!(call(&hook, &Authority::new("authority").pem).await, Err(namesake));
    // The machine does not know the authority either.
    assert_eq!(call(&hook, "").await, Err(unknown.into()));
    let stranger = Identity::self_signed(params("hook", LOOPBACK));
    assert_eq!(call(&stranger, &authority.pem).await, Err(unknown.into()));

    let not_pem = "unable to load root certificates: unable to parse bytes as PEM block";
    assert_eq!(call(&hook, "garbage").await, Err(not_pem.into()));
}

#[tokio::test]
async fn a_certificate_must_be_for_the_host_and_the_time() {
    let authority = Authority::new("authority");
    for (host, hosts, want) in [
        ("127.0.0.1", &["10.0.0.1", "a.example.com"][..], "x509: certificate is valid for 10.0.0.1, not 127.0.0.1"),
        (
            "127.0.0.1",
            &["a.example.com"],
            "x509: cannot validate certificate for 127.0.0.1 because it doesn't contain any IP SANs",
        ),
        ("localhost", &["a.b", "c.d"], "x509: certificate is valid for a.b, c.d, not localhost"),
        ("localhost", &[], "x509: certificate is not valid for any names, but wanted to match localhost"),
    ] {
        let hook = authority.issue(params("hook", hosts));
        assert_eq!(call_at(&hook, &authority.pem, host).await, Err(want.into()), "{hosts:?}");
    }
    let common_name = authority.issue(params("localhost", &[]));
    let want = "x509: certificate relies on legacy Common Name field, use SANs instead";
    assert_eq!(call_at(&common_name, &authority.pem, "localhost").await, Err(want.into()));

    let mut old = params("hook", LOOPBACK);
    (old.not_before, old.not_after) = (date_time_ymd(2020, 1, 1), date_time_ymd(2021, 1, 1));
    let error = call(&authority.issue(old), &authority.pem).await.expect_err("it has expired");
    assert!(error.starts_with("x509: certificate has expired or is not yet valid: current time 2"), "{error}");
    assert!(error.ends_with("Z is after 2021-01-01T00:00:00Z"), "{error}");
    let mut new = params("hook", LOOPBACK);
    (new.not_before, new.not_after) = (date_time_ymd(4000, 1, 1), date_time_ymd(4001, 1, 1));
    let error = call(&authority.issue(new), &authority.pem).await.expect_err("it is not valid yet");
    assert!(error.ends_with("Z is before 4000-01-01T00:00:00Z"), "{error}");
}

#[tokio::test]
async fn an_authority_must_be_valid_at_the_time() {
    let old = Authority::valid("old", date_time_ymd(2020, 1, 1), date_time_ymd(2021, 1, 1));
    let hook = old.issue(params("hook", LOOPBACK));
    let error = call(&hook, &old.pem).await.expect_err("it has expired");
    assert!(error.starts_with("x509: certificate has expired or is not yet valid: current time 2"), "{error}");
    assert!(error.ends_with("Z is after 2021-01-01T00:00:00Z"), "{error}");
    let new = Authority::valid("new", date_time_ymd(4000, 1, 1), date_time_ymd(4001, 1, 1));
    let error = call(&new.issue(params("hook", LOOPBACK)), &new.pem).await.expect_err("it is not valid yet");
    assert!(error.ends_with("Z is before 4000-01-01T00:00:00Z"), "{error}");
    // Those beside it count for what they vouch for.
    let authority = Authority::new("authority");
    let bundle = old.pem.clone() + &authority.pem;
    assert_eq!(call(&authority.issue(params("hook", LOOPBACK)), &bundle).await, Ok(()));
    assert!(call(&hook, &bundle).await.is_err());
}

#[tokio::test]
async fn a_certificate_must_be_for_servers() {
    let authority = Authority::new("authority");
    let client_only = || {
        let mut params = params("hook", LOOPBACK);
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth];
        params
    };
    let want = Err("x509: certificate specifies an incompatible key usage".to_owned());
    assert_eq!(call(&authority.issue(client_only()), &authority.pem).await, want);
    let own = Identity::self_signed(client_only());
    assert_eq!(call(&own, &own.pem).await, want);
}
