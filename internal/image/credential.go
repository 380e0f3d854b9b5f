package image

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"

	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
	kubelet "k8s.io/kubelet/config/v1beta1"
)

// Credential is something that may open a repository, and where it comes from.
type Credential struct {
	Auth *runtimeapi.AuthConfig
	// Secret is the pull secret that it stands in, with a hash of its content; nil where
	// every pod of the node may use it.
	Secret *kubelet.ImagePullSecret
	// Account is the service account that a plugin made it for; nil as above.
	Account *kubelet.ImagePullServiceAccount
	// Minted: a plugin made it, and the next one may look different without being better.
	Minted bool
}

func (l login) credential() Credential {
	c := Credential{Auth: &runtimeapi.AuthConfig{Username: l.username, Password: l.password}, Account: l.account, Minted: l.minted}
	if l.secret != nil {
		c.Secret = &kubelet.ImagePullSecret{
			UID: string(l.secret.UID), Namespace: l.secret.Namespace, Name: l.secret.Name, CredentialHash: l.hash(),
		}
	}
	return c
}

// hash stands for a login in records that outlive it, and that the reference kubelet reads
// too: it is made of what that makes it of.
func (l login) hash() string {
	content, err := json.Marshal(struct {
		Username string `json:"username,omitempty"`
		Password string `json:"password,omitempty"`
		Email    string `json:"email,omitempty"`
	}{l.username, l.password, l.email})
	if err != nil {
		return "" // strings are never refused
	}
	sum := sha256.Sum256(content)
	return hex.EncodeToString(sum[:])
}

// grant is what a pull with this credential says about who may use the image. A pull
// without any stands for every pod of the node.
func (c *Credential) grant() kubelet.ImagePullCredentials {
	switch {
	case c != nil && c.Secret != nil:
		return kubelet.ImagePullCredentials{KubernetesSecrets: []kubelet.ImagePullSecret{*c.Secret}}
	case c != nil && c.Account != nil:
		return kubelet.ImagePullCredentials{KubernetesServiceAccounts: []kubelet.ImagePullServiceAccount{*c.Account}}
	}
	return kubelet.ImagePullCredentials{NodePodsAccessible: true}
}
