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

// plugin is one program, and what it said so far.
type plugin struct {
	kubelet.CredentialProvider
	program string
	timeout time.Duration
	deps    Deps
	flights flights
	cache   cache
}

// logins are credentials by what they open: a host and the beginning of a path.
type logins map[string]api.AuthConfig

// answer is what a plugin said on behalf of a service account; none where that was nobody's.
type answer struct {
	auth    logins
	account *records.ImagePullServiceAccount
}

// handles reports whether the plugin is there for the repository.
func (p *plugin) handles(repository string) bool {
	return slices.ContainsFunc(p.MatchImages, func(pattern string) bool { return image.Matches(pattern, repository) })
}

// ask returns what the plugin says to a pod that needs the repository. Pods that ask the
// same at the same time share one run of it.
func (p *plugin) ask(ctx context.Context, of *v1.Pod, repository string) (answer, error) {
	who, ok, err := p.holder(ctx, of)
	if err != nil || !ok {
		return answer{}, err
	}
	key := flightKey{repository, who.key(true)}
	auth, err := p.flights.share(ctx, key, func() (logins, error) { return p.find(ctx, repository, who) })
	return answer{auth, who.account}, err
}

// find takes what the plugin said before, or runs it.
func (p *plugin) find(ctx context.Context, repository string, who holder) (logins, error) {
	keeper := who.key(p.keepsByToken())
	if auth, ok := p.cache.find(repository, keeper, p.deps.Clock.Now()); ok {
		return auth, nil
	}
	request, err := json.Marshal(api.CredentialProviderRequest{
		TypeMeta:                  metav1.TypeMeta{APIVersion: p.APIVersion, Kind: "CredentialProviderRequest"},
		Image:                     repository,
		ServiceAccountToken:       who.token,
		ServiceAccountAnnotations: who.annotations,
	})
	if err != nil {
		return nil, fmt.Errorf("ask credential plugin: %w", err)
	}
	output, err := p.run(ctx, append(request, '\n'))
	if err != nil {
		return nil, fmt.Errorf("run credential plugin: %w", err)
	}
	response, err := decodeResponse(output, p.APIVersion)
	if err != nil {
		return nil, fmt.Errorf("read answer of credential plugin: %w", err)
	}
	if who.token != "" && !p.keepsByToken() && echoes(response, who.token) {
		return nil, errors.New("read answer of credential plugin: it returns the token as a password, which needs tokenAttributes.cacheType to be Token")
	}
	life := p.DefaultCacheDuration.Duration
	if response.CacheDuration != nil {
		life = response.CacheDuration.Duration
	}
	if life > 0 {
		p.cache.keep(response.CacheKeyType, repository, keeper, response.Auth, p.deps.Clock.Now(), life)
	}
	return response.Auth, nil
}

// keepsByToken reports whether an answer is good for one token only, rather than for all
// pods of the service account.
func (p *plugin) keepsByToken() bool {
	return p.TokenAttributes != nil && p.TokenAttributes.CacheType == kubelet.TokenServiceAccountTokenCacheType
}

func echoes(response *api.CredentialProviderResponse, token string) bool {
	for _, l := range response.Auth {
		if l.Password == token {
			return true
		}
	}
	return false
}
