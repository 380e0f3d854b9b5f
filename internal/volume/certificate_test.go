package volume

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"path/filepath"
	"testing"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	ktesting "k8s.io/client-go/testing"

	"swiftlet/test/poll"
)

// certified is a volume with pod certificates, as a bundle and as separate files.
func certified() v1.VolumeSource {
	source := func(p v1.PodCertificateProjection) v1.VolumeProjection {
		p.SignerName, p.KeyType = "example.com/signer", "ED25519"
		return v1.VolumeProjection{PodCertificate: &p}
	}
	return v1.VolumeSource{Projected: &v1.ProjectedVolumeSource{DefaultMode: mode(0o644), Sources: []v1.VolumeProjection{
		source(v1.PodCertificateProjection{CredentialBundlePath: "bundle.pem"}),
		source(v1.PodCertificateProjection{KeyPath: "key.pem", CertificateChainPath: "chain.pem"}),
	}}}
}

// newSigner makes the fake client name the requests, as the API server does, and adds the pod's
// service account.
func newSigner(t *testing.T, n *node) {
	t.Helper()
	names := 0
	n.client.PrependReactor("create", "podcertificaterequests", func(a ktesting.Action) (bool, runtime.Object, error) {
		names++
		a.(ktesting.CreateAction).GetObject().(*certificatesv1.PodCertificateRequest).Name = fmt.Sprint("req-", names)
		return false, nil, nil
	})
	if err := n.client.Tracker().Add(&v1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: "default", Namespace: "ns", UID: "account-uid"}}); err != nil {
		t.Fatal(err)
	}
}

// requests waits for the number of requests.
func requests(t *testing.T, n *node, count int) []certificatesv1.PodCertificateRequest {
	t.Helper()
	var list *certificatesv1.PodCertificateRequestList
	poll.Until(t, "the requests", func() bool {
		var err error
		if list, err = n.client.CertificatesV1().PodCertificateRequests("ns").List(t.Context(), metav1.ListOptions{}); err != nil {
			t.Fatal(err)
		}
		return len(list.Items) == count
	})
	return list.Items
}

// answer sets a condition and, for Issued, a certificate for the request's key.
func answer(t *testing.T, n *node, r certificatesv1.PodCertificateRequest, kind string, lifetime time.Duration) {
	t.Helper()
	r.Status.Conditions = []metav1.Condition{{Type: kind, Status: metav1.ConditionTrue, Reason: "Because", Message: "it is so"}}
	if kind == certificatesv1.PodCertificateRequestConditionTypeIssued {
		now := n.clock.Now()
		r.Status.CertificateChain = issue(t, r.Spec.StubPKCS10Request, now.Add(lifetime))
		refresh, end := metav1.NewTime(now.Add(lifetime/2)), metav1.NewTime(now.Add(lifetime))
		r.Status.BeginRefreshAt, r.Status.NotAfter = &refresh, &end
	}
	if _, err := n.client.CertificatesV1().PodCertificateRequests("ns").UpdateStatus(t.Context(), &r, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
}

func issue(t *testing.T, proof []byte, notAfter time.Time) string {
	t.Helper()
	request, err := x509.ParseCertificateRequest(proof)
	if err != nil || request.CheckSignature() != nil {
		t.Fatalf("invalid signature of the request: %v", err)
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "pod"}, NotAfter: notAfter}
	der, err := x509.CreateCertificate(rand.Reader, template, template, request.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	return "some words\n" + string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}))
}

func TestPodCertificate(t *testing.T) {
	n := newNode(t)
	newSigner(t, n)
	clk := useFakeClock(n)
	p := n.pod(certified())
	p.UID = "uid-1"
	done := make(chan map[string]Mounted, 1)
	go func() { got, _ := n.Mount(context.Background(), p); done <- got }()
	for _, r := range requests(t, n, 2) {
		if s := r.Spec; s.PodUID != "uid-1" || s.ServiceAccountUID != "account-uid" || s.NodeName != "here" || s.NodeUID != "node-uid" {
			t.Errorf("request %+v", s)
		}
		answer(t, n, r, certificatesv1.PodCertificateRequestConditionTypeIssued, time.Hour)
	}
	var dir string
	select {
	case got := <-done:
		dir = got["vol"].HostPath
	case <-time.After(testTimeout):
		t.Fatal("not mounted after the certificates were issued")
	}
	if _, err := tls.LoadX509KeyPair(filepath.Join(dir, "chain.pem"), filepath.Join(dir, "key.pem")); err != nil {
		t.Error(err)
	}
	first := readFile(t, dir, "bundle.pem")
	if _, err := tls.X509KeyPair([]byte(first), []byte(first)); err != nil {
		t.Error(err)
	}

	poll.Until(t, "the timer", clk.HasWaiters)
	clk.Step(31 * time.Minute)
	all := requests(t, n, 4)
	if got := readFile(t, dir, "bundle.pem"); got != first {
		t.Error("the old certificate was removed before the new one was issued")
	}
	for _, r := range all {
		if len(r.Status.Conditions) == 0 {
			answer(t, n, r, certificatesv1.PodCertificateRequestConditionTypeIssued, time.Hour)
		}
	}
	poll.Until(t, "the new certificate", readsOther(first, dir, "bundle.pem"))
}

// TestPodCertificateSurvivesRestart: a pod keeps its certificate until it has a new one.
func TestPodCertificateSurvivesRestart(t *testing.T) {
	n := newNode(t)
	newSigner(t, n)
	done := make(chan map[string]Mounted, 1)
	p := n.pod(certified())
	go func() { got, _ := n.Mount(context.Background(), p); done <- got }()
	for _, r := range requests(t, n, 2) {
		answer(t, n, r, certificatesv1.PodCertificateRequestConditionTypeIssued, time.Hour)
	}
	dir := (<-done)["vol"].HostPath
	before := readFile(t, dir, "bundle.pem")
	n.restart()
	n.mount(n.pod(certified()))
	if readFile(t, dir, "bundle.pem") != before {
		t.Error("the certificate changed")
	}
	requests(t, n, 4)
}

func TestDeniedPodCertificate(t *testing.T) {
	n := newNode(t)
	newSigner(t, n)
	p := n.pod(certified())
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	stopped := make(chan struct{})
	go func() { _, _ = n.Mount(ctx, p); close(stopped) }()
	for _, r := range requests(t, n, 2) {
		answer(t, n, r, certificatesv1.PodCertificateRequestConditionTypeDenied, 0)
	}
	const want = `PodCertificateRequest was permanently denied: reason="Because" message="it is so"`
	poll.Until(t, "the event", func() bool { return n.events.has(want) })
	cancel()
	<-stopped
}
