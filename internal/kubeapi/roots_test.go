package kubeapi

import (
	"encoding/pem"
	"errors"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// TestReplacedAuthorityIsUsed: the authority of the API server is replaced in the file that the
// kubeconfig names. The agent needs no restart.
func TestReplacedAuthorityIsUsed(t *testing.T) {
	source := &rotated{ready: make(chan struct{})}
	source.rotate(t, "node")
	close(source.ready)
	base := serve(t)
	right := base.CAData
	file := filepath.Join(t.TempDir(), "ca.crt")
	base.CAData, base.CAFile = nil, file
	write := func(text []byte) {
		t.Helper()
		if err := os.WriteFile(file, text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write(otherAuthority(t))
	c, err := NewClients(base, Config{Certificate: source, HeartbeatTimeout: time.Second})
	if err != nil {
		t.Fatal(err)
	}
	request := func() (err error) {
		for range 10 { // a request may meet a connection that CloseConnections is closing
			err = c.Kube.Core().Get().AbsPath("/").MaxRetries(0).Do(t.Context()).Error()
			if !errors.Is(err, net.ErrClosed) {
				break
			}
		}
		return err
	}
	if err := request(); err == nil || !strings.Contains(err.Error(), "unknown authority") {
		t.Errorf("other authority: %v, want that it is unknown", err)
	}
	write(right)
	if err := request(); err != nil {
		t.Errorf("after the file has the authority: %v", err)
	}
	write([]byte("half a"))
	c.CloseConnections()
	if err := request(); err != nil {
		t.Errorf("while the file is incomplete: %v", err)
	}
	write(otherAuthority(t))
	c.CloseConnections()
	if err := request(); err == nil {
		t.Error("the removed authority is still accepted")
	}
}

// otherAuthority returns the certificate of an authority that signed nothing.
func otherAuthority(t *testing.T) []byte {
	t.Helper()
	other := &rotated{}
	other.rotate(t, "other")
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: other.Current().Certificate[0]})
}

// TestServerNameIsVerified: a certificate of the right authority for another host is rejected.
func TestServerNameIsVerified(t *testing.T) {
	source := &rotated{ready: make(chan struct{})}
	source.rotate(t, "node")
	close(source.ready)
	base := serve(t)
	file := filepath.Join(t.TempDir(), "ca.crt")
	if err := os.WriteFile(file, base.CAData, 0o600); err != nil {
		t.Fatal(err)
	}
	base.CAData, base.CAFile = nil, file
	for name, valid := range map[string]bool{"": true, "example.com": true, "other.example": false} {
		config := *base
		config.ServerName = name
		c, err := NewClients(&config, Config{Certificate: source, HeartbeatTimeout: time.Second})
		if err != nil {
			t.Fatal(err)
		}
		err = c.Kube.Core().Get().AbsPath("/").MaxRetries(0).Do(t.Context()).Error()
		if (err == nil) != valid {
			t.Errorf("name %q: %v, want valid %t", name, err, valid)
		}
	}
}
