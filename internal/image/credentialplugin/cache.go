package credentialplugin

import (
	"strings"
	"sync"
	"time"

	api "k8s.io/kubelet/pkg/apis/credentialprovider/v1"
)

// cache keeps answers for as long as the plugin, or its configuration, allows.
type cache struct {
	mu   sync.Mutex
	kept map[cacheKey]keptAnswer
}

// cacheKey is what an answer is good for: an image, a registry or all images, asked for by
// one holder.
type cacheKey struct {
	kind            api.PluginCacheKeyType
	subject, holder string
}

type keptAnswer struct {
	auth  logins
	until time.Time
}

// subjectOf is the part of a repository's name that an answer of this kind is good for.
func subjectOf(kind api.PluginCacheKeyType, repository string) string {
	switch kind {
	case api.ImagePluginCacheKeyType:
		return repository
	case api.RegistryPluginCacheKeyType:
		host, _, _ := strings.Cut(repository, "/")
		return host
	}
	return ""
}

// find returns the most specific answer that still holds.
func (c *cache) find(repository, holder string, now time.Time) (logins, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, kind := range []api.PluginCacheKeyType{api.ImagePluginCacheKeyType, api.RegistryPluginCacheKeyType, api.GlobalPluginCacheKeyType} {
		a, ok := c.kept[cacheKey{kind, subjectOf(kind, repository), holder}]
		if ok && now.Before(a.until) {
			return a.auth, true
		}
	}
	return nil, false
}

// keep remembers an answer, and forgets those that hold no longer.
func (c *cache) keep(kind api.PluginCacheKeyType, repository, holder string, auth logins, now time.Time, life time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for key, a := range c.kept {
		if !now.Before(a.until) {
			delete(c.kept, key)
		}
	}
	c.kept[cacheKey{kind, subjectOf(kind, repository), holder}] = keptAnswer{auth, now.Add(life)}
}
