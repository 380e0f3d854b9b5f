package scale

import (
	"os"
	"path/filepath"
	"testing"
)

const auditLines = `{"kind":"Event","stage":"ResponseComplete","requestURI":"/api/v1/namespaces/n/pods/p/status","verb":"patch","user":{"username":"system:node:10.210.0.1"},"objectRef":{"resource":"pods","subresource":"status","name":"p"},"responseStatus":{"code":200},"stageTimestamp":"2026-01-01T00:00:01.500000Z"}
{"kind":"Event","stage":"ResponseStarted","requestURI":"/api/v1/pods?watch=true","verb":"watch","user":{"username":"system:node:10.210.0.1"},"objectRef":{"resource":"pods"},"responseStatus":{"code":200},"stageTimestamp":"2026-01-01T00:00:02.000000Z"}
{"kind":"Event","stage":"ResponseComplete","requestURI":"/api/v1/pods?watch=true","verb":"watch","user":{"username":"system:node:10.210.0.1"},"objectRef":{"resource":"pods"},"responseStatus":{"code":200},"stageTimestamp":"2026-01-01T00:00:03.000000Z"}
{"kind":"Event","stage":"ResponseComplete","requestURI":"/api/v1/nodes","verb":"list","user":{"username":"admin"},"objectRef":{"resource":"nodes"},"responseStatus":{"code":200},"stageTimestamp":"2026-01-01T00:00:03.000000Z"}
{"kind":"Event","stage":"ResponseStarted","requestURI":"/api/v1/pods?sendInitialEvents=true&watch=true","verb":"watch","user":{"username":"system:node:10.210.0.2"},"objectRef":{"resource":"pods"},"responseStatus":{"code":200},"stageTimestamp":"2026-01-01T00:00:03.000000Z"}
{"kind":"Event","stage":"ResponseComplete","requestURI":"/version?x=1","verb":"get","user":{"username":"system:node:10.210.0.2"},"responseStatus":{"code":403},"stageTimestamp":"2026-01-01T00:00:04.000000Z"}
{"kind":"Event","stage":"Respon`

func TestAuditLog(t *testing.T) {
	path := filepath.Join(t.TempDir(), "audit.log")
	log := newAuditLog(path)
	if err := log.read(); err != nil {
		t.Fatalf("a log that does not exist yet: %v", err)
	}
	if err := os.WriteFile(path, []byte(auditLines), 0o600); err != nil {
		t.Fatal(err)
	}
	for range 2 { // the second time there is nothing new
		if err := log.read(); err != nil {
			t.Fatal(err)
		}
	}
	want := []struct {
		node, what          string
		failed, watch, list bool
	}{
		{node: "10.210.0.1", what: "patch pods/status"},
		{node: "10.210.0.1", what: "watch pods", watch: true},
		{node: "10.210.0.2", what: "watch-list pods", watch: true, list: true},
		{node: "10.210.0.2", what: "get /version", failed: true},
	}
	if len(log.requests) != len(want) {
		t.Fatalf("read %d requests, want %d: %v", len(log.requests), len(want), log.requests)
	}
	for i, r := range log.requests {
		if r.node != want[i].node || r.what != want[i].what || r.failed() != want[i].failed || r.isWatch() != want[i].watch || r.isList() != want[i].list {
			t.Errorf("request %d is %+v, want %+v", i, r, want[i])
		}
	}
	if n := len(log.between(log.requests[1].at, log.requests[2].at)); n != 1 {
		t.Errorf("%d requests from the second until before the third, want 1", n)
	}
}

func TestRequests(t *testing.T) {
	all := requests{
		{at: at(0.1), what: "update leases"}, {at: at(0.2), what: "patch pods/status"}, {at: at(0.9), what: "patch pods/status"}, {at: at(1), what: "list pods"},
	}
	if got := all.peak(); got != 3 {
		t.Errorf("most requests in a second: %d, want 3", got)
	}
	if got := all.withoutHeartbeats(); len(got) != 3 || !got.last().Equal(at(1)) {
		t.Errorf("without heartbeats: %v", got)
	}
	if got := all.byKind(2); got["patch pods/status"] != 1 || got["list pods"] != 0.5 {
		t.Errorf("by kind for two nodes: %v", got)
	}
}
