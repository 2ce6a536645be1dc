// Package envtest starts Revisor as controller-runtime's envtest starts a control plane, and does what suites of operators
// do with it. `cargo xtask ecosystem` runs it.
package envtest

import (
	"context"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apiextv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
)

// tools is the definition that an operator would bring.
func tools() *apiextv1.CustomResourceDefinition {
	preserve := true
	return &apiextv1.CustomResourceDefinition{
		ObjectMeta: metav1.ObjectMeta{Name: "tools.e.com"},
		Spec: apiextv1.CustomResourceDefinitionSpec{
			Group: "e.com", Scope: apiextv1.NamespaceScoped,
			Names: apiextv1.CustomResourceDefinitionNames{Plural: "tools", Kind: "Tool", Singular: "tool", ListKind: "ToolList"},
			Versions: []apiextv1.CustomResourceDefinitionVersion{{Name: "v1", Served: true, Storage: true,
				Schema: &apiextv1.CustomResourceValidation{OpenAPIV3Schema: &apiextv1.JSONSchemaProps{Type: "object", XPreserveUnknownFields: &preserve}}}},
		},
	}
}

// A definition is installed, objects are made and collected, users come by certificates, and all of it stops at once.
func TestEnvironment(t *testing.T) {
	begun := time.Now()
	env := &envtest.Environment{CRDInstallOptions: envtest.CRDInstallOptions{CRDs: []*apiextv1.CustomResourceDefinition{tools()}}}
	cfg, err := env.Start()
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("started with a CRD in %v", time.Since(begun))
	c, err := client.New(cfg, client.Options{})
	if err != nil {
		t.Fatal(err)
	}
	ctx := context.Background()
	tool := &unstructured.Unstructured{}
	tool.SetAPIVersion("e.com/v1")
	tool.SetKind("Tool")
	tool.SetNamespace("default")
	tool.SetName("a")
	if err := c.Create(ctx, tool); err != nil {
		t.Fatal(err)
	}
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "p", Namespace: "default", OwnerReferences: []metav1.OwnerReference{{APIVersion: "e.com/v1", Kind: "Tool", Name: "a", UID: tool.GetUID()}}},
		Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Image: "i"}}}}
	if err := c.Create(ctx, pod); err != nil {
		t.Fatal(err)
	}
	user, err := env.AddUser(envtest.User{Name: "bob", Groups: []string{"guests"}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	bob, err := client.New(user.Config(), client.Options{Mapper: c.RESTMapper()})
	if err != nil {
		t.Fatal(err)
	}
	if err := bob.Get(ctx, client.ObjectKeyFromObject(pod), &corev1.Pod{}); !apierrors.IsForbidden(err) {
		t.Fatalf("bob: %v", err)
	}
	if err := c.Delete(ctx, tool); err != nil {
		t.Fatal(err)
	}
	for i := 0; ; i++ {
		err := c.Get(ctx, client.ObjectKeyFromObject(pod), &corev1.Pod{})
		if apierrors.IsNotFound(err) {
			break
		}
		if i > 100 {
			t.Fatalf("not collected: %v", err)
		}
		time.Sleep(50 * time.Millisecond)
	}
	begun = time.Now()
	if err := env.Stop(); err != nil {
		t.Fatal(err)
	}
	t.Logf("stopped in %v", time.Since(begun))
}
