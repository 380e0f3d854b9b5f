package e2e

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"testing"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
)

// authority signs pod certificates, as a controller in the cluster would.
type authority struct {
	key  *ecdsa.PrivateKey
	cert *x509.Certificate
	pem  string
}

func newAuthority(t *testing.T, name string) authority {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	cert := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: name}, IsCA: true, BasicConstraintsValid: true,
		NotBefore: time.Now().Add(-time.Minute), NotAfter: time.Now().Add(24 * time.Hour),
	}
	der, err := x509.CreateCertificate(rand.Reader, cert, cert, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	return authority{key, cert, encode(der)}
}

func encode(der []byte) string {
	return string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}))
}

// sign issues the certificate of a request.
func (a authority) sign(t *testing.T, in string, request *certificatesv1.PodCertificateRequest) {
	t.Helper()
	requested, err := x509.ParseCertificateRequest(request.Spec.StubPKCS10Request)
	if err != nil {
		t.Fatal(err)
	}
	begin := time.Now().Truncate(time.Second)
	end := begin.Add(time.Hour)
	cert := &x509.Certificate{SerialNumber: big.NewInt(2), Subject: pkix.Name{CommonName: request.Spec.PodName}, NotBefore: begin, NotAfter: end}
	der, err := x509.CreateCertificate(rand.Reader, cert, a.cert, requested.PublicKey, a.key)
	if err != nil {
		t.Fatal(err)
	}
	request.Status = certificatesv1.PodCertificateRequestStatus{
		CertificateChain: encode(der),
		NotBefore:        ptr.To(metav1.NewTime(begin)),
		BeginRefreshAt:   ptr.To(metav1.NewTime(begin.Add(30 * time.Minute))),
		NotAfter:         ptr.To(metav1.NewTime(end)),
		Conditions: []metav1.Condition{{
			Type: certificatesv1.PodCertificateRequestConditionTypeIssued, Status: metav1.ConditionTrue,
			Reason: "Signed", Message: "for the test", LastTransitionTime: metav1.Now(),
		}},
	}
	if _, err := client().CertificatesV1().PodCertificateRequests(in).UpdateStatus(t.Context(), request, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
}

// TestPodCertificate: a pod gets a projected certificate and a trust bundle.
func TestPodCertificate(t *testing.T) {
	t.Parallel()
	node, in := steadyNode(t), namespace(t)
	signer := "example.com/" + in
	authority := newAuthority(t, in)
	bundle := &certificatesv1.ClusterTrustBundle{
		ObjectMeta: metav1.ObjectMeta{Name: "example.com:" + in + ":all"},
		Spec:       certificatesv1.ClusterTrustBundleSpec{SignerName: signer, TrustBundle: authority.pem},
	}
	if _, err := client().CertificatesV1().ClusterTrustBundles().Create(t.Context(), bundle, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	source := corev1.VolumeSource{Projected: &corev1.ProjectedVolumeSource{Sources: []corev1.VolumeProjection{
		{ClusterTrustBundle: &corev1.ClusterTrustBundleProjection{SignerName: &signer, LabelSelector: &metav1.LabelSelector{}, Path: "trust.pem"}},
		{PodCertificate: &corev1.PodCertificateProjection{SignerName: signer, KeyType: "ECDSAP256", CredentialBundlePath: "own.pem"}},
	}}}
	create(t, in, addVolume(sleeper("certified", node.Name()), "certs", source, ""))

	var request *certificatesv1.PodCertificateRequest
	eventually(t, timeout, func() string {
		list, err := client().CertificatesV1().PodCertificateRequests(in).List(t.Context(), metav1.ListOptions{})
		if err != nil || len(list.Items) == 0 {
			return "there is no PodCertificateRequest"
		}
		request = &list.Items[0]
		return ""
	})
	if s := request.Spec; s.PodName != "certified" || s.SignerName != signer || s.ServiceAccountName != "default" || string(s.NodeName) != node.Name() {
		t.Errorf("the request is %+v", s)
	}
	authority.sign(t, in, request)
	awaitPod(t, in, "certified", timeoutFor(timeout, 4*timeout), ready)

	trust, err := execInPod(t.Context(), in, "certified", "cat", "/certs/trust.pem")
	if err != nil || trust != authority.pem {
		t.Errorf("trust bundle is %q, %v", trust, err)
	}
	own, err := execInPod(t.Context(), in, "certified", "cat", "/certs/own.pem")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := tls.X509KeyPair([]byte(own), []byte(own)); err != nil {
		t.Errorf("credential bundle: %v", err)
	}
}
