package volume

import (
	"bytes"
	"crypto/sha256"
	"encoding/pem"
	"testing"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"swiftlet/test/poll"
)

// anchor is a PEM block of type CERTIFICATE with arbitrary content.
func anchor(name string) string {
	sum := sha256.Sum256([]byte(name))
	return string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: sum[:]}))
}

func bundle(name, signer string, anchors ...string) *certificatesv1.ClusterTrustBundle {
	b := &certificatesv1.ClusterTrustBundle{
		ObjectMeta: metav1.ObjectMeta{Name: name, ResourceVersion: "1", Labels: map[string]string{"use": "test"}},
		Spec:       certificatesv1.ClusterTrustBundleSpec{SignerName: signer},
	}
	for _, a := range anchors {
		b.Spec.TrustBundle += "some words\n" + anchor(a)
	}
	return b
}

func trusting(s v1.ClusterTrustBundleProjection) v1.VolumeSource {
	s.Path = "anchors.pem"
	return v1.VolumeSource{Projected: &v1.ProjectedVolumeSource{DefaultMode: mode(0o644), Sources: []v1.VolumeProjection{{ClusterTrustBundle: &s}}}}
}

// holds reports whether the file has exactly these certificates, in any order.
func holds(data string, anchors ...string) bool {
	rest, found := []byte(data), 0
	for _, a := range anchors {
		if bytes.Count(rest, []byte(anchor(a))) == 1 {
			found++
		}
	}
	return found == len(anchors) && bytes.Count(rest, []byte("BEGIN")) == len(anchors) && !bytes.Contains(rest, []byte("words"))
}

func TestTrustBundles(t *testing.T) {
	n := newNode(t)
	for _, b := range []*certificatesv1.ClusterTrustBundle{
		bundle("one", "", "a", "b"), bundle("x:two", "example.com/s", "b", "c"), bundle("x:three", "example.com/s", "c", "d"), bundle("x:four", "example.com/other", "e"),
	} {
		if err := n.client.Tracker().Add(b); err != nil {
			t.Fatal(err)
		}
	}
	named := n.mount(n.podNamed("named", trusting(v1.ClusterTrustBundleProjection{Name: ptr.To("one")})))
	if got := readFile(t, named, "anchors.pem"); !holds(got, "a", "b") {
		t.Errorf("by name: %s", got)
	}
	signed := n.mount(n.podNamed("signed", trusting(v1.ClusterTrustBundleProjection{SignerName: ptr.To("example.com/s"),
		LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"use": "test"}}})))
	if got := readFile(t, signed, "anchors.pem"); !holds(got, "b", "c", "d") {
		t.Errorf("by signer: %s", got)
	}
	changed := bundle("one", "", "z")
	changed.ResourceVersion = "2"
	if _, err := n.client.CertificatesV1().ClusterTrustBundles().Update(t.Context(), changed, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	poll.Until(t, "the change to reach the file", readsWhere(func(content string) bool { return holds(content, "z") }, named, "anchors.pem"))
}

func TestMissingTrustBundles(t *testing.T) {
	for want, s := range map[string]v1.ClusterTrustBundleProjection{
		`while getting ClusterTrustBundle: clustertrustbundle.certificates.k8s.io "no" not found`: {Name: ptr.To("no")},
		"combination of signerName and labelSelector matched zero ClusterTrustBundles":            {SignerName: ptr.To("no/no")},
		"ClusterTrustBundle projection requires either name or signerName to be set":              {},
	} {
		n := newNode(t)
		n.cfg.MountTimeout = 200 * time.Millisecond
		if _, err := n.Mount(t.Context(), n.pod(trusting(s))); err == nil || !n.events.has(want) {
			t.Errorf("%v; events %q, want %s", err, n.events.recorded, want)
		}
		if want[0] == 'C' {
			continue
		}
		s.Optional, n.cfg.MountTimeout = ptr.To(true), testTimeout
		if got := readFile(t, n.mount(n.podNamed("optional", trusting(s))), "anchors.pem"); got != "" {
			t.Errorf("optional: %q", got)
		}
	}
}
