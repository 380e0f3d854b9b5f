package main

import (
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"

	"swiftlet/internal/why"
)

// blockedPod is what a kubelet responds about a pod whose image does not exist.
func blockedPod(t *testing.T, now time.Time) string {
	t.Helper()
	b := why.New()
	p := &v1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web", UID: "u"}}
	p.Spec.Containers = []v1.Container{{Name: "app", Image: "x:1"}}
	b.Track(p, why.Starting, nil, now)
	b.End("u", why.Step{Kind: why.Image, Name: "app"}, why.Because(why.ImageNotFound, "", errors.New("no such manifest")), now, now.Add(time.Minute))
	r, _ := b.Report("u", nil, now)
	return encode(t, r)
}

func encode(t *testing.T, v any) string {
	t.Helper()
	text, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// serve serves texts by path over TLS, and writes its CA to a file.
func serve(t *testing.T, texts func(path string) string) (server *httptest.Server, ca string) {
	t.Helper()
	server = httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		text := texts(r.URL.Path)
		if text == "" {
			http.NotFound(w, r)
			return
		}
		fmt.Fprint(w, text)
	}))
	t.Cleanup(server.Close)
	ca = filepath.Join(t.TempDir(), "ca.crt")
	block := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
	if err := os.WriteFile(ca, block, 0o600); err != nil {
		t.Fatal(err)
	}
	return server, ca
}

// runWhy runs a command and returns what it prints.
func runWhy(t *testing.T, args ...string) (code int, out, errOut string) {
	t.Helper()
	var stdout, stderr strings.Builder
	code = run(t.Context(), args, &stdout, &stderr)
	return code, stdout.String(), stderr.String()
}

func TestWhyFromKubelet(t *testing.T) {
	now := time.Now()
	server, ca := serve(t, func(path string) string {
		return map[string]string{
			"/why/shop/web": blockedPod(t, now),
			"/why":          encode(t, why.New().Node(&v1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n1"}}, nil, now)),
		}[path]
	})
	reach := []string{"--server=" + server.URL, "--certificate-authority=" + ca}
	for name, c := range map[string]struct {
		args []string
		code int
		want string
	}{
		"pod and namespace": {[]string{"shop/web"}, 0, "container app: image x:1 does not exist in the registry (no such manifest), since " + now.Format(time.TimeOnly)},
		"namespace flag":    {[]string{"web", "-n", "shop"}, 0, "fix spec.containers[0].image\n"},
		"tree":              {[]string{"shop/web"}, 0, "└─ image app"},
		"JSON":              {[]string{"shop/web", "-o", "json"}, 0, `"class": "ImageNotFound"`},
		"node":              {[]string{"node"}, 0, "node n1: is not known by the API server yet"},
		"other namespace":   {[]string{"web"}, 1, "pod default/web on its node not found"},
		"two pods":          {[]string{"a", "b"}, 1, "want one pod"},
		"bad name":          {[]string{"a/b/c"}, 1, "neither POD nor NAMESPACE/POD"},
		"bad output":        {[]string{"web", "-o", "yaml"}, 1, "is not json"},
		"no pod":            {nil, 1, "accepts between 1 and 2 arg(s)"},
	} {
		t.Run(name, func(t *testing.T) {
			code, out, errOut := runWhy(t, append(append([]string{"swiftlet", "why"}, c.args...), reach...)...)
			if code != c.code || !strings.Contains(out+errOut, c.want) {
				t.Errorf("exit code %d, want %d and %q:\n%s%s", code, c.code, c.want, out, errOut)
			}
		})
	}
}

// kubeconfigOf writes a kubeconfig of this server, whose context has the namespace shop.
func kubeconfigOf(t *testing.T, server, ca string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "config")
	text := fmt.Sprintf(`{apiVersion: v1, kind: Config, current-context: c, contexts: [{name: c, context: {cluster: c, user: u, namespace: shop}}],
  clusters: [{name: c, cluster: {server: %q, certificate-authority: %q}}], users: [{name: u, user: {token: t}}]}`, server, ca)
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

func TestWhyThroughAPIServer(t *testing.T) {
	now := time.Now()
	server, ca := serve(t, func(path string) string {
		onNode := &v1.Pod{Spec: v1.PodSpec{NodeName: "n1"}}
		waiting := &v1.Pod{Status: v1.PodStatus{Conditions: []v1.PodCondition{{Type: v1.PodScheduled, Status: v1.ConditionFalse, Message: "0/3 nodes are available: 3 Insufficient cpu."}}}}
		return map[string]string{
			"/api/v1/namespaces/shop/pods/web":       encode(t, onNode),
			"/api/v1/namespaces/shop/pods/big":       encode(t, waiting),
			"/api/v1/nodes/n1/proxy/why/shop/web":    blockedPod(t, now),
			"/api/v1/namespaces/shop/pods/elsewhere": encode(t, &v1.Pod{Spec: v1.PodSpec{NodeName: "other"}}),
		}[path]
	})
	t.Setenv("KUBECONFIG", kubeconfigOf(t, server.URL, ca))
	for name, c := range map[string]struct {
		args string
		code int
		want string
	}{
		"namespace of context": {"kubectl-why web", 0, "container app: image x:1 does not exist"},
		"called by path":       {"/usr/local/bin/kubectl-why shop/web", 0, "container app: image x:1 does not exist"},
		"not scheduled":        {"kubectl-why big", 0, "pod: cannot be scheduled to any node (0/3 nodes are available: 3 Insufficient cpu.)"},
		"no such pod":          {"kubectl-why none", 1, "pod shop/none not found"},
		"other kubelet":        {"kubectl-why elsewhere", 1, "pod shop/elsewhere on its node not found"},
		"node without name":    {"kubectl-why node", 1, "name the node"},
		"no such context":      {"kubectl-why web --context=none", 1, "read kubeconfig"},
		"without up":           {"swiftlet why web --root=/none", 0, "container app: image x:1 does not exist"},
	} {
		t.Run(name, func(t *testing.T) {
			code, out, errOut := runWhy(t, strings.Fields(c.args)...)
			if code != c.code || !strings.Contains(out+errOut, c.want) {
				t.Errorf("exit code %d, want %d and %q:\n%s%s", code, c.code, c.want, out, errOut)
			}
		})
	}
}

func TestWhyWithoutKubelet(t *testing.T) {
	t.Setenv("KUBECONFIG", "/none/config")
	t.Setenv("HOME", "/none")
	code, _, errOut := runWhy(t, "swiftlet", "why", "web", "--root=/none")
	if code != 1 || !strings.Contains(errOut, "set --kubeconfig, or --server") {
		t.Errorf("exit code %d: %s", code, errOut)
	}
}

// TestWhyWatch prints each sentence once, until the pod is gone.
func TestWhyWatch(t *testing.T) {
	b, now := why.New(), time.Now()
	b.Track(&v1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "web", UID: "u"}}, why.Starting, nil, now)
	requests := 0
	server, ca := serve(t, func(string) string {
		switch requests++; requests {
		case 3:
			b.End("u", why.Step{Kind: why.Sandbox}, errors.New("no address"), now, time.Time{})
		case 5:
			return ""
		}
		r, _ := b.Report(types.UID("u"), nil, now)
		return encode(t, r)
	})
	f := whyFlags{watch: true, clock: hastyClock{}}
	f.reach.server, f.reach.tls.CAFile = server.URL, ca
	var out strings.Builder
	err := f.run(t.Context(), &out, []string{"web"})
	lines := strings.Split(strings.TrimSpace(out.String()), "\n")
	if err != nil || len(lines) != 3 || !strings.Contains(lines[0], "is being started") || !strings.Contains(lines[1], "no address") || lines[2] != "gone" {
		t.Errorf("%v\n%s", err, out.String())
	}
}

// hastyClock does not wait.
type hastyClock struct{ clock.RealClock }

func (hastyClock) After(time.Duration) <-chan time.Time {
	now := make(chan time.Time)
	close(now)
	return now
}
