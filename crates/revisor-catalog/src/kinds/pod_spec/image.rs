//! Names of images, as far as the server must understand them: whether a name means the newest image, which decides
//! how often it is pulled.

/// The longest name of a repository.
const MAX_NAME: usize = 255;
/// Where images come from that say no host, and in which folder they are there.
const DEFAULT_HOST: &str = "docker.io/";
const DEFAULT_FOLDER: &str = "library/";
/// The longest tag.
const MAX_TAG: usize = 128;

/// Whether the image with this name is pulled every time unless somebody says otherwise: a well-formed name with the
/// tag `latest`, or with neither a tag nor a digest.
pub(super) fn is_latest(name: &str) -> bool {
    let Some((rest, digest)) = split_digest(name) else { return false };
    let is_identifier = name.len() == 64 && name.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
    if is_identifier {
        return false;
    }
    // What stands before the first slash is a host only if it looks like one; otherwise it belongs to the path.
    let (host, path) = match rest.split_once('/') {
        Some((host, path)) if host.contains(['.', ':']) || host == "localhost" || host.to_lowercase() != host => {
            (Some(host), path)
        }
        _ => (None, rest),
    };
    let (path, tag) = match path.split_once(':') {
        Some((path, tag)) => (path, Some(tag)),
        None => (path, None),
    };
    let is_well_formed = host.is_none_or(is_host)
        && path.split('/').all(is_path_component)
        && full_length(host, path) <= MAX_NAME
        && tag.is_none_or(is_tag);
    is_well_formed && (tag == Some("latest") || (tag.is_none() && !digest))
}

/// How long a name is with what stands for a host and a folder that are not given: the bound is on that.
fn full_length(host: Option<&str>, path: &str) -> usize {
    let folder = if path.contains('/') { "" } else { DEFAULT_FOLDER };
    host.map_or(DEFAULT_HOST.len() + folder.len(), |host| host.len() + 1) + path.len()
}

/// What stands before the digest, and whether there is one; `None` if it is malformed.
fn split_digest(name: &str) -> Option<(&str, bool)> {
    let Some((rest, digest)) = name.split_once('@') else { return Some((name, false)) };
    let (algorithm, hex) = digest.split_once(':')?;
    let length = match algorithm {
        "sha256" => 64,
        "sha384" => 96,
        "sha512" => 128,
        _ => return None,
    };
    let is_hex = hex.len() == length && hex.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
    is_hex.then_some((rest, true))
}

fn is_host(host: &str) -> bool {
    let (name, port) = match host.rsplit_once(':') {
        // The colons of an address in brackets are not those before a port.
        Some((name, port)) if !port.ends_with(']') => (name, Some(port)),
        _ => (host, None),
    };
    if port.is_some_and(|port| port.is_empty() || !port.bytes().all(|byte| byte.is_ascii_digit())) {
        return false;
    }
    if let Some(address) = name.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')) {
        return !address.is_empty() && address.bytes().all(|byte| byte.is_ascii_hexdigit() || byte == b':');
    }
    name.split('.').all(|label| {
        !label.is_empty()
            && !label.starts_with('-')
            && !label.ends_with('-')
            && label.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-')
    })
}

/// Lower case letters and digits, with a period, one or two underscores or any number of dashes between them.
fn is_path_component(text: &str) -> bool {
    let is_plain = |byte: &u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    let bytes = text.as_bytes();
    if !bytes.first().is_some_and(is_plain) || !bytes.last().is_some_and(is_plain) {
        return false;
    }
    bytes
        .split(is_plain)
        .all(|separator| matches!(separator, b"" | b"." | b"_" | b"__") || separator.iter().all(|byte| *byte == b'-'))
}

fn is_tag(tag: &str) -> bool {
    let is_word = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
    tag.len() <= MAX_TAG
        && tag.bytes().next().is_some_and(is_word)
        && tag.bytes().all(|byte| is_word(byte) || matches!(byte, b'.' | b'-'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_without_tag_or_with_the_tag_latest_mean_the_newest_image() {
        let digest = format!("sha256:{}", "a".repeat(64));
        for (name, want) in [
            ("nginx", true),
            ("nginx:latest", true),
            ("nginx:1.27", false),
            ("library/nginx", true),
            ("registry.example.com/team/app", true),
            ("registry.example.com:5000/team/app:latest", true),
            ("localhost/app", true),
            ("[::1]:5000/app", true),
            ("a__b/c---d.e", true),
            (&format!("nginx@{digest}"), false),
            (&format!("nginx:latest@{digest}"), true),
            ("nginx@sha256:123", false),
            ("", false),
            ("Nginx", false),
            ("UPPER/nginx", true),
            ("nginx:", false),
            ("nginx:-x", false),
            ("a//b", false),
            ("-a", false),
            ("a___b", false),
            ("bad image", false),
            (&"a".repeat(64), false),
            (&"z".repeat(64), true),
            (&"z".repeat(237), true),
            (&"z".repeat(238), false),
            (&format!("z/{}", "z".repeat(243)), true),
            (&format!("z/{}", "z".repeat(244)), false),
            (&format!("a.example/{}", "z".repeat(245)), true),
            (&format!("a.example/{}", "z".repeat(246)), false),
        ] {
            assert_eq!(is_latest(name), want, "{name}");
        }
    }
}
