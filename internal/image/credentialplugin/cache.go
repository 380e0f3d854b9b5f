package credentialplugin

import (
	"strings"
	"sync"
	"time"

	api "k8s.io/kubelet/pkg/apis/credentialprovider/v1"
)

// cache holds responses for the duration that the plugin or its configuration allows.
type cache struct {
	mu      sync.Mutex
	entries map[cacheKey]cacheEntry
}

// cacheKey is the scope of a response: an image, a registry or all images, for one identity.
type cacheKey struct {
	kind              api.PluginCacheKeyType
	subject, identity string
}

type cacheEntry struct {
	auth    logins
	expires time.Time
}

// subjectOf returns the part of a repository's name that a response of this kind applies to.
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

// get returns the most specific response that has not expired.
func (c *cache) get(repository, identity string, now time.Time) (logins, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, kind := range []api.PluginCacheKeyType{api.ImagePluginCacheKeyType, api.RegistryPluginCacheKeyType, api.GlobalPluginCacheKeyType} {
		e, ok := c.entries[cacheKey{kind, subjectOf(kind, repository), identity}]
		if ok && now.Before(e.expires) {
			return e.auth, true
		}
	}
	return nil, false
}

// put adds a response, and deletes expired ones.
func (c *cache) put(kind api.PluginCacheKeyType, repository, identity string, auth logins, now time.Time, ttl time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for key, e := range c.entries {
		if !now.Before(e.expires) {
			delete(c.entries, key)
		}
	}
	c.entries[cacheKey{kind, subjectOf(kind, repository), identity}] = cacheEntry{auth, now.Add(ttl)}
}
