package e2e

import (
	"encoding/json"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"
)

// recordedAddress is the node's address in the recordings.
const recordedAddress = "192.0.2.2"

// normalize converts an object to plain JSON values and replaces values that differ between runs (IDs,
// times, addresses) by placeholders.
func normalize(t *testing.T, object any, nodeAddress string) map[string]any {
	t.Helper()
	text, err := json.Marshal(object)
	if err != nil {
		t.Fatal(err)
	}
	var plain map[string]any
	if err := json.Unmarshal(text, &plain); err != nil {
		t.Fatal(err)
	}
	return normalizeValue("", plain, nodeAddress).(map[string]any)
}

func normalizeValue(key string, value any, nodeAddress string) any {
	switch v := value.(type) {
	case map[string]any:
		for k, inner := range v {
			v[k] = normalizeValue(k, inner, nodeAddress)
		}
		return v
	case []any:
		for i, inner := range v {
			v[i] = normalizeValue(key, inner, nodeAddress)
		}
		return v
	case string:
		return normalizeText(key, v, nodeAddress)
	}
	return value
}

func normalizeText(key, text, nodeAddress string) string {
	scheme, _, isURL := strings.Cut(text, "://")
	algorithm, _, isDigest := strings.Cut(text, ":")
	switch {
	case text == nodeAddress:
		return "<node address>"
	case net.ParseIP(text) != nil:
		return "<pod address>"
	case key == "uid" || key == "resourceVersion":
		return "<" + key + ">"
	case key == "containerID" && isURL:
		return scheme + "://<id>"
	case key == "imageID" && isDigest:
		return algorithm + ":<id>"
	case key == "name" && strings.HasPrefix(text, "kube-api-access-"):
		return "kube-api-access-<random>"
	}
	if _, err := time.Parse(time.RFC3339Nano, text); err == nil {
		return "<time>"
	}
	return text
}

// recorded reads a recording of the reference kubelet.
func recorded(t *testing.T, file string) map[string]any {
	t.Helper()
	var object map[string]any
	if err := yaml.Unmarshal(testdata(t, file), &object); err != nil {
		t.Fatalf("%s: %v", file, err)
	}
	return normalize(t, object, recordedAddress)
}

func testdata(t *testing.T, file string) []byte {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("testdata", file))
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// difference returns "" if both are equal, else a diff with the recording as -.
func difference(recording, now any) string { return cmp.Diff(recording, now) }
