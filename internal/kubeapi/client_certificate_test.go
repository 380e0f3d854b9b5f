package kubeapi

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
)

// rotated is a certificate that the test replaces.
type rotated struct {
	cert     atomic.Pointer[tls.Certificate]
	ready    chan struct{}
	rechecks atomic.Int32
}

func (s *rotated) Current() *tls.Certificate { return s.cert.Load() }
func (s *rotated) Ready() <-chan struct{}    { return s.ready }
func (s *rotated) Recheck()                  { s.rechecks.Add(1) }

func (s *rotated) rotate(t *testing.T, name string) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: name}, NotAfter: time.Now().Add(time.Hour)}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	s.cert.Store(&tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key})
}

// serve starts a server that responds with the client's name, and rejects clients named "expired".
func serve(t *testing.T) *rest.Config {
	t.Helper()
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		name := r.TLS.PeerCertificates[0].Subject.CommonName
		if name == "expired" {
			w.WriteHeader(http.StatusUnauthorized)
		}
		fmt.Fprintf(w, "%s over HTTP/%d", name, r.ProtoMajor)
	}))
	server.TLS = &tls.Config{ClientAuth: tls.RequireAnyClientCert}
	server.EnableHTTP2 = true
	server.StartTLS()
	t.Cleanup(server.Close)
	ca := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
	return &rest.Config{Host: server.URL, TLSClientConfig: rest.TLSClientConfig{CAData: ca}}
}

func TestRotatedCertificateIsUsed(t *testing.T) {
	source := &rotated{ready: make(chan struct{})}
	c, err := NewClients(serve(t), Config{Certificate: source, HeartbeatTimeout: time.Second})
	if err != nil {
		t.Fatal(err)
	}
	request := func(want string, wantErr bool) {
		t.Helper()
		body, err := c.Kube.Core().Get().AbsPath("/").Do(t.Context()).Raw()
		if (err != nil) != wantErr || !strings.Contains(string(body), want) {
			t.Errorf("response %q, %v; want %q", body, err, want)
		}
	}
	go func() { // a request waits for the first certificate
		source.rotate(t, "first")
		close(source.ready)
	}()
	request("first over HTTP/2", false)
	source.rotate(t, "second")
	request("first", false) // while the connection lasts
	c.CloseConnections()
	request("second", false)

	// The certificate is replaced after it expired: one rejected request is enough.
	source.rotate(t, "expired")
	c.CloseConnections()
	request("", true)
	source.rotate(t, "third")
	request("", true)
	request("third", false)
	if n := source.rechecks.Load(); n != 2 {
		t.Errorf("%d rejections reported, want 2", n)
	}
}

func TestRequestWaitsForCertificate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, err := NewClients(&rest.Config{Host: "https://192.0.2.1"}, Config{Certificate: &rotated{ready: make(chan struct{})}, HeartbeatTimeout: time.Second})
		if err != nil {
			t.Fatal(err)
		}
		began := time.Now()
		if _, err := c.Kube.Nodes().Get(t.Context(), "n", metav1.GetOptions{}); !errors.Is(err, errNoCertificate) {
			t.Errorf("error %v", err)
		}
		if took := time.Since(began); took != certificateTimeout {
			t.Errorf("waited for %v", took)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		began = time.Now()
		if _, err := c.Kube.Nodes().Get(ctx, "n", metav1.GetOptions{}); err == nil {
			t.Error("no error")
		}
		if took := time.Since(began); took != time.Second {
			t.Errorf("waited for %v beyond its context", took)
		}
	})
}
