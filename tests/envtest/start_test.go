package envtest

import (
	"context"
	"slices"
	"testing"
	"time"

	apiextv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
)

// How often a control plane is started to tell how long that takes.
const starts = 5

// What every suite of an operator waits for before its first test: from Start to a list of its own kind. The times are told,
// and decide nothing.
func TestStart(t *testing.T) {
	var times []time.Duration
	for range starts {
		begun := time.Now()
		env := &envtest.Environment{CRDInstallOptions: envtest.CRDInstallOptions{CRDs: []*apiextv1.CustomResourceDefinition{tools()}}}
		cfg, err := env.Start()
		if err != nil {
			t.Fatal(err)
		}
		c, err := client.New(cfg, client.Options{})
		if err != nil {
			t.Fatal(err)
		}
		list := &unstructured.UnstructuredList{}
		list.SetAPIVersion("e.com/v1")
		list.SetKind("ToolList")
		if err := c.List(context.Background(), list); err != nil {
			t.Fatal(err)
		}
		times = append(times, time.Since(begun))
		if err := env.Stop(); err != nil {
			t.Fatal(err)
		}
	}
	slices.Sort(times)
	t.Logf("from Start to the first list of a custom resource: %v, of %v", times[len(times)/2], times)
}
