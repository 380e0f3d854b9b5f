package kubeadm

import (
	"strings"
	"testing"

	certificatesv1 "k8s.io/api/certificates/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// testJoin joins the workers with the command that kubeadm prints for them.
func (c *cluster) testJoin(t *testing.T) {
	for _, m := range c.workers() {
		c.join(t, m)
		eventually(t, timeout, func() string { return c.nodeReady(t, m.Name()) })
	}
	table, err := c.kubectl(t.Context(), "get", "nodes", "-o", "wide")
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("nodes:\n%s", table)
}

// join runs kubeadm join with a new token, and checks that the kubelet got its certificate by it.
func (c *cluster) join(t *testing.T, m *Machine) {
	t.Helper()
	command, err := c.control.kubeadm(t.Context(), "token", "create", "--print-join-command")
	if err != nil {
		t.Fatal(err)
	}
	words := strings.Fields(command)
	args := append(words[1:], ignored) // without "kubeadm"
	out, err := m.kubeadm(t.Context(), args...)
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(out, "This node has joined the cluster") {
		t.Errorf("kubeadm join reports no success:\n%s", out)
	}
	c.checkRotatable(t, m)
	token, _, _ := strings.Cut(args[3], ".")
	request := c.requestOf(t, "system:bootstrap:"+token)
	if request.Spec.SignerName != certificatesv1.KubeAPIServerClientKubeletSignerName || len(request.Status.Certificate) == 0 {
		t.Errorf("the request by the bootstrap token is not signed: %+v", request)
	}
}

// requestOf returns the certificate request of a user.
func (c *cluster) requestOf(t *testing.T, user string) *certificatesv1.CertificateSigningRequest {
	t.Helper()
	list, err := c.client.CertificatesV1().CertificateSigningRequests().List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for i := range list.Items {
		if list.Items[i].Spec.Username == user {
			return &list.Items[i]
		}
	}
	t.Fatalf("no certificate request of %s", user)
	return nil
}
