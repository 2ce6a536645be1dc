package envtest

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
	"sigs.k8s.io/controller-runtime/pkg/webhook"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"
)

// shades is what an operator would write: it completes config maps, refuses some, and warns of others.
type shades struct{}

func (shades) Default(_ context.Context, obj *corev1.ConfigMap) error {
	if obj.Data == nil {
		obj.Data = map[string]string{}
	}
	if obj.Data["shade"] == "" {
		obj.Data["shade"] = "blue"
	}
	return nil
}

func (shades) ValidateCreate(_ context.Context, obj *corev1.ConfigMap) (admission.Warnings, error) {
	switch obj.Data["shade"] {
	case "none":
		return nil, fmt.Errorf("a shade is needed")
	case "grey":
		return admission.Warnings{"grey is dull"}, nil
	}
	return nil, nil
}

func (s shades) ValidateUpdate(ctx context.Context, _, obj *corev1.ConfigMap) (admission.Warnings, error) {
	return s.ValidateCreate(ctx, obj)
}

func (shades) ValidateDelete(_ context.Context, obj *corev1.ConfigMap) (admission.Warnings, error) {
	if obj.Labels["keep"] != "" {
		return nil, fmt.Errorf("it is to be kept")
	}
	return nil, nil
}

// heard collects the warnings that a client was told.
type heard struct {
	mutex sync.Mutex
	texts []string
}

func (h *heard) HandleWarningHeader(_ int, _ string, text string) {
	h.mutex.Lock()
	defer h.mutex.Unlock()
	h.texts = append(h.texts, text)
}

func (h *heard) all() string {
	h.mutex.Lock()
	defer h.mutex.Unlock()
	return strings.Join(h.texts, "; ")
}

// Webhooks of controller-runtime, installed by envtest, complete, refuse and warn over TLS.
func TestWebhooks(t *testing.T) {
	none := admissionregistrationv1.SideEffectClassNone
	rules := func(operations ...admissionregistrationv1.OperationType) []admissionregistrationv1.RuleWithOperations {
		return []admissionregistrationv1.RuleWithOperations{{Operations: operations, Rule: admissionregistrationv1.Rule{
			APIGroups: []string{""}, APIVersions: []string{"v1"}, Resources: []string{"configmaps"}}}}
	}
	at := func(path string) admissionregistrationv1.WebhookClientConfig {
		return admissionregistrationv1.WebhookClientConfig{Service: &admissionregistrationv1.ServiceReference{
			Name: "hooks", Namespace: "default", Path: &path}}
	}
	mine := &metav1.LabelSelector{MatchLabels: map[string]string{"kubernetes.io/metadata.name": "default"}}
	mutating := &admissionregistrationv1.MutatingWebhookConfiguration{
		ObjectMeta: metav1.ObjectMeta{Name: "shades"},
		Webhooks: []admissionregistrationv1.MutatingWebhook{{Name: "m.shades.example.com", AdmissionReviewVersions: []string{"v1"},
			SideEffects: &none, ClientConfig: at("/mutate"), NamespaceSelector: mine,
			Rules: rules(admissionregistrationv1.Create, admissionregistrationv1.Update)}},
	}
	validating := &admissionregistrationv1.ValidatingWebhookConfiguration{
		ObjectMeta: metav1.ObjectMeta{Name: "shades"},
		Webhooks: []admissionregistrationv1.ValidatingWebhook{{Name: "v.shades.example.com", AdmissionReviewVersions: []string{"v1"},
			SideEffects: &none, ClientConfig: at("/validate"), NamespaceSelector: mine,
			Rules: rules(admissionregistrationv1.Create, admissionregistrationv1.Update, admissionregistrationv1.Delete)}},
	}
	env := &envtest.Environment{WebhookInstallOptions: envtest.WebhookInstallOptions{
		MutatingWebhooks:   []*admissionregistrationv1.MutatingWebhookConfiguration{mutating},
		ValidatingWebhooks: []*admissionregistrationv1.ValidatingWebhookConfiguration{validating},
	}}
	cfg, err := env.Start()
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := env.Stop(); err != nil {
			t.Error(err)
		}
	}()
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	options := env.WebhookInstallOptions
	server := webhook.NewServer(webhook.Options{Host: options.LocalServingHost, Port: options.LocalServingPort, CertDir: options.LocalServingCertDir})
	server.Register("/mutate", admission.WithDefaulter[*corev1.ConfigMap](scheme.Scheme, shades{}))
	server.Register("/validate", admission.WithValidator[*corev1.ConfigMap](scheme.Scheme, shades{}))
	go func() {
		if err := server.Start(ctx); err != nil {
			t.Error(err)
		}
	}()
	ready := server.StartedChecker()
	for begun := time.Now(); ready(&http.Request{}) != nil; time.Sleep(10 * time.Millisecond) {
		if time.Since(begun) > 10*time.Second {
			t.Fatal("the webhooks are not served")
		}
	}

	told := &heard{}
	cfg.WarningHandler = told
	c, err := client.New(cfg, client.Options{})
	if err != nil {
		t.Fatal(err)
	}
	plain := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "plain", Namespace: "default"}}
	if err := c.Create(ctx, plain); err != nil || plain.Data["shade"] != "blue" {
		t.Fatalf("it is completed: %v, %v", plain.Data, err)
	}
	refused := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "refused", Namespace: "default"}, Data: map[string]string{"shade": "none"}}
	err = c.Create(ctx, refused)
	if want := `admission webhook "v.shades.example.com" denied the request: a shade is needed`; !apierrors.IsForbidden(err) || err.Error() != want {
		t.Fatalf("it is refused: %v", err)
	}
	plain.Data["shade"] = "grey"
	if err := c.Update(ctx, plain); err != nil || told.all() != "grey is dull" {
		t.Fatalf("it is warned of: %q, %v", told.all(), err)
	}
	kept := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "kept", Namespace: "default", Labels: map[string]string{"keep": "yes"}}}
	if err := c.Create(ctx, kept, client.DryRunAll); err != nil || kept.Data["shade"] != "blue" {
		t.Fatalf("a dry run asks them too: %v, %v", kept.Data, err)
	}
	kept.ResourceVersion, kept.UID = "", ""
	if err := c.Create(ctx, kept); err != nil {
		t.Fatal(err)
	}
	if err := c.Delete(ctx, kept); !apierrors.IsForbidden(err) {
		t.Fatalf("its deletion is refused: %v", err)
	}
	elsewhere := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "elsewhere", Namespace: "kube-public"}, Data: map[string]string{"shade": "none"}}
	if err := c.Create(ctx, elsewhere); err != nil {
		t.Fatalf("other namespaces are left alone: %v", err)
	}
}
