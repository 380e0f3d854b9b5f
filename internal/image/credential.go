package image

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"

	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
	kubelet "k8s.io/kubelet/config/v1beta1"
)

// Credential is a registry credential and its origin.
type Credential struct {
	Auth *runtimeapi.AuthConfig
	// Secret is the pull secret that holds the credential, with a hash of its content; nil
	// where every pod of the node may use it.
	Secret *kubelet.ImagePullSecret
	// ServiceAccount is the service account that a plugin issued the credential for; nil where every
	// pod of the node may use it.
	ServiceAccount *kubelet.ImagePullServiceAccount
	// FromPlugin reports that a plugin issued the credential. A plugin may issue a different but
	// equivalent one each time.
	FromPlugin bool
}

func (l login) credential() Credential {
	c := Credential{Auth: &runtimeapi.AuthConfig{Username: l.username, Password: l.password}, ServiceAccount: l.serviceAccount, FromPlugin: l.fromPlugin}
	if l.secret != nil {
		c.Secret = &kubelet.ImagePullSecret{
			UID: string(l.secret.UID), Namespace: l.secret.Namespace, Name: l.secret.Name, CredentialHash: l.hash(),
		}
	}
	return c
}

// hash identifies a login in the pull records. The reference kubelet reads those too and
// hashes the same JSON.
func (l login) hash() string {
	content, err := json.Marshal(struct {
		Username string `json:"username,omitempty"`
		Password string `json:"password,omitempty"`
		Email    string `json:"email,omitempty"`
	}{l.username, l.password, l.email})
	if err != nil {
		return "" // cannot happen: strings always encode
	}
	sum := sha256.Sum256(content)
	return hex.EncodeToString(sum[:])
}

// grant returns who may use an image that was pulled with this credential. After a pull without
// a credential (nil), every pod of the node may.
func (c *Credential) grant() kubelet.ImagePullCredentials {
	switch {
	case c != nil && c.Secret != nil:
		return kubelet.ImagePullCredentials{KubernetesSecrets: []kubelet.ImagePullSecret{*c.Secret}}
	case c != nil && c.ServiceAccount != nil:
		return kubelet.ImagePullCredentials{KubernetesServiceAccounts: []kubelet.ImagePullServiceAccount{*c.ServiceAccount}}
	}
	return kubelet.ImagePullCredentials{NodePodsAccessible: true}
}
