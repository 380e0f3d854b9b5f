package kubeapi

import (
	"encoding/base64"
	"encoding/json"
	"slices"
	"strings"
	"time"

	authv1 "k8s.io/api/authentication/v1"
	"k8s.io/apimachinery/pkg/types"
)

// Adopt caches a token that an earlier run of the agent wrote into a volume, if the request would
// yield the same token and it is not due for refresh. A restart under live pods then neither
// requests hundreds of tokens nor rewrites files.
//
// Adopt does not check the signature: only root can have written the file, and the API server
// validates the token on use.
func (t *Tokens) Adopt(namespace, account string, request *authv1.TokenRequest, value string) {
	token, ok := t.parse(namespace, account, request, value)
	if !ok || !t.deps.Clock.Now().Before(token.RefreshAt) {
		return
	}
	entry := t.entry(namespace, account, request)
	entry.mu.Lock()
	defer entry.mu.Unlock()
	if entry.token.Value == "" {
		entry.token = token
	}
}

// claims are the JWT claims that identify a token's subject, audience and lifetime.
type claims struct {
	Audience   audience `json:"aud"`
	Issued     int64    `json:"iat"`
	Expires    int64    `json:"exp"`
	Kubernetes struct {
		Namespace string `json:"namespace"`
		Pod       struct {
			UID types.UID `json:"uid"`
		} `json:"pod"`
		Account struct {
			Name string `json:"name"`
		} `json:"serviceaccount"`
		// WarnAfter is the requested expiry, where the API server extended it for clients
		// that never reload their token.
		WarnAfter int64 `json:"warnafter"`
	} `json:"kubernetes.io"`
}

func (t *Tokens) parse(namespace, account string, request *authv1.TokenRequest, value string) (Token, bool) {
	parts := strings.Split(value, ".")
	if len(parts) != 3 {
		return Token{}, false
	}
	body, err := base64.RawURLEncoding.DecodeString(parts[1])
	if err != nil {
		return Token{}, false
	}
	var c claims
	if json.Unmarshal(body, &c) != nil || c.Issued == 0 || c.Expires <= c.Issued {
		return Token{}, false
	}
	bound := request.Spec.BoundObjectRef
	if bound == nil || c.Kubernetes.Pod.UID != bound.UID || c.Kubernetes.Namespace != namespace || c.Kubernetes.Account.Name != account {
		return Token{}, false
	}
	for _, requested := range request.Spec.Audiences {
		if !slices.Contains(c.Audience, requested) {
			return Token{}, false
		}
	}
	expires := c.Expires
	if c.Kubernetes.WarnAfter > 0 {
		expires = c.Kubernetes.WarnAfter
	}
	return t.withRefreshTime(value, time.Unix(c.Issued, 0), time.Unix(expires, 0)), true
}

// audience is a string or a list of strings; JWT allows both.
type audience []string

func (a *audience) UnmarshalJSON(data []byte) error {
	var one string
	if json.Unmarshal(data, &one) == nil {
		*a = audience{one}
		return nil
	}
	var many []string
	if err := json.Unmarshal(data, &many); err != nil {
		return err
	}
	*a = many
	return nil
}
