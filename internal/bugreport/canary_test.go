package bugreport

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	kubeletconfig "k8s.io/kubelet/config/v1beta1"
	testclock "k8s.io/utils/clock/testing"

	"swiftlet/internal/why"
)

var epoch = time.Date(2026, 11, 19, 12, 0, 0, 0, time.UTC)

// canaries are secrets by the place where they are.
type canaries map[string]string

// at returns a new secret for a place.
func (c canaries) at(place string) string {
	c[place] = "canary" + rand.Text()
	return c[place]
}

// pod is a pod with a secret in every field whose value its author may choose.
func (c canaries) pod() *v1.Pod {
	handler := func(of string) v1.ProbeHandler {
		return v1.ProbeHandler{
			Exec:    &v1.ExecAction{Command: []string{"check", c.at(of + " argument")}},
			HTTPGet: &v1.HTTPGetAction{Path: "/health?key=" + c.at(of+" path"), HTTPHeaders: []v1.HTTPHeader{{Name: "X-Key", Value: c.at(of + " header")}}},
		}
	}
	probe := &v1.Probe{ProbeHandler: handler("probe")}
	hook := handler("hook")
	container := func(kind string) v1.Container {
		return v1.Container{
			Name: kind, Image: "registry.example/app:1", Command: []string{"/bin/app", "-p", c.at(kind + " command")},
			Args:          []string{"--flag=" + c.at(kind+" argument")},
			Env:           []v1.EnvVar{{Name: "PLAIN", Value: "line\n" + c.at(kind+" variable") + "\n"}},
			LivenessProbe: probe, ReadinessProbe: probe, StartupProbe: probe,
			Lifecycle: &v1.Lifecycle{PostStart: &v1.LifecycleHandler{Exec: hook.Exec, HTTPGet: hook.HTTPGet}},
		}
	}
	p := &v1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web", UID: "u", Annotations: map[string]string{
		"kubectl.kubernetes.io/last-applied-configuration": `{"env":"` + c.at("applied configuration") + `"}`,
		"image": c.at("annotation with the name of a field"),
	}}}
	p.ManagedFields = []metav1.ManagedFieldsEntry{{Manager: c.at("managed fields")}}
	p.Spec.InitContainers = []v1.Container{container("init")}
	p.Spec.Containers = []v1.Container{container("main")}
	p.Spec.EphemeralContainers = []v1.EphemeralContainer{{EphemeralContainerCommon: v1.EphemeralContainerCommon(container("debug"))}}
	p.Spec.HostAliases = []v1.HostAlias{{IP: "10.0.0.1", Hostnames: []string{c.at("host alias")}}}
	p.Spec.SecurityContext = &v1.PodSecurityContext{Sysctls: []v1.Sysctl{{Name: "kernel.shm", Value: c.at("sysctl")}}}
	p.Spec.Volumes = []v1.Volume{
		{Name: "csi", VolumeSource: v1.VolumeSource{CSI: &v1.CSIVolumeSource{Driver: "d", VolumeAttributes: map[string]string{"name": c.at("CSI attribute")}}}},
		{Name: "flex", VolumeSource: v1.VolumeSource{FlexVolume: &v1.FlexVolumeSource{Driver: "d", Options: map[string]string{"name": c.at("FlexVolume option")}}}},
		{Name: "git", VolumeSource: v1.VolumeSource{GitRepo: &v1.GitRepoVolumeSource{Repository: "https://user:" + c.at("repository") + "@git.example"}}},
		{Name: "azure", VolumeSource: v1.VolumeSource{AzureDisk: &v1.AzureDiskVolumeSource{DataDiskURI: "https://disk?sig=" + c.at("disk")}}},
	}
	p.Spec.Containers[0].Image = "https://user:" + c.at("image") + "@registry.example/app"
	p.Status.ContainerStatuses = []v1.ContainerStatus{{Name: "main",
		State:                v1.ContainerState{Waiting: &v1.ContainerStateWaiting{Reason: "X", Message: "pull: Authorization: Bearer " + c.at("waiting message")}},
		LastTerminationState: v1.ContainerState{Terminated: &v1.ContainerStateTerminated{Message: "panic:\n" + c.at("termination message")}}}}
	p.Status.Conditions = []v1.PodCondition{{Type: v1.PodReady, Message: "token=" + c.at("condition")}}
	return p
}

// graph is the step graph of the pod: a probe and an image pull have failed with secrets.
func (c canaries) graph(p *v1.Pod) why.Report {
	b := why.New()
	b.Track(p, why.Starting, nil, epoch)
	b.End("u", why.Step{Kind: why.Image, Name: "main"}, errors.New("GET https://u:"+c.at("registry")+"@registry/?token="+c.at("query of registry")), epoch, epoch)
	b.End("u", why.Step{Kind: why.Readiness, Name: "main"}, errors.New("probe said "+c.at("output of probe")), epoch, epoch)
	r, _ := b.Report(types.UID("u"), nil, epoch)
	return r
}

// log is a log with secrets in the forms in which programs write them.
func (c canaries) log(t *testing.T) string {
	known := strings.TrimSuffix(strings.TrimPrefix(c["main variable"], "\n"), "\n")
	lines := []string{
		`I1119 10:00:00.000001 1 a.go:1] "request" url="https://user:` + c.at("URL") + `@host/x?access_token=` + c.at("query") + `"`,
		`headers="Authorization: Bearer ` + c.at("bearer") + `" more="Authorization: Basic ` + c.at("basic") + `"`,
		`curl -H 'X-Token: x' --header "Authorization: [` + c.at("other scheme") + `]"`,
		`password=` + c.at("password") + ` DB_PASSWORD='` + c.at("quoted password") + `' --api-key=` + c.at("API key"),
		`{"password": "` + c.at("JSON") + `", "auths":{"r":{"auth":"` + c.at("registry auth") + `"}}}`,
		`err="read {\"token\":\"` + c.at("quoted JSON") + `\"}"`,
		"    token: " + c.at("kubeconfig token"),
		"  client-key-data: " + c.at("kubeconfig key"),
		`"Probe failed" probeType="Readiness" output="` + c.at("probe in log") + `"`,
		`"Event occurred" message="Readiness probe errored and resulted in unknown state: ` + c.at("probe in event") + `"`,
		"output=<\n\tfirst\n\t" + c.at("lines of probe") + "\n >",
		"the value " + known + " of a pod",
		"in base64 " + base64.StdEncoding.EncodeToString([]byte(known)),
		"using bearer " + c.at("bearer without header"),
		"aws " + c.cloudKey() + " used",
		"jwt eyJhbGciOiJSUzI1NiJ9." + c.at("JWT") + ".sig",
		"pem " + strings.ReplaceAll(c.key(t, "key in a line"), "\n", `\n`),
		c.key(t, "key"),
	}
	cut := c.key(t, "key without its beginning")
	return cut[strings.Index(cut, "\n")+1:] + strings.Join(lines, "\n") + "\n" +
		strings.Split(c.key(t, "key without its end"), "-----END")[0] + "\nI1119 the last line\n"
}

// cloudKey returns a key that is known by its form alone.
func (c canaries) cloudKey() string {
	c["cloud key"] = "AKIA" + rand.Text()[:16]
	return c["cloud key"]
}

// key returns a private key.
func (c canaries) key(t *testing.T, place string) string {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	text := string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der}))
	c[place] = strings.Split(text, "\n")[2]
	return text
}

// serve returns a kubelet that responds with secrets.
func (c canaries) serve(t *testing.T) map[string]string {
	t.Helper()
	p := c.pod()
	config := kubeletconfig.KubeletConfiguration{StaticPodURL: "https://u:" + c.at("URL of manifests") + "@host", FeatureGates: map[string]bool{"KubeletPSI": true}}
	config.StaticPodURLHeader = map[string][]string{"X-Key": {c.at("header of manifests")}}
	return map[string]string{
		"/pods":             encode(t, v1.PodList{Items: []v1.Pod{*p}}),
		"/why/shop/web":     encode(t, c.graph(p)),
		"/why":              encode(t, why.NodeReport{Node: "n", Sentence: "token=" + c.at("sentence of node"), Pods: []why.PodSentence{{Sentence: "is not ready (probe said " + c["output of probe"] + ")"}}}),
		"/configz":          encode(t, map[string]any{"kubeletconfig": config, "unknown": c.at("unknown part of configz")}),
		"/flagz":            "manifest-url-header: X-Key:" + c.at("flag") + "\nroot-dir: " + t.TempDir() + "\nv: 2\n",
		"/healthz":          "[+]ping ok\n",
		"/statusz":          "Up: 1 hr\n",
		"/stats/summary":    `{"node":{"nodeName":"n"}}`,
		"/runningpods/":     `{"items":[]}`,
		"/metrics":          `m{url="https://u:` + c.at("metric") + `@h"} 1` + "\n",
		"/metrics/cadvisor": "a 1\n", "/metrics/probes": "b 1\n", "/metrics/resource": "c 1\n", "/metrics/slis": "d 1\n",
		"/debug/pprof/goroutine": "goroutine 1\n",
		"node":                   encode(t, v1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n", Annotations: map[string]string{"k": c.at("annotation of node")}}}),
	}
}

func encode(t *testing.T, v any) string {
	t.Helper()
	text, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// make makes a report and returns its files, without their directory.
func makeReport(t *testing.T, served map[string]string, cfg Config) map[string]string {
	t.Helper()
	var out bytes.Buffer
	cfg.Dir = "dir"
	err := Write(t.Context(), &out, cfg, Deps{
		Clock: testclock.NewFakeClock(epoch), Progress: io.Discard,
		Kubelet: func(_ context.Context, path, _ string) ([]byte, error) {
			if text, ok := served[path]; ok {
				return []byte(text), nil
			}
			return nil, fmt.Errorf("read %s: no password=hunter2hunter2", path)
		},
		Node: func(context.Context) ([]byte, error) { return []byte(served["node"]), nil },
	})
	if err != nil {
		t.Fatal(err)
	}
	return unpack(t, &out)
}

func unpack(t *testing.T, from io.Reader) map[string]string {
	t.Helper()
	zip, err := gzip.NewReader(from)
	if err != nil {
		t.Fatal(err)
	}
	files := map[string]string{}
	for archive := tar.NewReader(zip); ; {
		header, err := archive.Next()
		if err == io.EOF {
			return files
		}
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(archive)
		if err != nil {
			t.Fatal(err)
		}
		if header.Mode != 0o600 {
			t.Errorf("%s has mode %o", header.Name, header.Mode)
		}
		files[strings.TrimPrefix(header.Name, "dir/")] = string(text)
	}
}

// TestCanary makes a report of a node with secrets in every place that can hold one. It has none of them, and
// still has what someone looks for.
func TestCanary(t *testing.T) {
	c, root := canaries{}, t.TempDir()
	served := c.serve(t)
	write(t, filepath.Join(root, "log", "swiftlet.log"), c.log(t))
	write(t, filepath.Join(root, "log", "pods", "shop_web", "0.log"), c.at("log of container"))
	write(t, filepath.Join(root, "pki", "admin.key"), c.key(t, "key of the administrator"))
	write(t, filepath.Join(root, "run", "kubelet.yaml"), "kind: KubeletConfiguration\nstaticPodURLHeader: {K: ["+c.at("configuration file")+"]}\nunknown: "+c.at("unknown field")+"\n")
	if len(c) < 60 {
		t.Fatalf("only %d canaries", len(c))
	}
	files := makeReport(t, served, Config{Root: root, RunDir: filepath.Join(root, "run")})
	for place, secret := range c {
		for name, text := range files {
			for _, form := range []string{secret, base64.StdEncoding.EncodeToString([]byte(secret)), hex.EncodeToString([]byte(secret))} {
				if strings.Contains(text, form) {
					t.Errorf("%s has the secret of: %s", name, place)
				}
			}
		}
	}
	for name, want := range map[string]string{
		"pods.json": `"name": "PLAIN"`, "why/shop/web.json": `"kind": "image"`, "configz.json": `"KubeletPSI": true`, "flagz.txt": "v: 2",
		"log/swiftlet.log": "the last line", "host/kernel.txt": "/proc/meminfo", "host/mounts.txt": " on / type ", "host/disks.txt": root,
		"host/kubelet.yaml": `"staticPodURLHeader"`, "metrics/kubelet.txt": "@h", "node.json": `"name": "n"`, "index.txt": "log/swiftlet.log",
	} {
		if !strings.Contains(files[name], want) {
			t.Errorf("%s has no %s:\n%.2000s", name, want, files[name])
		}
	}
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// TestEveryPattern: without any one of the patterns, a log has a secret.
func TestEveryPattern(t *testing.T) {
	all := patterns
	defer func() { patterns = all }()
	c := canaries{}
	served := c.serve(t)
	pem64 := base64.StdEncoding.EncodeToString([]byte(c.key(t, "key in base64")))
	c["key in base64"] = pem64[40:80]
	log := c.log(t) + "data " + pem64 + "\n"
	leaks := func() (places []string) {
		r := newRedactor()
		if _, err := r.objects([]byte(served["/pods"])); err != nil {
			t.Fatal(err)
		}
		text := r.text(log)
		for place, secret := range c {
			if strings.Contains(text, secret) {
				places = append(places, place)
			}
		}
		return places
	}
	if found := leaks(); found != nil {
		t.Errorf("with all patterns: %q", found)
	}
	for i := range all {
		patterns = slices.Delete(slices.Clone(all), i, i+1)
		if leaks() == nil {
			t.Errorf("nothing shows without %s", all[i].find)
		}
	}
}

// TestKeeps: what is no secret stays.
func TestKeeps(t *testing.T) {
	for _, line := range []string{
		`I1119 10:00:00.000001 1 a.go:1] "SyncLoop ADD" source="api" pods=["shop/web"]`,
		`err="secrets \"db\" not found"`,
		`volume_manager_total_volumes{plugin_name="kubernetes.io/secret",state="actual_state_of_world"} 3`,
		`apiserver_delegated_authn_request_total{code="200"} 1`,
		`GET https://10.0.0.1:6443/api/v1/pods?fieldSelector=x&watch=true`,
		"HTTP probe failed with statuscode: 500",
	} {
		if got := newRedactor().text(line); got != line {
			t.Errorf("%s\nbecame %s", line, got)
		}
	}
}

// TestBounds: an entry that is too large is cut, an unreadable one is noted, and the archive is complete.
func TestBounds(t *testing.T) {
	root := t.TempDir()
	write(t, filepath.Join(root, "log", "swiftlet.log"), strings.Repeat("a line\n", maxLog/7+1000)+"the last line\n")
	files := makeReport(t, map[string]string{"/metrics": strings.Repeat("metric 1\n", maxEntry/9+1000), "/configz": "no JSON"}, Config{Root: root, RunDir: "/none"})
	if n := len(files["metrics/kubelet.txt"]); n != maxEntry {
		t.Errorf("metrics have %d bytes, want %d", n, maxEntry)
	}
	if log := files["log/swiftlet.log"]; len(log) > maxLog || !strings.HasSuffix(log, "the last line\n") || !strings.HasPrefix(log, "a line\n") {
		t.Errorf("log has %d bytes", len(log))
	}
	for _, want := range []string{
		"pods.json", "read /pods: no password=[redacted]", "truncated from", "the end of", "configz.json", "decode configz", "host/runtime.txt",
	} {
		if !strings.Contains(files["index.txt"], want) {
			t.Errorf("index has no %q:\n%s", want, files["index.txt"])
		}
	}
	var all int
	a := newArchive(io.Discard, "dir", epoch)
	for range 20 {
		a.add("x", make([]byte, maxEntry), beginning, "")
	}
	for _, e := range a.entries {
		all += e.size
	}
	if all != maxTotal {
		t.Errorf("%d bytes in all, want %d", all, maxTotal)
	}
}

// TestHangingKubelet: a kubelet that does not respond delays a report by two timeouts, and the machine is read.
func TestHangingKubelet(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began, asked := time.Now(), 0
		var out bytes.Buffer
		err := Write(t.Context(), &out, Config{Dir: "dir", Elsewhere: "n is not this machine"}, Deps{
			Clock: testclock.NewFakeClock(epoch), Progress: io.Discard,
			Kubelet: func(ctx context.Context, _, _ string) ([]byte, error) {
				asked++
				<-ctx.Done()
				return nil, ctx.Err()
			},
		})
		if took := time.Since(began); err != nil || asked != maxTimeouts || took != maxTimeouts*requestTimeout {
			t.Errorf("%v after %s and %d requests", err, took, asked)
		}
		if index := unpack(t, &out)["index.txt"]; !strings.Contains(index, "n is not this machine") || !strings.Contains(index, "has not responded") {
			t.Errorf("index:\n%s", index)
		}
	})
}
