package e2e

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"slices"
	"testing"
)

// call is a request of a kubelet to its runtime.
type call struct {
	Method string         `json:"method"`
	Req    map[string]any `json:"req"`
	Millis float64        `json:"ms"` // duration of the call
}

// compareCalls compares the requests for the pod's sandbox and for every attempt of its containers
// with the recording. Each request must be made once.
func compareCalls(t *testing.T, now view, namespace, pod string) {
	t.Helper()
	want := requests(t, recording, testdata(t, "golden/calls.jsonl"), namespaceOfRecording(namespace), pod)
	text, err := os.ReadFile(steadyCalls())
	if err != nil {
		t.Fatal(err)
	}
	have := requests(t, now, text, namespace, pod)
	if len(want) == 0 {
		t.Fatalf("the recording has no call for %s", pod)
	}
	var found []string
	for _, name := range slices.Sorted(maps.Keys(want)) {
		subject := pod + " " + name
		switch len(have[name]) {
		case 0:
			found = append(found, subject+": no request")
		case 1:
			found = append(found, differences(subject, want[name][0], have[name][0])...)
		default:
			found = append(found, fmt.Sprintf("%s: %d requests", subject, len(have[name])))
		}
	}
	report(t, found)
}

// namespaceOfRecording is the namespace in the recording. Static pods keep theirs.
func namespaceOfRecording(namespace string) string {
	if namespace == staticNamespace {
		return namespace
	}
	return "golden"
}

// requests returns the requests for a pod's sandbox and containers, normalized by the view, by name.
func requests(t *testing.T, v view, text []byte, namespace, pod string) map[string][]map[string]any {
	t.Helper()
	found := map[string][]map[string]any{}
	for line := range bytes.Lines(text) {
		if !bytes.HasSuffix(line, []byte("\n")) {
			break // incomplete line
		}
		var c call
		if err := json.Unmarshal(line, &c); err != nil {
			t.Fatal(err)
		}
		config, _ := c.Req["config"].(map[string]any)
		sandbox := config
		switch c.Method {
		case "RunPodSandbox":
		case "CreateContainer":
			sandbox, _ = c.Req["sandboxConfig"].(map[string]any)
		default:
			continue
		}
		owner := sandbox["metadata"].(map[string]any)
		if owner["name"] != pod || owner["namespace"] != namespace {
			continue
		}
		plainEnv(t, config)
		name := requestName(c.Method, config["metadata"].(map[string]any))
		found[name] = append(found[name], v.tree(c.Req).(map[string]any))
	}
	return found
}

func requestName(method string, metadata map[string]any) string {
	attempt, _ := metadata["attempt"].(float64)
	if method == "RunPodSandbox" {
		return fmt.Sprintf("sandbox, attempt %v", attempt)
	}
	return fmt.Sprintf("container %s, attempt %v", metadata["name"], attempt)
}

// plainEnv replaces the list of variables, which has no order, by a map.
func plainEnv(t *testing.T, config map[string]any) {
	t.Helper()
	list, _ := config["envs"].([]any)
	byName := map[string]any{}
	for _, variable := range list {
		variable := variable.(map[string]any)
		text, _ := variable["value"].(string)
		value, err := base64.StdEncoding.DecodeString(text)
		if err != nil {
			t.Fatal(err)
		}
		byName[variable["key"].(string)] = string(value)
	}
	if len(byName) != len(list) {
		t.Errorf("duplicate variable: %v", list)
	}
	if list != nil {
		config["envs"] = byName
	}
}
