package standalone

import (
	"bytes"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"k8s.io/utils/clock"

	"swiftlet/internal/config"
)

// An API server that cannot start is an error that says why. What it has reported before is shown.
func TestAPIServerFailsToStart(t *testing.T) {
	programs, root := t.TempDir(), t.TempDir()
	writeProgram(t, filepath.Join(programs, "swiftlet-apiserver"), "#!/bin/sh\nprintf '%s\\n' '{\"problems\": [{\"file\": \"/m/a.yaml\", \"line\": 3, \"object\": \"Shelf top\", \"message\": \"kind Shelf\\nis not served\"}]}'\nprintf 'an earlier line\\nswiftlet-apiserver: the store is broken\\n' >&2\nexit 1\n")
	paths := Paths{root: root, run: t.TempDir(), bundle: "/b"}
	if err := paths.makeDirs(); err != nil {
		t.Fatal(err)
	}
	s := &Supervisor{
		cfg:  Config{Paths: paths, NodeName: "node", API: &APIConfig{Programs: programs, Port: 1}},
		deps: Deps{Log: slog.New(slog.NewTextHandler(t.Output(), nil)), Clock: clock.RealClock{}, Out: io.Discard},
	}
	var out bytes.Buffer
	display := newTestDisplay(&out, nil)
	api, err := s.startAPI(display)
	if err != nil {
		t.Fatal(err)
	}
	err = s.awaitAPI(t.Context(), api)
	if err == nil || !strings.Contains(err.Error(), "it exited: swiftlet-apiserver: the store is broken (log: "+root) {
		t.Errorf("got %v", err)
	}
	if err := api.stop(); err != nil {
		t.Errorf("stop: %v", err)
	}
	display.draw()
	if want := "12:00:00 not applied: /m/a.yaml:3: Shelf top: kind Shelf is not served\n"; out.String() != want {
		t.Errorf("the display has %q, want %q", out.String(), want)
	}
	out.Reset()
	display.ShowProblems(nil)
	display.draw()
	if want := "12:00:00 solved: /m/a.yaml:3: Shelf top: kind Shelf is not served\n"; out.String() != want {
		t.Errorf("without the problem, the display has %q, want %q", out.String(), want)
	}
}

// With an API server, which issues certificates to its users, the kubelet asks it who may do what. Its pods
// come from there.
func TestAgentConfigWithAPI(t *testing.T) {
	paths := Paths{root: t.TempDir(), run: t.TempDir(), bundle: "/b"}
	cfg := Config{Paths: paths, Manifests: "/m", NodeName: "node", API: &APIConfig{Port: 6443}}
	content, err := agentConfig(cfg)
	if err == nil {
		err = os.WriteFile(paths.AgentConfig(), content, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	got, err := config.Load(agentArgs(cfg))
	if err != nil {
		t.Fatal(err)
	}
	k := got.Kubelet
	if k.Authorization.Mode != "Webhook" || !*k.Authentication.Webhook.Enabled || *k.Authentication.Anonymous.Enabled {
		t.Errorf("authorization %s, token review %t, anonymous %t", k.Authorization.Mode, *k.Authentication.Webhook.Enabled, *k.Authentication.Anonymous.Enabled)
	}
	if k.StaticPodPath != "" || !*k.RegisterNode || got.Flags.Kubeconfig != paths.pki("kubelet.kubeconfig") {
		t.Errorf("static pods of %q, registers %t, kubeconfig %q", k.StaticPodPath, *k.RegisterNode, got.Flags.Kubeconfig)
	}
}
