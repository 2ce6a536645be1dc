//! [`CertificateKeeper`]: looks after the certificates of a server that runs, and lets everybody know who has copies.

use std::path::PathBuf;
use std::time::{Duration, SystemTime};

use revisor_auth::LiveCertificates;
use rustls_pki_types::CertificateDer;
use tokio::sync::watch;

/// How often the files are looked at. They are few and short: to read them takes a tenth of a millisecond.
const LOOKING: Duration = Duration::from_secs(1);

/// Looks after certificates.
pub(crate) struct CertificateKeeper {
    live: LiveCertificates,
    kubeconfig: PathBuf,
    server_url: String,
    root_ca: watch::Sender<String>,
    client_authorities: watch::Sender<Vec<CertificateDer<'static>>>,
    /// Whether the kubeconfig says what it should.
    is_written: bool,
}

impl CertificateKeeper {
    /// Writes the kubeconfig for a server that is reached at `server_url`.
    pub(crate) fn begin(
        live: LiveCertificates,
        kubeconfig: PathBuf,
        server_url: String,
    ) -> anyhow::Result<CertificateKeeper> {
        live.write_kubeconfig(&kubeconfig, &server_url)?;
        let root_ca = watch::Sender::new(live.trust_pem());
        let client_authorities = watch::Sender::new(live.client_authorities());
        Ok(CertificateKeeper { live, kubeconfig, server_url, root_ca, client_authorities, is_written: true })
    }

    /// What clients have to trust to reach the server, from now on.
    pub(crate) fn root_ca(&self) -> watch::Receiver<String> {
        self.root_ca.subscribe()
    }

    /// Whose client certificates the server trusts, from now on.
    pub(crate) fn client_authorities(&self) -> watch::Receiver<Vec<CertificateDer<'static>>> {
        self.client_authorities.subscribe()
    }

    /// Looks after them until it is dropped.
    pub(crate) async fn run(self) {
        let mut keeper = self;
        let mut ticks = tokio::time::interval(LOOKING);
        ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        loop {
            ticks.tick().await;
            let looked = tokio::task::spawn_blocking(move || {
                keeper.look(SystemTime::now());
                keeper
            });
            keeper = match looked.await {
                Ok(keeper) => keeper,
                Err(error) => {
                    tracing::error!(%error, "certificates are not looked after any more");
                    return;
                }
            };
        }
    }

    fn look(&mut self, now: SystemTime) {
        if self.live.refresh(now) {
            self.is_written = false;
            let trusted = self.live.trust_pem();
            self.root_ca.send_if_modified(|published| {
                let is_new = *published != trusted;
                *published = trusted;
                is_new
            });
            self.client_authorities.send_replace(self.live.client_authorities());
        }
        if !self.is_written {
            let written = self.live.write_kubeconfig(&self.kubeconfig, &self.server_url);
            self.is_written = written.is_ok();
            if let Err(error) = written {
                tracing::warn!(error = &error as &dyn std::error::Error, "cannot write the kubeconfig");
            }
        }
    }
}
