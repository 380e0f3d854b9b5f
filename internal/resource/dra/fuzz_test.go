package dra

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"
	"unicode/utf8"

	"google.golang.org/protobuf/proto"
	v1 "k8s.io/api/core/v1"
	healthv1 "k8s.io/kubelet/pkg/apis/dra-health/v1"
)

// FuzzCheckpoint: a damaged checkpoint is reported as corrupt.
func FuzzCheckpoint(f *testing.F) {
	f.Add([]byte(`{"Data":"{}","Checksum":2745614147}`))
	f.Add([]byte(`{"Data":"{\"Entries\":[]}","Checksum":0}`))
	f.Add([]byte("null"))
	f.Fuzz(func(t *testing.T, content []byte) {
		path := filepath.Join(t.TempDir(), "dra_manager_state")
		if err := os.WriteFile(path, content, 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := readCheckpoint(path); err != nil && !errors.Is(err, ErrCorrupt) {
			t.Errorf("error %v is not ErrCorrupt", err)
		}
	})
}

// FuzzHealthReport: a report of a driver becomes a status that the API server accepts.
func FuzzHealthReport(f *testing.F) {
	seed, err := proto.Marshal(&healthv1.DeviceHealth{Device: &healthv1.DeviceIdentifier{PoolName: "p", DeviceName: "d"},
		Health: healthv1.HealthStatus_UNHEALTHY, Message: "hot", HealthCheckTimeoutSeconds: 1 << 62})
	if err != nil {
		f.Fatal(err)
	}
	f.Add(seed)
	f.Fuzz(func(t *testing.T, message []byte) {
		var report healthv1.DeviceHealth
		if proto.Unmarshal(message, &report) != nil {
			return
		}
		h := newDeviceHealth(&report, time.Unix(0, 0))
		switch h.Health {
		case v1.ResourceHealthStatusHealthy, v1.ResourceHealthStatusUnhealthy, v1.ResourceHealthStatusUnknown:
		default:
			t.Errorf("health %q", h.Health)
		}
		if len(h.Message) > v1.ResourceHealthMessageMaxLength || !utf8.ValidString(h.Message) {
			t.Errorf("message of %d bytes: %q", len(h.Message), h.Message)
		}
		if h.HealthCheckTimeout <= 0 {
			t.Errorf("timeout %v of %d s", h.HealthCheckTimeout, report.GetHealthCheckTimeoutSeconds())
		}
	})
}
