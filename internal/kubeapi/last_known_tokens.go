package kubeapi

import (
	"time"

	authv1 "k8s.io/api/authentication/v1"
	"k8s.io/apimachinery/pkg/types"
)

// savedToken is a token of a pod in the file of LastKnown.
type savedToken struct {
	Namespace  string                      `json:"namespace"`
	Account    string                      `json:"account"`
	Audiences  string                      `json:"audiences"`
	Seconds    int64                       `json:"seconds"`
	Bound      authv1.BoundObjectReference `json:"bound"`
	AccountUID types.UID                   `json:"accountUID,omitempty"`
	Value      string                      `json:"value"`
	ExpiresAt  time.Time                   `json:"expiresAt"`
}

// Keep makes known keep the tokens. Call it before known runs.
func (k *LastKnown) Keep(t *Tokens) {
	if k == nil {
		return
	}
	k.tokens, t.onIssued = t, k.changed.Notify
}

// toSave returns the tokens that are bound to pods.
func (t *Tokens) toSave() []savedToken {
	t.mu.Lock()
	defer t.mu.Unlock()
	var all []savedToken
	for key, entry := range t.entries {
		if !entry.mu.TryLock() {
			continue // a request is in progress, after which the file is saved again
		}
		token := entry.token
		entry.mu.Unlock()
		if token.Value != "" && key.bound.UID != "" {
			all = append(all, savedToken{key.namespace, key.account, key.audiences, key.seconds, key.bound, key.accountUID, token.Value, token.ExpiresAt})
		}
	}
	return all
}

// restore caches the tokens that are still valid. They are due for renewal soon.
func (t *Tokens) restore(all []savedToken) {
	t.mu.Lock()
	defer t.mu.Unlock()
	now := t.deps.Clock.Now()
	for _, s := range all {
		key := tokenKey{namespace: s.Namespace, account: s.Account, audiences: s.Audiences, seconds: s.Seconds, bound: s.Bound, accountUID: s.AccountUID}
		if t.entries[key] == nil && now.Before(s.ExpiresAt) {
			t.entries[key] = &tokenEntry{token: Token{Value: s.Value, ExpiresAt: s.ExpiresAt, RefreshAt: now.Add(retryAfter)}}
		}
	}
}
