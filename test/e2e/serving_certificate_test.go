package e2e

import (
	"bytes"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"swiftlet/test/bed"
)

// TestServingCertificate bootstraps the node's serving certificate. The first request is denied; the next one
// is for the same addresses. The API server trusts no other certificate, so logs can be read only after that.
func TestServingCertificate(t *testing.T) {
	t.Parallel()
	node := nodeWith(t, "served", nil, bed.KubeletOptions{
		Config: `{serverTLSBootstrap: true, tlsCertFile: "", tlsPrivateKeyFile: ""}`,
	})
	if err := node.WaitReady(t.Context()); err != nil {
		t.Fatal(err)
	}
	space := namespace(t)
	startPod(t, space, scripted("talker", node.Name(), "echo hello; "+exitOnTerm))

	denied := servingRequest(t, node)
	if out, err := tryKubectl(t, "-n", space, "logs", "talker"); err == nil || !strings.Contains(err.Error(), "tls: internal error") {
		t.Errorf("logs without a certificate: %q, %v", out, err)
	}
	setApproval(t, denied, certificatesv1.CertificateDenied)
	if kubelet == bed.Ours { // the reference only logs it
		eventually(t, timeout, func() string { return checkDenialEvent(t, node, denied.Name) })
	}
	approved := servingRequest(t, node)
	for _, request := range []*certificatesv1.CertificateSigningRequest{denied, approved} {
		checkServingRequest(t, node, request)
	}
	setApproval(t, approved, certificatesv1.CertificateApproved)

	eventually(t, timeout, func() string {
		out, err := tryKubectl(t, "-n", space, "logs", "talker")
		if err != nil {
			return err.Error()
		}
		if out != "hello\n" {
			t.Fatalf("the log is %q", out)
		}
		return ""
	})
	if _, err := node.Exec(t.Context(), "cat", "/var/lib/kubelet/pki/kubelet-server-current.pem"); err != nil {
		t.Error(err)
	}
}

// checkDenialEvent checks for the event about the denied request.
func checkDenialEvent(t *testing.T, node *bed.Box, request string) string {
	t.Helper()
	all, err := client().CoreV1().Events(metav1.NamespaceDefault).List(t.Context(), metav1.ListOptions{
		FieldSelector: "involvedObject.kind=Node,reason=CertificateNotIssued,involvedObject.name=" + node.Name()})
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range all.Items {
		if strings.HasPrefix(e.Message, "serving certificate: certificate request "+request+": ") && strings.Contains(e.Message, "it was decided by a test") {
			return ""
		}
	}
	return fmt.Sprintf("no event about the denial of %s in %d events", request, len(all.Items))
}

// servingRequest waits for a pending certificate request of the node.
func servingRequest(t *testing.T, node *bed.Box) *certificatesv1.CertificateSigningRequest {
	t.Helper()
	var found *certificatesv1.CertificateSigningRequest
	eventually(t, 2*timeout, func() string {
		all, err := client().CertificatesV1().CertificateSigningRequests().List(t.Context(), metav1.ListOptions{})
		if err != nil {
			t.Fatal(err)
		}
		for _, request := range all.Items {
			if request.Spec.Username == "system:node:"+node.Name() && len(request.Status.Conditions) == 0 {
				found = &request
				return ""
			}
		}
		return "the node has no pending certificate request"
	})
	return found
}

func checkServingRequest(t *testing.T, node *bed.Box, request *certificatesv1.CertificateSigningRequest) {
	t.Helper()
	if request.Spec.SignerName != certificatesv1.KubeletServingSignerName {
		t.Errorf("signer %s", request.Spec.SignerName)
	}
	block, _ := pem.Decode(request.Spec.Request)
	wanted, err := x509.ParseCertificateRequest(block.Bytes)
	if err != nil {
		t.Fatal(err)
	}
	if len(wanted.IPAddresses) != 1 || wanted.IPAddresses[0].String() != node.Address() ||
		!slices.Equal(wanted.DNSNames, []string{node.Name()}) {
		t.Errorf("the request is for %v and %v", wanted.DNSNames, wanted.IPAddresses)
	}
}

// setApproval approves or denies a request.
func setApproval(t *testing.T, request *certificatesv1.CertificateSigningRequest, how certificatesv1.RequestConditionType) {
	t.Helper()
	request = request.DeepCopy()
	request.Status.Conditions = append(request.Status.Conditions, certificatesv1.CertificateSigningRequestCondition{
		Type: how, Status: corev1.ConditionTrue, Reason: "Test", Message: "it was decided by a test",
	})
	if _, err := client().CertificatesV1().CertificateSigningRequests().UpdateApproval(t.Context(), request.Name, request, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
}

// lineBuffer is a buffer that may be read while it is written.
type lineBuffer struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (b *lineBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.Write(p)
}

// lines returns the complete lines.
func (b *lineBuffer) lines() []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	all := strings.Split(b.text.String(), "\n")
	return all[:len(all)-1]
}
