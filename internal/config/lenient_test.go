package config

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestLoadLenient: a file with which the reference kubelet starts is loaded with notices. Load
// refuses it.
func TestLoadLenient(t *testing.T) {
	const priorities = "shutdownGracePeriodByPodPriority: [{priority: 1, shutdownGracePeriodSeconds: 5, grace: 2}]\n"
	for name, tc := range map[string]struct {
		file, dropin string
		want         []string
	}{
		"unknown field":              {"maxPodz: 3\n", "", []string{"FILE:3: maxPodz: ignored, is not a known field; did you mean maxPods?"}},
		"field that was removed":     {"enableContentionProfiling: true\ndynamicConfigDir: /d\n", "", []string{"FILE:4: dynamicConfigDir: ignored, is not a known field"}},
		"field of another case":      {"maxpods: 3\n", "", []string{"FILE:3: maxpods: ignored, is not a known field; did you mean maxPods?"}},
		"nested unknown field":       {"memorySwap:\n  swapBehaviour: NoSwap\n", "", []string{"FILE:4: memorySwap.swapBehaviour: ignored, is not a known field; did you mean swapBehavior?"}},
		"unknown field in a list":    {priorities, "", []string{"FILE:3: shutdownGracePeriodByPodPriority[0].grace: ignored, is not a known field"}},
		"duplicate field":            {"maxPods: 3\nport: 99\nmaxPods: 4\n", "", []string{"FILE:5: maxPods: is given twice, here and on line 3; the last value applies"}},
		"unknown field of a drop-in": {"", "maxPodz: 3\n", []string{"DROPIN:3: maxPodz: ignored, is not a known field; did you mean maxPods?"}},
		"several": {"b: 1\na: 1\n", "c: 1\n", []string{
			"FILE:3: b: ignored, is not a known field",
			"FILE:4: a: ignored, is not a known field",
			"DROPIN:3: c: ignored, is not a known field",
		}},
	} {
		t.Run(name, func(t *testing.T) {
			dir := writeFiles(t, map[string]string{"k.yaml": header + tc.file, "d/10.conf": header + tc.dropin})
			args := []string{"--config=" + dir + "/k.yaml", "--config-dir=" + dir + "/d"}
			c, err := LoadLenient(args)
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, notice := range c.Notices {
				got = append(got, strings.NewReplacer(dir+"/k.yaml", "FILE", dir+"/d/10.conf", "DROPIN").Replace(notice))
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("notices (-want +got):\n%s", diff)
			}
			if _, err := Load(args); err == nil {
				t.Error("Load accepts the file")
			}
		})
	}
}

// TestLenientValues: the rest of the file applies.
func TestLenientValues(t *testing.T) {
	file := writeFiles(t, map[string]string{"k": header + "maxPods: 3\nnope: 1\nmaxPods: 4\nevictionHard: {memory.available: 1Gi, memory.available: 2Gi}\n" +
		"registerWithTaints: [{key: a, effect: NoSchedule, nope: 1}]\nauthentication: {nope: 1, anonymous: {enabled: true}}\n"}) + "/k"
	c, err := LoadLenient([]string{"--config=" + file})
	if err != nil {
		t.Fatal(err)
	}
	kc := c.Kubelet
	if kc.MaxPods != 4 || kc.EvictionHard["memory.available"] != "2Gi" || len(kc.RegisterWithTaints) != 1 || !*kc.Authentication.Anonymous.Enabled {
		t.Errorf("maxPods %d, evictionHard %v, taints %v, anonymous %t", kc.MaxPods, kc.EvictionHard, kc.RegisterWithTaints, *kc.Authentication.Anonymous.Enabled)
	}
	if got := c.Origins["maxPods"]; got != (Origin{File: file, Line: 5}) {
		t.Errorf("origin of maxPods %v", got)
	}
}

// TestLenientErrors: with these files the reference kubelet does not start either.
func TestLenientErrors(t *testing.T) {
	for name, tc := range map[string]struct{ file, dropin, want string }{
		"invalid value beside an unknown field": {"maxPodz: 3\nport: x\n", "", `FILE:4: port: "x" is not a whole number of 32 bits`},
		"invalid value of a duplicate field":    {"port: 9\nport: -1\n", "", "FILE:4: port: -1 must be between 1 and 65535"},
		"unknown version":                       {"apiVersion: kubelet.config.k8s.io/v1\n", "", "FILE:3: apiVersion: must be kubelet.config.k8s.io/v1beta1"},
		"unknown feature gate":                  {"featureGates: {Nope: true}\n", "", "FILE:3: featureGates.Nope: is not a feature gate"},
		"duplicate field of a drop-in":          {"", "port: 9\nport: 9\n", "DROPIN:4: port: is given twice, here and on line 3"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := writeFiles(t, map[string]string{"k.yaml": header + tc.file, "d/10.conf": header + tc.dropin})
			_, err := LoadLenient([]string{"--config=" + dir + "/k.yaml", "--config-dir=" + dir + "/d"})
			if err == nil {
				t.Fatal("accepted")
			}
			got := strings.NewReplacer(dir+"/k.yaml", "FILE", dir+"/d/10.conf", "DROPIN").Replace(err.Error())
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("error (-want +got):\n%s", diff)
			}
		})
	}
}
