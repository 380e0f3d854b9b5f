package kubeadm

import (
	"crypto/tls"
	"testing"
	"time"
)

// Certificates of the kubelet.
const (
	clientPair  = "/var/lib/kubelet/pki/kubelet-client-current.pem"
	servingPair = "/var/lib/kubelet/pki/kubelet-server-current.pem"
	// signingDuration is the lifetime of certificates, as in testdata/init.yaml.
	signingDuration = 2 * time.Minute
)

// testRotation waits until both certificates of every node are replaced, before they expire, while
// pods keep running. The client certificate of the control plane's node may still be the one that
// kubeadm issued for a year: init restarts the kubelet soon after the kubelet has requested another.
func (c *cluster) testRotation(t *testing.T) {
	for _, m := range c.machines() {
		t.Run(m.Name(), func(t *testing.T) {
			t.Parallel()
			before := c.running(t, m.Name())
			pairs := []string{servingPair, clientPair}
			if m == c.control {
				pairs = pairs[:1]
			}
			for _, path := range pairs {
				first := readPair(t, m, path)
				if left := time.Until(first.Leaf.NotAfter); left > signingDuration {
					t.Fatalf("%s is valid for %v", path, left)
				}
				eventually(t, signingDuration+timeout, func() string {
					if readPair(t, m, path).Leaf.Equal(first.Leaf) {
						return path + " is not rotated"
					}
					return ""
				})
				if now := time.Now(); now.After(first.Leaf.NotAfter) {
					t.Errorf("%s was rotated at %v, after its expiry at %v", path, now, first.Leaf.NotAfter)
				}
			}
			c.witness(t, m, "rotated-"+m.Name())
			if _, err := c.kubectl(t.Context(), "logs", "witness-rotated-"+m.Name()); err != nil {
				t.Error(err)
			}
			c.checkUndisturbed(t, before, true)
		})
	}
}

func readPair(t *testing.T, m *Machine, path string) tls.Certificate {
	t.Helper()
	text, err := m.Exec(t.Context(), "cat", path)
	if err != nil {
		t.Fatal(err)
	}
	pair, err := tls.X509KeyPair([]byte(text), []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return pair
}
