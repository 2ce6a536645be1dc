"""What the end-to-end tests of the client ask for: where the server is."""

from kubernetes.client import Configuration
from kubernetes.config import load_kube_config


def get_e2e_configuration():
    configuration = Configuration()
    load_kube_config(client_configuration=configuration)
    return configuration
