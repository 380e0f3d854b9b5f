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
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/fake"
	k8stesting "k8s.io/client-go/testing"
	"k8s.io/client-go/util/certificate"
	"k8s.io/client-go/util/keyutil"
	"k8s.io/klog/v2"
)

// signer is an API server that decides on each request at once.
type signer struct {
	*fake.Clientset
	t   *testing.T
	key *ecdsa.PrivateKey

	mu       sync.Mutex
	life     time.Duration
	backdate time.Duration
	decision string                  // "approve", "deny", "wait" or "fail"
	edit     func(*x509.Certificate) // of what is issued; may be nil
	asked    []*x509.CertificateRequest
}

func newSigner(t *testing.T) *signer {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	s := &signer{Clientset: fake.NewClientset(), t: t, key: key, life: time.Hour, decision: "approve"}
	s.PrependReactor("create", "certificatesigningrequests", func(a k8stesting.Action) (bool, runtime.Object, error) {
		return s.decide(a.(k8stesting.CreateAction).GetObject().(*certificates.CertificateSigningRequest))
	})
	return s
}

func (s *signer) decide(request *certificates.CertificateSigningRequest) (bool, runtime.Object, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	block, _ := pem.Decode(request.Spec.Request)
	wanted, err := x509.ParseCertificateRequest(block.Bytes)
	if err != nil {
		return true, nil, err
	}
	if len(s.asked) > 1000 {
		panic("it asks without pause") // time stands still meanwhile, so that no test would end
	}
	// The fake does not select by name, so that there must be only one.
	_ = s.Tracker().Delete(certificates.SchemeGroupVersion.WithResource("certificatesigningrequests"), "", fmt.Sprintf("csr-%d", len(s.asked)))
	s.asked = append(s.asked, wanted)
	request.Name = fmt.Sprintf("csr-%d", len(s.asked))
	answer := certificates.CertificateSigningRequestCondition{Type: certificates.CertificateApproved, Status: v1.ConditionTrue}
	switch s.decision {
	case "fail":
		return true, nil, errors.New("connection refused")
	case "wait":
		return false, nil, nil
	case "deny":
		answer.Type, answer.Reason, answer.Message = certificates.CertificateDenied, "Stranger", "who is that"
	default:
		request.Status.Certificate = s.sign(wanted)
	}
	request.Status.Conditions = []certificates.CertificateSigningRequestCondition{answer}
	return false, nil, nil
}

func (s *signer) sign(wanted *x509.CertificateRequest) []byte {
	template := &x509.Certificate{
		SerialNumber: big.NewInt(time.Now().UnixNano()),
		Subject:      wanted.Subject,
		DNSNames:     wanted.DNSNames,
		IPAddresses:  wanted.IPAddresses,
		NotBefore:    time.Now().Add(-s.backdate),
		NotAfter:     time.Now().Add(s.life),
	}
	if s.edit != nil {
		s.edit(template)
	}
	parent := &x509.Certificate{Subject: pkix.Name{CommonName: "signer"}}
	der, err := x509.CreateCertificate(rand.Reader, template, parent, wanted.PublicKey, s.key)
	if err != nil {
		s.t.Error(err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
}

// pair is a certificate with its key that was come by in some other way.
func (s *signer) pair(name string, life time.Duration) (certPEM, keyPEM []byte) {
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
	was := s.life
	s.life = life
	defer func() { s.life = was }()
	request := nodeRequest(name)
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
	return s.asked
}

// kept is a rotator that runs, with what it tells.
type kept struct {
	*Rotator
	runDeps RunDeps
	store   certificate.FileStore
	clock   asleep

	mu       sync.Mutex
	log      bytes.Buffer
	changed  int
	failed   int
	lived    []time.Duration
	troubles []string
	dialed   []int // the requests, by number, that were made without a valid certificate
}

func (k *kept) Write(p []byte) (int, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.log.Write(p)
}

func (k *kept) said() string {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.log.String()
}

// told is what people were told.
func (k *kept) told() []string {
	k.mu.Lock()
	defer k.mu.Unlock()
	return slices.Clone(k.troubles)
}

func (k *kept) deps(s *signer) Deps {
	k.runDeps = RunDeps{
		Client:  s,
		Changed: func() { k.changed++ },
		Renewed: func(lived time.Duration) { k.lived = append(k.lived, lived) },
		Failed:  func() { k.failed++ },
		Trouble: func(err error) {
			k.mu.Lock()
			defer k.mu.Unlock()
			k.troubles = append(k.troubles, err.Error())
		},
	}
	return Deps{
		Clock:  &k.clock,
		Log:    slog.New(slog.NewTextHandler(k, nil)),
		Jitter: func() float64 { return 0.5 },
	}
}

// keep starts a rotator upon an empty store.
func keep(t *testing.T, s *signer, cfg Config) *kept {
	t.Helper()
	k := &kept{}
	var err error
	dir := t.TempDir()
	if k.store, err = certificate.NewFileStoreWithLogger(klog.Background().V(9), "kubelet-test", dir, dir, "", ""); err != nil {
		t.Fatal(err)
	}
	deps := k.deps(s)
	deps.Store = k.store
	cfg.Name, cfg.Signer, cfg.Usages = "test", "example.com/signer", certificate.DefaultKubeletClientGetUsages
	if k.Rotator, err = New(cfg, deps); err != nil {
		t.Fatal(err)
	}
	k.dial = func() (kubernetes.Interface, func(), error) {
		k.dialed = append(k.dialed, len(s.requests())+1)
		return s, func() {}, nil
	}
	k.start(t)
	return k
}

func (k *kept) start(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- k.Run(ctx, k.runDeps) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
}
