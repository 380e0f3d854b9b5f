package server

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"
)

func TestZPages(t *testing.T) {
	n := start(t, true, func(c *Config, d *Deps) {
		enableAll(c, d)
		c.Flags, c.Version = map[string]string{"v": "2", "address": "0.0.0.0"}, "v0.1-5"
	})
	mux := newMux(n.server.apiRoutes())
	for _, c := range []struct {
		path, accept string
		code         int
		contentType  string
		body         []string
	}{
		{"/flagz", "", 200, "text/plain; charset=utf-8", []string{"\nkubelet flagz\nWarning: ", "\naddress: 0.0.0.0\nv: 2\n"}},
		{"/statusz", "*/*", 200, "text/plain; charset=utf-8", []string{"\nkubelet statusz\n", "\nUp: 0 hr 00 min 0", "\nBinary version: 1.37.", "\nEmulation version: 1.37\n", "\nSwiftlet version: v0.1-5\n", "Paths: /allocatedPods /attach /checkpoint /configz", " /run /runningpods /stats /ui /why\n"}},
		{"/statusz", "text/html, text/*;q=0.1", 200, "text/plain; charset=utf-8", []string{"kubelet statusz"}},
		{"/statusz", "application/json;v=v1beta1;g=config.k8s.io;as=Statusz", 200, "application/json;g=config.k8s.io;v=v1beta1;as=Statusz", []string{`"kind": "Statusz"`, `"apiVersion": "config.k8s.io/v1beta1"`, `"name": "kubelet"`, `"swiftlet.dev/version": "v0.1-5"`, `"/healthz"`}},
		{"/statusz", "text/plain;q=0.5,application/yaml;v=v1alpha1;g=config.k8s.io;as=Statusz", 200, "application/yaml;g=config.k8s.io;v=v1alpha1;as=Statusz", []string{"kind: Statusz", "- /healthz"}},
		{"/flagz", "application/json;v=v1beta1;g=config.k8s.io;as=Flagz", 200, "application/json;g=config.k8s.io;v=v1beta1;as=Flagz", []string{`"address": "0.0.0.0"`}},
		{"/flagz", "application/json;v=v1beta1;g=config.k8s.io;as=Statusz", 406, "application/json", []string{`"reason": "NotAcceptable"`}},
		{"/flagz", "application/json;v=v2;g=config.k8s.io;as=Flagz", 406, "application/json", nil},
		{"/flagz", "application/json", 406, "application/json", []string{"only the following media types are accepted: application/json, application/yaml, text/plain"}},
		{"/flagz", "text/html", 406, "application/json", nil},
		{"/flagz", ";;;", 406, "application/json", nil},
	} {
		request := httptest.NewRequest("GET", c.path, nil)
		request.Header.Set("Accept", c.accept)
		response := httptest.NewRecorder()
		mux.ServeHTTP(response, request)
		body := response.Body.String()
		if response.Code != c.code || response.Header().Get("Content-Type") != c.contentType {
			t.Errorf("%s as %q: %d %s, want %d %s", c.path, c.accept, response.Code, response.Header().Get("Content-Type"), c.code, c.contentType)
		}
		for _, part := range c.body {
			if !strings.Contains(body, part) {
				t.Errorf("%s as %q: %s\nlacks %q", c.path, c.accept, body, part)
			}
		}
		if deprecated := strings.Contains(c.accept, "v1alpha1"); deprecated != (response.Header().Get("Warning") != "") {
			t.Errorf("%s as %q: warning %q", c.path, c.accept, response.Header().Get("Warning"))
		}
		if c.code == 200 && strings.HasPrefix(c.contentType, "application/") {
			var object map[string]any
			if err := yaml.Unmarshal(response.Body.Bytes(), &object); err != nil {
				t.Errorf("%s as %q: %v", c.path, c.accept, err)
			}
		}
	}
}

func FuzzAccept(f *testing.F) {
	f.Add("text/plain;q=0.5,application/yaml;v=v1alpha1;g=config.k8s.io;as=Statusz")
	f.Add("*/*;q=NaN, text/*;q=2")
	page := zPage{kind: "Flagz", text: func() string { return "" }}
	f.Fuzz(func(t *testing.T, header string) {
		best := 1.0
		for _, r := range parseAccept(header) {
			if !(r.weight >= 0 && r.weight <= best) {
				t.Errorf("%q: weight %v after %v", header, r.weight, best)
			}
			best = r.weight
		}
		if strings.Contains(header, "as") {
			return // this fuzz test covers text only
		}
		request := httptest.NewRequest("GET", "/flagz", nil)
		request.Header.Set("Accept", header)
		response := httptest.NewRecorder()
		page.serve(response, request)
		if response.Code != http.StatusOK && response.Code != http.StatusNotAcceptable {
			t.Errorf("%q: %d", header, response.Code)
		}
	})
}

func TestAllocatedPods(t *testing.T) {
	n := start(t, true, enableAll)
	admin := n.credentials()["admin cert"]
	_, text, _ := n.get("GET", "/allocatedPods/ns/web", admin)
	var shown struct {
		Kind, APIVersion string
		Metadata         struct{ Name string }
		Status           map[string]any
	}
	if err := json.Unmarshal([]byte(text), &shown); err != nil {
		t.Fatal(err)
	}
	if shown.Kind != "Pod" || shown.APIVersion != "v1" || shown.Metadata.Name != "web" || len(shown.Status) != 0 {
		t.Errorf("allocated pod = %s", text)
	}
	n.expect(map[string]string{
		"GET /allocatedPods":               `200 {"kind":"PodList","apiVersion":"v1","metadata":{},"items":[{"metadata":{"name":"one"},"spec":{"containers":null},"status":{}}]}`,
		"GET /allocatedPods/ns/none":       "404 pod not found",
		"GET /allocatedPods/ns/web/uid-2":  "404 pod not found",
		"POST /allocatedPods/ns/web/uid-1": "405 405: Method Not Allowed",
	})
	if code, _, _ := n.get("GET", "/allocatedPods/ns/web/uid-1", admin); code != 200 {
		t.Errorf("with the matching uid: %d, want 200", code)
	}
}

func TestCheckpoint(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "checkpoints")
	runtime := &fakeRuntime{}
	n := start(t, true, func(c *Config, d *Deps) {
		enableAll(c, d)
		c.CheckpointDir, d.Runtime = dir, runtime
	})
	code, body, _ := n.get("POST", "/checkpoint/ns/web/main?timeout=1&timeout=7", n.credentials()["admin cert"])
	var response struct{ Items []string }
	if err := json.Unmarshal([]byte(body), &response); err != nil || code != 200 || len(response.Items) != 1 {
		t.Fatalf("checkpoint = %d %s: %v", code, body, err)
	}
	path := response.Items[0]
	if !strings.HasPrefix(path, dir+"/checkpoint-web_ns-main-20") || !strings.HasSuffix(path, ".tar") {
		t.Errorf("written to %s", path)
	}
	if want := "checkpoint main-1 to " + path + " in 7s"; runtime.last != want {
		t.Errorf("the runtime was called with %q, want %q", runtime.last, want)
	}
	if info, err := os.Stat(dir); err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("checkpoint directory: %v %v, want mode 0700", info, err)
	}
	n.expect(map[string]string{
		"POST /checkpoint/ns/none/main":           "404 pod does not exist",
		"POST /checkpoint/ns/web/none":            "404 container none does not exist",
		"POST /checkpoint/ns/web/main?timeout=x":  "404 cannot parse value of timeout parameter",
		"POST /checkpoint/ns/web/main?timeout=-1": "404 timeout parameter must be between 0 and 14400 seconds",
		"POST /checkpoint/ns/web/init":            "500 checkpointing of ns/web/init failed (container init not found)",
		"POST /checkpoint/ns/web/plain":           "500 checkpointing of ns/web/plain failed (criu is missing)",
		"GET /checkpoint/ns/web/main":             "405 405: Method Not Allowed",
		"POST /checkpoint/ns/web/main/extra":      "404 404 page not found\n",
	})
}

func TestGatedPaths(t *testing.T) {
	n := start(t, true, nil)
	n.expect(map[string]string{
		"GET /statusz":                 "404 404 page not found\n",
		"GET /flagz":                   "404 404 page not found\n",
		"GET /allocatedPods":           "404 404 page not found\n",
		"POST /checkpoint/ns/web/main": "404 404 page not found\n",
	})
}
