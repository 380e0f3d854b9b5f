package bed

import (
	"context"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// SigningDuration is the lifetime of certificates that the controller manager signs. It is short,
// so that tests see renewals.
const SigningDuration = 2 * time.Minute

// bootstrapBindings bind cluster roles to groups as kubeadm does: holders of a bootstrap token
// may request a certificate, and such requests and those of nodes are approved automatically.
var bootstrapBindings = map[string]string{
	"system:node-bootstrapper": "system:bootstrappers",
	"system:certificates.k8s.io:certificatesigningrequests:nodeclient":     "system:bootstrappers",
	"system:certificates.k8s.io:certificatesigningrequests:selfnodeclient": "system:nodes",
}

// BootstrapKubeconfig creates a bootstrap token and returns a kubeconfig with it.
func (c *ControlPlane) BootstrapKubeconfig(ctx context.Context) ([]byte, error) {
	for role, group := range bootstrapBindings {
		_, err := c.Client.RbacV1().ClusterRoleBindings().Create(ctx, &rbacv1.ClusterRoleBinding{
			ObjectMeta: metav1.ObjectMeta{Name: "bed:" + role},
			RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role},
			Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.GroupKind, Name: group}},
		}, metav1.CreateOptions{})
		if err != nil && !apierrors.IsAlreadyExists(err) {
			return nil, fmt.Errorf("bind bootstrap roles: %w", err)
		}
	}
	id, secret := randomHex(3), randomHex(8)
	_, err := c.Client.CoreV1().Secrets(metav1.NamespaceSystem).Create(ctx, &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Name: "bootstrap-token-" + id},
		Type:       corev1.SecretTypeBootstrapToken,
		StringData: map[string]string{"token-id": id, "token-secret": secret, "usage-bootstrap-authentication": "true"},
	}, metav1.CreateOptions{})
	if err != nil {
		return nil, fmt.Errorf("make bootstrap token: %w", err)
	}
	return kubeconfigFor(c.Server, c.ca, &clientcmdapi.AuthInfo{Token: id + "." + secret})
}

// NodeKubeconfig returns a kubeconfig with a client certificate of the node that is valid for the
// given time.
func (c *ControlPlane) NodeKubeconfig(node string, life time.Duration) ([]byte, error) {
	template := certificate(pkix.Name{CommonName: "system:node:" + node, Organization: []string{"system:nodes"}})
	template.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}
	template.NotAfter = time.Now().Add(life)
	pair, err := c.ca.issue(fmt.Sprintf("node-%s-%s", node, randomHex(4)), template)
	if err != nil {
		return nil, err
	}
	cert, key, err := pair.read()
	if err != nil {
		return nil, err
	}
	return kubeconfigFor(c.Server, c.ca, &clientcmdapi.AuthInfo{ClientCertificateData: cert, ClientKeyData: key})
}

// AuditLog is the API server's audit log. It has the renewals of node leases, with the
// certificate of the client.
func (c *ControlPlane) AuditLog() string { return filepath.Join(c.slot.dir, "audit.log") }

const auditPolicy = `apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived]
rules:
- level: Metadata
  verbs: [update]
  resources: [{group: coordination.k8s.io, resources: [leases]}]
  namespaces: [kube-node-lease]
- level: None
`

func (c *ControlPlane) auditPolicyFile() string {
	return filepath.Join(c.slot.dir, "audit-policy.yaml")
}

func (c *ControlPlane) writeAuditPolicy() (string, error) {
	path := c.auditPolicyFile()
	if err := os.WriteFile(path, []byte(auditPolicy), 0o600); err != nil {
		return "", fmt.Errorf("write audit policy: %w", err)
	}
	return path, nil
}

func randomHex(bytes int) string {
	text := make([]byte, bytes)
	_, _ = rand.Read(text) // never fails
	return hex.EncodeToString(text)
}
