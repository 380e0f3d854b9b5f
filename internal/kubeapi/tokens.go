package kubeapi

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"sync"
	"time"

	authv1 "k8s.io/api/authentication/v1"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"

	"swiftlet/internal/instant"
	"swiftlet/internal/kubeclient"
	"swiftlet/internal/pod"
	"swiftlet/internal/require"
)

// Token is a service account token, its expiry, and when to call Get again.
type Token struct {
	Value     string
	ExpiresAt time.Time
	RefreshAt time.Time
}

const (
	// maxTokenAge limits how long a token with a revoked key or outdated claims stays in a pod.
	maxTokenAge = 24 * time.Hour
	// refreshJitter spreads the renewals of pods that started together.
	refreshJitter = 10 * time.Second
	// retryAfter is the delay before the next attempt to renew a token that is still valid.
	retryAfter = 30 * time.Second
	// accountTimeout limits the read of a service account, for which a pod waits.
	accountTimeout = 10 * time.Second
)

var errStandalone = errors.New("no API server issues tokens in standalone mode")

// TokensDeps is what Tokens works with. Without a Client every request fails: there is no API
// server to issue tokens.
type TokensDeps struct {
	Client kubeclient.Interface
	Clock  clock.PassiveClock
	Log    *slog.Logger
	// Jitter returns a number in [0,1); nil means math/rand.
	Jitter func() float64
}

// Tokens requests service account tokens bound to pods, and caches them until they are due for
// renewal: at 80 % of their lifetime or after a day.
type Tokens struct {
	deps     TokensDeps
	onIssued func() // may be nil

	mu      sync.Mutex
	entries map[tokenKey]*tokenEntry
}

// tokenKey holds all inputs of a token.
type tokenKey struct {
	namespace, account string
	audiences          string
	seconds            int64
	bound              authv1.BoundObjectReference
	accountUID         types.UID
}

// tokenEntry serializes requests for one token, so that two readers cause one request.
type tokenEntry struct {
	mu    sync.Mutex
	token Token
}

// NewTokens validates and starts nothing.
func NewTokens(deps TokensDeps) (*Tokens, error) {
	if err := require.Set("new token store", map[string]any{"Clock": deps.Clock, "Log": deps.Log}); err != nil {
		return nil, err
	}
	if deps.Jitter == nil {
		deps.Jitter = rand.Float64
	}
	return &Tokens{deps: deps, entries: map[tokenKey]*tokenEntry{}}, nil
}

// Get returns a token for the service account and the request: from the cache until it is due
// for renewal, else newly issued. If the renewal fails, Get returns a cached token that is still
// valid, with a RefreshAt in the near future.
func (t *Tokens) Get(ctx context.Context, namespace, account string, request *authv1.TokenRequest) (Token, error) {
	entry := t.entry(namespace, account, request)
	entry.mu.Lock()
	defer entry.mu.Unlock()
	now := t.deps.Clock.Now()
	if entry.token.Value != "" && now.Before(entry.token.RefreshAt) {
		return entry.token, nil
	}
	issued, err := t.issue(ctx, namespace, account, request)
	switch {
	case err == nil:
		entry.token = issued
		if t.onIssued != nil {
			t.onIssued()
		}
	case entry.token.Value == "":
		return Token{}, fmt.Errorf("failed to fetch token: %w", err)
	case !now.Before(entry.token.ExpiresAt):
		return Token{}, fmt.Errorf("token of service account %s/%s expired and refresh failed: %w", namespace, account, err)
	default:
		t.deps.Log.Warn("renew service account token: failed, using the cached token", "namespace", namespace, "serviceAccount", account, "expires", entry.token.ExpiresAt, "err", err)
		entry.token.RefreshAt = now.Add(retryAfter)
	}
	return entry.token, nil
}

// Account reads a service account.
func (t *Tokens) Account(ctx context.Context, namespace, name string) (*v1.ServiceAccount, error) {
	if t.deps.Client == nil {
		return nil, errStandalone
	}
	ctx, cancel := context.WithTimeout(ctx, accountTimeout)
	defer cancel()
	return RetryForbidden(ctx, func() (*v1.ServiceAccount, error) {
		return t.deps.Client.ServiceAccounts(namespace).Get(ctx, name, metav1.GetOptions{})
	})
}

// Forget deletes all tokens bound to the pod.
func (t *Tokens) Forget(uid types.UID) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for key := range t.entries {
		if key.bound.UID == uid {
			delete(t.entries, key)
		}
	}
}

func (t *Tokens) entry(namespace, account string, request *authv1.TokenRequest) *tokenEntry {
	key := tokenKey{
		namespace:  namespace,
		account:    account,
		audiences:  fmt.Sprintf("%q", request.Spec.Audiences),
		accountUID: request.UID,
	}
	if request.Spec.ExpirationSeconds != nil {
		key.seconds = *request.Spec.ExpirationSeconds
	}
	if request.Spec.BoundObjectRef != nil {
		key.bound = *request.Spec.BoundObjectRef
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	entry := t.entries[key]
	if entry == nil {
		entry = &tokenEntry{}
		t.entries[key] = entry
	}
	return entry
}

func (t *Tokens) issue(ctx context.Context, namespace, account string, request *authv1.TokenRequest) (Token, error) {
	if t.deps.Client == nil {
		return Token{}, errStandalone
	}
	began := t.deps.Clock.Now()
	got, err := RetryForbidden(ctx, func() (*authv1.TokenRequest, error) {
		return t.deps.Client.ServiceAccounts(namespace).CreateToken(ctx, account, request, metav1.CreateOptions{})
	})
	if err != nil {
		return Token{}, err
	}
	lifetime := got.Status.ExpirationTimestamp.Sub(began)
	// The API server may have granted another lifetime than requested, and its clock may differ.
	if got.Spec.ExpirationSeconds != nil {
		lifetime = pod.Seconds(*got.Spec.ExpirationSeconds)
	}
	return t.withRefreshTime(got.Status.Token, began, began.Add(lifetime)), nil
}

// withRefreshTime returns a token with its time of renewal. The jitter is drawn once per token,
// so that all its readers get the same time.
func (t *Tokens) withRefreshTime(value string, issued, expires time.Time) Token {
	refresh := issued.Add(expires.Sub(issued) / 10 * 8) // in this order: a pod may ask for 136 years
	if day := issued.Add(maxTokenAge); day.Before(refresh) {
		refresh = day
	}
	jitter := time.Duration(t.deps.Jitter() * float64(refreshJitter))
	// On the monotonic clock: a token that is in use does not get old when the wall clock is set back.
	now := t.deps.Clock.Now()
	return Token{Value: value, ExpiresAt: instant.Of(expires, now), RefreshAt: instant.Of(refresh.Add(-jitter), now)}
}

// Value is Get for callers that need the token alone.
func (t *Tokens) Value(ctx context.Context, namespace, account string, request *authv1.TokenRequest) (string, error) {
	token, err := t.Get(ctx, namespace, account, request)
	return token.Value, err
}
