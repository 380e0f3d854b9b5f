package credentialplugin

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	authv1 "k8s.io/api/authentication/v1"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	records "k8s.io/kubelet/config/v1beta1"
	clocktesting "k8s.io/utils/clock/testing"

	"swiftlet/internal/image"
	"swiftlet/test/poll"
)

// fixture is a set of plugins and what the test observes of them.
type fixture struct {
	*Plugins
	t      *testing.T
	clock  *clocktesting.FakePassiveClock
	notes  string // file with the requests that the plugins got
	failed []string
	ran    int
	hash   string
	tokens []*authv1.TokenRequest
	logged strings.Builder
}

// newFixture configures one plugin; $ENV in the config is replaced by the environment that selects
// the plugin's behavior.
func newFixture(t *testing.T, behavior, config string) *fixture {
	t.Helper()
	b := &fixture{t: t, clock: clocktesting.NewFakePassiveClock(time.Unix(1000, 0)), notes: filepath.Join(t.TempDir(), "notes")}
	dir := t.TempDir()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(self, filepath.Join(dir, "helper")); err != nil {
		t.Fatal(err)
	}
	// By default, a program with the race detector sleeps for a second before it exits.
	env := fmt.Sprintf("{name: PLUGIN, value: %q}, {name: NOTES, value: %q}, {name: GORACE, value: atexit_sleep_ms=0}", behavior, b.notes)
	file := filepath.Join(dir, "config.yaml")
	if err := os.WriteFile(file, []byte(strings.ReplaceAll(configHeader+config, "$ENV", env)), 0o600); err != nil {
		t.Fatal(err)
	}
	b.Plugins, err = New(Config{File: file, Dir: dir, Tokens: true}, Deps{
		Account: func(_ context.Context, namespace, name string) (*v1.ServiceAccount, error) {
			if name == "absent" {
				return nil, errors.New("not found")
			}
			return &v1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{
				Namespace: namespace, Name: name, UID: types.UID("uid-" + name), Annotations: map[string]string{"role": name, "other": "x"},
			}}, nil
		},
		Token: func(_ context.Context, namespace, account string, request *authv1.TokenRequest) (string, error) {
			b.tokens = append(b.tokens, request)
			return "token-of-" + account + "-" + request.Spec.BoundObjectRef.Name, nil
		},
		Meters: Meters{
			Ran: func(string, time.Duration) { b.ran++ }, Failed: func(name string) { b.failed = append(b.failed, name) },
			Configured: func(hash string) { b.hash = hash },
		},
		Clock: b.clock, Log: slog.New(slog.NewTextHandler(&b.logged, nil)),
	})
	if err != nil {
		t.Fatal(err)
	}
	return b
}

const configHeader = "apiVersion: kubelet.config.k8s.io/v1\nkind: CredentialProviderConfig\nproviders:\n"

// pluginConfig configures a plugin without tokens whose responses have this cache key type.
func pluginConfig(kind string) string {
	return `
- name: helper
  apiVersion: credentialprovider.kubelet.k8s.io/v1
  matchImages: ["*.example.com"]
  defaultCacheDuration: 1m
  args: [-v, for]
  env: [$ENV, {name: KIND, value: "` + kind + `"}, {name: PASSWORD, value: p}]
`
}

// requests returns the requests that the plugins got so far.
func (b *fixture) requests() []string {
	b.t.Helper()
	data, err := os.ReadFile(b.notes)
	if err != nil && !os.IsNotExist(err) {
		b.t.Fatal(err)
	}
	return strings.Fields(string(data))
}

func testPod(name, account string) *v1.Pod {
	return &v1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name, UID: types.UID("uid-" + name)}, Spec: v1.PodSpec{ServiceAccountName: account}}
}

func (b *fixture) find(p *v1.Pod, repository string) []image.Credential {
	return b.Credentials(b.t.Context(), p, repository)
}

func TestPluginRequest(t *testing.T) {
	b := newFixture(t, "answer", pluginConfig("Image"))
	found := b.find(testPod("p", "sa"), "a.example.com/app")
	if len(found) != 1 || found[0].Auth.Username != "-v for"+"a.example.com/app" || found[0].Auth.Password != "p" {
		t.Errorf("found %+v", found)
	}
	if found[0].ServiceAccount != nil || found[0].Secret != nil || !found[0].FromPlugin {
		t.Errorf("not a node credential: %+v", found[0])
	}
	if none := b.find(testPod("p", "sa"), "a.example.net/app"); len(none) > 0 {
		t.Errorf("for another host: %v", none)
	}
	want := []string{`{"kind":"CredentialProviderRequest","apiVersion":"credentialprovider.kubelet.k8s.io/v1","image":"a.example.com/app"}`}
	if diff := cmp.Diff(want, b.requests()); diff != "" {
		t.Error(diff)
	}
	if b.ran != 1 || len(b.failed) > 0 || len(b.tokens) > 0 {
		t.Errorf("%d runs, %v failed, tokens %v", b.ran, b.failed, b.tokens)
	}
}

// Scope and duration of cached responses.
func TestResponseCache(t *testing.T) {
	for _, test := range []struct {
		name, kind, duration, fallback string
		after                          time.Duration
		runs                           int // for a.example.com/app twice, .../other and b.example.com/app
	}{
		{name: "per image", kind: "Image", runs: 3},
		{name: "per registry", kind: "Registry", runs: 2},
		{name: "global", kind: "Global", runs: 1},
		{name: "zero duration", kind: "Global", duration: "0s", runs: 4},
		{name: "zero default duration", kind: "Global", fallback: "0s", runs: 4},
		{name: "duration overrides default", kind: "Global", duration: "1h", after: 10 * time.Minute, runs: 1},
		{name: "expired", kind: "Global", duration: "10s", after: 10 * time.Second, runs: 4},
		{name: "unknown cache key type", kind: "Sometimes", runs: 4},
	} {
		t.Run(test.name, func(t *testing.T) {
			config := strings.Replace(pluginConfig(test.kind), "$ENV", `$ENV, {name: DURATION, value: "`+test.duration+`"}`, 1)
			if test.fallback != "" {
				config = strings.Replace(config, "1m", test.fallback, 1)
			}
			b := newFixture(t, "answer", config)
			for _, repository := range []string{"a.example.com/app", "a.example.com/app", "a.example.com/other", "b.example.com/app"} {
				if found := b.find(testPod("p", "sa"), repository); len(found) != 1 && test.kind != "Sometimes" {
					t.Errorf("%s: found %v", repository, found)
				}
				b.clock.SetTime(b.clock.Now().Add(test.after))
			}
			if b.ran != test.runs {
				t.Errorf("%d runs, want %d", b.ran, test.runs)
			}
		})
	}
}

func withToken(cacheType, more string) string {
	return pluginConfig("Registry") + `
  tokenAttributes:
    serviceAccountTokenAudience: registry
    cacheType: ` + cacheType + more
}

func TestServiceAccountTokens(t *testing.T) {
	b := newFixture(t, "answer", withToken("ServiceAccount", `
    requireServiceAccount: true
    requiredServiceAccountAnnotationKeys: [role]
    optionalServiceAccountAnnotationKeys: [absent]`))
	found := b.find(testPod("p", "sa"), "a.example.com/app")
	account := &records.ImagePullServiceAccount{UID: "uid-sa", Namespace: "ns", Name: "sa"}
	if len(found) != 1 || found[0].Auth.Password != "ptoken-of-sa-p" || cmp.Diff(account, found[0].ServiceAccount) != "" {
		t.Errorf("found %+v", found)
	}
	want := []string{`{"kind":"CredentialProviderRequest","apiVersion":"credentialprovider.kubelet.k8s.io/v1","image":"a.example.com/app",` +
		`"serviceAccountToken":"token-of-sa-p","serviceAccountAnnotations":{"role":"sa"}}`}
	if diff := cmp.Diff(want, b.requests()); diff != "" {
		t.Error(diff)
	}
	wantToken := []*authv1.TokenRequest{{ObjectMeta: metav1.ObjectMeta{UID: "uid-sa"}, Spec: authv1.TokenRequestSpec{
		Audiences: []string{"registry"}, BoundObjectRef: &authv1.BoundObjectReference{APIVersion: "v1", Kind: "Pod", Name: "p", UID: "uid-p"},
	}}}
	if diff := cmp.Diff(wantToken, b.tokens); diff != "" {
		t.Error(diff)
	}
	// Another pod of the account gets the cached response, one of another account does not.
	b.find(testPod("q", "sa"), "a.example.com/other")
	b.find(testPod("r", "sb"), "a.example.com/app")
	if b.ran != 2 {
		t.Errorf("%d runs", b.ran)
	}
	if none := b.find(testPod("s", "absent"), "a.example.com/app"); len(none) > 0 || b.ran != 2 || !strings.Contains(b.logged.String(), "read service account ns/absent: not found") {
		t.Errorf("for a missing service account: %v\n%s", none, b.logged.String())
	}
	if none := b.find(testPod("static", ""), "a.example.com/app"); len(none) > 0 || b.ran != 2 {
		t.Errorf("without an account: %v, %d runs", none, b.ran)
	}
}

func TestResponseScopeByIdentity(t *testing.T) {
	for _, test := range []struct {
		name, config string
		runs         int // for two pods of an account and a static pod, twice each
	}{
		{"per token", withToken("Token", "\n    requireServiceAccount: false"), 3},
		{"per service account", withToken("ServiceAccount", "\n    requireServiceAccount: false"), 2},
		{"only pods with a service account", withToken("Token", "\n    requireServiceAccount: true"), 2},
		{"only service accounts with the annotation", withToken("Token", "\n    requireServiceAccount: true\n    requiredServiceAccountAnnotationKeys: [absent]"), 0},
	} {
		t.Run(test.name, func(t *testing.T) {
			b := newFixture(t, "answer", test.config)
			for range 2 {
				for _, p := range []*v1.Pod{testPod("p", "sa"), testPod("q", "sa"), testPod("static", "")} {
					for _, c := range b.find(p, "a.example.com/app") {
						if (c.ServiceAccount == nil) != (p.Name == "static") {
							t.Errorf("%s: %+v", p.Name, c)
						}
					}
				}
			}
			if b.ran != test.runs {
				t.Errorf("%d runs, want %d", b.ran, test.runs)
			}
		})
	}
}

// A token returned as a password must not reach other pods of the account.
func TestTokenAsPasswordIsRejected(t *testing.T) {
	for cacheType, want := range map[string]int{"ServiceAccount": 0, "Token": 1} {
		config := strings.Replace(withToken(cacheType, "\n    requireServiceAccount: true"), "PASSWORD, value: p", `PASSWORD, value: ""`, 1)
		b := newFixture(t, "answer", config)
		if found := b.find(testPod("p", "sa"), "a.example.com/app"); len(found) != want {
			t.Errorf("%s: found %v", cacheType, found)
		}
	}
}

func TestPluginFailures(t *testing.T) {
	for _, test := range []struct {
		name, behavior, logged string
		counted                bool
	}{
		{"exits with an error", "fail", "exit status 3: no luck xxx", true},
		{"too much output", "flood", "output exceeds 1048576 bytes", true},
		{"output is not JSON", "hunter2", "byte 1: invalid character 'h' looking for beginning of value", false},
		{"response of another version", `{"kind":"CredentialProviderResponse","apiVersion":"credentialprovider.kubelet.k8s.io/v1beta1"}`, "not a CredentialProviderResponse of credentialprovider.kubelet.k8s.io/v1", false},
	} {
		t.Run(test.name, func(t *testing.T) {
			b := newFixture(t, test.behavior, pluginConfig("Image"))
			if found := b.find(testPod("p", ""), "a.example.com/app"); len(found) > 0 {
				t.Errorf("found %v", found)
			}
			if !strings.Contains(b.logged.String(), test.logged) || len(b.logged.String()) > 2*maxStderr {
				t.Errorf("logged %s", b.logged.String())
			}
			if (len(b.failed) > 0) != test.counted || b.ran != 1 {
				t.Errorf("failed: %v, %d runs", b.failed, b.ran)
			}
		})
	}
}

// Canceling a request kills the plugin and its children.
func TestCancelKillsPluginAndChildren(t *testing.T) {
	b := newFixture(t, "hang", pluginConfig("Image"))
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		b.Credentials(ctx, testPod("p", ""), "a.example.com/app")
	}()
	for end := time.Now().Add(time.Minute); len(b.requests()) < 2 && time.Now().Before(end); {
		time.Sleep(5 * time.Millisecond)
	}
	child := b.child()
	cancel()
	<-done
	awaitEnd(t, child)
	if len(b.failed) > 0 { // canceled, not failed
		t.Errorf("failed: %v", b.failed)
	}
}

func TestPluginTimeout(t *testing.T) {
	b := newFixture(t, "hang", pluginConfig("Image"))
	b.list[0].timeout = 100 * time.Millisecond
	if found := b.find(testPod("p", ""), "a.example.com/app"); len(found) > 0 {
		t.Errorf("found %v", found)
	}
	if !strings.Contains(b.logged.String(), "timed out after 100ms and was killed") || len(b.failed) != 1 {
		t.Errorf("logged %s", b.logged.String())
	}
}

// A child that keeps the output open does not delay the response.
func TestPluginLeavesChild(t *testing.T) {
	b := newFixture(t, "leave a child", pluginConfig("Image"))
	if found := b.find(testPod("p", ""), "a.example.com/app"); len(found) != 1 {
		t.Errorf("found %v\n%s", found, b.logged.String())
	}
	if err := syscall.Kill(b.child(), syscall.SIGKILL); err != nil {
		t.Error(err)
	}
}

// child returns the pid that the plugin noted last.
func (b *fixture) child() int {
	b.t.Helper()
	requests := b.requests()
	if len(requests) == 0 {
		b.t.Fatal("the plugin wrote no notes")
	}
	pid, err := strconv.Atoi(requests[len(requests)-1])
	if err != nil {
		b.t.Fatal(err)
	}
	return pid
}

// awaitEnd waits until the process is gone or a zombie.
func awaitEnd(t *testing.T, pid int) {
	t.Helper()
	poll.Until(t, fmt.Sprintf("process %d to end", pid), func() bool {
		stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
		return err != nil || strings.Contains(string(stat), ") Z ")
	})
}
