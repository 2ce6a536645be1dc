//! The flags of `revisor conversion-webhook`. Those that `serve` has mean the same here.

use std::net::IpAddr;
use std::path::PathBuf;
use std::str::FromStr;

use clap::Args;

use crate::flags::ServingFlags;

#[derive(Debug, Clone, Args)]
pub(crate) struct ConversionWebhookFlags {
    /// Definitions and Conversions: files, or folders with files that end in .yaml, .yml or .json. Can be given several
    /// times
    #[arg(short = 'f', long = "filename", value_name = "PATH", required = true)]
    pub(crate) files: Vec<PathBuf>,

    /// Read the files again when they change: all of them, or none if something is wrong with one
    #[arg(long)]
    pub(crate) watch: bool,

    /// Print the definitions with what a cluster needs to ask this webhook, and end
    #[arg(long)]
    pub(crate) install: bool,

    /// Write it into the files instead
    #[arg(long, requires = "install")]
    pub(crate) apply: bool,

    /// Where the cluster reaches the webhook: an https URL [default: /convert at the address to listen on]
    #[arg(long, value_name = "URL", value_parser = parse_url)]
    pub(crate) url: Option<String>,

    /// The service by which the cluster reaches the webhook: NAMESPACE/NAME or NAMESPACE/NAME:PORT
    #[arg(long, value_name = "SERVICE", conflicts_with = "url")]
    pub(crate) service: Option<ServiceRef>,

    /// The address to listen on
    #[arg(long, value_name = "IP", default_value = "127.0.0.1")]
    pub(crate) bind_address: IpAddr,

    /// The port to listen on; 0 takes any that is free
    #[arg(long, value_name = "PORT", default_value_t = 9443)]
    pub(crate) secure_port: u16,

    /// The folder for certificates that the webhook makes for itself; keys in it are made private
    #[arg(long, value_name = "FOLDER", default_value = "revisor-webhook")]
    pub(crate) cert_dir: PathBuf,

    /// The webhook's certificate, instead of one that it makes. It is read again when it changes
    #[arg(long, value_name = "FILE", requires = "tls_private_key_file")]
    pub(crate) tls_cert_file: Option<PathBuf>,

    /// The key of the webhook's certificate
    #[arg(long, value_name = "FILE", requires = "tls_cert_file")]
    pub(crate) tls_private_key_file: Option<PathBuf>,

    /// How many bytes a review may have, and all reviews from one address. All reviews together may have twice as many;
    /// further ones wait
    #[arg(long, value_name = "BYTES", default_value_t = 128 * 1024 * 1024, value_parser = clap::value_parser!(u32).range(1024..))]
    pub(crate) max_review_bytes: u32,

    #[command(flatten)]
    pub(crate) serving: ServingFlags,
}

/// A service of a cluster.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ServiceRef {
    pub(crate) namespace: String,
    pub(crate) name: String,
    pub(crate) port: u16,
}

impl ServiceRef {
    /// The name by which the servers of the cluster call it, which its certificate must have.
    pub(crate) fn host(&self) -> String {
        format!("{}.{}.svc", self.name, self.namespace)
    }
}

impl FromStr for ServiceRef {
    type Err = String;

    fn from_str(text: &str) -> Result<ServiceRef, String> {
        let wrong = || format!("{text:?} is not NAMESPACE/NAME or NAMESPACE/NAME:PORT");
        let (namespace, rest) = text.split_once('/').ok_or_else(wrong)?;
        let (name, port) = match rest.split_once(':') {
            None => (rest, 443),
            Some((name, port)) => (name, port.parse().map_err(|_| wrong())?),
        };
        let is_label = |label: &str| {
            let is_inner = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
            let is_edge = |at: Option<u8>| at.is_some_and(|byte| byte != b'-');
            label.len() <= 63
                && label.bytes().all(is_inner)
                && is_edge(label.bytes().next())
                && is_edge(label.bytes().last())
        };
        if !is_label(namespace) || !is_label(name) || port == 0 {
            return Err(wrong());
        }
        Ok(ServiceRef { namespace: namespace.to_owned(), name: name.to_owned(), port })
    }
}

/// What servers take as the address of a webhook.
fn parse_url(text: &str) -> Result<String, String> {
    let uri: http::Uri = text.parse().map_err(|error| format!("{text:?} is no URL: {error}"))?;
    let has_user = uri.authority().is_some_and(|authority| authority.as_str().contains('@'));
    match uri.host() {
        Some(host) if uri.scheme_str() == Some("https") && !host.is_empty() && !has_user && uri.query().is_none() => {
            Ok(text.to_owned())
        }
        _ => Err(format!("{text:?} is no https URL of a host, without user and query")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn services_and_urls_are_told_from_other_texts() {
        for (text, want) in [
            ("apps/hook", Some(("apps", "hook", 443))),
            ("apps/hook:8443", Some(("apps", "hook", 8443))),
            ("hook", None),
            ("Apps/hook", None),
            ("apps/-hook", None),
            ("apps/", None),
            ("apps/hook:0", None),
            ("apps/hook:x", None),
        ] {
            let read: Option<ServiceRef> = text.parse().ok();
            let read = read.as_ref().map(|service| (&*service.namespace, &*service.name, service.port));
            assert_eq!(read, want, "{text}");
        }
        for (text, is_url) in [
            ("https://a.example/convert", true),
            ("https://10.0.0.1:9443/convert", true),
            ("http://a.example/convert", false),
            ("https://me@a.example/", false),
            ("https://a.example/?b", false),
            ("/convert", false),
            ("not a url", false),
        ] {
            assert_eq!(parse_url(text).is_ok(), is_url, "{text}");
        }
    }
}
