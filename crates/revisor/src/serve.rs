//! `revisor serve`: puts the parts together, serves until a signal comes, and takes them apart in order.

use std::collections::{BTreeMap, HashSet};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

use anyhow::Context;
use revisor_api::{
    Api, ApiOptions, CrossOrigin, DebugPages, Distribution, FlowControl, HealthChecks, Inflight, InflightLimits,
    Limits, Metrics, ResourceSample, Server, ServerOptions, SetVerbosity, StatusPages, StrictTransportSecurity,
    WorkQueueSample,
};
use revisor_auth::{
    Anonymous, Authenticator, AuthorizationModes, Holdings, LiveCertificates, LiveOptions, ServiceAccounts,
    ServingFiles, TokenFile, TokenObject, brought_serving_files, server_names,
};
use revisor_cache::{Cache, CacheOptions};
use revisor_catalog::{Catalog, CatalogOptions, Feature, Resource};
use revisor_controllers::{
    Clock, Controller, ControllersOptions, Durations, ElectedControllers, LeaderElection, LeaderElectionOptions,
    QUEUE_BUCKETS, QueueSample, QueueTallies, ResourceList, SecretToken, SystemClock, TokenMaker,
};
use revisor_object::{Cidr, TokenSealer};
use revisor_registry::{
    AdmissionConfig, AdmissionOptions, AdmissionPlugin, Advertised, Environment, Registry, RegistryOptions,
    ServerIdentity, ServiceNetwork, TolerationSeconds,
};
use revisor_version::Revision;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::watch;

use crate::addresses::{advertised, external_address};
use crate::admission_plugins::{PluginSwitches, enabled_plugins};
use crate::authentication::token_authenticators;
use crate::authentication_config::{AnonymousFlag, AuthenticationConfig, ConfigContext};
use crate::backend::Backend;
use crate::behind::Behind;
use crate::certificate_keeper::CertificateKeeper;
use crate::debug_socket::DebugSocket;
use crate::encryption_config::EncryptionFile;
use crate::flags::{EndpointReconciler, ServeFlags};
use crate::health_checks::health_checks;
use crate::kept_secret::kept_secret;
use crate::manifest_keeper::ManifestKeeper;
use crate::open_files::{OpenFiles, raise_open_files};
use crate::own_config_maps::OwnConfigMaps;
use crate::presence::{Presence, hostname};
use crate::reload_metrics::ReloadMetrics;
use crate::service_accounts::OpenedAccounts;
use crate::spare_memory::Workers;
use crate::usage_keeper::{UsageKeeper, server_name};
use crate::{admission_config, authorization, logging, private_folder, service_accounts, spare_memory, version};

/// The stack of each thread. What is sent may nest, a write may lead to another one, and frames that were not optimised are
/// ten times the size of real ones; memory is only taken for as much of it as was ever used.
pub(crate) const THREAD_STACK: usize = 8 << 20;

/// How many threads may wait for the disk, and for authorization webhooks where requests are not bounded otherwise.
const DISK_THREADS: usize = 512;
const UNBOUNDED_REQUESTS: usize = 10_000;

/// How long a read waits for a version that the server has not reached.
const PATIENCE: Duration = Duration::from_secs(3);

/// How often it is looked whether others can still find the server.
const ADVERTISING: Duration = Duration::from_secs(10);

/// Serves until a signal comes. `shown` are the flags as the server shows them to those who ask.
pub(crate) fn serve(flags: ServeFlags, shown: BTreeMap<String, String>) -> anyhow::Result<()> {
    let set_verbosity = logging::start(flags.serving.verbosity, flags.serving.logging_format);
    let mut threads = tokio::runtime::Builder::new_multi_thread();
    threads.enable_all().thread_stack_size(THREAD_STACK).max_blocking_threads(most_threads(&flags));
    let workers = Arc::<Workers>::default();
    threads.on_thread_park({
        let workers = workers.clone();
        move || workers.before_sleep()
    });
    threads.build().context("cannot start threads")?.block_on(run(flags, shown, set_verbosity, workers))
}

/// How many threads may wait at once: those that read from disk, and one for every request that is being served, because an
/// expression may ask an authorization webhook in the midst of it. A webhook that hangs leaves a thread for all others.
fn most_threads(flags: &ServeFlags) -> usize {
    let (reads, writes) = (flags.max_requests_inflight, flags.max_mutating_requests_inflight);
    let served = if reads == 0 || writes == 0 { UNBOUNDED_REQUESTS } else { reads.saturating_add(writes) };
    DISK_THREADS + served.min(UNBOUNDED_REQUESTS)
}

async fn run(
    flags: ServeFlags,
    shown: BTreeMap<String, String>,
    set_verbosity: SetVerbosity,
    workers: Arc<Workers>,
) -> anyhow::Result<()> {
    let started = Instant::now();
    let started_at = SystemTime::now();
    let options = flags.catalog_options()?;
    let catalog = Arc::new(Catalog::build(&options)?);
    warn_about(&options);
    if !flags.idle.is_empty() {
        tracing::warn!(flags = flags.idle.join(","), "nothing in this server depends on these flags");
    }
    let authentication = authentication_config(&flags, &options)?;
    let election = flags.leader_election.options(flags.etcd.is_given())?;
    let modes = authorization::modes(&flags)?;
    let anonymous = anonymous(&flags, &authentication, &modes)?;
    let request_header = flags.request_header.request_header()?;
    let front_proxies = flags.request_header.front_proxies()?;
    service_accounts::check(&flags, &options.gates)?;
    let (admission, manifests) = admission(&flags, &options, &catalog)?;
    let audit = flags.audit.open()?;
    private_folder::secure(&flags.data_dir)?;
    if let Some(folder) = flags.cert_dir.as_ref().filter(|folder| !folder.starts_with(&flags.data_dir)) {
        private_folder::secure_keys(folder)?;
    }
    let tokens = match &flags.token_auth_file {
        Some(path) => TokenFile::load(path)?,
        None => TokenFile::default(),
    };
    // Keys are made while the folder is opened and the objects in it are read: both take their time, one of the processor
    // and one of the disk.
    let flags = Arc::new(flags);
    let making = tokio::task::spawn_blocking({
        let flags = flags.clone();
        move || certificates(&flags)
    });
    let encryption = encryption(&flags, &options).await?;
    let backend = Backend::open(&flags, &catalog, encryption.as_ref()).await?;
    let stores = backend.stores();

    let windows = CacheOptions { window_bytes: flags.history_memory, ..CacheOptions::default() };
    let cache = Cache::start(stores.clone(), windows);
    let registry = Registry::start(
        cache,
        RegistryOptions {
            catalog,
            environment: Environment::system(),
            sealer: sealer(&flags, &backend)?,
            patience: PATIENCE,
            services: service_network(&flags)?,
            authorization: modes.clone(),
            server: server_name(&flags.data_dir)?,
            admission,
            shows_versioning: options.shows_versioning(flags.etcd.is_given()),
        },
    )
    .await
    .context("cannot read the stored objects")?;
    let certificates = making.await??;
    let peers = certificates.peers();
    let metrics = Arc::new(Metrics::new({
        let registry = registry.clone();
        move || resource_samples(&registry)
    }));
    if let Some(sampler) = backend.sampler() {
        metrics.ask_store(sampler);
    }
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
    if let Some(encryption) = &encryption {
        encryption.metrics.register(metrics.registry())?;
    }
    metrics.tell_build(&version::info(options.version));
    metrics.tell_version(&version::binary_version(), options.version, &options.gates);
    let server = Server::bind(ServerOptions {
        address: SocketAddr::new(flags.bind_address, flags.secure_port),
        tls: certificates.tls(),
        strict_transport_security: StrictTransportSecurity::new(&flags.strict_transport_security_directives),
        cross_origin: CrossOrigin::new(&flags.cors_allowed_origins),
        goaway_chance: flags.goaway_chance,
        metrics: metrics.clone(),
        shutdown_delay: flags.serving.shutdown_delay_duration,
        limits: connection_limits(&flags, raise_open_files()),
    })
    .with_context(|| format!("cannot listen on {}:{}", flags.bind_address, flags.secure_port))?;
    let external_address = external_address(&flags, server.address());
    let opened =
        service_accounts::open(&flags, certificates.own(), registry.clone(), &external_address, metrics.registry());
    let OpenedAccounts { accounts: service_accounts, plugin } = opened.await?;
    let fetching_keys = plugin.map(|plugin| tokio::spawn(plugin.run()));
    let token_maker = token_maker(&service_accounts);
    let audiences = service_accounts.audiences().to_vec();
    let (others, issuers) = token_authenticators(&flags, &options, &registry, &audiences, authentication)?;
    let authenticator = Authenticator::new(tokens, anonymous)
        .with_service_accounts(service_accounts)
        .with_others(others)
        .with_request_header(request_header);
    let name = server_name(&flags.data_dir)?;
    let reloads = |what| ReloadMetrics::register(what, &name, metrics.registry());
    let following = match issuers {
        Some(file) => Some(tokio::spawn(file.run(reloads("authentication")?))),
        None => None,
    };
    let deciding = authorization::install(&flags, &options, registry.authorizer(), registry.webhook_client())?;
    let deciding = match deciding {
        Some(file) => Some(tokio::spawn(file.run(reloads("authorization")?))),
        None => None,
    };
    let advertised = advertised(&flags, server.address());
    if advertised.address.is_none() && flags.endpoint_reconciler_type != EndpointReconciler::None {
        tracing::info!("no address is known at which others could reach the server; it is not advertised");
    }
    match registry.advertise(advertised).await {
        Err(error) if error.is_refusal() => {
            tracing::warn!(error = &error as &dyn std::error::Error, "the server is not advertised yet");
        }
        done => done.context("cannot advertise the server")?,
    }
    // The objects that every server has come first: a server that is full must still start.
    backend.limit(&flags);
    let advertising = tokio::spawn(keep_advertising(registry.clone(), advertised));
    let health = HealthChecks::new(server.drain(), health_checks(&backend, encryption.as_ref(), &options));
    let encrypting = encryption.map(|file| tokio::spawn(file.run(backend.folder())));
    let limits = InflightLimits {
        read_only: flags.max_requests_inflight,
        mutating: flags.max_mutating_requests_inflight,
        watches: flags.max_watches,
        unread_list_bytes: flags.max_unread_list_bytes,
        ..InflightLimits::default()
    };
    let inflight = Inflight::new(limits, &metrics);
    let (inflight, borrowing) = match flow_control(&flags, &registry)? {
        Some(flow_control) => {
            metrics.ask_flow_control(flow_control.clone());
            let borrowing = tokio::spawn(flow_control.keep_borrowing());
            (inflight.with_flow_control(flow_control), Some(borrowing))
        }
        None => (inflight, None),
    };
    registry.keep_flow_control();
    match &audit {
        Some(auditor) => metrics.ask_audit(auditor.clone()),
        None => metrics.tell_no_audit(),
    }
    let debug = DebugPages::new(set_verbosity, flags.serving.request_timeout);
    let socket = flags.debugging.debug_socket_path.as_deref();
    let _socket = socket.map(|path| DebugSocket::open(path, debug.clone())).transpose()?;
    let outward = flags.outward.open(&registry)?;
    outward.aggregator.metrics().register(metrics.registry())?;
    let api = Arc::new(Api::new(ApiOptions {
        aggregator: Some(outward.aggregator.clone()),
        kubelets: outward.kubelets.clone(),
        registry: registry.clone(),
        authenticator,
        peers,
        authorizer: registry.authorizer().clone(),
        audit: audit.clone(),
        inflight,
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
        debug: flags.debugging.profiling.then_some(debug),
        request_timeout: flags.serving.request_timeout,
        min_request_timeout: Duration::from_secs(flags.min_request_timeout.into()),
    }));

    let address = server.address();
    // Where others share the store, only what was named is everybody's; the server's own authority is its own.
    let is_told = flags.client_ca_file.is_some() || !backend.is_shared();
    let authorities = if is_told { certificates.client_authorities() } else { Vec::new() };
    let mut own_config_maps = OwnConfigMaps::new(registry.clone(), watch::channel(authorities).1, front_proxies);
    own_config_maps.look().await;
    let certificates = announce(&flags, address, certificates)?;
    let own_config_maps = match is_told {
        true => own_config_maps.following(certificates.client_authorities()),
        false => own_config_maps,
    };
    let keeping_config_maps = tokio::spawn(own_config_maps.run());
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
    let advertiser = registry.clone();
    let clock: Arc<dyn Clock> = Arc::new(SystemClock::start());
    let queues = QueueTallies::new(&clock);
    metrics.ask_work_queues(work_queues(queues.clone(), flags.controllers.enabled().to_vec()));
    let options = ControllersOptions {
        resources: stored_resources(&registry),
        registry,
        clock,
        enabled: flags.controllers.enabled().to_vec(),
        queues,
        root_ca: certificates.root_ca(),
        token_maker,
        // From etcd events go by themselves.
        event_ttl: if flags.etcd.is_given() { Duration::ZERO } else { flags.event_ttl },
        elsewhere: Some(Arc::new(Behind(outward.aggregator.clone()))),
    };
    let controllers = start_controllers(options, election);
    let keeping = tokio::spawn(certificates.run());
    let outward = tokio::spawn(outward.run());
    let names = flags.controllers.enabled().iter().map(|controller| controller.name()).collect::<Vec<_>>().join(",");
    tracing::info!(%address, controllers = names, elapsed = ?started.elapsed(), "serving");
    // This thread has done nearly all of the start.
    spare_memory::collect();
    let giving_back = spare_memory::begin(workers);
    let drained = server.run(api, stop_signal).await;
    giving_back.abort();
    advertising.abort();
    if let Err(error) = advertiser.withdraw(advertised).await {
        tracing::warn!(error = &error as &dyn std::error::Error, "the server is still advertised");
    }
    keeping.abort();
    outward.abort();
    if let Some(borrowing) = borrowing {
        borrowing.abort();
    }
    for task in [encrypting, following, deciding, fetching_keys].into_iter().flatten() {
        task.abort();
    }
    keeping_config_maps.abort();
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
    if let Some(auditor) = audit {
        auditor.close().await;
    }
    stores.close().await;
    tracing::info!("stopped");
    Ok(())
}

/// Priority and fairness, if requests are let in by it.
fn flow_control(flags: &ServeFlags, registry: &Arc<Registry>) -> anyhow::Result<Option<FlowControl>> {
    if !flags.enable_priority_and_fairness {
        return Ok(None);
    }
    let (reads, writes) = (flags.max_requests_inflight, flags.max_mutating_requests_inflight);
    anyhow::ensure!(
        reads + writes > 0,
        "invalid configuration: MaxRequestsInFlight={reads} and MaxMutatingRequestsInFlight={writes}; they must add up \
         to something positive"
    );
    Ok(Some(FlowControl::new(registry.clone(), reads + writes)))
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

/// What `--authentication-config` says.
fn authentication_config(flags: &ServeFlags, options: &CatalogOptions) -> anyhow::Result<AuthenticationConfig> {
    match &flags.authentication_config {
        Some(path) => AuthenticationConfig::load(path, &ConfigContext::new(options, &flags.service_account_issuer)),
        None => Ok(AuthenticationConfig::default()),
    }
}

/// Which requests without credentials are let in.
fn anonymous(
    flags: &ServeFlags,
    config: &AuthenticationConfig,
    modes: &AuthorizationModes,
) -> anyhow::Result<Anonymous> {
    let flag = AnonymousFlag { is_allowed: flags.anonymous_auth, is_given: flags.anonymous_auth_given };
    config.anonymous(flag, modes)
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

/// How objects are encrypted on disk, if they are.
async fn encryption(flags: &Arc<ServeFlags>, options: &CatalogOptions) -> anyhow::Result<Option<EncryptionFile>> {
    let Some(path) = flags.encryption_provider_config.clone() else { return Ok(None) };
    let (reload, gates) = (flags.encryption_provider_config_automatic_reload, options.gates.clone());
    let server = server_name(&flags.data_dir)?;
    let loading = tokio::task::spawn_blocking(move || EncryptionFile::load(&path, reload, &gates, &server));
    Ok(Some(loading.await??))
}

/// How the pages of lists are continued: as the original does where its servers may be asked for the next one.
fn sealer(flags: &ServeFlags, backend: &Backend) -> anyhow::Result<TokenSealer> {
    if backend.is_shared() {
        return Ok(TokenSealer::open_to_all());
    }
    Ok(TokenSealer::new(kept_secret(&flags.data_dir.join("continue.key"))?))
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
    Ok(ServiceNetwork { ranges, node_ports, is_shared: flags.etcd.is_given() })
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
    let serving = ServingFiles::from_flags(flags.tls_cert_file.clone(), flags.tls_private_key_file.clone())?;
    let brought = flags.cert_dir.as_deref().and_then(brought_serving_files);
    let options = LiveOptions {
        folder: flags.certificates(),
        names: server_names(std::iter::once(flags.bind_address).chain(own)),
        serving: serving.or(brought),
        named: flags.tls_sni_cert_key.clone(),
        client_authorities: flags.client_ca_file.clone(),
        tls: flags.serving.tls()?,
        holdings: Holdings::ControlPlane,
    };
    Ok(LiveCertificates::open(options, SystemTime::now())?)
}

/// Makes the tokens of secrets, if the server has a key of its own.
fn token_maker(accounts: &ServiceAccounts) -> Option<TokenMaker> {
    let sign = accounts.legacy_signer()?;
    Some(Arc::new(move |token: SecretToken<'_>| {
        let account = TokenObject { name: token.account.to_owned(), uid: token.account_uid.to_owned() };
        sign(token.namespace, &account, token.secret)
    }))
}

/// The resources whose objects are stored, as definitions come and go.
fn stored_resources(registry: &Registry) -> ResourceList {
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
    resources
}

/// Starts them, or takes part in the election of who does.
fn start_controllers(options: ControllersOptions, election: Option<LeaderElectionOptions>) -> ElectedControllers {
    // Who has nothing to do need not lead.
    let election = election.filter(|_| !options.enabled.is_empty());
    let election =
        election.map(|election| LeaderElection::new(options.registry.clone(), options.clock.clone(), election));
    ElectedControllers::start(options, election)
}

/// What the queues of controllers tell, in the form in which it is measured.
fn work_queues(queues: QueueTallies, of: Vec<Controller>) -> impl Fn() -> Vec<WorkQueueSample> + Send + Sync + 'static {
    let distribution = |durations: Durations| {
        let cumulated = durations.buckets.iter().scan(0, |sum, count| {
            *sum += count;
            Some(*sum)
        });
        let buckets = QUEUE_BUCKETS.into_iter().zip(cumulated).collect();
        Distribution { buckets, count: durations.count, sum: durations.sum }
    };
    move || {
        let told = |queue: QueueSample| WorkQueueSample {
            name: queue.name,
            depth: queue.depth,
            adds: queue.adds,
            retries: queue.retries,
            waited: distribution(queue.waited),
            worked: distribution(queue.worked),
            unfinished: queue.unfinished.as_secs_f64(),
            longest: queue.longest.as_secs_f64(),
        };
        queues.samples(&of).into_iter().map(told).collect()
    }
}

fn resource_samples(registry: &Registry) -> Vec<ResourceSample> {
    let sample = |resource: &Arc<revisor_catalog::Resource>| {
        let cache = registry.cache_of(resource);
        ResourceSample {
            group: resource.group.to_string(),
            resource: resource.plural.to_string(),
            objects: cache.len() as u64,
            watchers: cache.watcher_count() as u64,
            window_events: cache.window_len() as u64,
            resource_version: cache.reached().map_or(0, Revision::get),
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
