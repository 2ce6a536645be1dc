//! The flags that name others who know users: an issuer of tokens, proxies.

use std::path::PathBuf;

use clap::Args;

/// One issuer of tokens (OpenID Connect). More, and more about them, can be said in a file.
#[derive(Debug, Clone, Args)]
pub(crate) struct OidcFlags {
    /// An issuer of tokens: an https URL
    #[arg(long, value_name = "URL")]
    pub(crate) oidc_issuer_url: Option<String>,

    /// Whom its tokens must be meant for
    #[arg(long, value_name = "ID")]
    pub(crate) oidc_client_id: Option<String>,

    /// The authorities that vouch for it [default: those of the machine]
    #[arg(long, value_name = "FILE")]
    pub(crate) oidc_ca_file: Option<PathBuf>,

    /// The claim with the name of the user
    #[arg(long, value_name = "CLAIM", default_value = "sub")]
    pub(crate) oidc_username_claim: String,

    /// What names of users begin with; - for nothing [default: the issuer and #, except for the claim email]
    #[arg(long, value_name = "PREFIX", default_value = "", allow_hyphen_values = true)]
    pub(crate) oidc_username_prefix: String,

    /// The claim with the groups of the user
    #[arg(long, value_name = "CLAIM", default_value = "")]
    pub(crate) oidc_groups_claim: String,

    /// What names of groups begin with
    #[arg(long, value_name = "PREFIX", default_value = "")]
    pub(crate) oidc_groups_prefix: String,

    /// How its tokens may be signed
    #[arg(long, value_name = "NAMES", default_value = "RS256", value_delimiter = ',')]
    pub(crate) oidc_signing_algs: Vec<String>,

    /// Claims that its tokens must have: CLAIM=VALUE. Can be given several times
    #[arg(long, value_name = "CLAIM=VALUE", value_delimiter = ',')]
    pub(crate) oidc_required_claim: Vec<String>,
}

/// Proxies in front of the server that name users in headers.
#[derive(Debug, Clone, Args)]
pub(crate) struct RequestHeaderFlags {
    /// The authorities of proxies that name users in headers
    #[arg(long, value_name = "FILE")]
    pub(crate) requestheader_client_ca_file: Option<PathBuf>,

    /// The common names of those proxies [default: any]
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    pub(crate) requestheader_allowed_names: Vec<String>,

    /// Headers with the name of the user
    #[arg(long, value_name = "HEADERS", value_delimiter = ',')]
    pub(crate) requestheader_username_headers: Vec<String>,

    /// Headers with the uid of the user
    #[arg(long, value_name = "HEADERS", value_delimiter = ',')]
    pub(crate) requestheader_uid_headers: Vec<String>,

    /// Headers with the groups of the user
    #[arg(long, value_name = "HEADERS", value_delimiter = ',')]
    pub(crate) requestheader_group_headers: Vec<String>,

    /// How headers begin that hold further facts about the user
    #[arg(long, value_name = "PREFIXES", value_delimiter = ',')]
    pub(crate) requestheader_extra_headers_prefix: Vec<String>,
}
