package credentialplugin

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	kubelet "k8s.io/kubelet/config/v1"
	records "k8s.io/kubelet/config/v1beta1"
	api "k8s.io/kubelet/pkg/apis/credentialprovider/v1"

	"swiftlet/internal/image"
)

// plugin is one credential provider plugin and the cache of its responses.
type plugin struct {
	kubelet.CredentialProvider
	program  string
	timeout  time.Duration
	deps     Deps
	inFlight inFlightRequests
	cache    cache
}

// logins are credentials by registry: a host and a path prefix.
type logins map[string]api.AuthConfig

// credentials are a plugin's logins, and the service account that it issued them for, if any.
type credentials struct {
	auth    logins
	account *records.ImagePullServiceAccount
}

// handles reports whether the plugin is configured for the repository.
func (p *plugin) handles(repository string) bool {
	return slices.ContainsFunc(p.MatchImages, func(pattern string) bool { return image.Matches(pattern, repository) })
}

// credentials returns the plugin's credentials for a pod and a repository. Concurrent equal
// requests share one run of the plugin.
func (p *plugin) credentials(ctx context.Context, pod *v1.Pod, repository string) (credentials, error) {
	id, ok, err := p.identity(ctx, pod)
	if err != nil || !ok {
		return credentials{}, err
	}
	key := requestKey{repository, id.key(true)}
	auth, err := p.inFlight.share(ctx, key, func() (logins, error) { return p.cachedOrRun(ctx, repository, id) })
	return credentials{auth, id.account}, err
}

// cachedOrRun returns a cached response, or runs the plugin.
func (p *plugin) cachedOrRun(ctx context.Context, repository string, id identity) (logins, error) {
	cacheIdentity := id.key(p.cachesByToken())
	if auth, ok := p.cache.get(repository, cacheIdentity, p.deps.Clock.Now()); ok {
		return auth, nil
	}
	request, err := json.Marshal(api.CredentialProviderRequest{
		TypeMeta:                  metav1.TypeMeta{APIVersion: p.APIVersion, Kind: "CredentialProviderRequest"},
		Image:                     repository,
		ServiceAccountToken:       id.token,
		ServiceAccountAnnotations: id.annotations,
	})
	if err != nil {
		return nil, fmt.Errorf("encode credential plugin request: %w", err)
	}
	output, err := p.run(ctx, append(request, '\n'))
	if err != nil {
		return nil, fmt.Errorf("run credential plugin: %w", err)
	}
	response, err := decodeResponse(output, p.APIVersion)
	if err != nil {
		return nil, fmt.Errorf("decode credential plugin response: %w", err)
	}
	if id.token != "" && !p.cachesByToken() && returnsToken(response, id.token) {
		return nil, errors.New("validate credential plugin response: a password equals the service account token, which requires tokenAttributes.cacheType Token")
	}
	ttl := p.DefaultCacheDuration.Duration
	if response.CacheDuration != nil {
		ttl = response.CacheDuration.Duration
	}
	if ttl > 0 {
		p.cache.put(response.CacheKeyType, repository, cacheIdentity, response.Auth, p.deps.Clock.Now(), ttl)
	}
	return response.Auth, nil
}

// cachesByToken reports whether a response is valid for one token only, rather than for all
// pods of the service account.
func (p *plugin) cachesByToken() bool {
	return p.TokenAttributes != nil && p.TokenAttributes.CacheType == kubelet.TokenServiceAccountTokenCacheType
}

func returnsToken(response *api.CredentialProviderResponse, token string) bool {
	for _, l := range response.Auth {
		if l.Password == token {
			return true
		}
	}
	return false
}
