package image

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
	kubelet "k8s.io/kubelet/config/v1beta1"
	clocktesting "k8s.io/utils/clock/testing"

	"swiftlet/test/fakecri"
)

const private = "registry.example.com/team/app:1"

// secretOf returns a credential from a pull secret.
func secretOf(name, password string) []Credential {
	s := &v1.Secret{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "ns", UID: types.UID("uid-" + name)}}
	return []Credential{login{username: "ann", password: password, secret: s}.credential()}
}

// accountOf returns a credential that a plugin issued for a service account.
func accountOf(name, password string) []Credential {
	a := &kubelet.ImagePullServiceAccount{Name: name, Namespace: "ns", UID: "uid-" + name}
	return []Credential{login{username: "ann", password: password, serviceAccount: a, fromPlugin: true}.credential()}
}

// setCredentials makes the puller find these credentials.
func (b *fixture) setCredentials(credentials []Credential) {
	b.credentials = func(context.Context, *v1.Pod, string) ([]Credential, error) { return credentials, nil }
}

// pulls returns the number of pulls that ensuring the image takes.
func (b *fixture) pulls(t *testing.T, image string, policy v1.PullPolicy) int {
	t.Helper()
	before := b.runtime.Count("PullImage")
	if _, err := b.ensure(testPod("u", image, policy)); err != nil {
		t.Fatal(err)
	}
	return b.runtime.Count("PullImage") - before
}

// Whether a pod may use a present image without a pull depends on the policy, on the pull that
// brought it, and on the pod's credentials.
func TestVerifyImageAccess(t *testing.T) {
	node := []Credential{login{username: "node"}.credential()}
	for _, test := range []struct {
		name           string
		policy         kubelet.ImagePullCredentialsVerificationPolicy
		allowed        []string
		preloaded      bool         // else the first pod pulls it
		first, second  []Credential // of the pods
		pullsForSecond int
	}{
		{name: "pulled without credentials", policy: kubelet.NeverVerifyPreloadedImages},
		{name: "pulled with node credentials", policy: kubelet.NeverVerifyPreloadedImages, first: node},
		{name: "pulled with a secret, requested without", policy: kubelet.NeverVerifyPreloadedImages, first: secretOf("a", "x"), pullsForSecond: 1},
		{name: "same secret", policy: kubelet.NeverVerifyPreloadedImages, first: secretOf("a", "x"), second: secretOf("a", "x")},
		{name: "same secret, renewed content", policy: kubelet.NeverVerifyPreloadedImages, first: secretOf("a", "x"), second: secretOf("a", "y")},
		{name: "another secret of the same content", policy: kubelet.NeverVerifyPreloadedImages, first: secretOf("a", "x"), second: secretOf("b", "x")},
		{name: "another secret", policy: kubelet.NeverVerifyPreloadedImages, first: secretOf("a", "x"), second: secretOf("b", "y"), pullsForSecond: 1},
		{name: "pulled with a secret, requested with node credentials", policy: kubelet.NeverVerifyPreloadedImages, first: secretOf("a", "x"), second: node, pullsForSecond: 1},
		{name: "same service account", policy: kubelet.NeverVerifyPreloadedImages, first: accountOf("a", "x"), second: accountOf("a", "y")},
		{name: "another service account", policy: kubelet.NeverVerifyPreloadedImages, first: accountOf("a", "x"), second: accountOf("b", "x"), pullsForSecond: 1},
		{name: "pulled with a service account, requested without", policy: kubelet.NeverVerifyPreloadedImages, first: accountOf("a", "x"), pullsForSecond: 1},
		{name: "pulled with a service account, requested with a secret", policy: kubelet.NeverVerifyPreloadedImages, first: accountOf("a", "x"), second: secretOf("a", "x"), pullsForSecond: 1},
		{name: "pulled with a secret, requested with a service account", policy: kubelet.NeverVerifyPreloadedImages, first: secretOf("a", "x"), second: accountOf("a", "x"), pullsForSecond: 1},
		{name: "preloaded is not verified", policy: kubelet.NeverVerifyPreloadedImages, preloaded: true},
		{name: "never verified", policy: kubelet.NeverVerify, first: secretOf("a", "x")},
		{name: "always verified, preloaded", policy: kubelet.AlwaysVerify, preloaded: true, pullsForSecond: 1},
		{name: "always verified, same secret", policy: kubelet.AlwaysVerify, first: secretOf("a", "x"), second: secretOf("a", "x")},
		{name: "allowlisted by name", policy: kubelet.NeverVerifyAllowlistedImages, allowed: []string{"registry.example.com/team/app"}, preloaded: true},
		{name: "allowlisted by prefix", policy: kubelet.NeverVerifyAllowlistedImages, allowed: []string{"registry.example.com/team/*"}, preloaded: true},
		{name: "allowlisted, pulled with a secret", policy: kubelet.NeverVerifyAllowlistedImages, allowed: []string{"registry.example.com/team/*"}, first: secretOf("a", "x")},
		{name: "not allowlisted", policy: kubelet.NeverVerifyAllowlistedImages, allowed: []string{"registry.example.com/tea", "other.example.com/*"}, preloaded: true, pullsForSecond: 1},
	} {
		t.Run(test.name, func(t *testing.T) {
			b := newFixture(t, Config{Verify: Verification{Dir: t.TempDir(), Policy: test.policy, Allowlist: test.allowed}})
			b.runtime.Publish(private, 1)
			if test.preloaded {
				b.runtime.AddImage(private, 1)
			} else {
				b.setCredentials(test.first)
				if n := b.pulls(t, private, v1.PullIfNotPresent); n != 1 {
					t.Fatalf("%d pulls for the first pod", n)
				}
			}
			b.setCredentials(test.second)
			if n := b.pulls(t, private, v1.PullIfNotPresent); n != test.pullsForSecond {
				t.Errorf("%d pulls for the second pod, want %d", n, test.pullsForSecond)
			}
			if n := b.pulls(t, private, v1.PullIfNotPresent); n != 0 {
				t.Errorf("%d pulls for the same again", n)
			}
			if left, _ := os.ReadDir(filepath.Join(b.verify.Dir, "pulling")); len(left) > 0 {
				t.Errorf("left behind: %v", left)
			}
		})
	}
}

// For a pod without access, an image on the node counts as absent.
func TestImageWithoutAccessCountsAsAbsent(t *testing.T) {
	b := newFixture(t, Config{})
	b.runtime.Publish(private, 1)
	b.setCredentials(secretOf("a", "x"))
	b.pulls(t, private, v1.PullIfNotPresent)
	b.setCredentials(nil)
	var failed *Error
	if _, err := b.ensure(testPod("other", private, v1.PullNever)); !errors.As(err, &failed) || failed.Reason != ReasonNeverPull {
		t.Errorf("got %v", err)
	}
}

// A record grants access under one name of the image only.
func TestRecordGrantsOneName(t *testing.T) {
	const other = "registry.example.com/copy/app:1"
	b := newFixture(t, Config{})
	b.runtime.Publish(private, 1)
	b.setCredentials(secretOf("a", "x"))
	b.pulls(t, private, v1.PullIfNotPresent)
	r := request{pod: testPod("u", other, ""), container: &v1.Container{Image: other}}
	if ok, err := b.mayUse(r, &runtimeapi.Image{Id: fakecri.ImageID(private)}); ok || err != nil {
		t.Errorf("by another name: %t, %v", ok, err)
	}
}

// An image whose pull was interrupted by a crash does not count as preloaded.
func TestInterruptedPullIsNotPreloaded(t *testing.T) {
	b := newFixture(t, Config{})
	if err := b.records.begin(private); err != nil {
		t.Fatal(err)
	}
	again := newFixture(t, Config{Verify: b.verify})
	again.runtime.Publish(private, 1)
	again.runtime.AddImage(private, 1)
	if n := again.pulls(t, private, v1.PullIfNotPresent); n != 1 {
		t.Errorf("%d pulls", n)
	}
	if left, _ := os.ReadDir(filepath.Join(b.verify.Dir, "pulling")); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
}

func TestCorruptRecordForcesPull(t *testing.T) {
	b := newFixture(t, Config{})
	b.runtime.Publish(private, 1)
	b.pulls(t, private, v1.PullIfNotPresent)
	file := filepath.Join(b.verify.Dir, "pulled", recordFileName(fakecri.ImageID(private)))
	if err := os.WriteFile(file, []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	for i, want := range []int{1, 0} {
		if n := b.pulls(t, private, v1.PullIfNotPresent); n != want {
			t.Errorf("round %d: %d pulls, want %d", i, n, want)
		}
	}
}

// Records have the reference kubelet's format: each kubelet reads the other's.
func TestRecordFormat(t *testing.T) {
	b := newFixture(t, Config{})
	b.runtime.Publish(private, 1)
	b.setCredentials(secretOf("a", "x"))
	b.pulls(t, private, v1.PullIfNotPresent)
	ref := fakecri.ImageID(private)
	file := filepath.Join(b.verify.Dir, "pulled", recordFileName(ref))
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	// The hash is of {"username":"ann","password":"x"}.
	const hash = "7d5cce6ea0e46d55b98c131e2449a700e8a50bde66a59007cd29fd4606cab8b2"
	want := `{"kind":"ImagePulledRecord","apiVersion":"kubelet.config.k8s.io/v1beta1","lastUpdatedTime":"1970-01-01T00:16:40Z","imageRef":"` + ref +
		`","credentialMapping":{"registry.example.com/team/app":{"kubernetesSecrets":[{"uid":"uid-a","namespace":"ns","name":"a","credentialHash":"` + hash + `"}]}}}` + "\n"
	if string(data) != want {
		t.Errorf("got  %swant %s", data, want)
	}
	// A record of an older API version, with fields that this package does not set, is kept.
	old := strings.Replace(strings.Replace(want, "v1beta1", "v1alpha1", 1), `"kubernetesSecrets"`,
		`"kubernetesServiceAccounts":[{"uid":"u","namespace":"ns","name":"sa"}],"kubernetesSecrets"`, 1)
	if err := os.WriteFile(file, []byte(old), 0o600); err != nil {
		t.Fatal(err)
	}
	b.setCredentials(secretOf("b", "x"))
	if n := b.pulls(t, private, v1.PullIfNotPresent); n != 0 {
		t.Errorf("%d pulls with a record of the reference's", n)
	}
	var record kubelet.ImagePulledRecord
	data, _ = os.ReadFile(file)
	if err := json.Unmarshal(data, &record); err != nil {
		t.Fatal(err)
	}
	granted := record.CredentialMapping["registry.example.com/team/app"]
	if len(granted.KubernetesSecrets) != 2 || len(granted.KubernetesServiceAccounts) != 1 {
		t.Errorf("got %s", data)
	}
}

func TestVerificationOff(t *testing.T) {
	b := newFixture(t, Config{Verify: Verification{Policy: kubelet.NeverVerifyPreloadedImages}})
	b.runtime.AddImage(private, 1)
	b.pulls(t, private, v1.PullIfNotPresent)
	if want := `spec.containers{c} Normal Pulled Container image "` + private + `" already present on machine`; b.events.seen[0] != want {
		t.Errorf("events %q", b.events.seen)
	}
	if err := (Verification{Dir: t.TempDir(), Policy: "Perhaps"}).Check(); err == nil {
		t.Error("an unknown policy is accepted")
	}
}

func TestUntagged(t *testing.T) {
	const digest = "@sha256:91fb4b041da273d5a3273b6d587d62d518300a6ad268b28628f74997b93171b2"
	for image, want := range map[string]string{
		"app": "app", "app:1": "app", "host:5000/app": "host:5000/app", "host:5000/app:1": "host:5000/app",
		"app" + digest: "app", "app:1" + digest: "app", "NOT A NAME": "NOT A NAME",
	} {
		if got := untagged(image); got != want {
			t.Errorf("%s: %s, want %s", image, got, want)
		}
	}
}

// A record has whole seconds. One that is written after a collection began, in the same second, is of an image that
// the collection may not have seen; without it the image would pass for a preloaded one.
func TestRecordOfTheSameSecondIsKept(t *testing.T) {
	r, err := openRecords(t.TempDir(), clocktesting.NewFakePassiveClock(time.Unix(1000, 900e6)), slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	if err := r.add("app", "ref", kubelet.ImagePullCredentials{NodePodsAccessible: true}); err != nil {
		t.Fatal(err)
	}
	if err := r.prune(nil, time.Unix(1000, 500e6)); err != nil {
		t.Fatal(err)
	}
	if record, err := r.find("ref"); err != nil || record == nil {
		t.Errorf("record %v, %v", record, err)
	}
}
