//! Projected volumes: files from several sources in one directory.

use revisor_object::names::domain_prefixed_key;
use revisor_object::{
    BadValue, FieldError, FieldErrors, FieldPath, LabelSelectorOptions, Object, Seen, StructuredLabelSelector,
};

use super::files;
use crate::checks::required;
use crate::kinds::certificates::{trust_bundle_name_problems, validate_signer_name};
use crate::kinds::pod_spec::file_path;
use crate::kinds::pod_spec::members::{entries, given_number, number, objects, text};
use crate::kinds::pod_spec::options::Options;
use crate::metadata::MAX_ANNOTATION_BYTES;

const KEY_TYPES: &[&str] = &["RSA3072", "RSA4096", "ECDSAP256", "ECDSAP384", "ECDSAP521", "ED25519"];

const LEAST_TOKEN_SECONDS: i64 = 10 * 60;
const MOST_TOKEN_SECONDS: i64 = 1 << 32;
const LEAST_CERTIFICATE_SECONDS: i64 = 3600;
const MOST_CERTIFICATE_SECONDS: i64 = 91 * 24 * 3600;
const MOST_KUBERNETES_CERTIFICATE_SECONDS: i64 = 24 * 3600;

/// The places of files that are taken, and where to say so when one is wanted twice.
struct Places<'a, 'p> {
    path: FieldPath<'p>,
    taken: Seen<&'a str>,
}

impl<'a> Places<'a, '_> {
    /// Takes a place; the clash is shown with `source`.
    fn take(&mut self, place: &'a str, source: &str, errors: &mut FieldErrors) {
        if !self.taken.is_new(place) {
            errors.push(FieldError::invalid(self.path, source, "conflicting duplicate paths"));
        }
    }
}

/// What is wrong with a projected volume.
pub(super) fn validate(path: FieldPath<'_>, volume: &Object, options: Options, errors: &mut FieldErrors) {
    errors.extend(files::validate_mode(path, "defaultMode", volume));
    let mut places = Places { path, taken: Seen::default() };
    let at_sources = path.child("sources");
    for (at, source) in objects(volume, "sources") {
        let at_source = at_sources.index(at);
        for kind in ["secret", "configMap"] {
            if let Some(keys) = source.object(kind) {
                validate_keys(at_source.child(kind), keys, &mut places, errors);
            }
        }
        if let Some(downward) = source.object("downwardAPI") {
            for (_, file) in objects(downward, "items") {
                files::validate_downward_file(at_source.child("downwardAPI"), file, errors);
                let place = text(file, "path");
                if !place.is_empty() {
                    places.take(place, place, errors);
                }
            }
        }
        if let Some(token) = source.object("serviceAccountToken") {
            validate_token(at_source.child("serviceAccountToken"), path, token, options.tokens_anywhere, errors);
        }
        if let Some(bundle) = source.object("clusterTrustBundle") {
            validate_trust_bundle(at_source.child("clusterTrustBundle"), bundle, &mut places, errors);
        }
        if let Some(certificate) = source.object("podCertificate") {
            validate_certificate(at_source.child("podCertificate"), certificate, &mut places, errors);
        }
        if source.len() > 1 {
            errors.push(FieldError::forbidden(at_source, "may not specify more than 1 volume type per source"));
        }
    }
}

fn validate_keys<'a>(path: FieldPath<'_>, keys: &'a Object, places: &mut Places<'a, '_>, errors: &mut FieldErrors) {
    let name = text(keys, "name");
    errors.extend(required(path.child("name"), name));
    let path = path.child("items");
    for (at, item) in objects(keys, "items") {
        files::validate_item(path.index(at), item, errors);
        let place = text(item, "path");
        if !place.is_empty() {
            places.take(place, name, errors);
        }
    }
}

/// What is wrong with a token. Its place is shown as if it were one of the volume.
fn validate_token(
    path: FieldPath<'_>,
    of_volume: FieldPath<'_>,
    token: &Object,
    anywhere: bool,
    errors: &mut FieldErrors,
) {
    let seconds = number(token, "expirationSeconds");
    let detail = if seconds < LEAST_TOKEN_SECONDS {
        Some("may not specify a duration less than 10 minutes")
    } else if seconds > MOST_TOKEN_SECONDS {
        Some("may not specify a duration larger than 2^32 seconds")
    } else {
        None
    };
    errors.extend(detail.map(|detail| FieldError::invalid(path.child("expirationSeconds"), seconds, detail)));
    let place = text(token, "path");
    errors.extend(required(of_volume.child("path"), place));
    if !anywhere {
        errors.extend(file_path::local_and_free(of_volume.child("path"), place));
    }
}

fn validate_trust_bundle<'a>(
    path: FieldPath<'_>,
    bundle: &'a Object,
    places: &mut Places<'a, '_>,
    errors: &mut FieldErrors,
) {
    let selector = bundle.object("labelSelector");
    match (bundle.str("name"), bundle.str("signerName")) {
        (Some(_), Some(_)) => {
            let detail = "only one of name and signerName may be used";
            errors.push(FieldError::invalid(path, BadValue::of(bundle), detail));
        }
        (Some(name), None) => {
            if name.is_empty() {
                errors.push(FieldError::required(path.child("name"), "must be a valid object name"));
            }
            // What stands before the last colon is the name of a signer, with colons for slashes.
            let signer = name.rsplit_once(':').map(|(signer, _)| signer.replace(':', "/")).unwrap_or_default();
            for problem in trust_bundle_name_problems(&signer, name, false) {
                let detail = format!("not a valid clustertrustbundlename: {problem}");
                errors.push(FieldError::invalid(path.child("name"), name, detail));
            }
            if let Some(selector) = selector {
                let detail = "labelSelector must be unset if name is specified";
                errors.push(FieldError::invalid(path.child("labelSelector"), BadValue::of(selector), detail));
            }
        }
        (None, Some(signer)) => {
            if signer.is_empty() {
                errors.push(FieldError::required(path.child("signerName"), "must be a valid signer name"));
            }
            errors.extend(validate_signer_name(path.child("signerName"), signer));
            if let Some(selector) = selector {
                let selector = StructuredLabelSelector::new(selector);
                errors.extend(selector.validate(&path.child("labelSelector"), LabelSelectorOptions::default()));
            }
        }
        (None, None) => errors.push(FieldError::required(path, "either name or signerName must be specified")),
    }
    let place = text(bundle, "path");
    errors.extend(required(path.child("path"), place));
    errors.extend(file_path::local_and_free(path.child("path"), place));
    places.take(place, place, errors);
}

fn validate_certificate<'a>(
    path: FieldPath<'_>,
    certificate: &'a Object,
    places: &mut Places<'a, '_>,
    errors: &mut FieldErrors,
) {
    let signer = text(certificate, "signerName");
    errors.extend(validate_signer_name(path.child("signerName"), signer));
    let at_annotations = path.child("userAnnotations");
    let mut size = 0;
    for (key, value) in entries(certificate, "userAnnotations") {
        size += key.len() + value.as_str().unwrap_or_default().len();
        errors.extend(domain_prefixed_key(&at_annotations, &key.to_lowercase()));
    }
    if size > MAX_ANNOTATION_BYTES {
        errors.push(FieldError::too_long(at_annotations, MAX_ANNOTATION_BYTES));
    }
    let key_type = text(certificate, "keyType");
    errors.extend(crate::checks::one_of(path.child("keyType"), key_type, KEY_TYPES));
    if let Some(seconds) = given_number(certificate, "maxExpirationSeconds") {
        let path = path.child("maxExpirationSeconds");
        let host = signer.split('/').next().unwrap_or_default();
        let is_kubernetes = host == "kubernetes.io" || host.ends_with(".kubernetes.io");
        let most = if is_kubernetes { MOST_KUBERNETES_CERTIFICATE_SECONDS } else { MOST_CERTIFICATE_SECONDS };
        if seconds < LEAST_CERTIFICATE_SECONDS {
            let detail = format!("if provided, maxExpirationSeconds must be >= {LEAST_CERTIFICATE_SECONDS}");
            errors.push(FieldError::invalid(path, seconds, detail));
        }
        if seconds > most {
            let detail = format!("if provided, maxExpirationSeconds must be <= {most}");
            errors.push(FieldError::invalid(path, seconds, detail));
        }
    }
    let mut has_place = false;
    for name in ["credentialBundlePath", "keyPath", "certificateChainPath"] {
        let place = text(certificate, name);
        if !place.is_empty() {
            has_place = true;
            errors.extend(file_path::local_and_free(path.child(name), place));
            places.take(place, place, errors);
        }
    }
    if !has_place {
        let detail = "specify at least one of credentialBundlePath, keyPath, and certificateChainPath";
        errors.push(FieldError::required(path, detail));
    }
}
