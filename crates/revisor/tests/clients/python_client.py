"""What programs written with the Kubernetes client for Python do all day, against the server of KUBECONFIG.

Ends with an exit code other than 0 and a traceback at the first thing that is not as it should be.
"""

import datetime

from kubernetes import client, config, dynamic, watch
from kubernetes.client.exceptions import ApiException

NAMESPACE = "python"
LABELS = {"app": "web"}


def refused(status, reason, call, *arguments, **options):
    """The call must be answered with this status and reason."""
    try:
        call(*arguments, **options)
    except ApiException as error:
        assert error.status == status and reason in error.body, (error.status, error.body)
        return
    raise AssertionError(f"{call.__name__} was not refused")


def deployment():
    container = client.V1Container(
        name="web",
        image="registry.example/web:1",
        ports=[client.V1ContainerPort(container_port=80)],
        resources=client.V1ResourceRequirements(requests={"cpu": "0.5", "memory": "1024Mi"}),
    )
    template = client.V1PodTemplateSpec(
        metadata=client.V1ObjectMeta(labels=LABELS), spec=client.V1PodSpec(containers=[container])
    )
    spec = client.V1DeploymentSpec(
        replicas=2, selector=client.V1LabelSelector(match_labels=LABELS), template=template
    )
    return client.V1Deployment(metadata=client.V1ObjectMeta(name="web", labels=LABELS), spec=spec)


def configmaps(core):
    for number in range(5):
        body = client.V1ConfigMap(metadata=client.V1ObjectMeta(name=f"c{number}"), data={"k": str(number)})
        made = core.create_namespaced_config_map(NAMESPACE, body)
        assert made.metadata.uid and isinstance(made.metadata.creation_timestamp, datetime.datetime), made
    names, token = [], None
    while True:
        page = core.list_namespaced_config_map(NAMESPACE, limit=2, _continue=token)
        names += [item.metadata.name for item in page.items]
        token = page.metadata._continue
        if not token:
            break
    assert [name for name in names if name.startswith("c")] == [f"c{number}" for number in range(5)], names

    read = core.read_namespaced_config_map("c0", NAMESPACE)
    read.data["k"] = "changed"
    core.replace_namespaced_config_map("c0", NAMESPACE, read)
    refused(409, "Conflict", core.replace_namespaced_config_map, "c0", NAMESPACE, read)
    refused(404, "NotFound", core.read_namespaced_config_map, "none", NAMESPACE)
    bad = client.V1ConfigMap(metadata=client.V1ObjectMeta(name="Not A Name"))
    refused(422, "metadata.name", core.create_namespaced_config_map, NAMESPACE, bad)
    core.delete_collection_namespaced_config_map(NAMESPACE, field_selector="metadata.name!=kube-root-ca.crt")


def workloads(core, apps):
    made = apps.create_namespaced_deployment(NAMESPACE, deployment())
    assert made.metadata.generation == 1 and made.spec.strategy.type == "RollingUpdate", made
    container = made.spec.template.spec.containers[0]
    assert container.resources.requests == {"cpu": "500m", "memory": "1Gi"}, container
    assert container.ports[0].protocol == "TCP" and container.image_pull_policy == "IfNotPresent", container

    image = {"spec": {"template": {"spec": {"containers": [{"name": "web", "image": "registry.example/web:2"}]}}}}
    patched = apps.patch_namespaced_deployment("web", NAMESPACE, image)
    assert patched.metadata.generation == 2, patched
    assert patched.spec.template.spec.containers[0].ports[0].container_port == 80, "a strategic patch merges by name"

    scale = apps.read_namespaced_deployment_scale("web", NAMESPACE)
    assert (scale.spec.replicas, scale.status.selector) == (2, "app=web"), scale
    scale.spec.replicas = 3
    apps.replace_namespaced_deployment_scale("web", NAMESPACE, scale)
    status = {"status": {"replicas": 3, "readyReplicas": 1, "observedGeneration": 3}}
    apps.patch_namespaced_deployment_status("web", NAMESPACE, status)
    found = apps.read_namespaced_deployment("web", NAMESPACE)
    assert (found.spec.replicas, found.status.ready_replicas) == (3, 1), found

    port = client.V1ServicePort(port=80, target_port="http")
    body = client.V1Service(
        metadata=client.V1ObjectMeta(name="web"), spec=client.V1ServiceSpec(selector=LABELS, ports=[port])
    )
    service = core.create_namespaced_service(NAMESPACE, body)
    assert service.spec.cluster_ip.startswith("10.0.0.") and service.spec.ports[0].target_port == "http", service
    unequal = deployment()
    unequal.metadata.name = "unequal"
    unequal.spec.selector.match_labels = {"app": "other"}
    refused(422, "spec.template.metadata.labels", apps.create_namespaced_deployment, NAMESPACE, unequal)


def watching(core):
    start = core.list_namespaced_secret(NAMESPACE).metadata.resource_version
    for name in ("one", "two"):
        core.create_namespaced_secret(
            NAMESPACE, client.V1Secret(metadata=client.V1ObjectMeta(name=name), string_data={"a": "b"})
        )
    core.delete_namespaced_secret("one", NAMESPACE)
    seen = []
    watcher = watch.Watch()
    for event in watcher.stream(core.list_namespaced_secret, NAMESPACE, resource_version=start, timeout_seconds=20):
        seen.append((event["type"], event["object"].metadata.name))
        if event["type"] == "DELETED":
            watcher.stop()
    assert seen == [("ADDED", "one"), ("ADDED", "two"), ("DELETED", "one")], seen


def discovery(api):
    known = dynamic.DynamicClient(api)
    resource = known.resources.get(api_version="apps/v1", kind="Deployment")
    assert resource.namespaced and "patch" in resource.verbs, resource
    listed = resource.get(namespace=NAMESPACE, label_selector="app=web")
    assert [item.metadata.name for item in listed.items] == ["web"], listed


def main():
    config.load_kube_config()
    with client.ApiClient() as api:
        core, apps = client.CoreV1Api(api), client.AppsV1Api(api)
        core.create_namespace(client.V1Namespace(metadata=client.V1ObjectMeta(name=NAMESPACE)))
        configmaps(core)
        workloads(core, apps)
        watching(core)
        discovery(api)
    print("all as it should be")


if __name__ == "__main__":
    main()
