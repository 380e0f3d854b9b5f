package image

import (
	"maps"
	"net"
	"net/url"
	"path"
	"slices"
	"strings"
)

// defaultHost is the registry of image names without a host in docker configurations.
const defaultHost = "index.docker.io"

// Keyring finds credentials by an image's repository.
type Keyring struct {
	// logins are keyed by host and an optional path prefix. The labels of the host may be
	// patterns: "*.example.com/team".
	logins map[string][]login
}

func (k *Keyring) add(logins map[string]login) {
	if k.logins == nil {
		k.logins = map[string][]login{}
	}
	for _, registry := range slices.Sorted(maps.Keys(logins)) {
		if key, ok := registryKey(registry); ok {
			k.logins[key] = append(k.logins[key], logins[registry])
		}
	}
}

// registryKey strips the scheme and the API version that docker configurations may contain.
func registryKey(registry string) (key string, ok bool) {
	if !strings.HasPrefix(registry, "https://") && !strings.HasPrefix(registry, "http://") {
		registry = "https://" + registry
	}
	u, err := url.Parse(registry)
	if err != nil {
		return "", false
	}
	p := u.Path
	if strings.HasPrefix(p, "/v1/") || strings.HasPrefix(p, "/v2/") {
		p = p[len("/v1"):]
	}
	if p == "/" {
		p = ""
	}
	return u.Host + p, true
}

// Lookup returns the credentials for the repository ("registry.example.com/team/app"), the most
// specific first. Several may match, for example while a password is being rotated.
func (k *Keyring) Lookup(repository string) []Credential {
	var found []login
	keys := slices.Sorted(maps.Keys(k.logins))
	slices.Reverse(keys)
	for _, key := range keys {
		if Matches(key, repository) {
			found = append(found, k.logins[key]...)
		}
	}
	if len(found) == 0 && onDefaultHost(repository) {
		found = k.logins[defaultHost]
	}
	var all []Credential
	for _, l := range found {
		all = append(all, l.credential())
	}
	return all
}

// Matches reports whether a registry key matches the repository: equal ports, every label of the
// host matches its pattern, and the key's path is a prefix.
func Matches(key, repository string) bool {
	k, err := url.Parse("https://" + key)
	if err != nil {
		return false
	}
	r, err := url.Parse("https://" + repository)
	if err != nil {
		return false
	}
	keyParts, keyPort := splitHost(k.Host)
	parts, port := splitHost(r.Host)
	if keyPort != port || len(keyParts) != len(parts) || !strings.HasPrefix(r.Path, k.Path) {
		return false
	}
	for i := range parts {
		if ok, err := path.Match(keyParts[i], parts[i]); err != nil || !ok {
			return false
		}
	}
	return true
}

func splitHost(hostPort string) (parts []string, port string) {
	host, port, err := net.SplitHostPort(hostPort)
	if err != nil {
		host, port = hostPort, ""
	}
	return strings.Split(host, "."), port
}

// onDefaultHost reports whether the repository is on Docker Hub: its first component is no host.
func onDefaultHost(repository string) bool {
	first, _, more := strings.Cut(repository, "/")
	if first == "" {
		return false
	}
	return !more || first == "docker.io" || first == defaultHost || !strings.ContainsAny(first, ".:")
}
