package certificate

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"log/slog"
	"math/big"
	"slices"
	"sync"
	"testing"
	"time"

	certificates "k8s.io/api/certificates/v1"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	k8stesting "k8s.io/client-go/testing"
	"k8s.io/client-go/util/keyutil"

	"swiftlet/internal/kubeclient"
	"swiftlet/internal/kubeclient/kubeclienttest"
)

// signer is a fake API server that decides on each CertificateSigningRequest at once.
type signer struct {
	*fake.Clientset
	t   *testing.T
	key *ecdsa.PrivateKey

	mu       sync.Mutex
	lifetime time.Duration
	backdate time.Duration
	decision string                  // "approve", "deny", "wait" or "fail"
	edit     func(*x509.Certificate) // changes each certificate before it is signed; may be nil
	received []*x509.CertificateRequest
}

func newSigner(t *testing.T) *signer {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	s := &signer{Clientset: fake.NewClientset(), t: t, key: key, lifetime: time.Hour, decision: "approve"}
	s.PrependReactor("create", "certificatesigningrequests", func(a k8stesting.Action) (bool, runtime.Object, error) {
		return s.decide(a.(k8stesting.CreateAction).GetObject().(*certificates.CertificateSigningRequest))
	})
	return s
}

func (s *signer) decide(csr *certificates.CertificateSigningRequest) (bool, runtime.Object, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	block, _ := pem.Decode(csr.Spec.Request)
	request, err := x509.ParseCertificateRequest(block.Bytes)
	if err != nil {
		return true, nil, err
	}
	if len(s.received) > 1000 {
		panic("requests are sent in a tight loop") // the fake clock does not advance meanwhile, and the test would hang
	}
	// The fake clientset ignores field selectors on the name, so keep only one request.
	_ = s.Tracker().Delete(certificates.SchemeGroupVersion.WithResource("certificatesigningrequests"), "", fmt.Sprintf("csr-%d", len(s.received)))
	s.received = append(s.received, request)
	csr.Name = fmt.Sprintf("csr-%d", len(s.received))
	condition := certificates.CertificateSigningRequestCondition{Type: certificates.CertificateApproved, Status: v1.ConditionTrue}
	switch s.decision {
	case "fail":
		return true, nil, errors.New("connection refused")
	case "wait":
		return false, nil, nil
	case "deny":
		condition.Type, condition.Reason, condition.Message = certificates.CertificateDenied, "Stranger", "who is that"
	default:
		csr.Status.Certificate = s.sign(request)
	}
	csr.Status.Conditions = []certificates.CertificateSigningRequestCondition{condition}
	return false, nil, nil
}

func (s *signer) sign(request *x509.CertificateRequest) []byte {
	template := &x509.Certificate{
		SerialNumber: big.NewInt(time.Now().UnixNano()),
		Subject:      request.Subject,
		DNSNames:     request.DNSNames,
		IPAddresses:  request.IPAddresses,
		NotBefore:    time.Now().Add(-s.backdate),
		NotAfter:     time.Now().Add(s.lifetime),
	}
	if s.edit != nil {
		s.edit(template)
	}
	parent := &x509.Certificate{Subject: pkix.Name{CommonName: "signer"}}
	der, err := x509.CreateCertificate(rand.Reader, template, parent, request.PublicKey, s.key)
	if err != nil {
		s.t.Error(err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
}

// newPair returns a signed certificate and its key without a CertificateSigningRequest.
func (s *signer) newPair(name string, lifetime time.Duration) (certPEM, keyPEM []byte) {
	s.t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		s.t.Fatal(err)
	}
	if keyPEM, err = keyutil.MarshalPrivateKeyToPEM(key); err != nil {
		s.t.Fatal(err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	previous := s.lifetime
	s.lifetime = lifetime
	defer func() { s.lifetime = previous }()
	request := nodeTemplate(name)
	request.PublicKey = key.Public()
	return s.sign(request), keyPEM
}

func (s *signer) set(decision string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.decision = decision
}

func (s *signer) requests() []*x509.CertificateRequest {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.received
}

// runningRotator is a Rotator that runs until the test ends, and records its log and callbacks.
type runningRotator struct {
	*Rotator
	callbacks RunDeps
	store     *fileStore
	clock     suspendClock

	mu                sync.Mutex
	log               bytes.Buffer
	changed           int
	failed            int
	ages              []time.Duration
	reports           []string // passed to NotIssued
	bootstrapRequests []int    // numbers of the requests that used the bootstrap client
}

func (r *runningRotator) Write(p []byte) (int, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.log.Write(p)
}

func (r *runningRotator) logged() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.log.String()
}

func (r *runningRotator) failureReports() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.reports)
}

func (r *runningRotator) deps(s *signer) Deps {
	r.callbacks = RunDeps{
		Client:  kubeclienttest.Wrap(s),
		Changed: func() { r.changed++ },
		Renewed: func(age time.Duration) { r.ages = append(r.ages, age) },
		Failed:  func() { r.failed++ },
		NotIssued: func(err error) {
			r.mu.Lock()
			defer r.mu.Unlock()
			r.reports = append(r.reports, err.Error())
		},
	}
	return Deps{
		Clock:  &r.clock,
		Log:    slog.New(slog.NewTextHandler(r, nil)),
		Jitter: func() float64 { return 0.5 },
	}
}

// startRotator starts a Rotator with an empty store.
func startRotator(t *testing.T, s *signer, cfg Config) *runningRotator {
	t.Helper()
	r := &runningRotator{}
	var err error
	dir := t.TempDir()
	if r.store, err = newFileStore(fileStore{dir: dir, prefix: "kubelet-test", clock: &r.clock, log: slog.New(slog.DiscardHandler)}); err != nil {
		t.Fatal(err)
	}
	deps := r.deps(s)
	deps.Store = r.store
	cfg.Name, cfg.Signer, cfg.Usages = "test", "example.com/signer", clientUsages
	if r.Rotator, err = New(cfg, deps); err != nil {
		t.Fatal(err)
	}
	r.bootstrapClient = func() (kubeclient.Interface, func(), error) {
		r.bootstrapRequests = append(r.bootstrapRequests, len(s.requests())+1)
		return kubeclienttest.Wrap(s), func() {}, nil
	}
	r.start(t)
	return r
}

func (r *runningRotator) start(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- r.Run(ctx, r.callbacks) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
}
