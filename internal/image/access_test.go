package image

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
	kubelet "k8s.io/kubelet/config/v1beta1"

	"swiftlet/test/fakecri"
)

const private = "registry.example.com/team/app:1"

// secretOf is a credential as a pull secret holds it.
func secretOf(name, password string) []Credential {
	s := &v1.Secret{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "ns", UID: types.UID("uid-" + name)}}
	return []Credential{login{username: "ann", password: password, secret: s}.credential()}
}

// accountOf is a credential as a plugin makes it for a service account.
func accountOf(name, password string) []Credential {
	a := &kubelet.ImagePullServiceAccount{Name: name, Namespace: "ns", UID: "uid-" + name}
	return []Credential{login{username: "ann", password: password, account: a, minted: true}.credential()}
}

// as has the puller find these credentials from now on.
func (b *bench) as(credentials []Credential) {
	b.credentials = func(context.Context, *v1.Pod, string) ([]Credential, error) { return credentials, nil }
}

// pulls is how many pulls it takes to give a pod the image.
func (b *bench) pulls(t *testing.T, image string, policy v1.PullPolicy) int {
	t.Helper()
	before := b.runtime.Count("PullImage")
	if _, err := b.ensure(aPod("u", image, policy)); err != nil {
		t.Fatal(err)
	}
	return b.runtime.Count("PullImage") - before
}

// Whether an image that is there may be used without a pull depends on the policy, on how
// it came, and on what the pod holds.
func TestWhoMayUseAnImage(t *testing.T) {
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
		{name: "pulled with the node's", policy: kubelet.NeverVerifyPreloadedImages, first: node},
		{name: "pulled with a secret, asked for with none", policy: kubelet.NeverVerifyPreloadedImages, first: secretOf("a", "x"), pullsForSecond: 1},
		{name: "with the same", policy: kubelet.NeverVerifyPreloadedImages, first: secretOf("a", "x"), second: secretOf("a", "x")},
		{name: "with the same, renewed", policy: kubelet.NeverVerifyPreloadedImages, first: secretOf("a", "x"), second: secretOf("a", "y")},
		{name: "with another of the same content", policy: kubelet.NeverVerifyPreloadedImages, first: secretOf("a", "x"), second: secretOf("b", "x")},
		{name: "with another", policy: kubelet.NeverVerifyPreloadedImages, first: secretOf("a", "x"), second: secretOf("b", "y"), pullsForSecond: 1},
		{name: "with the node's", policy: kubelet.NeverVerifyPreloadedImages, first: secretOf("a", "x"), second: node, pullsForSecond: 1},
		{name: "with the same service account", policy: kubelet.NeverVerifyPreloadedImages, first: accountOf("a", "x"), second: accountOf("a", "y")},
		{name: "with another service account", policy: kubelet.NeverVerifyPreloadedImages, first: accountOf("a", "x"), second: accountOf("b", "x"), pullsForSecond: 1},
		{name: "with a service account, then none", policy: kubelet.NeverVerifyPreloadedImages, first: accountOf("a", "x"), pullsForSecond: 1},
		{name: "with a service account, then a secret", policy: kubelet.NeverVerifyPreloadedImages, first: accountOf("a", "x"), second: secretOf("a", "x"), pullsForSecond: 1},
		{name: "with a secret, then a service account", policy: kubelet.NeverVerifyPreloadedImages, first: secretOf("a", "x"), second: accountOf("a", "x"), pullsForSecond: 1},
		{name: "preloaded", policy: kubelet.NeverVerifyPreloadedImages, preloaded: true},
		{name: "never verified", policy: kubelet.NeverVerify, first: secretOf("a", "x")},
		{name: "always verified, preloaded", policy: kubelet.AlwaysVerify, preloaded: true, pullsForSecond: 1},
		{name: "always verified, pulled before", policy: kubelet.AlwaysVerify, first: secretOf("a", "x"), second: secretOf("a", "x")},
		{name: "allowed by name", policy: kubelet.NeverVerifyAllowlistedImages, allowed: []string{"registry.example.com/team/app"}, preloaded: true},
		{name: "allowed by its beginning", policy: kubelet.NeverVerifyAllowlistedImages, allowed: []string{"registry.example.com/team/*"}, preloaded: true},
		{name: "allowed though pulled with a secret", policy: kubelet.NeverVerifyAllowlistedImages, allowed: []string{"registry.example.com/team/*"}, first: secretOf("a", "x")},
		{name: "not allowed", policy: kubelet.NeverVerifyAllowlistedImages, allowed: []string{"registry.example.com/tea", "other.example.com/*"}, preloaded: true, pullsForSecond: 1},
	} {
		t.Run(test.name, func(t *testing.T) {
			b := newBench(t, Config{Verify: Verification{Dir: t.TempDir(), Policy: test.policy, Allowed: test.allowed}})
			b.runtime.Publish(private, 1)
			if test.preloaded {
				b.runtime.AddImage(private, 1)
			} else {
				b.as(test.first)
				if n := b.pulls(t, private, v1.PullIfNotPresent); n != 1 {
					t.Fatalf("%d pulls for the first pod", n)
				}
			}
			b.as(test.second)
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

// A pod that may not use an image is not told that it is there.
func TestAnImageThatMayNotBeUsedIsNotPresent(t *testing.T) {
	b := newBench(t, Config{})
	b.runtime.Publish(private, 1)
	b.as(secretOf("a", "x"))
	b.pulls(t, private, v1.PullIfNotPresent)
	b.as(nil)
	var failed *Error
	if _, err := b.ensure(aPod("other", private, v1.PullNever)); !errors.As(err, &failed) || failed.Reason != ReasonNeverPull {
		t.Errorf("got %v", err)
	}
}

// What was recorded holds for one name of the image: another may belong to somebody else.
func TestRecordsHoldForOneName(t *testing.T) {
	const other = "registry.example.com/copy/app:1"
	b := newBench(t, Config{})
	b.runtime.Publish(private, 1)
	b.as(secretOf("a", "x"))
	b.pulls(t, private, v1.PullIfNotPresent)
	r := request{p: aPod("u", other, ""), c: &v1.Container{Image: other}}
	if ok, err := b.mayUse(r, &runtimeapi.Image{Id: fakecri.ImageID(private)}); ok || err != nil {
		t.Errorf("by another name: %t, %v", ok, err)
	}
}

// An image that arrived while an agent died is not taken for one that was always there.
func TestABrokenPullIsRemembered(t *testing.T) {
	b := newBench(t, Config{})
	if err := b.records.begin(private); err != nil {
		t.Fatal(err)
	}
	again := newBench(t, Config{Verify: b.verify})
	again.runtime.Publish(private, 1)
	again.runtime.AddImage(private, 1)
	if n := again.pulls(t, private, v1.PullIfNotPresent); n != 1 {
		t.Errorf("%d pulls", n)
	}
	if left, _ := os.ReadDir(filepath.Join(b.verify.Dir, "pulling")); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
}

func TestADamagedRecordMeansAPull(t *testing.T) {
	b := newBench(t, Config{})
	b.runtime.Publish(private, 1)
	b.pulls(t, private, v1.PullIfNotPresent)
	file := filepath.Join(b.verify.Dir, "pulled", fileOf(fakecri.ImageID(private)))
	if err := os.WriteFile(file, []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	for i, want := range []int{1, 0} {
		if n := b.pulls(t, private, v1.PullIfNotPresent); n != want {
			t.Errorf("round %d: %d pulls, want %d", i, n, want)
		}
	}
}

// The files are the reference kubelet's: each reads what the other wrote.
func TestRecordsAreTheReferences(t *testing.T) {
	b := newBench(t, Config{})
	b.runtime.Publish(private, 1)
	b.as(secretOf("a", "x"))
	b.pulls(t, private, v1.PullIfNotPresent)
	ref := fakecri.ImageID(private)
	file := filepath.Join(b.verify.Dir, "pulled", fileOf(ref))
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
	// An older version of the API, with fields that we do not set, is read and kept.
	old := strings.Replace(strings.Replace(want, "v1beta1", "v1alpha1", 1), `"kubernetesSecrets"`,
		`"kubernetesServiceAccounts":[{"uid":"u","namespace":"ns","name":"sa"}],"kubernetesSecrets"`, 1)
	if err := os.WriteFile(file, []byte(old), 0o600); err != nil {
		t.Fatal(err)
	}
	b.as(secretOf("b", "x"))
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

func TestVerificationCanBeOff(t *testing.T) {
	b := newBench(t, Config{Verify: Verification{Policy: kubelet.NeverVerifyPreloadedImages}})
	b.runtime.AddImage(private, 1)
	b.pulls(t, private, v1.PullIfNotPresent)
	if want := `spec.containers{c} Normal Pulled Container image "` + private + `" already present on machine`; b.events.seen[0] != want {
		t.Errorf("told %q", b.events.seen)
	}
	if err := (Verification{Dir: t.TempDir(), Policy: "Perhaps"}).validate(); err == nil {
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
