//! [`Provider`]s in the order of a configuration: the first writes, and whichever finds its prefix reads
//! (`NewPrefixTransformers`).

use std::sync::Arc;
use std::time::Instant;

use bytes::Bytes;
use revisor_store::{Identity, Plain, TransformError, Transformer};

use crate::aes_cbc::AesCbc;
use crate::aes_gcm::AesGcm;
use crate::cipher::Cipher;
use crate::config::KeyConfig;
use crate::metrics::{Direction, EncryptionMetrics, Tallies};
use crate::secretbox::Secretbox;

/// One provider of a configuration.
#[derive(Clone)]
pub(crate) struct Provider {
    /// How what it stores begins; nothing for what is stored as it is.
    prefix: Arc<str>,
    transformer: Inner,
}

#[derive(Clone)]
enum Inner {
    /// Keys by their names, of which the first writes.
    Keys {
        keys: Arc<[Key]>,
        missing: &'static str,
    },
    Single(Arc<dyn Transformer>),
}

struct Key {
    /// Its name and a colon.
    prefix: String,
    cipher: Box<dyn Cipher>,
}

impl Provider {
    pub(crate) fn identity() -> Provider {
        Provider { prefix: "".into(), transformer: Inner::Single(Arc::new(Identity)) }
    }

    pub(crate) fn aes_gcm(keys: &[KeyConfig]) -> Result<Provider, TransformError> {
        let missing = "no matching key was found for the provided AES transformer";
        Provider::keys("k8s:enc:aesgcm:v1:", missing, keys, |key| Ok(Box::new(AesGcm::new(key)?)))
    }

    pub(crate) fn aes_cbc(keys: &[KeyConfig]) -> Result<Provider, TransformError> {
        let missing = "no matching key was found for the provided AES transformer";
        Provider::keys("k8s:enc:aescbc:v1:", missing, keys, |key| Ok(Box::new(AesCbc::new(key)?)))
    }

    pub(crate) fn secretbox(keys: &[KeyConfig]) -> Result<Provider, TransformError> {
        let missing = "no matching key was found for the provided Secretbox transformer";
        Provider::keys("k8s:enc:secretbox:v1:", missing, keys, |key| {
            let key = key.try_into().map_err(|_| {
                let length = key.len();
                TransformError::new(format!("expected key size 32 for secretbox provider, got {length}"))
            })?;
            Ok(Box::new(Secretbox::new(key)))
        })
    }

    /// A key service with this name.
    pub(crate) fn kms(name: &str, transformer: Arc<dyn Transformer>) -> Provider {
        Provider { prefix: format!("k8s:enc:kms:v2:{name}:").into(), transformer: Inner::Single(transformer) }
    }

    fn keys(
        prefix: &str,
        missing: &'static str,
        keys: &[KeyConfig],
        cipher: impl Fn(&[u8]) -> Result<Box<dyn Cipher>, TransformError>,
    ) -> Result<Provider, TransformError> {
        let keys = keys.iter().map(|key| {
            let doing = || format!("error while creating transformer for named key {}", key.name);
            let cipher = cipher(&key.secret).map_err(|error| error.context(&doing()))?;
            Ok(Key { prefix: format!("{}:", key.name), cipher })
        });
        let keys: Arc<[Key]> = keys.collect::<Result<_, TransformError>>()?;
        Ok(Provider { prefix: prefix.into(), transformer: Inner::Keys { keys, missing } })
    }
}

/// The providers of one resource.
pub(crate) struct Providers {
    providers: Vec<(Provider, Tallies)>,
    /// How it goes with each key of each provider.
    of_keys: Vec<Vec<Tallies>>,
    /// By which name the resource is counted.
    resource: String,
    metrics: Arc<EncryptionMetrics>,
}

impl Providers {
    pub(crate) fn new(providers: &[Provider], resource: String, metrics: Arc<EncryptionMetrics>) -> Providers {
        let tallies_of = |provider: &Provider| match &provider.transformer {
            Inner::Keys { keys, .. } => keys.iter().map(|_| Tallies::default()).collect(),
            Inner::Single(_) => Vec::new(),
        };
        let of_keys = providers.iter().map(tallies_of).collect();
        let providers = providers.iter().map(|provider| (provider.clone(), Tallies::default())).collect();
        Providers { providers, of_keys, resource, metrics }
    }

    /// Counts how something went, and how long it took.
    fn count(
        &self,
        tallies: &Tallies,
        direction: Direction,
        prefix: &str,
        since: Instant,
        error: Option<&TransformError>,
    ) {
        match error {
            None => self.metrics.succeeded(tallies, &self.resource, direction, prefix, since.elapsed()),
            Some(error) => self.metrics.failed(&self.resource, direction, prefix, error),
        }
    }

    fn read_by_keys(
        &self,
        keys: &[Key],
        tallies: &[Tallies],
        missing: &'static str,
        data: &[u8],
        authenticated: &[u8],
    ) -> Result<Plain, TransformError> {
        let since = Instant::now();
        let mut errors = Vec::new();
        for (index, (key, tallies)) in keys.iter().zip(tallies).enumerate() {
            let Some(sealed) = data.strip_prefix(key.prefix.as_bytes()) else { continue };
            let read = key.cipher.open(sealed, authenticated);
            self.count(tallies, Direction::FromStorage, &key.prefix, since, read.as_ref().err());
            match read {
                Ok(plain) => return Ok(Plain { bytes: plain.into(), is_stale: index != 0 }),
                Err(error) => errors.push(error),
            }
        }
        Err(reduced(errors).unwrap_or_else(|| {
            let error = TransformError::new(missing);
            self.metrics.failed(&self.resource, Direction::FromStorage, "unknown", &error);
            error
        }))
    }
}

impl Transformer for Providers {
    fn transform_from_storage(&self, data: Bytes, authenticated: &[u8]) -> Result<Plain, TransformError> {
        let since = Instant::now();
        // Of two providers with one prefix the first may not have the key, so a failure is not the end.
        let mut errors = Vec::new();
        for (index, ((provider, tallies), of_keys)) in self.providers.iter().zip(&self.of_keys).enumerate() {
            let Some(rest) = data.strip_prefix(provider.prefix.as_bytes()) else { continue };
            let read = match &provider.transformer {
                Inner::Keys { keys, missing } => self.read_by_keys(keys, of_keys, missing, rest, authenticated),
                Inner::Single(transformer) => transformer.transform_from_storage(data.slice_ref(rest), authenticated),
            };
            // What is encrypted is no failure of the provider that stores objects as they are: others come after it.
            if provider.prefix.is_empty() && read.is_err() {
                continue;
            }
            let prefix = if provider.prefix.is_empty() { "identity" } else { &provider.prefix };
            self.count(tallies, Direction::FromStorage, prefix, since, read.as_ref().err());
            match read {
                Ok(plain) => return Ok(Plain { is_stale: plain.is_stale || index != 0, ..plain }),
                Err(error) => errors.push(error),
            }
        }
        Err(reduced(errors).unwrap_or_else(|| {
            let error = TransformError::new("no matching prefix found");
            self.metrics.failed(&self.resource, Direction::FromStorage, "unknown", &error);
            error
        }))
    }

    fn transform_to_storage(&self, data: Bytes, authenticated: &[u8]) -> Result<Bytes, TransformError> {
        let since = Instant::now();
        let (Some((provider, tallies)), Some(of_keys)) = (self.providers.first(), self.of_keys.first()) else {
            return Err(TransformError::new("no provider is configured"));
        };
        let prefix = &*provider.prefix;
        let stored = match &provider.transformer {
            Inner::Single(transformer) => {
                let sealed = transformer.transform_to_storage(data, authenticated);
                sealed
                    .map(|sealed| if prefix.is_empty() { sealed } else { [prefix.as_bytes(), &sealed].concat().into() })
            }
            Inner::Keys { keys, missing } => match (keys.first(), of_keys.first()) {
                (Some(key), Some(tallies)) => {
                    let stored = key.cipher.seal_behind(&[prefix, &key.prefix], &data, authenticated);
                    self.count(tallies, Direction::ToStorage, &key.prefix, since, stored.as_ref().err());
                    stored
                }
                _ => Err(TransformError::new(*missing)),
            },
        };
        self.count(tallies, Direction::ToStorage, prefix, since, stored.as_ref().err());
        stored
    }
}

/// One error of several: the only one, or one that tells all.
fn reduced(mut errors: Vec<TransformError>) -> Option<TransformError> {
    if errors.len() <= 1 {
        return errors.pop();
    }
    let code = errors[0].code();
    let mut texts: Vec<String> = errors.iter().map(TransformError::to_string).collect();
    texts.dedup();
    Some(match texts.as_slice() {
        [only] => TransformError::remote(&**only, code),
        several => TransformError::remote(format!("[{}]", several.join(", ")), code),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn keys(names: &[(&str, u8)]) -> Vec<KeyConfig> {
        names.iter().map(|(name, byte)| KeyConfig { name: (*name).to_owned(), secret: vec![*byte; 32] }).collect()
    }

    fn providers(providers: Vec<Provider>) -> Providers {
        Providers::new(&providers, "secrets".to_owned(), EncryptionMetrics::new("here"))
    }

    const KEY: &[u8] = b"/registry/secrets/default/a";

    #[test]
    fn the_first_key_writes_and_all_read() {
        type Make = fn(&[KeyConfig]) -> Result<Provider, TransformError>;
        for (make, prefix) in [
            (Provider::aes_gcm as Make, "k8s:enc:aesgcm:v1:"),
            (Provider::aes_cbc, "k8s:enc:aescbc:v1:"),
            (Provider::secretbox, "k8s:enc:secretbox:v1:"),
        ] {
            let plain = Bytes::from_static(b"a secret");
            let old = providers(vec![make(&keys(&[("one", 1)])).expect("is one")]);
            let sealed = old.transform_to_storage(plain.clone(), KEY).expect("is sealed");
            assert!(sealed.starts_with(format!("{prefix}one:").as_bytes()));
            let stale = |providers: Providers| {
                providers.transform_from_storage(sealed.clone(), KEY).map(|read| {
                    assert_eq!(read.bytes, plain);
                    read.is_stale
                })
            };
            assert_eq!(stale(old), Ok(false));
            assert_eq!(stale(providers(vec![make(&keys(&[("two", 2), ("one", 1)])).expect("is one")])), Ok(true));
            let apart = vec![make(&keys(&[("two", 2)])).expect("is one"), make(&keys(&[("one", 1)])).expect("is one")];
            assert_eq!(stale(providers(apart)), Ok(true), "two providers of one kind");
            let plain_first = vec![Provider::identity(), make(&keys(&[("one", 1)])).expect("is one")];
            assert_eq!(stale(providers(plain_first)), Ok(true), "on the way to no encryption");
            let gone = providers(vec![make(&keys(&[("two", 2)])).expect("is one")]);
            let error = gone.transform_from_storage(sealed.clone(), KEY).expect_err("the key is gone").to_string();
            assert!(error.starts_with("no matching key was found"), "{error}");
        }
    }

    #[test]
    fn what_is_plain_is_read_where_that_is_allowed() {
        let plain = Bytes::from_static(b"{}");
        let sealing = Provider::secretbox(&keys(&[("one", 1)])).expect("is one");
        let read = providers(vec![sealing.clone(), Provider::identity()]).transform_from_storage(plain.clone(), KEY);
        assert_eq!(read, Ok(Plain { bytes: plain.clone(), is_stale: true }));
        let error = providers(vec![sealing]).transform_from_storage(plain.clone(), KEY);
        assert_eq!(error.expect_err("nobody reads it").to_string(), "no matching prefix found");
        let only = providers(vec![Provider::identity()]);
        assert_eq!(only.transform_to_storage(plain.clone(), KEY), Ok(plain));
        let error = only.transform_from_storage(Bytes::from_static(b"k8s:enc:x"), KEY);
        assert_eq!(error.expect_err("is encrypted").to_string(), "no matching prefix found");
    }

    // What kube-apiserver 1.36 has stored of small objects, by keys of 32 letters `k`.
    const GENUINE_AESGCM: &str = concat!(
        "azhzOmVuYzphZXNnY206djE6Zzq/14m8tUyFMUCRzz0GHQ67XY0pvRlZxRZkn7KslRpGv0wRJOKR04uTlG9hwDLZ4mSKn+mrPQJz",
        "zYk9P1LNGf2/GjCZ2LFiw6nmr7FZLvStLHRmlhVS3l/0/CV93J7zpw8tUIA/bBb6k0i7KaJJEEZbYHQ9Mk/TOnXYWIQE0VeSwp+2",
        "UVRoIuWrxNXkm2D4fusPK1fqtHvG5k6VTGcxBUeAlNyoh1uUOjFnn5d1Qkwm2JCgoR51pNRUrZwlqeUue+3XXOOqGr8PXg1tqbeR",
        "T7ELlr78SRVi9/3vJV4ztsFDNc0ezvQBqKLM",
    );
    const GENUINE_AESCBC: &str = concat!(
        "azhzOmVuYzphZXNjYmM6djE6YzqZ585vd4JTEoDHCCgsYjvTDI7kxSjLrwNF+gGvRfyErGGGdz/0v5sbgt+royK6DTbq5FrQbuMB",
        "qid5vXemz2bxkvIyfmjlgl7HYU2ebznpySHXt+HPVGeH28sd7mVyhH3t9TeQhv3Mp7zz6fB6FoYj/LXBXh6+VjUOoNx0sFgO1hpZ",
        "DHjgXjGG6hizH2uqHuYERihpMXqfzL+5C3u2JKVPbwMZg6JGMu78pyHUm64yoHAjuKeM/4I4dR4S74FRMnlDKwH5YIdKhTPPN8ow",
        "PFPy",
    );
    const GENUINE_SECRETBOX: &str = concat!(
        "azhzOmVuYzpzZWNyZXRib3g6djE6czoE83dzIp6Hvl8BOoxSrgSaN/4AvX/kwcX1HuleGXRW82fFkMX9PF38EQv/KEiFp+bTqbTp",
        "rwlhbZYsgAU/vqMLFNg7dpjSJ5UcEPqHJQqr/FX9jIognUq1On71QIsAvxe6NkESutbh0pIkK+5FbQg7BwXYfrnRYWjHLHIraetr",
        "tEnXqA1KjCC0bDo/lThX",
    );

    #[test]
    fn what_the_original_has_stored_is_read() {
        use base64::Engine as _;
        let key = |name: &str| [KeyConfig { name: name.to_owned(), secret: vec![b'k'; 32] }];
        for (provider, stored, resource) in [
            (Provider::aes_gcm(&key("g")), GENUINE_AESGCM, "secrets"),
            (Provider::aes_cbc(&key("c")), GENUINE_AESCBC, "configmaps"),
            (Provider::secretbox(&key("s")), GENUINE_SECRETBOX, "serviceaccounts"),
        ] {
            let stored = base64::engine::general_purpose::STANDARD.decode(stored).expect("is base64");
            let providers = providers(vec![provider.expect("is one")]);
            let place = format!("/registry/{resource}/default/v");
            let read = providers.transform_from_storage(stored.into(), place.as_bytes()).expect(resource);
            assert!(read.bytes.starts_with(b"k8s\0") && !read.is_stale, "{resource}");
        }
    }
}
