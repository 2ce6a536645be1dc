//! `revisor serve`: puts the parts together, serves until a signal comes, and takes them apart in order.

use std::collections::{BTreeMap, HashSet};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

use anyhow::Context;
use revisor_api::{
    Api, ApiOptions, HealthCheck, HealthChecks, Inflight, InflightLimits, Limits, Metrics, ResourceSample, Server,
    ServerOptions, StatusPages, StoreSample, StrictTransportSecurity,
};
use revisor_auth::{
    Anonymous, Authenticator, Holdings, LiveCertificates, LiveOptions, ServingFiles, TokenFile, server_names,
};
use revisor_cache::{Cache, CacheOptions};
use revisor_catalog::{Catalog, CatalogOptions, Feature, Resource};
use revisor_controllers::{Controllers, ControllersOptions, SystemClock};
use revisor_object::{Cidr, TokenSealer};
use revisor_registry::{
    AdmissionConfig, AdmissionOptions, AdmissionPlugin, Advertised, Environment, Registry, RegistryOptions,
    ServerIdentity, ServiceNetwork, TolerationSeconds,
};
use revisor_store::embedded::{EmbeddedOptions, EmbeddedStore, HistoryLimits};
use revisor_store::{Store, StoreError};
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::watch;

use crate::addresses::{advertised, external_address};
use crate::admission_plugins::{PluginSwitches, enabled_plugins};
use crate::authentication_config::{AnonymousFlag, AuthenticationConfig};
use crate::certificate_keeper::CertificateKeeper;
use crate::flags::ServeFlags;
use crate::kept_secret::kept_secret;
use crate::manifest_keeper::ManifestKeeper;
use crate::open_files::{OpenFiles, raise_open_files};
use crate::presence::{Presence, hostname};
use crate::usage_keeper::{UsageKeeper, server_name};
use crate::{admission_config, logging, machine, private_folder, service_accounts, version};

/// The stack of each thread. What is sent may nest, a write may lead to another one, and frames that were not optimised are
/// ten times the size of real ones; memory is only taken for as much of it as was ever used.
pub(crate) const THREAD_STACK: usize = 8 << 20;

/// How long a read waits for a version that the server has not reached.
const PATIENCE: Duration = Duration::from_secs(3);

/// How often it is looked whether others can still find the server.
const ADVERTISING: Duration = Duration::from_secs(10);

/// Serves until a signal comes. `shown` are the flags as the server shows them to those who ask.
pub(crate) fn serve(flags: ServeFlags, shown: BTreeMap<String, String>) -> anyhow::Result<()> {
    logging::start(flags.serving.verbosity, flags.serving.logging_format);
    let mut threads = tokio::runtime::Builder::new_multi_thread();
    threads.enable_all().thread_stack_size(THREAD_STACK);
    threads.build().context("cannot start threads")?.block_on(run(flags, shown))
}

async fn run(flags: ServeFlags, shown: BTreeMap<String, String>) -> anyhow::Result<()> {
    let started = Instant::now();
    let started_at = SystemTime::now();
    let options = flags.catalog_options()?;
    let catalog = Arc::new(Catalog::build(&options)?);
    warn_about(&options);
    let anonymous = anonymous(&flags, &options)?;
    let (admission, manifests) = admission(&flags, &options, &catalog)?;
    private_folder::secure(&flags.data_dir)?;
    if let Some(folder) = flags.cert_dir.as_ref().filter(|folder| !folder.starts_with(&flags.data_dir)) {
        private_folder::secure_keys(folder)?;
    }
    let tokens = match &flags.token_auth_file {
        Some(path) => TokenFile::load(path)?,
        None => TokenFile::default(),
    };
    // Keys are made while the folder is opened: both take their time, one of the processor and one of the disk.
    let flags = Arc::new(flags);
    let making = tokio::task::spawn_blocking({
        let flags = flags.clone();
        move || certificates(&flags)
    });
    let store = Arc::new(open_store(&flags).await?);
    let certificates = making.await??;
    let peers = certificates.peers();

    let windows = CacheOptions { window_bytes: flags.history_memory, ..CacheOptions::default() };
    let cache = Cache::start(store.clone(), windows);
    let registry = Registry::start(
        cache,
        RegistryOptions {
            catalog,
            environment: Environment::system(),
            sealer: TokenSealer::new(kept_secret(&flags.data_dir.join("continue.key"))?),
            patience: PATIENCE,
            services: service_network(&flags)?,
            authorization: flags.authorization_mode.clone(),
            server: server_name(&flags.data_dir)?,
            admission,
        },
    )
    .await
    .context("cannot read the stored objects")?;
    let metrics = Arc::new(Metrics::new({
        let registry = registry.clone();
        move || resource_samples(&registry)
    }));
    metrics.ask_store({
        let store = store.clone();
        move || store_sample(&store)
    });
    metrics.ask_conversions({
        let registry = registry.clone();
        move || registry.built_in().conversion_samples()
    });
    metrics.ask_policies({
        let registry = registry.clone();
        move || registry.policy_samples()
    });
    metrics.ask_admission({
        let registry = registry.clone();
        move || registry.admission_samples()
    });
    metrics.tell_version(&version::binary_version(), options.version, &options.gates);
    let server = Server::bind(ServerOptions {
        address: SocketAddr::new(flags.bind_address, flags.secure_port),
        tls: certificates.tls(),
        strict_transport_security: StrictTransportSecurity::new(&flags.strict_transport_security_directives),
        metrics: metrics.clone(),
        shutdown_delay: flags.serving.shutdown_delay_duration,
        limits: connection_limits(&flags, raise_open_files()),
    })
    .with_context(|| format!("cannot listen on {}:{}", flags.bind_address, flags.secure_port))?;
    let external_address = external_address(&flags, server.address());
    let service_accounts = service_accounts::open(&flags, certificates.own(), registry.clone(), &external_address)?;
    let advertised = advertised(&flags, server.address());
    match registry.advertise(advertised).await {
        Err(error) if error.is_refusal() => {
            tracing::warn!(error = &error as &dyn std::error::Error, "the server is not advertised yet");
        }
        done => done.context("cannot advertise the server")?,
    }
    // The objects that every server has come first: a server that is full must still start.
    limit(&flags, &store);
    let advertising = tokio::spawn(keep_advertising(registry.clone(), advertised));
    let health = HealthChecks::new(server.drain(), vec![store_check(&store), quota_check(&store)]);
    let limits = InflightLimits {
        read_only: flags.max_requests_inflight,
        mutating: flags.max_mutating_requests_inflight,
        watches: flags.max_watches,
        unread_list_bytes: flags.max_unread_list_bytes,
        ..InflightLimits::default()
    };
    let api = Arc::new(Api::new(ApiOptions {
        registry: registry.clone(),
        authenticator: Authenticator::new(tokens, anonymous).with_service_accounts(service_accounts),
        peers,
        authorizer: registry.authorizer().clone(),
        inflight: Inflight::new(limits, &metrics),
        metrics: metrics.clone(),
        health,
        drain: server.drain(),
        external_address,
        version: version::info(options.version),
        pages: StatusPages {
            started: started_at,
            binary: version::binary_version(),
            version: options.version,
            has_statusz: options.gates.is_enabled(Feature::ComponentStatusz.name()),
            flags: options.gates.is_enabled(Feature::ComponentFlagz.name()).then_some(shown),
        },
        request_timeout: flags.serving.request_timeout,
        min_request_timeout: Duration::from_secs(flags.min_request_timeout.into()),
    }));

    let address = server.address();
    let certificates = announce(&flags, address, certificates)?;
    let stop_signal = stop_signal()?;
    let identity = options.gates.is_enabled(Feature::APIServerIdentity.name()).then(|| {
        let process = uuid::Uuid::new_v4().to_string();
        ServerIdentity::new(&hostname(), &process, options.version)
    });
    let name = identity.as_ref().map(|identity| identity.name().to_owned()).unwrap_or_default();
    manifests.tell(&metrics, &name);
    let manifests = tokio::spawn(manifests.run(registry.clone(), metrics.clone(), name));
    let presence = identity.map(|identity| Presence::begin(registry.clone(), identity));
    let usage = UsageKeeper::begin(registry.clone());
    let controllers = start_controllers(&flags, registry, certificates.root_ca());
    let keeping = tokio::spawn(certificates.run());
    let names = flags.controllers.enabled().iter().map(|controller| controller.name()).collect::<Vec<_>>().join(",");
    tracing::info!(%address, controllers = names, elapsed = ?started.elapsed(), "serving");
    let drained = server.run(api, stop_signal).await;
    advertising.abort();
    keeping.abort();
    manifests.abort();
    if drained.cut_off > 0 {
        tracing::warn!(connections = drained.cut_off, "cut off connections that did not finish in time");
    }
    // They write to the store: it closes after them.
    if let Some(presence) = presence {
        presence.end().await;
    }
    controllers.stop().await;
    usage.end().await;
    store.close().await;
    tracing::info!("stopped");
    Ok(())
}

/// What connections are allowed where so many files may be open.
fn connection_limits(flags: &ServeFlags, open_files: OpenFiles) -> Limits {
    let limits = Limits::default();
    let (connections, newcomers) = open_files.connections(flags.max_connections, limits.newcomers);
    let streams = flags.http2_max_streams_per_connection;
    Limits {
        connections,
        newcomers,
        streams: if streams == 0 { limits.unauthenticated_streams } else { streams },
        answer_timeout: flags.serving.request_timeout,
        ..limits
    }
}

/// Says what whoever runs the server may not expect of what they asked for.
fn warn_about(options: &CatalogOptions) {
    let changed: Vec<&str> = options.gates.changed().collect();
    let idle: Vec<&str> = changed.iter().copied().filter(|gate| Feature::named(gate).is_none()).collect();
    if !idle.is_empty() {
        tracing::warn!(gates = idle.join(","), "nothing in this server depends on these feature gates");
    }
    let unknown = Catalog::unknown_resources(&options.runtime_config);
    if !unknown.is_empty() {
        tracing::warn!(resources = unknown.join(","), "there are no resources with these names to switch on or off");
    }
    if options.version.is_emulated() {
        if options.runtime_config.asks_for_everything() && !options.allow_alpha {
            tracing::warn!("api/all does not bring the alpha versions of another release");
        }
        tracing::info!(version = %options.version, "behaving as another release");
        if options.allow_alpha {
            tracing::warn!("alpha features and APIs of another release are not made to be upgraded");
        }
    }
}

/// Which requests without credentials are let in.
fn anonymous(flags: &ServeFlags, options: &CatalogOptions) -> anyhow::Result<Anonymous> {
    let config = match &flags.authentication_config {
        Some(path) => AuthenticationConfig::load(path, &options.gates)?,
        None => AuthenticationConfig::default(),
    };
    let flag = AnonymousFlag { is_allowed: flags.anonymous_auth, is_given: flags.anonymous_auth_given };
    config.anonymous(flag, &flags.authorization_mode)
}

/// Which plugins are asked about writes, and what they were told.
fn admission(
    flags: &ServeFlags,
    options: &CatalogOptions,
    catalog: &Catalog,
) -> anyhow::Result<(AdmissionOptions, ManifestKeeper)> {
    let switches = PluginSwitches {
        enable: &flags.enable_admission_plugins,
        disable: &flags.disable_admission_plugins,
        exactly: flags.admission_control.as_deref(),
    };
    let plugins = enabled_plugins(switches).map_err(|problems| anyhow::anyhow!(problems.join("; ")))?;
    if switches.exactly.is_some() {
        tracing::warn!(
            "--admission-control is deprecated; --enable-admission-plugins and --disable-admission-plugins tell more"
        );
    }
    for plugin in
        plugins.iter().filter(|plugin| matches!(plugin, AdmissionPlugin::AlwaysAdmit | AdmissionPlugin::AlwaysDeny))
    {
        tracing::warn!(%plugin, "this admission plugin is deprecated and of no use");
    }
    let toleration_seconds = TolerationSeconds {
        not_ready: flags.default_not_ready_toleration_seconds,
        unreachable: flags.default_unreachable_toleration_seconds,
    };
    let config = AdmissionConfig { toleration_seconds, ..AdmissionConfig::default() };
    let reads_manifests = options.gates.is_enabled(Feature::ManifestBasedAdmissionControlConfig.name());
    let config =
        admission_config::load(flags.admission_control_config_file.as_deref(), &plugins, config, reads_manifests)?;
    let (keeper, manifests) = ManifestKeeper::begin(catalog, &config.manifest_folders)?;
    Ok((AdmissionOptions { plugins, config, manifests }, keeper))
}

async fn open_store(flags: &ServeFlags) -> anyhow::Result<EmbeddedStore> {
    let mut options = EmbeddedOptions::new(flags.data_dir.join("store"));
    options.history = HistoryLimits {
        age: flags.history,
        events: flags.history_events,
        bytes: flags.history_bytes,
        ..HistoryLimits::default()
    };
    Ok(EmbeddedStore::open(options).await?)
}

fn service_network(flags: &ServeFlags) -> anyhow::Result<ServiceNetwork> {
    let ranges: Vec<Cidr> = flags.service_cluster_ip_range.iter().map(|range| range.range()).collect();
    let is_dual = |one: &Cidr, two: &Cidr| one.network().is_ipv4() != two.network().is_ipv4();
    let is_good = matches!(ranges.as_slice(), [_]) || matches!(ranges.as_slice(), [one, two] if is_dual(one, two));
    anyhow::ensure!(is_good, "--service-cluster-ip-range takes one range, or one of each family");
    let node_ports = flags.service_node_port_range.ports();
    let own = flags.kubernetes_service_node_port;
    let is_inside = own == 0 || node_ports.contains(&own);
    anyhow::ensure!(is_inside, "--kubernetes-service-node-port {own} is not in --service-node-port-range");
    Ok(ServiceNetwork { ranges, node_ports })
}

/// Puts back what clients took away by which others find the server.
async fn keep_advertising(registry: Arc<Registry>, advertised: Advertised) {
    let mut ticks = tokio::time::interval(ADVERTISING);
    ticks.tick().await;
    loop {
        ticks.tick().await;
        if let Err(error) = registry.advertise(advertised).await {
            tracing::warn!(error = &error as &dyn std::error::Error, "cannot advertise the server");
        }
    }
}

fn certificates(flags: &ServeFlags) -> anyhow::Result<LiveCertificates> {
    let own = flags.service_cluster_ip_range.iter().map(|range| range.first_service());
    let options = LiveOptions {
        folder: flags.certificates(),
        names: server_names(std::iter::once(flags.bind_address).chain(own)),
        serving: ServingFiles::from_flags(flags.tls_cert_file.clone(), flags.tls_private_key_file.clone())?,
        named: flags.tls_sni_cert_key.clone(),
        client_authorities: flags.client_ca_file.clone(),
        tls: flags.serving.tls()?,
        holdings: Holdings::ControlPlane,
    };
    Ok(LiveCertificates::open(options, SystemTime::now())?)
}

fn start_controllers(flags: &ServeFlags, registry: Arc<Registry>, root_ca: watch::Receiver<String>) -> Controllers {
    let mut served = registry.served();
    let stored = |catalog: &Catalog| -> Arc<[Arc<Resource>]> {
        catalog.resources().filter(|resource| resource.is_stored()).cloned().collect()
    };
    let (sender, resources) = watch::channel(stored(&served.borrow_and_update()));
    tokio::spawn(async move {
        while served.changed().await.is_ok() {
            let resources = stored(&served.borrow_and_update());
            if sender.send(resources).is_err() {
                return;
            }
        }
    });
    Controllers::start(ControllersOptions {
        registry,
        resources,
        clock: Arc::new(SystemClock::start()),
        enabled: flags.controllers.enabled().to_vec(),
        root_ca,
        event_ttl: flags.event_ttl,
    })
}

fn store_check(store: &Arc<EmbeddedStore>) -> HealthCheck {
    let store = store.clone();
    HealthCheck::new("store", move || store.failure().map_or(Ok(()), |failure| Err(failure.to_string())))
}

/// Tells that the store is full. It still serves reads and deletions, which only come to a server that is ready.
fn quota_check(store: &Arc<EmbeddedStore>) -> HealthCheck {
    let store = store.clone();
    HealthCheck::alarm("store-quota", move || {
        let (used, quota) = (store.usage().state, store.quota().unwrap_or(u64::MAX));
        if store.is_full() { Err(StoreError::NoSpace { used, quota }.to_string()) } else { Ok(()) }
    })
}

fn store_sample(store: &EmbeddedStore) -> StoreSample {
    let usage = store.usage();
    StoreSample {
        state: usage.state,
        history: usage.history,
        disk: store.disk_bytes(),
        quota: store.quota(),
        is_full: store.is_full(),
    }
}

/// Bounds the store as `--quota-backend-bytes` says, in etcd's way.
fn limit(flags: &ServeFlags, store: &EmbeddedStore) {
    let quota = match flags.quota_backend_bytes {
        0 => Some(machine::default_quota(&flags.data_dir)),
        given => u64::try_from(given).ok(),
    };
    tracing::info!(quota, used = store.usage().total(), "bounding the store");
    store.limit_to(quota);
}

fn resource_samples(registry: &Registry) -> Vec<ResourceSample> {
    let revision = registry.cache().revision().map_or(0, |revision| revision.get());
    let sample = |resource: &Arc<revisor_catalog::Resource>| {
        let cache = registry.cache_of(resource);
        ResourceSample {
            group: resource.group.to_string(),
            resource: resource.plural.to_string(),
            objects: cache.len() as u64,
            watchers: cache.watcher_count() as u64,
            window_events: cache.window_len() as u64,
            resource_version: revision,
            stored_versions: registry.stored_versions(resource),
        }
    };
    // Versions of one resource are one resource here: a series that comes twice spoils the whole scrape.
    let mut seen = HashSet::new();
    let catalog = registry.catalog();
    let stored = catalog.resources().filter(|resource| resource.is_stored());
    stored.filter(|resource| seen.insert(resource.name())).map(sample).collect()
}

/// Writes the kubeconfig, which is looked after from then on, and tells the person who started this what to do next.
fn announce(
    flags: &ServeFlags,
    address: SocketAddr,
    certificates: LiveCertificates,
) -> anyhow::Result<CertificateKeeper> {
    let host = match flags.bind_address {
        any if any.is_unspecified() => SocketAddr::new([127, 0, 0, 1].into(), address.port()),
        _ => address,
    };
    let path = flags.data_dir.join("kubeconfig");
    let keeper = CertificateKeeper::begin(certificates, path.clone(), format!("https://{host}"))?;
    crate::print(&format!("KUBECONFIG={} kubectl get namespaces\n", shell_path(&path)))?;
    Ok(keeper)
}

/// A path that can be pasted into a shell.
fn shell_path(path: &Path) -> String {
    let path: PathBuf = if path.is_absolute() { path.to_owned() } else { Path::new(".").join(path) };
    let text = path.display().to_string();
    let is_plain = text.chars().all(|c| c.is_alphanumeric() || "/._-+@:".contains(c));
    if is_plain { text } else { format!("'{}'", text.replace('\'', "'\\''")) }
}

/// Resolves when the program is told to stop.
pub(crate) fn stop_signal() -> anyhow::Result<impl Future<Output = ()>> {
    let mut terminate = signal(SignalKind::terminate()).context("cannot listen for signals")?;
    let mut interrupt = signal(SignalKind::interrupt()).context("cannot listen for signals")?;
    Ok(async move {
        let name = tokio::select! {
            _ = terminate.recv() => "SIGTERM",
            _ = interrupt.recv() => "SIGINT",
        };
        tracing::info!(signal = name, "stopping");
    })
}
