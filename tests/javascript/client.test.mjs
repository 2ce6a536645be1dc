// The upstream client for JavaScript, doing what its users do; `cargo xtask ecosystem` runs it. KUBECONFIG names the server.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { setTimeout as pause } from 'node:timers/promises';
import {
    ApiextensionsV1Api,
    AuthorizationV1Api,
    CoreV1Api,
    CustomObjectsApi,
    KubeConfig,
    KubernetesObjectApi,
    PatchStrategy,
    Watch,
    makeInformer,
    setHeaderOptions,
} from '@kubernetes/client-node';

const config = new KubeConfig();
config.loadFromDefault();
const core = config.makeApiClient(CoreV1Api);
const namespace = 'default';

/** Asks again and again until there is an answer. */
async function until(ask) {
    for (const deadline = AbortSignal.timeout(15_000); ; deadline.throwIfAborted()) {
        const answer = await ask();
        if (answer) return answer;
        await pause(20);
    }
}

test('a namespace is patched', async () => {
    await core.createNamespace({ body: { metadata: { name: 'patched', labels: { before: 'yes' } } } });
    const body = [{ op: 'replace', path: '/metadata/labels', value: { after: 'yes' } }];
    await core.patchNamespace({ name: 'patched', body }, setHeaderOptions('Content-Type', PatchStrategy.JsonPatch));
    const { metadata } = await core.readNamespace({ name: 'patched' });
    assert.equal(metadata.labels.after, 'yes');
    assert.equal(metadata.labels.before, undefined);
    await core.deleteNamespace({ name: 'patched' });
});

test('what is not there and what is there already is told by its code', async () => {
    const body = { metadata: { name: 'twice' } };
    await core.createNamespacedConfigMap({ namespace, body });
    await assert.rejects(core.createNamespacedConfigMap({ namespace, body }), { code: 409 });
    await core.deleteNamespacedConfigMap({ namespace, name: 'twice' });
    await assert.rejects(core.readNamespacedConfigMap({ namespace, name: 'twice' }), { code: 404 });
});

test('a watch tells of what comes and goes', async () => {
    const seen = [];
    const watching = await new Watch(config).watch(
        `/api/v1/namespaces/${namespace}/configmaps`,
        { labelSelector: 'test=watch' },
        (type, object) => seen.push(`${type} ${object.metadata.name}`),
        () => {},
    );
    await core.createNamespacedConfigMap({ namespace, body: { metadata: { name: 'watched', labels: { test: 'watch' } } } });
    await core.deleteNamespacedConfigMap({ namespace, name: 'watched' });
    await until(() => seen.length === 2);
    watching.abort();
    assert.deepEqual(seen, ['ADDED watched', 'DELETED watched']);
});

test('an informer has what is there, and hears what changes', async () => {
    const list = () => core.listNamespacedConfigMap({ namespace, labelSelector: 'test=informer' });
    const body = (name, value) => ({ metadata: { name, labels: { test: 'informer' } }, data: { value } });
    await core.createNamespacedConfigMap({ namespace, body: body('first', '1') });
    const informer = makeInformer(config, `/api/v1/namespaces/${namespace}/configmaps`, list, 'test=informer');
    const errors = [];
    informer.on('error', (error) => errors.push(error));
    const seen = [];
    for (const kind of ['add', 'update', 'delete']) {
        informer.on(kind, (object) => seen.push(`${kind} ${object.metadata.name}`));
    }
    const heard = (...events) => until(() => events.every((event) => seen.includes(event)));
    await informer.start();
    await heard('add first');
    await core.createNamespacedConfigMap({ namespace, body: body('second', '1') });
    await core.replaceNamespacedConfigMap({ namespace, name: 'first', body: body('first', '2') });
    await core.deleteNamespacedConfigMap({ namespace, name: 'second' });
    await heard('add second', 'update first', 'delete second');
    assert.deepEqual(informer.list().map((object) => object.data.value), ['2']);
    await informer.stop();
    assert.deepEqual(errors, []);
    await core.deleteNamespacedConfigMap({ namespace, name: 'first' });
});

test('a definition is served, and its objects are applied by discovery', async () => {
    const version = {
        name: 'v1',
        served: true,
        storage: true,
        schema: {
            openAPIV3Schema: {
                type: 'object',
                properties: { spec: { type: 'object', properties: { watts: { type: 'integer', maximum: 100 } } } },
            },
        },
    };
    await config.makeApiClient(ApiextensionsV1Api).createCustomResourceDefinition({
        body: {
            metadata: { name: 'bulbs.demo.example' },
            spec: { group: 'demo.example', scope: 'Namespaced', names: { plural: 'bulbs', kind: 'Bulb' }, versions: [version] },
        },
    });
    const objects = KubernetesObjectApi.makeApiClient(config);
    const bulb = (watts) => ({ apiVersion: 'demo.example/v1', kind: 'Bulb', metadata: { name: 'desk', namespace }, spec: { watts } });
    const apply = (watts) => objects.patch(bulb(watts), undefined, undefined, 'tests', true, PatchStrategy.ServerSideApply);
    // It is established a moment after it was made.
    const notYet = (error) => (error.code === 404 || /Unrecognized API/.test(error) ? null : Promise.reject(error));
    await until(() => apply(40).catch(notYet));
    await assert.rejects(apply(1000), { code: 422 });
    const listed = await config
        .makeApiClient(CustomObjectsApi)
        .listNamespacedCustomObject({ group: 'demo.example', version: 'v1', namespace, plural: 'bulbs' });
    assert.deepEqual(listed.items.map((item) => item.spec.watts), [40]);
    await config.makeApiClient(ApiextensionsV1Api).deleteCustomResourceDefinition({ name: 'bulbs.demo.example' });
});

test('a service account comes with a token of its own', async () => {
    await core.createNamespacedServiceAccount({ namespace, body: { metadata: { name: 'robot' } } });
    const request = { spec: { audiences: [], expirationSeconds: 600 } };
    const { status } = await core.createNamespacedServiceAccountToken({ name: 'robot', namespace, body: request });
    const robot = new KubeConfig();
    robot.loadFromClusterAndUser(config.getCurrentCluster(), { name: 'robot', token: status.token });
    const attributes = { verb: 'list', resource: 'secrets', namespace };
    const review = await robot
        .makeApiClient(AuthorizationV1Api)
        .createSelfSubjectAccessReview({ body: { spec: { resourceAttributes: attributes } } });
    assert.equal(review.status.allowed, false);
    await assert.rejects(robot.makeApiClient(CoreV1Api).listNamespacedSecret({ namespace }), { code: 403 });
});
