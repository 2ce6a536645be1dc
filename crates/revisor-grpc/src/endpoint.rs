//! Where a plugin listens, as flags and files spell it.

/// The path of the socket that `endpoint` (`unix:///run/kms.sock`) names. One that begins with `@` is in the abstract
/// namespace of Linux. The rules are those of `ParseEndpoint` in the original.
pub fn parse_endpoint(endpoint: &str) -> Result<String, String> {
    if endpoint.is_empty() {
        return Err("remote KMS provider can't use empty string as endpoint".to_owned());
    }
    let (scheme, rest) = endpoint.split_once("://").ok_or_else(|| unsupported(""))?;
    if scheme != "unix" {
        return Err(unsupported(scheme));
    }
    // What stands before the path would be a host, which a socket does not have.
    let path = rest.find('/').map_or("", |at| &rest[at..]);
    let path = path.split(['?', '#']).next().unwrap_or_default();
    Ok(match path.strip_prefix('/') {
        Some(name) if name.starts_with('@') => name.to_owned(),
        _ => path.to_owned(),
    })
}

fn unsupported(scheme: &str) -> String {
    format!("unsupported scheme {scheme:?} for remote KMS provider")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn endpoints() {
        for (endpoint, want) in [
            ("unix:///run/kms.sock", Ok("/run/kms.sock")),
            ("unix:///@kms", Ok("@kms")),
            ("unix:///@kms?a", Ok("@kms")),
            ("", Err("remote KMS provider can't use empty string as endpoint")),
            ("tcp://127.0.0.1:1", Err("unsupported scheme \"tcp\" for remote KMS provider")),
            ("/run/kms.sock", Err("unsupported scheme \"\" for remote KMS provider")),
        ] {
            assert_eq!(parse_endpoint(endpoint), want.map(str::to_owned).map_err(str::to_owned), "{endpoint}");
        }
    }
}
