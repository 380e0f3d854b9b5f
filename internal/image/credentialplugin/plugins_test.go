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

// bench is a node with plugins.
type bench struct {
	*Plugins
	t      *testing.T
	clock  *clocktesting.FakePassiveClock
	notes  string // what the plugins were asked
	failed []string
	ran    int
	hash   string
	tokens []*authv1.TokenRequest
	logged strings.Builder
}

// newBench configures one plugin, as the text says; $ENV stands for how it is made to do
// what does says.
func newBench(t *testing.T, does, config string) *bench {
	t.Helper()
	b := &bench{t: t, clock: clocktesting.NewFakePassiveClock(time.Unix(1000, 0)), notes: filepath.Join(t.TempDir(), "notes")}
	dir := t.TempDir()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(self, filepath.Join(dir, "helper")); err != nil {
		t.Fatal(err)
	}
	// A program with the race detector sleeps for a second before it ends, unless told not to.
	env := fmt.Sprintf("{name: PLUGIN, value: %q}, {name: NOTES, value: %q}, {name: GORACE, value: atexit_sleep_ms=0}", does, b.notes)
	file := filepath.Join(dir, "config.yaml")
	if err := os.WriteFile(file, []byte(strings.ReplaceAll(head+config, "$ENV", env)), 0o600); err != nil {
		t.Fatal(err)
	}
	b.Plugins, err = New(Config{File: file, Dir: dir, Tokens: true}, Deps{
		Account: func(_ context.Context, namespace, name string) (*v1.ServiceAccount, error) {
			if name == "nobody" {
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

const head = "apiVersion: kubelet.config.k8s.io/v1\nkind: CredentialProviderConfig\nproviders:\n"

// plain is a plugin without tokens whose answers are good for what kind says.
func plain(kind string) string {
	return `
- name: helper
  apiVersion: credentialprovider.kubelet.k8s.io/v1
  matchImages: ["*.example.com"]
  defaultCacheDuration: 1m
  args: [-v, for]
  env: [$ENV, {name: KIND, value: "` + kind + `"}, {name: PASSWORD, value: p}]
`
}

// asked is what the plugins were told so far.
func (b *bench) asked() []string {
	b.t.Helper()
	data, err := os.ReadFile(b.notes)
	if err != nil && !os.IsNotExist(err) {
		b.t.Fatal(err)
	}
	return strings.Fields(string(data))
}

func aPod(name, account string) *v1.Pod {
	return &v1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name, UID: types.UID("uid-" + name)}, Spec: v1.PodSpec{ServiceAccountName: account}}
}

func (b *bench) find(p *v1.Pod, repository string) []image.Credential {
	return b.Credentials(b.t.Context(), p, repository)
}

func TestAPluginIsAsked(t *testing.T) {
	b := newBench(t, "answer", plain("Image"))
	found := b.find(aPod("p", "sa"), "a.example.com/app")
	if len(found) != 1 || found[0].Auth.Username != "-v for"+"a.example.com/app" || found[0].Auth.Password != "p" {
		t.Errorf("found %+v", found)
	}
	if found[0].ServiceAccount != nil || found[0].Secret != nil || !found[0].FromPlugin {
		t.Errorf("not the node's: %+v", found[0])
	}
	if none := b.find(aPod("p", "sa"), "a.example.net/app"); len(none) > 0 {
		t.Errorf("for another host: %v", none)
	}
	want := []string{`{"kind":"CredentialProviderRequest","apiVersion":"credentialprovider.kubelet.k8s.io/v1","image":"a.example.com/app"}`}
	if diff := cmp.Diff(want, b.asked()); diff != "" {
		t.Error(diff)
	}
	if b.ran != 1 || len(b.failed) > 0 || len(b.tokens) > 0 {
		t.Errorf("%d runs, %v failed, tokens %v", b.ran, b.failed, b.tokens)
	}
}

// What an answer is good for, and how long.
func TestAnswersAreKept(t *testing.T) {
	for _, test := range []struct {
		name, kind, duration, fallback string
		after                          time.Duration
		runs                           int // for a.example.com/app twice, .../other and b.example.com/app
	}{
		{name: "an image", kind: "Image", runs: 3},
		{name: "a registry", kind: "Registry", runs: 2},
		{name: "all", kind: "Global", runs: 1},
		{name: "not at all", kind: "Global", duration: "0s", runs: 4},
		{name: "not at all by default", kind: "Global", fallback: "0s", runs: 4},
		{name: "for longer than by default", kind: "Global", duration: "1h", after: 10 * time.Minute, runs: 1},
		{name: "no longer", kind: "Global", duration: "10s", after: 10 * time.Second, runs: 4},
		{name: "no kind", kind: "Sometimes", runs: 4},
	} {
		t.Run(test.name, func(t *testing.T) {
			config := strings.Replace(plain(test.kind), "$ENV", `$ENV, {name: DURATION, value: "`+test.duration+`"}`, 1)
			if test.fallback != "" {
				config = strings.Replace(config, "1m", test.fallback, 1)
			}
			b := newBench(t, "answer", config)
			for _, repository := range []string{"a.example.com/app", "a.example.com/app", "a.example.com/other", "b.example.com/app"} {
				if found := b.find(aPod("p", "sa"), repository); len(found) != 1 && test.kind != "Sometimes" {
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
	return plain("Registry") + `
  tokenAttributes:
    serviceAccountTokenAudience: registry
    cacheType: ` + cacheType + more
}

func TestTokensOfServiceAccounts(t *testing.T) {
	b := newBench(t, "answer", withToken("ServiceAccount", `
    requireServiceAccount: true
    requiredServiceAccountAnnotationKeys: [role]
    optionalServiceAccountAnnotationKeys: [absent]`))
	found := b.find(aPod("p", "sa"), "a.example.com/app")
	account := &records.ImagePullServiceAccount{UID: "uid-sa", Namespace: "ns", Name: "sa"}
	if len(found) != 1 || found[0].Auth.Password != "ptoken-of-sa-p" || cmp.Diff(account, found[0].ServiceAccount) != "" {
		t.Errorf("found %+v", found)
	}
	want := []string{`{"kind":"CredentialProviderRequest","apiVersion":"credentialprovider.kubelet.k8s.io/v1","image":"a.example.com/app",` +
		`"serviceAccountToken":"token-of-sa-p","serviceAccountAnnotations":{"role":"sa"}}`}
	if diff := cmp.Diff(want, b.asked()); diff != "" {
		t.Error(diff)
	}
	wantToken := []*authv1.TokenRequest{{ObjectMeta: metav1.ObjectMeta{UID: "uid-sa"}, Spec: authv1.TokenRequestSpec{
		Audiences: []string{"registry"}, BoundObjectRef: &authv1.BoundObjectReference{APIVersion: "v1", Kind: "Pod", Name: "p", UID: "uid-p"},
	}}}
	if diff := cmp.Diff(wantToken, b.tokens); diff != "" {
		t.Error(diff)
	}
	// Another pod of the account is told the same, one of another account is not.
	b.find(aPod("q", "sa"), "a.example.com/other")
	b.find(aPod("r", "sb"), "a.example.com/app")
	if b.ran != 2 {
		t.Errorf("%d runs", b.ran)
	}
	if none := b.find(aPod("s", "nobody"), "a.example.com/app"); len(none) > 0 || b.ran != 2 || !strings.Contains(b.logged.String(), "read service account ns/nobody: not found") {
		t.Errorf("for an account that is not there: %v\n%s", none, b.logged.String())
	}
	if none := b.find(aPod("static", ""), "a.example.com/app"); len(none) > 0 || b.ran != 2 {
		t.Errorf("without an account: %v, %d runs", none, b.ran)
	}
}

func TestWhomAnAnswerIsFor(t *testing.T) {
	for _, test := range []struct {
		name, config string
		runs         int // for two pods of an account and a static pod, twice each
	}{
		{"a token", withToken("Token", "\n    requireServiceAccount: false"), 3},
		{"an account", withToken("ServiceAccount", "\n    requireServiceAccount: false"), 2},
		{"those with an account", withToken("Token", "\n    requireServiceAccount: true"), 2},
		{"those who opted in", withToken("Token", "\n    requireServiceAccount: true\n    requiredServiceAccountAnnotationKeys: [absent]"), 0},
	} {
		t.Run(test.name, func(t *testing.T) {
			b := newBench(t, "answer", test.config)
			for range 2 {
				for _, p := range []*v1.Pod{aPod("p", "sa"), aPod("q", "sa"), aPod("static", "")} {
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

// A token handed back as a password must not be given to other pods of the account.
func TestATokenIsNotPassedOn(t *testing.T) {
	for cacheType, want := range map[string]int{"ServiceAccount": 0, "Token": 1} {
		config := strings.Replace(withToken(cacheType, "\n    requireServiceAccount: true"), "PASSWORD, value: p", `PASSWORD, value: ""`, 1)
		b := newBench(t, "answer", config)
		if found := b.find(aPod("p", "sa"), "a.example.com/app"); len(found) != want {
			t.Errorf("%s: found %v", cacheType, found)
		}
	}
}

func TestPluginsThatFail(t *testing.T) {
	for _, test := range []struct {
		name, does, says string
		counted          bool
	}{
		{"it fails", "fail", "exit status 3: no luck xxx", true},
		{"it never stops", "flood", "output exceeds 1048576 bytes", true},
		{"no JSON", "hunter2", "byte 1: invalid character 'h' looking for beginning of value", false},
		{"another version", `{"kind":"CredentialProviderResponse","apiVersion":"credentialprovider.kubelet.k8s.io/v1beta1"}`, "not a CredentialProviderResponse of credentialprovider.kubelet.k8s.io/v1", false},
	} {
		t.Run(test.name, func(t *testing.T) {
			b := newBench(t, test.does, plain("Image"))
			if found := b.find(aPod("p", ""), "a.example.com/app"); len(found) > 0 {
				t.Errorf("found %v", found)
			}
			if !strings.Contains(b.logged.String(), test.says) || len(b.logged.String()) > 2*maxComplaint {
				t.Errorf("logged %s", b.logged.String())
			}
			if (len(b.failed) > 0) != test.counted || b.ran != 1 {
				t.Errorf("failed: %v, %d runs", b.failed, b.ran)
			}
		})
	}
}

// A plugin that nobody waits for any more is killed, and so is what it started.
func TestAPluginIsKilledWithItsChildren(t *testing.T) {
	b := newBench(t, "hang", plain("Image"))
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		b.Credentials(ctx, aPod("p", ""), "a.example.com/app")
	}()
	for end := time.Now().Add(time.Minute); len(b.asked()) < 2 && time.Now().Before(end); {
		time.Sleep(5 * time.Millisecond)
	}
	child := b.child()
	cancel()
	<-done
	awaitEnd(t, child)
	if len(b.failed) > 0 { // it was we who gave up
		t.Errorf("failed: %v", b.failed)
	}
}

func TestAPluginThatTakesTooLong(t *testing.T) {
	b := newBench(t, "hang", plain("Image"))
	b.list[0].timeout = 100 * time.Millisecond
	if found := b.find(aPod("p", ""), "a.example.com/app"); len(found) > 0 {
		t.Errorf("found %v", found)
	}
	if !strings.Contains(b.logged.String(), "timed out after 100ms and was killed") || len(b.failed) != 1 {
		t.Errorf("logged %s", b.logged.String())
	}
}

// A child that keeps the output open does not keep the answer from us.
func TestAPluginThatLeavesAChild(t *testing.T) {
	b := newBench(t, "leave a child", plain("Image"))
	if found := b.find(aPod("p", ""), "a.example.com/app"); len(found) != 1 {
		t.Errorf("found %v\n%s", found, b.logged.String())
	}
	if err := syscall.Kill(b.child(), syscall.SIGKILL); err != nil {
		t.Error(err)
	}
}

// child is the process that the plugin noted last.
func (b *bench) child() int {
	b.t.Helper()
	asked := b.asked()
	if len(asked) == 0 {
		b.t.Fatal("the plugin noted nothing")
	}
	pid, err := strconv.Atoi(asked[len(asked)-1])
	if err != nil {
		b.t.Fatal(err)
	}
	return pid
}

// awaitEnd: the process is gone, or dead and nobody's business.
func awaitEnd(t *testing.T, pid int) {
	t.Helper()
	poll.Until(t, fmt.Sprintf("process %d to end", pid), func() bool {
		stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
		return err != nil || strings.Contains(string(stat), ") Z ")
	})
}
